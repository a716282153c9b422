//! `completions`: a script that teaches a shell our command line.

use clap::CommandFactory as _;
use clap_complete::Shell;
use serde_json::json;

use crate::args;
use crate::context::Cx;
use crate::exit::Exit;
use crate::failure::Failure;

/// Print a completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opjournal completions bash > ~/.local/share/bash-completion/completions/opjournal
  opjournal completions zsh > \"${fpath[1]}/_opjournal\"
  opjournal completions fish > ~/.config/fish/completions/opjournal.fish")]
pub(crate) struct Args {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Does it.
pub(crate) fn run(args: &Args, cx: &Cx) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::Args::command(), "opjournal", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    cx.out.result(&json!({ "shell": args.shell.to_string(), "script": script }), |_, _| script.clone())?;
    Ok(Exit::Verified)
}
