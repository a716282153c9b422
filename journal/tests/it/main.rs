//! The rules of the journal, tested from outside.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what clippy.toml allows in tests it does not see outside `#[test]` functions"
)]

mod append;
mod damage;
mod disk;
mod faults;
mod golden;
mod model;
mod support;
mod tail;
