//! Types that every side of opjournal shares: ids, events, commands, refusals, capability, decisions,
//! canonical JSON, digests and the workflow format.
//!
//! Nothing here does I/O, reads a clock or draws a random number; the crate is `no_std` to prove it.
#![no_std]

extern crate alloc;

pub mod digest;
pub mod ids;
pub mod time;
