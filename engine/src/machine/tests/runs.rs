//! Admission, space, lineage and what is rechecked.

use protocol::bundle::Profile;
use protocol::command::Command;
use protocol::delivery::ReceiptOutcome;
use protocol::event::CheckpointKind;
use protocol::pause::Category;
use protocol::time::Millis;

use super::bench::{A, B, Bench, acting, attended, finding, request_id, word};
use crate::machine::step::outcome_reserve;

#[test]
fn a_run_is_admitted_once_under_its_name() {
    let mut bench = Bench::new();
    let mut start = bench.start_command(1);
    start.request = Some(request_id("r-0001"));
    assert_eq!(word(&bench.say(Command::StartRun(start.clone()))), "started");
    // A service that missed the open run of that name must not start another.
    assert_eq!(word(&bench.say(Command::StartRun(start))), "busy");
    assert_eq!(bench.state.runs.len(), 1);
    for (profile, want) in [(Profile::Standard, "not_admitted"), (Profile::Regulated, "not_admitted")] {
        let mut start = bench.start_command(1);
        start.profile = profile;
        assert_eq!(word(&bench.say(Command::StartRun(start))), want);
    }
    bench.key = None;
    let start = bench.start_command(1);
    assert_eq!(word(&bench.say(Command::StartRun(start))), "key_missing");
}

#[test]
fn new_work_leaves_room_for_every_promised_outcome() {
    let reserve = u64::from(outcome_reserve(&acting(0)));
    let room = 4_096;
    for (case, space, want) in [
        ("room for both outcomes", 2 * reserve + room, "deliver"),
        ("one byte less", 2 * reserve + room - 1, "disk_full"),
        ("room for one", reserve + room, "disk_full"),
    ] {
        let (mut bench, ..) = Bench::crossed(&acting(0));
        let second = bench.started(1);
        let token = bench.acquired(second);
        bench.space = space;
        assert_eq!(word(&bench.say(Bench::begin(second, token, &acting(0)))), want, "{case}");
    }
    // What is in flight is recorded on a full disk; nothing new begins there.
    let (mut bench, run, token, delivery) = Bench::crossed(&acting(0));
    bench.space = reserve;
    let start = bench.start_command(1);
    assert_eq!(word(&bench.say(Command::StartRun(start))), "disk_full");
    assert_eq!(word(&bench.clone().at(B).acquire(run, false)), "busy");
    let mut died = bench.clone();
    died.dies(A);
    assert_eq!(word(&died.acquire(run, false)), "paused");
    assert_eq!(word(&bench.say(Bench::receipt(run, token, delivery, ReceiptOutcome::Acted))), "recorded");
    assert_eq!(word(&bench.say(Bench::commit(run, token, &acting(0), CheckpointKind::Engine))), "committed");
    assert_eq!(bench.state.reserved_bytes(), 0);
}

#[test]
fn a_lineage_that_does_not_hold_carries_nothing_on() {
    type Change = fn(&mut crate::machine::Run);
    let changes: [(&str, Change); 6] = [
        ("parent", |run| run.lineage[1].parent = None),
        ("order", |run| run.lineage.swap(0, 1)),
        ("bundle", |run| run.lineage[0].bundle.0[0] ^= 1),
        ("parameters", |run| run.lineage[0].parameters.0[0] ^= 1),
        ("one missing", |run| {
            run.lineage.pop();
        }),
        ("index", |run| run.lineage[1].index = 7),
    ];
    let mut sound = Bench::new();
    let run = sound.started(3);
    for index in [0, 1] {
        let token = sound.acquired(run);
        let delivery = sound.begun(run, token, &acting(index));
        sound.say(Bench::receipt(run, token, delivery, ReceiptOutcome::Acted));
        sound.say(Bench::commit(run, token, &acting(index), CheckpointKind::Engine));
        sound.say(Command::Release { run, token });
    }
    assert_eq!(word(&sound.clone().acquire(run, false)), "leased");
    for (case, change) in changes {
        let mut bench = sound.clone();
        change(bench.state.runs.get_mut(&run).unwrap());
        assert_eq!(word(&bench.acquire(run, false)), "state_diverged", "{case}");
    }
}

#[test]
fn resume_checks_again_what_may_have_gone_away() {
    let week = Millis(7 * 24 * 60 * 60 * 1_000);
    // The step, whether it says that it acted, whether the pause expired, and what `resume` then does.
    for (case, step, category, acted, expired, want) in [
        ("a person's step", attended(0), Category::AttendedStep, false, false, "paused"),
        ("a person's step, expired", attended(0), Category::AttendedStep, false, true, "leased"),
        ("a person's step that could not be read", attended(0), Category::Resolution, false, false, "leased"),
        ("a guard that was unmet", acting(0), Category::UnmetGuard, false, false, "leased"),
        ("an effect of ours that was not there", acting(0), Category::EffectRefuted, true, false, "paused"),
        ("an effect of ours, expired", acting(0), Category::EffectRefuted, true, true, "leased"),
    ] {
        let mut bench = Bench::new();
        let run = bench.started(1);
        let token = bench.acquired(run);
        if acted {
            let delivery = bench.begun(run, token, &step);
            bench.say(Bench::receipt(run, token, delivery, ReceiptOutcome::Acted));
        }
        bench.say(Command::Stop { run, token, step: step.clone(), finding: finding(category) });
        if expired {
            bench.passes(week);
        }
        assert_eq!(word(&bench.acquire(run, false)), "paused", "{case}: only where asked for");
        assert_eq!(word(&bench.acquire(run, true)), want, "{case}");
        if acted && want == "leased" {
            let token = bench.run(run).lease.unwrap().token;
            assert_eq!(
                word(&bench.say(Bench::begin(run, token, &step))),
                "wrong_phase",
                "{case}: never made again"
            );
        }
    }
}

#[test]
fn a_key_is_registered_once() {
    let mut bench = Bench::new();
    let key = protocol::ids::KeyId([1; 16]);
    bench.say(Command::RegisterKey { key });
    let at = bench.state.next;
    bench.say(Command::RegisterKey { key });
    assert_eq!((bench.state.next, bench.state.capability_keys.len()), (at, 1));
}
