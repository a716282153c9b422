//! A host program with its own executor: it pays an invoice after a person has approved it.
//!
//! Run it with `cargo run -p opjournal-engine --example own_executor`. The "application" is a text file; a real host
//! would drive its own. Kill it anywhere and run it again: nothing is paid twice.

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use opjournal_engine::service::ports::{
    ActReport, BoundAction, BoundCheck, Executor, ExecutorError, ExecutorFactory, Reading, Verdict,
};
use opjournal_engine::service::{Engine, EngineOptions, StartRequest};
use protocol::decision::{Action, DecidedVia, DecisionRequest};
use protocol::delivery::ReceiptOutcome;

/// The application: a ledger with one entry a line.
struct Ledger(PathBuf);

impl Executor for Ledger {
    /// Reads, and never changes anything: an entry must be there exactly once.
    fn check(&mut self, check: &BoundCheck) -> Reading {
        let Ok(ledger) = fs::read_to_string(&self.0) else {
            return Reading { verdict: Verdict::Unreadable, seen: None };
        };
        let verdict = match ledger.lines().filter(|line| check.args["entry"] == **line).count() {
            0 => Verdict::Absent,
            1 => Verdict::Holds,
            _ => Verdict::Fails,
        };
        Reading { verdict, seen: Some(ledger.into_bytes()) }
    }

    /// Acts once. Whatever it says, the engine reads the effect before it calls the step verified.
    fn act(&mut self, action: &BoundAction) -> ActReport {
        let line = format!("{}\n", action.args["append"].as_str().unwrap_or_default());
        let written = fs::OpenOptions::new().append(true).open(&self.0).and_then(|mut file| {
            file.write_all(line.as_bytes())?;
            file.sync_all()
        });
        let outcome = if written.is_ok() { ReceiptOutcome::Acted } else { ReceiptOutcome::Unclear };
        ActReport { outcome, seen: None }
    }
}

struct LedgerFactory(PathBuf);

impl ExecutorFactory for LedgerFactory {
    fn build(&self) -> Result<Box<dyn Executor>, ExecutorError> {
        Ok(Box::new(Ledger(self.0.clone())))
    }
    fn fingerprint(&self) -> Vec<u8> {
        self.0.as_os_str().as_encoded_bytes().to_vec()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join("opjournal-example");
    fs::create_dir_all(&folder)?;
    let ledger = folder.join("ledger.txt");
    fs::OpenOptions::new().create(true).append(true).open(&ledger)?;

    // Open a home, with an executor of our own for the kind that the bundle names.
    let options = EngineOptions::new(folder.join("home")).executor("ledger", LedgerFactory(ledger.clone()));
    let engine = Engine::open(options)?;
    let author = Engine::author(DecidedVia::Script)?;

    // The same request id never runs twice, whatever happens to this process.
    let run = engine
        .start(&StartRequest {
            bundle: Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/ledger-bundle"),
            parameters: serde_json::json!({ "invoice": "INV-7" }),
            request_id: Some("pay-INV-7".parse()?),
            author: author.clone(),
        })?
        .run;
    println!("{}", serde_json::to_string(&engine.resume_free(run, &author)?)?);

    // It waits durably for a person, who approves in the application itself…
    for item in engine.attention()?.into_iter().filter(|item| item.run == run) {
        let approval = "approved INV-7\n";
        if !fs::read_to_string(&ledger)?.contains(approval) {
            fs::OpenOptions::new().append(true).open(&ledger)?.write_all(approval.as_bytes())?;
        }
        // …and says so. The engine verifies it, commits it, and goes on with the next step.
        let answer = engine.decide(
            &DecisionRequest {
                attention_id: item.id,
                capability_digest: item.capability.digest,
                idempotency_key: "approve-INV-7-by-anna".parse()?,
                action: Action::Continue,
                disposition: None,
            },
            &author,
        )?;
        println!("{}", serde_json::to_string(&answer.decision)?);
    }

    let outcome = engine.run(run)?;
    println!("{}", serde_json::to_string(&outcome)?);
    println!("{}", fs::read_to_string(&ledger)?);
    engine.close()?;
    Ok(())
}
