//! The machine against the reference model. Source: issue A, "What must hold" 8.

use std::collections::BTreeMap;

use opjournal_tests::fleet::Fleet;
use opjournal_tests::workload::{happen, happening, judge};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use protocol::event::Event;

/// As many cases as `PROPTEST_CASES` asks for, for a longer look; by default what a debug build does in half a minute.
fn config() -> ProptestConfig {
    let asked = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { asked.cases } else { 1_000 };
    ProptestConfig { cases, max_shrink_iters: 5_000, ..asked }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_machine_agrees_with_the_model(happenings in prop::collection::vec(happening(), 0..160)) {
        if let Err(violation) = judge(&happenings) {
            return Err(TestCaseError::fail(violation.to_string()));
        }
    }
}

/// A workload that never reaches what it is meant to judge would agree with anything.
#[test]
fn the_workload_reaches_every_kind_of_event_that_the_machine_writes() {
    let mut runner = TestRunner::deterministic();
    let workload = prop::collection::vec(happening(), 160);
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for _ in 0..100 {
        let happenings = workload.new_tree(&mut runner).unwrap().current();
        let mut fleet = Fleet::default();
        for happening in happenings {
            happen(&mut fleet, happening).unwrap();
        }
        for entry in fleet.journal() {
            let detail = detail(&entry.event);
            *seen.entry(format!("{} {detail}", entry.event.name()).trim_end().into()).or_default() += 1;
        }
    }
    let rare: Vec<&str> =
        EXPECTED.iter().copied().filter(|name| seen.get(*name).is_none_or(|count| *count < 3)).collect();
    assert!(rare.is_empty(), "hardly reached: {rare:?} in {seen:#?}");
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the events without a variant of their own are counted as they are"
)]
fn detail(event: &Event) -> &'static str {
    match event {
        Event::DeliverySettled(fact) => fact.settlement.as_str(),
        Event::DeliveryUncertain(fact) => fact.reason.as_str(),
        Event::StepReceipt(fact) => fact.outcome.as_str(),
        Event::Checkpoint(fact) => fact.kind.as_str(),
        Event::DecisionFinished(fact) => fact.outcome.as_str(),
        Event::PauseClosed(fact) => fact.resolution.as_str(),
        Event::RefusalRecorded(fact) => fact.code.as_str(),
        Event::RunFinished(fact) => fact.outcome.as_str(),
        _ => "",
    }
}

const EXPECTED: &[&str] = &[
    "checkpoint engine",
    "checkpoint human",
    "checkpoint read",
    "checkpoint reconciled",
    "checkpoint skipped",
    "decision_finished completed",
    "decision_finished not_delivered",
    "decision_finished refused",
    "decision_recorded",
    "decision_started",
    "delivery_settled absent",
    "delivery_settled confirmed",
    "delivery_uncertain executor_lost",
    "delivery_uncertain holder_died",
    "delivery_uncertain lease_expired",
    "pause_closed canceled",
    "pause_closed continued",
    "pause_closed rechecked",
    "pause_closed reconciled",
    "pause_closed rejected",
    "pause_expired",
    "refusal_recorded busy",
    "refusal_recorded delivery_uncertain",
    "refusal_recorded fenced",
    "refusal_recorded idempotency_conflict",
    "refusal_recorded stale_capability",
    "run_finished CANCELED",
    "run_finished REJECTED_BY_OPERATOR",
    "run_finished VERIFIED",
    "step_receipt acted",
    "step_receipt not_sent",
    "step_receipt unclear",
];
