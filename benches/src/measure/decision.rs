//! A whole `continue`: from the request to the recorded answer, the live state read by an executor that does nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::paused::Paused;
use crate::plain;
use crate::raw::Raw;
use crate::report::{Aim, Row, Unit};
use crate::stats::{Turns, median};

/// Decisions in one turn.
const TURN: usize = 20;
/// Turns at most.
const TURNS_MAX: usize = 15;

/// Decisions beside raw writes, for about `budget`; preparing the runs counts there and not in the figures.
#[must_use]
pub fn decisions(dir: &Path, budget: Duration) -> Vec<Row> {
    let mut raw = Raw::new(dir, plain::BLOCK_BYTES, TURN * TURNS_MAX);
    let mut paused = Paused::new(dir);
    let (mut turns, mut syncs, mut firsts, mut lasts) =
        (Turns::default(), Vec::new(), Vec::new(), Vec::new());
    let start = Instant::now();
    for turn in 0..TURNS_MAX {
        paused.prepare(TURN);
        let beside = raw.turn(TURN);
        let ours: Vec<Duration> = (0..TURN)
            .map(|_| {
                let (took, synced) = paused.decide();
                syncs.push(synced as f64);
                took
            })
            .collect();
        turns.note(&beside, &ours);
        if turn < 2 { &mut firsts } else { &mut lasts }.extend(ours.iter().map(Duration::as_secs_f64));
        if turn >= 2 && start.elapsed() > budget {
            break;
        }
    }
    paused.close();
    let ((raw_p50, _), (p50, p99), ratio) = (turns.raw(), turns.ours(), turns.ratio());
    let most = syncs.iter().copied().fold(0.0, f64::max);
    vec![
        Row::new("`continue`, whole, no-op executor, p50", p50, Unit::Seconds)
            .beside("raw", raw_p50)
            .ratio(ratio)
            .aim(Aim::RatioAtMost(3.0)),
        Row::new("`continue`, p99", p99, Unit::Seconds),
        // A third where the segment had to grow, about once in 200 decisions at first and ever more rarely.
        Row::new("`continue`, syncs, median", median(&mut syncs), Unit::Syncs)
            .beside("the most of any", most)
            .aim(Aim::AtMost(2.0)),
        Row::new("`continue`, p50 of the later ones", median(&mut lasts), Unit::Seconds)
            .beside("of the first 40", median(&mut firsts)),
    ]
}
