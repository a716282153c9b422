//! Durable appends: alone, and many at once.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::plain;
use crate::raw::Raw;
use crate::report::{Aim, Row, Unit};
use crate::stats::{Turns, median};

/// Operations in one turn.
const TURN: usize = 50;
/// Appends of all producers together in one turn.
const CROWD: usize = 3_200;
/// Turns of each kind, at most.
const TURNS_MAX: usize = 60;

/// One producer beside raw writes, for about `budget`.
#[must_use]
pub fn lone(dir: &Path, budget: Duration) -> Vec<Row> {
    let mut raw = Raw::new(dir, plain::BLOCK_BYTES, TURN * TURNS_MAX);
    let (journal, _) = plain::open(&dir.join("lone"));
    let mut turns = Turns::default();
    // Caches, and the first growth of the segment.
    raw.turn(TURN);
    for _ in 0..TURN {
        plain::append(&journal);
    }
    let start = Instant::now();
    for _ in 0..TURNS_MAX {
        let beside = raw.turn(TURN);
        let ours: Vec<_> = (0..TURN).map(|_| plain::append(&journal)).collect();
        turns.note(&beside, &ours);
        if start.elapsed() > budget {
            break;
        }
    }
    journal.close().expect("a close");
    let ((raw_p50, raw_p99), (p50, p99), ratio) = (turns.raw(), turns.ours(), turns.ratio());
    vec![
        Row::new("durable append, 1 producer, p50", p50, Unit::Seconds)
            .beside("raw", raw_p50)
            .ratio(ratio)
            .aim(Aim::RatioAtMost(1.15)),
        Row::new("durable append, 1 producer, p99", p99, Unit::Seconds).beside("raw", raw_p99),
    ]
}

/// 8 and 64 producers beside raw writes of one, for about `budget`.
#[must_use]
pub fn crowds(dir: &Path, budget: Duration) -> Vec<Row> {
    let mut raw = Raw::new(dir, plain::BLOCK_BYTES, TURN * TURNS_MAX);
    let (journal, _) = plain::open(&dir.join("crowds"));
    let crowds = [(8, None), (64, Some(Aim::RatioAtLeast(20.0)))];
    let (mut beside, mut rates, mut ratios) =
        (Vec::new(), [const { Vec::new() }; 2], [const { Vec::new() }; 2]);
    let start = Instant::now();
    for _ in 0..TURNS_MAX {
        for (n, (producers, _)) in crowds.iter().enumerate() {
            let took: Duration = raw.turn(TURN).iter().sum();
            let raw_rate = TURN as f64 / took.as_secs_f64();
            let rate = plain::rate(&journal, *producers, CROWD / producers);
            beside.push(raw_rate);
            rates[n].push(rate);
            ratios[n].push(rate / raw_rate);
        }
        if start.elapsed() > budget {
            break;
        }
    }
    journal.close().expect("a close");
    let beside = median(&mut beside);
    let row = |n: usize, (producers, aim): (usize, Option<Aim>)| {
        let what = format!("durable appends, {producers} producers");
        let (rate, ratio) = (median(&mut rates[n].clone()), median(&mut ratios[n].clone()));
        Row { aim, ..Row::new(what, rate, Unit::PerSecond).beside("raw, 1 producer", beside).ratio(ratio) }
    };
    crowds.into_iter().enumerate().map(|(n, crowd)| row(n, crowd)).collect()
}
