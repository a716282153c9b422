//! `bundle`: check a workflow bundle, or print its version. Only looks; needs no home.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use engine::service::bundle::{Bundle, BundleError};
use engine::service::{Deployment, check_executor_args};
use protocol::bundle::{Problem, Workflow};
use protocol::digest::Sha256Digest;
use serde::Serialize;
use serde_json::{Value, json};

use super::deployment;
use super::render::count;
use crate::context::Cx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Paint, problem_text};

/// Check a workflow bundle, or print its version.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  opjournal bundle check ./triage
  opjournal bundle check ./triage --config clinic.json    also: does the deployment have its credentials?
  opjournal bundle digest ./triage"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print every problem with a JSON pointer to its place; exits 2 when there is one
    ///
    /// Without a deployment, any credential that the bundle names is taken to exist.
    Check {
        /// The folder with `workflow.json`
        #[arg(value_name = "DIR")]
        bundle: PathBuf,
        #[command(flatten)]
        deployment: deployment::DeploymentArgs,
    },
    /// Print the bundle's version: the digest of its canonical content
    Digest {
        /// The folder with `workflow.json`
        #[arg(value_name = "DIR")]
        bundle: PathBuf,
    },
}

/// A declared parameter: what an agent may know of it.
#[derive(Serialize)]
struct Parameter {
    name: String,
    r#type: &'static str,
    required: bool,
}

#[derive(Serialize)]
struct Checked {
    valid: bool,
    problems: Vec<Problem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<Sha256Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workflow: Option<String>,
    steps: u32,
    effects: u32,
    parameters: Vec<Parameter>,
}

/// Does it.
pub(crate) fn run(args: &Args, cx: &Cx) -> Result<Exit, Failure> {
    match &args.command {
        Command::Check { bundle, deployment } => check(bundle, deployment, cx),
        Command::Digest { bundle } => {
            let version = Bundle::load(bundle)?.version;
            cx.out.result(&json!({ "version": version }), |_, _| format!("{version}\n"))?;
            Ok(Exit::Verified)
        }
    }
}

fn check(folder: &Path, deployment: &deployment::DeploymentArgs, cx: &Cx) -> Result<Exit, Failure> {
    let given = deployment.deployment()?;
    let checked = match Bundle::load(folder) {
        Ok(bundle) => {
            let workflow = &bundle.workflow;
            let deployment = if given.is_empty() { with_every_credential(workflow)? } else { given };
            let problems = check_executor_args(workflow, &deployment);
            Checked {
                valid: problems.is_empty(),
                problems,
                version: Some(bundle.version),
                workflow: Some(workflow.id().to_string()),
                steps: workflow.step_count(),
                effects: workflow.effect_count(),
                parameters: workflow
                    .parameters()
                    .iter()
                    .map(|spec| Parameter {
                        name: spec.name.clone(),
                        r#type: spec.kind.as_str(),
                        required: spec.required,
                    })
                    .collect(),
            }
        }
        Err(BundleError::Problems(problems)) => Checked {
            valid: false,
            problems,
            version: None,
            workflow: None,
            steps: 0,
            effects: 0,
            parameters: vec![],
        },
    };
    cx.out.result(&checked, text)?;
    Ok(if checked.valid { Exit::Verified } else { Exit::Refused })
}

fn text(checked: &Checked, paint: Paint) -> String {
    let mut text = String::new();
    for problem in &checked.problems {
        text.push_str(&format!("{} {}\n", paint.red("problem"), problem_text(&json!(problem))));
    }
    if checked.valid {
        text.push_str(&format!("{}\n", paint.green("the bundle is good")));
    } else {
        text.push_str(&format!(
            "{}\n",
            paint.bold(&count(u32::try_from(checked.problems.len()).unwrap_or(u32::MAX), "problem"))
        ));
    }
    let Some(version) = checked.version else { return text };
    text.push_str(&format!("  version     {version}\n"));
    if let Some(workflow) = &checked.workflow {
        text.push_str(&format!("  workflow    {workflow}\n"));
    }
    text.push_str(&format!("  steps       {}, effects {}\n", checked.steps, checked.effects));
    for parameter in &checked.parameters {
        let need = if parameter.required { "required" } else { "optional" };
        text.push_str(&format!("  parameter   {} ({}, {need})\n", parameter.name, parameter.r#type));
    }
    text
}

/// A deployment that has whatever credential the bundle names, to judge its arguments by themselves.
fn with_every_credential(workflow: &Workflow) -> Result<Deployment, Failure> {
    let mut names = BTreeSet::new();
    for step in workflow.steps() {
        let checks = step.guard.iter().map(|guard| &guard.check).chain(&step.identity).chain(&step.expect);
        let checks = checks.chain(step.effects.iter().filter_map(|effect| effect.verifier()));
        let args = checks
            .map(|check| check.args.expose())
            .chain(step.action.iter().map(|action| action.args.expose()));
        names.extend(args.filter_map(|args| args.get("credential").and_then(Value::as_str)));
    }
    let placeholder =
        |name: &&str| ((*name).to_owned(), json!({ "header": "X-Key", "value": { "value": "none" } }));
    let credentials: serde_json::Map<String, Value> = names.iter().map(placeholder).collect();
    let config = json!({ "target": "http://localhost", "credentials": credentials });
    match serde_json::from_value(config) {
        Ok(config) => deployment::with_http(config),
        Err(_) => Ok(Deployment::none()),
    }
}
