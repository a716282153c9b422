//! Several processes on one home: leases that run out, that are fenced, and that are taken over at once from the dead.

use std::thread;
use std::time::{Duration, Instant};

use protocol::event::{Entry, Event, LeaseGranted};
use protocol::pause::Reason;
use protocol::refusal::RefusalCode;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::host::Host;
use crate::support::journal_events::entries;
use crate::support::judge;
use crate::support::operator::Operator;
use crate::support::process::{Ended, HANG, Running, text};
use crate::support::scenario::{Bench, THREE_STEPS, TRIAGE};

/// A lease that runs out soon after its step's own time limit.
const SHORT: [&str; 2] = ["--set-limit", "lease-grace=100ms"];
/// Between two attempts.
const AGAIN: Duration = Duration::from_millis(50);

#[test]
fn a_holder_that_was_stopped_beyond_its_lease_loses_it_and_writes_nothing_more() {
    let bench = Bench::new(&TRIAGE);
    let mut stopped = short_lease(&bench).stop_at("before check#1").start();
    stopped.wait_until_stopped();
    let second = until_free(&bench);
    assert_eq!(second.exit, Some(4), "the second process drives the run to its pause: {second}");

    wakes_up_fenced(&bench, stopped);
    let mut operator = Operator::undisturbed(&bench);
    operator.lead();
    judge::all_done_once(&bench, &operator.asked);
}

#[test]
fn a_holder_that_was_stopped_before_its_delivery_is_never_assumed_not_to_have_acted() {
    let (bench, stopped) = stopped_at("before act#1");

    // Nothing is there, and much time passes, but the stopped process may still act.
    let item = bench.item();
    for attempt in 0.. {
        let key = format!("a-reconcile-too-soon-{attempt}");
        let refused = bench.call(&bench.decide_live_arguments(&item, "reconcile", &key)).run().must_exit(3);
        assert_eq!(refused.code(), "delivery_uncertain", "{refused}");
        match refused.document()["error"]["retry_after_ms"].as_u64() {
            Some(wait) => thread::sleep(Duration::from_millis(wait)),
            None => break,
        }
        assert!(attempt < 10, "the time never passes: {refused}");
    }

    // It comes too late to act, and its receipt is refused.
    wakes_up_fenced(&bench, stopped);
    assert!(bench.clinic.actuations().is_empty(), "an action began long after its intent");
    let mut operator = Operator::undisturbed(&bench);
    operator.lead();
    judge::all_done_once(&bench, &operator.asked);
}

#[test]
fn a_holder_that_was_stopped_before_its_receipt_is_reconciled_without_it() {
    let (bench, stopped) = stopped_at("after act#1");
    let item = bench.item();
    let arguments = bench.decide_live_arguments(&item, "reconcile", "the-reconcile-of-it");
    bench.call(&arguments).run().must_exit(4);
    wakes_up_fenced(&bench, stopped);
    let mut operator = Operator::undisturbed(&bench);
    operator.lead();
    judge::all_done_once(&bench, &operator.asked);
}

/// A process that was stopped in its first delivery, and whose lease was then lost to a second one.
fn stopped_at(place: &str) -> (Bench, Running) {
    let bench = Bench::new(&THREE_STEPS);
    let mut stopped = short_lease(&bench).stop_at(place).start();
    stopped.wait_until_stopped();
    let second = until_free(&bench);
    assert_eq!(second.exit, Some(3), "the delivery is uncertain: {second}");
    let uncertain = entries(&bench.home).into_iter().find_map(|entry| {
        let Event::DeliveryUncertain(uncertain) = entry.event else { return None };
        Some(uncertain.reason)
    });
    assert_eq!(uncertain, Some(Reason::LeaseExpired));
    (bench, stopped)
}

/// The stopped process goes on: its next write is refused, and nothing of it is written.
fn wakes_up_fenced(bench: &Bench, stopped: Running) {
    let before = entries(&bench.home).len();
    stopped.signal(Signal::CONT);
    let fenced = stopped.wait().must_exit(75);
    assert_eq!(fenced.code(), "fenced", "{fenced}");
    only_its_refusal(bench, before);
}

#[test]
fn a_holder_that_was_killed_is_taken_over_at_once_long_before_its_lease_ends() {
    for (scenario, place, want) in
        [(&TRIAGE, "before check#2", 4), (&THREE_STEPS, "before act#1", 3), (&THREE_STEPS, "after act#1", 3)]
    {
        let bench = Bench::new(scenario);
        let mut stopped = bench.call(&bench.run_arguments()).stop_at(place).start();
        stopped.wait_until_stopped();
        // Alive, and stopped: somebody else is refused.
        assert_eq!(bench.call(&bench.run_arguments()).run().must_exit(75).code(), "busy");
        stopped.signal(Signal::KILL);
        assert!(stopped.wait().was_killed());
        bench.call(&bench.run_arguments()).run().must_exit(want);
        let facts = entries(&bench.home);
        let first = grants(&facts).next().expect("a lease").1.until;
        let taken = facts.iter().rev().find(|entry| is_takeover(&entry.event)).expect("a takeover");
        assert!(taken.time < first.wall, "{place}: only after the lease had run out");
        let mut operator = Operator::undisturbed(&bench);
        operator.lead();
        judge::all_done_once(&bench, &operator.asked);
    }
}

#[test]
fn hosts_that_live_long_share_a_home_with_each_other_and_with_the_program() {
    let bench = Bench::new(&THREE_STEPS);
    let mut hosts = [Host::start(&bench), Host::start(&bench)];
    for n in 0..4 {
        let mut parameters = bench.parameters();
        for name in ["ref_a", "ref_b", "ref_c"] {
            parameters[name] = json!(format!("{name}-{n}"));
        }
        let start = json!({ "start": {
            "bundle": bench.bundle,
            "parameters": parameters,
            "request_id": format!("request-of-host-{n}"),
        } });
        let started = hosts[n % 2].ask(&start);
        let run = started["run"].clone();
        assert!(run.is_string(), "{started}");
        // Admitted by one, driven by the other, seen by the program.
        let paused = hosts[(n + 1) % 2].ask(&json!({ "resume": run }));
        assert_eq!(text(&paused, "/run/state"), "paused", "{paused}");
        let again = hosts[(n + 1) % 2].ask(&start);
        assert_eq!((&again["run"], &again["replayed"]), (&run, &json!(true)));

        let item = bench.item();
        let reference = format!("ref_a-{n}-person");
        bench.clinic.fill("/patients/p-004/notes", &[("text", "by hand"), ("client_ref", &reference)]);
        let second = hosts[n % 2].decide(&item, "continue", &format!("the-first-key-of-{n}"));
        assert_eq!(text(&second, "/run/state"), "paused", "{second}");

        let item = hosts[(n + 1) % 2].ask(&json!({ "items": null }))["items"][0].clone();
        let reference = format!("ref_b-{n}-person");
        let form = [("category", "4"), ("pain", "1"), ("client_ref", reference.as_str())];
        bench.clinic.fill("/patients/p-004/triage", &form);
        let key = format!("the-second-key-of-{n}");
        bench.call(&bench.decide_live_arguments(&item, "continue", &key)).run().must_exit(0);
        for host in &mut hosts {
            let repeated = host.decide(&item, "continue", &key);
            assert_eq!(repeated["replayed"], true, "{repeated}");
            assert_eq!(text(&repeated, "/run/execution_outcome"), "VERIFIED", "{repeated}");
        }
    }
    judge::nothing_twice(&bench);
    assert_eq!(bench.clinic.actuations().len(), 4 * 5);
    judge::repeats_only_what_was_proven_absent(&entries(&bench.home));
    for host in hosts {
        host.close();
    }
    judge::stands(&bench);
}

#[test]
fn a_reject_never_passes_a_holder_that_carries_a_decision_out_and_leaves_no_flag_behind() {
    let bench = Bench::new(&TRIAGE);
    bench.call(&bench.run_arguments()).run().must_exit(4);
    let item = bench.item();
    bench.do_task(2);
    let continuing = bench.decide_live_arguments(&item, "continue", "the-key-of-the-continue");
    let mut holder = bench.call(&continuing).stop_at("before check#1").start();
    holder.wait_until_stopped();
    let rejecting = bench.decide_arguments(&item, "reject", "the-key-of-the-reject");
    let waiting = ["--set-limit", "reject-wait=300ms"];
    let call = waiting.iter().fold(bench.call(&rejecting), |call, word| call.argument(word));
    let refused = call.run().must_exit(75);
    assert_eq!(refused.code(), "busy", "{refused}");
    // Whoever asked is gone, and what it asked for with it.
    holder.signal(Signal::CONT);
    holder.wait().must_exit(0);
    let late = bench.call(&rejecting).run().must_exit(2);
    assert_eq!(late.code(), "unknown_attention", "{late}");
    judge::all_done_once(&bench, &[]);
}

#[test]
fn a_cancel_reaches_a_live_holder_before_its_next_delivery() {
    let bench = Bench::new(&TRIAGE);
    bench.call(&bench.run_arguments()).run().must_exit(4);
    let item = bench.item();
    bench.do_task(2);
    // The holder has verified the person's step, and stands before the next one.
    let continuing = bench.decide_live_arguments(&item, "continue", "the-key-of-the-continue");
    let mut holder = bench.call(&continuing).stop_at("before check#5").start();
    holder.wait_until_stopped();
    let cancel = bench.call(&["cancel", &text(&item, "/run")]).run().must_exit(4);
    assert_eq!(text(&cancel.document(), "/run/state"), "running", "{cancel}");
    holder.signal(Signal::CONT);
    holder.wait().must_exit(1);
    let run = bench.call(&["runs", "show", &text(&item, "/run")]).run().must_exit(1).document();
    assert_eq!(text(&run, "/run/execution_outcome"), "CANCELED", "{run}");
    assert_eq!(bench.clinic.actuations().len(), 1, "only the person's own");
    judge::stands(&bench);
}

/// A run whose lease runs out soon.
fn short_lease(bench: &Bench) -> crate::support::process::Call {
    SHORT.iter().fold(bench.call(&bench.run_arguments()), |call, word| call.argument(word))
}

/// The same request in a second process, until the first one's lease has run out.
fn until_free(bench: &Bench) -> Ended {
    let begun = Instant::now();
    let mut refused = 0;
    while begun.elapsed() < HANG {
        let ended = bench.call(&bench.run_arguments()).run();
        if ended.exit != Some(75) {
            assert!(refused > 0, "the lease was no obstacle: {ended}");
            return ended;
        }
        assert_eq!(ended.code(), "busy", "{ended}");
        refused += 1;
        thread::sleep(AGAIN);
    }
    panic!("the lease never runs out");
}

fn grants(facts: &[Entry]) -> impl Iterator<Item = (&Entry, &LeaseGranted)> {
    facts.iter().filter_map(|entry| {
        let Event::LeaseGranted(granted) = &entry.event else { return None };
        Some((entry, granted))
    })
}

/// Whether this is what the next process writes first about a holder that is gone.
fn is_takeover(event: &Event) -> bool {
    matches!(event, Event::LeaseReleased(_) | Event::DeliveryUncertain(_))
}

/// Of the first holder, nothing came after `before` but the record that its write was refused.
fn only_its_refusal(bench: &Bench, before: usize) {
    let facts = entries(&bench.home);
    let first = grants(&facts).next().expect("a lease").1.holder;
    let written: Vec<&Event> =
        facts[before..].iter().filter(|entry| entry.producer == first).map(|entry| &entry.event).collect();
    match written[..] {
        [Event::RefusalRecorded(refusal)] => assert_eq!(refusal.code, RefusalCode::Fenced),
        _ => panic!("the fenced process wrote {written:#?}"),
    }
}

#[test]
fn an_open_host_that_does_nothing_holds_no_run() {
    let bench = Bench::new(&TRIAGE);
    bench.call(&bench.run_arguments()).run().must_exit(4);
    let run = bench.call(&["runs", "list"]).run().must_exit(0).document()["runs"][0]["run_id"].clone();
    let mut host = Host::start(&bench);
    // A host that has the home open and does nothing holds no lease.
    let resumed = host.ask(&json!({ "resume": run }));
    assert_eq!(text(&resumed, "/run/state"), "paused");
    let mut operator = Operator::undisturbed(&bench);
    let ended: Value = operator.lead();
    assert_eq!(ended["execution_outcome"], "VERIFIED");
    judge::all_done_once(&bench, &operator.asked);
}
