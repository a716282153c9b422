//! Verifying a whole journal, in bytes a second.
#![allow(missing_docs, reason = "criterion's macros define functions")]
#![allow(clippy::expect_used, reason = "a measurement has nobody to report an error to")]

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use opjournal_benches::history;
use opjournal_benches::measure::journal;

const EVENTS: u64 = 100_000;

fn verify(criterion: &mut Criterion) {
    let home = tempfile::tempdir_in(".").expect("a folder");
    let _written = history::write(home.path(), EVENTS);
    let (bytes, _) = journal::verified(home.path());
    let mut group = criterion.benchmark_group("verify");
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    group.throughput(Throughput::Bytes(bytes));
    group.bench_function("journal", |bencher| {
        bencher.iter_custom(|times| (0..times).map(|_| journal::verified(home.path()).1).sum());
    });
    group.finish();
}

criterion_group!(benches, verify);
criterion_main!(benches);
