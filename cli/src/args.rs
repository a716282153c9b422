//! The command line. Help, man page and completions come from here; examples stand beside each command.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::command;
use crate::limits::Setting;

/// Crash-safe, auditable attended work.
#[derive(Debug, Parser)]
#[command(
    name = "opjournal",
    version,
    max_term_width = 100,
    long_about = "\
opjournal runs workflows that need a person now and then, and never does a step twice.

A run drives an application step by step. Where a person is needed, it pauses, durably; the person does the work in \
the application and decides; the run goes on at exactly the next step, even if the machine died in between. Every \
fact is in an append-only, hash-chained journal, so that anyone can later replay and verify what was done, by whom, \
on what evidence.",
    after_long_help = "\
A first look (about half a minute, everything in a temporary folder):
  opjournal quickstart

Daily work:
  opjournal run ./triage --params params.json --request-id visit-17 --config clinic.json
  opjournal attention list                    what waits for a person
  opjournal attention show ID                 one item, with ready-made commands to decide on it
  opjournal decide ID --action continue …     the person did it; verify and go on
  opjournal resume --all --config clinic.json runs whose process died
  opjournal replay                            the story of the journal
  opjournal verify                            is everything as it was written?

With --json every command prints one JSON document on stdout (replay: one a line); an error is
  {\"error\": {\"code\", \"message\", \"next_step\", \"exit\"}}
Exit codes: `opjournal exit-codes`."
)]
pub(crate) struct Args {
    /// What holds for every command.
    #[command(flatten)]
    pub(crate) global: Global,
    /// The command.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Heading of [`Global`] in every help.
const HEADING: &str = "For every command";

/// Options of every command.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    /// The home directory: journal, keys, bundles and evidence.
    ///
    /// Default: `$XDG_STATE_HOME/opjournal` or `~/.local/state/opjournal`; on macOS
    /// `~/Library/Application Support/opjournal`.
    #[arg(long, global = true, value_name = "DIR", env = "OPJOURNAL_HOME", hide_env_values = true, help_heading = HEADING)]
    pub(crate) home: Option<PathBuf>,

    /// Print JSON on stdout, errors too.
    #[arg(long, global = true, help_heading = HEADING)]
    pub(crate) json: bool,

    /// Set a limit, such as `pause=2d` or `lock-wait=30s`; `opjournal info` lists them.
    #[arg(long = "set-limit", global = true, value_name = "NAME=VALUE", hide_short_help = true, help_heading = HEADING)]
    pub(crate) limits: Vec<Setting>,

    /// End as soon as stdin is closed: ties the process to the one that started it.
    #[arg(long, global = true, hide = true)]
    pub(crate) end_with_stdin: bool,
}

/// Every command. `about` is the line in the list; what stands above each command's own `Args` is its long help.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(about = "See everything at work: a run, a pause, a crash, a decision, a replay")]
    Quickstart(command::quickstart::Args),
    #[command(about = "Start a run and drive it until it stops")]
    Run(command::run::Args),
    #[command(about = "List runs, show one, or wait for one")]
    Runs(command::runs::Args),
    #[command(about = "Pick up runs whose process died or whose pause can be checked again")]
    Resume(command::resume::Args),
    #[command(about = "End a run before its next delivery")]
    Cancel(command::cancel::Args),
    #[command(about = "What waits for a person")]
    Attention(command::attention::Args),
    #[command(about = "Decide on what waits: continue, skip, reject, teach, escalate or reconcile")]
    Decide(command::decide::Args),
    #[command(
        about = "Tell the story of the journal, or of one run, and check it against the recorded states"
    )]
    Replay(command::replay::Args),
    #[command(about = "Check that everything is as it was written")]
    Verify(command::verify::Args),
    #[command(about = "Write the journal out in an open form")]
    Export(command::export::Args),
    #[command(about = "Check a workflow bundle, or print its version")]
    Bundle(command::bundle::Args),
    #[command(about = "Version, formats, home, positions and limits")]
    Info(command::info::Args),
    #[command(about = "Print the table of exit codes")]
    ExitCodes(command::exit_codes::Args),
    #[command(about = "The demonstration clinic: a target to try things on")]
    Mockmed(command::mockmed::Args),
    #[command(about = "Print a completion script for a shell")]
    Completions(command::completions::Args),
    #[command(about = "Print the manual page, or write all pages into a folder")]
    Man(command::man::Args),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_command_gives_an_example() {
        for command in Args::command().get_subcommands() {
            let own = command.get_after_help().is_some() || command.get_after_long_help().is_some();
            assert!(own, "`{}` has no example in its help", command.get_name());
        }
    }

    #[test]
    fn the_long_help_of_a_command_says_more_than_the_list() {
        for name in ["quickstart", "run", "resume", "decide", "replay", "verify"] {
            let root = Args::command();
            let command = root.find_subcommand(name).unwrap();
            let long = command.get_long_about().map(ToString::to_string).unwrap_or_default();
            assert!(long.lines().count() > 1 || long.len() > 120, "`{name} --help` teaches nothing: {long}");
        }
    }

    #[test]
    fn the_home_and_json_options_may_stand_before_and_after_the_command() {
        for line in
            [["opjournal", "--home", "/x", "--json", "info"], ["opjournal", "info", "--json", "--home", "/x"]]
        {
            let args = Args::try_parse_from(line).unwrap();
            assert_eq!(args.global.home, Some(PathBuf::from("/x")), "{line:?}");
            assert!(args.global.json, "{line:?}");
        }
    }
}
