//! Times as a person reads them.

use protocol::time::UnixMillis;

/// A moment in UTC, to the millisecond: `2026-01-31T09:30:00.000Z`.
pub(crate) fn utc(at: UnixMillis) -> String {
    let stamp = i64::try_from(at.0).ok().and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
    stamp.map_or_else(|| format!("{} ms", at.0), |stamp| format!("{stamp:.3}"))
}

/// A moment in UTC, to the second, with a space: `2026-01-31 09:30:00`.
pub(crate) fn short(at: UnixMillis) -> String {
    let text = utc(at);
    text.split_once('.').map_or_else(|| text.clone(), |(seconds, _)| seconds.replace('T', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_print_in_utc_and_impossible_ones_still_print() {
        assert_eq!(utc(UnixMillis(1_769_851_800_000)), "2026-01-31T09:30:00.000Z");
        assert_eq!(short(UnixMillis(1_769_851_800_000)), "2026-01-31 09:30:00");
        assert_eq!(utc(UnixMillis(u64::MAX)), format!("{} ms", u64::MAX));
    }
}
