//! The outside world: true time, clocks that may lie, and effects of actuations that appear at once, late or never.
//!
//! What it assumes is what RULINGS 1 assumes. An executor that acts within its time limit makes an effect that appears
//! within the settle time, or never. One that acts past its limit, because its process was stopped, makes one that
//! appears at once or never; so after its process has died, nothing more appears. A restart of the machine takes longer
//! than limit and settle time together.

use std::collections::{BTreeMap, BTreeSet};

use protocol::ids::{BootId, DeliveryId, RunId};
use protocol::time::{BootMillis, Moment, UnixMillis};

use crate::plan::{LIMIT, SETTLE};
use crate::{Judged, rule};

/// A step of a run, wherever it is.
pub type Place = (RunId, u32);

/// One action on the outside world.
#[derive(Clone, Copy, Debug)]
struct Actuation {
    delivery: DeliveryId,
    appears: Option<u64>,
}

/// When the effect of an actuation appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appears {
    /// At once.
    Now,
    /// As late as it may.
    Late,
    /// Never: the application said so, or was down.
    Never,
}

/// What is really there.
#[derive(Clone, Debug)]
pub struct World {
    /// True time in milliseconds; only ever grows.
    pub now: u64,
    booted: u64,
    boots: u8,
    skew: i64,
    actuations: BTreeMap<Place, Vec<Actuation>>,
    by_hand: BTreeSet<Place>,
    absent: BTreeSet<DeliveryId>,
}

impl Default for World {
    fn default() -> Self {
        Self {
            now: 0,
            booted: 0,
            boots: 1,
            skew: 0,
            actuations: BTreeMap::new(),
            by_hand: BTreeSet::new(),
            absent: BTreeSet::new(),
        }
    }
}

impl World {
    /// What the clocks of the machine say.
    #[must_use]
    pub fn moment(&self) -> Moment {
        // Far enough from zero that no jump of the workload reaches it.
        let wall = (1_u64 << 40).saturating_add(self.now).saturating_add_signed(self.skew);
        Moment {
            wall: UnixMillis(wall),
            boot_id: BootId([self.boots; 16]),
            boot: BootMillis(self.now.saturating_sub(self.booted)),
        }
    }

    /// Time passes.
    pub fn pass(&mut self, milliseconds: u64) {
        self.now = self.now.saturating_add(milliseconds);
    }

    /// Somebody sets the wall clock.
    pub fn set_wall_clock(&mut self, by: i64) {
        self.skew = self.skew.saturating_add(by);
    }

    /// The machine starts anew. Its processes are the fleet's to end.
    pub fn reboot(&mut self) {
        self.pass(LIMIT.0 + SETTLE.0 + 1);
        self.booted = self.now;
        self.boots = self.boots.wrapping_add(1);
    }

    /// An executor acts, under a delivery that began at `begun`.
    ///
    /// # Errors
    /// When this delivery was recorded as proven absent.
    pub fn act(&mut self, place: Place, delivery: DeliveryId, begun: u64, appears: Appears) -> Judged {
        rule(!self.absent.contains(&delivery), || format!("{delivery} acted after it was proven absent"))?;
        let in_time = self.now <= begun.saturating_add(LIMIT.0);
        let appears = match appears {
            Appears::Now => Some(self.now),
            Appears::Late if in_time => Some(self.now.saturating_add(SETTLE.0)),
            Appears::Late => Some(self.now),
            Appears::Never => None,
        };
        self.actuations.entry(place).or_default().push(Actuation { delivery, appears });
        Ok(())
    }

    /// A person does the step.
    pub fn act_by_hand(&mut self, place: Place) {
        self.by_hand.insert(place);
    }

    /// Whether an independent read sees the step's effect.
    #[must_use]
    pub fn shows(&self, place: Place) -> bool {
        let made = self.actuations.get(&place).is_some_and(|made| {
            made.iter().any(|actuation| actuation.appears.is_some_and(|appears| appears <= self.now))
        });
        made || self.by_hand.contains(&place)
    }

    /// The journal says that this delivery did not happen.
    ///
    /// # Errors
    /// When it did, or still will.
    pub fn is_claimed_absent(&mut self, place: Place, delivery: DeliveryId) -> Judged {
        self.absent.insert(delivery);
        let made = self.actuations.get(&place).is_some_and(|made| {
            made.iter().any(|actuation| actuation.delivery == delivery && actuation.appears.is_some())
        });
        rule(!made, || format!("{delivery} was proven absent, and is there or will be"))
    }

    /// How often a delivery of this step acted, those apart that are proven absent.
    #[must_use]
    pub fn actuations(&self, place: Place) -> usize {
        self.actuations.get(&place).map_or(0, |made| {
            made.iter().filter(|actuation| !self.absent.contains(&actuation.delivery)).count()
        })
    }
}
