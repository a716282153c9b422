//! A host program that embeds the engine and lives long, for tests of several processes on one home. It opens the home
//! of its first argument with the deployment of its second, and then answers requests on stdin, one JSON document a
//! line, one answer a line.
//!
//! | request | answer |
//! |---|---|
//! | `{"start": {"bundle", "parameters", "request_id"}}` | `{"run": ID, "replayed"}`: admitted, nothing done yet |
//! | `{"resume": ID}` | `{"run": {…}}`: as it stands when it stops |
//! | `{"decide": {…}}`, a decision request | `{"decision", "replayed", "run"}` |
//! | `{"items": null}` | `{"items": [...]}` |
//!
//! A failure is `{"error": {"code", "message"}}`. End of input closes the engine.

use std::error::Error;
use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;

use engine::service::executor::http::{HttpConfig, HttpFactory};
use engine::service::{Engine, EngineError, EngineOptions, StartRequest};
use protocol::decision::{DecidedVia, DecisionRequest};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(home), Some(config)) = (arguments.next(), arguments.next()) else {
        return Err("give a home and a configuration".into());
    };
    let mut config: Value = serde_json::from_slice(&std::fs::read(config)?)?;
    let config: HttpConfig = serde_json::from_value(config["http"].take())?;
    let mut options = EngineOptions::new(home).executor("http", HttpFactory::new(config)?);
    // So that a few requests are enough for a snapshot.
    options.snapshot_every = 20;
    let engine = match Engine::open(options) {
        Ok(engine) => engine,
        Err(failed) => return say(&error(&failed)),
    };
    say(&json!({ "ready": true }))?;
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let answer = answer(&engine, &request)?.unwrap_or_else(|failed| error(&failed));
        say(&answer)?;
    }
    Ok(engine.close()?)
}

fn say(answer: &Value) -> Result<(), Box<dyn Error>> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{answer}")?;
    Ok(stdout.flush()?)
}

fn error(failed: &EngineError) -> Value {
    json!({ "error": { "code": failed.code(), "message": failed.to_string() } })
}

/// The outer error is a harness that asks for nonsense.
fn answer(engine: &Engine, request: &Value) -> Result<Result<Value, EngineError>, Box<dyn Error>> {
    let author = Engine::author(DecidedVia::Script)?;
    if let Some(start) = request.get("start") {
        let text = |name: &str| start[name].as_str().ok_or(format!("start needs `{name}`"));
        let started = engine.start(&StartRequest {
            bundle: text("bundle")?.into(),
            parameters: start["parameters"].clone(),
            request_id: Some(text("request_id")?.parse().map_err(|_| "not a request id")?),
            author,
        });
        return Ok(started.map(|started| json!({ "run": started.run, "replayed": started.replayed })));
    }
    if let Some(run) = request.get("resume") {
        let run = serde_json::from_value(run.clone())?;
        return Ok(engine.resume(run, &author).map(|run| json!({ "run": run })));
    }
    if let Some(decide) = request.get("decide") {
        let Ok(decide) = DecisionRequest::from_json(decide.to_string().as_bytes()) else {
            return Err("not a decision request".into());
        };
        return Ok(engine.decide(&decide, &author).and_then(|answer| {
            let run = engine.run(answer.decision.run)?;
            Ok(json!({ "decision": answer.decision, "replayed": answer.replayed, "run": run }))
        }));
    }
    if request.get("items").is_some() {
        return Ok(engine.attention().map(|items| json!({ "items": items })));
    }
    Err("no such request".into())
}
