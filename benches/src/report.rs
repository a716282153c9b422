//! The table: what was measured, beside what, and whether the aim is met.

use serde_json::{Value, json};

use crate::facts::Facts;

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Times a second.
    PerSecond,
    /// Bytes a second.
    BytesPerSecond,
    /// Syncs.
    Syncs,
}

/// What a row aims at. A figure of time and speed is an aim and no promise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aim {
    /// The value is at most so much.
    AtMost(f64),
    /// The value is at least so much.
    AtLeast(f64),
    /// The value is at most so many times the one beside it.
    RatioAtMost(f64),
    /// The value is at least so many times the one beside it.
    RatioAtLeast(f64),
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was measured.
    pub what: String,
    /// The value.
    pub value: f64,
    /// What it counts.
    pub unit: Unit,
    /// What it is compared with: its name and its value, in the same unit.
    pub beside: Option<(&'static str, f64)>,
    /// Value by the one beside, where their turns were compared one by one.
    pub ratio: Option<f64>,
    /// What the row aims at.
    pub aim: Option<Aim>,
}

impl Row {
    /// A row with nothing beside it and no aim.
    #[must_use]
    pub fn new(what: impl Into<String>, value: f64, unit: Unit) -> Self {
        Self { what: what.into(), value, unit, beside: None, ratio: None, aim: None }
    }

    /// Puts another value beside.
    #[must_use]
    pub fn beside(mut self, name: &'static str, value: f64) -> Self {
        self.beside = Some((name, value));
        self.ratio = Some(self.value / value);
        self
    }

    /// The ratio as its turns gave it.
    #[must_use]
    pub const fn ratio(mut self, ratio: f64) -> Self {
        self.ratio = Some(ratio);
        self
    }

    /// What it aims at.
    #[must_use]
    pub const fn aim(mut self, aim: Aim) -> Self {
        self.aim = Some(aim);
        self
    }

    /// Whether the aim is met, if there is one.
    #[must_use]
    pub fn met(&self) -> Option<bool> {
        let ratio = self.ratio.unwrap_or(f64::NAN);
        self.aim.map(|aim| match aim {
            Aim::AtMost(most) => self.value <= most,
            Aim::AtLeast(least) => self.value >= least,
            Aim::RatioAtMost(most) => ratio <= most,
            Aim::RatioAtLeast(least) => ratio >= least,
        })
    }

    fn cells(&self) -> [String; 6] {
        let beside = self.beside.map(|(name, value)| format!("{name} {}", text(value, self.unit)));
        let aim = self.aim.map(|aim| match aim {
            Aim::AtMost(most) => format!("≤ {}", text(most, self.unit)),
            Aim::AtLeast(least) => format!("≥ {}", text(least, self.unit)),
            Aim::RatioAtMost(most) => format!("≤ {most} ×"),
            Aim::RatioAtLeast(least) => format!("≥ {least} ×"),
        });
        let verdict = self.met().map(|met| if met { "met" } else { "MISSED" });
        [
            self.what.clone(),
            text(self.value, self.unit),
            beside.unwrap_or_default(),
            self.ratio.map(|ratio| format!("{ratio:.2} ×")).unwrap_or_default(),
            aim.unwrap_or_default(),
            verdict.unwrap_or_default().to_owned(),
        ]
    }

    fn json(&self) -> Value {
        let (bound, at) = match self.aim {
            Some(Aim::AtMost(at)) => ("value_at_most", at),
            Some(Aim::AtLeast(at)) => ("value_at_least", at),
            Some(Aim::RatioAtMost(at)) => ("ratio_at_most", at),
            Some(Aim::RatioAtLeast(at)) => ("ratio_at_least", at),
            None => ("none", 0.0),
        };
        let unit = match self.unit {
            Unit::Seconds => "seconds",
            Unit::PerSecond => "per_second",
            Unit::BytesPerSecond => "bytes_per_second",
            Unit::Syncs => "syncs",
        };
        json!({
            "what": self.what,
            "value": self.value,
            "unit": unit,
            "beside": self.beside.map(|(name, value)| json!({ "what": name, "value": value })),
            "ratio": self.ratio,
            "aim": self.aim.map(|_| json!({ bound: at })),
            "met": self.met(),
        })
    }
}

fn text(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Seconds if value < 1e-3 => format!("{:.1} µs", value * 1e6),
        Unit::Seconds if value < 1.0 => format!("{:.2} ms", value * 1e3),
        Unit::Seconds => format!("{value:.2} s"),
        Unit::PerSecond if value >= 1e6 => format!("{:.2} M/s", value / 1e6),
        Unit::PerSecond if value >= 1e4 => format!("{:.0} k/s", value / 1e3),
        Unit::PerSecond => format!("{value:.0} /s"),
        Unit::BytesPerSecond => format!("{:.2} GB/s", value / 1e9),
        Unit::Syncs => format!("{value}"),
    }
}

/// The table as Markdown, its columns aligned for a terminal.
#[must_use]
pub fn table(facts: &Facts, rows: &[Row]) -> String {
    let mut out: String = facts.pairs().iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    out.push('\n');
    let head = ["what", "ours", "beside", "ratio", "aim", ""].map(str::to_owned);
    let lines: Vec<[String; 6]> = std::iter::once(head).chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    for (n, line) in lines.iter().enumerate() {
        for (cell, width) in line.iter().zip(widths) {
            out.push_str(&format!("| {cell:<width$} "));
        }
        out.push_str("|\n");
        if n == 0 {
            out.extend(widths.iter().map(|width| format!("|{}", "-".repeat(width + 2))));
            out.push_str("|\n");
        }
    }
    let missed = rows.iter().filter(|row| row.met() == Some(false)).count();
    let aims = rows.iter().filter(|row| row.aim.is_some()).count();
    out.push_str(&format!("\n{} of {aims} aims met.\n", aims - missed));
    out
}

/// The same for a program.
#[must_use]
pub fn document(facts: &Facts, rows: &[Row]) -> Value {
    let machine: serde_json::Map<String, Value> =
        facts.pairs().into_iter().map(|(name, value)| (name.replace(' ', "_"), value.into())).collect();
    json!({ "machine": machine, "rows": rows.iter().map(Row::json).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aim_is_judged_by_its_value_or_by_its_ratio() {
        for (case, row, met) in [
            ("none", Row::new("x", 1.0, Unit::Syncs), None),
            ("boundary", Row::new("x", 2.0, Unit::Syncs).aim(Aim::AtMost(2.0)), Some(true)),
            ("too slow", Row::new("x", 2.0, Unit::PerSecond).aim(Aim::AtLeast(3.0)), Some(false)),
            (
                "ratio",
                Row::new("x", 6.0, Unit::Seconds).beside("raw", 2.0).aim(Aim::RatioAtMost(3.0)),
                Some(true),
            ),
            (
                "turns",
                Row::new("x", 6.0, Unit::Seconds).beside("raw", 2.0).ratio(3.1).aim(Aim::RatioAtMost(3.0)),
                Some(false),
            ),
            ("nothing beside", Row::new("x", 6.0, Unit::Seconds).aim(Aim::RatioAtLeast(1.0)), Some(false)),
        ] {
            assert_eq!(row.met(), met, "{case}");
        }
    }
}
