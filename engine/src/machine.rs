//! The state machine: pure, total and deterministic. `decide` says what a command means; `apply` folds a fact.
//!
//! This file dispatches and holds no rule of its own. Each rule lives in the file of its subject. Nothing here reads a
//! clock, draws a random number, touches a file, takes a lock or starts a thread: built without the `service` feature
//! the crate is `no_std`, which proves most of that.

pub mod capability;
pub mod context;
pub mod decision;
pub mod lease;
pub mod lineage;
pub mod outcome;
pub mod pause;
pub mod run;
pub mod settlement;
pub mod state;
pub mod step;
mod work;

use alloc::vec::Vec;

use protocol::command::Command;
use protocol::digest::Sha256Digest;
use protocol::event::{Entry, Event, KeyRegistered, RefusalRecorded, StateRecorded};
use protocol::ids::{AttentionId, DeliveryId, LeaseToken, RunId};
use protocol::outcome::RunOutcome;
use protocol::refusal::Refusal;

pub use context::{Context, Facts, FreshIds, LiveFacts, MachineLimits, RecordedAttention, RecordedRequest};
pub use state::{Decision, Phase, Run, State};

/// What a command means: the facts to journal, and what to tell the caller once they are durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// To be appended as one block, in this order.
    pub events: Vec<Event>,
    /// For the caller.
    pub answer: Answer,
}

/// What the caller is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Recorded; nothing more to say.
    Recorded,
    /// A run was admitted, or the same request was made before.
    Started {
        /// The run.
        run: RunId,
        /// Whether the request is a repetition.
        replayed: bool,
    },
    /// The lease is yours.
    Leased {
        /// Its token.
        token: LeaseToken,
        /// The run as it stands under the lease.
        run: alloc::boxed::Box<Run>,
    },
    /// The run waits for a person.
    Paused {
        /// The open item.
        attention: AttentionId,
    },
    /// Cross the boundary now.
    Deliver {
        /// This crossing.
        delivery: DeliveryId,
    },
    /// The step is committed.
    Committed {
        /// The checkpoint's digest.
        checkpoint: Sha256Digest,
    },
    /// The run ended.
    Finished {
        /// What became of it.
        outcome: RunOutcome,
    },
    /// Carry the decision out under this lease.
    CarryOut {
        /// The lease.
        token: LeaseToken,
        /// The decision.
        decision: Decision,
        /// The run as it stands under the lease.
        run: alloc::boxed::Box<Run>,
    },
    /// The decision as recorded.
    Decided {
        /// The decision.
        decision: Decision,
        /// Whether this repeats an earlier answer.
        replayed: bool,
        /// The lease, where the run goes on under it.
        token: Option<LeaseToken>,
    },
    /// Refused, after recording what came to light.
    Refused(Refusal),
}

impl Decided {
    /// An answer that records nothing.
    #[must_use]
    pub const fn silent(answer: Answer) -> Self {
        Self { events: Vec::new(), answer }
    }
}

/// Says what `command` means in `state`. Changes nothing; equal arguments give equal answers, for ever.
///
/// # Errors
/// The refusal that the rules give. A refusal that must also record something comes as [`Answer::Refused`].
pub fn decide(state: &State, command: &Command, cx: &Context<'_>) -> Result<Decided, Refusal> {
    match command {
        Command::StartRun(request) => run::start(state, request, cx),
        Command::Cancel { run, author } => run::cancel(state, *run, author, cx),
        Command::Acquire { run, limit, recheck, author } => {
            run::acquire(state, *run, *limit, *recheck, author, cx)
        }
        Command::Release { run, token } => lease::release(state, *run, *token, cx),
        Command::BeginStep { run, token, step, action } => {
            step::begin(state, *run, *token, step, *action, cx)
        }
        Command::RecordReceipt { run, token, delivery, outcome, reason, evidence, seen } => {
            step::record_receipt(
                state,
                *run,
                *token,
                *delivery,
                &step::Receipt { outcome: *outcome, reason: *reason, evidence: *evidence, seen },
                cx,
            )
        }
        Command::CommitStep { run, token, step, kind, verified } => {
            step::commit(state, *run, *token, step, *kind, verified, cx)
        }
        Command::Stop { run, token, step, finding } => step::stop(state, *run, *token, step, finding, cx),
        Command::Decide { request, author, may_preempt } => {
            decision::decide(state, request, author, *may_preempt, cx)
        }
        Command::FinishDecision { run, token, decision, finding } => {
            settlement::finish(state, *run, *token, *decision, finding, cx)
        }
        Command::LoseDecision { run, token, decision } => {
            settlement::lose(state, *run, *token, *decision, cx)
        }
        Command::RegisterKey { key } => Ok(if state.capability_keys.contains(key) {
            Decided::silent(Answer::Recorded)
        } else {
            Decided { events: alloc::vec![KeyRegistered { key: *key }.into()], answer: Answer::Recorded }
        }),
        Command::RecordState { through, digest, snapshot } => Ok(Decided {
            events: alloc::vec![
                StateRecorded { through: *through, digest: *digest, snapshot: *snapshot }.into()
            ],
            answer: Answer::Recorded,
        }),
    }
}

/// As [`decide`], with the audit record of a refusal: every refused decision, and every write by a fenced holder, is
/// itself a fact. Refusals of malformed and unknown requests are counted by the service instead; without room for the record the
/// refusal is answered all the same (RULINGS 7 and 16).
#[must_use]
pub fn decide_audited(state: &State, command: &Command, cx: &Context<'_>) -> Decided {
    let mut decided = match decide(state, command, cx) {
        Ok(decided) => decided,
        Err(refusal) => Decided::silent(Answer::Refused(refusal)),
    };
    if let Answer::Refused(refusal) = &decided.answer
        && step::check_space(state, 0, cx).is_ok()
        && let Some(record) = refusal_record(state, command, refusal)
    {
        decided.events.push(record.into());
    }
    decided
}

fn refusal_record(state: &State, command: &Command, refusal: &Refusal) -> Option<RefusalRecorded> {
    match command {
        Command::Decide { request, author, .. } => {
            let open = state.pause(&request.attention_id);
            let counted = matches!(refusal, Refusal::InvalidRequest | Refusal::UnknownAttention);
            (!counted).then(|| RefusalRecorded {
                code: refusal.code(),
                run: open.map(|(run, _)| run.id()),
                pause: open.map(|(_, pause)| pause.opened.pause),
                action: Some(request.action),
                author: Some(author.clone()),
            })
        }
        Command::BeginStep { run, .. }
        | Command::RecordReceipt { run, .. }
        | Command::CommitStep { run, .. }
        | Command::Stop { run, .. }
        | Command::FinishDecision { run, .. }
        | Command::LoseDecision { run, .. }
        | Command::Release { run, .. } => matches!(refusal, Refusal::Fenced { .. } | Refusal::StandDown)
            .then(|| RefusalRecorded {
                code: refusal.code(),
                run: Some(*run),
                pause: None,
                action: None,
                author: None,
            }),
        Command::StartRun(_)
        | Command::Cancel { .. }
        | Command::Acquire { .. }
        | Command::RegisterKey { .. }
        | Command::RecordState { .. } => None,
    }
}

/// Folds one journalled fact into `state`. Total: it cannot fail on a journal that verifies.
pub fn apply(state: &mut State, entry: &Entry) {
    state.next = entry.seq.next();
    // A record of the state is not part of it: folding one leaves the digest that it names.
    if !matches!(entry.event, Event::StateRecorded(_)) {
        state.latest_wall = state.latest_wall.max(entry.time);
    }
    match &entry.event {
        Event::RunAdmitted(admitted) => run::admit(state, admitted, entry.time),
        Event::KeyRegistered(registered) => {
            state.capability_keys.insert(registered.key);
        }
        Event::RefusalRecorded(_) | Event::RefusalsCounted(_) | Event::StateRecorded(_) => {}
        Event::RunFinished(finished) => run::retire(state, finished),
        Event::LeaseGranted(granted) => on_run(state, granted.run, entry),
        Event::LeaseReleased(released) => on_run(state, released.run, entry),
        Event::StepIntent(intent) => on_run(state, intent.run, entry),
        Event::StepReceipt(receipt) => on_run(state, receipt.run, entry),
        Event::Checkpoint(checkpoint) => on_run(state, checkpoint.run, entry),
        Event::PauseOpened(opened) => {
            state.attention.insert(opened.attention.clone(), opened.run);
            on_run(state, opened.run, entry);
        }
        Event::CapabilityIssued(issued) => on_run(state, issued.run, entry),
        Event::PauseExpired(expired) => on_run(state, expired.run, entry),
        Event::PauseClosed(closed) => {
            if let Some(pause) = state.runs.get(&closed.run).and_then(|run| run.pause.as_ref()) {
                state.attention.remove(&pause.opened.attention);
            }
            on_run(state, closed.run, entry);
        }
        Event::DecisionRecorded(recorded) => {
            state.keys.insert(recorded.key.clone(), recorded.run);
            on_run(state, recorded.run, entry);
        }
        Event::DecisionPrepared(prepared) => {
            state.keys.insert(prepared.key.clone(), prepared.run);
            on_run(state, prepared.run, entry);
        }
        Event::DecisionStarted(started) => on_run(state, started.run, entry),
        Event::DecisionFinished(finished) => on_run(state, finished.run, entry),
        Event::DeliveryUncertain(uncertain) => on_run(state, uncertain.run, entry),
        Event::DeliverySettled(settled) => on_run(state, settled.run, entry),
        Event::CancelRequested(requested) => on_run(state, requested.run, entry),
        Event::StandDownRequested(requested) => on_run(state, requested.run, entry),
    }
}

fn on_run(state: &mut State, run: RunId, entry: &Entry) {
    if let Some(run) = state.runs.get_mut(&run) {
        work::apply(run, entry);
    }
}

#[cfg(test)]
mod tests;
