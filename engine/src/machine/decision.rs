//! A person's decision on a pause: the table of attended-contract §4, in its order, and what the live state then says.
//! Source: DESIGN §4.3 and §4.4; RULINGS 1, 12 to 17.

use alloc::boxed::Box;
use alloc::vec::Vec;

use protocol::command::{LiveFinding, Verified};
use protocol::decision::{Action, DecisionRequest};
use protocol::delivery::{DeliveryState, Settlement};
use protocol::event::{
    Author, CheckpointKind, DecisionFinished, DecisionOutcome, DecisionPrepared, DecisionRecorded, DecisionStarted,
    DeliverySettled, DeliveryUncertain, EffectReading, LeaseReleased, PauseClosed, PauseExpired, StandDownRequested,
    StepFacts,
};
use protocol::ids::{DecisionId, IdempotencyKey, LeaseToken, RunId};
use protocol::pause::{Reason, Resolution};
use protocol::refusal::{Refusal, RefusalCode};
use protocol::time::{Deadline, Millis};

use super::context::Context;
use super::outcome::{self, Ending};
use super::state::{Decision, Phase, Run, State};
use super::work::Work;
use super::{Answer, Decided, capability, lease, pause, step};

/// Judges a decision request. The first row that fails is the answer.
pub(super) fn decide(
    state: &State,
    request: &DecisionRequest,
    author: &Author,
    may_preempt: bool,
    cx: &Context<'_>,
) -> Result<Decided, Refusal> {
    request.check()?;
    let digest = request.digest();

    // Rows 2 to 4: the key.
    let known = state
        .keys
        .get(&request.idempotency_key)
        .and_then(|run| state.runs.get(run))
        .and_then(|run| run.decisions.get(&request.idempotency_key).map(|decision| (Some(run), decision)))
        .or_else(|| cx.facts.decision.as_ref().map(|decision| (None, decision)));
    if let Some((run, decision)) = known {
        if decision.request != digest {
            return Err(Refusal::IdempotencyConflict);
        }
        match &decision.phase {
            Phase::Terminal { .. } => {
                return Ok(Decided::silent(Answer::Decided {
                    decision: decision.clone(),
                    replayed: true,
                    token: None,
                }));
            }
            Phase::Uncertain { absent_after, .. } => return Err(uncertain(*absent_after, cx, state)),
            Phase::Started { absent_after, .. } => {
                let Some(run) = run else { return Err(uncertain(*absent_after, cx, state)) };
                if lease::is_held(run, cx, state) {
                    return Err(Refusal::Busy);
                }
                let mut work = Work::on(run, cx);
                lease::settle_lost_holder(&mut work);
                let answer = Answer::Refused(uncertain(*absent_after, cx, state));
                return Ok(Decided { events: work.events, answer });
            }
            Phase::Prepared => {
                if run.is_some_and(|run| lease::is_held(run, cx, state)) {
                    return Err(Refusal::Busy);
                }
            }
        }
    }

    // Rows 5 and 6: the item.
    let Some((run, open)) = state.pause(&request.attention_id) else {
        return Err(match cx.facts.attention {
            Some(recorded) if recorded.run_rejected => Refusal::RunRejected,
            Some(_) | None => Refusal::UnknownAttention,
        });
    };

    // Rows 7 and 8: the capability.
    let presented = capability::check_presented(open, request.capability_digest, cx)?;

    // What a lost holder left behind comes to light here, before anything is judged by it.
    let held = lease::is_held(run, cx, state);
    let mut work = Work::on(run, cx);
    if !held {
        lease::settle_lost_holder(&mut work);
    }

    // Row 13 before row 9 for the actions that would end or pass an uncertain step (RULINGS 14).
    let in_flight = work.run.decision_in_flight().is_some();
    match request.action {
        Action::Continue | Action::Skip | Action::Reject => {
            if in_flight && held {
                return Err(Refusal::Busy);
            }
            if work.run.delivery_state() == DeliveryState::Unknown {
                let refusal = uncertain_run(&work.run, cx, state);
                return Ok(refused_after(work.events, refusal));
            }
        }
        Action::Reconcile | Action::Teach | Action::Escalate => {}
    }

    // Row 9: the action, judged from the state as it is now.
    if !pause::allowed_actions(&work.run, open).contains(&request.action) {
        return Ok(refused_after(work.events, Refusal::ActionNotAllowed));
    }

    // Row 10: expiry. A recorded expiry is final.
    let pause_expired = pause::has_expired(open, cx, state);
    if pause_expired && !open.expired {
        work.push(PauseExpired { run: run.id(), pause: open.opened.pause });
    }
    let bars = match request.action {
        Action::Continue | Action::Skip => pause_expired,
        Action::Reconcile | Action::Reject | Action::Teach | Action::Escalate => false,
    };
    if bars {
        return Ok(refused_after(work.events, Refusal::PauseExpired { current: None }));
    }
    let capability_expired = request.action.needs_executor()
        && presented.claims.expires.has_passed(&cx.now, state.latest_wall);

    // Rows 11 and 12: nothing that the capability binds has changed.
    if let Err(refusal) = capability::check_unchanged(run, open, presented, cx) {
        return Ok(refused_after(work.events, refusal));
    }

    match request.action {
        Action::Teach | Action::Escalate => {}
        // Row 14: the lease.
        Action::Reject if held => {
            if may_preempt && run.stand_down != Some(cx.instance) {
                work.push(StandDownRequested { run: run.id(), by: cx.instance });
            }
            return Ok(refused_after(work.events, Refusal::Busy));
        }
        Action::Continue | Action::Skip | Action::Reconcile if held => return Err(Refusal::Busy),
        Action::Continue | Action::Skip | Action::Reconcile | Action::Reject => {}
    }

    // Row 10 again: a capability that failed on its expiry alone is issued anew.
    if capability_expired {
        capability::issue(&mut work);
        let current = work.run.pause.as_ref().and_then(|open| open.capability.as_ref()).map(|next| next.digest());
        return Ok(refused_after(work.events, Refusal::PauseExpired { current }));
    }

    // Row 15: the executor.
    if request.action.needs_executor() && !cx.live.executor {
        return Ok(refused_after(work.events, Refusal::ExecutorMissing));
    }

    match request.action {
        Action::Teach | Action::Escalate => Ok(record(work, request, author, None)),
        Action::Reject => Ok(record(work, request, author, Some(open.opened.pause))),
        Action::Continue | Action::Skip | Action::Reconcile => prepare(state, work, request, author, cx),
    }
}

fn refused_after(events: Vec<protocol::event::Event>, refusal: Refusal) -> Decided {
    Decided { events, answer: Answer::Refused(refusal) }
}

fn uncertain(absent_after: Deadline, cx: &Context<'_>, state: &State) -> Refusal {
    Refusal::DeliveryUncertain { retry_after: remaining(absent_after, cx, state) }
}

fn uncertain_run(run: &Run, cx: &Context<'_>, state: &State) -> Refusal {
    Refusal::DeliveryUncertain { retry_after: remaining(absent_after(run), cx, state) }
}

/// How long until `deadline`, by the clock that judges it; none once it has passed.
fn remaining(deadline: Deadline, cx: &Context<'_>, state: &State) -> Option<Millis> {
    if deadline.has_passed(&cx.now, state.latest_wall) {
        return None;
    }
    Some(if deadline.boot_id == cx.now.boot_id {
        Millis(deadline.boot.0.saturating_sub(cx.now.boot.0))
    } else {
        Millis(deadline.wall.0.saturating_sub(cx.now.wall.0.max(state.latest_wall.0)))
    })
}

/// Teach, escalate and reject are terminal as they are admitted: the record and its effect on the run are one block.
fn record(
    mut work: Work<'_, '_>,
    request: &DecisionRequest,
    author: &Author,
    reject: Option<protocol::ids::PauseId>,
) -> Decided {
    let Some(open) = work.run.pause.clone() else {
        unreachable!("the pause was found open in this command, and nothing closed it")
    };
    let id = work.cx.fresh.decision;
    work.push(DecisionRecorded {
        decision: id,
        run: work.run.id(),
        pause: open.opened.pause,
        attention: request.attention_id.clone(),
        key: request.idempotency_key.clone(),
        request: request.digest(),
        capability: request.capability_digest,
        action: request.action,
        disposition: request.disposition,
        author: author.clone(),
    });
    let decision = recorded(&work.run, &request.idempotency_key);
    if let Some(pause) = reject {
        work.push(PauseClosed {
            run: work.run.id(),
            pause,
            resolution: Resolution::Rejected,
            author: author.clone(),
        });
        outcome::finish(&mut work, Ending::Rejected, Reason::Rejected);
    }
    Decided { events: work.events, answer: Answer::Decided { decision, replayed: false, token: None } }
}

fn recorded(run: &Run, key: &IdempotencyKey) -> Decision {
    match run.decisions.get(key) {
        Some(decision) => decision.clone(),
        None => unreachable!("the decision was recorded in this command"),
    }
}

/// Grant, prepared and delivery_started in one block (RULINGS 37). A decision that was prepared under a lost lease goes
/// on under its own id.
fn prepare(
    state: &State,
    mut work: Work<'_, '_>,
    request: &DecisionRequest,
    author: &Author,
    cx: &Context<'_>,
) -> Result<Decided, Refusal> {
    let Some(open) = work.run.pause.clone() else {
        unreachable!("the pause was found open in this command, and nothing closed it")
    };
    let facts = open.opened.step.clone();
    let reserve = step::outcome_reserve(&facts);
    step::check_space(state, reserve, cx)?;
    let token = lease::grant(&mut work, facts.limit);
    let under = lease::under(cx, token, facts.limit);
    let decision = match work.run.decisions.get(&request.idempotency_key) {
        Some(prepared) => prepared.id,
        None => {
            let id = cx.fresh.decision;
            work.push(DecisionPrepared {
                decision: id,
                run: work.run.id(),
                pause: open.opened.pause,
                attention: request.attention_id.clone(),
                key: request.idempotency_key.clone(),
                request: request.digest(),
                capability: request.capability_digest,
                action: request.action,
                disposition: request.disposition,
                author: author.clone(),
                under: under.clone(),
            });
            id
        }
    };
    let late = Millis(facts.limit.0.saturating_add(work.run.admitted.settle.0));
    work.push(DecisionStarted {
        decision,
        run: work.run.id(),
        absent_after: cx.now.after(late),
        reserve,
        under,
    });
    let decision = recorded(&work.run, &request.idempotency_key);
    let answer = Answer::CarryOut { token, decision, run: Box::new(work.run) };
    Ok(Decided { events: work.events, answer })
}

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
    let facts = open.opened.step.clone();
    let mut ending = Closing {
        work: Work::on(run, cx),
        token,
        key: key.clone(),
        decision: decision.clone(),
        step: facts,
        token_kept: false,
    };
    let done = match (decision.action, finding) {
        (Action::Continue, LiveFinding::Verified(verified)) if step::all_confirmed(&ending.step, verified) => {
            ending.complete(CheckpointKind::Human, verified, Resolution::Continued)
        }
        (Action::Skip, LiveFinding::GuardUnmet) => {
            let skipped = Verified {
                effects: Vec::new(),
                identity_status: open.opened.identity_status,
                identity: open.opened.identity,
            };
            ending.complete(CheckpointKind::Skipped, &skipped, Resolution::Skipped)
        }
        (Action::Skip, LiveFinding::GuardHolds) => ending.refuse(RefusalCode::GuardHolds, None),
        (Action::Reconcile, LiveFinding::Verified(verified))
            if ending.step.effects > 0 && step::all_confirmed(&ending.step, verified) =>
        {
            let kind =
                if run.crossing.is_some() { CheckpointKind::Reconciled } else { CheckpointKind::Human };
            ending.settle(Settlement::Confirmed, verified.effects.clone());
            ending.complete(kind, verified, Resolution::Reconciled)
        }
        (Action::Reconcile, LiveFinding::Absent(effects)) => {
            if absence_is_proven(run, cx, state) {
                ending.absent(effects)
            } else {
                let refusal = uncertain_run(run, cx, state);
                ending.refuse(RefusalCode::DeliveryUncertain, Some(refusal))
            }
        }
        (
            Action::Continue | Action::Skip | Action::Reconcile,
            LiveFinding::Verified(_)
            | LiveFinding::GuardUnmet
            | LiveFinding::GuardHolds
            | LiveFinding::Absent(_)
            | LiveFinding::NotVerified,
        ) => ending.refuse(RefusalCode::NotVerified, None),
        (Action::Reject | Action::Teach | Action::Escalate, _) => return Err(Refusal::WrongPhase),
    };
    Ok(done)
}

fn in_flight(run: &Run, id: DecisionId) -> Option<(&IdempotencyKey, &Decision)> {
    run.decision_in_flight().filter(|(_, decision)| decision.id == id)
}

/// Whether nothing of the uncertain deliveries can still act: each executor returned or its holder is gone, and each
/// one's limit and the settle time have passed. Source: RULINGS 1.
fn absence_is_proven(run: &Run, cx: &Context<'_>, state: &State) -> bool {
    let step_cannot_act = run.crossing.as_ref().is_none_or(|crossing| {
        (crossing.receipt.is_some() || !cx.lives(crossing.holder))
            && crossing.absent_after.has_passed(&cx.now, state.latest_wall)
    });
    let decisions_cannot_act = run.uncertain_decisions().all(|(_, decision)| match &decision.phase {
        Phase::Uncertain { holder, absent_after } => {
            (!cx.lives(*holder) || *holder == cx.instance)
                && absent_after.has_passed(&cx.now, state.latest_wall)
        }
        Phase::Prepared | Phase::Started { .. } | Phase::Terminal { .. } => true,
    });
    step_cannot_act && decisions_cannot_act
}

/// The latest moment after which absence could be proven, over everything that is uncertain.
fn absent_after(run: &Run) -> Deadline {
    let crossing = run.crossing.as_ref().map(|crossing| crossing.absent_after);
    let decisions = run.uncertain_decisions().filter_map(|(_, decision)| match &decision.phase {
        Phase::Uncertain { absent_after, .. } => Some(*absent_after),
        Phase::Prepared | Phase::Started { .. } | Phase::Terminal { .. } => None,
    });
    match crossing.into_iter().chain(decisions).max_by_key(|deadline| (deadline.wall, deadline.boot)) {
        Some(deadline) => deadline,
        None => unreachable!("asked only of a run with an uncertain delivery"),
    }
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
        let outcome = match settlement {
            Settlement::Confirmed => DecisionOutcome::Completed,
            Settlement::Absent => DecisionOutcome::NotDelivered,
        };
        self.work.push(DeliverySettled {
            run: self.work.run.id(),
            delivery: self.work.run.crossing.as_ref().map(|crossing| crossing.delivery),
            settlement,
            decision: self.decision.id,
            effects,
        });
        let open: Vec<_> =
            self.work.run.uncertain_decisions().map(|(key, decision)| (key.clone(), decision.id)).collect();
        for (key, decision) in open {
            self.work.push(DecisionFinished {
                decision,
                run: self.work.run.id(),
                key,
                outcome,
                refusal: None,
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
        capability::issue(&mut self.work);
        self.release();
        let decision = recorded(&self.work.run, &self.key);
        self.answer(decision)
    }

    /// The live state did not bear the decision out. That is its terminal outcome; the pause stays open (RULINGS 13).
    fn refuse(mut self, code: RefusalCode, refusal: Option<Refusal>) -> Decided {
        self.finished(DecisionOutcome::Refused, Some(code));
        self.release();
        let decision = recorded(&self.work.run, &self.key);
        match refusal {
            Some(refusal) => refused_after(self.work.events, refusal),
            None => self.answer(decision),
        }
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
