//! Medians. A mean would let one stall of a shared disk decide.

use std::time::Duration;

/// The middle of `values`; of two middles the upper. 0 for none.
pub fn median(values: &mut [f64]) -> f64 {
    percentile(values, 50)
}

/// The value that `percent` of the others do not exceed. 0 for none.
pub fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((values.len() * percent / 100).min(last)).copied().unwrap_or(0.0)
}

/// Seconds of each.
#[must_use]
pub fn seconds(times: &[Duration]) -> Vec<f64> {
    times.iter().map(Duration::as_secs_f64).collect()
}

/// Two things measured by turns, so that both meet the same noise.
#[derive(Debug, Default)]
pub struct Turns {
    raw: Vec<f64>,
    ours: Vec<f64>,
    ratios: Vec<f64>,
}

impl Turns {
    /// Takes one turn of each: times of single operations.
    pub fn note(&mut self, raw: &[Duration], ours: &[Duration]) {
        let (mut raw, mut ours) = (seconds(raw), seconds(ours));
        self.ratios.push(median(&mut ours) / median(&mut raw));
        self.raw.append(&mut raw);
        self.ours.append(&mut ours);
    }

    /// Median and 99th percentile of the raw operation, in seconds.
    pub fn raw(&mut self) -> (f64, f64) {
        (median(&mut self.raw), percentile(&mut self.raw, 99))
    }

    /// The same of ours.
    pub fn ours(&mut self) -> (f64, f64) {
        (median(&mut self.ours), percentile(&mut self.ours, 99))
    }

    /// Median of the turns' ratios of medians.
    pub fn ratio(&mut self) -> f64 {
        median(&mut self.ratios)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_there() {
        let mut values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(
            (median(&mut values), percentile(&mut values, 99), percentile(&mut values, 100)),
            (51.0, 100.0, 100.0)
        );
        assert_eq!(median(&mut []), 0.0);
    }
}
