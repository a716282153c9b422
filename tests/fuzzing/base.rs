//! A small journal of several segments that everything starts from, and what can be asked of any folder.

use std::fmt::Display;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use journal::format::BLOCK_BYTES_MAX;
use journal::vfs::Vfs;
use journal::{
    AppendError, Commit, Draft, Journal, LookupKey, Machine, OpenError, OpenReport, Options, Reader, Record,
    UnknownRecord,
};
use protocol::ids::{BootId, InstanceId, JournalId, Seq};
use protocol::time::UnixMillis;

use super::disk::Disk;
use crate::{Judged, Violation, rule};

pub(super) const DIR: &str = "/journal";
pub(super) const BOOT: BootId = BootId([0xb0; 16]);
/// Small, so that a few records make several segments.
const SEGMENT_BYTES: u64 = 1_024;
const RECORDS: u8 = 16;
/// A reader may ask for one block and for one chunk, and for nothing of a size that the bytes themselves claim.
const READ_BYTES_MAX: usize = 2 * BLOCK_BYTES_MAX;

/// Appends texts; keeps nothing.
pub(super) struct Nothing;

impl Machine for Nothing {
    type Command = Vec<u8>;
    type Answer = Result<Seq, AppendError>;

    fn apply(&mut self, _record: &Record) -> Result<(), UnknownRecord> {
        Ok(())
    }

    fn decide(&mut self, payload: Vec<u8>, commit: &mut Commit<'_>) -> Self::Answer {
        let keys = vec![LookupKey::new(1, &payload), LookupKey::new(2, b"all")];
        commit.push(Draft { kind: 100, version: 1, optional: false, time: UnixMillis(7), keys, payload })
    }
}

/// A violation, where something could not even be set up.
pub(super) fn broken<E: Display>(what: &str) -> impl FnOnce(E) -> Violation {
    move |error| Violation(format!("{what}: {error}"))
}

pub(super) fn open(disk: &Disk) -> Result<(Journal<Nothing>, OpenReport), OpenError> {
    let mut options = Options::new(InstanceId([0xaa; 16]), BOOT, Arc::new(|| UnixMillis(5)));
    options.journal_id = Some(JournalId([0x11; 16]));
    options.segment_bytes_max = SEGMENT_BYTES;
    let opened = journal::open(Arc::new(disk.clone()), Path::new(DIR), options)?;
    let report = opened.report().clone();
    Ok((opened.start(Seq(0), Nothing)?, report))
}

pub(super) fn say(journal: &Journal<Nothing>, text: &[u8]) -> Result<Seq, AppendError> {
    journal.submit(text.to_vec()).and_then(|answer| answer)
}

/// What can be read, up to the first error.
pub(super) fn records(disk: &Disk) -> Vec<Record> {
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let reader = Reader::open(vfs, Path::new(DIR), BOOT);
    let records = reader.and_then(|reader| reader.from(Seq(0)));
    records.map_or_else(|_| Vec::new(), |records| records.map_while(Result::ok).collect())
}

/// The journal that everything starts from. It was closed: its mark is clean and says where it ends.
pub(super) fn base() -> Result<&'static (Disk, Vec<Record>), Violation> {
    static BASE: OnceLock<Result<(Disk, Vec<Record>), Violation>> = OnceLock::new();
    let made = || -> Result<_, Violation> {
        let disk = Disk::default();
        let (journal, _) = open(&disk).map_err(broken("making the base"))?;
        for n in 0..RECORDS {
            say(&journal, &[n; 24]).map_err(broken("filling the base"))?;
        }
        journal.close().map_err(broken("closing the base"))?;
        let records = records(&disk);
        rule(disk.paths().len() >= 4 && records.len() > usize::from(RECORDS), || {
            format!("the base has several segments, not {:?}", disk.paths())
        })?;
        Ok((disk, records))
    };
    BASE.get_or_init(made).as_ref().map_err(Clone::clone)
}

/// What holds for every folder, whatever is in it: what can be read has the numbers 0, 1, 2 …; each look-up and each
/// single read agrees with that; nobody allocated for a length that was only claimed.
pub(super) fn looks(disk: &Disk) -> Judged {
    let found = records(disk);
    for (n, record) in found.iter().enumerate() {
        rule(record.seq == Seq(n as u64), || format!("record {n} says that it is {}", record.seq))?;
    }
    if let Ok(reader) = Reader::open(Arc::new(disk.clone()), Path::new(DIR), BOOT) {
        let _ = reader.info();
        if let Some(last) = found.last() {
            let again = reader.read(last.seq).map_err(broken("reading a record again"))?;
            rule(again == *last, || format!("record {} reads differently by itself", last.seq))?;
            for key in &last.keys {
                let at = reader.lookup(key);
                rule(at.as_ref().map_or(true, |at| at.contains(&last.seq)), || {
                    format!("record {} is not under its key: {at:?}", last.seq)
                })?;
            }
        }
    }
    let largest = disk.largest_read();
    rule(largest <= READ_BYTES_MAX, || format!("a reader asked for {largest} bytes at once"))
}
