//! Steps: intent, receipt, checkpoint, stop. Source: DESIGN §4.1.

use protocol::bundle::Attended;
use protocol::command::{Finding, Verified};
use protocol::delivery::{DeliveryState, EffectStatus, ReceiptOutcome};
use protocol::digest::{MacDigest, Sha256Digest};
use protocol::event::{Checkpoint, CheckpointKind, LeaseReleased, StepFacts, StepIntent, StepReceipt};
use protocol::ids::{DecisionId, DeliveryId, LeaseToken, RunId};
use protocol::pause::{Category, IdentityStatus, Reason};
use protocol::refusal::Refusal;
use protocol::time::Millis;

use super::context::Context;
use super::outcome::{self, Ending};
use super::state::{Run, State};
use super::work::Work;
use super::{Answer, Decided, lease, pause, run};

/// After its intent, how long an action may wait for its executor. One that has not begun by then is never begun, so that
/// the time after which absence can be proven covers every action that was (RULINGS 1).
pub const BEGIN_WITHIN: Millis = Millis::from_secs(2);

/// Bytes that the outcome of one crossing may need: receipt, checkpoint, pause, capability and end of the run, each in
/// a block of its own, and a reading for each effect.
pub(super) fn outcome_reserve(step: &StepFacts) -> u32 {
    step.effects.saturating_add(step.attested).saturating_mul(512).saturating_add(8192)
}

/// Bytes that the block which takes new work on may itself need.
const NEW_WORK_BYTES: u64 = 4096;

/// Whether new work fits beside the outcomes that are promised already. Source: RULINGS 7.
///
/// # Errors
/// `disk_full`.
pub(super) fn check_space(state: &State, reserve: u32, cx: &Context<'_>) -> Result<(), Refusal> {
    let needed = state.reserved_bytes().saturating_add(u64::from(reserve)).saturating_add(NEW_WORK_BYTES);
    if cx.space_left < needed { Err(Refusal::DiskFull) } else { Ok(()) }
}

/// Journals the intent: the last thing before the delivery boundary.
pub(super) fn begin(
    state: &State,
    run: RunId,
    token: LeaseToken,
    step: &StepFacts,
    action: MacDigest,
    cx: &Context<'_>,
) -> Result<Decided, Refusal> {
    let run = lease::holder_about_to_cross(state, run, token, cx)?;
    let acts_by_itself = match step.attended {
        Attended::Always => false,
        Attended::Never | Attended::OnHalt => step.acts,
    };
    if run.pause.is_some()
        || run.crossing.is_some()
        || run.decision_in_flight().is_some()
        || run.uncertain_decisions().next().is_some()
        || step.index != run.cursor.step()
        || !acts_by_itself
    {
        return Err(Refusal::WrongPhase);
    }
    let mut work = Work::on(run, cx);
    if let Some(outcome) = run::end_if_canceled(&mut work) {
        return Ok(Decided { events: work.events, answer: Answer::Finished { outcome } });
    }
    let reserve = outcome_reserve(step);
    check_space(state, reserve, cx)?;
    let delivery = cx.fresh.delivery;
    let late = Millis(BEGIN_WITHIN.0.saturating_add(step.limit.0).saturating_add(run.admitted.settle.0));
    work.push(StepIntent {
        run: run.id(),
        step: step.clone(),
        cursor: run.cursor.clone(),
        delivery,
        action,
        absent_after: cx.now.after(late),
        reserve,
        under: lease::under(cx, token, step.limit),
    });
    Ok(Decided { events: work.events, answer: Answer::Deliver { delivery } })
}

/// What the executor's return is recorded as.
#[derive(Clone, Copy, Debug)]
pub struct Receipt<'a> {
    /// Its word.
    pub outcome: ReceiptOutcome,
    /// Why it is unclear.
    pub reason: Reason,
    /// Salted digest of what it saw.
    pub evidence: Option<MacDigest>,
    /// Identity and baseline captured before the action.
    pub seen: &'a Finding,
}

/// Journals that the executor returned. An unclear outcome pauses the run in the same block.
pub(super) fn record_receipt(
    state: &State,
    run: RunId,
    token: LeaseToken,
    delivery: DeliveryId,
    receipt: &Receipt<'_>,
    cx: &Context<'_>,
) -> Result<Decided, Refusal> {
    let run = lease::holder(state, run, token, cx)?;
    let step = match &run.crossing {
        Some(crossing) if crossing.delivery == delivery && crossing.receipt.is_none() => {
            crossing.step.clone()
        }
        Some(_) | None => return Err(Refusal::WrongPhase),
    };
    let mut work = Work::on(run, cx);
    work.push(StepReceipt {
        run: run.id(),
        delivery,
        outcome: receipt.outcome,
        evidence: receipt.evidence,
        under: lease::under(cx, token, step.limit),
    });
    let answer = match receipt.outcome {
        ReceiptOutcome::Acted | ReceiptOutcome::NotSent => Answer::Recorded,
        ReceiptOutcome::Unclear => {
            let finding = Finding {
                category: Category::DeliveryUncertain,
                reason: receipt.reason,
                ..receipt.seen.clone()
            };
            let attention = pause::open(&mut work, &step, &finding);
            work.push(LeaseReleased { run: run.id(), token });
            Answer::Paused { attention }
        }
    };
    Ok(Decided { events: work.events, answer })
}

/// Commits a step that the engine did, read, or found not to apply.
pub(super) fn commit(
    state: &State,
    run: RunId,
    token: LeaseToken,
    step: &StepFacts,
    kind: CheckpointKind,
    verified: &Verified,
    cx: &Context<'_>,
) -> Result<Decided, Refusal> {
    let run = lease::holder(state, run, token, cx)?;
    if run.pause.is_some() || !is_current(run, step) || !may_commit(run, step, kind, verified) {
        return Err(Refusal::WrongPhase);
    }
    let mut work = Work::on(run, cx);
    let checkpoint = checkpoint(&mut work, token, step, kind, verified, None);
    let answer = finish_at_end(&mut work).unwrap_or(Answer::Committed { checkpoint });
    Ok(Decided { events: work.events, answer })
}

/// Whether `step` is the one at the cursor, and the very one whose delivery boundary was crossed, if it was.
fn is_current(run: &Run, step: &StepFacts) -> bool {
    step.index == run.cursor.step() && run.crossing.as_ref().is_none_or(|crossing| crossing.step == *step)
}

fn may_commit(run: &Run, step: &StepFacts, kind: CheckpointKind, verified: &Verified) -> bool {
    let engine_does_it = match step.attended {
        Attended::Always => false,
        Attended::Never | Attended::OnHalt => true,
    };
    let identified = match verified.identity_status {
        // After a takeover the identity is what was proven before the crossing; it is not read again.
        IdentityStatus::Unverified => run.crossing.is_some(),
        IdentityStatus::Verified | IdentityStatus::NotRequired => true,
        IdentityStatus::Mismatch => false,
    };
    let proven = engine_does_it && identified && all_confirmed(step, verified);
    match kind {
        CheckpointKind::Engine => run.delivery_state() == DeliveryState::Delivered && proven,
        CheckpointKind::Read => !step.acts && run.crossing.is_none() && proven,
        CheckpointKind::Skipped => step.skippable && !step.consequential && run.crossing.is_none(),
        CheckpointKind::Human | CheckpointKind::Outside | CheckpointKind::Reconciled => false,
    }
}

/// Whether every verifiable effect of the step was read as confirmed, and none needs a person's word.
pub(super) fn all_confirmed(step: &StepFacts, verified: &Verified) -> bool {
    verified.effects.len() == step.effects as usize
        && step.attested == 0
        && verified.effects.iter().all(|reading| reading.status == EffectStatus::Confirmed)
}

/// Pushes the checkpoint of the step at the cursor and returns its digest.
pub(super) fn checkpoint(
    work: &mut Work<'_, '_>,
    token: LeaseToken,
    step: &StepFacts,
    kind: CheckpointKind,
    verified: &Verified,
    decision: Option<DecisionId>,
) -> Sha256Digest {
    let delivery = work.run.crossing.as_ref().map(|crossing| crossing.delivery);
    // What a person completed was not the engine's delivery, even where an earlier one of the engine's is named.
    let engine_did_it = match kind {
        CheckpointKind::Engine | CheckpointKind::Reconciled => true,
        CheckpointKind::Read | CheckpointKind::Human | CheckpointKind::Outside | CheckpointKind::Skipped => {
            false
        }
    };
    let checkpoint = Checkpoint {
        run: work.run.id(),
        step: step.clone(),
        cursor: work.run.cursor.clone(),
        kind,
        parent: work.run.lineage_head(),
        bundle: work.run.admitted.bundle,
        parameters: work.run.admitted.parameters,
        effects: verified.effects.clone(),
        identity_status: verified.identity_status,
        identity: verified.identity,
        delivery,
        delivery_attempted: engine_did_it && delivery.is_some(),
        decision,
        under: lease::under(work.cx, token, step.limit),
    };
    let digest = checkpoint.digest();
    work.push(checkpoint);
    digest
}

/// Ends the run in the same block when its last step is committed, so that no crash can come between; also one whose end
/// was asked for meanwhile.
pub(super) fn finish_at_end(work: &mut Work<'_, '_>) -> Option<Answer> {
    let outcome = if work.run.at_end() {
        Some(outcome::finish(work, Ending::End, Reason::EndReached))
    } else {
        run::end_if_canceled(work)
    };
    outcome.map(|outcome| Answer::Finished { outcome })
}

/// Stops at the step. It pauses; only a step that may never be attended, of which nothing was delivered, ends the run.
pub(super) fn stop(
    state: &State,
    run: RunId,
    token: LeaseToken,
    step: &StepFacts,
    finding: &Finding,
    cx: &Context<'_>,
) -> Result<Decided, Refusal> {
    let run = lease::holder(state, run, token, cx)?;
    if run.pause.is_some() || !is_current(run, step) {
        return Err(Refusal::WrongPhase);
    }
    let mut work = Work::on(run, cx);
    if let Some(outcome) = run::end_if_canceled(&mut work) {
        return Ok(Decided { events: work.events, answer: Answer::Finished { outcome } });
    }
    let may_end = match step.attended {
        Attended::Never => !run.delivery_state().may_have_happened(),
        Attended::Always | Attended::OnHalt => false,
    };
    if may_end {
        let outcome = outcome::finish(&mut work, Ending::Halt, finding.reason);
        return Ok(Decided { events: work.events, answer: Answer::Finished { outcome } });
    }
    let attention = pause::open(&mut work, step, finding);
    work.push(LeaseReleased { run: run.id(), token });
    Ok(Decided { events: work.events, answer: Answer::Paused { attention } })
}
