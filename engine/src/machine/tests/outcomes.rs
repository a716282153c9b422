//! The outcome of a run over every combination of evidence, against RULINGS 2 said another way: as a list of claims, of
//! which the first that is true is the outcome.

use alloc::vec;

use protocol::command::{Command, LiveFinding};
use protocol::decision::Action;
use protocol::delivery::{EffectStatus, ReceiptOutcome};
use protocol::event::{CheckpointKind, Event, StepFacts};
use protocol::outcome::{RecordChanged, RunOutcome};
use protocol::pause::Category;

use super::bench::{Bench, acting, attended, author, finding, readings, verified, word};
use crate::machine::outcome::{Ending, Evidence, derive, evidence, record_changed};

fn stated(seen: Evidence, ending: Ending) -> RunOutcome {
    let claims = [
        (seen.uncertain, RunOutcome::ReconciliationRequired),
        (seen.at_end && seen.declared >= 1 && seen.confirmed == seen.declared, RunOutcome::Verified),
        (seen.rolled_back, RunOutcome::RolledBack),
        (seen.at_end, RunOutcome::CompletedUnverified),
        (seen.consequential_open, RunOutcome::ReconciliationRequired),
        (ending == Ending::Policy, RunOutcome::RejectedPolicy),
        (ending == Ending::Rejected, RunOutcome::RejectedByOperator),
        (ending == Ending::Canceled, RunOutcome::Canceled),
        (ending == Ending::Platform, RunOutcome::FailedPlatform),
        (!seen.made, RunOutcome::HaltedBeforeEffect),
        (true, RunOutcome::Halted),
    ];
    claims.iter().find(|(claim, _)| *claim).unwrap().1
}

#[test]
fn every_combination_of_evidence_gives_the_first_claim_that_is_true() {
    let endings =
        [Ending::End, Ending::Policy, Ending::Rejected, Ending::Canceled, Ending::Platform, Ending::Halt];
    for bits in 0..1_u32 << 5 {
        for (declared, confirmed) in [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)] {
            for ending in endings {
                let seen = Evidence {
                    uncertain: bits & 1 > 0,
                    at_end: bits & 2 > 0,
                    declared,
                    confirmed,
                    rolled_back: bits & 4 > 0,
                    consequential_open: bits & 8 > 0,
                    made: bits & 16 > 0,
                };
                let outcome = derive(seen, ending);
                assert_eq!(outcome, stated(seen, ending), "{seen:?} {ending:?}");
                if outcome == RunOutcome::Verified {
                    assert!(seen.at_end && !seen.uncertain && seen.declared > 0, "never a false success");
                }
                let changed = match (confirmed > 0, seen.made || seen.uncertain) {
                    (true, _) => RecordChanged::Yes,
                    (false, true) => RecordChanged::Unknown,
                    (false, false) => RecordChanged::No,
                };
                assert_eq!(record_changed(seen), changed);
            }
        }
    }
}

#[test]
fn runs_end_as_their_evidence_says() {
    let bare = |index| StepFacts { effects: 0, ..acting(index) };
    // Effects that the run declares, what its one step is, and how the run ends after it.
    for (case, effects, step, then_cancel, want) in [
        ("every declared effect confirmed", 1, acting(0), false, RunOutcome::Verified),
        ("one declared effect was never made", 2, acting(0), false, RunOutcome::CompletedUnverified),
        ("no effect declared", 0, bare(0), false, RunOutcome::CompletedUnverified),
        ("canceled after a confirmed effect", 2, acting(0), true, RunOutcome::Canceled),
        (
            "canceled after a consequential act without evidence",
            1,
            bare(0),
            true,
            RunOutcome::ReconciliationRequired,
        ),
        (
            "canceled after an act without consequence",
            1,
            StepFacts { consequential: false, ..bare(0) },
            true,
            RunOutcome::Canceled,
        ),
    ] {
        let mut bench = Bench::new();
        let mut start = bench.start_command(if then_cancel { 2 } else { 1 });
        start.effects = effects;
        bench.say(Command::StartRun(start));
        let run = *bench.state.runs.keys().next().unwrap();
        let token = bench.acquired(run);
        let delivery = bench.begun(run, token, &step);
        bench.say(Bench::receipt(run, token, delivery, ReceiptOutcome::Acted));
        let mut answer = bench.say(Bench::commit(run, token, &step, CheckpointKind::Engine));
        if then_cancel {
            assert_eq!(word(&answer), "committed", "{case}");
            bench.say(Command::Release { run, token });
            answer = bench.say(Command::Cancel { run, author: author() });
        }
        assert_eq!(word(&answer), want.as_str(), "{case}");
        assert!(bench.state.runs.is_empty() && bench.replays(), "{case}");
    }
}

#[test]
fn a_reject_never_turns_an_unreconciled_write_into_a_clean_end() {
    for outcome in [ReceiptOutcome::Acted, ReceiptOutcome::Unclear] {
        let (mut bench, run, token, delivery) = Bench::crossed(&acting(0));
        bench.say(Bench::receipt(run, token, delivery, outcome));
        if outcome == ReceiptOutcome::Acted {
            bench.say(Command::Stop {
                run,
                token,
                step: acting(0),
                finding: finding(Category::EffectIndeterminate),
            });
        }
        let refused = word(&bench.decide(run, Action::Reject, "reject"));
        assert!(matches!(refused.as_str(), "action_not_allowed" | "delivery_uncertain"), "{refused}");
        assert_eq!(word(&bench.say(Command::Cancel { run, author: author() })), "paused");
        assert!(bench.state.runs.contains_key(&run), "nothing ended it");
        // Derived now, the outcome would not be a clean one, whatever the ending.
        let seen = evidence(bench.run(run));
        for ending in [Ending::Rejected, Ending::Canceled, Ending::Halt, Ending::Policy] {
            assert_eq!(derive(seen, ending), RunOutcome::ReconciliationRequired);
        }
    }
}

#[test]
fn a_humans_checkpoint_says_what_the_halt_captured_and_that_the_engine_delivered_nothing() {
    let captured = protocol::digest::MacDigest([0x1d; 32]);
    let step = StepFacts { identity_required: true, ..attended(0) };
    let (mut bench, run) = Bench::paused_for(
        &step,
        protocol::command::Finding {
            identity_status: protocol::pause::IdentityStatus::Verified,
            identity: Some(captured),
            ..finding(Category::AttendedStep)
        },
    );
    let carried = bench.carried_out(run, Action::Continue, "k");
    let mut next = verified(&step);
    next.identity = Some(protocol::digest::MacDigest([0x2e; 32]));
    assert_eq!(word(&bench.finish(run, carried, LiveFinding::Verified(next))), "completed");
    let checkpoint = bench.journal.iter().find_map(|entry| {
        let Event::Checkpoint(checkpoint) = &entry.event else { return None };
        Some(checkpoint.clone())
    });
    let checkpoint = checkpoint.unwrap();
    assert_eq!(checkpoint.kind, CheckpointKind::Human);
    assert!(!checkpoint.delivery_attempted);
    assert_eq!(checkpoint.identity, Some(captured), "not the next record's");
}

#[test]
fn a_continue_that_lacks_one_effect_is_not_verified() {
    let step = StepFacts { effects: 2, ..attended(0) };
    for (case, effects) in [
        ("one unread", vec![readings(&step, EffectStatus::Confirmed)[0].clone()]),
        ("both absent", readings(&step, EffectStatus::Absent)),
        ("both unreadable", readings(&step, EffectStatus::Indeterminate)),
    ] {
        let (mut bench, run) = Bench::paused_at(&step);
        let carried = bench.carried_out(run, Action::Continue, "k");
        let mut claim = verified(&step);
        claim.effects = effects;
        assert_eq!(word(&bench.finish(run, carried, LiveFinding::Verified(claim))), "not_verified", "{case}");
    }
}
