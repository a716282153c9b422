//! An engine whose executor does nothing, and runs that wait for a decision.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::service::ports::{
    ActReport, BoundAction, BoundCheck, Executor, ExecutorError, ExecutorFactory, Reading, Verdict,
};
use engine::service::{Engine, EngineOptions, StartRequest};
use journal::vfs::Vfs;
use journal::vfs::fault::{FaultVfs, Operation, When};
use journal::vfs::os::OsVfs;
use protocol::decision::{Action, DecidedVia, DecisionRequest};
use protocol::delivery::ReceiptOutcome;
use protocol::event::Author;

const WORKFLOW: &str = r#"{
  "format": 1,
  "name": "attended",
  "parameters": [{ "name": "patient", "type": "string", "pattern": "[0-9]{1,9}" }],
  "steps": [
    {
      "id": "fill-form",
      "intent": "A person fills the form.",
      "attended": "always",
      "consequential": true,
      "expect": [{ "executor": "nothing", "args": { "patient": "${patient}" } }],
      "effects": [{ "id": "once", "verify": { "executor": "nothing", "args": { "patient": "${patient}" } } }]
    }
  ]
}"#;

/// Reads that hold and acts that are done, at no cost.
struct Nothing;

impl Executor for Nothing {
    fn check(&mut self, _check: &BoundCheck) -> Reading {
        Reading { verdict: Verdict::Holds, seen: Some(b"as declared".to_vec()) }
    }

    fn act(&mut self, _action: &BoundAction) -> ActReport {
        ActReport { outcome: ReceiptOutcome::Acted, seen: None }
    }
}

struct NothingFactory;

impl ExecutorFactory for NothingFactory {
    fn build(&self) -> Result<Box<dyn Executor>, ExecutorError> {
        Ok(Box::new(Nothing))
    }

    fn fingerprint(&self) -> Vec<u8> {
        b"nothing".to_vec()
    }
}

/// An engine with runs to decide on.
pub struct Paused {
    engine: Engine,
    author: Author,
    bundle: std::path::PathBuf,
    syncs: Arc<AtomicU64>,
    started: u64,
    waiting: Vec<DecisionRequest>,
}

impl Paused {
    /// An engine on a new home in `dir`. Counts every sync of its file system.
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        Self::on(dir, Arc::new(OsVfs))
    }

    /// The same on another file system.
    #[must_use]
    pub fn on(dir: &Path, vfs: Arc<dyn Vfs>) -> Self {
        let bundle = dir.join("bundle");
        fs::create_dir_all(&bundle).expect("a folder");
        fs::write(bundle.join("workflow.json"), WORKFLOW).expect("a file");
        let syncs = Arc::new(AtomicU64::new(0));
        let options = EngineOptions {
            vfs: counting(vfs, &syncs),
            ..EngineOptions::new(dir.join("home")).executor("nothing", NothingFactory)
        };
        let engine = Engine::open(options).expect("an engine");
        let author = Engine::author(DecidedVia::Script).expect("an author");
        Self { engine, author, bundle, syncs, started: 0, waiting: Vec::new() }
    }

    /// Starts runs and lets each go on to its pause.
    pub fn prepare(&mut self, runs: usize) {
        for _ in 0..runs {
            self.started += 1;
            let request = StartRequest {
                bundle: self.bundle.clone(),
                parameters: serde_json::json!({ "patient": self.started.to_string() }),
                request_id: None,
                author: self.author.clone(),
            };
            let run = self.engine.start(&request).expect("a start").run;
            self.engine.resume_free(run, &self.author).expect("a pause");
        }
        let items = self.engine.attention().expect("the items");
        self.waiting = items
            .into_iter()
            .map(|item| DecisionRequest {
                idempotency_key: format!("continue-{}", item.id.as_str()).parse().expect("a key"),
                attention_id: item.id,
                capability_digest: item.capability.digest,
                action: Action::Continue,
                disposition: None,
            })
            .collect();
    }

    /// One whole decision: how long it took and how many syncs. Call [`Paused::prepare`] before.
    pub fn decide(&mut self) -> (Duration, u64) {
        let request = self.waiting.pop().expect("a run that waits");
        let before = self.syncs.load(Ordering::SeqCst);
        let start = Instant::now();
        let answer = self.engine.decide(&request, &self.author).expect("a decision");
        let took = start.elapsed();
        assert!(!answer.replayed, "each decision is made once");
        (took, self.syncs.load(Ordering::SeqCst) - before)
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Closes the engine.
    pub fn close(self) {
        self.engine.close().expect("a close");
    }
}

/// `inner`, counting syncs of files and of directories.
fn counting(inner: Arc<dyn Vfs>, syncs: &Arc<AtomicU64>) -> Arc<dyn Vfs> {
    let syncs = Arc::clone(syncs);
    Arc::new(FaultVfs::new(
        inner,
        Arc::new(move |event| {
            if let (When::After, Operation::Sync | Operation::SyncDir) = (event.when, event.operation) {
                syncs.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        }),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_made_with_two_syncs() {
        let dir = tempfile::tempdir().unwrap();
        let mut paused = Paused::new(dir.path());
        paused.prepare(2);
        let (_, first) = paused.decide();
        let (_, second) = paused.decide();
        assert!(first <= 2 && second <= 2, "{first} {second}");
        assert_eq!(paused.waiting(), 0);
        paused.close();
    }
}
