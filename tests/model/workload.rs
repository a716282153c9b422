//! What may happen to a fleet, as a strategy, and the property that judges it.

use proptest::prelude::*;

use protocol::decision::Action;

use crate::Judged;
use crate::fleet::{Call, Fleet};
use crate::world::Appears;

/// One thing that happens. Processes, runs, tokens and requests are named by number, whatever there is of them.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the fields say what they are by their names and types")]
pub enum Happening {
    /// A run of a plan is started.
    Start { process: usize, plan: u8 },
    /// A process goes on with a run.
    Drive { process: usize, run: usize, recheck: bool, call: Call },
    /// A process goes on with a run for several commands, its executor at work.
    Carry { process: usize, run: usize, turns: u8, appears: Appears },
    /// Somebody does at a pause what it allows, and carries it out for some commands.
    Attend { process: usize, run: usize, key: u8, turns: u8, call: Call },
    /// Somebody decides.
    Decide { process: usize, run: usize, action: Action, key: u8 },
    /// Somebody repeats an earlier request.
    Repeat { process: usize, request: usize },
    /// A person does a step by hand.
    PersonActs { run: usize },
    /// Somebody asks for a run's end.
    Cancel { process: usize, run: usize },
    /// A process dies.
    Kill { process: usize },
    /// The machine starts anew.
    Reboot,
    /// Time passes, in milliseconds.
    Pass(u64),
    /// The wall clock is set, by milliseconds.
    SetWallClock(i64),
    /// A call that was given up acts after all.
    StrayActs { process: usize, appears: Appears },
    /// A process writes under a lease that it lost.
    WriteStale { process: usize, token: usize, kind: u8 },
    /// A process crosses the boundary of the step at the cursor under the current lease, whatever its driver would do.
    CrossAnyway { process: usize, run: usize },
    /// The disk fills up, or is freed.
    Disk { room: bool },
    /// The capability key goes missing, or is back.
    Key { there: bool },
    /// A snapshot is taken and gone on from.
    Snapshot,
}

/// Any happening; what carries runs forward comes more often.
pub fn happening() -> impl Strategy<Value = Happening> {
    let process = || 0..crate::fleet::PROCESSES;
    let run = || 0_usize..3;
    let day = 24 * 60 * 60 * 1_000;
    prop_oneof![
        2 => (process(), 0_u8..2 * crate::plan::PLANS).prop_map(|(process, plan)| Happening::Start { process, plan }),
        24 => (process(), run(), any::<bool>(), call())
            .prop_map(|(process, run, recheck, call)| Happening::Drive { process, run, recheck, call }),
        16 => (process(), run(), 1_u8..8, appears())
            .prop_map(|(process, run, turns, appears)| Happening::Carry { process, run, turns, appears }),
        12 => (process(), run(), any::<u8>(), 0_u8..4, call())
            .prop_map(|(process, run, key, turns, call)| Happening::Attend { process, run, key, turns, call }),
        6 => (process(), run(), prop::sample::select(Action::ALL), any::<u8>())
            .prop_map(|(process, run, action, key)| Happening::Decide { process, run, action, key }),
        4 => (process(), any::<usize>()).prop_map(|(process, request)| Happening::Repeat { process, request }),
        4 => run().prop_map(|run| Happening::PersonActs { run }),
        1 => (process(), run()).prop_map(|(process, run)| Happening::Cancel { process, run }),
        5 => process().prop_map(|process| Happening::Kill { process }),
        1 => Just(Happening::Reboot),
        9 => prop::sample::select(vec![1_u64, 400, 500, 1_000, 1_500]).prop_map(Happening::Pass),
        3 => prop::sample::select(vec![31_000, 31_000, 31_000, day, 8 * day]).prop_map(Happening::Pass),
        1 => (-10 * i64::try_from(day).unwrap_or(0)..10 * i64::try_from(day).unwrap_or(0))
            .prop_map(Happening::SetWallClock),
        3 => (process(), appears()).prop_map(|(process, appears)| Happening::StrayActs { process, appears }),
        3 => (process(), any::<usize>(), any::<u8>())
            .prop_map(|(process, token, kind)| Happening::WriteStale { process, token, kind }),
        4 => (process(), run()).prop_map(|(process, run)| Happening::CrossAnyway { process, run }),
        1 => prop::bool::weighted(0.8).prop_map(|room| Happening::Disk { room }),
        1 => prop::bool::weighted(0.8).prop_map(|there| Happening::Key { there }),
        2 => Just(Happening::Snapshot),
    ]
}

fn appears() -> impl Strategy<Value = Appears> {
    prop_oneof![3 => Just(Appears::Now), 2 => Just(Appears::Late), 1 => Just(Appears::Never)]
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        3 => appears().prop_map(Call::Act),
        3 => Just(Call::Return),
        1 => Just(Call::ReturnUnclear),
        2 => Just(Call::GiveUp),
    ]
}

/// Lets one thing happen.
///
/// # Errors
/// The rule that was broken.
pub fn happen(fleet: &mut Fleet, happening: Happening) -> Judged {
    match happening {
        Happening::Start { process, plan } => fleet.start(process, plan),
        Happening::Drive { process, run, recheck, call } => match fleet.run(run) {
            Some(run) => fleet.drive(process, run, recheck, call),
            None => fleet.start(process, u8::try_from(run).unwrap_or(0)),
        },
        Happening::Carry { process, run, turns, appears } => match fleet.run(run) {
            Some(run) => (0..turns).try_for_each(|_| fleet.drive(process, run, true, Call::Act(appears))),
            None => Ok(()),
        },
        Happening::Attend { process, run, key, turns, call } => match fleet.run(run) {
            Some(run) => fleet.attend(process, run, key, turns, call),
            None => Ok(()),
        },
        Happening::Decide { process, run, action, key } => match fleet.run(run) {
            Some(run) => fleet.decide(process, run, action, key),
            None => Ok(()),
        },
        Happening::Repeat { process, request } => fleet.repeat(process, request),
        Happening::PersonActs { run } => {
            if let Some(run) = fleet.run(run) {
                fleet.person_acts(run);
            }
            Ok(())
        }
        Happening::Cancel { process, run } => match fleet.run(run) {
            Some(run) => fleet.cancel(process, run),
            None => Ok(()),
        },
        Happening::Kill { process } => {
            fleet.kill(process);
            Ok(())
        }
        Happening::Reboot => {
            fleet.reboot();
            Ok(())
        }
        Happening::Pass(milliseconds) => {
            fleet.world.pass(milliseconds);
            Ok(())
        }
        Happening::SetWallClock(by) => {
            fleet.world.set_wall_clock(by);
            Ok(())
        }
        Happening::StrayActs { process, appears } => fleet.stray_acts(process, appears),
        Happening::WriteStale { process, token, kind } => fleet.write_stale(process, token, kind),
        Happening::CrossAnyway { process, run } => match fleet.run(run) {
            Some(run) => fleet.cross_anyway(process, run),
            None => Ok(()),
        },
        Happening::Disk { room } => {
            fleet.set_room(room);
            Ok(())
        }
        Happening::Key { there } => {
            fleet.set_key(there);
            Ok(())
        }
        Happening::Snapshot => fleet.snapshot(),
    }
}

/// Whatever happens, the rules hold; afterwards every run can be brought to its end, and replay agrees with what was live.
///
/// # Errors
/// The rule that was broken.
pub fn judge(happenings: &[Happening]) -> Judged {
    let mut fleet = Fleet::default();
    for happening in happenings {
        happen(&mut fleet, *happening)?;
    }
    fleet.replay()?;
    fleet.end_politely()?;
    fleet.snapshot()?;
    fleet.replay()
}
