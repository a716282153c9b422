//! Reading and folding a whole journal, in events a second.
#![allow(missing_docs, reason = "criterion's macros define functions")]
#![allow(clippy::expect_used, reason = "a measurement has nobody to report an error to")]

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use opjournal_benches::history;
use opjournal_benches::measure::journal;

const EVENTS: u64 = 50_000;

fn replay(criterion: &mut Criterion) {
    let home = tempfile::tempdir_in(".").expect("a folder");
    let written = history::write(home.path(), EVENTS);
    let mut group = criterion.benchmark_group("replay");
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    group.throughput(Throughput::Elements(written.events));
    group.bench_function("read", |bencher| {
        bencher.iter_custom(|times| (0..times).map(|_| journal::read(home.path()).1).sum());
    });
    group.bench_function("fold", |bencher| {
        bencher.iter_custom(|times| (0..times).map(|_| journal::replay(home.path()).1).sum());
    });
    group.finish();
}

criterion_group!(benches, replay);
criterion_main!(benches);
