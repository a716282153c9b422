//! Prints the cost of a durable append beside raw `pwrite` + `fdatasync` on a zero-filled file, in one run:
//! `cargo run --release -p opjournal-journal --example append_probe -- [DIR]`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement has nobody to report an error to")]

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use opjournal_journal::vfs::os::{self, OsVfs};
use opjournal_journal::{AppendError, Commit, Draft, Journal, Machine, Options, Record, UnknownRecord};
use protocol::ids::{InstanceId, Seq};
use protocol::time::UnixMillis;

const PAYLOAD_BYTES: usize = 200;
const RAW_BLOCK_BYTES: usize = 320;
const LONE: usize = 3_000;
const TURN: usize = 50;
const ROUNDS: usize = 3;

struct Nothing;

impl Machine for Nothing {
    type Command = Vec<u8>;
    type Answer = Result<Seq, AppendError>;

    fn apply(&mut self, _record: &Record) -> Result<(), UnknownRecord> {
        Ok(())
    }

    fn decide(&mut self, payload: Vec<u8>, commit: &mut Commit<'_>) -> Self::Answer {
        commit.push(Draft {
            kind: 100,
            version: 1,
            optional: false,
            time: UnixMillis(0),
            keys: vec![],
            payload,
        })
    }
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[times.len() * percent / 100]
}

/// Raw writes and lone appends by turns, so that both meet the same noise of the machine.
fn by_turns(dir: &Path, journal: &Journal<Nothing>) -> (Vec<Duration>, Vec<Duration>) {
    let file = File::create(dir.join("raw")).unwrap();
    file.write_all_at(&vec![0; 4 << 20], 0).unwrap();
    file.sync_all().unwrap();
    let block = [7; RAW_BLOCK_BYTES];
    let (mut raw, mut lone) = (Vec::with_capacity(LONE), Vec::with_capacity(LONE));
    while raw.len() < LONE {
        for _ in 0..TURN {
            let start = Instant::now();
            file.write_all_at(&block, (raw.len() * RAW_BLOCK_BYTES) as u64).unwrap();
            file.sync_data().unwrap();
            raw.push(start.elapsed());
        }
        for _ in 0..TURN {
            let payload = vec![7; PAYLOAD_BYTES];
            let start = Instant::now();
            journal.submit(payload).unwrap().unwrap();
            lone.push(start.elapsed());
        }
    }
    (raw, lone)
}

fn many(journal: &Journal<Nothing>, producers: usize, each: usize) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..producers {
            scope.spawn(|| {
                for _ in 0..each {
                    journal.submit(vec![7; PAYLOAD_BYTES]).unwrap().unwrap();
                }
            });
        }
    });
    (producers * each) as f64 / start.elapsed().as_secs_f64()
}

fn main() {
    let place = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let dir = tempfile::tempdir_in(place).unwrap();
    let options = Options::new(InstanceId([1; 16]), os::boot_id().unwrap(), Arc::new(|| UnixMillis(0)));
    let opened = opjournal_journal::open(Arc::new(OsVfs), &dir.path().join("journal"), options).unwrap();
    let journal = opened.start(Seq(0), Nothing).unwrap();
    for _ in 0..ROUNDS {
        let (mut raw, mut lone) = by_turns(dir.path(), &journal);
        let raw_rate = raw.len() as f64 / raw.iter().sum::<Duration>().as_secs_f64();
        let (raw_p50, lone_p50) = (percentile(&mut raw, 50), percentile(&mut lone, 50));
        println!(
            "raw p50 {raw_p50:?} p99 {:?} | lone append p50 {lone_p50:?} p99 {:?} | ratio {:.3}",
            percentile(&mut raw, 99),
            percentile(&mut lone, 99),
            lone_p50.as_secs_f64() / raw_p50.as_secs_f64(),
        );
        for producers in [8, 64] {
            let rate = many(&journal, producers, 30_000 / producers);
            println!("  {producers} producers: {rate:.0}/s = {:.1} x raw ({raw_rate:.0}/s)", rate / raw_rate);
        }
    }
    journal.close().unwrap();
}
