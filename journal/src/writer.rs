//! The writer thread: group commit under the file lock, poison, and what the machine may do inside a commit.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use protocol::ids::Seq;

use crate::error::{AppendError, IoFailure, OpenError, ReadError, UnknownRecord};
use crate::format::block::HEADER_BYTES;
use crate::format::mark::Position;
use crate::format::record::{
    Draft, FIRST_ENGINE_KIND, KEYS_MAX, LookupKey, Record, RecordView, encode_into, encoded_len,
};
use crate::format::{BLOCK_BYTES_MAX, RECORD_BYTES_MAX};
use crate::lock::{CommitLock, LockFailure};
use crate::log::Log;
use crate::recovery::{Said, recover};

/// Zero space kept beside what the machine has reserved, for the commit at hand.
const LOW_WATER_BYTES: u64 = 64 << 10;
/// Room kept in a segment for the next block and its part of the key table, at most: a block of the smallest records
/// with the most keys has a key table larger than itself.
const ROOM_BYTES_MAX: u64 = 3 << 20;
/// A block that holds this much is written before the next command is decided.
const BLOCK_BYTES_ENOUGH: usize = BLOCK_BYTES_MAX - RECORD_BYTES_MAX;

/// The state that the records fold into, and the rules that make new ones. One thread at a time is in it.
pub trait Machine: Send + 'static {
    /// What is asked of it.
    type Command: Send + 'static;
    /// What it says.
    type Answer: Send + 'static;

    /// Folds one durable record: at start, when another process wrote it, and those of the journal itself
    /// (kinds below [`FIRST_ENGINE_KIND`], which may be ignored). Records that [`Machine::decide`] pushed here are
    /// not applied again.
    ///
    /// # Errors
    /// A record of a kind that is not known and not optional; the journal then accepts nothing more here.
    fn apply(&mut self, record: &Record) -> Result<(), UnknownRecord>;

    /// Decides one command under the commit lock, caught up. Pushes what is to be recorded and folds it itself, after
    /// the push succeeded and before returning. The answer is given out only when all of it is durable; if that fails,
    /// the machine is never asked again. Must not wait for the journal.
    fn decide(&mut self, command: Self::Command, commit: &mut Commit<'_>) -> Self::Answer;

    /// Bytes of blocks that must stay available for what was promised earlier. RULINGS 7.
    fn reserved_bytes(&self) -> u64 {
        0
    }
}

/// What is pushed in one commit and not yet written. Buffers are kept from commit to commit.
#[derive(Default)]
struct Batch {
    /// Room for the header, then records. The last one is being filled.
    blocks: Vec<Pending>,
    /// Block and offset of each record pushed.
    records: Vec<(usize, usize)>,
    spare: Vec<Vec<u8>>,
    keys: Vec<LookupKey>,
}

struct Pending {
    bytes: Vec<u8>,
    count: u32,
}

impl Batch {
    fn add_block(&mut self) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.resize(HEADER_BYTES, 0);
        self.blocks.push(Pending { bytes, count: 0 });
    }

    fn last_len(&self) -> usize {
        self.blocks.last().map_or(HEADER_BYTES, |block| block.bytes.len())
    }

    fn clear(&mut self) {
        self.spare.extend(self.blocks.drain(..).map(|block| block.bytes));
        self.records.clear();
    }
}

/// One command's view of the journal while it is decided.
pub struct Commit<'a> {
    log: &'a mut Log,
    batch: &'a mut Batch,
    /// Records in the batch before this command's.
    before: usize,
    /// Why the latest push that failed did.
    failed: Option<AppendError>,
    /// A failure after which nothing may be written.
    poison: &'a mut Option<IoFailure>,
}

impl Commit<'_> {
    /// The sequence that the next pushed record will have.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        Seq(self.log.place.next_seq.0 + self.batch.records.len() as u64)
    }

    /// Bytes of zero space left for blocks after what was pushed so far. Each block takes [`Commit::block_overhead`]
    /// beside its records.
    #[must_use]
    pub fn space_left(&self) -> u64 {
        self.log.space_left().saturating_sub(self.bytes_with(0, false))
    }

    /// Bytes that a block may take beside its records: its header and its padding.
    #[must_use]
    pub fn block_overhead(&self) -> u64 {
        HEADER_BYTES as u64 + self.log.open.header.align.bytes()
    }

    /// Makes zero space, if the disk allows, so that [`Commit::space_left`] is at least `bytes`; says whether it is.
    ///
    /// # Errors
    /// [`AppendError::Poisoned`]: the disk failed, and nothing of this commit will be written.
    pub fn ensure_space(&mut self, bytes: u64) -> Result<bool, AppendError> {
        if let Some(failure) = *self.poison {
            return Err(AppendError::Poisoned(failure));
        }
        let pushed = self.bytes_with(0, false);
        self.log.ensure_space(pushed.saturating_add(bytes)).map_err(|failure| {
            *self.poison = Some(failure);
            AppendError::Poisoned(failure)
        })
    }

    /// Adds a record and says what its sequence will be. All records of one command stand in one block: after a crash
    /// all of them are there, or none.
    ///
    /// # Errors
    /// - [`AppendError::TooLarge`], [`AppendError::TooManyKeys`], [`AppendError::KindReserved`]: not as a record may be.
    /// - [`AppendError::DiskFull`]: there is no space. What the command pushed before stays pushed; use
    ///   [`Commit::push_all`] for records that belong together.
    /// - [`AppendError::Poisoned`]: the disk failed, and nothing of this commit will be written.
    ///
    /// A command that pushed nothing else is answered with this error instead of the machine's answer.
    pub fn push(&mut self, draft: Draft) -> Result<Seq, AppendError> {
        self.push_all(std::slice::from_ref(&draft))
    }

    /// Adds records, all or none, and says what the first one's sequence will be. Else as [`Commit::push`].
    ///
    /// # Errors
    /// As [`Commit::push`]; nothing was pushed then.
    pub fn push_all(&mut self, drafts: &[Draft]) -> Result<Seq, AppendError> {
        self.try_push(drafts).inspect_err(|error| self.failed = Some(error.clone()))
    }

    fn try_push(&mut self, drafts: &[Draft]) -> Result<Seq, AppendError> {
        let mut bytes = 0;
        for draft in drafts {
            let len = encoded_len(draft);
            if draft.keys.len() > KEYS_MAX {
                return Err(AppendError::TooManyKeys { keys: draft.keys.len(), max: KEYS_MAX });
            }
            if draft.kind < FIRST_ENGINE_KIND {
                return Err(AppendError::KindReserved { kind: draft.kind });
            }
            if len > RECORD_BYTES_MAX {
                return Err(AppendError::TooLarge { bytes: len, max: RECORD_BYTES_MAX });
            }
            bytes += len;
        }
        let own = self.own_start().map_or(0, |start| self.batch.last_len() - start);
        let (total, max) = (own + bytes, BLOCK_BYTES_MAX - HEADER_BYTES);
        if total > max {
            return Err(AppendError::TooLarge { bytes: total, max });
        }
        let moves = self.batch.last_len() + bytes > BLOCK_BYTES_MAX;
        let need = self.bytes_with(bytes, moves);
        if need > self.log.space_left() {
            let grown = self.log.ensure_space(need).map_err(|failure| {
                *self.poison = Some(failure);
                AppendError::Poisoned(failure)
            })?;
            if !grown {
                return Err(AppendError::DiskFull);
            }
        }
        if let Some(failure) = *self.poison {
            return Err(AppendError::Poisoned(failure));
        }
        if moves {
            self.move_to_new_block();
        }
        let first = self.next_seq();
        for draft in drafts {
            self.add(draft);
        }
        Ok(first)
    }

    /// Adds a record that was found to fit.
    fn add(&mut self, draft: &Draft) {
        let seq = self.next_seq();
        if self.batch.blocks.is_empty() {
            self.batch.add_block();
        }
        let Batch { blocks, records, keys, .. } = &mut *self.batch;
        keys.clear();
        keys.extend_from_slice(&draft.keys);
        keys.sort_unstable();
        keys.dedup();
        let number = blocks.len() - 1;
        let block = &mut blocks[number];
        records.push((number, block.bytes.len()));
        encode_into(&mut block.bytes, draft, keys, self.log.options.producer);
        block.count += 1;
        self.log.keys.extend(keys.iter().map(|key| (*key, seq)));
    }

    /// Where this command's records start in the last block.
    fn own_start(&self) -> Option<usize> {
        self.batch.records.get(self.before).map(|(_, offset)| *offset)
    }

    /// Bytes of all blocks if `more` bytes of records were added to the last, or, with this command's records, to a new
    /// one.
    fn bytes_with(&self, more: usize, moves: bool) -> u64 {
        let align = self.log.open.header.align;
        let padded = |len: usize| align.round_up(len as u64);
        let Some((last, before)) = self.batch.blocks.split_last() else {
            return if more == 0 { 0 } else { padded(HEADER_BYTES + more) };
        };
        let before: u64 = before.iter().map(|block| padded(block.bytes.len())).sum();
        let len = last.bytes.len();
        if moves {
            let start = self.own_start().unwrap_or(len);
            before + padded(start) + padded(HEADER_BYTES + len - start + more)
        } else {
            before + padded(len + more)
        }
    }

    /// Moves this command's records, which are not all of the last block, to a new one.
    fn move_to_new_block(&mut self) {
        let start = self.own_start().unwrap_or(self.batch.last_len());
        let before = self.before;
        self.batch.add_block();
        let number = self.batch.blocks.len() - 1;
        let (full, new) = self.batch.blocks.split_at_mut(number);
        if let (Some(full), Some(new)) = (full.last_mut(), new.first_mut()) {
            new.bytes.extend_from_slice(&full.bytes[start..]);
            full.bytes.truncate(start);
            let own = self.batch.records.len() - before;
            full.count -= own as u32;
            new.count = own as u32;
        }
        for (block, offset) in &mut self.batch.records[before..] {
            (*block, *offset) = (number, HEADER_BYTES + *offset - start);
        }
    }

    /// Sequences of all records with `key`, ascending: durable ones and those pushed in this commit.
    ///
    /// # Errors
    /// [`ReadError`]; a miss is a proof of absence, an error is not.
    pub fn lookup(&mut self, key: &LookupKey) -> Result<Vec<Seq>, ReadError> {
        self.log.lookup(*key)
    }

    /// The record at `seq`, durable or pushed in this commit.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn read(&mut self, seq: Seq) -> Result<Record, ReadError> {
        let Some(n) = seq.0.checked_sub(self.log.place.next_seq.0) else { return self.log.read(seq) };
        let pushed = usize::try_from(n).ok().and_then(|n| self.batch.records.get(n));
        let view = pushed.and_then(|(block, offset)| {
            let bytes = &self.batch.blocks.get(*block)?.bytes;
            RecordView::split(&bytes[*offset..]).ok()
        });
        match view {
            Some((view, _)) => Ok(view.to_record(seq, self.log.epoch)),
            None => Err(ReadError::NotFound { seq, next_seq: self.next_seq() }),
        }
    }
}

/// Where one waiter gets its result. It is dropped without one only when the machine panics.
pub(crate) struct Promise<T>(Option<Arc<Slot<T>>>);

pub(crate) struct Slot<T> {
    state: Mutex<SlotState<T>>,
    ready: Condvar,
}

struct SlotState<T> {
    result: Option<Result<T, AppendError>>,
    /// Whether somebody sleeps; to wake nobody would still cost a system call.
    waited_for: bool,
}

pub(crate) fn promise<T>() -> (Promise<T>, Arc<Slot<T>>) {
    let state = Mutex::new(SlotState { result: None, waited_for: false });
    let slot = Arc::new(Slot { state, ready: Condvar::new() });
    (Promise(Some(Arc::clone(&slot))), slot)
}

impl<T> Slot<T> {
    pub(crate) fn wait(&self) -> Result<T, AppendError> {
        let mut state = hold(&self.state);
        loop {
            match state.result.take() {
                Some(result) => return result,
                None => {
                    state.waited_for = true;
                    state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl<T> Promise<T> {
    pub(crate) fn keep(mut self, result: Result<T, AppendError>) {
        self.settle(result);
    }

    fn settle(&mut self, result: Result<T, AppendError>) {
        if let Some(slot) = self.0.take() {
            let mut state = hold(&slot.state);
            state.result = Some(result);
            let wake = state.waited_for;
            drop(state);
            if wake {
                slot.ready.notify_one();
            }
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        self.settle(Err(AppendError::Panicked));
    }
}

// Nothing is left half-done when a holder of one of our locks panics, so its poison says nothing.
fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs on the writer thread on the machine, or learns why it cannot.
pub(crate) type Query<M> = Box<dyn FnOnce(Result<&mut M, AppendError>) + Send>;

pub(crate) enum Job<M: Machine> {
    Submit(M::Command, Promise<M::Answer>),
    Query(Query<M>),
}

/// What the writer thread and those who ask share.
///
/// A command that comes alone is served by the thread that brings it, which saves two hand-overs; all others are served
/// by the writer thread, many at a time. Whoever serves holds `writer`.
pub(crate) struct Shared<M: Machine> {
    queue: Mutex<Queue<M>>,
    wake: Condvar,
    writer: Mutex<Writer<M>>,
}

struct Queue<M: Machine> {
    jobs: Vec<Job<M>>,
    /// Whether the writer thread waits to be woken.
    idle: bool,
    /// Whether the last turn of the writer thread served several: then a command is unlikely to come alone.
    crowded: bool,
    closing: bool,
    /// Why nothing is accepted any more.
    end: Option<AppendError>,
}

impl<M: Machine> Queue<M> {
    fn accepts(&self) -> Result<(), AppendError> {
        match &self.end {
            Some(end) => Err(end.clone()),
            None if self.closing => Err(AppendError::Closed),
            None => Ok(()),
        }
    }
}

impl<M: Machine> Shared<M> {
    pub(crate) fn new(writer: Writer<M>) -> Self {
        let queue = Queue { jobs: Vec::new(), idle: false, crowded: false, closing: false, end: None };
        Self { queue: Mutex::new(queue), wake: Condvar::new(), writer: Mutex::new(writer) }
    }

    /// Serves a command, here or on the writer thread.
    pub(crate) fn submit(&self, command: M::Command) -> Result<M::Answer, AppendError> {
        let queue = hold(&self.queue);
        queue.accepts()?;
        if queue.jobs.is_empty()
            && !queue.crowded
            && let Ok(mut writer) = self.writer.try_lock()
        {
            drop(queue);
            return self.serve_here(&mut writer, command);
        }
        let (promise, slot) = promise();
        self.enqueue(queue, Job::Submit(command, promise));
        slot.wait()
    }

    fn serve_here(&self, writer: &mut Writer<M>, command: M::Command) -> Result<M::Answer, AppendError> {
        let (promise, slot) = promise();
        self.turn(writer, vec![Job::Submit(command, promise)]);
        slot.wait()
    }

    /// Hands a query over to the writer thread.
    pub(crate) fn query(&self, query: Query<M>) -> Result<(), AppendError> {
        let queue = hold(&self.queue);
        queue.accepts()?;
        self.enqueue(queue, Job::Query(query));
        Ok(())
    }

    fn enqueue(&self, mut queue: MutexGuard<'_, Queue<M>>, job: Job<M>) {
        queue.jobs.push(job);
        let wake = std::mem::take(&mut queue.idle);
        drop(queue);
        if wake {
            self.wake.notify_one();
        }
    }

    pub(crate) fn close(&self) {
        let mut queue = hold(&self.queue);
        queue.closing = true;
        queue.idle = false;
        drop(queue);
        self.wake.notify_one();
    }

    /// Why the journal accepts nothing more, if that is so.
    pub(crate) fn end(&self) -> Option<AppendError> {
        hold(&self.queue).end.clone()
    }

    /// The writer thread.
    pub(crate) fn run(&self) {
        while self.wait() {
            let mut writer = hold(&self.writer);
            // Those who were just answered come again at once; let them, so that they share the next sync.
            if hold(&self.queue).crowded {
                std::thread::yield_now();
            }
            let mut queue = hold(&self.queue);
            let jobs = std::mem::take(&mut queue.jobs);
            queue.crowded = jobs.len() > 1;
            drop(queue);
            self.turn(&mut writer, jobs);
        }
    }

    /// Serves jobs and tells those who asked.
    fn turn(&self, writer: &mut Writer<M>, jobs: Vec<Job<M>>) {
        let mut done = Vec::with_capacity(jobs.len());
        let served = std::panic::catch_unwind(AssertUnwindSafe(|| writer.serve(jobs, &mut done)));
        let served = served.unwrap_or_else(|_| {
            // Nobody knows what the machine has half folded, so it is not asked again. Those who were not served are told
            // as their promises are dropped.
            let _ = writer.lock.release();
            Err(AppendError::Panicked)
        });
        // Refuse before anybody is told, so that nobody who was told finds the journal accepting.
        if let Err(end) = served {
            self.stop(&end);
        }
        for (promise, answer) in done {
            promise.keep(answer);
        }
    }

    /// Waits until something is asked; `false` when closed and done.
    fn wait(&self) -> bool {
        let mut queue = hold(&self.queue);
        while queue.jobs.is_empty() {
            if queue.closing || queue.end.is_some() {
                return false;
            }
            queue.idle = true;
            queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.idle = false;
        true
    }

    /// Accepts nothing from now on, and refuses what waits.
    fn stop(&self, end: &AppendError) {
        let mut queue = hold(&self.queue);
        queue.end.get_or_insert_with(|| end.clone());
        let waiting = std::mem::take(&mut queue.jobs);
        let wake = std::mem::take(&mut queue.idle);
        drop(queue);
        if wake {
            self.wake.notify_one();
        }
        for job in waiting {
            refuse(job, end);
        }
    }
}

pub(crate) struct Writer<M: Machine> {
    log: Log,
    lock: CommitLock,
    machine: M,
    batch: Batch,
}

type Waiting<A> = Vec<(Promise<A>, Result<A, AppendError>)>;

impl<M: Machine> Writer<M> {
    pub(crate) fn new(log: Log, lock: CommitLock, machine: M) -> Self {
        Self { log, lock, machine, batch: Batch::default() }
    }

    /// Serves all jobs; an error is final. Those in `done` are to be told what stands there.
    fn serve(&mut self, jobs: Vec<Job<M>>, done: &mut Waiting<M::Answer>) -> Result<(), AppendError> {
        let mut commands = Vec::with_capacity(jobs.len());
        let mut queries = Vec::new();
        for job in jobs {
            match job {
                Job::Submit(command, promise) => commands.push((command, promise)),
                Job::Query(query) => queries.push(query),
            }
        }
        if !queries.is_empty() {
            if let Err(error) = self.refresh() {
                queries.into_iter().for_each(|query| query(Err(error.clone())));
                commands.into_iter().for_each(|(_, promise)| done.push((promise, Err(error.clone()))));
                return Err(error);
            }
            queries.into_iter().for_each(|query| query(Ok(&mut self.machine)));
        }
        if commands.is_empty() {
            return Ok(());
        }
        let wait = self.log.options.lock_wait;
        let mut commands = commands.into_iter();
        let locked = match self.lock.acquire(wait) {
            Ok(()) => {
                let decided = self.decide_all(&mut commands, done);
                // A lock that is not given back is only given back later, with the file.
                let _ = self.lock.release();
                decided
            }
            Err(LockFailure::Busy) => Err(AppendError::Busy { waited: wait }),
            Err(LockFailure::Io(error)) => {
                Err(AppendError::Poisoned(IoFailure::new("locking the journal")(error)))
            }
        };
        match locked {
            Ok(()) => Ok(()),
            Err(error) => {
                commands.for_each(|(_, promise)| done.push((promise, Err(error.clone()))));
                if error.is_final() { Err(error) } else { Ok(()) }
            }
        }
    }

    /// Decides and commits all commands. On an error those that are left were not decided.
    fn decide_all(
        &mut self,
        commands: &mut impl Iterator<Item = (M::Command, Promise<M::Answer>)>,
        done: &mut Waiting<M::Answer>,
    ) -> Result<(), AppendError> {
        self.catch_up()?;
        // Decided, but not yet durable.
        let mut waiting: Waiting<M::Answer> = Vec::new();
        let mut failure = None;
        while failure.is_none() {
            if self.batch.records.is_empty() {
                failure = self.make_room().err();
                if failure.is_some() {
                    break;
                }
            }
            let Some((command, promise)) = commands.next() else { break };
            let (before, mut poison) = (self.batch.records.len(), None);
            let (log, batch, failed) = (&mut self.log, &mut self.batch, None);
            let mut commit = Commit { log, batch, before, failed, poison: &mut poison };
            let answer = self.machine.decide(command, &mut commit);
            let answer = match commit.failed.take() {
                Some(error) if self.batch.records.len() == before => Err(error),
                Some(_) | None => Ok(answer),
            };
            waiting.push((promise, answer));
            failure = poison.map(AppendError::Poisoned);
            if failure.is_none()
                && (self.batch.blocks.len() > 1 || self.batch.last_len() >= BLOCK_BYTES_ENOUGH)
            {
                failure = self.write().err();
                if failure.is_none() {
                    done.append(&mut waiting);
                }
            }
        }
        failure = failure.or_else(|| self.write().err());
        match failure {
            None => {
                done.append(&mut waiting);
                Ok(())
            }
            Some(error) => {
                done.extend(waiting.into_iter().map(|(promise, _)| (promise, Err(error.clone()))));
                Err(error)
            }
        }
    }

    /// Before a block: a new segment if this one is full, and space for what was promised. A full disk is not an
    /// error here; pushes find out.
    fn make_room(&mut self) -> Result<(), AppendError> {
        // Small segments, as in tests, stay small.
        let limit = self.log.options.segment_bytes_max / 4;
        let want = self.machine.reserved_bytes().saturating_add(LOW_WATER_BYTES.min(limit));
        let room = ROOM_BYTES_MAX.min(limit);
        self.log.rotate_if_full(&self.lock, room, want).map_err(AppendError::Poisoned)?;
        self.log.ensure_space(want).map(|_| ()).map_err(AppendError::Poisoned)
    }

    fn write(&mut self) -> Result<(), AppendError> {
        for block in &mut self.batch.blocks {
            self.log.commit(&self.lock, &mut block.bytes, block.count).map_err(AppendError::Poisoned)?;
        }
        self.batch.clear();
        Ok(())
    }

    /// Under the lock: brings log and machine to where the journal is, by recovery if nobody vouches for that.
    fn catch_up(&mut self) -> Result<(), AppendError> {
        let stored = self.lock.read_mark().map_err(IoFailure::new("reading the synced mark"));
        let here = self.log.position();
        match Said::by(&stored.map_err(AppendError::Poisoned)?, self.log.options.boot_id) {
            Said::Clean(position) if position == here => Ok(()),
            Said::Clean(position) if is_ahead(&position, &here) => Ok(self.follow(&position)?),
            Said::Clean(_) | Said::Dirty(_) | Said::Nothing(_) => Ok(self.recover(&here)?),
        }
    }

    /// Without the lock: reads on to what others synced, as far as the mark says.
    fn refresh(&mut self) -> Result<(), AppendError> {
        let failed = |error| AppendError::Poisoned(IoFailure::new("reading the synced mark")(error));
        let stored = self.lock.peek_mark().map_err(failed)?;
        match Said::by(&stored, self.log.options.boot_id).position() {
            Some(position) if is_ahead(position, &self.log.position()) => Ok(self.follow(position)?),
            Some(_) | None => Ok(()),
        }
    }

    fn follow(&mut self, position: &Position) -> Result<(), OpenError> {
        let machine = &mut self.machine;
        self.log.catch_up(position, &mut |record| machine.apply(&record))
    }

    fn recover(&mut self, here: &Position) -> Result<(), OpenError> {
        let mut options = self.log.options.clone();
        // Closed segments were checked at opening; what was written since is read below.
        options.check_closed_bytes = 0;
        let mut log = recover(&self.log.vfs, &self.log.dir, &options, &self.lock)?.log;
        let machine = &mut self.machine;
        log.replay(here.next_seq, Some(here), &mut |record| machine.apply(&record))?;
        log.options = self.log.options.clone();
        self.log = log;
        Ok(())
    }
}

fn is_ahead(position: &Position, here: &Position) -> bool {
    position.next_seq >= here.next_seq && (position.segment, position.offset) > (here.segment, here.offset)
}

fn refuse<M: Machine>(job: Job<M>, end: &AppendError) {
    match job {
        Job::Submit(_, promise) => promise.keep(Err(end.clone())),
        Job::Query(query) => query(Err(end.clone())),
    }
}
