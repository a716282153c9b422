//! Expiry of capabilities and pauses. Source: RULINGS 15 and 24.

use protocol::command::LiveFinding;
use protocol::decision::Action;
use protocol::digest::Sha256Digest;
use protocol::ids::BootId;
use protocol::refusal::Refusal;
use protocol::time::Millis;

use super::bench::{A, B, Bench, acting, attended, skippable, verified, word};
use crate::machine::Answer;

const DAY: u64 = 24 * 60 * 60 * 1_000;

#[test]
fn the_boundary_itself_has_expired() {
    for (case, waits, action, want) in [
        ("capability, one before", DAY - 1, Action::Continue, "carry out"),
        ("capability, at", DAY, Action::Continue, "pause_expired"),
        ("capability, a reject does not mind", DAY, Action::Reject, "completed"),
        ("capability, a teach does not mind", DAY, Action::Teach, "completed"),
        ("pause, one before, an escalate", 7 * DAY - 1, Action::Escalate, "completed"),
        ("pause, at, a continue", 7 * DAY, Action::Continue, "pause_expired"),
        ("pause, at, a reject", 7 * DAY, Action::Reject, "completed"),
        ("pause, at, a teach", 7 * DAY, Action::Teach, "completed"),
        ("pause, at, an escalate", 7 * DAY, Action::Escalate, "completed"),
    ] {
        let (mut bench, run) = Bench::paused_at(&attended(0));
        bench.passes(Millis(waits));
        assert_eq!(word(&bench.decide(run, action, "k")), want, "{case}");
        let recorded = bench.journal.iter().any(|entry| entry.event.name() == "pause_expired");
        assert_eq!(recorded, waits >= 7 * DAY, "{case}");
    }
    let (mut bench, run) = Bench::paused_at(&skippable(0));
    bench.passes(Millis(7 * DAY));
    assert_eq!(word(&bench.decide(run, Action::Skip, "k")), "pause_expired");
}

#[test]
fn an_expired_capability_is_issued_anew_where_nothing_else_fails() {
    type Change = fn(&mut Bench);
    let cases: [(&str, Change, bool); 4] = [
        ("nothing else", |_| {}, true),
        ("another bundle", |bench| bench.live.bundle = Some(Sha256Digest([0xee; 32])), false),
        ("other parameters", |bench| bench.live.parameters = None, false),
        (
            "no executor",
            |bench| {
                bench.live.executor = false;
                bench.live.policy = None;
            },
            false,
        ),
    ];
    for (case, change, anew) in cases {
        let (mut bench, run) = Bench::paused_at(&attended(0));
        let old = bench.request(run, Action::Continue, "k").capability_digest;
        bench.passes(Millis(DAY));
        let sound = bench.live;
        change(&mut bench);
        let answer = bench.decide(run, Action::Continue, "k");
        let current = bench.request(run, Action::Continue, "k").capability_digest;
        let want = anew.then_some(current);
        assert_eq!(answer, Answer::Refused(Refusal::PauseExpired { current: want }), "{case}");
        assert_eq!(current != old, anew, "{case}");
        bench.live = sound;
        assert_eq!(
            word(&bench.decide(run, Action::Continue, "k")),
            if anew { "carry out" } else { "pause_expired" }
        );
    }
}

#[test]
fn a_recorded_expiry_is_final_and_a_clock_set_back_revives_nothing() {
    let (mut bench, run) = Bench::paused_at(&attended(0));
    let start = bench.now;
    bench.passes(Millis(7 * DAY));
    assert_eq!(word(&bench.decide(run, Action::Continue, "k")), "pause_expired");
    bench.now = start;
    assert_eq!(word(&bench.decide(run, Action::Continue, "k")), "pause_expired", "recorded");
    // Another boot, its wall clock set back; the journal has seen later times.
    let (mut bench, run) = Bench::paused_at(&attended(0));
    bench.passes(Millis(7 * DAY));
    bench.started(1);
    bench.now = start;
    bench.now.boot_id = BootId([0xff; 16]);
    bench.started(1);
    assert_eq!(word(&bench.decide(run, Action::Continue, "k")), "pause_expired", "seen by the journal");
}

#[test]
fn an_expired_pause_is_checked_again_by_resume() {
    let (mut bench, run) = Bench::paused_at(&attended(0));
    assert_eq!(word(&bench.acquire(run, true)), "paused", "a person's own step is not checked away");
    bench.passes(Millis(7 * DAY));
    assert_eq!(word(&bench.acquire(run, false)), "paused");
    assert_eq!(word(&bench.acquire(run, true)), "leased");
    assert!(bench.run(run).pause.is_none());
}

#[test]
fn an_uncertain_delivery_is_reconciled_on_an_expired_pause_too() {
    let (mut bench, run, ..) = Bench::crossed(&acting(0));
    bench.dies(A);
    bench.me = B;
    bench.acquire(run, false);
    bench.passes(Millis(8 * DAY));
    assert_eq!(word(&bench.acquire(run, true)), "paused", "and not checked away");
    assert_eq!(word(&bench.decide(run, Action::Reconcile, "k")), "pause_expired", "a new capability");
    let carried = bench.carried_out(run, Action::Reconcile, "k");
    let done = bench.finish(run, carried, LiveFinding::Verified(verified(&acting(0))));
    assert_eq!(word(&done), "completed");
}
