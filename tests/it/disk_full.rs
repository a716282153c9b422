//! Disks that fail and disks that are full, under real processes: nothing is acknowledged after a failed sync, and what
//! was begun is recorded to its end when there is no room for anything new.

use std::fs;

use protocol::event::Event;
use serde_json::{Value, json};

use crate::support::host::Host;
use crate::support::journal_events::entries;
use crate::support::judge;
use crate::support::operator::Operator;
use crate::support::process::{Call, Ended, text};
use crate::support::scenario::{Bench, THREE_STEPS, TRIAGE};
use rustix::process::Signal;

/// More syncs of segments than any one command makes.
const SYNCS_MAX: usize = 40;

/// A call whose nth sync of a segment fails, and the points that it passes.
fn with_failing_sync(bench: &Bench, arguments: &[String], nth: usize) -> (Ended, Vec<String>) {
    let log = bench.file("points");
    let call = bench.call(arguments).env("OPJOURNAL_TEST_FAIL_SYNC", nth.to_string());
    let ended = call.env("OPJOURNAL_TEST_POINTS", &log).run();
    let passed = fs::read_to_string(&log).expect("the points");
    (ended, passed.lines().map(str::to_owned).collect())
}

/// After the failure nothing is written to a segment or synced, and nothing is delivered.
fn stopped_for_good(ended: &Ended, passed: &[String]) {
    let after: Vec<&String> = passed.iter().skip_while(|point| *point != "failed sync").skip(1).collect();
    let forbidden = |point: &&&String| point.contains(".seg") || point.ends_with(" act");
    assert_eq!(after.iter().find(forbidden), None, "after a failed sync: {after:?}\n{ended}");
}

#[test]
fn a_failed_sync_ends_a_run_that_starts_and_reopening_goes_on_as_if_it_had_been_killed() {
    let mut codes = Vec::new();
    for nth in 0..SYNCS_MAX {
        let bench = Bench::new(&TRIAGE);
        let (ended, passed) = with_failing_sync(&bench, &bench.run_arguments(), nth);
        if !passed.iter().any(|point| point == "failed sync") {
            ended.must_exit(4);
            assert!(codes.iter().filter(|code| *code == "poisoned").count() >= 5, "{codes:?}");
            return;
        }
        stopped_for_good(&ended, &passed);
        // Only the record of the state on closing, which nobody was told of, may fail without making the answer untrue.
        if ended.exit != Some(4) {
            codes.push(ended.code());
            assert_eq!(ended.exit, Some(70), "{ended}");
        }
        let mut operator = Operator::undisturbed(&bench);
        operator.lead();
        judge::all_done_once(&bench, &operator.asked);
    }
    panic!("a command makes more than {SYNCS_MAX} syncs");
}

#[test]
fn a_failed_sync_in_a_decision_is_never_a_success_and_nothing_is_done_twice_afterwards() {
    for nth in 0..SYNCS_MAX {
        let bench = Bench::new(&TRIAGE);
        bench.call(&bench.run_arguments()).run().must_exit(4);
        bench.do_task(2);
        let item = bench.item();
        let arguments = bench.decide_live_arguments(&item, "continue", "the-key-of-the-continue");
        let (ended, passed) = with_failing_sync(&bench, &arguments, nth);
        let failed = passed.iter().any(|point| point == "failed sync");
        stopped_for_good(&ended, &passed);
        if ended.exit == Some(0) {
            judge::all_done_once(&bench, &[]);
            if failed {
                // The record of the state on closing, which nobody was told of.
                continue;
            }
            assert!(nth >= 5, "a decision makes only {nth} syncs");
            return;
        }
        assert!(failed, "{ended}");
        assert_eq!((ended.exit, ended.code().as_str()), (Some(70), "poisoned"), "{ended}");
        let mut operator = Operator::undisturbed(&bench).having_done(2);
        operator.lead();
        judge::all_done_once(&bench, &operator.asked);
    }
    panic!("a decision makes more than {SYNCS_MAX} syncs");
}

#[test]
fn a_full_disk_refuses_what_is_new_and_still_records_what_was_begun() {
    let bench = Bench::new(&THREE_STEPS);
    // A pause to fill the journal with.
    bench.call(&bench.run_arguments_as("request-of-the-filler")).run().must_exit(4);
    let filler = bench.item();
    bench.clinic.fill("/patients/p-004/notes", &[("text", "by hand"), ("client_ref", "first-person")]);
    let segment = bench.home.join("journal/00000000000000000000.seg");
    let limit = fs::metadata(&segment).expect("the segment").len();

    // In flight: the action was done, and the room for its outcome promised.
    let mut parameters = bench.parameters();
    for name in ["ref_a", "ref_b", "ref_c"] {
        parameters[name] = json!(format!("in-flight-{name}"));
    }
    let in_flight = bench.write("in-flight.json", &parameters).display().to_string();
    let start = with_parameters(&bench, "request-in-flight", &in_flight);
    let mut acting = Call::limited(&bench.home, &start, limit).stop_at("after act#1").start();
    acting.wait_until_stopped();

    // From here on the disk gives nothing more. Others use up what is left.
    let mut host = Host::start_limited(&bench, limit);
    let mut filled = 0;
    let refused = loop {
        let answer = host.decide(&filler, "escalate", &format!("one-more-escalation-{filled}"));
        if answer["error"].is_object() {
            break answer;
        }
        filled += 1;
        assert!(filled < 5000, "the disk is never full");
    };
    assert_eq!(text(&refused, "/error/code"), "disk_full", "{refused}");
    assert!(filled > 100, "the limit struck at once, after {filled}");
    // Refusals are told, however many, and do not eat what was promised.
    for n in 0..200 {
        let answer = host.decide(&filler, "escalate", &format!("no-more-escalation-{n}"));
        assert_eq!(text(&answer, "/error/code"), "disk_full", "{answer}");
    }

    // A new run is refused, clearly, and leaves nothing behind.
    let admitted = count(&bench, |event| matches!(event, Event::RunAdmitted(_)));
    let another = with_parameters(&bench, "request-that-comes-late", &in_flight);
    let late = Call::limited(&bench.home, &another, limit).run().must_exit(73);
    let error = late.document()["error"].clone();
    assert_eq!(error["code"], "disk_full", "{late}");
    assert!(text(&error, "/next_step").contains("Free some space"), "{late}");
    assert_eq!(count(&bench, |event| matches!(event, Event::RunAdmitted(_))), admitted);

    // The outcome of what was begun is recorded.
    let receipts = |event: &Event| matches!(event, Event::StepReceipt(_));
    let before = count(&bench, receipts);
    acting.signal(Signal::CONT);
    let ended = acting.wait();
    assert!([Some(4), Some(73)].contains(&ended.exit), "{ended}");
    assert_eq!(count(&bench, receipts), before + 1, "{ended}");
    assert_eq!(bench.clinic.actuations().get("in-flight-ref_a"), Some(&1));
    host.close();
    judge::stands(&bench);

    // With room again the run goes on from there; the step in flight is not done again.
    let run = bench.call(&start).run().must_exit(4).document();
    assert_eq!((&run["replayed"], &run["run"]["step_number"]), (&json!(true), &json!(2)), "{run}");
    judge::nothing_twice(&bench);
    judge::stands(&bench);
}

/// The request with other parameters.
fn with_parameters(bench: &Bench, request_id: &str, file: &str) -> Vec<String> {
    let mut arguments = bench.run_arguments_as(request_id);
    let place = arguments.iter().position(|word| word == "--params").expect("parameters") + 1;
    arguments[place] = file.to_owned();
    arguments
}

fn count(bench: &Bench, wanted: impl Fn(&Event) -> bool) -> usize {
    entries(&bench.home).iter().filter(|entry| wanted(&entry.event)).count()
}

#[test]
fn a_home_for_which_there_is_no_room_at_all_is_refused_and_can_be_made_later() {
    let bench = Bench::new(&TRIAGE);
    let refused = Call::limited(&bench.home, &bench.run_arguments(), 4096).run().must_exit(73);
    assert!(["disk_full", "cannot_write"].contains(&refused.code().as_str()), "{refused}");
    let mut operator = Operator::undisturbed(&bench);
    let run: Value = operator.lead();
    assert_eq!(run["execution_outcome"], "VERIFIED");
    judge::all_done_once(&bench, &operator.asked);
}
