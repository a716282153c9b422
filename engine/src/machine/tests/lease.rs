//! Leases, fencing and standing down. Source: DESIGN §4.5, RULINGS 10, 12 and 17.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use protocol::command::{Command, LiveFinding};
use protocol::decision::Action;
use protocol::delivery::ReceiptOutcome;
use protocol::event::{CheckpointKind, Event, StandDownRequested, StepFacts};
use protocol::ids::{BootId, DecisionId, LeaseToken, Seq};
use protocol::pause::{Category, Reason};
use protocol::time::Millis;

use super::bench::{A, B, Bench, acting, attended, finding, verified, word};

#[test]
fn a_lease_lasts_as_long_as_its_holder_lives_and_its_grant_runs() {
    for (case, lives, waits, other_boot, want) in [
        ("alive and in time", true, 0, false, "busy"),
        ("alive, one before its end", true, 30_999, false, "busy"),
        ("alive, at its end", true, 31_000, false, "leased"),
        ("dead", false, 0, false, "leased"),
        ("alive, other boot, by wall clock", true, 31_000, true, "leased"),
    ] {
        let mut bench = Bench::new();
        let run = bench.started(1);
        let old = bench.acquired(run);
        bench.passes(Millis(waits));
        if other_boot {
            bench.now.boot_id = BootId([0xff; 16]);
            bench.now.boot.0 = 0;
        }
        bench.me = B;
        if !lives {
            bench.dies(A);
        }
        let answer = bench.acquire(run, false);
        assert_eq!(word(&answer), want, "{case}");
        let token = bench.run(run).lease.unwrap().token;
        assert_eq!(token > old, want == "leased", "{case}: the newer lease has the larger token");
    }
}

#[test]
fn no_wall_clock_moves_a_lease_within_one_boot() {
    for wall in [0, u64::MAX] {
        let mut bench = Bench::new();
        let run = bench.started(1);
        bench.acquired(run);
        bench.now.wall.0 = wall;
        assert_eq!(word(&bench.at(B).acquire(run, false)), "busy");
    }
}

#[test]
fn every_event_under_a_lease_renews_it() {
    let (mut bench, run, token, delivery) = Bench::crossed(&acting(0));
    bench.passes(Millis(20_000));
    bench.say(Bench::receipt(run, token, delivery, ReceiptOutcome::Acted));
    bench.passes(Millis(20_000));
    assert_eq!(word(&bench.clone().at(B).acquire(run, false)), "busy");
    bench.say(Bench::commit(run, token, &acting(0), CheckpointKind::Engine));
    bench.passes(Millis(30_999));
    assert_eq!(word(&bench.clone().at(B).acquire(run, false)), "busy");
    bench.passes(Millis(1));
    assert_eq!(word(&bench.at(B).acquire(run, false)), "leased");
}

/// Everything that a holder may write.
fn writes(run: protocol::ids::RunId, token: LeaseToken) -> Vec<(&'static str, Command)> {
    let delivery = protocol::ids::DeliveryId([0; 16]);
    vec![
        ("begin", Bench::begin(run, token, &acting(0))),
        ("receipt", Bench::receipt(run, token, delivery, ReceiptOutcome::Acted)),
        ("commit", Bench::commit(run, token, &acting(0), CheckpointKind::Engine)),
        ("stop", Command::Stop { run, token, step: acting(0), finding: finding(Category::Halt) }),
        (
            "finish",
            Command::FinishDecision {
                run,
                token,
                decision: DecisionId([0; 16]),
                finding: LiveFinding::NotVerified,
            },
        ),
        ("lose", Command::LoseDecision { run, token, decision: DecisionId([0; 16]) }),
    ]
}

#[test]
fn a_fenced_writer_leaves_a_refusal_record_and_nothing_else() {
    let (mut bench, run, stale, _) = Bench::crossed(&acting(0));
    bench.passes(Millis(31_000));
    assert_eq!(word(&bench.clone().at(B).acquire(run, false)), "paused", "what it did is not known");
    // Also where a newer lease exists.
    let mut newer = Bench::new();
    let other = newer.started(1);
    let old = newer.acquired(other);
    newer.passes(Millis(31_000));
    newer.me = B;
    newer.acquired(other);
    newer.me = A;
    bench.me = B;
    bench.acquire(run, false);
    bench.me = A;
    for (mut bench, run, stale) in [(bench, run, stale), (newer, other, old)] {
        let before = bench.run(run).clone();
        for (name, command) in writes(run, stale) {
            let at = bench.state.next;
            assert_eq!(word(&bench.say(command)), "fenced", "{name}");
            assert_eq!(bench.names_since(at), ["refusal_recorded"], "{name}");
            assert_eq!(*bench.run(run), before, "{name}");
        }
        let at = bench.state.next;
        assert_eq!(word(&bench.say(Command::Release { run, token: stale })), "recorded");
        assert!(bench.names_since(at).is_empty(), "giving back what is gone is no fault");
    }
}

#[test]
fn a_token_in_another_process_is_worth_nothing() {
    let mut bench = Bench::new();
    let run = bench.started(1);
    let token = bench.acquired(run);
    bench.me = B;
    for (name, command) in writes(run, token) {
        assert_eq!(word(&bench.say(command)), "fenced", "{name}");
    }
    bench.say(Command::Release { run, token });
    assert_eq!(bench.run(run).lease.unwrap().token, token);
    bench.me = A;
    bench.begun(run, token, &acting(0));
}

#[test]
fn a_lease_that_ran_out_bars_the_boundary_and_still_takes_the_receipt() {
    let mut bench = Bench::new();
    let run = bench.started(1);
    let token = bench.acquired(run);
    bench.passes(Millis(31_000));
    assert_eq!(word(&bench.say(Bench::begin(run, token, &acting(0)))), "lease_expired");
    let (mut late, run, token, delivery) = Bench::crossed(&acting(0));
    late.passes(Millis(60_000));
    assert_eq!(word(&late.say(Bench::receipt(run, token, delivery, ReceiptOutcome::Acted))), "recorded");
}

#[test]
fn nothing_in_flight_is_given_back() {
    let (mut bench, run, token, delivery) = Bench::crossed(&acting(0));
    assert_eq!(word(&bench.say(Command::Release { run, token })), "wrong_phase");
    bench.say(Bench::receipt(run, token, delivery, ReceiptOutcome::Acted));
    assert_eq!(word(&bench.say(Command::Release { run, token })), "recorded");
    let (mut deciding, run) = Bench::paused_at(&attended(0));
    let (token, _) = deciding.carried_out(run, Action::Continue, "k");
    assert_eq!(word(&deciding.say(Command::Release { run, token })), "wrong_phase");
}

#[test]
fn a_request_to_stand_down_is_void_when_the_asking_process_is_gone() {
    for (case, asker_lives, want) in [("alive", true, "stand_down"), ("dead", false, "deliver")] {
        let mut bench = Bench::new();
        let run = bench.started(1);
        let token = bench.acquired(run);
        bench.me = B;
        bench.fold(StandDownRequested { run, by: B });
        bench.me = A;
        if !asker_lives {
            bench.dies(B);
        }
        let at = bench.state.next;
        assert_eq!(word(&bench.say(Bench::begin(run, token, &acting(0)))), want, "{case}");
        if asker_lives {
            assert_eq!(bench.names_since(at), ["refusal_recorded"]);
            bench.say(Command::Release { run, token });
        }
        assert_eq!(bench.run(run).stand_down, None, "{case}: no flag is left behind");
    }
}

#[test]
fn a_reject_asks_only_a_holder_that_has_not_crossed() {
    // A holder that carries a decision out is not asked.
    let (mut bench, run) = Bench::paused_at(&attended(0));
    bench.carried_out(run, Action::Continue, "k");
    bench.me = B;
    assert_eq!(word(&bench.decide(run, Action::Reject, "reject")), "busy");
    assert_eq!(bench.run(run).stand_down, None);
    // One that was granted the lease and has not crossed is asked once, by name.
    let (mut bench, run) = Bench::paused_at(&attended(0));
    let until = bench.now.after(Millis(60_000));
    bench.fold(protocol::event::LeaseGranted { run, holder: A, until });
    bench.me = B;
    for (may_preempt, want) in [(false, None), (true, Some(B)), (true, Some(B))] {
        let at = bench.state.next;
        let request = bench.request(run, Action::Reject, "reject");
        let command = Command::Decide { request, author: super::bench::author(), may_preempt };
        let asked_before = bench.run(run).stand_down.is_some();
        assert_eq!(word(&bench.say(command)), "busy");
        assert_eq!(bench.run(run).stand_down, want);
        let asks = bench.names_since(at).iter().filter(|name| **name == "stand_down_requested").count();
        assert_eq!(asks, usize::from(may_preempt && !asked_before));
    }
    // It stands down; the reject is recorded, and its request is gone with the lease.
    bench.me = A;
    let token = bench.run(run).lease.unwrap().token;
    bench.say(Command::Release { run, token });
    assert_eq!(bench.run(run).stand_down, None);
    bench.me = B;
    assert_eq!(word(&bench.decide(run, Action::Reject, "reject")), "completed");
}

#[test]
fn every_process_whose_life_matters_is_watched() {
    let (mut bench, run, ..) = Bench::crossed(&acting(0));
    assert!(bench.state.watched().contains(&A));
    bench.passes(Millis(31_000));
    bench.me = B;
    bench.acquire(run, false);
    assert!(bench.run(run).lease.is_none());
    assert!(bench.state.watched().contains(&A), "it may still act, though its lease is gone");
    bench.fold(StandDownRequested { run, by: B });
    assert!(bench.state.watched().contains(&B));
}

#[test]
fn a_takeover_says_why_and_what_became_uncertain() {
    for (case, dies, reason) in [("dead", true, Reason::HolderDied), ("overdue", false, Reason::LeaseExpired)]
    {
        let (mut bench, run, ..) = Bench::crossed(&acting(0));
        if dies {
            bench.dies(A);
        } else {
            bench.passes(Millis(31_000));
        }
        bench.me = B;
        let at = bench.state.next;
        bench.acquire(run, false);
        let names: Vec<String> = bench.names_since(at).iter().map(|name| (*name).into()).collect();
        assert_eq!(
            names,
            ["delivery_uncertain", "pause_opened", "capability_issued", "lease_released"],
            "{case}"
        );
        let found = bench.journal.iter().find_map(|entry| {
            let Event::DeliveryUncertain(uncertain) = &entry.event else { return None };
            Some((uncertain.reason, uncertain.holder))
        });
        assert_eq!(found, Some((reason, A)), "{case}");
        let pause = bench.run(run).pause.as_ref().unwrap();
        assert_eq!(
            (pause.opened.category, pause.opened.reason),
            (Category::DeliveryUncertain, reason),
            "{case}"
        );
    }
}

#[test]
fn the_finish_of_a_decision_needs_its_own_lease_and_name() {
    let (mut bench, run) = Bench::paused_at(&attended(0));
    let (token, decision) = bench.carried_out(run, Action::Continue, "k");
    let step: StepFacts = attended(0);
    let found = LiveFinding::Verified(verified(&step));
    let wrong = LeaseToken(Seq(token.0.0 + 1));
    for (case, token, decision, want) in [
        ("another token", wrong, decision, "fenced"),
        ("another decision", token, DecisionId([0; 16]), "wrong_phase"),
        ("its own", token, decision, "completed"),
        ("twice", token, decision, "wrong_phase"),
    ] {
        assert_eq!(word(&bench.finish(run, (token, decision), found.clone())), want, "{case}");
    }
}
