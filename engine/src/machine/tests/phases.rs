//! Commands of the driver in every phase of a step: what does not belong there is refused and changes nothing.

use alloc::vec;

use protocol::bundle::Attended;
use protocol::command::{Command, Verified};
use protocol::delivery::{EffectStatus, ReceiptOutcome};
use protocol::event::{CheckpointKind, StepFacts};
use protocol::ids::{DeliveryId, LeaseToken, RunId};
use protocol::pause::{Category, IdentityStatus};

use super::bench::{Bench, acting, attended, finding, readings, verified, word};

/// Builds a run in one phase, with the lease's token and the delivery under way.
type Phase = fn() -> (Bench, RunId, LeaseToken, DeliveryId);

const NO_DELIVERY: DeliveryId = DeliveryId([0; 16]);

fn idle() -> (Bench, RunId, LeaseToken, DeliveryId) {
    let mut bench = Bench::new();
    let run = bench.started(2);
    let token = bench.acquired(run);
    (bench, run, token, NO_DELIVERY)
}

fn returned(outcome: ReceiptOutcome) -> (Bench, RunId, LeaseToken, DeliveryId) {
    let (mut bench, run, token, delivery) = Bench::crossed(&acting(0));
    bench.say(Bench::receipt(run, token, delivery, outcome));
    (bench, run, token, delivery)
}

fn deciding() -> (Bench, RunId, LeaseToken, DeliveryId) {
    let (mut bench, run) = Bench::paused_at(&acting(0));
    let (token, _) = bench.carried_out(run, protocol::decision::Action::Continue, "k");
    (bench, run, token, NO_DELIVERY)
}

#[test]
fn each_command_belongs_to_its_phase() {
    let phases: [(&str, Phase); 5] = [
        ("idle", idle),
        ("crossed", || Bench::crossed(&acting(0))),
        ("acted", || returned(ReceiptOutcome::Acted)),
        ("not sent", || returned(ReceiptOutcome::NotSent)),
        ("deciding", deciding),
    ];
    // begin, receipt, commit by the engine, commit as read, stop.
    let wanted = [
        ("idle", ["deliver", "wrong_phase", "wrong_phase", "committed", "paused"]),
        ("crossed", ["wrong_phase", "recorded", "wrong_phase", "wrong_phase", "paused"]),
        ("acted", ["wrong_phase", "wrong_phase", "committed", "wrong_phase", "paused"]),
        ("not sent", ["deliver", "wrong_phase", "wrong_phase", "committed", "paused"]),
        ("deciding", ["wrong_phase", "wrong_phase", "wrong_phase", "wrong_phase", "wrong_phase"]),
    ];
    for ((name, phase), (named, wants)) in phases.into_iter().zip(wanted) {
        assert_eq!(name, named);
        let read = StepFacts { acts: false, ..acting(0) };
        for (at, want) in wants.into_iter().enumerate() {
            let (mut bench, run, token, delivery) = phase();
            let commands = [
                Bench::begin(run, token, &acting(0)),
                Bench::receipt(run, token, delivery, ReceiptOutcome::Acted),
                Bench::commit(run, token, &acting(0), CheckpointKind::Engine),
                Bench::commit(run, token, &read, CheckpointKind::Read),
                Command::Stop { run, token, step: acting(0), finding: finding(Category::Halt) },
            ];
            let before = bench.state.clone();
            assert_eq!(word(&bench.say(commands[at].clone())), want, "{name}, command {at}");
            assert_eq!(bench.state == before, want == "wrong_phase", "{name}, command {at}");
            // No phase takes the step of another place.
            let (mut bench, run, token, _) = phase();
            for wrong in [
                Bench::begin(run, token, &acting(1)),
                Bench::commit(run, token, &acting(1), CheckpointKind::Engine),
                Command::Stop { run, token, step: acting(1), finding: finding(Category::Halt) },
            ] {
                assert_eq!(word(&bench.say(wrong)), "wrong_phase", "{name}");
            }
        }
    }
}

#[test]
fn the_engine_never_does_a_persons_step() {
    let persons = StepFacts { acts: true, ..attended(0) };
    let read = attended(0);
    let (mut bench, run, token, _) = idle();
    assert_eq!(word(&bench.say(Bench::begin(run, token, &persons))), "wrong_phase");
    assert_eq!(word(&bench.say(Bench::commit(run, token, &read, CheckpointKind::Read))), "wrong_phase");
    for kind in [CheckpointKind::Human, CheckpointKind::Reconciled] {
        assert_eq!(word(&bench.say(Bench::commit(run, token, &acting(0), kind))), "wrong_phase", "{kind}");
    }
}

#[test]
fn a_commit_needs_every_effect_confirmed_and_no_other_identity() {
    let with = |effects, identity_status| Verified { effects, identity_status, identity: None };
    let sound = IdentityStatus::NotRequired;
    for (case, verified, want) in [
        ("confirmed", with(readings(&acting(0), EffectStatus::Confirmed), sound), "committed"),
        ("unread", with(vec![], sound), "wrong_phase"),
        ("absent", with(readings(&acting(0), EffectStatus::Absent), sound), "wrong_phase"),
        ("refuted", with(readings(&acting(0), EffectStatus::Refuted), sound), "wrong_phase"),
        ("indeterminate", with(readings(&acting(0), EffectStatus::Indeterminate), sound), "wrong_phase"),
        (
            "another record",
            with(readings(&acting(0), EffectStatus::Confirmed), IdentityStatus::Mismatch),
            "wrong_phase",
        ),
    ] {
        let (mut bench, run, token, _) = returned(ReceiptOutcome::Acted);
        let commit =
            Command::CommitStep { run, token, step: acting(0), kind: CheckpointKind::Engine, verified };
        assert_eq!(word(&bench.say(commit)), want, "{case}");
    }
    // Nor can the step be described otherwise than when its boundary was crossed.
    let (mut bench, run, token, _) = returned(ReceiptOutcome::Acted);
    let lesser = StepFacts { effects: 0, ..acting(0) };
    assert_eq!(word(&bench.say(Bench::commit(run, token, &lesser, CheckpointKind::Engine))), "wrong_phase");
}

#[test]
fn only_a_declared_step_without_consequence_is_skipped() {
    for (consequential, skippable, want) in [
        (false, true, "committed"),
        (true, true, "wrong_phase"),
        (false, false, "wrong_phase"),
        (true, false, "wrong_phase"),
    ] {
        let step = StepFacts { consequential, skippable, ..acting(0) };
        let (mut bench, run, token, _) = idle();
        let nothing =
            Verified { effects: vec![], identity_status: IdentityStatus::NotRequired, identity: None };
        let commit =
            Command::CommitStep { run, token, step, kind: CheckpointKind::Skipped, verified: nothing };
        assert_eq!(word(&bench.say(commit)), want, "{consequential} {skippable}");
    }
    assert_eq!(verified(&acting(0)).effects.len(), 1);
}

#[test]
fn a_stop_ends_only_an_unattended_run_that_delivered_nothing() {
    for (attended, receipt, want) in [
        (Attended::Never, None, "HALTED_BEFORE_EFFECT"),
        (Attended::Never, Some(ReceiptOutcome::NotSent), "HALTED_BEFORE_EFFECT"),
        (Attended::Never, Some(ReceiptOutcome::Acted), "paused"),
        (Attended::OnHalt, None, "paused"),
        (Attended::Always, None, "paused"),
    ] {
        let step = StepFacts { attended, ..acting(0) };
        let (mut bench, run, token, _) = idle();
        if let Some(outcome) = receipt {
            let delivery = bench.begun(run, token, &step);
            bench.say(Bench::receipt(run, token, delivery, outcome));
        }
        let stop = Command::Stop { run, token, step, finding: finding(Category::Postcondition) };
        assert_eq!(word(&bench.say(stop)), want, "{attended} {receipt:?}");
    }
}

#[test]
fn an_unknown_delivery_is_the_category_whatever_the_driver_found_first() {
    for (category, want) in [
        (Category::Halt, Category::DeliveryUncertain),
        (Category::EffectRefuted, Category::DeliveryUncertain),
        (Category::BusinessDecision, Category::BusinessDecision),
    ] {
        let (mut bench, run, token, _) = Bench::crossed(&acting(0));
        bench.say(Command::Stop { run, token, step: acting(0), finding: finding(category) });
        assert_eq!(bench.run(run).pause.as_ref().unwrap().opened.category, want, "{category}");
    }
}
