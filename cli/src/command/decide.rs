//! `decide`: a person's, or a program's, decision on an open item.

use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};

use engine::service::Engine;
use protocol::decision::{Action, DecidedVia, DecisionRequest, Disposition, MAX_REQUEST_BYTES};
use protocol::digest::Sha256Digest;
use protocol::ids::{AttentionId, IdempotencyKey};
use protocol::projection::{DecisionView, RunView};
use protocol::refusal::{Refusal, RefusalCode};
use serde::Serialize;

use super::attention::{fresh_key, meaning};
use super::deployment::{self, read_limited};
use super::{person_is_there, render};
use crate::context::{Cx, close};
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::progress;

/// Decide on what waits: continue, skip, reject, teach, escalate or reconcile.
///
/// A decision names the exact capability that you saw with `opjournal attention show`; if the item has changed since,
/// it is refused. The same key with the same content is one decision for ever: repeating it returns what was recorded.
///
/// A continue, skip or reconcile reads the live application before it is recorded; afterwards the run goes on in this
/// process until it stops again.
///
/// On a terminal you are asked to type the action's name, and the decision is recorded as a person's (`console`).
/// Otherwise, or with --script, it is recorded as a program's (`script`).
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  opjournal attention show 0123456789abcdef01234567        prints commands ready to use
  opjournal decide 0123456789abcdef01234567 --action continue \\
      --capability sha256:… --key visit-17-triage-done --config clinic.json
  opjournal decide --request decision.json --config clinic.json

A request in a file is exactly
  {\"attention_id\", \"capability_digest\", \"idempotency_key\", \"action\", \"disposition\" (may be left out)}

Exits as the run stands after the decision; 2 or above when the decision was refused."
)]
pub(crate) struct Args {
    /// The item
    #[arg(value_name = "ATTENTION", required_unless_present = "request", conflicts_with = "request")]
    attention: Option<AttentionId>,

    /// What to do
    #[arg(long, value_name = "ACTION", value_parser = action, required_unless_present = "request", conflicts_with = "request")]
    action: Option<Action>,

    /// Digest of the capability that you saw
    #[arg(long, value_name = "DIGEST", required_unless_present = "request", conflicts_with = "request")]
    capability: Option<Sha256Digest>,

    /// Your name for this decision; repeat it to see the same answer. Made and printed when left out
    #[arg(long, value_name = "KEY", conflicts_with = "request")]
    key: Option<IdempotencyKey>,

    /// Why, from the closed list; may be left out
    #[arg(long, value_name = "DISPOSITION", value_parser = disposition, conflicts_with = "request")]
    disposition: Option<Disposition>,

    /// The whole request as JSON in a file, or `-` for stdin
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,

    /// Do not ask, although this is a terminal: record it as a program's decision
    #[arg(long)]
    script: bool,

    #[command(flatten)]
    deployment: deployment::DeploymentArgs,
}

fn action(text: &str) -> Result<Action, String> {
    Action::from_text(text).ok_or_else(|| format!("one of {}", Action::TEXTS.join(", ")))
}

fn disposition(text: &str) -> Result<Disposition, String> {
    Disposition::from_text(text).ok_or_else(|| format!("one of {}", Disposition::TEXTS.join(", ")))
}

/// The answer.
#[derive(Serialize)]
struct Decided {
    decision: DecisionView,
    replayed: bool,
    run: RunView,
}

/// Does it.
pub(crate) fn run(args: &Args, cx: &Cx) -> Result<Exit, Failure> {
    let deployment = args.deployment.deployment()?;
    let request = match (&args.request, &args.attention, args.action, args.capability) {
        (None, Some(attention), Some(action), Some(capability)) => {
            from_options(args, attention, action, capability, cx)?
        }
        (Some(path), ..) => match from_file(path)? {
            Ok(request) => request,
            Err(refusal) => {
                // Counted in the journal, without the offending values (RULINGS 16).
                let engine = cx.engine(deployment)?;
                engine.count_malformed();
                close(engine, &cx.out);
                return Err(refusal.into());
            }
        },
        (None, ..) => return Err(RefusalCode::InvalidRequest.into()),
    };
    let via = if person_is_there() && !args.script { confirm(&request, cx)? } else { DecidedVia::Script };
    let author = Cx::author(via)?;
    let engine = cx.engine(deployment)?;
    let decided = decide(&engine, &request, &author, cx);
    close(engine, &cx.out);
    let decided = decided?;
    cx.out.result(&decided, |decided, paint| {
        let mut text = render::decision(&decided.decision, decided.replayed, paint);
        text.push_str(&render::run(&decided.run, paint));
        text
    })?;
    Ok(match decided.decision.refusal {
        Some(code) => Exit::of_refusal(code),
        None => Exit::of_run(&decided.run),
    })
}

fn decide(
    engine: &Engine,
    request: &DecisionRequest,
    author: &protocol::event::Author,
    cx: &Cx,
) -> Result<Decided, Failure> {
    let run = engine.attention_item(&request.attention_id).ok().map(|item| item.run);
    let look = || run.and_then(|run| engine.run(run).ok());
    let answer = progress::during(&cx.out, look, || engine.decide(request, author))?;
    let run = engine.run(answer.decision.run)?;
    Ok(Decided { decision: answer.decision, replayed: answer.replayed, run })
}

fn from_options(
    args: &Args,
    attention: &AttentionId,
    action: Action,
    capability: Sha256Digest,
    cx: &Cx,
) -> Result<DecisionRequest, Failure> {
    let key = match &args.key {
        Some(key) => key.clone(),
        None => {
            let key = fresh_key(action)?;
            // First of all, so that the request can be repeated whatever happens from here on.
            cx.out.say(&format!("key: {key}"));
            key
        }
    };
    let request = DecisionRequest {
        attention_id: attention.clone(),
        capability_digest: capability,
        idempotency_key: key,
        action,
        disposition: args.disposition,
    };
    request.check()?;
    Ok(request)
}

fn from_file(path: &Path) -> Result<Result<DecisionRequest, Refusal>, Failure> {
    // One byte more than is allowed, so that the parser sees what is too long.
    let bytes = read_limited(path, MAX_REQUEST_BYTES as u64 + 1, "reading the request")?;
    Ok(DecisionRequest::from_json(&bytes))
}

/// Asks the person to type the action's name. Only this makes a decision a person's.
fn confirm(request: &DecisionRequest, cx: &Cx) -> Result<DecidedVia, Failure> {
    let paint = cx.out.err;
    let mut question = match cx.view()?.attention_item(&request.attention_id) {
        Ok(item) => render::item(&item, paint),
        // The engine will say what is wrong, or repeat what was decided before.
        Err(_) => format!("item {} is not open any more\n", request.attention_id),
    };
    let action = request.action;
    question.push_str(&format!("\n{}\nType {} to confirm: ", meaning(action), paint.bold(action.as_str())));
    let mut stderr = std::io::stderr().lock();
    stderr
        .write_all(question.as_bytes())
        .and_then(|()| stderr.flush())
        .map_err(|error| Failure::io("asking for confirmation", &error))?;
    drop(stderr);
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|error| Failure::io("reading the answer", &error))?;
    if line.trim() == action.as_str() {
        Ok(DecidedVia::Console)
    } else {
        Err(Failure::new(
            Code::NotConfirmed,
            "not confirmed; nothing was decided",
            format!("Type `{action}` at the question, or give `--script` in a program."),
        ))
    }
}
