//! `exit-codes`: the table.

use serde_json::json;

use crate::context::Cx;
use crate::exit::{Exit, TABLE};
use crate::failure::Failure;

/// Print the table of exit codes.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{}\nExamples:\n  opjournal exit-codes\n  opjournal exit-codes --json", text()))]
pub(crate) struct Args {}

/// Does it.
pub(crate) fn run(_args: &Args, cx: &Cx) -> Result<Exit, Failure> {
    cx.out.result(&json!({ "exit_codes": TABLE }), |_, _| text())?;
    Ok(Exit::Verified)
}

/// The table, one code a line.
pub(super) fn text() -> String {
    TABLE.iter().map(|row| format!("{:>4}  {}\n", row.code, row.meaning)).collect()
}
