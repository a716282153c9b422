//! One durable append, beside a raw write of the same size.
#![allow(missing_docs, reason = "criterion's macros define functions")]
#![allow(clippy::expect_used, reason = "a measurement has nobody to report an error to")]

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use opjournal_benches::plain;
use opjournal_benches::raw::Raw;

fn append(criterion: &mut Criterion) {
    let dir = tempfile::tempdir_in(".").expect("a folder");
    let mut raw = Raw::new(dir.path(), plain::BLOCK_BYTES, 4_096);
    let (journal, _) = plain::open(&dir.path().join("journal"));
    let mut group = criterion.benchmark_group("durable append");
    group.sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    group.bench_function("raw", |bencher| {
        bencher.iter_custom(|times| (0..times).map(|_| raw.write()).sum());
    });
    group.bench_function("1 producer", |bencher| {
        bencher.iter_custom(|times| (0..times).map(|_| plain::append(&journal)).sum());
    });
    for producers in [8, 64] {
        group.bench_function(format!("{producers} producers"), |bencher| {
            bencher.iter_custom(|times| {
                let each = (times as usize).div_ceil(producers);
                Duration::from_secs_f64(times as f64 / plain::rate(&journal, producers, each))
            });
        });
    }
    group.finish();
    journal.close().expect("a close");
}

criterion_group!(benches, append);
criterion_main!(benches);
