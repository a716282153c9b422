//! The wall clock, and how a moment is written.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Now, in milliseconds of Unix time; 0 on a clock from before 1970.
pub(super) fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

/// Exact, in UTC, by RFC 3339.
pub(super) fn rfc3339(ms: u64) -> String {
    timestamp(ms).to_string()
}

/// To the minute, in UTC.
pub(super) fn for_people(ms: u64) -> String {
    timestamp(ms).strftime("%Y-%m-%d %H:%M UTC").to_string()
}

fn timestamp(ms: u64) -> Timestamp {
    i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or(Timestamp::MAX)
}
