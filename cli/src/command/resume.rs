//! `resume`: pick up runs that nobody works on.

use protocol::decision::DecidedVia;
use protocol::ids::RunId;
use protocol::projection::RunView;
use serde::Serialize;
use serde_json::Value;

use super::deployment;
use super::render::{self, RunAnswer};
use crate::context::{Cx, close};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Paint, failure_text};
use crate::progress;

/// Pick up runs whose process died or whose pause can be checked again.
///
/// Everything that earlier steps left behind is read again first, never done again. A step whose delivery may have
/// happened is not repeated: the run then waits for `opjournal decide … --action reconcile`.
///
/// `resume RUN` also checks a pause again, for example one that has expired or whose target was offline. `resume --all`
/// leaves runs that wait for a person as they are.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  opjournal resume run_0123… --config clinic.json
  opjournal resume --all --config clinic.json

Exits as the run stands; with --all, as the run that needs somebody most."
)]
pub(crate) struct Args {
    /// The run
    #[arg(value_name = "RUN", required_unless_present = "all", conflicts_with = "all")]
    run: Option<RunId>,

    /// Every run that is free
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    deployment: deployment::DeploymentArgs,
}

/// What became of one of several.
#[derive(Serialize)]
struct Resumed {
    run_id: RunId,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
    exit: u8,
    #[serde(skip)]
    failure: Option<Failure>,
}

#[derive(Serialize)]
struct All {
    runs: Vec<Resumed>,
}

/// Does it.
pub(crate) fn run(args: &Args, cx: &Cx) -> Result<Exit, Failure> {
    let deployment = args.deployment.deployment()?;
    let author = Cx::author(DecidedVia::Script)?;
    let engine = cx.engine(deployment)?;
    if let Some(run) = args.run {
        let run = progress::during(&cx.out, || engine.run(run).ok(), || engine.resume(run, &author))?;
        close(engine, &cx.out);
        let answer = RunAnswer { run, replayed: None };
        cx.out.result(&answer, |answer, paint| render::run(&answer.run, paint))?;
        return Ok(Exit::of_run(&answer.run));
    }
    let mut exit = Exit::Verified;
    let mut runs = Vec::new();
    for open in engine.open_runs()? {
        let id = open.run_id;
        let driven = progress::during(&cx.out, || engine.run(id).ok(), || engine.resume_free(id, &author));
        let (run, failure) = match driven {
            Ok(run) => (Some(run), None),
            Err(error) => (None, Some(Failure::from(error))),
        };
        let own = run.as_ref().map(Exit::of_run).or_else(|| failure.as_ref().map(Failure::exit));
        let own = own.unwrap_or(Exit::Internal);
        exit = exit.worst(own);
        let error = failure.as_ref().and_then(|failure| failure.to_json().get("error").cloned());
        runs.push(Resumed { run_id: id, run, error, exit: own.code(), failure });
    }
    close(engine, &cx.out);
    cx.out.result(&All { runs }, all_text)?;
    Ok(exit)
}

fn all_text(all: &All, paint: Paint) -> String {
    if all.runs.is_empty() {
        return "no open runs\n".to_owned();
    }
    let one = |resumed: &Resumed| match (&resumed.run, &resumed.failure) {
        (Some(run), _) => render::run(run, paint),
        (None, Some(failure)) => {
            format!("{}\n{}", paint.bold(&resumed.run_id.to_string()), failure_text(failure, paint))
        }
        (None, None) => String::new(),
    };
    all.runs.iter().map(one).collect()
}
