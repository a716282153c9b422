//! `runs`: list, show, wait. Only looks.

use std::time::{Duration, Instant};

use engine::service::View;
use protocol::ids::RunId;
use protocol::outcome::RunState;
use protocol::projection::{AttentionItem, RunView};
use serde::Serialize;

use super::page;
use super::render::{self, RunAnswer};
use crate::context::Cx;
use crate::exit::Exit;
use crate::failure::Failure;

/// List runs, show one, or wait for one. Takes no lock and writes nothing.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  opjournal runs list                      open runs, oldest first
  opjournal runs list --all                and those that have ended
  opjournal runs list --state completed
  opjournal runs show run_0123…
  opjournal runs wait run_0123… --timeout 60"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List runs, oldest first: open ones, unless `--all` or `--state` say otherwise
    List {
        /// Also those that have ended
        #[arg(long)]
        all: bool,
        /// Only those that stand so
        #[arg(long, value_name = "STATE", value_parser = state)]
        state: Option<RunState>,
        #[command(flatten)]
        page: page::PageArgs,
    },
    /// Show one run; exits as the run stands
    Show {
        /// The run
        #[arg(value_name = "RUN")]
        run: RunId,
    },
    /// Wait until a run ends or waits for a person; exits as the run stands
    Wait {
        /// The run
        #[arg(value_name = "RUN")]
        run: RunId,
        /// Wait at most this long; then it exits 4 if the run still goes on
        #[arg(long, value_name = "SECONDS")]
        timeout: Option<u64>,
    },
}

fn state(text: &str) -> Result<RunState, String> {
    RunState::from_text(text).ok_or_else(|| format!("one of {}", RunState::TEXTS.join(", ")))
}

/// A page of runs.
#[derive(Serialize)]
struct List {
    runs: Vec<RunView>,
    next_cursor: Option<String>,
}

/// One run with what it waits for.
#[derive(Serialize)]
struct Shown {
    run: RunView,
    attention: Option<AttentionItem>,
}

/// Does it.
pub(crate) fn run(args: &Args, cx: &Cx) -> Result<Exit, Failure> {
    match &args.command {
        Command::List { all, state, page } => list(*all, *state, page, cx),
        Command::Show { run } => show(*run, cx),
        Command::Wait { run, timeout } => wait(*run, *timeout, cx),
    }
}

fn list(all: bool, state: Option<RunState>, page: &page::PageArgs, cx: &Cx) -> Result<Exit, Failure> {
    let view = cx.view()?;
    let mut runs = view.open_runs();
    if all || state.is_some_and(is_final) {
        runs.extend(view.finished_runs()?);
    }
    runs.retain(|run| state.is_none_or(|state| run.state == state));
    runs.sort_by_key(|run| (run.started_at, run.run_id));
    let (runs, next_cursor) = page.cut(runs, |run| (run.started_at, run.run_id))?;
    cx.out.result(&List { runs, next_cursor }, |list, paint| {
        let mut text = render::runs(&list.runs, paint);
        if let Some(cursor) = &list.next_cursor {
            text.push_str(&format!("more: `--cursor {cursor}`\n"));
        }
        text
    })?;
    Ok(Exit::Verified)
}

const fn is_final(state: RunState) -> bool {
    match state {
        RunState::Completed | RunState::Halted | RunState::Rejected | RunState::Failed => true,
        RunState::Admitted | RunState::Running | RunState::Paused => false,
    }
}

fn show(run: RunId, cx: &Cx) -> Result<Exit, Failure> {
    let view = cx.view()?;
    let run = view.run(run)?;
    let attention = run.attention_id.as_ref().and_then(|id| view.attention_item(id).ok());
    let shown = Shown { run, attention };
    cx.out.result(&shown, |shown, paint| render::run(&shown.run, paint))?;
    Ok(Exit::of_run(&shown.run))
}

/// Between two looks: short at first, since most waits are short.
const LOOK_LEAST: Duration = Duration::from_millis(50);
const LOOK_MOST: Duration = Duration::from_secs(1);

fn wait(run: RunId, timeout: Option<u64>, cx: &Cx) -> Result<Exit, Failure> {
    let begun = Instant::now();
    let mut pause = LOOK_LEAST;
    let seen = loop {
        let seen = cx.view().and_then(|view: View| Ok(view.run(run)?))?;
        let late = timeout.is_some_and(|seconds| begun.elapsed() >= Duration::from_secs(seconds));
        if late || is_final(seen.state) || seen.state == RunState::Paused {
            break seen;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LOOK_MOST);
    };
    let answer = RunAnswer { run: seen, replayed: None };
    cx.out.result(&answer, |answer, paint| render::run(&answer.run, paint))?;
    Ok(Exit::of_run(&answer.run))
}
