//! The story of a journal, as data: each record decoded, what the events of one run add up to, and whether each
//! recorded state is the one that folding gives. `replay` and `export` render it; it holds no rule.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use journal::own::{self, CutFinding, EpochReason, EpochStarted, TailCut};
use journal::{ReadError, Reader, Record, payload};
use protocol::decision::{Action, Disposition};
use protocol::digest::{Sha256Digest, StateDigest};
use protocol::event::{
    Author, Checkpoint, CheckpointKind, DecisionFinished, DecisionOutcome, Entry, Event, PAYLOAD_VERSION,
    RunFinished, StateRecorded,
};
use protocol::ids::{DecisionId, IdempotencyKey, InstanceId, RunId, Seq, StepId};
use protocol::refusal::RefusalCode;
use protocol::time::UnixMillis;
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::machine::{self, State};

use super::codec::{self, CodecError, FIRST_EVENT_KIND};

/// One record of the journal, decoded.
#[derive(Clone, Debug)]
pub enum Chapter {
    /// A fact about runs.
    Fact(Box<Entry>),
    /// The journal's own: a writer epoch began.
    EpochStarted(Box<Record>, EpochStarted),
    /// The journal's own: recovery cut bytes off.
    TailCut(Box<Record>, TailCut),
    /// An optional record of a newer opjournal, which may be passed over.
    Unknown(Box<Record>),
}

impl Chapter {
    /// Decodes a record.
    ///
    /// # Errors
    /// [`CodecError`] for a kind or version that is not known and not optional, and for a payload that does not decode.
    pub fn of(record: Record) -> Result<Self, CodecError> {
        if let Some(entry) = codec::entry(&record)? {
            return Ok(Self::Fact(Box::new(entry)));
        }
        let (seq, kind, version) = (record.seq.0, record.kind, record.version);
        let malformed = |_| CodecError::Malformed { seq, kind };
        match (kind, version) {
            (own::EPOCH_STARTED, own::VERSION) => {
                let started = payload::decode(&record.payload).map_err(malformed)?;
                Ok(Self::EpochStarted(Box::new(record), started))
            }
            (own::TAIL_CUT, own::VERSION) => {
                let cut = payload::decode(&record.payload).map_err(malformed)?;
                Ok(Self::TailCut(Box::new(record), cut))
            }
            // Above them `codec::entry` has told the optional kinds from the others already.
            _ if record.optional || kind >= FIRST_EVENT_KIND => Ok(Self::Unknown(Box::new(record))),
            _ => Err(CodecError::Unknown { seq, kind, version }),
        }
    }

    /// Position.
    #[must_use]
    pub fn seq(&self) -> Seq {
        match self {
            Self::Fact(entry) => entry.seq,
            Self::EpochStarted(record, _) | Self::TailCut(record, _) | Self::Unknown(record) => record.seq,
        }
    }

    /// Producer's wall clock.
    #[must_use]
    pub fn time(&self) -> UnixMillis {
        match self {
            Self::Fact(entry) => entry.time,
            Self::EpochStarted(record, _) | Self::TailCut(record, _) | Self::Unknown(record) => record.time,
        }
    }

    /// Producing process.
    #[must_use]
    pub fn producer(&self) -> InstanceId {
        match self {
            Self::Fact(entry) => entry.producer,
            Self::EpochStarted(record, _) | Self::TailCut(record, _) | Self::Unknown(record) => {
                record.producer
            }
        }
    }

    /// Kind number and version.
    #[must_use]
    pub fn kind(&self) -> (u16, u8) {
        match self {
            Self::Fact(entry) => (entry.event.kind(), PAYLOAD_VERSION),
            Self::EpochStarted(record, _) | Self::TailCut(record, _) | Self::Unknown(record) => {
                (record.kind, record.version)
            }
        }
    }

    /// Stable name of the kind, if it is known.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        match self {
            Self::Fact(entry) => Some(entry.event.name()),
            Self::EpochStarted(..) => Some("epoch_started"),
            Self::TailCut(..) => Some("tail_cut"),
            Self::Unknown(_) => None,
        }
    }

    /// The run that it is about, if it is about one.
    #[must_use]
    pub fn run(&self) -> Option<RunId> {
        match self {
            Self::Fact(entry) => run_of(&entry.event),
            Self::EpochStarted(..) | Self::TailCut(..) | Self::Unknown(_) => None,
        }
    }
}

/// The schema of the lines that `replay --json` and `export --jsonl` share. EVENTS.md, "JSON lines".
impl Serialize for Chapter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, version) = self.kind();
        let mut line = serializer.serialize_struct("Chapter", 8)?;
        line.serialize_field("seq", &self.seq())?;
        line.serialize_field("time_ms", &self.time())?;
        line.serialize_field("producer", &self.producer())?;
        line.serialize_field("kind", &kind)?;
        line.serialize_field("name", &self.name())?;
        line.serialize_field("version", &version)?;
        match self {
            Self::Fact(entry) => line.serialize_field("fields", &Fields(&entry.event))?,
            Self::EpochStarted(_, started) => {
                let fields = EpochFields { epoch: started.epoch.0, reason: epoch_reason(started.reason) };
                line.serialize_field("fields", &fields)?;
            }
            Self::TailCut(_, cut) => {
                let TailCut { segment, offset, bytes, finding } = *cut;
                let finding = cut_finding(finding);
                line.serialize_field("fields", &CutFields { segment, offset, bytes, finding })?;
            }
            Self::Unknown(record) => {
                line.serialize_field("fields", &())?;
                let hex: String = record.payload.iter().map(|byte| format!("{byte:02x}")).collect();
                line.serialize_field("payload", &hex)?;
            }
        }
        line.end()
    }
}

/// The members of an event without its name, in their stored order.
struct Fields<'a>(&'a Event);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize_payload(serializer)
    }
}

#[derive(Serialize)]
struct EpochFields {
    epoch: u64,
    reason: &'static str,
}

#[derive(Serialize)]
struct CutFields {
    segment: u32,
    offset: u64,
    bytes: u64,
    finding: &'static str,
}

/// The text of FORMAT.md for the reason of an epoch.
#[must_use]
pub const fn epoch_reason(reason: EpochReason) -> &'static str {
    match reason {
        EpochReason::Created => "created",
        EpochReason::DirtyMark => "dirty_mark",
        EpochReason::MarkMissing => "mark_missing",
        EpochReason::MarkUnreadable => "mark_unreadable",
        EpochReason::OtherBoot => "other_boot",
    }
}

/// The text of FORMAT.md for what recovery took cut bytes for.
#[must_use]
pub const fn cut_finding(finding: CutFinding) -> &'static str {
    match finding {
        CutFinding::Torn => "torn",
        CutFinding::Unprovable => "unprovable",
        CutFinding::Stray => "stray",
    }
}

/// A checkpoint in the lineage of its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where the journal holds it.
    pub seq: Seq,
    /// The step.
    pub step: StepId,
    /// Its index, from 0.
    pub index: u32,
    /// Who did it.
    pub kind: CheckpointKind,
    /// The digest that it names as the one before.
    pub parent: Option<Sha256Digest>,
    /// Its own digest, recomputed.
    pub digest: Sha256Digest,
    /// Whether `parent` is the recomputed digest of the checkpoint before.
    pub continues: bool,
    /// The decision behind it.
    pub decision: Option<DecisionId>,
}

/// A decision from its admission to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// Where the journal holds its admission.
    pub seq: Seq,
    /// Its id.
    pub decision: DecisionId,
    /// The caller's key.
    pub key: IdempotencyKey,
    /// The capability that was presented.
    pub capability: Sha256Digest,
    /// The action.
    pub action: Action,
    /// The disposition as given.
    pub disposition: Option<Disposition>,
    /// Who decided.
    pub author: Author,
    /// How it ended, if it has.
    pub end: Option<End>,
}

/// How a decision ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Where the journal holds it.
    pub seq: Seq,
    /// How.
    pub outcome: DecisionOutcome,
    /// The code of a refusal that the live state caused.
    pub refusal: Option<RefusalCode>,
    /// The reconcile that settled it, if it was another decision.
    pub settled_by: Option<DecisionId>,
}

/// What the events of one run add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunStory {
    /// Its checkpoints, in order.
    pub lineage: Vec<Link>,
    /// Its decisions, in the order of their admission.
    pub decisions: Vec<Decided>,
    /// How it ended, if it has.
    pub finished: Option<RunFinished>,
}

impl RunStory {
    fn note(&mut self, entry: &Entry) {
        match &entry.event {
            Event::Checkpoint(checkpoint) => self.commit(entry.seq, checkpoint),
            Event::DecisionRecorded(fact) => self.decisions.push(Decided {
                seq: entry.seq,
                decision: fact.decision,
                key: fact.key.clone(),
                capability: fact.capability,
                action: fact.action,
                disposition: fact.disposition,
                author: fact.author.clone(),
                // Teach, escalate and reject are terminal as they are admitted.
                end: Some(End {
                    seq: entry.seq,
                    outcome: DecisionOutcome::Completed,
                    refusal: None,
                    settled_by: None,
                }),
            }),
            Event::DecisionPrepared(fact) => self.decisions.push(Decided {
                seq: entry.seq,
                decision: fact.decision,
                key: fact.key.clone(),
                capability: fact.capability,
                action: fact.action,
                disposition: fact.disposition,
                author: fact.author.clone(),
                end: None,
            }),
            Event::DecisionFinished(fact) => self.end(entry.seq, fact),
            Event::RunFinished(fact) => self.finished = Some(fact.clone()),
            Event::RunAdmitted(_)
            | Event::LeaseGranted(_)
            | Event::LeaseReleased(_)
            | Event::StepIntent(_)
            | Event::StepReceipt(_)
            | Event::PauseOpened(_)
            | Event::CapabilityIssued(_)
            | Event::PauseExpired(_)
            | Event::PauseClosed(_)
            | Event::DecisionStarted(_)
            | Event::DeliveryUncertain(_)
            | Event::DeliverySettled(_)
            | Event::CancelRequested(_)
            | Event::StandDownRequested(_)
            | Event::RefusalRecorded(_)
            | Event::RefusalsCounted(_)
            | Event::StateRecorded(_)
            | Event::KeyRegistered(_) => {}
        }
    }

    fn commit(&mut self, seq: Seq, checkpoint: &Checkpoint) {
        self.lineage.push(Link {
            seq,
            step: checkpoint.step.id.clone(),
            index: checkpoint.step.index,
            kind: checkpoint.kind,
            parent: checkpoint.parent,
            digest: checkpoint.digest(),
            continues: checkpoint.parent == self.lineage.last().map(|link| link.digest),
            decision: checkpoint.decision,
        });
    }

    fn end(&mut self, seq: Seq, fact: &DecisionFinished) {
        if let Some(decided) = self.decisions.iter_mut().find(|decided| decided.decision == fact.decision) {
            let DecisionFinished { outcome, refusal, settled_by, .. } = *fact;
            decided.end = Some(End { seq, outcome, refusal, settled_by });
        }
    }

    /// The decision of this id.
    #[must_use]
    pub fn decision(&self, id: DecisionId) -> Option<&Decided> {
        self.decisions.iter().find(|decided| decided.decision == id)
    }
}

/// Follows the runs of a journal. Holds open runs only, so that memory does not grow with what has ended.
#[derive(Clone, Debug, Default)]
pub struct RunStories {
    open: BTreeMap<RunId, RunStory>,
}

impl RunStories {
    /// Takes note of an event; gives the story of the run that it ended, if it ended one.
    pub fn note(&mut self, entry: &Entry) -> Option<(RunId, RunStory)> {
        let run = run_of(&entry.event)?;
        if let Event::RunAdmitted(_) = &entry.event {
            self.open.insert(run, RunStory::default());
        }
        let story = self.open.get_mut(&run)?;
        story.note(entry);
        if story.finished.is_some() { self.open.remove(&run).map(|story| (run, story)) } else { None }
    }

    /// The runs that have not ended, in order of their ids.
    #[must_use]
    pub fn into_open(self) -> BTreeMap<RunId, RunStory> {
        self.open
    }
}

/// How the recorded states compare with the folded ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Records read, the journal's own among them.
    pub records: u64,
    /// Events folded.
    pub events: u64,
    /// Recorded states that were compared.
    pub compared: u64,
    /// Recorded states that speak of an earlier position: another process wrote between the digest and its record.
    pub passed_over: u64,
    /// The last recorded state that agreed before the first that did not.
    pub last_equal: Option<Seq>,
    /// The first recorded state that did not agree.
    pub first_different: Option<Difference>,
    /// Digest of the state after the last record that was read.
    pub end: Option<StateDigest>,
    /// Position after the last record that was read.
    pub next: Seq,
}

/// A recorded state that is not the folded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The record that holds it.
    pub seq: Seq,
    /// What it says.
    pub recorded: StateDigest,
    /// What folding gives.
    pub recomputed: StateDigest,
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

/// A story that ended early, and what was compared until then.
#[derive(Debug)]
pub struct Stopped {
    /// As far as it went.
    pub replayed: Replayed,
    /// Why it goes no further.
    pub error: StoryError,
}

/// Folds the whole journal again from its beginning and hands each record to `tell`, which may break off.
///
/// # Errors
/// [`Stopped`]; what was told before stands.
pub fn replay(
    reader: &Reader,
    tell: &mut dyn FnMut(&Chapter, &State) -> ControlFlow<()>,
) -> Result<Replayed, Box<Stopped>> {
    let mut replayed = Replayed::default();
    let mut state = State::default();
    let folded = fold(reader, &mut replayed, &mut state, tell);
    replayed.end = Some(state.digest());
    match folded {
        Ok(()) => Ok(replayed),
        Err(error) => Err(Box::new(Stopped { replayed, error })),
    }
}

fn fold(
    reader: &Reader,
    replayed: &mut Replayed,
    state: &mut State,
    tell: &mut dyn FnMut(&Chapter, &State) -> ControlFlow<()>,
) -> Result<(), StoryError> {
    for record in reader.from(Seq(0))? {
        let chapter = Chapter::of(record?)?;
        replayed.records += 1;
        replayed.next = chapter.seq().next();
        if let Chapter::Fact(entry) = &chapter {
            if let Event::StateRecorded(recorded) = &entry.event {
                compare(replayed, state, entry.seq, recorded);
            }
            machine::apply(state, entry);
            replayed.events += 1;
        }
        if tell(&chapter, state).is_break() {
            break;
        }
    }
    Ok(())
}

fn compare(replayed: &mut Replayed, state: &State, seq: Seq, recorded: &StateRecorded) {
    if recorded.through.next() != state.next {
        replayed.passed_over += 1;
        return;
    }
    let recomputed = state.digest();
    replayed.compared += 1;
    if replayed.first_different.is_some() {
        return;
    }
    if recomputed == recorded.digest {
        replayed.last_equal = Some(seq);
    } else {
        replayed.first_different = Some(Difference { seq, recorded: recorded.digest, recomputed });
    }
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

/// Who is behind an event, where a person or program asked for it; else it is the engine's own.
#[must_use]
pub fn author_of(event: &Event) -> Option<&Author> {
    match event {
        Event::RunAdmitted(fact) => Some(&fact.author),
        Event::PauseClosed(fact) => Some(&fact.author),
        Event::DecisionRecorded(fact) => Some(&fact.author),
        Event::DecisionPrepared(fact) => Some(&fact.author),
        Event::CancelRequested(fact) => Some(&fact.author),
        Event::RefusalRecorded(fact) => fact.author.as_ref(),
        Event::LeaseGranted(_)
        | Event::LeaseReleased(_)
        | Event::StepIntent(_)
        | Event::StepReceipt(_)
        | Event::Checkpoint(_)
        | Event::PauseOpened(_)
        | Event::CapabilityIssued(_)
        | Event::PauseExpired(_)
        | Event::DecisionStarted(_)
        | Event::DecisionFinished(_)
        | Event::DeliveryUncertain(_)
        | Event::DeliverySettled(_)
        | Event::StandDownRequested(_)
        | Event::RunFinished(_)
        | Event::RefusalsCounted(_)
        | Event::StateRecorded(_)
        | Event::KeyRegistered(_) => None,
    }
}
