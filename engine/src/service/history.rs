//! Runs that have ended, found in the journal.

use std::collections::BTreeMap;

use journal::Reader;
use protocol::event::{Event, RunAdmitted};
use protocol::ids::{RunId, Seq};
use protocol::projection::RunView;
use protocol::time::UnixMillis;

use super::codec;
use super::error::EngineError;
use super::project;

/// A run that has ended, as an agent sees it; `None` when no such run has ended.
///
/// # Errors
/// [`EngineError::Read`].
pub fn finished(reader: &Reader, run: RunId) -> Result<Option<RunView>, EngineError> {
    let mut admitted: Option<(Seq, UnixMillis, RunAdmitted)> = None;
    for seq in reader.lookup(&codec::run_lookup(run))? {
        let Some(entry) = codec::entry(&reader.read(seq)?)? else { continue };
        if let Event::RunFinished(finished) = &entry.event
            && finished.run == run
        {
            let Some((from, at, admitted)) = &admitted else { continue };
            let checkpoints = checkpoints(reader, run, *from, seq)?;
            return Ok(Some(project::finished_run(admitted, *at, checkpoints, finished)));
        }
        if let Event::RunAdmitted(found) = entry.event
            && found.run == run
        {
            admitted = Some((seq, entry.time, found));
        }
    }
    Ok(None)
}

fn checkpoints(reader: &Reader, run: RunId, from: Seq, to: Seq) -> Result<u32, EngineError> {
    let mut count = 0_u32;
    for record in reader.from(from)? {
        let record = record?;
        if record.seq >= to {
            break;
        }
        if let Some(entry) = codec::entry(&record)?
            && let Event::Checkpoint(checkpoint) = &entry.event
            && checkpoint.run == run
        {
            count = count.saturating_add(1);
        }
    }
    Ok(count)
}

/// Every run that has ended, in the order of their ends.
///
/// # Errors
/// [`EngineError::Read`].
pub fn all_finished(reader: &Reader) -> Result<Vec<RunView>, EngineError> {
    struct Open {
        at: UnixMillis,
        admitted: RunAdmitted,
        checkpoints: u32,
    }
    let mut open: BTreeMap<RunId, Open> = BTreeMap::new();
    let mut ended = Vec::new();
    for record in reader.from(Seq(0))? {
        let Some(entry) = codec::entry(&record?)? else { continue };
        if let Event::RunAdmitted(admitted) = entry.event {
            open.insert(admitted.run, Open { at: entry.time, admitted, checkpoints: 0 });
        } else if let Event::Checkpoint(checkpoint) = &entry.event
            && let Some(run) = open.get_mut(&checkpoint.run)
        {
            run.checkpoints = run.checkpoints.saturating_add(1);
        } else if let Event::RunFinished(finished) = &entry.event
            && let Some(run) = open.remove(&finished.run)
        {
            ended.push(project::finished_run(&run.admitted, run.at, run.checkpoints, finished));
        }
    }
    Ok(ended)
}
