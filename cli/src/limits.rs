//! The table of limits (RULINGS 40) as the command line knows it: names, defaults taken from the code that owns each,
//! ranges, and which of them `--set-limit` sets.

use std::fmt;
use std::str::FromStr;

use engine::service::EngineOptions;
use protocol::time::Millis;
use serde::Serialize;

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Ms,
    /// Things.
    Count,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Row {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it limits.
    pub(crate) what: &'static str,
    /// What it counts.
    pub(crate) unit: Unit,
    /// Unless it is set.
    pub(crate) default: u64,
    /// Least and greatest value of `--set-limit`; none where the value is fixed.
    pub(crate) range: Option<(u64, u64)>,
}

const HOUR: u64 = 60 * 60 * 1000;
const DAY: u64 = 24 * HOUR;

/// The table.
pub(crate) fn table() -> Vec<Row> {
    let defaults = EngineOptions::new("");
    let fixed = |name, what, unit, default| Row { name, what, unit, default, range: None };
    let ms = |name, what, default: Millis, least, greatest| Row {
        name,
        what,
        unit: Unit::Ms,
        default: default.0,
        range: Some((least, greatest)),
    };
    let bytes = |limit: usize| limit as u64;
    vec![
        fixed("block", "one commit", Unit::Bytes, bytes(journal::format::BLOCK_BYTES_MAX)),
        fixed("record", "one record", Unit::Bytes, bytes(journal::format::RECORD_BYTES_MAX)),
        Row {
            name: "segment",
            what: "one segment file",
            unit: Unit::Bytes,
            default: defaults.segment_bytes_max,
            range: Some((4 << 20, 1 << 30)),
        },
        fixed("bundle", "all files of a bundle", Unit::Bytes, protocol::bundle::MAX_BUNDLE_BYTES),
        fixed("bundle-files", "files of a bundle", Unit::Count, bytes(protocol::bundle::MAX_BUNDLE_FILES)),
        fixed("parameters", "a run's parameters", Unit::Bytes, bytes(protocol::bundle::MAX_PARAMETERS_BYTES)),
        fixed(
            "nesting",
            "depth of any JSON document",
            Unit::Count,
            bytes(protocol::canonical_json::MAX_DEPTH),
        ),
        fixed("request", "a decision request", Unit::Bytes, bytes(protocol::decision::MAX_REQUEST_BYTES)),
        ms("capability", "how long a capability is good", defaults.limits.capability_ms, 1000, 30 * DAY),
        ms("pause", "how long a pause is good", defaults.limits.pause_ms, 1000, 90 * DAY),
        ms("lock-wait", "waiting for the journal's lock", defaults.lock_wait, 0, HOUR),
        ms(
            "reject-wait",
            "how long a reject waits for a holder to stand down",
            defaults.reject_wait,
            0,
            HOUR,
        ),
        ms("lease-grace", "a lease beyond its step's time limit", defaults.limits.lease_grace_ms, 100, HOUR),
        fixed("page", "rows of one answer", Unit::Count, bytes(PAGE)),
    ]
}

/// Rows of one answer of a listing command, unless `--limit` of that command says less.
pub(crate) const PAGE: usize = 100;

/// A limit as `--set-limit NAME=VALUE` sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    name: &'static str,
    value: u64,
}

/// The limits that were set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits(pub(crate) Vec<Setting>);

impl Limits {
    /// Puts them where they belong.
    pub(crate) fn apply(&self, options: &mut EngineOptions) {
        for Setting { name, value } in &self.0 {
            match *name {
                "segment" => options.segment_bytes_max = *value,
                "capability" => options.limits.capability_ms = Millis(*value),
                "pause" => options.limits.pause_ms = Millis(*value),
                "lock-wait" => options.lock_wait = Millis(*value),
                "reject-wait" => options.reject_wait = Millis(*value),
                "lease-grace" => options.limits.lease_grace_ms = Millis(*value),
                _ => {}
            }
        }
    }

    /// The value in force.
    pub(crate) fn value(&self, row: &Row) -> u64 {
        self.0
            .iter()
            .rev()
            .find(|setting| setting.name == row.name)
            .map_or(row.default, |setting| setting.value)
    }
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rows = table();
        let settable = || {
            let names: Vec<_> = rows.iter().filter(|row| row.range.is_some()).map(|row| row.name).collect();
            names.join(", ")
        };
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("write NAME=VALUE; names: {}", settable()))?;
        let found = rows.iter().find_map(|row| Some((row, row.range?)).filter(|(row, _)| row.name == name));
        let Some((row, (least, greatest))) = found else {
            return Err(format!("no such limit can be set; names: {}", settable()));
        };
        let value = parse(value, row.unit).ok_or_else(|| match row.unit {
            Unit::Ms => "write a whole number and a unit: ms, s, m, h or d".to_owned(),
            Unit::Bytes => "write a whole number and a unit: B, KiB, MiB or GiB".to_owned(),
            Unit::Count => "write a whole number".to_owned(),
        })?;
        if !(least..=greatest).contains(&value) {
            let (least, greatest) = (Amount(least, row.unit), Amount(greatest, row.unit));
            return Err(format!("from {least} to {greatest}"));
        }
        Ok(Self { name: row.name, value })
    }
}

fn units(unit: Unit) -> &'static [(&'static str, u64)] {
    match unit {
        Unit::Ms => &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", HOUR), ("d", DAY)],
        Unit::Bytes => &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)],
        Unit::Count => &[("", 1)],
    }
}

fn parse(text: &str, unit: Unit) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|character: char| character.is_ascii_digit()).len();
    let (number, suffix) = text.split_at(digits);
    let (_, factor) = units(unit).iter().find(|(name, _)| *name == suffix)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// A value with the largest unit that fits.
pub(crate) struct Amount(pub(crate) u64, pub(crate) Unit);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value, unit) = *self;
        let fitting =
            units(unit).iter().rev().find(|(_, factor)| value >= *factor && value.is_multiple_of(*factor));
        match fitting {
            Some(("", _)) | None => write!(f, "{value}"),
            Some((name, factor)) => write!(f, "{} {name}", value / factor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_ruling() {
        let rows = table();
        for (name, want) in [
            ("block", 1 << 20),
            ("record", 256 << 10),
            ("segment", 64 << 20),
            ("bundle", 16 << 20),
            ("bundle-files", 10_000),
            ("parameters", 256 << 10),
            ("nesting", 64),
            ("capability", DAY),
            ("pause", 7 * DAY),
            ("lock-wait", 10_000),
            ("reject-wait", 5000),
            ("lease-grace", 30_000),
            ("page", 100),
        ] {
            assert_eq!(rows.iter().find(|row| row.name == name).map(|row| row.default), Some(want), "{name}");
        }
    }

    #[test]
    fn every_limit_that_can_be_set_is_applied() {
        for row in table().into_iter().filter(|row| row.range.is_some()) {
            let (least, _) = row.range.unwrap();
            let setting = Setting { name: row.name, value: least };
            let (mut set, plain) = (EngineOptions::new(""), EngineOptions::new(""));
            Limits(vec![setting]).apply(&mut set);
            let all = |options: &EngineOptions| {
                (options.segment_bytes_max, options.limits, options.lock_wait, options.reject_wait)
            };
            assert_ne!(all(&set), all(&plain), "{}", row.name);
        }
    }

    #[test]
    fn a_setting_has_a_known_name_a_unit_and_a_range() {
        assert_eq!("pause=2h".parse(), Ok(Setting { name: "pause", value: 2 * HOUR }));
        for wrong in ["pause", "pause=", "pause=2", "pause=h", "pause=1ms", "pause=91d", "block=1MiB", "x=1"]
        {
            assert!(wrong.parse::<Setting>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn amounts_print_with_the_largest_unit_that_fits() {
        for (value, unit, want) in [
            (64 << 20, Unit::Bytes, "64 MiB"),
            (1500, Unit::Ms, "1500 ms"),
            (DAY, Unit::Ms, "1 d"),
            (0, Unit::Ms, "0"),
            (100, Unit::Count, "100"),
        ] {
            assert_eq!(Amount(value, unit).to_string(), want);
        }
    }
}
