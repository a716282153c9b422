//! A person's decision on a pause: the table of attended-contract §4, in its order. What the live state then says of one
//! that is carried out stands in `settlement`. Source: DESIGN §4.3 and §4.4; RULINGS 12 to 17.

use alloc::boxed::Box;
use alloc::vec::Vec;

use protocol::capability::Capability;
use protocol::decision::{Action, DecisionRequest};
use protocol::delivery::DeliveryState;
use protocol::event::{
    Author, DecisionPrepared, DecisionRecorded, DecisionStarted, Event, PauseClosed, PauseExpired,
    StandDownRequested,
};
use protocol::ids::IdempotencyKey;
use protocol::pause::{Reason, Resolution};
use protocol::refusal::Refusal;
use protocol::time::{Deadline, Millis};

use super::context::Context;
use super::outcome::{self, Ending};
use super::state::{Decision, Pause, Phase, Run, State};
use super::work::Work;
use super::{Answer, Decided, capability, lease, pause, settlement, step};

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

pub(super) fn refused_after(events: Vec<Event>, refusal: Refusal) -> Decided {
    Decided { events, answer: Answer::Refused(refusal) }
}

fn uncertain(absent_after: Deadline, cx: &Context<'_>, state: &State) -> Refusal {
    Refusal::DeliveryUncertain { retry_after: remaining(absent_after, cx, state) }
}

pub(super) fn uncertain_run(run: &Run, cx: &Context<'_>, state: &State) -> Refusal {
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

pub(super) fn recorded(run: &Run, key: &IdempotencyKey) -> Decision {
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
    let absence_provable = settlement::nothing_can_act(&work.run, cx, state);
    let late = Millis(facts.limit.0.saturating_add(work.run.admitted.settle.0));
    work.push(DecisionStarted {
        decision,
        run: work.run.id(),
        absent_after: cx.now.after(late),
        reserve,
        under,
        absence_provable,
    });
    let decision = recorded(&work.run, &request.idempotency_key);
    let answer = Answer::CarryOut { token, decision, run: Box::new(work.run) };
    Ok(Decided { events: work.events, answer })
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
