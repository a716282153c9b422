//! opjournal's engine: crash-safe, auditable attended work.
#![cfg_attr(not(feature = "service"), no_std)]

extern crate alloc;

pub mod machine;
#[cfg(feature = "service")]
pub mod service;
