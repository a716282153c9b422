//! The workflows that the simulated runs execute. Every step that acts declares an effect, so that no delivery is beyond
//! proof.

use protocol::bundle::Attended;
use protocol::event::StepFacts;
use protocol::time::Millis;

/// Time limit of every step.
pub const LIMIT: Millis = Millis(1_000);
/// Time in which a late effect may still appear.
pub const SETTLE: Millis = Millis(500);

/// A workflow as the machine sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Its steps.
    pub steps: Vec<StepFacts>,
    /// Whether the guards of its steps hold; where not, a skippable one is skipped.
    pub guard_holds: bool,
}

/// How many plans there are.
pub const PLANS: u8 = 5;

/// A plan by its number; from [`PLANS`] on the same ones again, with guards that do not hold.
#[must_use]
pub fn plan(number: u8) -> Plan {
    let kinds: &[fn(u32) -> StepFacts] = match number % PLANS {
        0 => &[acting, attended, acting],
        1 => &[unattended, unattended],
        2 => &[read, skippable, acting, attended],
        3 => &[attended, attended],
        _ => &[skippable, acting],
    };
    Plan { steps: (0..).zip(kinds).map(|(index, kind)| kind(index)).collect(), guard_holds: number < PLANS }
}

/// A step that the engine does; where it halts, a person may help.
fn acting(index: u32) -> StepFacts {
    StepFacts {
        index,
        id: step_id(index),
        attended: Attended::OnHalt,
        acts: true,
        consequential: true,
        skippable: false,
        postconditions: 1,
        relative: 0,
        effects: 1,
        attested: 0,
        identity_required: false,
        limit: LIMIT,
    }
}

/// A step that the engine does alone.
fn unattended(index: u32) -> StepFacts {
    StepFacts { attended: Attended::Never, ..acting(index) }
}

/// A person's step.
fn attended(index: u32) -> StepFacts {
    StepFacts { attended: Attended::Always, acts: false, ..acting(index) }
}

/// A person's step that may be skipped.
fn skippable(index: u32) -> StepFacts {
    StepFacts { consequential: false, skippable: true, effects: 0, ..attended(index) }
}

/// A step that only reads.
fn read(index: u32) -> StepFacts {
    StepFacts { acts: false, consequential: false, effects: 0, ..acting(index) }
}

fn step_id(index: u32) -> protocol::ids::StepId {
    match format!("step-{index}").parse() {
        Ok(id) => id,
        Err(_) => unreachable!("a letter, then letters, digits and a dash are a step id"),
    }
}
