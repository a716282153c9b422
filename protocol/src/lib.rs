//! Types that every side of opjournal shares: ids, events, commands, refusals, capability, decisions,
//! canonical JSON, digests and the workflow format.
//!
//! Nothing here does I/O, reads a clock or draws a random number; the crate is `no_std` to prove it.
#![no_std]

extern crate alloc;

pub mod bundle;
pub mod canonical_json;
pub mod capability;
pub mod command;
pub mod cursor;
pub mod decision;
pub mod delivery;
pub mod digest;
pub mod event;
pub mod ids;
pub mod outcome;
pub mod pause;
pub mod projection;
pub mod refusal;
pub mod time;
pub mod vocabulary;
