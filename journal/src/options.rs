//! What a caller chooses when it opens a journal.

use std::sync::Arc;

use protocol::ids::{BootId, InstanceId, JournalId};
use protocol::time::{Millis, UnixMillis};

use crate::format::Alignment;

/// Reads the wall clock.
pub type WallClock = Arc<dyn Fn() -> UnixMillis + Send + Sync>;

/// What a caller chooses when it opens a journal.
#[derive(Clone)]
pub struct Options {
    /// Where blocks may start, for a journal that is created; an existing one keeps its own.
    pub align: Alignment,
    /// Bytes at which a segment is closed. RULINGS 40.
    pub segment_bytes_max: u64,
    /// How long to wait for another process's commit before answering that the journal is busy.
    pub lock_wait: Millis,
    /// At opening, closed segments are verified in full, newest first, up to this many bytes.
    pub check_closed_bytes: u64,
    /// Instance id of this process.
    pub producer: InstanceId,
    /// This boot of the machine.
    pub boot_id: BootId,
    /// Wall clock, for the journal's own records.
    pub now: WallClock,
    /// Id of a journal that is created; `None` for a random one. For tests and golden files.
    pub journal_id: Option<JournalId>,
}

impl Options {
    /// The defaults for this process, boot and clock.
    #[must_use]
    pub fn new(producer: InstanceId, boot_id: BootId, now: WallClock) -> Self {
        Self {
            align: Alignment::B8,
            segment_bytes_max: 64 << 20,
            lock_wait: Millis::from_secs(10),
            check_closed_bytes: 128 << 20,
            producer,
            boot_id,
            now,
            journal_id: None,
        }
    }
}
