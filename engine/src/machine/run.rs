//! Runs: admission, acquisition, cancellation and end. Source: DESIGN §4.1, RULINGS 20.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec;

use protocol::bundle::Profile;
use protocol::command::StartRun;
use protocol::cursor::Cursor;
use protocol::digest::StateDigest;
use protocol::event::{Author, CancelRequested, PauseClosed, PauseExpired, RunAdmitted, RunFinished};
use protocol::ids::RunId;
use protocol::outcome::RunOutcome;
use protocol::pause::{Reason, Resolution};
use protocol::refusal::Refusal;
use protocol::time::{Millis, UnixMillis};

use super::context::Context;
use super::outcome::{self, Ending};
use super::state::{Run, State};
use super::work::Work;
use super::{Answer, Decided, capability, lease, lineage, pause, step};

/// Admits a run, or answers a repeated request with the run it started. The same request id never runs twice.
pub(super) fn start(state: &State, request: &StartRun, cx: &Context<'_>) -> Result<Decided, Refusal> {
    if let Some(recorded) = &cx.facts.request {
        let same = recorded.presented.is_none_or(|presented| presented == recorded.recorded);
        return if same {
            Ok(Decided::silent(Answer::Started { run: recorded.run, replayed: true }))
        } else {
            Err(Refusal::RequestIdConflict)
        };
    }
    // The service answers a known request id from what is recorded under it. An open run of that name which it did not
    // see was admitted in between; another run under the same name must not start.
    if request.request.as_ref().is_some_and(|id| state.requests.contains_key(id)) {
        return Err(Refusal::Busy);
    }
    match request.profile {
        Profile::Demo => {}
        Profile::Standard | Profile::Regulated => return Err(Refusal::NotAdmitted),
    }
    if cx.key.is_none() {
        return Err(Refusal::KeyMissing);
    }
    step::check_space(state, 0, cx)?;
    let admitted = RunAdmitted {
        run: cx.fresh.run,
        workflow: request.workflow.clone(),
        bundle: request.bundle,
        profile: request.profile,
        parameters: request.parameters,
        policy: request.policy,
        steps: request.steps,
        effects: request.effects,
        settle: request.settle,
        request: request.request.clone(),
        request_digest: request.request_digest,
        author: request.author.clone(),
    };
    Ok(Decided {
        events: vec![admitted.into()],
        answer: Answer::Started { run: cx.fresh.run, replayed: false },
    })
}

/// Folds an admission.
pub(super) fn admit(state: &mut State, admitted: &RunAdmitted, at: UnixMillis) {
    if let Some(request) = &admitted.request {
        state.requests.insert(request.clone(), admitted.run);
    }
    state.runs.insert(
        admitted.run,
        Run {
            admitted: admitted.clone(),
            admitted_at: at,
            cursor: Cursor::start(),
            lineage: vec![],
            crossing: None,
            pause: None,
            lease: None,
            decisions: BTreeMap::new(),
            cancel: None,
            stand_down: None,
            capabilities: 0,
            deliveries: 0,
        },
    );
}

/// Folds the end of a run: it leaves the open work, and its last state goes into the running hash.
pub(super) fn retire(state: &mut State, finished: &RunFinished) {
    let Some(run) = state.runs.remove(&finished.run) else { return };
    if let Some(request) = &run.admitted.request {
        state.requests.remove(request);
    }
    if let Some(pause) = &run.pause {
        state.attention.remove(&pause.opened.attention);
    }
    for key in run.decisions.keys() {
        state.keys.remove(key);
    }
    let last = protocol::canonical_json::bytes_of(&(state.retired.hash, &run, finished));
    state.retired.hash = Some(StateDigest(*blake3::hash(&last).as_bytes()));
    state.retired.runs = state.retired.runs.saturating_add(1);
}

/// Takes the run's lease, over from a lost holder where there is one. What the loss means for the run is recorded first.
///
/// With `recheck`, a pause that may be checked again is closed. A run that waits for a person answers
/// [`Answer::Paused`]; a canceled run ends here.
///
/// # Errors
/// `unknown_run`, `run_finished`, `busy` while another holder lives and its grant runs, `state_diverged` where the
/// checkpoints do not prove their lineage, or `disk_full`.
pub(super) fn acquire(
    state: &State,
    run: RunId,
    limit: Millis,
    recheck: bool,
    author: &Author,
    cx: &Context<'_>,
) -> Result<Decided, Refusal> {
    let run = lease::find(state, run, cx)?;
    if lease::is_held(run, cx, state) {
        return Err(Refusal::Busy);
    }
    let mut work = Work::on(run, cx);
    lease::settle_lost_holder(&mut work);
    if let Some(outcome) = end_if_canceled(&mut work) {
        return Ok(Decided { events: work.events, answer: Answer::Finished { outcome } });
    }
    if let Some(open) = work.run.pause.clone() {
        let expired = pause::has_expired(&open, cx, state);
        if expired && !open.expired {
            work.push(PauseExpired { run: run.id(), pause: open.opened.pause });
        }
        if !recheck || !pause::may_be_rechecked(&work.run, &open, expired) {
            capability::issue_if_none(&mut work);
            let attention = open.opened.attention;
            return Ok(Decided { events: work.events, answer: Answer::Paused { attention } });
        }
        work.push(PauseClosed {
            run: run.id(),
            pause: open.opened.pause,
            resolution: Resolution::Rechecked,
            author: author.clone(),
        });
    }
    if !lineage::is_proven(&work.run) {
        return Err(Refusal::StateDiverged);
    }
    if let Some(Answer::Finished { outcome }) = step::finish_at_end(&mut work) {
        return Ok(Decided { events: work.events, answer: Answer::Finished { outcome } });
    }
    // An open crossing has its space reserved, and taking over from its lost holder is part of its outcome.
    if work.run.crossing.is_none() {
        step::check_space(state, 0, cx)?;
    }
    let token = lease::grant(&mut work, limit);
    let answer = Answer::Leased { token, run: Box::new(work.run) };
    Ok(Decided { events: work.events, answer })
}

/// Ends a run before its next delivery. A delivery that may have happened is never rewritten: the request is recorded,
/// and the run ends once that is settled. A live holder sees the request at its next step.
pub(super) fn cancel(
    state: &State,
    run: RunId,
    author: &Author,
    cx: &Context<'_>,
) -> Result<Decided, Refusal> {
    let run = lease::find(state, run, cx)?;
    let held = lease::is_held(run, cx, state);
    let mut work = Work::on(run, cx);
    if run.cancel.is_none() {
        work.push(CancelRequested { run: run.id(), author: author.clone() });
    }
    if held {
        return Ok(Decided { events: work.events, answer: Answer::Recorded });
    }
    lease::settle_lost_holder(&mut work);
    let answer = match end_if_canceled(&mut work) {
        Some(outcome) => Answer::Finished { outcome },
        None => match &work.run.pause {
            Some(open) => Answer::Paused { attention: open.opened.attention.clone() },
            None => Answer::Recorded,
        },
    };
    Ok(Decided { events: work.events, answer })
}

/// Ends a run whose end was asked for, unless its step's delivery may have happened: that is never rewritten. Called at
/// every point where the run would otherwise wait or go on to its next delivery.
pub(super) fn end_if_canceled(work: &mut Work<'_, '_>) -> Option<RunOutcome> {
    let author = work.run.cancel.clone()?;
    if work.run.delivery_state().may_have_happened() {
        return None;
    }
    if let Some(open) = work.run.pause.clone() {
        work.push(PauseClosed {
            run: work.run.id(),
            pause: open.opened.pause,
            resolution: Resolution::Canceled,
            author,
        });
    }
    Some(outcome::finish(work, Ending::Canceled, Reason::Canceled))
}
