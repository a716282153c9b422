//! Writes the golden journal of format 1.0, the same bytes every time:
//! `cargo run -p opjournal-journal --example make_golden -- DIR`.
#![allow(dead_code, clippy::unwrap_used, reason = "a test includes this file and lets it panic")]

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use opjournal_journal::vfs::os::OsVfs;
use opjournal_journal::{
    AppendError, Commit, Draft, Journal, LookupKey, Machine, Options, Record, UnknownRecord,
};
use protocol::ids::{BootId, InstanceId, JournalId, Seq};
use protocol::time::UnixMillis;

/// The boot that the synced mark is of.
pub(crate) const BOOT: BootId = BootId([0xb2; 16]);

/// Records in three blocks per segment or so, of every shape.
pub(crate) fn drafts() -> Vec<Vec<Draft>> {
    let draft = |n: u64, keys: u8, len: usize, optional: bool| Draft {
        kind: 100 + n as u16,
        version: 1 + (n % 3) as u8,
        optional,
        time: UnixMillis(1_700_000_000_000 + n),
        keys: (0..keys).map(|key| LookupKey::new(key, &n.to_le_bytes())).collect(),
        payload: (0..len).map(|at| (at as u64 * 7 + n) as u8).collect(),
    };
    vec![
        vec![draft(0, 0, 0, false)],
        vec![draft(1, 1, 1, false), draft(2, 2, 7, true), draft(3, 0, 8, false)],
        vec![draft(4, 15, 300, false)],
        vec![draft(5, 3, 900, true)],
        vec![draft(6, 1, 9, false), draft(7, 1, 10, false)],
        vec![draft(8, 0, 31, false)],
    ]
}

struct Nothing;

impl Machine for Nothing {
    type Command = Vec<Draft>;
    type Answer = Result<Seq, AppendError>;

    fn apply(&mut self, _record: &Record) -> Result<(), UnknownRecord> {
        Ok(())
    }

    fn decide(&mut self, drafts: Vec<Draft>, commit: &mut Commit<'_>) -> Self::Answer {
        commit.push_all(&drafts)
    }
}

fn open(dir: &Path, boot_id: BootId) -> Journal<Nothing> {
    let mut options =
        Options::new(InstanceId([0xa1; 16]), boot_id, Arc::new(|| UnixMillis(1_700_000_000_500)));
    options.journal_id = Some(JournalId([0x17; 16]));
    options.segment_bytes_max = 4_096;
    opjournal_journal::open(Arc::new(OsVfs), dir, options).unwrap().start(Seq(0), Nothing).unwrap()
}

/// Writes the journal: all drafts, then a torn write of an earlier boot that recovery cut, then the first draft again.
pub(crate) fn write(dir: &Path) {
    let journal = open(dir, BootId([0xb1; 16]));
    for drafts in drafts() {
        journal.submit(drafts).unwrap().unwrap();
    }
    let last = journal.reader().info().unwrap().segments.pop().unwrap();
    journal.close().unwrap();
    let bytes = std::fs::read(dir.join(&last.file)).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap().next_multiple_of(8);
    let file = OpenOptions::new().write(true).open(dir.join(&last.file)).unwrap();
    file.write_all_at(b"OPBK, and then the power failed", end as u64).unwrap();
    let journal = open(dir, BOOT);
    journal.submit(drafts().swap_remove(0)).unwrap().unwrap();
    journal.close().unwrap();
}

fn main() {
    let Some(dir) = std::env::args().nth(1) else {
        eprintln!("usage: make_golden DIR");
        std::process::exit(64);
    };
    write(dir.as_ref());
}
