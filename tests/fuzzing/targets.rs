//! The fuzz targets: plain functions from any bytes to a verdict. `fuzz/` runs them under libFuzzer; `tests/it/corpus.rs`
//! runs them over the checked-in corpus and over mutations of it with every test run.
//!
//! - `block`: a segment's bytes after its header.
//! - `recovery`: a journal's folder after anything happened to its files.
//! - `payload`: the payload of a record of any kind.
//! - `machine`: a fleet of processes, driven by the bytes and judged by the reference model.
//! - `documents`: what comes from outside as JSON: workflows, decision requests, any value.
//!
//! A broken rule is a [`Violation`](crate::Violation); a panic is one too, and whoever calls reports it.

mod base;
mod block;
mod disk;
mod documents;
mod input;
mod machine;
mod payload;
mod recovery;

pub use block::block;
pub use documents::{canonical_json, decision_request, workflow};
pub use machine::machine;
pub use payload::payload;
pub use recovery::recovery;

use crate::Judged;

/// A fuzz target.
#[derive(Clone, Copy)]
pub struct Target {
    /// Name of its file in `fuzz/fuzz_targets` and of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// The target.
    pub judge: fn(&[u8]) -> Judged,
    /// How many mutations of its corpus the ordinary test command tries: what about two seconds allow.
    pub mutations: u32,
}

/// All of them.
pub const TARGETS: [Target; 7] = [
    Target { name: "block", judge: block, mutations: 2_000 },
    Target { name: "canonical_json", judge: canonical_json, mutations: 10_000 },
    Target { name: "decision_request", judge: decision_request, mutations: 10_000 },
    Target { name: "machine", judge: machine, mutations: 100 },
    Target { name: "payload", judge: payload, mutations: 10_000 },
    Target { name: "recovery", judge: recovery, mutations: 500 },
    Target { name: "workflow", judge: workflow, mutations: 2_000 },
];
