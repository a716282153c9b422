//! A home as it stands, for those who only look: no lock is taken and nothing is written, so it works on a read-only
//! folder and beside any number of writers.

use std::path::Path;
use std::sync::Arc;

use journal::Reader;
use journal::vfs::Vfs;
use protocol::ids::{AttentionId, RunId};
use protocol::projection::{AttentionItem, RunView};
use protocol::refusal::Refusal;

use crate::machine::{self, State};

use super::codec;
use super::error::EngineError;
use super::home::Home;
use super::platform::SystemClock;
use super::{history, project, snapshot};

/// The state of a home up to the journal's synced position.
pub struct View {
    reader: Reader,
    state: State,
}

impl View {
    /// Folds the journal from the newest snapshot.
    ///
    /// # Errors
    /// [`EngineError::Read`] when there is no journal or it cannot be read.
    pub fn open(home: &Path, vfs: Arc<dyn Vfs>) -> Result<Self, EngineError> {
        let home = Home::new(home, vfs);
        let reader = Reader::open(Arc::clone(home.vfs()), &home.journal(), SystemClock::new().boot_id())?;
        let (mut state, from) = snapshot::newest(&home, &reader);
        for record in reader.from(from)? {
            if let Some(entry) = codec::entry(&record?)? {
                machine::apply(&mut state, &entry);
            }
        }
        Ok(Self { reader, state })
    }

    /// The records behind it.
    #[must_use]
    pub const fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The folded state.
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Open items, oldest first.
    #[must_use]
    pub fn attention(&self) -> Vec<AttentionItem> {
        let mut items: Vec<_> = self
            .state
            .runs
            .values()
            .filter_map(|run| run.pause.as_ref().and_then(|pause| project::attention_item(run, pause)))
            .collect();
        items.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        items
    }

    /// One open item.
    ///
    /// # Errors
    /// `unknown_attention`.
    pub fn attention_item(&self, id: &AttentionId) -> Result<AttentionItem, EngineError> {
        self.state
            .pause(id)
            .and_then(|(run, pause)| project::attention_item(run, pause))
            .ok_or_else(|| Refusal::UnknownAttention.into())
    }

    /// Open runs, oldest first.
    #[must_use]
    pub fn open_runs(&self) -> Vec<RunView> {
        let mut runs: Vec<_> = self.state.runs.values().map(project::open_run).collect();
        runs.sort_by_key(|run| (run.started_at, run.run_id));
        runs
    }

    /// Runs that have ended, in the order of their ends. Reads the whole journal.
    ///
    /// # Errors
    /// [`EngineError::Read`].
    pub fn finished_runs(&self) -> Result<Vec<RunView>, EngineError> {
        history::all_finished(&self.reader)
    }

    /// One run, open or ended.
    ///
    /// # Errors
    /// `unknown_run`.
    pub fn run(&self, run: RunId) -> Result<RunView, EngineError> {
        if let Some(open) = self.state.runs.get(&run) {
            return Ok(project::open_run(open));
        }
        history::finished(&self.reader, run)?.ok_or_else(|| Refusal::UnknownRun.into())
    }
}
