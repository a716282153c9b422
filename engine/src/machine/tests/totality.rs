//! `apply` is total: events of real runs, out of order, under wrong names and in any state, never panic; nor does
//! `decide` in the states that come of it. And the fold is the state: it survives its own text form.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use proptest::prelude::*;

use protocol::command::{Command, LiveFinding};
use protocol::decision::Action;
use protocol::delivery::{EffectStatus, ReceiptOutcome};
use protocol::digest::StateDigest;
use protocol::event::{CheckpointKind, Entry, Event, RefusalsCounted};
use protocol::ids::{DecisionId, DeliveryId, InstanceId, KeyId, LeaseToken, Seq};
use protocol::pause::Category;
use protocol::time::{Millis, UnixMillis};

use super::bench::{A, B, Bench, acting, attended, author, finding, readings, verified};
use crate::machine::{State, apply};

/// Benches whose journals together hold every kind of event.
fn histories() -> Vec<Bench> {
    let (mut done, run) = Bench::paused_at(&attended(0));
    done.decide(run, Action::Teach, "teach");
    done.say(Command::RegisterKey { key: KeyId([1; 16]) });
    let through = done.state.next;
    done.say(Command::RecordState { through, digest: StateDigest([0; 32]), snapshot: None });
    done.fold(RefusalsCounted { count: 1, since: UnixMillis(1) });
    done.decide(run, Action::Skip, "refused");
    let carried = done.carried_out(run, Action::Continue, "k");
    done.finish(run, carried, LiveFinding::Verified(verified(&attended(0))));
    let delivery = done.begun(run, carried.0, &acting(1));
    done.say(Bench::receipt(run, carried.0, delivery, ReceiptOutcome::Acted));
    done.say(Bench::commit(run, carried.0, &acting(1), CheckpointKind::Engine));

    let (mut uncertain, run, ..) = Bench::crossed(&acting(0));
    uncertain.say(Command::Cancel { run, author: author() });
    uncertain.dies(A);
    uncertain.passes(Millis(5_000));
    uncertain.acquire(run, false);
    let carried = uncertain.carried_out(run, Action::Reconcile, "k");
    let mut open = uncertain.clone();
    uncertain.finish(run, carried, LiveFinding::Absent(readings(&acting(0), EffectStatus::Absent)));
    open.passes(Millis(8 * 24 * 60 * 60 * 1_000));
    open.acquire(run, true);

    let (mut asked, run) = Bench::paused_at(&attended(0));
    let until = asked.now.after(Millis(60_000));
    asked.fold(protocol::event::LeaseGranted { run, holder: A, until });
    asked.me = B;
    asked.decide(run, Action::Reject, "reject");
    asked.dies(A);
    asked.decide(run, Action::Reject, "reject");
    alloc::vec![done, uncertain, open, asked]
}

#[test]
fn the_histories_hold_every_kind_of_event_and_replay_to_their_states() {
    let histories = histories();
    let kinds: BTreeSet<u16> =
        histories.iter().flat_map(|bench| &bench.journal).map(|entry| entry.event.kind()).collect();
    let missing: Vec<_> = Event::KINDS.iter().filter(|(kind, _)| !kinds.contains(kind)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    for bench in &histories {
        assert!(bench.replays());
        let text = serde_json::to_string(&bench.state).unwrap();
        let back: State = serde_json::from_str(&text).unwrap();
        assert_eq!(back, bench.state);
        assert_eq!(back.digest(), bench.state.digest());
    }
}

/// Commands about whatever the state holds.
fn commands(state: &State) -> Vec<Command> {
    let mut all = Vec::new();
    let bench = Bench::in_state(state.clone());
    for (id, run) in &state.runs {
        let (run_id, token) = (*id, run.lease.map_or(LeaseToken(Seq(0)), |lease| lease.token));
        for recheck in [false, true] {
            all.push(Command::Acquire { run: run_id, limit: Millis(u64::MAX), recheck, author: author() });
        }
        all.push(Command::Cancel { run: run_id, author: author() });
        all.push(Command::Release { run: run_id, token });
        let delivery = run.crossing.as_ref().map_or(DeliveryId([0; 16]), |crossing| crossing.delivery);
        for index in [0, 1] {
            all.push(Bench::begin(run_id, token, &acting(index)));
            all.push(Bench::commit(run_id, token, &acting(index), CheckpointKind::Engine));
            let found = finding(Category::Halt);
            all.push(Command::Stop { run: run_id, token, step: acting(index), finding: found });
        }
        for outcome in ReceiptOutcome::ALL {
            all.push(Bench::receipt(run_id, token, delivery, *outcome));
        }
        let decisions = run.decisions.values().map(|decision| decision.id).chain([DecisionId([0; 16])]);
        for decision in decisions {
            all.push(Command::LoseDecision { run: run_id, token, decision });
            for finding in [
                LiveFinding::Verified(verified(&attended(0))),
                LiveFinding::GuardUnmet,
                LiveFinding::GuardHolds,
                LiveFinding::Absent(readings(&attended(0), EffectStatus::Absent)),
                LiveFinding::NotVerified,
            ] {
                all.push(Command::FinishDecision { run: run_id, token, decision, finding });
            }
        }
        if run.pause.is_some() {
            for action in Action::ALL {
                for name in ["k", "teach", "new"] {
                    all.push(Bench::decide_command(bench.request(run_id, *action, name)));
                }
            }
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]
    #[test]
    fn no_order_of_events_and_no_command_after_it_panics(
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>(), any::<u64>(), 0_u8..4), 0..60),
        wild in any::<bool>(),
        lives in any::<bool>(),
    ) {
        let pool: Vec<Event> =
            histories().into_iter().flat_map(|bench| bench.journal).map(|entry| entry.event).collect();
        let mut state = State::default();
        for (pick, seq, time, producer) in picks {
            // Numbers stay below 2^53, as in any journal: canonical JSON holds no larger ones exactly.
            let seq = if wild { Seq(seq >> 11) } else { state.next };
            let entry = Entry {
                seq,
                time: UnixMillis(time >> 11),
                producer: InstanceId([producer; 16]),
                event: pick.get(&pool).clone(),
            };
            apply(&mut state, &entry);
        }
        let mut bench = Bench::in_state(state);
        if !lives {
            bench.dies(A);
        }
        let _ = (bench.state.digest(), bench.state.reserved_bytes(), bench.state.watched());
        for command in commands(&bench.state) {
            let decided = bench.ask(&command);
            // Whatever it said can be folded, too.
            let mut after = bench.clone();
            decided.events.into_iter().for_each(|event| after.fold(event));
        }
    }
}
