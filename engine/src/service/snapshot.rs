//! Snapshots: the state in a file, so that opening does not fold from the beginning. Derived data: an old one, a corrupt
//! one or none gives the same state, only later. A file counts only if a journalled record names its digest.

use std::io;

use journal::{ReadError, Reader};
use protocol::digest::Sha256Digest;
use protocol::event::{Event, StateRecorded};
use protocol::ids::Seq;

use crate::machine::State;

use super::codec;
use super::home::Home;

/// Largest snapshot that is read, in bytes.
const MAX_SNAPSHOT_BYTES: usize = 256 * 1024 * 1024;
/// Snapshots kept beside the newest.
const KEPT: usize = 2;

const SUFFIX: &str = ".json";

fn name(through: Seq) -> String {
    format!("{:020}{SUFFIX}", through.0)
}

/// Writes the state as it is after `through`, synced, and returns the file's digest for the record that names it.
///
/// # Errors
/// As the system gives them. The journal is not affected.
pub(super) fn write(home: &Home, through: Seq, state: &State) -> io::Result<Sha256Digest> {
    let bytes = protocol::canonical_json::bytes_of(state);
    home.write_durably(&home.snapshots(), &name(through), &bytes)?;
    Ok(Sha256Digest::of(&bytes))
}

/// Removes all but the newest few. Best effort: a leftover costs space only.
pub(super) fn prune(home: &Home) {
    let Ok(mut found) = positions(home) else { return };
    let keep = found.len().min(KEPT + 1);
    found.truncate(found.len() - keep);
    for through in found {
        // A file that cannot be removed is only a leftover.
        let _ = home.vfs().remove(&home.snapshots().join(name(through)));
    }
}

/// Positions of the snapshot files that are there, oldest first.
fn positions(home: &Home) -> io::Result<Vec<Seq>> {
    let mut found: Vec<Seq> = home
        .vfs()
        .list(&home.snapshots())?
        .iter()
        .filter_map(|name| name.strip_suffix(SUFFIX)?.parse().ok().map(Seq))
        .collect();
    found.sort_unstable();
    Ok(found)
}

/// The newest snapshot that the journal vouches for, and the position to fold from; else the empty state and 0.
pub(super) fn newest(home: &Home, reader: &Reader) -> (State, Seq) {
    for through in positions(home).unwrap_or_default().into_iter().rev() {
        if let Some(state) = vouched(home, reader, through) {
            return (state, through.next());
        }
    }
    (State::default(), Seq(0))
}

fn vouched(home: &Home, reader: &Reader, through: Seq) -> Option<State> {
    let bytes = home.read(&home.snapshots(), &name(through), MAX_SNAPSHOT_BYTES).ok()?;
    let digest = Sha256Digest::of(&bytes);
    let record = recorded(reader, through).ok()??;
    if record.snapshot != Some(digest) {
        return None;
    }
    let state: State = serde_json::from_slice(&bytes).ok()?;
    (state.digest() == record.digest).then_some(state)
}

/// How many records after a snapshot its naming record is looked for. It is the next one, unless other processes
/// wrote in between.
const SEARCHED: usize = 4096;

fn recorded(reader: &Reader, through: Seq) -> Result<Option<StateRecorded>, ReadError> {
    for record in reader.from(through.next())?.take(SEARCHED) {
        if let Ok(Some(entry)) = codec::entry(&record?)
            && let Event::StateRecorded(recorded) = entry.event
            && recorded.through == through
            && recorded.snapshot.is_some()
        {
            return Ok(Some(recorded));
        }
    }
    Ok(None)
}
