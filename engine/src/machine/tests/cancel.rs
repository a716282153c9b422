//! `cancel RUN`: stops before the next delivery, and never rewrites an uncertain one. Source: RULINGS 39.

use protocol::command::{Command, LiveFinding};
use protocol::decision::Action;
use protocol::delivery::{EffectStatus, ReceiptOutcome};
use protocol::event::{CheckpointKind, StepFacts};
use protocol::ids::RunId;
use protocol::pause::Category;
use protocol::time::Millis;

use crate::machine::step::BEGIN_WITHIN;

use super::bench::{A, B, Bench, acting, attended, author, finding, readings, verified, word};

fn cancel(bench: &mut Bench, run: RunId) -> alloc::string::String {
    word(&bench.say(Command::Cancel { run, author: author() }))
}

#[test]
fn a_run_at_rest_ends_at_once() {
    let mut fresh = Bench::new();
    let run = fresh.started(1);
    assert_eq!(cancel(&mut fresh, run), "CANCELED");
    assert_eq!(cancel(&mut fresh, run), "run_finished");
    let (mut paused, run) = Bench::paused_at(&attended(0));
    assert_eq!(cancel(&mut paused, run), "CANCELED");
    assert!(paused.state.attention.is_empty() && paused.state.keys.is_empty());
    assert_eq!(cancel(&mut Bench::new(), run), "unknown_run");
}

#[test]
fn a_live_holder_ends_it_at_its_next_command() {
    type Next = fn(&mut Bench, RunId) -> alloc::string::String;
    let read = StepFacts { acts: false, effects: 0, ..acting(0) };
    let cases: [(&str, Next); 4] = [
        ("at the boundary", |bench, run| {
            let token = bench.run(run).lease.unwrap().token;
            word(&bench.say(Bench::begin(run, token, &acting(0))))
        }),
        ("at a checkpoint", |bench, run| {
            let token = bench.run(run).lease.unwrap().token;
            let read = StepFacts { acts: false, effects: 0, ..acting(0) };
            word(&bench.say(Bench::commit(run, token, &read, CheckpointKind::Read)))
        }),
        ("at a stop", |bench, run| {
            let token = bench.run(run).lease.unwrap().token;
            let stop =
                Command::Stop { run, token, step: attended(0), finding: finding(Category::AttendedStep) };
            word(&bench.say(stop))
        }),
        ("by its death", |bench, run| {
            bench.dies(A);
            word(&bench.acquire(run, false))
        }),
    ];
    assert!(!read.acts);
    for (case, next) in cases {
        let mut bench = Bench::new();
        let run = bench.started(2);
        bench.acquired(run);
        bench.me = B;
        assert_eq!(cancel(&mut bench, run), "recorded", "{case}");
        assert_eq!(cancel(&mut bench, run), "recorded", "{case}: asking again changes nothing");
        bench.me = A;
        assert_eq!(next(&mut bench, run), "CANCELED", "{case}");
        assert!(bench.state.runs.is_empty() && bench.replays(), "{case}");
    }
}

#[test]
fn a_delivery_under_way_is_never_rewritten() {
    // While it is open, uncertain, and after its holder died, the run stays; once settled, it ends.
    for (case, settled, want) in [
        ("confirmed", LiveFinding::Verified(verified(&acting(0))), "completed"),
        ("absent", LiveFinding::Absent(readings(&acting(0), EffectStatus::Absent)), "not_delivered"),
    ] {
        let (mut bench, run, token, _) = Bench::crossed(&acting(0));
        bench.me = B;
        assert_eq!(cancel(&mut bench, run), "recorded", "{case}");
        assert_eq!(
            word(&bench.clone().at(A).say(Bench::begin(run, token, &acting(0)))),
            "wrong_phase",
            "{case}"
        );
        bench.dies(A);
        assert_eq!(cancel(&mut bench, run), "paused", "{case}");
        bench.passes(Millis(BEGIN_WITHIN.0 + 1_500));
        let carried = bench.carried_out(run, Action::Reconcile, "reconcile");
        let at = bench.state.next;
        assert_eq!(word(&bench.finish(run, carried, settled)), want, "{case}");
        assert!(bench.state.runs.is_empty(), "{case}: it ends in the same block");
        assert!(bench.names_since(at).contains(&"delivery_settled"), "{case}");
    }
}

#[test]
fn a_step_that_says_it_acted_is_verified_before_the_end() {
    let (mut bench, run, token, delivery) = Bench::crossed(&acting(0));
    bench.say(Bench::receipt(run, token, delivery, ReceiptOutcome::Acted));
    bench.say(Command::Release { run, token });
    assert_eq!(cancel(&mut bench, run), "recorded");
    let token = bench.acquired(run);
    assert_eq!(word(&bench.say(Bench::commit(run, token, &acting(0), CheckpointKind::Engine))), "CANCELED");
}

#[test]
fn a_decision_under_way_keeps_its_outcome_and_the_run_then_ends() {
    for (finding, want) in [
        (LiveFinding::Verified(verified(&attended(0))), "completed"),
        (LiveFinding::NotVerified, "not_verified"),
    ] {
        let (mut bench, run) = Bench::paused_at(&attended(0));
        let request = bench.request(run, Action::Continue, "k");
        let carried = bench.carried_out(run, Action::Continue, "k");
        bench.me = B;
        assert_eq!(cancel(&mut bench, run), "recorded");
        bench.me = A;
        assert_eq!(word(&bench.finish(run, carried, finding)), want);
        assert!(bench.state.runs.is_empty());
        assert_eq!(word(&bench.say(Bench::decide_command(request))), "replayed");
    }
}
