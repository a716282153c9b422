//! What the benchmarks measure, beside what the disk itself costs. README.md has the command and the figures.
//!
//! `main.rs` prints one table; `benches/*.rs` are the same things for criterion.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement has nobody to report an error to")]

pub mod facts;
pub mod history;
pub mod measure;
pub mod paused;
pub mod plain;
pub mod raw;
pub mod report;
pub mod stats;
