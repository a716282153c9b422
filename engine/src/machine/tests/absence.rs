//! Proven absence: RULINGS 1, each of its conditions missing in turn.

use alloc::vec;
use alloc::vec::Vec;

use protocol::command::{Command, LiveFinding};
use protocol::decision::Action;
use protocol::delivery::{EffectStatus, ReceiptOutcome, Settlement};
use protocol::event::{DecisionOutcome, Event, StepFacts};
use protocol::ids::RunId;
use protocol::time::Millis;

use crate::machine::step::BEGIN_WITHIN;

use super::bench::{A, B, Bench, LIMIT, SETTLE, acting, attended, readings, verified, word};
use crate::machine::{Answer, Phase};

const OVER: Millis = Millis(BEGIN_WITHIN.0 + LIMIT.0 + SETTLE.0);
/// Long enough for the lease to run out, which is later than [`OVER`].
const OVERDUE: Millis = Millis(31_000);

/// What a reconcile by the second process comes to.
fn reconciled(mut bench: Bench, run: RunId, finding: LiveFinding) -> (alloc::string::String, Bench) {
    bench.me = B;
    bench.acquire(run, false);
    let carried = bench.carried_out(run, Action::Reconcile, "reconcile");
    let answer = bench.finish(run, carried, finding);
    (word(&answer), bench)
}

fn absent() -> LiveFinding {
    LiveFinding::Absent(readings(&acting(0), EffectStatus::Absent))
}

#[test]
fn absence_is_proven_by_all_conditions_and_by_none_fewer() {
    type Change = fn(&mut Bench);
    let cases: [(&str, Change, &str); 6] = [
        ("all of them", |_| {}, "not_delivered"),
        (
            "its holder lives, overtaken",
            |bench| {
                bench.alive.insert(A);
                bench.passes(OVERDUE);
            },
            "delivery_uncertain",
        ),
        ("one before limit and settle time", |bench| bench.now.boot.0 -= 1, "delivery_uncertain"),
        ("long after", |bench| bench.passes(Millis(1_000_000)), "not_delivered"),
        ("a child lives", |bench| bench.live.child_lives = true, "delivery_uncertain"),
        (
            "the holder is the one that asks",
            |bench| {
                bench.alive.insert(A);
                bench.passes(OVERDUE);
                // B stands in for A from here on.
                let crossing = bench.state.runs.values_mut().next().unwrap().crossing.as_mut().unwrap();
                crossing.holder = B;
            },
            "delivery_uncertain",
        ),
    ];
    for (case, change, want) in cases {
        let (mut bench, run, ..) = Bench::crossed(&acting(0));
        bench.dies(A);
        bench.passes(OVER);
        change(&mut bench);
        let (got, mut bench) = reconciled(bench, run, absent());
        assert_eq!(got, want, "{case}");
        let settled = bench.journal.iter().any(|entry| {
            matches!(&entry.event, Event::DeliverySettled(settled) if settled.settlement == Settlement::Absent)
        });
        assert_eq!(settled, want == "not_delivered", "{case}");
        // Only then may the step run.
        let rechecked = word(&bench.acquire(run, true));
        assert_eq!(rechecked, if settled { "leased" } else { "paused" }, "{case}");
        if settled {
            let token = bench.run(run).lease.unwrap().token;
            bench.begun(run, token, &acting(0));
        }
    }
}

#[test]
fn what_was_read_too_early_proves_nothing_later() {
    type Change = fn(&mut Bench);
    let changes: [(&str, Change); 3] = [
        ("the time came in between", |bench| bench.passes(OVER)),
        ("the holder died in between", |bench| {
            bench.dies(A);
        }),
        ("the child ended in between", |bench| bench.live.child_lives = false),
    ];
    for (at, (case, change)) in changes.into_iter().enumerate() {
        let (mut bench, run, ..) = Bench::crossed(&acting(0));
        match at {
            0 => bench.dies(A),
            1 => bench.passes(OVERDUE),
            _ => {
                bench.dies(A);
                bench.passes(OVER);
                bench.live.child_lives = true;
            }
        }
        bench.me = B;
        bench.acquire(run, false);
        let early = bench.carried_out(run, Action::Reconcile, "early");
        change(&mut bench);
        bench.me = B;
        assert_eq!(word(&bench.finish(run, early, absent())), "delivery_uncertain", "{case}");
        let late = bench.carried_out(run, Action::Reconcile, "late");
        assert_eq!(word(&bench.finish(run, late, absent())), "not_delivered", "{case}: a new read does");
    }
}

#[test]
fn a_journalled_return_stands_for_the_holders_end() {
    for outcome in [ReceiptOutcome::Unclear, ReceiptOutcome::Acted] {
        for (waits, want) in [(OVER.0 - 1, "delivery_uncertain"), (OVER.0, "not_delivered")] {
            let (mut bench, run, token, delivery) = Bench::crossed(&acting(0));
            bench.say(Bench::receipt(run, token, delivery, outcome));
            if outcome == ReceiptOutcome::Acted {
                let finding = super::bench::finding(protocol::pause::Category::EffectRefuted);
                bench.say(Command::Stop { run, token, step: acting(0), finding });
            }
            bench.passes(Millis(waits));
            assert!(bench.alive.contains(&A));
            assert_eq!(reconciled(bench, run, absent()).0, want, "{outcome} {waits}");
        }
    }
}

#[test]
fn only_reads_of_every_effect_as_absent_count() {
    let two = StepFacts { effects: 2, ..acting(0) };
    let mixed = |status| {
        let mut mixed = readings(&two, EffectStatus::Absent);
        mixed[1].status = status;
        mixed
    };
    let cases: Vec<(&str, StepFacts, Vec<_>, &str)> = vec![
        ("both absent", two.clone(), readings(&two, EffectStatus::Absent), "not_delivered"),
        ("nothing read", two.clone(), vec![], "not_verified"),
        ("one unread", two.clone(), readings(&acting(0), EffectStatus::Absent), "not_verified"),
        ("one there", two.clone(), mixed(EffectStatus::Confirmed), "not_verified"),
        ("one differs", two.clone(), mixed(EffectStatus::Refuted), "not_verified"),
        ("one unreadable", two.clone(), mixed(EffectStatus::Indeterminate), "not_verified"),
        ("one needs a person", two.clone(), mixed(EffectStatus::Unverifiable), "not_verified"),
        ("the step declares none", StepFacts { effects: 0, ..acting(0) }, vec![], "not_verified"),
        (
            "another effect needs a person",
            StepFacts { attested: 1, ..acting(0) },
            readings(&acting(0), EffectStatus::Absent),
            "not_verified",
        ),
    ];
    for (case, step, effects, want) in cases {
        let (mut bench, run, ..) = Bench::crossed(&step);
        bench.dies(A);
        bench.passes(OVER);
        assert_eq!(reconciled(bench, run, LiveFinding::Absent(effects)).0, want, "{case}");
    }
}

#[test]
fn a_screen_alone_confirms_nothing() {
    let bare = StepFacts { effects: 0, ..acting(0) };
    for (case, step, want) in [("an effect", acting(0), "completed"), ("none", bare, "not_verified")] {
        let (mut bench, run, ..) = Bench::crossed(&step);
        bench.dies(A);
        let found = LiveFinding::Verified(verified(&step));
        assert_eq!(reconciled(bench, run, found).0, want, "{case}");
    }
}

#[test]
fn an_uncertain_decision_on_a_persons_step_is_settled_as_never_delivered() {
    let no_effects = StepFacts { effects: 0, ..attended(0) };
    for (case, step, status, lives, given_up, want) in [
        ("its holder died", attended(0), EffectStatus::Absent, false, false, "not_delivered"),
        (
            "the reads worked, whatever they show",
            attended(0),
            EffectStatus::Refuted,
            false,
            false,
            "not_delivered",
        ),
        ("the reads did not work", attended(0), EffectStatus::Indeterminate, false, false, "not_verified"),
        ("no effects to read", no_effects, EffectStatus::Absent, false, false, "not_delivered"),
        ("its holder lives", attended(0), EffectStatus::Absent, true, false, "delivery_uncertain"),
        ("its holder gave the call up", attended(0), EffectStatus::Absent, true, true, "not_delivered"),
    ] {
        let (mut bench, run) = Bench::paused_at(&step);
        let (token, decision) = bench.carried_out(run, Action::Continue, "k");
        let shown = bench.request(run, Action::Continue, "k");
        if given_up {
            let lost = bench.say(Command::LoseDecision { run, token, decision });
            assert_eq!(word(&lost), "delivery_uncertain", "{case}: an exception is not a refusal");
        }
        if !lives {
            bench.dies(A);
        }
        bench.passes(OVERDUE);
        let (got, mut bench) = reconciled(bench, run, LiveFinding::Absent(readings(&step, status)));
        assert_eq!(got, want, "{case}");
        if want != "not_delivered" {
            continue;
        }
        // The first key has its terminal answer; the pause is open again, under a new capability.
        let answer = bench.say(Bench::decide_command(shown.clone()));
        let Answer::Decided { decision, replayed: true, .. } = answer else { panic!("{answer:?}") };
        assert_eq!(
            decision.phase,
            Phase::Terminal { outcome: DecisionOutcome::NotDelivered, refusal: None },
            "{case}"
        );
        assert_ne!(bench.request(run, Action::Continue, "new").capability_digest, shown.capability_digest);
        assert_eq!(word(&bench.decide(run, Action::Continue, "new")), "carry out", "{case}");
    }
}

#[test]
fn a_skip_whose_step_turns_out_to_be_done_was_not_verified() {
    let step = StepFacts { effects: 1, ..super::bench::skippable(0) };
    let (mut bench, run) = Bench::paused_at(&step);
    let request = bench.request(run, Action::Skip, "skip");
    bench.carried_out(run, Action::Skip, "skip");
    bench.dies(A);
    let (got, mut bench) = reconciled(bench, run, LiveFinding::Verified(verified(&step)));
    assert_eq!(got, "completed");
    let answer = bench.say(Bench::decide_command(request));
    let Answer::Decided { decision, .. } = answer else { panic!("{answer:?}") };
    assert!(matches!(decision.phase, Phase::Terminal { outcome: DecisionOutcome::Refused, .. }));
}
