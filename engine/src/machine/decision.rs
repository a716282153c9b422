//! A person's decision on a pause: the table of attended-contract §4, in its order, and what the live state then says.
//! Source: DESIGN §4.3 and §4.4; RULINGS 1, 12 to 17.

use alloc::boxed::Box;
use alloc::vec::Vec;

use protocol::capability::Capability;
use protocol::command::{LiveFinding, Verified};
use protocol::decision::{Action, DecisionRequest};
use protocol::delivery::{DeliveryState, EffectStatus, Settlement};
use protocol::event::{
    Author, CheckpointKind, DecisionFinished, DecisionOutcome, DecisionPrepared, DecisionRecorded,
    DecisionStarted, DeliverySettled, DeliveryUncertain, EffectReading, LeaseReleased, PauseClosed,
    PauseExpired, StandDownRequested, StepFacts,
};
use protocol::ids::{DecisionId, IdempotencyKey, LeaseToken, RunId};
use protocol::pause::{Reason, Resolution};
use protocol::refusal::{Refusal, RefusalCode};
use protocol::time::{Deadline, Millis};

use super::context::Context;
use super::outcome::{self, Ending};
use super::state::{Decision, Pause, Phase, Run, State};
use super::work::Work;
use super::{Answer, Decided, capability, lease, pause, run, step};

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

    // Rows 7 and 8: the capability. A pause that has none was opened while the key was missing.
    let mut work = Work::on(run, cx);
    if capability::issue_if_none(&mut work) {
        return Ok(refused_after(work.events, Refusal::StaleCapability));
    }
    let presented = capability::check_presented(open, request.capability_digest, cx)?;

    // What a lost holder left behind comes to light here, before anything is judged by it.
    let held = lease::is_held(run, cx, state);
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
    let capability_expired =
        request.action.needs_executor() && presented.claims.expires.has_passed(&cx.now, state.latest_wall);

    // Rows 11 to 15. A capability that fails on its expiry alone is issued anew (RULINGS 15).
    let later = later_rows(run, open, presented, request.action, held, cx);
    if capability_expired {
        let current = match later {
            Ok(()) => {
                step::check_space(state, 0, cx)?;
                capability::issue(&mut work);
                work.run.pause.as_ref().and_then(|open| open.capability.as_ref()).map(|next| next.digest())
            }
            Err(_) => None,
        };
        return Ok(refused_after(work.events, Refusal::PauseExpired { current }));
    }
    if let Err(refusal) = later {
        if refusal == Refusal::Busy && asks_to_stand_down(&work.run, request.action, may_preempt, cx) {
            work.push(StandDownRequested { run: run.id(), by: cx.instance });
        }
        return Ok(refused_after(work.events, refusal));
    }

    match request.action {
        Action::Teach | Action::Escalate | Action::Reject => {
            step::check_space(state, 0, cx)?;
            Ok(record(work, request, author))
        }
        Action::Continue | Action::Skip | Action::Reconcile => prepare(state, work, request, author, cx),
    }
}

/// Rows 11 to 15: bundle, what the capability binds, the lease, the executor.
fn later_rows(
    run: &Run,
    open: &Pause,
    presented: &Capability,
    action: Action,
    held: bool,
    cx: &Context<'_>,
) -> Result<(), Refusal> {
    capability::check_unchanged(run, open, presented, cx)?;
    let needs_lease = match action {
        Action::Teach | Action::Escalate => false,
        Action::Continue | Action::Skip | Action::Reject | Action::Reconcile => true,
    };
    if needs_lease && held {
        return Err(Refusal::Busy);
    }
    if action.needs_executor() && !cx.live.executor {
        return Err(Refusal::ExecutorMissing);
    }
    Ok(())
}

/// Whether a reject that found the lease held asks its holder, which has not crossed, to stand down.
fn asks_to_stand_down(run: &Run, action: Action, may_preempt: bool, cx: &Context<'_>) -> bool {
    match action {
        Action::Reject => may_preempt && run.stand_down != Some(cx.instance),
        Action::Continue | Action::Skip | Action::Teach | Action::Escalate | Action::Reconcile => false,
    }
}

fn refused_after(events: Vec<protocol::event::Event>, refusal: Refusal) -> Decided {
    Decided { events, answer: Answer::Refused(refusal) }
}

fn uncertain(absent_after: Deadline, cx: &Context<'_>, state: &State) -> Refusal {
    Refusal::DeliveryUncertain { retry_after: remaining(absent_after, cx, state) }
}

fn uncertain_run(run: &Run, cx: &Context<'_>, state: &State) -> Refusal {
    Refusal::DeliveryUncertain {
        retry_after: absent_after(run).and_then(|deadline| remaining(deadline, cx, state)),
    }
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
fn record(mut work: Work<'_, '_>, request: &DecisionRequest, author: &Author) -> Decided {
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
    let ends_the_run = match request.action {
        Action::Reject => true,
        Action::Continue | Action::Skip | Action::Teach | Action::Escalate | Action::Reconcile => false,
    };
    if ends_the_run {
        work.push(PauseClosed {
            run: work.run.id(),
            pause: open.opened.pause,
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
            ending.complete(CheckpointKind::Human, &completed, Resolution::Continued)
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
            let kind = if engine_acted { CheckpointKind::Reconciled } else { CheckpointKind::Human };
            let completed = if engine_acted && open.opened.identity.is_none() {
                verified.clone()
            } else {
                at_the_halt(open, verified.effects.clone())
            };
            ending.complete(kind, &completed, Resolution::Reconciled)
        }
        LiveFinding::Absent(effects) if shows_absence(&ending.work.run, &ending.step, effects) => {
            let cx = ending.work.cx;
            if absence_is_proven(&ending.work.run, cx, state) {
                return ending.absent(effects);
            }
            let refusal = uncertain_run(&ending.work.run, cx, state);
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

/// Whether nothing of the uncertain deliveries can still act: each executor returned or its holder is gone, no child
/// lives on, and each one's limit and the settle time have passed. Source: RULINGS 1.
fn absence_is_proven(run: &Run, cx: &Context<'_>, state: &State) -> bool {
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

/// The latest moment after which absence could be proven, over everything that is uncertain.
fn absent_after(run: &Run) -> Option<Deadline> {
    let crossing = run.crossing.as_ref().map(|crossing| crossing.absent_after);
    let decisions = run.uncertain_decisions().filter_map(|(_, decision)| match &decision.phase {
        Phase::Uncertain { absent_after, .. } => Some(*absent_after),
        Phase::Prepared | Phase::Started { .. } | Phase::Terminal { .. } => None,
    });
    crossing.into_iter().chain(decisions).max_by_key(|deadline| (deadline.wall, deadline.boot))
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
