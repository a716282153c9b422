//! Judges what a scenario has left behind: the clinic's own access log, the journal's facts, and what `verify` and
//! `replay` say of them.

use std::collections::BTreeMap;

use protocol::delivery::{ReceiptOutcome, Settlement};
use protocol::event::{Entry, Event};
use protocol::outcome::RunOutcome;
use serde_json::Value;

use super::journal_events::entries;
use super::operator::Asked;
use super::process::text;
use super::scenario::Bench;

/// Nothing was done twice so far, whatever else is open.
pub(crate) fn nothing_twice(bench: &Bench) {
    for (reference, requests) in bench.clinic.actuations() {
        assert_eq!(requests, 1, "the clinic was written to {requests} times under {reference}");
    }
}

/// The run has ended VERIFIED, everything was done exactly once, and the journal says how.
pub(crate) fn all_done_once(bench: &Bench, asked: &[Asked]) {
    let want: BTreeMap<String, usize> =
        bench.scenario.references.iter().map(|reference| ((*reference).to_owned(), 1)).collect();
    assert_eq!(bench.clinic.actuations(), want, "requests by reference");

    let facts = entries(&bench.home);
    repeats_only_what_was_proven_absent(&facts);
    let ends: Vec<_> = facts
        .iter()
        .filter_map(|entry| {
            let Event::RunFinished(finished) = &entry.event else { return None };
            Some(finished.outcome)
        })
        .collect();
    assert_eq!(ends, [RunOutcome::Verified], "one run, ended once");

    let repeated = bench.call(&bench.run_arguments()).run().must_exit(0);
    assert_eq!(repeated.document()["replayed"], true, "{repeated}");
    assert_eq!(text(&repeated.document(), "/run/execution_outcome"), "VERIFIED", "{repeated}");
    for asked in asked {
        repeats_as_recorded(bench, asked, &facts);
    }
    stands(bench);
    let after = entries(&bench.home);
    assert_eq!(deliveries(&after), deliveries(&facts), "repeating requests delivered something");
    assert_eq!(bench.clinic.actuations(), want, "requests by reference, after everything was repeated");
}

/// `verify` finds everything intact, and `replay` comes to every recorded state.
pub(crate) fn stands(bench: &Bench) {
    bench.call(&["verify"]).run().must_exit(0);
    bench.call(&["replay"]).run().must_exit(0);
}

/// Between two deliveries of one step there is a proof that the first did not happen.
pub(crate) fn repeats_only_what_was_proven_absent(facts: &[Entry]) {
    let mut open = BTreeMap::new();
    for entry in facts {
        if let Event::StepIntent(intent) = &entry.event {
            let before = open.insert((intent.run, intent.step.index), intent.delivery);
            assert_eq!(before, None, "step {} was delivered twice: {facts:#?}", intent.step.index);
        }
        let did_not_happen = if let Event::StepReceipt(receipt) = &entry.event {
            (receipt.outcome == ReceiptOutcome::NotSent).then_some(receipt.delivery)
        } else if let Event::DeliverySettled(settled) = &entry.event {
            settled.delivery.filter(|_| settled.settlement == Settlement::Absent)
        } else {
            None
        };
        open.retain(|_, delivery| Some(*delivery) != did_not_happen);
    }
}

fn deliveries(facts: &[Entry]) -> usize {
    facts.iter().filter(|entry| matches!(entry.event, Event::StepIntent(_))).count()
}

/// Without an executor, in a process of its own, after the run has ended: a key that was admitted gives what was
/// recorded under it, as often as one asks; one that never was is refused.
fn repeats_as_recorded(bench: &Bench, asked: &Asked, facts: &[Entry]) {
    let recorded = facts.iter().find_map(|entry| {
        let Event::DecisionFinished(finished) = &entry.event else { return None };
        (finished.key.as_str() == asked.key).then(|| finished.clone())
    });
    let arguments = bench.decide_arguments(&asked.item, &asked.action, &asked.key);
    let Some(recorded) = recorded else {
        let refused = bench.call(&arguments).run().must_exit(2);
        assert_eq!(refused.code(), "unknown_attention", "{refused}");
        return;
    };
    let first = bench.call(&arguments).run();
    let second = bench.call(&arguments).run();
    assert_eq!(first.exit, second.exit, "{first}{second}");
    let (answer, again) = (first.document(), second.document());
    assert_eq!(answer, again, "{first}");
    assert_eq!(answer["replayed"], true, "{first}");
    assert_eq!(text(&answer, "/decision/decision"), recorded.decision.to_string(), "{first}");
    assert_eq!(text(&answer, "/decision/outcome"), recorded.outcome.as_str(), "{first}");
    let refusal = recorded.refusal.map(|code| Value::from(code.as_str())).unwrap_or_default();
    assert_eq!(answer["decision"]["refusal"], refusal, "{first}");
    if let Some(earlier) = &asked.answer {
        assert_eq!(answer["decision"], *earlier, "{first}");
    }
}
