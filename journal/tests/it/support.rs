//! A machine that keeps what it was told, and journals in temporary directories.

use std::path::PathBuf;
use std::sync::Arc;

use opjournal_journal::vfs::Vfs;
use opjournal_journal::vfs::os::OsVfs;
use opjournal_journal::{
    AppendError, Commit, Draft, Journal, LookupKey, Machine, OpenError, OpenReport, Options, ReadError,
    Reader, Record, UnknownRecord,
};
use protocol::ids::{BootId, InstanceId, JournalId, Seq};
use protocol::time::{Millis, UnixMillis};

pub(crate) const SAID: u16 = 100;
pub(crate) const BOOT: BootId = BootId([0xb0; 16]);
pub(crate) const OTHER_BOOT: BootId = BootId([0xb1; 16]);

/// Keeps the payloads of all records of kind [`SAID`].
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) said: Vec<(Seq, Vec<u8>)>,
    pub(crate) applied: u64,
    pub(crate) reserve: u64,
}

type Ask = Box<dyn FnOnce(&mut Memory, &mut Commit<'_>) + Send>;

pub(crate) enum Command {
    Say(Vec<u8>),
    /// Several records that belong together.
    SayAll(Vec<Vec<u8>>),
    /// Says it only if nobody has said it before, by its key.
    SayOnce(Vec<u8>),
    Ask(Ask),
}

impl Machine for Memory {
    type Command = Command;
    type Answer = Result<Vec<Seq>, AppendError>;

    fn apply(&mut self, record: &Record) -> Result<(), UnknownRecord> {
        self.applied += 1;
        if record.kind == SAID {
            self.said.push((record.seq, record.payload.clone()));
        } else if record.kind > SAID && !record.optional {
            return Err(UnknownRecord { seq: record.seq, kind: record.kind, version: record.version });
        }
        Ok(())
    }

    fn decide(&mut self, command: Command, commit: &mut Commit<'_>) -> Self::Answer {
        let texts = match command {
            Command::Say(text) => vec![text],
            Command::SayAll(texts) => texts,
            Command::SayOnce(text) => {
                let found = commit.lookup(&key_of(&text)).expect("a lookup");
                if !found.is_empty() {
                    return Ok(found);
                }
                vec![text]
            }
            Command::Ask(ask) => {
                ask(self, commit);
                return Ok(Vec::new());
            }
        };
        let drafts: Vec<Draft> = texts.iter().map(|text| draft(text)).collect();
        let first = commit.push_all(&drafts)?;
        let seqs: Vec<Seq> = (0..texts.len() as u64).map(|n| Seq(first.0 + n)).collect();
        self.said.extend(seqs.iter().copied().zip(texts));
        Ok(seqs)
    }

    fn reserved_bytes(&self) -> u64 {
        self.reserve
    }
}

pub(crate) fn key_of(text: &[u8]) -> LookupKey {
    LookupKey::new(1, text)
}

pub(crate) fn draft(text: &[u8]) -> Draft {
    Draft {
        kind: SAID,
        version: 1,
        optional: false,
        time: UnixMillis(1_000),
        keys: vec![key_of(text), LookupKey::new(2, b"all")],
        payload: text.to_vec(),
    }
}

/// A directory with a journal, and how to open it.
pub(crate) struct Home {
    _temporary: tempfile::TempDir,
    pub(crate) dir: PathBuf,
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) options: Options,
}

impl Home {
    pub(crate) fn new() -> Self {
        let temporary = tempfile::tempdir().expect("a directory");
        let dir = temporary.path().join("journal");
        let mut options = Options::new(InstanceId([0xaa; 16]), BOOT, Arc::new(|| UnixMillis(5_000)));
        options.lock_wait = Millis(20_000);
        options.journal_id = Some(JournalId([0x11; 16]));
        Self { _temporary: temporary, dir, vfs: Arc::new(OsVfs), options }
    }

    pub(crate) fn small_segments() -> Self {
        let mut home = Self::new();
        home.options.segment_bytes_max = 2_048;
        home
    }

    pub(crate) fn open(&self) -> Result<(Journal<Memory>, OpenReport), OpenError> {
        self.open_on(&self.vfs)
    }

    pub(crate) fn open_on(&self, vfs: &Arc<dyn Vfs>) -> Result<(Journal<Memory>, OpenReport), OpenError> {
        let opened = opjournal_journal::open(Arc::clone(vfs), &self.dir, self.options.clone())?;
        let report = opened.report().clone();
        Ok((opened.start(Seq(0), Memory::default())?, report))
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::open(Arc::clone(&self.vfs), &self.dir, self.options.boot_id).expect("a reader")
    }

    /// Payloads of kind [`SAID`], by a reader.
    pub(crate) fn said(&self) -> Result<Vec<Vec<u8>>, ReadError> {
        let records: Result<Vec<Record>, ReadError> = self.reader().from(Seq(0))?.collect();
        Ok(records?.into_iter().filter(|record| record.kind == SAID).map(|record| record.payload).collect())
    }

    pub(crate) fn kinds(&self) -> Vec<u16> {
        self.reader().from(Seq(0)).expect("records").map(|record| record.expect("a record").kind).collect()
    }

    /// Names of the segments, in order.
    pub(crate) fn segments(&self) -> Vec<String> {
        let mut names = self.vfs.list(&self.dir).expect("names");
        names.retain(|name| name.ends_with(".seg"));
        names.sort_unstable();
        names
    }
}

pub(crate) fn say(journal: &Journal<Memory>, text: &[u8]) -> Result<Seq, AppendError> {
    journal.submit(Command::Say(text.to_vec())).and_then(|answer| answer).map(|seqs| seqs[0])
}

pub(crate) fn said(journal: &Journal<Memory>) -> Vec<Vec<u8>> {
    journal.query(|memory| memory.said.iter().map(|(_, text)| text.clone()).collect()).expect("a query")
}
