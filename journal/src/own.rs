//! Records of the journal itself. FORMAT.md, "Kinds of the journal itself".

use protocol::ids::Epoch;
use protocol::time::UnixMillis;
use serde::{Deserialize, Serialize};

use crate::format::record::Draft;
use crate::payload::{self, PayloadError};

/// Kind of [`EpochStarted`].
pub const EPOCH_STARTED: u16 = 1;
/// Kind of [`TailCut`].
pub const TAIL_CUT: u16 = 2;
/// Version of both.
pub const VERSION: u8 = 1;

/// Why a writer epoch began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EpochReason {
    /// The journal was created.
    Created,
    /// A write had begun, and nobody said that it was synced.
    DirtyMark,
    /// There was no synced mark.
    MarkMissing,
    /// The synced mark's bytes were none, or spoke of another place.
    MarkUnreadable,
    /// The synced mark was of another boot of the machine.
    OtherBoot,
}

/// A writer epoch began: a process found that it could not tell what the last writer had synced, synced what it
/// kept, and went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochStarted {
    /// The epoch.
    pub epoch: Epoch,
    /// Why.
    pub reason: EpochReason,
}

/// What recovery took cut bytes for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CutFinding {
    /// A write that did not end.
    Torn,
    /// Perhaps an acknowledged block that was damaged, perhaps one that was never whole: nothing can tell.
    Unprovable,
    /// Bytes after everything that was written.
    Stray,
}

/// Recovery cut bytes after the last block that continues the journal. A copy is kept aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TailCut {
    /// Segment number.
    pub segment: u32,
    /// Where the cut bytes began.
    pub offset: u64,
    /// How many there were, up to the last that was not zero.
    pub bytes: u64,
    /// What they were taken for.
    pub finding: CutFinding,
}

pub(crate) fn draft<T: Serialize>(kind: u16, time: UnixMillis, value: &T) -> Result<Draft, PayloadError> {
    let payload = payload::encode(value)?;
    Ok(Draft { kind, version: VERSION, optional: false, time, keys: Vec::new(), payload })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_records_have_the_bytes_of_format_md() {
        let started = EpochStarted { epoch: Epoch(3), reason: EpochReason::OtherBoot };
        assert_eq!(payload::encode(&started), Ok(vec![3, 4]));
        let cut = TailCut { segment: 1, offset: 128, bytes: 9, finding: CutFinding::Stray };
        assert_eq!(payload::encode(&cut), Ok(vec![1, 128, 9, 2]));
    }
}
