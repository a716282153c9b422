//! A journal whose machine does nothing, for the cost of the journal alone.

use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use journal::format::{block, record};
use journal::vfs::os::{self, OsVfs};
use journal::{AppendError, Commit, Draft, Journal, Machine, Options, Record, UnknownRecord};
use protocol::ids::{InstanceId, Seq};
use protocol::time::UnixMillis;

/// Bytes of the payload that is appended.
pub const PAYLOAD_BYTES: usize = 200;

/// Bytes of the block that such an append writes.
pub const BLOCK_BYTES: usize =
    (block::HEADER_BYTES + record::HEADER_BYTES + PAYLOAD_BYTES).next_multiple_of(8);

/// Appends what it is told.
pub struct Nothing;

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

/// The process that all records of a benchmark name.
pub const PRODUCER: InstanceId = InstanceId([0xb; 16]);

/// A journal in `dir`, and the sequence of its next record.
#[must_use]
pub fn open(dir: &Path) -> (Journal<Nothing>, Seq) {
    let options = Options::new(PRODUCER, os::boot_id().expect("a boot id"), Arc::new(|| UnixMillis(0)));
    let opened = journal::open(Arc::new(OsVfs), dir, options).expect("a journal");
    let next = opened.next_seq();
    (opened.start(next, Nothing).expect("a start"), next)
}

/// One durable append.
pub fn append(journal: &Journal<Nothing>) -> Duration {
    let payload = vec![7; PAYLOAD_BYTES];
    let start = Instant::now();
    let draft =
        Draft { kind: 100, version: 1, optional: false, time: UnixMillis(0), keys: Vec::new(), payload };
    journal.submit(vec![draft]).expect("an answer").expect("a sequence");
    start.elapsed()
}

/// Appends of `producers` threads at once, `each` of them so many; how many a second came through together.
#[must_use]
pub fn rate(journal: &Journal<Nothing>, producers: usize, each: usize) -> f64 {
    let (ready, done) = (Barrier::new(producers + 1), Barrier::new(producers + 1));
    let took = std::thread::scope(|scope| {
        for _ in 0..producers {
            scope.spawn(|| {
                ready.wait();
                for _ in 0..each {
                    append(journal);
                }
                done.wait();
            });
        }
        ready.wait();
        let start = Instant::now();
        done.wait();
        start.elapsed()
    });
    (producers * each) as f64 / took.as_secs_f64()
}
