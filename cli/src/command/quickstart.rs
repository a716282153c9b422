//! `quickstart`: the demonstration.

use crate::context::Cx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::quickstart;

/// See everything at work: a run, a pause, a crash, a decision, a replay.
///
/// Starts a small clinic (MockMed, invented patients) in a process of its own and runs a triage workflow on it. One step
/// is yours: you fill in a form in your browser. Then the engine is killed between sending a note and hearing that it
/// arrived; it starts again, does not send it twice, settles by reading what happened, and finishes. At the end the
/// clinic's own records and the journal must agree.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opjournal quickstart                       you are the person
  opjournal quickstart --unattended-demo     a program fills in the form; recorded as a program's doing
  opjournal quickstart --unattended-demo --keep
  opjournal quickstart --unattended-demo --json

Everything happens in a temporary folder, unless --home names another. OPJOURNAL_HOME is not used here.")]
pub(crate) struct Args {
    /// Let a program do the person's step; it is recorded as automation, never as a person's
    #[arg(long)]
    unattended_demo: bool,

    /// Keep the temporary home afterwards, to look around in it
    #[arg(long)]
    keep: bool,
}

/// Does it.
pub(crate) fn run(args: &Args, cx: &Cx) -> Result<Exit, Failure> {
    let operator = if args.unattended_demo {
        quickstart::Operator::Program
    } else if super::person_is_there() {
        quickstart::Operator::Person
    } else {
        return Err(Failure::usage(
            "the quickstart needs a person at a terminal",
            "Run it on a terminal, or let a program do the person's step with `--unattended-demo`.",
        ));
    };
    quickstart::run(operator, args.keep, cx)
}
