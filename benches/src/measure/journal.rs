//! A journal of many events: folded again, opened with and without a snapshot, verified.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::service::{Engine, EngineOptions, View, story};
use journal::Reader;
use journal::verify::{Integrity, verify};
use journal::vfs::os::{self, OsVfs};
use protocol::ids::Seq;

use crate::report::{Aim, Row, Unit};
use crate::stats::{median, seconds};

/// How often each is measured.
const TIMES: usize = 3;

fn times(mut act: impl FnMut() -> Duration) -> f64 {
    let times: Vec<_> = (0..TIMES).map(|_| act()).collect();
    median(&mut seconds(&times))
}

fn reader(home: &Path) -> Reader {
    let boot = os::boot_id().expect("a boot id");
    Reader::open(Arc::new(OsVfs), &home.join("journal"), boot).expect("a reader")
}

/// Reads the whole journal without decoding its records; how many there are, and how long it took.
#[must_use]
pub fn read(home: &Path) -> (u64, Duration) {
    let start = Instant::now();
    let records = reader(home).from(Seq(0)).expect("records");
    let records = records.inspect(|record| assert!(record.is_ok(), "the journal is whole")).count();
    (records as u64, start.elapsed())
}

/// Folds the whole journal again, as `replay` does; how many events there are, and how long it took.
///
/// # Panics
/// If a recorded state is not the folded one.
#[must_use]
pub fn replay(home: &Path) -> (u64, Duration) {
    let start = Instant::now();
    let replayed = story::replay(&reader(home), &mut |_, _| ControlFlow::Continue(()));
    let replayed = replayed.expect("the journal is whole");
    assert_eq!(replayed.first_different, None);
    (replayed.events, start.elapsed())
}

/// Reads on to the end, for those who only look.
#[must_use]
pub fn view(home: &Path) -> Duration {
    let start = Instant::now();
    drop(View::open(home, Arc::new(OsVfs)).expect("a view"));
    start.elapsed()
}

/// Opens for writing, without closing.
fn open(home: &Path) -> (Engine, Duration) {
    let options = EngineOptions { snapshot_every: 1, ..EngineOptions::new(home) };
    let start = Instant::now();
    let engine = Engine::open(options).expect("an engine");
    (engine, start.elapsed())
}

/// Replay, opening and digest of the state, of a home that [`crate::history::write`] made. The last opening leaves a
/// snapshot.
#[must_use]
pub fn rows(home: &Path) -> Vec<Row> {
    let events = replay(home).0;
    let many = count(events);
    let reading = times(|| read(home).1);
    let replaying = times(|| replay(home).1);
    let opening = times(|| open(home).1);
    let (engine, _) = open(home);
    engine.close().expect("a close with a snapshot");
    let with_snapshot = times(|| open(home).1);
    let looking = times(|| view(home));
    let view = View::open(home, Arc::new(OsVfs)).expect("a view");
    let digest = times(|| {
        let start = Instant::now();
        std::hint::black_box(view.state().digest());
        start.elapsed()
    });
    let open_runs = view.state().runs.len();
    vec![
        Row::new(format!("full replay of {many} events"), events as f64 / replaying, Unit::PerSecond)
            .beside("reading alone", events as f64 / reading)
            .aim(Aim::AtLeast(1e6)),
        Row::new(format!("opening with a snapshot, {many} events"), with_snapshot, Unit::Seconds)
            .beside("without", opening)
            .aim(Aim::AtMost(1.0)),
        Row::new(format!("looking with a snapshot, {many} events"), looking, Unit::Seconds),
        Row::new(format!("digest of a state with {open_runs} open runs"), digest, Unit::Seconds),
    ]
}

/// Verifies the journal in `home`; its bytes, and how long it took.
///
/// # Panics
/// If it is not intact.
#[must_use]
pub fn verified(home: &Path) -> (u64, Duration) {
    let dir = home.join("journal");
    let start = Instant::now();
    let verdict = verify(&OsVfs, &dir, os::boot_id().expect("a boot id"), &mut |_, _| {}).expect("a verdict");
    let took = start.elapsed();
    assert_eq!(verdict.integrity, Integrity::Intact);
    (bytes(&dir), took)
}

/// Bytes of the segments.
fn bytes(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("a name"));
    let segments =
        entries.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "seg"));
    segments.map(|entry| entry.metadata().expect("metadata").len()).sum()
}

/// Verification, with the pages in the system's cache.
#[must_use]
pub fn verification(home: &Path) -> Vec<Row> {
    let size = bytes(&home.join("journal"));
    let took = times(|| verified(home).1);
    let what = format!("verify, {:.0} MB in the page cache", size as f64 / 1e6);
    vec![Row::new(what, size as f64 / took, Unit::BytesPerSecond)]
}

fn count(events: u64) -> String {
    if events >= 1_000_000 {
        format!("{:.1} M", events as f64 / 1e6)
    } else {
        format!("{} k", events / 1_000)
    }
}
