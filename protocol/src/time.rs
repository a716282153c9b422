//! Moments and spans. The unit is part of the type; there is no `now`: time arrives in `Context`.

use serde::{Deserialize, Serialize};

use crate::ids::BootId;
use crate::vocabulary::Description;

/// A span in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// A span of whole seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }
}

/// Wall-clock time: milliseconds since 1970-01-01T00:00:00Z. May jump; never used to judge a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMillis(pub u64);

/// Time since boot in milliseconds, suspend included. Comparable only within one [`BootId`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootMillis(pub u64);

/// One moment, read once from all clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Wall clock.
    pub wall: UnixMillis,
    /// Boot that `boot` counts from.
    pub boot_id: BootId,
    /// Time since that boot.
    pub boot: BootMillis,
}

impl Moment {
    /// The deadline `span` after this moment.
    #[must_use]
    pub const fn after(self, span: Millis) -> Deadline {
        Deadline {
            wall: UnixMillis(self.wall.0.saturating_add(span.0)),
            boot_id: self.boot_id,
            boot: BootMillis(self.boot.0.saturating_add(span.0)),
        }
    }
}

/// A moment after which something no longer holds. The boundary itself has passed it. Source: RULINGS 24.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// By wall clock.
    pub wall: UnixMillis,
    /// Boot that `boot` counts from.
    pub boot_id: BootId,
    /// By time since that boot.
    pub boot: BootMillis,
}

impl Deadline {
    /// Whether the deadline has passed at `now`. Within one boot only boot time counts; across boots the larger
    /// of the wall clock and `latest_journalled` does, so a clock set back revives nothing that the journal
    /// has already seen expire.
    #[must_use]
    pub fn has_passed(&self, now: &Moment, latest_journalled: UnixMillis) -> bool {
        if self.boot_id == now.boot_id {
            now.boot >= self.boot
        } else {
            now.wall.max(latest_journalled) >= self.wall
        }
    }
}

/// Describes the journalled structures of this file.
pub(crate) fn describe(into: &mut alloc::collections::BTreeMap<&'static str, Description>) {
    into.insert(
        "Deadline",
        Description::Structure(&[("wall", "UnixMillis"), ("boot_id", "BootId"), ("boot", "BootMillis")]),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: BootId = BootId([1; 16]);
    const OTHER: BootId = BootId([2; 16]);

    fn at(wall: u64, boot_id: BootId, boot: u64) -> Moment {
        Moment { wall: UnixMillis(wall), boot_id, boot: BootMillis(boot) }
    }

    #[test]
    fn boot_time_decides_within_a_boot_and_the_later_wall_time_across_boots() {
        let deadline = at(1_000, BOOT, 50).after(Millis(100));
        for (case, now, journalled, passed) in [
            ("wall clock jumped ahead", at(9_000, BOOT, 60), 0, false),
            ("boundary", at(0, BOOT, 150), 0, true),
            ("other boot, early", at(1_050, OTHER, 999), 0, false),
            ("other boot, late", at(1_100, OTHER, 1), 0, true),
            ("other boot, clock set back, journal knows better", at(5, OTHER, 1), 1_100, true),
        ] {
            assert_eq!(deadline.has_passed(&now, UnixMillis(journalled)), passed, "{case}");
        }
    }
}
