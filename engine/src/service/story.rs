//! The story of a journal, as data: every event with its time, actor and meaning, and whether each recorded state is
//! the one that folding gives. `replay` renders it; it holds no rule.

use journal::{ReadError, Reader, Record};
use protocol::digest::StateDigest;
use protocol::event::{Entry, Event};
use protocol::ids::{RunId, Seq};

use crate::machine::{self, State};

use super::codec::{self, CodecError};

/// One line of the story.
#[derive(Clone, Debug)]
pub enum Chapter {
    /// A fact about runs.
    Fact(Box<Entry>),
    /// A record of the journal's own: an epoch, a cut.
    Journal(Box<Record>),
}

/// How the recorded states compare with the folded ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Events folded.
    pub events: u64,
    /// Recorded states that were compared.
    pub compared: u64,
    /// The last recorded state that agreed.
    pub last_equal: Option<Seq>,
    /// The first recorded state that did not: position of the record, what it says, and what folding gives.
    pub first_different: Option<(Seq, StateDigest, StateDigest)>,
    /// Digest of the state at the end.
    pub end: Option<StateDigest>,
    /// Position after the last record.
    pub next: Seq,
}

/// Why a story ends early.
#[derive(Debug, thiserror::Error)]
pub enum StoryError {
    /// The journal cannot be read on from here.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// A record is not understood.
    #[error("{0}")]
    Codec(#[from] CodecError),
}

/// Folds the whole journal again from its beginning and hands each line to `tell`.
///
/// # Errors
/// [`StoryError`]; what was told before stands.
pub fn replay(
    reader: &Reader,
    tell: &mut dyn FnMut(&Chapter, &State),
) -> Result<Replayed, (Replayed, StoryError)> {
    let mut replayed = Replayed::default();
    let mut state = State::default();
    match fold(reader, &mut replayed, &mut state, tell) {
        Ok(()) => {
            replayed.end = Some(state.digest());
            Ok(replayed)
        }
        Err(error) => Err((replayed, error)),
    }
}

fn fold(
    reader: &Reader,
    replayed: &mut Replayed,
    state: &mut State,
    tell: &mut dyn FnMut(&Chapter, &State),
) -> Result<(), StoryError> {
    for record in reader.from(Seq(0))? {
        let record = record?;
        replayed.next = record.seq.next();
        let Some(entry) = codec::entry(&record)? else {
            tell(&Chapter::Journal(Box::new(record)), state);
            continue;
        };
        if let Event::StateRecorded(recorded) = &entry.event {
            // Compared only where nothing came between: another process may have written since the digest was taken.
            if recorded.through.next() == state.next {
                let folded = state.digest();
                replayed.compared += 1;
                if folded == recorded.digest {
                    replayed.last_equal = Some(entry.seq);
                } else if replayed.first_different.is_none() {
                    replayed.first_different = Some((entry.seq, recorded.digest, folded));
                }
            }
        }
        machine::apply(state, &entry);
        replayed.events += 1;
        tell(&Chapter::Fact(Box::new(entry)), state);
    }
    Ok(())
}

/// The run that an event is about, if it is about one.
#[must_use]
pub fn run_of(event: &Event) -> Option<RunId> {
    match event {
        Event::RunAdmitted(fact) => Some(fact.run),
        Event::LeaseGranted(fact) => Some(fact.run),
        Event::LeaseReleased(fact) => Some(fact.run),
        Event::StepIntent(fact) => Some(fact.run),
        Event::StepReceipt(fact) => Some(fact.run),
        Event::Checkpoint(fact) => Some(fact.run),
        Event::PauseOpened(fact) => Some(fact.run),
        Event::CapabilityIssued(fact) => Some(fact.run),
        Event::PauseExpired(fact) => Some(fact.run),
        Event::PauseClosed(fact) => Some(fact.run),
        Event::DecisionRecorded(fact) => Some(fact.run),
        Event::DecisionPrepared(fact) => Some(fact.run),
        Event::DecisionStarted(fact) => Some(fact.run),
        Event::DecisionFinished(fact) => Some(fact.run),
        Event::DeliveryUncertain(fact) => Some(fact.run),
        Event::DeliverySettled(fact) => Some(fact.run),
        Event::CancelRequested(fact) => Some(fact.run),
        Event::StandDownRequested(fact) => Some(fact.run),
        Event::RunFinished(fact) => Some(fact.run),
        Event::RefusalRecorded(fact) => fact.run,
        Event::RefusalsCounted(_) | Event::StateRecorded(_) | Event::KeyRegistered(_) => None,
    }
}
