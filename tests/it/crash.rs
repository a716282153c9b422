//! The program is killed with SIGKILL wherever it can matter, in processes of its own, on a real file system and against
//! a real application: after every operation on a file of the home, before every write to a segment, and around every
//! call of an executor. Then the same operator repeats the same request and goes on by what the program says. Each
//! time: everything is done exactly once, nothing uncertain is repeated without a proof, and the journal stands.
//!
//! The points are counted by a run that is not killed. One case alone: `OPJOURNAL_CRASH_ONLY=triage:57` (or
//! `three_steps:12,40` for two kills, `triage:57:torn` for a write of which only a half has reached the disk).

use std::fmt;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use protocol::event::Event;

use crate::support::journal_events::entries;
use crate::support::judge;
use crate::support::operator::Operator;
use crate::support::process::text;
use crate::support::scenario::{Bench, Scenario, THREE_STEPS, TRIAGE, named};

/// Fewer points than this mean that the harness has gone blind.
const POINTS_LEAST: usize = 60;
/// How far the second kill moves along the way back from an uncertain delivery.
const WAY_BACK: usize = 70;
/// Further cases with two kills anywhere, for each scenario.
const DOUBLE_KILLS: usize = 30;
/// So that the same pairs are drawn each time; `OPJOURNAL_CRASH_SEED` draws others.
const SEED: u64 = 20_260_131;

/// One scenario that is killed at one or two points.
#[derive(Clone)]
struct Case {
    scenario: &'static Scenario,
    kills: Vec<usize>,
    /// Whether of the write before the kill only a half has reached the disk.
    torn: bool,
    /// The point's name, as recorded.
    name: String,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kills: Vec<String> = self.kills.iter().map(usize::to_string).collect();
        let torn = if self.torn { ":torn" } else { "" };
        write!(f, "{}:{}{torn}", self.scenario.name, kills.join(","))
    }
}

#[test]
fn a_kill_at_any_point_of_the_demonstration_repeats_nothing_and_loses_nothing() {
    suite(&TRIAGE);
}

#[test]
fn a_kill_at_any_point_of_three_writes_and_two_pauses_repeats_nothing_and_loses_nothing() {
    suite(&THREE_STEPS);
}

/// What is recorded as it is admitted, without the live state: killed at any of its own points, then repeated.
#[test]
fn a_kill_at_any_point_of_what_ends_or_marks_a_pause_records_it_once() {
    for (action, exit, outcome) in [
        ("reject", 1, "REJECTED_BY_OPERATOR"),
        ("cancel", 1, "CANCELED"),
        ("escalate", 4, ""),
        ("teach", 4, ""),
    ] {
        let mut points = 0;
        loop {
            let bench = Bench::new(&TRIAGE);
            bench.call(&bench.run_arguments()).run().must_exit(4);
            let item = bench.item();
            let run = text(&item, "/run");
            let arguments = match action {
                "cancel" => vec!["cancel".to_owned(), run.clone()],
                _ => bench.decide_arguments(&item, action, "the-key-of-the-decision"),
            };
            let killed = bench.call(&arguments).kill_at(&points.to_string()).run();
            let case = format!("{action} at point {points}: {killed}");
            let repeated = bench.call(&arguments).run();
            match action {
                "cancel" => assert!([Some(exit), Some(2)].contains(&repeated.exit), "{case}{repeated}"),
                _ => assert_eq!(repeated.exit, Some(exit), "{case}{repeated}"),
            }
            let again = bench.call(&arguments).run();
            if action != "cancel" {
                assert_eq!(again.document()["decision"], repeated.document()["decision"], "{case}");
                assert_eq!(again.document()["replayed"], true, "{case}");
            }
            let shown = bench.call(&["runs", "show", &run]).run().must_exit(exit).document();
            assert_eq!(text(&shown, "/run/execution_outcome"), outcome, "{case}");
            let decided = entries(&bench.home).into_iter();
            let decided = decided.filter(|entry| matches!(entry.event, Event::DecisionRecorded(_))).count();
            assert_eq!(decided, usize::from(action != "cancel"), "{case}");
            judge::stands(&bench);
            if !killed.was_killed() {
                break;
            }
            points += 1;
        }
        assert!(points >= 8, "{action} has only {points} points");
    }
}

fn suite(scenario: &'static Scenario) {
    let begun = Instant::now();
    let cases = match std::env::var("OPJOURNAL_CRASH_ONLY") {
        Ok(only) => match parse(&only) {
            case if case.scenario.name == scenario.name => vec![case],
            _ => return,
        },
        Err(_) => {
            let points = record(scenario, &[]);
            let cases = cases(scenario, &points);
            println!("{}: {} points, {} cases", scenario.name, points.len(), cases.len());
            cases
        }
    };
    let failures = in_parallel(&cases);
    println!("{}: {} cases in {:.1} s", scenario.name, cases.len(), begun.elapsed().as_secs_f32());
    let shown = failures.join("\n\n");
    assert!(failures.is_empty(), "{} of {} cases failed\n\n{shown}", failures.len(), cases.len());
}

/// A run that is killed at these points, or not at all: which points there are, in order.
fn record(scenario: &'static Scenario, kills: &[usize]) -> Vec<String> {
    let bench = Bench::new(scenario);
    let log = bench.file("points");
    let mut operator = Operator::new(&bench, variables(&log, kills), Box::new(|_| {}));
    let run = operator.lead();
    assert_eq!(run["execution_outcome"], "VERIFIED", "{run}\n{}", operator.told);
    judge::all_done_once(&bench, &operator.asked);
    let points = lines(&log);
    assert!(points.len() >= POINTS_LEAST, "only {} points:\n{}", points.len(), points.join("\n"));
    points
}

fn cases(scenario: &'static Scenario, points: &[String]) -> Vec<Case> {
    let case =
        |kills: Vec<usize>, torn: bool, name: &String| Case { scenario, kills, torn, name: name.clone() };
    let mut cases = Vec::new();
    // The way back from a delivery without a receipt: the resume, the reconcile, and what follows. Where nothing was
    // delivered, each case waits for the delivery's time limit, so only some of them; they begin first.
    for (place, every) in [("before act", 6), ("after act", 1)] {
        let first = points.iter().position(|name| name == place).expect("a delivery");
        let way = record(scenario, &[first]);
        let back = way.iter().enumerate().skip(first + 1).take(WAY_BACK).step_by(every);
        cases.extend(back.map(|(second, name)| case(vec![first, second], false, name)));
    }
    cases.extend(points.iter().enumerate().map(|(index, name)| case(vec![index], false, name)));
    let torn = points.iter().enumerate().filter(|(_, name)| written_block(name).is_some());
    cases.extend(torn.map(|(index, name)| case(vec![index], true, name)));
    let seed = std::env::var("OPJOURNAL_CRASH_SEED").map_or(SEED, |seed| seed.parse().expect("a number"));
    println!("{}: OPJOURNAL_CRASH_SEED={seed}", scenario.name);
    let mut random = Random(seed);
    for _ in 0..DOUBLE_KILLS {
        let first = random.below(points.len());
        // The second kill falls into what follows the first: recovery, resume, or further on.
        let second = first + 1 + random.below(40);
        cases.push(case(vec![first, second], false, &points[first]));
    }
    cases
}

fn variables(log: &Path, kills: &[usize]) -> Vec<(&'static str, String)> {
    let kills: Vec<String> = kills.iter().map(usize::to_string).collect();
    let points = ("OPJOURNAL_TEST_POINTS", log.display().to_string());
    vec![points, ("OPJOURNAL_TEST_KILL_AT", kills.join(","))]
}

fn parse(only: &str) -> Case {
    let mut parts = only.split(':');
    let scenario = named(parts.next().unwrap_or_default());
    let kills = parts.next().expect("an index after the scenario").split(',');
    let kills = kills.map(|index| index.parse().expect("an index")).collect();
    Case { scenario, kills, torn: parts.next() == Some("torn"), name: "(given)".to_owned() }
}

/// Runs all cases on the cores there are. Some wait for a time limit to pass, so more are under way than cores.
fn in_parallel(cases: &[Case]) -> Vec<String> {
    let workers = std::thread::available_parallelism().map_or(2, usize::from) * 2;
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(why) = one(case) {
                        failures.lock().expect("no panic").push(why);
                    }
                }
            });
        }
    });
    failures.into_inner().expect("no panic")
}

/// One case; in the error, everything that is needed to look at it.
fn one(case: &Case) -> Result<(), String> {
    let bench = Bench::new(case.scenario);
    let log = bench.file("points");
    let after_kill = |bench: &Bench| {
        judge::nothing_twice(bench);
        if case.torn {
            tear(&bench.home, lines(&log).last().expect("a point"), |bytes| bytes / 2);
        }
    };
    let mut operator = Operator::new(&bench, variables(&log, &case.kills), Box::new(after_kill));
    let judged = catch_unwind(AssertUnwindSafe(|| {
        let run = operator.lead();
        assert_eq!(run["execution_outcome"], "VERIFIED", "{run}");
        assert!(operator.kills >= 1, "nothing was killed");
        judge::all_done_once(&bench, &operator.asked);
    }));
    let Err(panic) = judged else { return Ok(()) };
    let why = panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_default();
    let told = std::mem::take(&mut operator.told);
    drop(operator);
    let passed = lines(&log);
    let at = case.kills.first().and_then(|index| passed.get(*index)).cloned().unwrap_or_default();
    let kept = bench.keep();
    Err(format!(
        "OPJOURNAL_CRASH_ONLY={case} at `{at}` (recorded as `{}`)\n{why}\n{told}kept: {}",
        case.name,
        kept.display()
    ))
}

/// Of the block that was written last, and never acknowledged, only a part is kept.
pub(crate) fn tear(home: &Path, point: &str, kept: impl Fn(u64) -> u64) {
    let Some((file, offset, bytes)) = written_block(point) else { return };
    let segment = fs::OpenOptions::new().write(true).open(home.join("journal").join(file));
    // A segment that does not have its name yet counts for nothing.
    let Ok(segment) = segment else { return };
    let kept = kept(bytes);
    let zeros = vec![0; (bytes - kept) as usize];
    segment.write_all_at(&zeros, offset + kept).expect("the segment");
}

/// File, offset and length of a block that was written to a segment and not yet synced. The segment may still be known
/// by the name under which it was made.
fn written_block(point: &str) -> Option<(&str, u64, u64)> {
    let (file, place) = point.strip_prefix("after write ")?.split_once(' ')?;
    let file = file.strip_suffix(".tmp").unwrap_or(file);
    let (offset, bytes) = place.split_once('+')?;
    let (offset, bytes) = (offset.parse::<u64>().ok()?, bytes.parse().ok()?);
    (file.ends_with(".seg") && offset > 0).then_some((file, offset, bytes))
}

fn lines(log: &Path) -> Vec<String> {
    fs::read_to_string(log).expect("the points").lines().map(str::to_owned).collect()
}

/// SplitMix64: the same draws for the same seed, on every platform.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}
