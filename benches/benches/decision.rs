//! A whole `continue` with an executor that does nothing, beside a raw write.
#![allow(missing_docs, reason = "criterion's macros define functions")]
#![allow(clippy::expect_used, reason = "a measurement has nobody to report an error to")]

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use opjournal_benches::paused::Paused;
use opjournal_benches::plain;
use opjournal_benches::raw::Raw;

fn decision(criterion: &mut Criterion) {
    let dir = tempfile::tempdir_in(".").expect("a folder");
    let mut raw = Raw::new(dir.path(), plain::BLOCK_BYTES, 4_096);
    let mut paused = Paused::new(dir.path());
    let mut group = criterion.benchmark_group("decision");
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    group.bench_function("raw", |bencher| {
        bencher.iter_custom(|times| (0..times).map(|_| raw.write()).sum());
    });
    // Each decision has a run of its own, made beforehand and not measured.
    group.bench_function("continue", |bencher| {
        bencher.iter_custom(|times| {
            (0..times)
                .map(|_| {
                    paused.prepare(1);
                    paused.decide().0
                })
                .sum()
        });
    });
    group.finish();
    paused.close();
}

criterion_group!(benches, decision);
criterion_main!(benches);
