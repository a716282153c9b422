//! Why an operation failed: what happened, where, what to do next. Fields are data; texts name no path but the
//! journal's own file names.

use std::io;

use protocol::ids::Seq;
use protocol::time::Millis;

use crate::format::block::BlockFault;
use crate::format::segment_header::HeaderFault;

/// An error of the operating system, kept so that many waiters can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} failed: {}", describe(*kind, *errno))]
pub struct IoFailure {
    /// What was tried.
    pub what: &'static str,
    /// As Rust classifies it.
    pub kind: io::ErrorKind,
    /// As the system numbers it.
    pub errno: Option<i32>,
}

fn describe(kind: io::ErrorKind, errno: Option<i32>) -> String {
    errno.map_or_else(|| kind.to_string(), |errno| io::Error::from_raw_os_error(errno).to_string())
}

impl IoFailure {
    pub(crate) fn new(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self { what, kind: error.kind(), errno: error.raw_os_error() }
    }
}

/// What is wrong at a place of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// In a segment header.
    #[error("{0}")]
    Header(#[from] HeaderFault),
    /// In a block or table block.
    #[error("{0}")]
    Block(#[from] BlockFault),
    /// The header is of another journal than that of the first segment.
    #[error("the segment is of another journal")]
    ForeignSegment,
    /// The file's name is not that of its header.
    #[error("the file's name and its header name different sequences")]
    NameMismatch,
    /// A segment before this one is not there.
    #[error("the segment before this one is missing")]
    SegmentMissing,
    /// The header does not hold the chain value, sequence or epoch that the segment before ends with.
    #[error("the segment does not continue the one before")]
    Discontinued,
    /// A segment that is not the last has no key table, or ends before it.
    #[error("the segment ends without its key table although a later one follows")]
    Unclosed,
    /// Bytes follow the key table, although a later segment follows.
    #[error("bytes follow the end of a closed segment")]
    AfterEnd,
    /// Bytes other than zero follow the last block, and everything that was synced is before them.
    #[error("bytes other than zero follow the last block")]
    Stray,
    /// The journal ends before the place that the synced mark says was synced.
    #[error("the journal ends before what the synced mark says was synced")]
    ShortOfMark,
    /// The journal that the synced mark speaks of is not there.
    #[error("there is no segment although the synced mark says that records were synced")]
    NoSegments,
}

/// A place of the journal and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file} is damaged at byte {offset}: {fault}")]
pub struct Damage {
    /// Name of the file in the journal's directory.
    pub file: String,
    /// Segment number; for a segment whose header cannot be read, the number it should have.
    pub segment: u32,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// What is wrong there.
    pub fault: Fault,
    /// The first record that was acknowledged, as far as can be told, and cannot be read.
    pub first_lost: Seq,
}

impl Damage {
    /// Whether the bytes are whole but of a format that this code does not know.
    #[must_use]
    pub const fn is_newer_format(&self) -> bool {
        matches!(
            self.fault,
            Fault::Header(HeaderFault::Unsupported { .. })
                | Fault::Block(
                    BlockFault::Unsupported
                        | BlockFault::Record(crate::format::record::RecordFault::Unsupported)
                )
        )
    }
}

/// A record that this code does not understand and may not skip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "record {seq} is of kind {kind} version {version}, which this version does not know; use a newer opjournal"
)]
pub struct UnknownRecord {
    /// Its position.
    pub seq: Seq,
    /// Its kind.
    pub kind: u16,
    /// Its version.
    pub version: u8,
}

/// Why records could not be read. Nothing on disk was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The directory holds no journal.
    #[error("there is no journal here")]
    NoJournal,
    /// The position is not (or not yet, or no longer) in the journal.
    #[error("record {seq} is not in the journal, which ends before {next_seq}")]
    NotFound {
        /// The position asked for.
        seq: Seq,
        /// The position after the last record.
        next_seq: Seq,
    },
    /// Bytes are not what was written. Other records may be readable.
    #[error("{0}. Run `opjournal verify` to see what is lost")]
    Damaged(Damage),
    /// The system failed to read.
    #[error("{0}")]
    Io(#[from] IoFailure),
}

impl From<Damage> for ReadError {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage)
    }
}

/// Why a journal did not open for writing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Another process has held the commit lock all the time. Nothing was changed; try again.
    #[error("another process has held the journal for {} ms; try again", waited.0)]
    Busy {
        /// How long was waited.
        waited: Millis,
    },
    /// Records that were acknowledged cannot be read. Nothing was changed; reading the rest still works.
    #[error(
        "{0}; records from {lost} were acknowledged. \
         Run `opjournal verify` to see what is lost, then `opjournal repair`, which keeps a copy",
        lost = .0.first_lost
    )]
    Damaged(Damage),
    /// Another machine could write without our lock or lose what it says it synced. Nothing was changed.
    #[error(
        "the journal is on a network file system ({name}), which is not safe for writing; move it to a local disk"
    )]
    NetworkFileSystem {
        /// What kind.
        name: &'static str,
    },
    /// The disk is full. Make room and open again; what is there is kept.
    #[error("the disk is full; make room and open the journal again")]
    DiskFull,
    /// A record that the caller's machine does not understand.
    #[error("{0}")]
    UnknownRecord(#[from] UnknownRecord),
    /// The caller's state is ahead of the journal: it was made from another or a newer one.
    #[error("the state to start from is at {from}, but the journal ends before {next_seq}")]
    Ahead {
        /// Where the caller wanted to start.
        from: Seq,
        /// The position after the last record.
        next_seq: Seq,
    },
    /// The system failed.
    #[error("{0}")]
    Io(#[from] IoFailure),
}

impl From<ReadError> for OpenError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Damaged(damage) => Self::Damaged(damage),
            ReadError::Io(failure) => Self::Io(failure),
            ReadError::NotFound { seq, next_seq } => Self::Ahead { from: seq, next_seq },
            ReadError::NoJournal => Self::Io(IoFailure {
                what: "reading the journal",
                kind: io::ErrorKind::NotFound,
                errno: None,
            }),
        }
    }
}

/// Why a command has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// This or an earlier write or sync failed. What this command wrote may or may not be there; nothing is accepted
    /// until the journal is opened again, which finds out.
    #[error("the journal stopped: {0}. Open it again to go on; the last request may or may not be recorded")]
    Poisoned(IoFailure),
    /// Another process has held the commit lock all the time. Nothing was written; try again.
    #[error("another process has held the journal for {} ms; nothing was written, try again", waited.0)]
    Busy {
        /// How long was waited.
        waited: Millis,
    },
    /// The journal was closed. Nothing was written.
    #[error("the journal is closed")]
    Closed,
    /// The machine panicked. What this command wrote may or may not be there; nothing is accepted until the journal is
    /// opened again, which finds out.
    #[error(
        "the journal stopped after an internal error. Open it again to go on; the last request may or may not be recorded"
    )]
    Panicked,
    /// The disk is full. Nothing was written; the journal goes on in the space it has.
    #[error("the disk is full; nothing was written. Make room and try again")]
    DiskFull,
    /// One command's records do not fit a block, or one record is beyond its limit. Nothing was written.
    #[error("{bytes} bytes are more than the {max} that fit; nothing was written")]
    TooLarge {
        /// How many bytes were asked for.
        bytes: usize,
        /// How many fit.
        max: usize,
    },
    /// A record has more look-up keys than it may. Nothing was written.
    #[error("{keys} look-up keys are more than the {max} that a record may have; nothing was written")]
    TooManyKeys {
        /// How many were given.
        keys: usize,
        /// How many may be.
        max: usize,
    },
    /// A record's kind is one of the journal's own. Nothing was written.
    #[error("kind {kind} is one of the journal's own; nothing was written")]
    KindReserved {
        /// The kind.
        kind: u16,
    },
    /// Records that another process acknowledged cannot be read. Nothing more is accepted.
    #[error("{0}. Run `opjournal verify` to see what is lost")]
    Damaged(Damage),
    /// Another process wrote a record that this one does not understand. Nothing more is accepted.
    #[error("{0}")]
    UnknownRecord(#[from] UnknownRecord),
}

impl AppendError {
    /// Whether the journal accepts nothing more after this.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        match self {
            Self::Poisoned(_) | Self::Closed | Self::Panicked | Self::Damaged(_) | Self::UnknownRecord(_) => {
                true
            }
            Self::Busy { .. }
            | Self::DiskFull
            | Self::TooLarge { .. }
            | Self::TooManyKeys { .. }
            | Self::KindReserved { .. } => false,
        }
    }
}

impl From<OpenError> for AppendError {
    /// What a failed recovery inside a commit means to those who wait for it.
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Busy { waited } => Self::Busy { waited },
            OpenError::Damaged(damage) => Self::Damaged(damage),
            OpenError::DiskFull => Self::DiskFull,
            OpenError::UnknownRecord(unknown) => Self::UnknownRecord(unknown),
            OpenError::Io(failure) => Self::Poisoned(failure),
            OpenError::NetworkFileSystem { .. } | OpenError::Ahead { .. } => Self::Closed,
        }
    }
}

impl From<ReadError> for AppendError {
    fn from(error: ReadError) -> Self {
        OpenError::from(error).into()
    }
}
