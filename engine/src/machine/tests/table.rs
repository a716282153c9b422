//! The decision table of attended-contract §4: every row, every code, and the order by pairs.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use protocol::capability::CapabilityKey;
use protocol::command::LiveFinding;
use protocol::decision::{Action, DecisionRequest, Disposition};
use protocol::digest::{MacDigest, Sha256Digest};
use protocol::event::{DecisionPrepared, LeaseGranted, Under};
use protocol::ids::{DecisionId, LeaseToken, RunId};
use protocol::refusal::{Refusal, RefusalCode};
use protocol::time::Millis;

use super::bench::{A, B, Bench, attended, author, key, parsed, skippable, verified, word};
use crate::machine::{Answer, Phase};

const DAY: Millis = Millis::from_secs(24 * 60 * 60);

/// A continue that would be carried out, asked by a second process.
struct Case {
    bench: Bench,
    run: RunId,
    request: DecisionRequest,
}

impl Case {
    fn sound() -> Self {
        let (bench, run) = Bench::paused_at(&attended(0));
        let request = bench.request(run, Action::Continue, "k");
        Self { bench: bench.at(B), run, request }
    }

    fn answer(&self) -> String {
        word(&self.bench.ask(&Bench::decide_command(self.request.clone())).answer)
    }

    fn carried_out_by_a(&mut self, name: &str) -> (LeaseToken, DecisionId) {
        self.bench.me = A;
        let carried = self.bench.carried_out(self.run, Action::Continue, name);
        self.bench.me = B;
        carried
    }

    /// Another key is prepared and not started, under a lease of A's that lasts.
    fn prepared_by_a(&mut self) {
        let until = self.bench.now.after(Millis(DAY.0 * 30));
        let token = LeaseToken(self.bench.state.next);
        let request = self.bench.request(self.run, Action::Continue, "other");
        let pause = self.bench.run(self.run).pause.as_ref().unwrap().opened.pause;
        self.bench.me = A;
        self.bench.fold(LeaseGranted { run: self.run, holder: A, until });
        self.bench.fold(DecisionPrepared {
            decision: DecisionId([0xdd; 16]),
            run: self.run,
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
        self.bench.me = B;
    }
}

/// One way to fail. What `make` does comes before what `bend` does, so that two of them can stand in one case.
struct Row {
    number: u8,
    code: &'static str,
    make: fn(&mut Case),
    bend: fn(&mut Case),
}

fn nothing(_: &mut Case) {}

/// The rows in the order in which they answer: 13 stands before 9 for a continue (RULINGS 14).
const ROWS: &[Row] = &[
    Row {
        number: 1,
        code: "invalid_request",
        make: nothing,
        bend: |case| case.request.disposition = Some(Disposition::TeachRequested),
    },
    Row {
        number: 2,
        code: "idempotency_conflict",
        make: |case| {
            if !case.bench.state.keys.contains_key(&key("k")) {
                case.bench.decide(case.run, Action::Teach, "k");
            }
        },
        bend: |case| {
            // A teach under this key differs as it is; a continue, only in its explicit default.
            let known = case.bench.state.runs.get(&case.run).and_then(|run| run.decisions.get(&key("k")));
            if known.is_some_and(|decision| decision.action == Action::Continue) {
                case.request.disposition = Some(Disposition::CompletedByOperator);
            }
        },
    },
    Row {
        number: 3,
        code: "delivery_uncertain",
        make: |case| {
            case.carried_out_by_a("k");
            case.bench.dies(A);
        },
        bend: nothing,
    },
    Row {
        number: 4,
        code: "replayed",
        make: |case| {
            let carried = case.bench.carried_out(case.run, Action::Continue, "k");
            case.bench.finish(case.run, carried, LiveFinding::NotVerified);
        },
        bend: nothing,
    },
    Row {
        number: 5,
        code: "unknown_attention",
        make: nothing,
        bend: |case| case.request.attention_id = parsed("000000000000000000000000"),
    },
    Row {
        number: 6,
        code: "run_rejected",
        make: |case| {
            case.bench.decide(case.run, Action::Reject, "reject");
        },
        bend: nothing,
    },
    Row {
        number: 7,
        code: "stale_capability",
        make: nothing,
        bend: |case| case.request.capability_digest = Sha256Digest([0xee; 32]),
    },
    Row {
        number: 8,
        code: "capability_invalid",
        make: nothing,
        bend: |case| case.bench.key = Some(CapabilityKey::new([8; 32])),
    },
    Row {
        number: 13,
        code: "delivery_uncertain",
        make: |case| {
            case.carried_out_by_a("other");
            case.bench.dies(A);
        },
        bend: nothing,
    },
    Row {
        number: 9,
        code: "action_not_allowed",
        make: nothing,
        bend: |case| case.request.action = Action::Skip,
    },
    Row {
        number: 10,
        code: "pause_expired",
        make: nothing,
        bend: |case| case.bench.passes(Millis(DAY.0 * 7)),
    },
    Row {
        number: 11,
        code: "bundle_mismatch",
        make: nothing,
        bend: |case| case.bench.live.bundle = Some(Sha256Digest([0xee; 32])),
    },
    Row {
        number: 12,
        code: "state_diverged",
        make: nothing,
        bend: |case| case.bench.live.parameters = Some(MacDigest([0xee; 32])),
    },
    Row { number: 14, code: "busy", make: Case::prepared_by_a, bend: nothing },
    Row {
        number: 15,
        code: "executor_missing",
        make: nothing,
        bend: |case| {
            case.bench.live.executor = false;
            case.bench.live.policy = None;
        },
    },
];

/// Pairs that no case can show at once: both need the lease, the pause is gone with its run, or the one changes the
/// content of the request that the other must find unchanged under its key.
fn excludes(first: u8, second: u8) -> bool {
    matches!((first, second), (3, 4..=7 | 9 | 13 | 14) | (4, 5 | 7 | 9) | (5, 6) | (6, 13 | 14) | (13, 14))
}

#[test]
fn each_row_answers_its_code_and_nothing_fails_in_a_sound_case() {
    assert_eq!(Case::sound().answer(), "carry out");
    for row in ROWS {
        let mut case = Case::sound();
        (row.make)(&mut case);
        (row.bend)(&mut case);
        assert_eq!(case.answer(), row.code, "row {}", row.number);
    }
}

#[test]
fn a_request_that_fails_two_rows_is_answered_by_the_first() {
    let mut pairs = 0;
    for (at, first) in ROWS.iter().enumerate() {
        for second in &ROWS[at + 1..] {
            if excludes(first.number, second.number) {
                continue;
            }
            let mut case = Case::sound();
            // Rows 3 and 4 put the key to use themselves, so row 2 only changes the content.
            let order = if matches!((first.number, second.number), (2, 3 | 4)) {
                [second, first]
            } else {
                [first, second]
            };
            order.iter().for_each(|row| (row.make)(&mut case));
            order.iter().for_each(|row| (row.bend)(&mut case));
            assert_eq!(case.answer(), first.code, "rows {} and {}", first.number, second.number);
            pairs += 1;
        }
    }
    assert!(pairs >= 85, "{pairs} pairs");
}

#[test]
fn every_code_of_the_table_is_reached() {
    let mut reached: BTreeSet<String> = ROWS.iter().map(|row| row.code.into()).collect();
    let mut case = Case::sound();
    let carried = case.bench.carried_out(case.run, Action::Continue, "k");
    reached.insert(word(&case.bench.finish(case.run, carried, LiveFinding::NotVerified)));
    let rows = RefusalCode::ALL.iter().filter(|code| **code <= RefusalCode::NotVerified);
    let missing: Vec<_> = rows.filter(|code| !reached.contains(code.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn row_three_is_busy_while_the_holder_lives_and_its_grant_runs() {
    for (case, lives, waits, want) in [
        ("alive, in time", true, 0, "busy"),
        ("alive, one before its end", true, 30_999, "busy"),
        ("alive, at its end", true, 31_000, "delivery_uncertain"),
        ("dead", false, 0, "delivery_uncertain"),
    ] {
        // The same key and another one are told the same.
        for name in ["k", "another"] {
            let mut table = Case::sound();
            table.request = table.bench.request(table.run, Action::Continue, name);
            table.carried_out_by_a("k");
            table.bench.passes(Millis(waits));
            if !lives {
                table.bench.dies(A);
            }
            assert_eq!(table.answer(), want, "{case}, {name}");
        }
    }
}

#[test]
fn uncertainty_bars_what_would_end_or_pass_the_step_and_nothing_else() {
    for (action, want) in [
        (Action::Continue, "delivery_uncertain"),
        (Action::Skip, "delivery_uncertain"),
        (Action::Reject, "delivery_uncertain"),
        (Action::Teach, "completed"),
        (Action::Escalate, "completed"),
        (Action::Reconcile, "carry out"),
    ] {
        let mut case = Case::sound();
        case.carried_out_by_a("other");
        case.bench.dies(A);
        // The capability was issued before the uncertainty arose, and is still the current one.
        let answer = case.bench.decide(case.run, action, "mine");
        assert_eq!(word(&answer), want, "{action}");
        assert!(
            case.bench.journal.iter().any(|entry| entry.event.name() == "delivery_uncertain"),
            "{action}"
        );
    }
}

#[test]
fn teach_and_escalate_are_recorded_while_another_decision_is_carried_out() {
    let mut case = Case::sound();
    let carried = case.carried_out_by_a("k");
    assert_eq!(word(&case.bench.decide(case.run, Action::Teach, "teach")), "completed");
    assert_eq!(word(&case.bench.decide(case.run, Action::Escalate, "escalate")), "completed");
    let pause = case.bench.run(case.run).pause.as_ref().unwrap();
    assert!(pause.needs_demonstration && pause.escalated);
    let done = case.bench.at(A).finish(case.run, carried, LiveFinding::Verified(verified(&attended(0))));
    assert_eq!(word(&done), "completed");
}

#[test]
fn row_twelve_finds_whatever_the_capability_binds_to_have_changed() {
    type Change = fn(&mut Case);
    let changes: [(&str, Change); 7] = [
        ("parameters unreadable", |case| case.bench.live.parameters = None),
        ("policy changed", |case| case.bench.live.policy = Some(Sha256Digest([0xee; 32]))),
        ("an executor without a policy", |case| case.bench.live.policy = None),
        ("pause changed", |case| {
            let run = case.bench.state.runs.get_mut(&case.run).unwrap();
            run.pause.as_mut().unwrap().opened.evidence.push(MacDigest([1; 32]));
        }),
        ("cursor changed", |case| {
            let run = case.bench.state.runs.get_mut(&case.run).unwrap();
            run.cursor = run.cursor.next();
        }),
        ("parameters of the run changed", |case| {
            case.bench.state.runs.get_mut(&case.run).unwrap().admitted.parameters = MacDigest([0xee; 32]);
        }),
        ("length of the workflow changed", |case| {
            case.bench.state.runs.get_mut(&case.run).unwrap().admitted.steps = 1;
        }),
    ];
    for (name, change) in changes {
        let mut case = Case::sound();
        change(&mut case);
        assert_eq!(case.answer(), "state_diverged", "{name}");
    }
    let mut unread = Case::sound();
    unread.bench.live.bundle = None;
    assert_eq!(unread.answer(), "bundle_mismatch", "a bundle that cannot be read is not the one admitted");
}

#[test]
fn an_admitted_decision_answers_the_same_for_ever() {
    let mut case = Case::sound();
    let carried = case.bench.carried_out(case.run, Action::Continue, "k");
    let done = case.bench.finish(case.run, carried, LiveFinding::Verified(verified(&attended(0))));
    let Answer::Decided { decision: first, .. } = done else { panic!("{done:?}") };
    // Afterwards: another process, no executor, no key, an expired pause, and at last a run that has ended.
    case.bench.me = A;
    case.bench.key = None;
    case.bench.live = crate::machine::LiveFacts::default();
    case.bench.passes(Millis(DAY.0 * 40));
    for ended in [false, true] {
        if ended {
            case.bench.dies(B);
            case.bench.say(protocol::command::Command::Cancel { run: case.run, author: author() });
            assert!(case.bench.state.runs.is_empty());
        }
        let answer = case.bench.say(Bench::decide_command(case.request.clone()));
        let Answer::Decided { decision, replayed: true, token: None } = answer else { panic!("{answer:?}") };
        assert_eq!(decision, first);
    }
    // The same key with other content is refused before anything else, even then.
    case.request.disposition = Some(Disposition::CompletedByOperator);
    assert_eq!(case.answer(), "idempotency_conflict");
}

#[test]
fn a_refusal_binds_no_key_and_is_journalled_without_values() {
    let mut case = Case::sound();
    case.bench.live.executor = false;
    let before = case.bench.state.next;
    let refused = case.bench.say(Bench::decide_command(case.request.clone()));
    assert_eq!(word(&refused), "executor_missing");
    assert_eq!(case.bench.names_since(before), ["refusal_recorded"]);
    assert!(case.bench.state.keys.is_empty());
    case.bench.live.executor = true;
    assert_eq!(case.answer(), "carry out");
    // Malformed and unknown requests are counted by the service instead.
    case.request.attention_id = parsed("000000000000000000000000");
    assert!(case.bench.ask(&Bench::decide_command(case.request.clone())).events.is_empty());
    // Without room for the record, the refusal is answered all the same.
    let mut full = Case::sound();
    full.bench.live.executor = false;
    full.bench.space = 10;
    let told = full.bench.ask(&Bench::decide_command(full.request.clone()));
    assert_eq!((word(&told.answer).as_str(), told.events.len()), ("executor_missing", 0));
}

#[test]
fn not_verified_and_guard_holds_are_terminal_for_their_key_and_leave_the_pause_open() {
    for (step, action, finding, want) in [
        (attended(0), Action::Continue, LiveFinding::NotVerified, "not_verified"),
        (attended(0), Action::Continue, LiveFinding::GuardUnmet, "not_verified"),
        (attended(0), Action::Continue, LiveFinding::Absent(alloc::vec![]), "not_verified"),
        (skippable(0), Action::Skip, LiveFinding::GuardHolds, "guard_holds"),
        (skippable(0), Action::Skip, LiveFinding::NotVerified, "not_verified"),
        (skippable(0), Action::Skip, LiveFinding::Verified(verified(&skippable(0))), "not_verified"),
    ] {
        let (mut bench, run) = Bench::paused_at(&step);
        let shown = bench.request(run, action, "k").capability_digest;
        let carried = bench.carried_out(run, action, "k");
        assert_eq!(word(&bench.finish(run, carried, finding.clone())), want, "{action} {finding:?}");
        assert_eq!(word(&bench.decide(run, action, "k")), "replayed");
        assert!(bench.run(run).lease.is_none());
        assert_eq!(bench.request(run, action, "k").capability_digest, shown, "an unchanged pause keeps it");
        assert_eq!(word(&bench.decide(run, action, "new")), "carry out", "a new attempt needs a new key");
    }
}

#[test]
fn a_missing_capability_key_delays_decisions_and_never_strands_the_pause() {
    let mut bench = Bench::new();
    let run = bench.started(2);
    let token = bench.acquired(run);
    let kept = bench.key.take();
    bench.say(protocol::command::Command::Stop {
        run,
        token,
        step: attended(0),
        finding: super::bench::finding(protocol::pause::Category::AttendedStep),
    });
    assert_eq!(word(&bench.decide(run, Action::Continue, "k")), "capability_invalid");
    bench.key = kept;
    let mut resumed = bench.clone();
    assert_eq!(word(&resumed.acquire(run, false)), "paused", "looking at the pause issues one, too");
    assert_eq!(word(&resumed.decide(run, Action::Continue, "k")), "carry out");
    assert_eq!(
        word(&bench.decide(run, Action::Continue, "k")),
        "stale_capability",
        "one was issued meanwhile"
    );
    assert_eq!(word(&bench.decide(run, Action::Continue, "k")), "carry out");
}

#[test]
fn a_prepared_decision_goes_on_under_its_key_and_another_may_start() {
    for (case, name, dies, want) in [
        ("its holder lives", "other", false, "busy"),
        ("the same key", "other", true, "carry out"),
        ("another key", "mine", true, "carry out"),
    ] {
        let mut table = Case::sound();
        table.prepared_by_a();
        if dies {
            table.bench.dies(A);
        }
        let answer = table.bench.decide(table.run, Action::Continue, name);
        assert_eq!(word(&answer), want, "{case}");
        if let Answer::CarryOut { decision, .. } = answer {
            assert_eq!(decision.id == DecisionId([0xdd; 16]), name == "other", "{case}");
            assert!(matches!(decision.phase, Phase::Started { holder: B, .. }), "{case}");
        }
    }
}

#[test]
fn an_uncertain_retry_says_how_long_an_absence_stays_unproven() {
    let mut case = Case::sound();
    case.carried_out_by_a("k");
    case.bench.dies(A);
    for (waits, want) in [(0, Some(Millis(1_500))), (1_499, Some(Millis(1))), (1_500, None)] {
        let mut later = Case { bench: case.bench.clone(), run: case.run, request: case.request.clone() };
        later.bench.passes(Millis(waits));
        let told = later.bench.ask(&Bench::decide_command(later.request)).answer;
        assert_eq!(told, Answer::Refused(Refusal::DeliveryUncertain { retry_after: want }), "{waits}");
    }
}
