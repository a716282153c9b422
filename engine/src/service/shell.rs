//! The machine as the journal's writer thread drives it: the loop's middle part, *decide → append → apply*, under the
//! commit lock. It gathers the context that `decide` asks for and turns events into records.

use std::collections::BTreeSet;
use std::sync::Arc;

use journal::{Commit, Draft, Machine, Record, UnknownRecord};
use protocol::capability::CapabilityKey;
use protocol::command::Command;
use protocol::event::{Entry, Event, RefusalsCounted, RunAdmitted};
use protocol::ids::{
    AttentionId, DecisionId, DeliveryId, IdempotencyKey, InstanceId, JournalId, PauseId, RunId, Seq,
};
use protocol::pause::Reason;
use protocol::refusal::Refusal;
use protocol::time::{Millis, UnixMillis};

use crate::machine::{
    self, Answer, Context, Decision, Facts, FreshIds, LiveFacts, MachineLimits, RecordedAttention,
    RecordedRequest, State,
};

use super::codec;
use super::home::{Home, protected_digest};
use super::ports::{Clock, Ids};

/// One command for the writer thread, with what its caller read beforehand.
pub(super) struct Request {
    pub(super) command: Command,
    /// Read just now by the caller, for the command's run.
    pub(super) live: LiveFacts,
    /// For a start: the canonical request, compared under the salt of a run that was started under the same id.
    /// Protected; stays in memory.
    pub(super) content: Option<Vec<u8>>,
    /// For a start: the id under which the caller has stored the run's inputs.
    pub(super) run: Option<RunId>,
}

/// The machine, its state and what it needs to build a context.
pub(super) struct Shell {
    pub(super) state: State,
    pub(super) journal: JournalId,
    pub(super) instance: InstanceId,
    pub(super) key: Option<CapabilityKey>,
    pub(super) home: Home,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn Ids>,
    pub(super) limits: MachineLimits,
    pub(super) counted: Counted,
    /// Events folded since the last recorded state.
    pub(super) since_recorded: u64,
    /// Events folded since the last recorded state that has a snapshot.
    pub(super) since_snapshot: u64,
    /// Whether this process has removed the liveness files of the dead.
    pub(super) reaped: bool,
}

/// Refusals of malformed and unknown requests, held back for one record a minute. Source: RULINGS 16.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    count: u64,
    since: UnixMillis,
}

/// Zero space that is wanted beside the promised outcomes: a large step's own promise and its block.
const NEW_WORK_ROOM: u64 = 128 * 1024;

/// Space that a block of ordinary records may take.
const ORDINARY_BLOCK_BYTES: u64 = 4096;

const COUNTED_EVERY: Millis = Millis::from_secs(60);

impl Counted {
    fn add(&mut self, now: UnixMillis) {
        if self.count == 0 {
            self.since = now;
        }
        self.count = self.count.saturating_add(1);
    }

    /// Whether a record is held back.
    pub(super) const fn pending(&self) -> bool {
        self.count > 0
    }

    /// The record that is due, if one is.
    pub(super) fn take(&mut self, now: UnixMillis, closing: bool) -> Option<Event> {
        let due = self.count > 0 && (closing || now.0.saturating_sub(self.since.0) >= COUNTED_EVERY.0);
        due.then(|| {
            let record = RefusalsCounted { count: self.count, since: self.since };
            *self = Self::default();
            record.into()
        })
    }
}

impl Machine for Shell {
    type Command = Request;
    type Answer = Answer;

    fn apply(&mut self, record: &Record) -> Result<(), UnknownRecord> {
        match codec::entry(record) {
            Ok(Some(entry)) => {
                self.fold(&entry);
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(_) => Err(UnknownRecord { seq: record.seq, kind: record.kind, version: record.version }),
        }
    }

    fn decide(&mut self, request: Request, commit: &mut Commit<'_>) -> Answer {
        match self.try_decide(request, commit) {
            Ok(answer) => answer,
            Err(refusal) => Answer::Refused(refusal),
        }
    }

    fn reserved_bytes(&self) -> u64 {
        self.state.reserved_bytes()
    }
}

impl Shell {
    fn fold(&mut self, entry: &Entry) {
        machine::apply(&mut self.state, entry);
        let recorded = matches!(entry.event, Event::StateRecorded(_));
        let snapshot = matches!(&entry.event, Event::StateRecorded(recorded) if recorded.snapshot.is_some());
        self.since_recorded = if recorded { 0 } else { self.since_recorded.saturating_add(1) };
        self.since_snapshot = if snapshot { 0 } else { self.since_snapshot.saturating_add(1) };
    }

    fn try_decide(&mut self, request: Request, commit: &mut Commit<'_>) -> Result<Answer, Refusal> {
        self.reap();
        self.load_key();
        let facts = self.facts(&request, commit)?;
        // Where the disk allows it there is room for new work beside every promised outcome; where not, `decide` refuses.
        // A failure of the disk itself comes back from the push.
        let _ = commit.ensure_space(self.state.reserved_bytes().saturating_add(NEW_WORK_ROOM));
        let alive = self.alive(&request.command);
        let fresh = self.fresh(request.run)?;
        let now = self.clock.now();
        let cx = Context {
            journal: self.journal,
            next: commit.next_seq(),
            now,
            instance: self.instance,
            fresh,
            alive: &alive,
            // A key that was never journalled signs nothing and verifies nothing.
            key: self.key.as_ref().filter(|key| self.state.capability_keys.contains(&key.id())),
            facts: &facts,
            live: request.live,
            space_left: commit.space_left(),
            limits: self.limits,
        };
        let mut decided = machine::decide_audited(&self.state, &request.command, &cx);
        if let Answer::Refused(Refusal::InvalidRequest | Refusal::UnknownAttention) = decided.answer {
            self.counted.add(now.wall);
        }
        let closing = matches!(request.command, Command::RecordState { .. });
        decided.events.extend(self.counted.take(now.wall, closing));
        if !is_outcome(&request.command) && !decided.events.is_empty() && !self.has_room(commit) {
            // What is promised to work in flight is not spent on anything else (RULINGS 7).
            return Ok(match decided.answer {
                Answer::Refused(refusal) => Answer::Refused(refusal),
                Answer::Recorded if closing => Answer::Recorded,
                Answer::Recorded
                | Answer::Started { .. }
                | Answer::Leased { .. }
                | Answer::Paused { .. }
                | Answer::Deliver { .. }
                | Answer::Committed { .. }
                | Answer::Finished { .. }
                | Answer::CarryOut { .. }
                | Answer::Decided { .. } => Answer::Refused(Refusal::DiskFull),
            });
        }
        self.append(&decided.events, now.wall, commit)?;
        Ok(decided.answer)
    }

    /// Whether a block of ordinary records still leaves every promised outcome its space.
    fn has_room(&self, commit: &Commit<'_>) -> bool {
        commit.space_left() >= self.state.reserved_bytes().saturating_add(ORDINARY_BLOCK_BYTES)
    }

    /// Pushes events and folds them. All or none: their drafts are made before the first is pushed.
    pub(super) fn append(
        &mut self,
        events: &[Event],
        now: UnixMillis,
        commit: &mut Commit<'_>,
    ) -> Result<(), Refusal> {
        let drafts: Vec<Draft> = events
            .iter()
            .map(|event| codec::draft(event, now))
            .collect::<Result<_, _>>()
            .map_err(|_| Refusal::InvalidRequest)?;
        if drafts.is_empty() {
            return Ok(());
        }
        let first = commit.push_all(&drafts).map_err(|_| Refusal::DiskFull)?;
        for (offset, event) in (0..).zip(events) {
            let seq = Seq(first.0.saturating_add(offset));
            self.fold(&Entry { seq, time: now, producer: self.instance, event: event.clone() });
        }
        Ok(())
    }

    fn fresh(&self, run: Option<RunId>) -> Result<FreshIds, Refusal> {
        let draw = || self.ids.fresh().map_err(|_| Refusal::Poisoned);
        Ok(FreshIds {
            run: run.map_or_else(|| draw().map(RunId), Ok)?,
            pause: PauseId(draw()?),
            decision: DecisionId(draw()?),
            delivery: DeliveryId(draw()?),
        })
    }

    /// Which processes that matter to the command's run hold their liveness lock.
    fn alive(&self, command: &Command) -> BTreeSet<InstanceId> {
        let run = match command {
            Command::Cancel { run, .. }
            | Command::Acquire { run, .. }
            | Command::Release { run, .. }
            | Command::BeginStep { run, .. }
            | Command::RecordReceipt { run, .. }
            | Command::CommitStep { run, .. }
            | Command::Stop { run, .. }
            | Command::FinishDecision { run, .. }
            | Command::LoseDecision { run, .. } => self.state.runs.get(run),
            Command::Decide { request, .. } => {
                self.state.pause(&request.attention_id).map(|(run, _)| run).or_else(|| {
                    self.state.keys.get(&request.idempotency_key).and_then(|run| self.state.runs.get(run))
                })
            }
            Command::StartRun(_) | Command::RegisterKey { .. } | Command::RecordState { .. } => None,
        };
        let mut alive = BTreeSet::from([self.instance]);
        let Some(run) = run else { return alive };
        for instance in run.watched() {
            if !alive.contains(&instance) && self.lives(instance) {
                alive.insert(instance);
            }
        }
        alive
    }

    /// A lock that cannot be probed counts as held: a holder is never assumed dead without proof.
    fn lives(&self, instance: InstanceId) -> bool {
        match journal::lock::Liveness::probe(self.home.vfs().as_ref(), &self.home.live(), instance) {
            Ok(journal::lock::Alive::Alive) | Err(_) => true,
            Ok(journal::lock::Alive::Dead) => false,
        }
    }

    /// Another process may have made the home's first key since this one opened it.
    fn load_key(&mut self) {
        if self.key.is_none() && !self.state.capability_keys.is_empty() {
            self.key = super::keys::load(&self.home).ok();
        }
    }

    /// Removes the liveness files of dead processes, once, under the commit lock (RULINGS 10).
    fn reap(&mut self) {
        if !std::mem::replace(&mut self.reaped, true) {
            // A file that stays costs a probe and nothing else.
            let _ = journal::lock::Liveness::reap(self.home.vfs().as_ref(), &self.home.live());
        }
    }

    /// What the journal has recorded of the command's keys beyond the open runs. Source: RULINGS 3 and 27.
    fn facts(&self, request: &Request, commit: &mut Commit<'_>) -> Result<Facts, Refusal> {
        let mut facts = Facts::default();
        match &request.command {
            Command::StartRun(start) => {
                if let Some(id) = &start.request {
                    facts.request = self.recorded_request(id, request.content.as_deref(), commit)?;
                }
            }
            Command::Decide { request: decision, .. } => {
                if !self.state.keys.contains_key(&decision.idempotency_key) {
                    facts.decision = recorded_decision(&decision.idempotency_key, commit)?;
                }
                if !self.state.attention.contains_key(&decision.attention_id) {
                    facts.attention = recorded_attention(&decision.attention_id, commit)?;
                }
            }
            Command::Cancel { run, .. }
            | Command::Acquire { run, .. }
            | Command::Release { run, .. }
            | Command::BeginStep { run, .. }
            | Command::RecordReceipt { run, .. }
            | Command::CommitStep { run, .. }
            | Command::Stop { run, .. }
            | Command::FinishDecision { run, .. }
            | Command::LoseDecision { run, .. } => {
                if !self.state.runs.contains_key(run) {
                    facts.run_finished = !read_events(&codec::run_lookup(*run), commit)?.is_empty();
                }
            }
            Command::RegisterKey { .. } | Command::RecordState { .. } => {}
        }
        Ok(facts)
    }

    fn recorded_request(
        &self,
        id: &protocol::ids::RequestId,
        content: Option<&[u8]>,
        commit: &mut Commit<'_>,
    ) -> Result<Option<RecordedRequest>, Refusal> {
        let open = self
            .state
            .requests
            .get(id)
            .and_then(|run| self.state.runs.get(run))
            .map(|run| run.admitted.clone());
        let admitted: Option<RunAdmitted> = match open {
            Some(admitted) => Some(admitted),
            None => read_events(&codec::request_lookup(id), commit)?.into_iter().find_map(|entry| {
                let Event::RunAdmitted(admitted) = entry.event else { return None };
                (admitted.request.as_ref() == Some(id)).then_some(admitted)
            }),
        };
        Ok(admitted.map(|admitted| RecordedRequest {
            run: admitted.run,
            recorded: admitted.request_digest,
            presented: match (self.home.salt(admitted.run), content) {
                (Ok(salt), Some(content)) => Some(protected_digest(&salt, content)),
                (Ok(_) | Err(_), _) => None,
            },
        }))
    }

    /// Records a refusal that came to light outside of a command, such as a malformed request.
    pub(super) fn count_refusal(&mut self) {
        let now = self.clock.now().wall;
        self.counted.add(now);
    }
}

/// Whether a command records what became of work that was taken on before, for which space is reserved.
fn is_outcome(command: &Command) -> bool {
    match command {
        Command::RecordReceipt { .. }
        | Command::CommitStep { .. }
        | Command::Stop { .. }
        | Command::FinishDecision { .. }
        | Command::LoseDecision { .. }
        | Command::Release { .. } => true,
        Command::StartRun(_)
        | Command::Cancel { .. }
        | Command::Acquire { .. }
        | Command::BeginStep { .. }
        | Command::Decide { .. }
        | Command::RegisterKey { .. }
        | Command::RecordState { .. } => false,
    }
}

/// Every event under a look-up key. A hash may collide, so callers check the event's own field.
fn read_events(key: &journal::LookupKey, commit: &mut Commit<'_>) -> Result<Vec<Entry>, Refusal> {
    let positions: Vec<Seq> = commit.lookup(key).map_err(|_| Refusal::Poisoned)?;
    let mut entries = Vec::with_capacity(positions.len());
    for seq in positions {
        let record = commit.read(seq).map_err(|_| Refusal::Poisoned)?;
        entries.extend(codec::entry(&record).map_err(|_| Refusal::Poisoned)?);
    }
    Ok(entries)
}

/// The decision recorded under a key on a run that has ended.
fn recorded_decision(key: &IdempotencyKey, commit: &mut Commit<'_>) -> Result<Option<Decision>, Refusal> {
    let entries = read_events(&codec::idempotency_lookup(key), commit)?;
    Ok(super::project::decision_from(key, &entries))
}

/// What became of the run behind a closed pause.
fn recorded_attention(
    attention: &AttentionId,
    commit: &mut Commit<'_>,
) -> Result<Option<RecordedAttention>, Refusal> {
    let run = read_events(&codec::attention_lookup(attention), commit)?.into_iter().find_map(|entry| {
        let Event::PauseOpened(opened) = entry.event else { return None };
        (opened.attention == *attention).then_some(opened.run)
    });
    let Some(run) = run else { return Ok(None) };
    let run_rejected =
        read_events(&codec::run_lookup(run), commit)?.into_iter().any(|entry| {
            matches!(entry.event, Event::RunFinished(finished) if finished.run == run && finished.reason == Reason::Rejected)
        });
    Ok(Some(RecordedAttention { run_rejected }))
}
