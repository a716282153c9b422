//! Views of runs, pauses and decisions, built from the state or from recorded events. No rule lives here.

use protocol::event::{Entry, Event, RunAdmitted, RunFinished};
use protocol::ids::IdempotencyKey;
use protocol::outcome::{AgentOutcome, RecordChanged, RunState};
use protocol::projection::{AttentionItem, AttentionStatus, CapabilityView, Counts, DecisionView, RunView};
use protocol::time::UnixMillis;

use crate::machine::state::Pause;
use crate::machine::{Decision, Phase, Run, outcome, pause};

/// Where an open run stands.
pub(super) fn open_state(run: &Run) -> RunState {
    if run.pause.is_some() {
        RunState::Paused
    } else if run.lineage.is_empty() && run.crossing.is_none() && run.lease.is_none() {
        RunState::Admitted
    } else {
        RunState::Running
    }
}

/// An open run as an agent sees it.
#[must_use]
pub fn open_run(run: &Run) -> RunView {
    let evidence = outcome::evidence(run);
    let state = open_state(run);
    let agent = match state {
        RunState::Paused if evidence.uncertain => AgentOutcome::NotSureIfSaved,
        RunState::Paused => AgentOutcome::NeedsReview,
        RunState::Admitted
        | RunState::Running
        | RunState::Completed
        | RunState::Halted
        | RunState::Rejected
        | RunState::Failed => AgentOutcome::Running,
    };
    RunView {
        run_id: run.id(),
        workflow: run.admitted.workflow.clone(),
        state,
        execution_outcome: None,
        outcome: agent,
        reason: run.pause.as_ref().map(|pause| pause.opened.reason),
        record_changed: outcome::record_changed(evidence),
        safe_to_retry: false,
        attention_id: run.pause.as_ref().map(|pause| pause.opened.attention.clone()),
        step_number: run.cursor.step().saturating_add(1),
        step_count: run.admitted.steps,
        checkpoints: u32::try_from(run.lineage.len()).unwrap_or(u32::MAX),
        effects_confirmed: evidence.confirmed,
        effects_declared: evidence.declared,
        started_at: run.admitted_at,
    }
}

/// A run that ended, from its admission and its end.
#[must_use]
pub fn finished_run(
    admitted: &RunAdmitted,
    at: UnixMillis,
    checkpoints: u32,
    finished: &RunFinished,
) -> RunView {
    let agent = finished.outcome.agent(finished.changed);
    RunView {
        run_id: admitted.run,
        workflow: admitted.workflow.clone(),
        state: finished.outcome.state(),
        execution_outcome: Some(finished.outcome),
        outcome: agent,
        reason: Some(finished.reason),
        record_changed: finished.changed,
        safe_to_retry: finished.changed == RecordChanged::No,
        attention_id: None,
        step_number: checkpoints.saturating_add(1),
        step_count: admitted.steps,
        checkpoints,
        effects_confirmed: finished.confirmed,
        effects_declared: admitted.effects,
        started_at: at,
    }
}

/// An open pause as an agent or a queue sees it; `None` before its first capability, which a home without a key never
/// issues.
#[must_use]
pub fn attention_item(run: &Run, open: &Pause) -> Option<AttentionItem> {
    let capability = open.capability.as_ref()?;
    let opened = &open.opened;
    let status = if open.expired {
        AttentionStatus::Expired
    } else if open.escalated {
        AttentionStatus::Escalated
    } else if open.needs_demonstration {
        AttentionStatus::NeedsDemonstration
    } else {
        AttentionStatus::Open
    };
    Some(AttentionItem {
        id: opened.attention.clone(),
        run: run.id(),
        workflow: run.admitted.workflow.clone(),
        category: opened.category,
        reason: opened.reason,
        status,
        created_at: open.at,
        expires_at: opened.expires.wall,
        step_number: opened.step.index.saturating_add(1),
        step_count: run.admitted.steps,
        counts: Counts {
            postconditions: opened.step.postconditions.saturating_add(opened.step.relative),
            effects: opened.step.effects.saturating_add(opened.step.attested),
            checkpoints: u32::try_from(run.lineage.len()).unwrap_or(u32::MAX),
        },
        artifact_ids: opened
            .evidence
            .iter()
            .map(|digest| protocol::digest::Sha256Digest::of(&digest.0))
            .collect(),
        capability: CapabilityView {
            digest: capability.digest(),
            allowed_actions: pause::allowed_actions(run, open),
            expires_at: capability.claims.expires.wall,
            delivery_state: run.delivery_state(),
            identity_required: opened.step.identity_required,
            identity_status: opened.identity_status,
        },
    })
}

/// A terminal decision as recorded; `None` while it is not terminal.
#[must_use]
pub fn decision(decision: &Decision) -> Option<DecisionView> {
    let (outcome, refusal) = match &decision.phase {
        Phase::Terminal { outcome, refusal } => (*outcome, *refusal),
        Phase::Prepared | Phase::Started { .. } | Phase::Uncertain { .. } => return None,
    };
    Some(DecisionView {
        decision: decision.id,
        run: decision.run,
        attention_id: decision.attention.clone(),
        action: decision.action,
        disposition: decision.disposition,
        capability_digest: decision.capability,
        decided_via: decision.author.via,
        decided_at: decision.at,
        outcome,
        refusal,
    })
}

/// Rebuilds a decision from the events recorded under its key.
#[must_use]
pub fn decision_from(key: &IdempotencyKey, entries: &[Entry]) -> Option<Decision> {
    let mut found: Option<Decision> = None;
    for entry in entries {
        if let Event::DecisionRecorded(fact) = &entry.event
            && fact.key == *key
        {
            found = Some(Decision::recorded(fact, entry.time));
        } else if let Event::DecisionPrepared(fact) = &entry.event
            && fact.key == *key
        {
            found = Some(Decision::prepared(fact, entry.time));
        } else if let (Event::DecisionFinished(fact), Some(decision)) = (&entry.event, &mut found)
            && fact.key == *key
        {
            decision.finish(fact);
        }
    }
    found
}
