//! Rules that cross crates, each told by the name of its test. One binary, so that it links once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what clippy.toml allows in tests it does not see outside `#[test]` functions"
)]

mod acceptance;
mod architecture;
mod canary;
mod cli_text;
mod corpus;
mod crash;
mod disk_full;
mod events_doc;
mod golden_events;
mod machine;
mod reader;
#[path = "../support/mod.rs"]
mod support;
mod two_processes;
