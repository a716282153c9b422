//! `replay`: written elsewhere.

use crate::context::Cx;
use crate::exit::Exit;
use crate::failure::Failure;

/// Not there yet.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  opjournal replay")]
pub(crate) struct Args {}

/// Does it.
pub(crate) fn run(_args: &Args, _cx: &Cx) -> Result<Exit, Failure> {
    Err(Failure::usage("not there yet", "Wait."))
}
