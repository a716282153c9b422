//! The journal: an append-only, hash-chained log in segment files. It knows records, not what they say.
//!
//! The promise: [`Journal::submit`] returns only when everything its command pushed was written and `fdatasync` has
//! succeeded, in this one total order, whatever other processes write to the same journal; what was acknowledged is
//! there after every crash, or its damage is reported with file and offset and nothing is written on top of it.
//! FORMAT.md is the normative description of the bytes and of recovery.
//!
//! ```no_run
//! use std::sync::Arc;
//! use opjournal_journal::{Commit, Draft, Machine, Options, Record, UnknownRecord, vfs::os::{self, OsVfs}};
//! use protocol::{ids::{InstanceId, Seq}, time::UnixMillis};
//!
//! /// Counts what was said.
//! struct Count(u64);
//!
//! impl Machine for Count {
//!     type Command = Vec<u8>;
//!     type Answer = Option<Seq>;
//!     fn apply(&mut self, record: &Record) -> Result<(), UnknownRecord> {
//!         self.0 += u64::from(record.kind == 100);
//!         Ok(())
//!     }
//!     fn decide(&mut self, said: Vec<u8>, commit: &mut Commit<'_>) -> Option<Seq> {
//!         let draft =
//!             Draft { kind: 100, version: 1, optional: false, time: UnixMillis(0), keys: vec![], payload: said };
//!         let seq = commit.push(draft).ok()?;
//!         self.0 += 1;
//!         Some(seq)
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = Options::new(InstanceId([1; 16]), os::boot_id()?, Arc::new(|| UnixMillis(0)));
//! let journal = opjournal_journal::open(Arc::new(OsVfs), "home/journal".as_ref(), options)?.start(Seq(0), Count(0))?;
//! let seq = journal.submit(b"hello".to_vec())?;
//! assert!(seq.is_some());
//! journal.close()?;
//! # Ok(())
//! # }
//! ```

mod chain;
mod check;
mod error;
pub mod evidence;
pub mod format;
mod journal;
pub mod lock;
mod log;
mod options;
pub mod own;
pub mod payload;
mod reader;
mod recovery;
mod segment;
pub mod verify;
pub mod vfs;
mod walk;
mod writer;

pub use chain::Chain;
pub use error::{AppendError, Damage, Fault, IoFailure, OpenError, ReadError, UnknownRecord};
pub use format::Alignment;
pub use format::block::BlockFault;
pub use format::mark::{Cleanness, Mark, Position};
pub use format::record::{Draft, FIRST_ENGINE_KIND, LookupKey, Record};
pub use format::segment_header::HeaderFault;
pub use journal::{Journal, Opened, open};
pub use options::{Options, WallClock};
pub use reader::{Info, Reader, Records, SegmentInfo};
pub use recovery::{ASIDE_DIR, Cut, OpenReport};
pub use segment::SUFFIX as SEGMENT_SUFFIX;
pub use writer::{Commit, Machine};
