//! How a decision that was carried out ends: what the live state shows, proven absence, and the one block that records
//! it with its effect on the run. Source: DESIGN §4.3; RULINGS 1 and 13.

use alloc::vec::Vec;

use protocol::command::{LiveFinding, Verified};
use protocol::decision::{Action, DecidedVia};
use protocol::delivery::{EffectStatus, Settlement};
use protocol::event::{
    CheckpointKind, DecisionFinished, DecisionOutcome, DeliverySettled, DeliveryUncertain, EffectReading,
    LeaseReleased, PauseClosed, StepFacts,
};
use protocol::ids::{DecisionId, IdempotencyKey, LeaseToken, RunId};
use protocol::pause::{Reason, Resolution};
use protocol::refusal::{Refusal, RefusalCode};
use protocol::time::Deadline;

use super::context::Context;
use super::decision::{recorded, refused_after, uncertain_run};
use super::state::{Decision, Pause, Phase, Run, State};
use super::work::Work;
use super::{Answer, Decided, capability, lease, run, step};

/// Records what the live state showed for a decision that was carried out.
pub(super) fn finish(
    state: &State,
    run: RunId,
    token: LeaseToken,
    decision: DecisionId,
    finding: &LiveFinding,
    cx: &Context<'_>,
) -> Result<Decided, Refusal> {
    let run = lease::holder(state, run, token, cx)?;
    let (Some((key, decision)), Some(open)) = (in_flight(run, decision), &run.pause) else {
        return Err(Refusal::WrongPhase);
    };
    let ending = Closing {
        work: Work::on(run, cx),
        token,
        key: key.clone(),
        decision: decision.clone(),
        step: open.opened.step.clone(),
        token_kept: false,
    };
    match decision.action {
        Action::Continue => Ok(finish_continue(ending, open, finding)),
        Action::Skip => Ok(finish_skip(ending, open, finding)),
        Action::Reconcile => Ok(finish_reconcile(ending, open, finding, state)),
        Action::Reject | Action::Teach | Action::Escalate => Err(Refusal::WrongPhase),
    }
}

fn finish_continue(ending: Closing<'_, '_>, open: &Pause, finding: &LiveFinding) -> Decided {
    match finding {
        LiveFinding::Verified(verified) if step::all_confirmed(&ending.step, verified) => {
            let completed = at_the_halt(open, verified.effects.clone());
            let kind = done_by(&ending.decision);
            ending.complete(kind, &completed, Resolution::Continued)
        }
        LiveFinding::Verified(_)
        | LiveFinding::GuardUnmet
        | LiveFinding::GuardHolds
        | LiveFinding::Absent(_)
        | LiveFinding::NotVerified => ending.refuse(RefusalCode::NotVerified),
    }
}

fn finish_skip(ending: Closing<'_, '_>, open: &Pause, finding: &LiveFinding) -> Decided {
    match finding {
        LiveFinding::GuardUnmet => {
            let skipped = at_the_halt(open, Vec::new());
            ending.complete(CheckpointKind::Skipped, &skipped, Resolution::Skipped)
        }
        LiveFinding::GuardHolds => ending.refuse(RefusalCode::GuardHolds),
        LiveFinding::Verified(_) | LiveFinding::Absent(_) | LiveFinding::NotVerified => {
            ending.refuse(RefusalCode::NotVerified)
        }
    }
}

fn finish_reconcile(
    mut ending: Closing<'_, '_>,
    open: &Pause,
    finding: &LiveFinding,
    state: &State,
) -> Decided {
    match finding {
        LiveFinding::Verified(verified)
            if ending.step.effects > 0 && step::all_confirmed(&ending.step, verified) =>
        {
            ending.settle(Settlement::Confirmed, verified.effects.clone());
            let engine_acted = ending.work.run.crossing.is_some();
            let kind = if engine_acted { CheckpointKind::Reconciled } else { done_by(&ending.decision) };
            let completed = if engine_acted && open.opened.identity.is_none() {
                verified.clone()
            } else {
                at_the_halt(open, verified.effects.clone())
            };
            ending.complete(kind, &completed, Resolution::Reconciled)
        }
        LiveFinding::Absent(effects) if shows_absence(&ending.work.run, &ending.step, effects) => {
            if began_when_nothing_could_act(&ending.decision) {
                return ending.absent(effects);
            }
            let refusal = uncertain_run(&ending.work.run, ending.work.cx, state);
            let refused = ending.refuse(RefusalCode::DeliveryUncertain);
            refused_after(refused.events, refusal)
        }
        LiveFinding::Verified(_)
        | LiveFinding::GuardUnmet
        | LiveFinding::GuardHolds
        | LiveFinding::Absent(_)
        | LiveFinding::NotVerified => ending.refuse(RefusalCode::NotVerified),
    }
}

/// Who did a step that the engine did not do: a person, only where the console says so (attended-contract §4).
fn done_by(decision: &Decision) -> CheckpointKind {
    match decision.author.via {
        DecidedVia::Console => CheckpointKind::Human,
        DecidedVia::Elicitation | DecidedVia::Script | DecidedVia::Unknown => CheckpointKind::Outside,
    }
}

/// What a checkpoint records of a step that somebody else completed: its effects as read now, and the identity as the
/// engine captured it at the halt, for by now the application may show another record.
fn at_the_halt(open: &Pause, effects: Vec<EffectReading>) -> Verified {
    Verified { effects, identity_status: open.opened.identity_status, identity: open.opened.identity }
}

/// Whether the reads bear out that nothing was delivered. Where the engine crossed, every effect must be declared, read
/// and absent: no evidence is not absence. Where it never acted, it is enough that the reads worked.
fn shows_absence(run: &Run, step: &StepFacts, effects: &[EffectReading]) -> bool {
    if effects.len() != step.effects as usize {
        return false;
    }
    if run.crossing.is_some() {
        step.effects > 0
            && step.attested == 0
            && effects.iter().all(|reading| reading.status == EffectStatus::Absent)
    } else {
        effects.iter().all(|reading| match reading.status {
            EffectStatus::Confirmed | EffectStatus::Absent | EffectStatus::Refuted => true,
            EffectStatus::Indeterminate | EffectStatus::Unverifiable => false,
        })
    }
}

fn in_flight(run: &Run, id: DecisionId) -> Option<(&IdempotencyKey, &Decision)> {
    run.decision_in_flight().filter(|(_, decision)| decision.id == id)
}

/// Whether the reconcile's reads came after everything that could still act. What it was read before is no proof: a late
/// effect, or a holder that was only stopped, may have come between the read and its record.
fn began_when_nothing_could_act(decision: &Decision) -> bool {
    match decision.phase {
        Phase::Started { absence_provable, .. } => absence_provable,
        Phase::Prepared | Phase::Uncertain { .. } | Phase::Terminal { .. } => false,
    }
}

/// Whether nothing of the uncertain deliveries can still act: each executor returned or its holder is gone, no child
/// lives on, and each one's limit and the settle time have passed. Once true, it stays so. Source: RULINGS 1.
pub(super) fn nothing_can_act(run: &Run, cx: &Context<'_>, state: &State) -> bool {
    let over = |deadline: &Deadline| deadline.has_passed(&cx.now, state.latest_wall);
    let step_cannot_act = run.crossing.as_ref().is_none_or(|crossing| {
        (crossing.receipt.is_some() || !cx.lives(crossing.holder)) && over(&crossing.absent_after)
    });
    let decisions_cannot_act = run.uncertain_decisions().all(|(_, decision)| match &decision.phase {
        Phase::Uncertain { holder, absent_after, given_up } => {
            (*given_up || !cx.lives(*holder)) && over(absent_after)
        }
        Phase::Prepared | Phase::Started { .. } | Phase::Terminal { .. } => true,
    });
    step_cannot_act && decisions_cannot_act && !cx.live.child_lives
}

/// The block that ends a decision.
struct Closing<'a, 'c> {
    work: Work<'a, 'c>,
    token: LeaseToken,
    key: IdempotencyKey,
    decision: Decision,
    step: StepFacts,
    token_kept: bool,
}

impl Closing<'_, '_> {
    fn finished(&mut self, outcome: DecisionOutcome, refusal: Option<RefusalCode>) {
        self.work.push(DecisionFinished {
            decision: self.decision.id,
            run: self.work.run.id(),
            key: self.key.clone(),
            outcome,
            refusal,
            settled_by: None,
        });
    }

    /// Ends every uncertain decision on the run with what this reconcile proved.
    fn settle(&mut self, settlement: Settlement, effects: Vec<EffectReading>) {
        self.work.push(DeliverySettled {
            run: self.work.run.id(),
            delivery: self.work.run.crossing.as_ref().map(|crossing| crossing.delivery),
            settlement,
            decision: self.decision.id,
            effects,
        });
        let open: Vec<_> = self
            .work
            .run
            .uncertain_decisions()
            .map(|(key, decision)| (key.clone(), decision.id, decision.action))
            .collect();
        for (key, decision, action) in open {
            let (outcome, refusal) = match settlement {
                Settlement::Confirmed => match action {
                    // The step is done, so it was not skipped.
                    Action::Skip => (DecisionOutcome::Refused, Some(RefusalCode::NotVerified)),
                    Action::Continue
                    | Action::Reject
                    | Action::Teach
                    | Action::Escalate
                    | Action::Reconcile => (DecisionOutcome::Completed, None),
                },
                Settlement::Absent => (DecisionOutcome::NotDelivered, None),
            };
            self.work.push(DecisionFinished {
                decision,
                run: self.work.run.id(),
                key,
                outcome,
                refusal,
                settled_by: Some(self.decision.id),
            });
        }
    }

    /// The step is verified: its checkpoint, the decision's end and the pause's end in one block; the run's end with
    /// them, if it was the last step. Otherwise the lease is kept and the run goes on under it.
    fn complete(mut self, kind: CheckpointKind, verified: &Verified, resolution: Resolution) -> Decided {
        let (token, id, facts) = (self.token, self.decision.id, self.step.clone());
        step::checkpoint(&mut self.work, token, &facts, kind, verified, Some(id));
        self.finished(DecisionOutcome::Completed, None);
        self.close(resolution);
        let decision = recorded(&self.work.run, &self.key);
        self.token_kept = step::finish_at_end(&mut self.work).is_none();
        self.answer(decision)
    }

    /// Nothing was delivered: the pause is open again, with a new capability.
    fn absent(mut self, effects: &[EffectReading]) -> Decided {
        self.settle(Settlement::Absent, effects.to_vec());
        self.finished(DecisionOutcome::NotDelivered, None);
        if run::end_if_canceled(&mut self.work).is_none() {
            capability::issue(&mut self.work);
            self.release();
        }
        let decision = recorded(&self.work.run, &self.key);
        self.answer(decision)
    }

    /// The live state did not bear the decision out. That is its terminal outcome; the pause stays open (RULINGS 13),
    /// unless somebody asked for the run's end meanwhile.
    fn refuse(mut self, code: RefusalCode) -> Decided {
        self.finished(DecisionOutcome::Refused, Some(code));
        if run::end_if_canceled(&mut self.work).is_none() {
            self.release();
        }
        let decision = recorded(&self.work.run, &self.key);
        self.answer(decision)
    }

    fn close(&mut self, resolution: Resolution) {
        self.work.push(PauseClosed {
            run: self.work.run.id(),
            pause: self.decision.pause,
            resolution,
            author: self.decision.author.clone(),
        });
    }

    fn release(&mut self) {
        self.work.push(LeaseReleased { run: self.work.run.id(), token: self.token });
    }

    fn answer(self, decision: Decision) -> Decided {
        let token = self.token_kept.then_some(self.token);
        Decided { events: self.work.events, answer: Answer::Decided { decision, replayed: false, token } }
    }
}

/// The executor was lost while it worked for a decision: an exception is not a refusal.
pub(super) fn lose(
    state: &State,
    run: RunId,
    token: LeaseToken,
    decision: DecisionId,
    cx: &Context<'_>,
) -> Result<Decided, Refusal> {
    let run = lease::holder(state, run, token, cx)?;
    let Some((_, decision)) = in_flight(run, decision) else { return Err(Refusal::WrongPhase) };
    let mut work = Work::on(run, cx);
    work.push(DeliveryUncertain {
        run: run.id(),
        delivery: None,
        decision: Some(decision.id),
        holder: cx.instance,
        reason: Reason::ExecutorLost,
    });
    work.push(LeaseReleased { run: run.id(), token });
    let refusal = uncertain_run(&work.run, cx, state);
    Ok(refused_after(work.events, refusal))
}
