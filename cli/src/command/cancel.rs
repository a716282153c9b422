//! `cancel`: end a run before its next delivery.

use engine::service::Deployment;
use protocol::decision::DecidedVia;
use protocol::ids::RunId;

use super::render::{self, RunAnswer};
use crate::context::{Cx, close};
use crate::exit::Exit;
use crate::failure::Failure;

/// End a run before its next delivery.
///
/// What was done stays done. A delivery that may have happened is never rewritten: such a run ends once that is
/// reconciled.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opjournal cancel run_0123…

Exits 1 once the run is canceled, 4 while another process still has to notice, 3 while a delivery is uncertain.")]
pub(crate) struct Args {
    /// The run
    #[arg(value_name = "RUN")]
    run: RunId,
}

/// Does it.
pub(crate) fn run(args: &Args, cx: &Cx) -> Result<Exit, Failure> {
    let author = Cx::author(DecidedVia::Script)?;
    let engine = cx.engine(Deployment::none())?;
    let run = engine.cancel(args.run, author)?;
    close(engine, &cx.out);
    let answer = RunAnswer { run, replayed: None };
    cx.out.result(&answer, |answer, paint| render::run(&answer.run, paint))?;
    Ok(Exit::of_run(&answer.run))
}
