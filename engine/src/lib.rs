//! opjournal's engine: crash-safe, auditable attended work.
#![cfg_attr(not(feature = "service"), no_std)]

extern crate alloc;

pub mod machine;
#[cfg(feature = "service")]
#[allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "clock, chance, files and threads belong here; clippy.toml keeps them out of the machine"
)]
pub mod service;
