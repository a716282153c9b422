//! The `opjournal` program as a library, so that a test can run the very same program on a disk that fails on purpose.
//!
//! Not an interface for embedders: that is `opjournal-engine`. Every command parses, makes one call on the engine and
//! renders the answer; no rule about runs, pauses or decisions lives here.

mod args;
mod command;
mod context;
#[doc(hidden)]
pub mod exit;
mod failure;
mod limits;
mod meaning;
mod mockmed;
mod output;
mod progress;
mod quickstart;
mod time;

use std::process::ExitCode;
use std::sync::Arc;

use engine::service::ports::BoundaryHook;
use journal::vfs::Vfs;
use journal::vfs::os::OsVfs;

/// What a test may put between the program and the world.
#[doc(hidden)]
pub struct Hooks {
    /// The file system of the home.
    pub vfs: Arc<dyn Vfs>,
    /// Called around executor calls.
    pub boundary: BoundaryHook,
}

impl Default for Hooks {
    fn default() -> Self {
        Self { vfs: Arc::new(OsVfs), boundary: Arc::new(|_| {}) }
    }
}

/// Runs the program with this process's arguments and says how it ends.
#[doc(hidden)]
#[must_use]
pub fn main_with(hooks: Hooks) -> ExitCode {
    command::run(std::env::args_os(), hooks).into()
}
