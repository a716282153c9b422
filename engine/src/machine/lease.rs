//! Leases: exclusive ownership of a run by one process, with the grant's sequence as the fencing token.
//! Source: DESIGN §4.5, RULINGS 10 and 12.

use alloc::vec;

use protocol::command::Finding;
use protocol::delivery::ReceiptOutcome;
use protocol::event::{DeliveryUncertain, LeaseGranted, LeaseReleased, Under};
use protocol::ids::{LeaseToken, RunId};
use protocol::pause::{Category, IdentityStatus, Reason};
use protocol::refusal::Refusal;
use protocol::time::Millis;

use super::context::Context;
use super::state::{Run, State};
use super::work::Work;
use super::{Answer, Decided, pause};

/// Whether another command may not touch the run now: its holder lives and its grant has not run out.
pub(super) fn is_held(run: &Run, cx: &Context<'_>, state: &State) -> bool {
    run.lease
        .is_some_and(|lease| cx.lives(lease.holder) && !lease.until.has_passed(&cx.now, state.latest_wall))
}

/// Puts down what the end of a holder means for what it was doing. Call only when the lease is not held.
///
/// A crossing without a receipt becomes uncertain, and the run pauses for it; a decision that was being carried out
/// becomes uncertain. The old lease is released. A holder that may have crossed is never assumed not to have acted.
pub(super) fn settle_lost_holder(work: &mut Work<'_, '_>) {
    let Some(lease) = work.run.lease else { return };
    let reason = if work.cx.lives(lease.holder) { Reason::LeaseExpired } else { Reason::HolderDied };
    let id = work.run.id();
    if let Some((_, decision)) = work.run.decision_in_flight() {
        let decision = decision.id;
        work.push(DeliveryUncertain {
            run: id,
            delivery: None,
            decision: Some(decision),
            holder: lease.holder,
            reason,
        });
    }
    let lost = match &work.run.crossing {
        Some(crossing) => match crossing.receipt {
            None | Some(ReceiptOutcome::Unclear) => Some((crossing.delivery, crossing.step.clone())),
            Some(ReceiptOutcome::Acted | ReceiptOutcome::NotSent) => None,
        },
        None => None,
    };
    if let (Some((delivery, step)), None) = (lost, &work.run.pause) {
        work.push(DeliveryUncertain {
            run: id,
            delivery: Some(delivery),
            decision: None,
            holder: lease.holder,
            reason,
        });
        let finding = Finding {
            category: Category::DeliveryUncertain,
            reason,
            evidence: vec![],
            identity_status: if step.identity_required {
                IdentityStatus::Unverified
            } else {
                IdentityStatus::NotRequired
            },
            identity: None,
            baseline: false,
        };
        pause::open(work, &step, &finding);
    }
    work.push(LeaseReleased { run: id, token: lease.token });
}

/// Grants the lease to the asking process for `limit` and the grace.
pub(super) fn grant(work: &mut Work<'_, '_>, limit: Millis) -> LeaseToken {
    let token = LeaseToken(work.next());
    let until = work.cx.now.after(lasts(work.cx, limit));
    work.push(LeaseGranted { run: work.run.id(), holder: work.cx.instance, until });
    token
}

/// The writer's right in an event under `token`, renewing for `limit` and the grace.
pub(super) fn under(cx: &Context<'_>, token: LeaseToken, limit: Millis) -> Under {
    Under { token, until: cx.now.after(lasts(cx, limit)) }
}

fn lasts(cx: &Context<'_>, limit: Millis) -> Millis {
    Millis(limit.0.saturating_add(cx.limits.lease_grace_ms.0))
}

/// Finds the run and checks that `token` is its current lease and the asking process its holder: a token is no secret.
///
/// # Errors
/// `unknown_run`, `run_finished` or `fenced`.
pub(super) fn holder<'s>(
    state: &'s State,
    run: RunId,
    token: LeaseToken,
    cx: &Context<'_>,
) -> Result<&'s Run, Refusal> {
    let run = find(state, run, cx)?;
    if is_holder(run, token, cx) {
        return Ok(run);
    }
    Err(Refusal::Fenced { yours: token, current: run.lease.map(|lease| lease.token) })
}

fn is_holder(run: &Run, token: LeaseToken, cx: &Context<'_>) -> bool {
    run.lease.is_some_and(|lease| lease.token == token && lease.holder == cx.instance)
}

/// As [`holder`], for a command that crosses a delivery boundary: the lease must not have run out and nobody who lives
/// may have asked the holder to stand down. Checked before anything is written that cannot be undone.
///
/// # Errors
/// As [`holder`], and `lease_expired` or `stand_down`.
pub(super) fn holder_about_to_cross<'s>(
    state: &'s State,
    run: RunId,
    token: LeaseToken,
    cx: &Context<'_>,
) -> Result<&'s Run, Refusal> {
    let run = holder(state, run, token, cx)?;
    if run.lease.is_some_and(|lease| lease.until.has_passed(&cx.now, state.latest_wall)) {
        return Err(Refusal::LeaseExpired);
    }
    if run.stand_down.is_some_and(|asking| cx.lives(asking)) {
        return Err(Refusal::StandDown);
    }
    Ok(run)
}

/// The open run of this id.
///
/// # Errors
/// `unknown_run`, or `run_finished` where it has ended.
pub(super) fn find<'s>(state: &'s State, run: RunId, cx: &Context<'_>) -> Result<&'s Run, Refusal> {
    match state.runs.get(&run) {
        Some(run) => Ok(run),
        None if cx.facts.run_finished => Err(Refusal::RunFinished),
        None => Err(Refusal::UnknownRun),
    }
}

/// Gives the lease back. A lease that is already gone is no fault: the caller wanted it gone.
///
/// # Errors
/// `wrong_phase` while a delivery or a decision is in flight under it.
pub(super) fn release(
    state: &State,
    run: RunId,
    token: LeaseToken,
    cx: &Context<'_>,
) -> Result<Decided, Refusal> {
    let Some(held) = state.runs.get(&run) else { return Ok(Decided::silent(Answer::Recorded)) };
    if !is_holder(held, token, cx) {
        return Ok(Decided::silent(Answer::Recorded));
    }
    let crossing_open =
        held.pause.is_none() && held.crossing.as_ref().is_some_and(|crossing| crossing.receipt.is_none());
    if crossing_open || held.decision_in_flight().is_some() {
        return Err(Refusal::WrongPhase);
    }
    Ok(Decided { events: vec![LeaseReleased { run, token }.into()], answer: Answer::Recorded })
}
