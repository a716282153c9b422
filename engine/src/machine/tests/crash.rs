//! The crash matrix of attended-contract §5, a row each: what a second process finds, and does.

use protocol::command::LiveFinding;
use protocol::decision::Action;
use protocol::delivery::ReceiptOutcome;
use protocol::event::{CheckpointKind, DecisionPrepared, LeaseGranted, Under};
use protocol::ids::{DecisionId, LeaseToken};
use protocol::pause::Category;
use protocol::time::Millis;

use super::bench::{A, B, Bench, acting, attended, author, verified, word};
use crate::machine::Answer;

/// A dies; the rest is seen by B.
fn after_death(mut bench: Bench) -> Bench {
    bench.dies(A);
    bench.me = B;
    bench
}

#[test]
fn nothing_written_as_if_never_asked() {
    let (bench, run) = Bench::paused_at(&attended(0));
    // A asked and died before anything was appended.
    let _unrecorded = bench.ask(&Bench::decide_command(bench.request(run, Action::Continue, "k")));
    let mut bench = after_death(bench);
    assert_eq!(word(&bench.decide(run, Action::Continue, "other")), "carry out");
}

#[test]
fn a_grant_alone_is_taken_over_at_once() {
    let (mut bench, run) = Bench::paused_at(&attended(0));
    let until = bench.now.after(Millis(31_000));
    bench.fold(LeaseGranted { run, holder: A, until });
    assert_eq!(word(&bench.clone().at(B).decide(run, Action::Continue, "k")), "busy");
    let mut bench = after_death(bench);
    assert_eq!(word(&bench.decide(run, Action::Continue, "k")), "carry out");
}

#[test]
fn prepared_without_delivery_goes_on_under_the_same_key_or_another() {
    for (name, same) in [("k", true), ("other", false)] {
        let (mut bench, run) = Bench::paused_at(&attended(0));
        let request = bench.request(run, Action::Continue, "k");
        let until = bench.now.after(Millis(31_000));
        let token = LeaseToken(bench.state.next);
        bench.fold(LeaseGranted { run, holder: A, until });
        let pause = bench.run(run).pause.as_ref().unwrap().opened.pause;
        bench.fold(DecisionPrepared {
            decision: DecisionId([0xdd; 16]),
            run,
            pause,
            attention: request.attention_id.clone(),
            key: request.idempotency_key.clone(),
            request: request.digest(),
            capability: request.capability_digest,
            action: request.action,
            disposition: None,
            author: author(),
            under: Under { token, until },
        });
        let mut bench = after_death(bench);
        let answer = bench.decide(run, Action::Continue, name);
        let Answer::CarryOut { token, decision, .. } = answer else { panic!("{answer:?}") };
        assert_eq!(decision.id == DecisionId([0xdd; 16]), same, "{name}");
        let done = bench.finish(run, (token, decision.id), LiveFinding::Verified(verified(&attended(0))));
        assert_eq!(word(&done), "completed", "{name}");
        assert_eq!(word(&bench.ask(&Bench::decide_command(request)).answer) == "replayed", same, "{name}");
    }
}

#[test]
fn delivery_started_is_uncertain_and_only_reading_settles_it() {
    let (mut bench, run) = Bench::paused_at(&attended(0));
    let request = bench.request(run, Action::Continue, "k");
    bench.carried_out(run, Action::Continue, "k");
    // The executor may have returned: without its outcome block that is the same.
    let mut bench = after_death(bench);
    assert_eq!(word(&bench.say(Bench::decide_command(request.clone()))), "delivery_uncertain");
    for (action, want) in [
        (Action::Continue, "delivery_uncertain"),
        (Action::Skip, "delivery_uncertain"),
        (Action::Reject, "delivery_uncertain"),
        (Action::Teach, "completed"),
        (Action::Escalate, "completed"),
    ] {
        assert_eq!(word(&bench.decide(run, action, action.as_str())), want);
    }
    assert_eq!(word(&bench.acquire(run, true)), "paused", "nor does `resume` check it away");
    let carried = bench.carried_out(run, Action::Reconcile, "reconcile");
    let done = bench.finish(run, carried, LiveFinding::Verified(verified(&attended(0))));
    assert_eq!(word(&done), "completed");
    // The same key now replays what the reconcile proved of it.
    let answer = bench.say(Bench::decide_command(request));
    let Answer::Decided { decision, replayed: true, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(decision.action, Action::Continue);
    assert!(matches!(
        decision.phase,
        crate::machine::Phase::Terminal { outcome: protocol::event::DecisionOutcome::Completed, .. }
    ));
}

#[test]
fn an_outcome_block_is_replayed_and_the_run_goes_on_from_its_checkpoint() {
    let (mut bench, run) = Bench::paused_at(&attended(0));
    let request = bench.request(run, Action::Continue, "k");
    let carried = bench.carried_out(run, Action::Continue, "k");
    bench.finish(run, carried, LiveFinding::Verified(verified(&attended(0))));
    let mut bench = after_death(bench);
    assert_eq!(word(&bench.say(Bench::decide_command(request))), "replayed");
    let token = bench.acquired(run);
    assert_eq!((bench.run(run).cursor.step(), bench.run(run).lineage.len()), (1, 1));
    assert_eq!(word(&bench.say(Bench::begin(run, token, &acting(0)))), "wrong_phase", "not the step it did");
    bench.begun(run, token, &acting(1));
}

#[test]
fn a_step_is_never_begun_again_without_proof() {
    for (case, receipt, found) in [
        ("no receipt", None, "paused"),
        ("it says it acted", Some(ReceiptOutcome::Acted), "leased"),
        ("unclear", Some(ReceiptOutcome::Unclear), "paused"),
        ("not sent", Some(ReceiptOutcome::NotSent), "leased"),
    ] {
        let (mut bench, run, token, delivery) = Bench::crossed(&acting(0));
        if let Some(outcome) = receipt {
            bench.say(Bench::receipt(run, token, delivery, outcome));
        }
        let mut bench = after_death(bench);
        for recheck in [false, true] {
            let mut bench = bench.clone();
            assert_eq!(word(&bench.acquire(run, recheck)), found, "{case}");
            let Some(lease) = bench.run(run).lease else { continue };
            let begun = word(&bench.say(Bench::begin(run, lease.token, &acting(0))));
            let want = if receipt == Some(ReceiptOutcome::NotSent) { "deliver" } else { "wrong_phase" };
            assert_eq!(begun, want, "{case}");
        }
        // Any time later, too.
        bench.passes(Millis(100 * 24 * 60 * 60 * 1_000));
        bench.acquire(run, true);
        if let Some(lease) = bench.run(run).lease
            && receipt != Some(ReceiptOutcome::NotSent)
        {
            assert_eq!(word(&bench.say(Bench::begin(run, lease.token, &acting(0)))), "wrong_phase", "{case}");
        }
    }
}

#[test]
fn a_receipt_without_a_checkpoint_is_verified_and_not_made_again() {
    let (mut bench, run, token, delivery) = Bench::crossed(&acting(0));
    bench.say(Bench::receipt(run, token, delivery, ReceiptOutcome::Acted));
    let mut bench = after_death(bench);
    let token = bench.acquired(run);
    assert_eq!(word(&bench.say(Bench::commit(run, token, &acting(0), CheckpointKind::Engine))), "committed");
}

#[test]
fn a_takeover_with_the_boundary_crossed_opens_one_pause_and_no_more() {
    let (bench, run, ..) = Bench::crossed(&acting(0));
    let mut bench = after_death(bench);
    bench.acquire(run, false);
    let first = bench.run(run).pause.clone().unwrap();
    assert_eq!(first.opened.category, Category::DeliveryUncertain);
    for recheck in [false, true] {
        assert_eq!(word(&bench.acquire(run, recheck)), "paused");
    }
    assert_eq!(bench.run(run).pause.as_ref().unwrap().opened.pause, first.opened.pause);
}

#[test]
fn the_last_checkpoint_and_the_end_are_one_block() {
    let mut bench = Bench::new();
    let run = bench.started(1);
    let token = bench.acquired(run);
    let delivery = bench.begun(run, token, &acting(0));
    bench.say(Bench::receipt(run, token, delivery, ReceiptOutcome::Acted));
    let at = bench.state.next;
    assert_eq!(word(&bench.say(Bench::commit(run, token, &acting(0), CheckpointKind::Engine))), "VERIFIED");
    assert_eq!(bench.names_since(at), ["checkpoint", "lease_released", "run_finished"]);
    // A journal in which they were torn apart, as another writer might leave one, ends at the next start.
    let mut torn = Bench::new();
    for entry in bench.journal.iter().filter(|entry| entry.event.name() != "run_finished") {
        torn.fold(entry.event.clone());
    }
    assert_eq!(word(&torn.acquire(run, false)), "VERIFIED");
}
