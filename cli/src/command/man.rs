//! `man`: the manual pages, made from the command line's own help.

use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use serde_json::json;

use crate::args;
use crate::context::Cx;
use crate::exit::Exit;
use crate::failure::Failure;

/// Print the manual page, or write all pages into a folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opjournal man | man -l -
  opjournal man --dir ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// Write a page for every command into this folder, which must exist
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Does it.
pub(crate) fn run(args: &Args, cx: &Cx) -> Result<Exit, Failure> {
    let mut root = args::Args::command();
    root.build();
    let Some(dir) = &args.dir else {
        let page = page(root)?;
        cx.out.result(&json!({ "page": page }), |_, _| page.clone())?;
        return Ok(Exit::Verified);
    };
    let mut written = Vec::new();
    write(dir, root, &mut written)?;
    cx.out.result(&json!({ "pages": written }), |_, _| {
        written.iter().map(|name| format!("{name}\n")).collect()
    })?;
    Ok(Exit::Verified)
}

fn write(dir: &Path, command: clap::Command, written: &mut Vec<String>) -> Result<(), Failure> {
    let children: Vec<clap::Command> = command
        .get_subcommands()
        .filter(|child| child.get_name() != "help" && !child.is_hide_set())
        .cloned()
        .collect();
    let name = format!("{}.1", command.get_display_name().unwrap_or_else(|| command.get_name()));
    std::fs::write(dir.join(&name), page(command)?)
        .map_err(|error| Failure::io("writing a manual page", &error))?;
    written.push(name);
    children.into_iter().try_for_each(|child| write(dir, child, written))
}

fn page(command: clap::Command) -> Result<String, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|error| Failure::io("making a manual page", &error))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
