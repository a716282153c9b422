//! `run`: admit a run and drive it until it stops.

use std::path::PathBuf;

use engine::service::StartRequest;
use protocol::decision::DecidedVia;
use protocol::ids::RequestId;

use super::render::{self, RunAnswer};
use super::{deployment, parameters};
use crate::context::{Cx, close};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::progress;

/// Start a run and drive it until it stops.
///
/// The bundle is checked, the parameters are bound, and the admission is journalled before the first step. Then each
/// step runs: guard, intent, action, independent read-back, checkpoint. The command returns when the run ends or waits
/// for a person.
///
/// The same request id with the same bundle and parameters never runs twice: it goes on with the run that it started
/// before, or tells what became of it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opjournal run ./triage --params params.json --request-id visit-17 --config clinic.json
  printf '{\"patient\": \"p-001\"}' | opjournal run ./triage --params - --target http://127.0.0.1:8080
  opjournal run ./triage --params params.json --config clinic.json --json

Exits 0 only for a run that is VERIFIED; 4 when it waits for a person; 3 when a delivery is uncertain.
Parameters on the command line can be seen by other users in the process list; give real ones with --params.")]
pub(crate) struct Args {
    /// The workflow bundle: a folder with `workflow.json`
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,

    #[command(flatten)]
    parameters: parameters::ParameterArgs,

    /// Your name for this request; the same one never runs twice
    #[arg(long, value_name = "ID")]
    request_id: Option<RequestId>,

    #[command(flatten)]
    deployment: deployment::DeploymentArgs,

    /// Only admit it and return; `opjournal resume RUN` drives it
    #[arg(long, visible_alias = "no-wait")]
    detach: bool,
}

/// Does it.
pub(crate) fn run(args: &Args, cx: &Cx) -> Result<Exit, Failure> {
    let parameters = args.parameters.read(&args.bundle)?;
    let deployment = args.deployment.deployment()?;
    let author = Cx::author(DecidedVia::Script)?;
    let engine = cx.engine_in_new_home(deployment)?;
    let started = engine.start(&StartRequest {
        bundle: args.bundle.clone(),
        parameters,
        request_id: args.request_id.clone(),
        author: author.clone(),
    })?;
    cx.out.note(&render::admitted(started.run, started.replayed));
    let driven = if args.detach {
        engine.run(started.run)
    } else {
        progress::during(
            &cx.out,
            || engine.run(started.run).ok(),
            || engine.resume_free(started.run, &author),
        )
    };
    let run = driven.map_err(|error| Failure::from(error).with("run_id", started.run.to_string()))?;
    close(engine, &cx.out);
    let answer = RunAnswer { run, replayed: Some(started.replayed) };
    cx.out.result(&answer, |answer, paint| render::run(&answer.run, paint))?;
    Ok(Exit::of_run(&answer.run))
}
