//! What the program promises to whoever calls it, with processes of their own: one key is one decision, one request id
//! is one run, and each exit code means what the table says.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use protocol::event::Event;
use serde_json::{Value, json};

use crate::crash::tear;
use crate::support::journal_events::entries;
use crate::support::judge;
use crate::support::operator::Operator;
use crate::support::process::{Call, Ended, HANG, text};
use crate::support::scenario::{Bench, THREE_STEPS, TRIAGE};

/// Before a request is repeated that found somebody else at work.
const BUSY: Duration = Duration::from_millis(20);

/// The triage run, waiting for the person, who has done the step.
fn waiting() -> (Bench, String, Value) {
    let bench = Bench::new(&TRIAGE);
    let run = text(&bench.call(&bench.run_arguments()).run().must_exit(4).document(), "/run/run_id");
    bench.do_task(2);
    let item = bench.item();
    (bench, run, item)
}

#[test]
fn a_key_with_other_content_is_refused_before_anything_else_is_looked_at() {
    let (bench, run, item) = waiting();
    let key = "the-key-of-the-escalation";
    bench.call(&bench.decide_arguments(&item, "escalate", key)).run().must_exit(4);
    let before = entries(&bench.home).len();
    let other = |name: &str, value: &str| {
        let mut item = item.clone();
        *item.pointer_mut(name).expect("a field") = value.into();
        item
    };
    let no_such_item = other("/id", "0123456789abcdef01234567");
    let stale = other("/capability/digest", &format!("sha256:{}", "0".repeat(64)));
    let conflicts = |when: &str| {
        for (case, arguments) in [
            ("another action, which is allowed", bench.decide_live_arguments(&item, "continue", key)),
            ("another action, which is not allowed", bench.decide_live_arguments(&item, "reconcile", key)),
            ("another item, which does not exist", bench.decide_arguments(&no_such_item, "escalate", key)),
            ("another capability, which is stale", bench.decide_arguments(&stale, "escalate", key)),
            ("another action, without an executor", bench.decide_arguments(&item, "continue", key)),
        ] {
            let refused = bench.call(&arguments).run().must_exit(2);
            assert_eq!(refused.code(), "idempotency_conflict", "{when}, {case}: {refused}");
        }
        let mut with_disposition = bench.decide_arguments(&item, "escalate", key);
        with_disposition.extend(["--disposition", "cannot_complete"].map(str::to_owned));
        let refused = bench.call(&with_disposition).run().must_exit(2);
        assert_eq!(refused.code(), "idempotency_conflict", "{when}, an explicit default: {refused}");
    };
    conflicts("while it waits");
    let facts = entries(&bench.home);
    let written: Vec<&str> = facts[before..].iter().map(|entry| entry.event.name()).collect();
    assert!(
        written.iter().all(|name| ["refusal_recorded", "state_recorded"].contains(name)),
        "a conflict left {written:?}"
    );
    assert_eq!(text(&bench.call(&["runs", "show", &run]).run().document(), "/run/state"), "paused");

    bench.call(&bench.decide_live_arguments(&item, "continue", "the-key-of-the-continue")).run().must_exit(0);
    conflicts("after the run has ended");
    judge::all_done_once(&bench, &[]);
}

#[test]
fn a_key_with_equal_content_gives_the_recorded_decision_in_any_process_at_any_time() {
    let (bench, _, item) = waiting();
    let escalate = bench.decide_arguments(&item, "escalate", "the-key-of-the-escalation");
    let refuse = bench.decide_live_arguments(&item, "continue", "the-key-of-the-continue");
    let first = bench.call(&escalate).run().must_exit(4).document();
    assert_eq!(first["replayed"], false);
    let again = bench.call(&escalate).run().must_exit(4).document();
    assert_eq!(
        (&again["replayed"], &again["decision"]),
        (&json!(true), &first["decision"]),
        "while it waits"
    );

    let continued = bench.call(&refuse).run().must_exit(0).document();
    for (key, action, want) in [
        ("the-key-of-the-escalation", "escalate", &first["decision"]),
        ("the-key-of-the-continue", "continue", &continued["decision"]),
    ] {
        // Without an executor, and the same request as a file.
        let request = bench.write(
            "request.json",
            &json!({
                "attention_id": item["id"],
                "capability_digest": item["capability"]["digest"],
                "idempotency_key": key,
                "action": action,
            }),
        );
        let from_file = ["decide".to_owned(), "--request".to_owned(), request.display().to_string()];
        for arguments in [bench.decide_arguments(&item, action, key), from_file.to_vec()] {
            let again = bench.call(&arguments).run().must_exit(0).document();
            assert_eq!((&again["replayed"], &again["decision"]), (&json!(true), want), "{arguments:?}");
        }
    }
    judge::all_done_once(&bench, &[]);
}

#[test]
fn a_decision_that_the_live_state_refused_stays_refused_under_its_key() {
    let bench = Bench::new(&TRIAGE);
    bench.call(&bench.run_arguments()).run().must_exit(4);
    let item = bench.item();
    let early = bench.decide_live_arguments(&item, "continue", "before-it-was-done");
    let refused = bench.call(&early).run().must_exit(2).document();
    assert_eq!(refused["decision"]["refusal"], "not_verified", "{refused}");
    bench.do_task(2);
    let again = bench.call(&early).run().must_exit(2).document();
    assert_eq!((&again["replayed"], &again["decision"]), (&json!(true), &refused["decision"]));
    bench.call(&bench.decide_live_arguments(&item, "continue", "after-it-was-done")).run().must_exit(0);
    judge::all_done_once(&bench, &[]);
}

#[test]
fn twenty_processes_with_one_decision_do_everything_once_and_get_one_answer() {
    let (bench, _, item) = waiting();
    let arguments = bench.decide_live_arguments(&item, "continue", "the-key-of-all-twenty");
    let answers = at_once(&bench, &arguments, 20);
    let fresh = answers.iter().filter(|answer| answer["replayed"] == false).count();
    assert_eq!(fresh, 1, "one of them was carried out: {answers:#?}");
    for answer in &answers {
        assert_eq!(answer["decision"], answers[0]["decision"]);
    }
    judge::all_done_once(&bench, &[]);
}

#[test]
fn twenty_processes_with_twenty_keys_do_everything_once() {
    let (bench, _, item) = waiting();
    let outcomes: Vec<Ended> = thread::scope(|scope| {
        let (bench, item) = (&bench, &item);
        let ask = |n| {
            scope.spawn(move || {
                let key = format!("the-key-of-number-{n:02}");
                until_answered(bench, &bench.decide_live_arguments(item, "continue", &key))
            })
        };
        let asking: Vec<_> = (0..20).map(ask).collect();
        asking.into_iter().map(|asking| asking.join().expect("no panic")).collect()
    });
    let done = outcomes.iter().filter(|ended| ended.exit == Some(0)).count();
    assert_eq!(done, 1, "one is admitted");
    for ended in outcomes.iter().filter(|ended| ended.exit != Some(0)) {
        let code = ended.code();
        let known = ["unknown_attention", "stale_capability"].contains(&code.as_str());
        assert!(known && ended.exit == Some(2), "{ended}");
    }
    judge::all_done_once(&bench, &[]);
}

#[test]
fn twenty_processes_with_one_run_request_start_one_run() {
    let bench = Bench::new(&TRIAGE);
    let answers = at_once(&bench, &bench.run_arguments(), 20);
    for answer in &answers {
        assert_eq!(answer["run"]["run_id"], answers[0]["run"]["run_id"]);
    }
    bench.do_task(2);
    let mut operator = Operator::undisturbed(&bench).having_done(2);
    operator.lead();
    judge::all_done_once(&bench, &operator.asked);
}

/// So many processes with the same request; each repeats it while another is busy.
fn at_once(bench: &Bench, arguments: &[String], processes: usize) -> Vec<Value> {
    thread::scope(|scope| {
        let asking: Vec<_> =
            (0..processes).map(|_| scope.spawn(|| until_answered(bench, arguments).document())).collect();
        asking.into_iter().map(|asking| asking.join().expect("no panic")).collect()
    })
}

fn until_answered(bench: &Bench, arguments: &[String]) -> Ended {
    let begun = Instant::now();
    loop {
        let ended = bench.call(arguments).run();
        if ended.exit != Some(75) {
            return ended;
        }
        assert!(begun.elapsed() < HANG, "busy for ever: {ended}");
        thread::sleep(BUSY);
    }
}

#[test]
fn a_request_id_starts_one_run_and_refuses_other_content_without_running_it() {
    let (bench, run, item) = waiting();
    let again = bench.call(&bench.run_arguments()).run().must_exit(4).document();
    assert_eq!((text(&again, "/run/run_id"), &again["replayed"]), (run.clone(), &json!(true)));

    let mut other = bench.parameters();
    other["note"] = json!("Something else.");
    other["reference"] = json!("another-note");
    let other = bench.write("other.json", &other).display().to_string();
    let mut arguments = bench.run_arguments();
    let place = arguments.iter().position(|word| word == "--params").expect("parameters") + 1;
    arguments[place] = other;
    let conflict = |when: &str| {
        let refused = bench.call(&arguments).run().must_exit(2);
        assert_eq!(refused.code(), "request_id_conflict", "{when}: {refused}");
    };
    conflict("while it waits");
    bench.call(&bench.decide_live_arguments(&item, "continue", "the-key-of-the-continue")).run().must_exit(0);
    conflict("after it has ended");
    let admitted =
        entries(&bench.home).iter().filter(|entry| matches!(entry.event, Event::RunAdmitted(_))).count();
    assert_eq!(admitted, 1);
    judge::all_done_once(&bench, &[]);
}

#[test]
fn each_exit_code_means_what_the_table_says() {
    let (bench, _, item) = waiting();
    let decide = |action: &str, key: &str| bench.decide_arguments(&item, action, key);
    let code = |ended: Ended| ended.code();

    // 64, 2, 69 and 4: nothing of these changes anything.
    bench.call(&["no-such-command"]).run().must_exit(64);
    let malformed = bench.write("malformed.json", &json!({ "attention_id": "x" })).display().to_string();
    assert_eq!(code(bench.call(&["decide", "--request", &malformed]).run().must_exit(64)), "invalid_request");
    assert_eq!(
        code(bench.call(&decide("skip", "a-skip-not-allowed")).run().must_exit(2)),
        "action_not_allowed"
    );
    let without = bench.call(&decide("continue", "a-continue-at-nothing")).run().must_exit(69);
    assert_eq!(code(without), "executor_missing");
    let nowhere = Call::json(&bench.file("nowhere"), &["verify"]).run().must_exit(69);
    assert_eq!(code(nowhere), "no_journal");
    bench.call(&decide("escalate", "an-escalation-of-it")).run().must_exit(4);
    // 1: rejected, and told so again; canceled.
    bench.call(&decide("reject", "a-reject-of-the-run")).run().must_exit(1);
    bench.call(&decide("reject", "a-reject-of-the-run")).run().must_exit(1);
    assert_eq!(
        code(bench.call(&decide("reject", "another-reject-of-it")).run().must_exit(2)),
        "run_rejected"
    );
    bench.call(&bench.run_arguments()).run().must_exit(1);
    let mut other = bench.run_arguments_as("request-to-be-canceled");
    other.push("--detach".to_owned());
    let second = text(&bench.call(&other).run().must_exit(4).document(), "/run/run_id");
    bench.call(&["cancel", &second]).run().must_exit(1);
    // 65: a byte of the middle was changed.
    bench.call(&["verify"]).run().must_exit(0);
    let segment = bench.home.join("journal/00000000000000000000.seg");
    let intact = fs::read(&segment).expect("the segment");
    let mut damaged = intact.clone();
    damaged[700] ^= 1;
    fs::write(&segment, &damaged).expect("the segment");
    bench.call(&["verify"]).run().must_exit(65);
    assert_eq!(code(bench.call(&bench.run_arguments()).run().must_exit(65)), "damaged");
    fs::write(&segment, &intact).expect("the segment");
    bench.call(&["verify"]).run().must_exit(0);
}

#[test]
fn an_uncertain_delivery_exits_with_three_until_it_is_reconciled() {
    let bench = Bench::new(&THREE_STEPS);
    let killed = bench.call(&bench.run_arguments()).kill_at("after act#1").run();
    assert!(killed.was_killed(), "{killed}");
    let run = text(&bench.call(&bench.run_arguments()).run().must_exit(3).document(), "/run/run_id");
    bench.call(&["runs", "show", &run]).run().must_exit(3);
    bench.call(&bench.resume_arguments(&run)).run().must_exit(3);
    let item = bench.item();
    for (action, key) in [("continue", "a-continue-too-soon"), ("reject", "a-reject-too-early")] {
        let refused = bench.call(&bench.decide_live_arguments(&item, action, key)).run().must_exit(3);
        assert_eq!(refused.code(), "delivery_uncertain", "{refused}");
    }
    bench.call(&bench.decide_live_arguments(&item, "reconcile", "the-reconcile-of-it")).run().must_exit(4);
    let mut operator = Operator::undisturbed(&bench);
    operator.lead();
    judge::all_done_once(&bench, &operator.asked);
}

#[test]
fn a_write_that_did_not_end_is_told_by_verify_and_cut_by_the_next_writer() {
    // Of its length alone nobody could have been told; of half a block nothing can say so.
    for (verdict, exit) in [("torn_tail", 67), ("cannot_tell", 66)] {
        let kept = |bytes| if exit == 67 { 4 } else { bytes / 2 };
        let (bench, _, item) = waiting();
        let points = bench.file("points");
        let arguments = bench.decide_live_arguments(&item, "continue", "the-key-of-the-continue");
        let call = bench.call(&arguments).env("OPJOURNAL_TEST_POINTS", &points);
        let killed = call.kill_at("after write 0#1").run();
        assert!(killed.was_killed(), "{killed}");
        let passed = fs::read_to_string(&points).expect("points");
        tear(&bench.home, passed.lines().last().expect("a point"), kept);
        let torn = bench.call(&["verify"]).run().must_exit(exit).document();
        assert_eq!(torn["verdict"], verdict, "{torn}");
        bench.call(&arguments).run().must_exit(0);
        judge::all_done_once(&bench, &[]);
    }
}

#[test]
fn a_folder_that_may_not_be_read_is_a_matter_of_permission() {
    use std::os::unix::fs::PermissionsExt as _;
    if rustix::process::geteuid().is_root() {
        println!("skipped: the superuser may read everything");
        return;
    }
    let bench = Bench::new(&TRIAGE);
    bench.call(&bench.run_arguments()).run().must_exit(4);
    let journal = bench.home.join("journal");
    fs::set_permissions(&journal, fs::Permissions::from_mode(0o000)).expect("permissions");
    let refused = bench.call(&["verify"]).run();
    fs::set_permissions(&journal, fs::Permissions::from_mode(0o700)).expect("permissions");
    assert_eq!(refused.must_exit(77).code(), "permission_denied");
}
