//! What was written: one file of JSON lines that is the store and its own access log.
//!
//! A record cannot be stored without its line in the log, because the line is the record. Every line ends with a
//! line feed and is synced before anybody is told about it; a last line without one was never acknowledged.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::MockMedError;
use super::faults::FaultKind;

/// Name of the file in the data directory.
pub(crate) const FILE: &str = "writes.jsonl";

/// One stored record, and one line of the access log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Write {
    /// Number of this record: 1 is the first, gapless.
    pub(super) record: u64,
    /// Number of the request that stored it, counted over the requests that stored something: 1 is the first.
    /// Two records of one number are a duplicate that the clinic made by itself.
    pub(super) actuation: u64,
    /// When, in milliseconds of Unix time.
    pub(super) time_ms: u64,
    /// Method of the request.
    pub(super) method: String,
    /// Path of the request.
    pub(super) path: String,
    /// Id of the patient.
    pub(super) patient: String,
    /// The user who was signed in.
    pub(super) author: String,
    /// The caller's own name for the delivery, if it gave one. The clinic does not look at it.
    pub(super) client_ref: Option<String>,
    /// The fault in force, if any.
    pub(super) fault: Option<FaultKind>,
    /// What was written.
    #[serde(flatten)]
    pub(super) content: Content,
}

/// The two kinds of record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Content {
    /// A triage assessment.
    Triage {
        /// 1 is immediate, 5 is not urgent.
        category: u8,
        /// 0 is none, 10 is the worst.
        pain: u8,
        /// The assessment in words; may be empty.
        text: String,
    },
    /// A note.
    Note {
        /// Its words.
        text: String,
    },
}

impl Content {
    /// `triage` or `note`: the value of `kind`, and the one that the confirmation names.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Triage { .. } => "triage",
            Self::Note { .. } => "note",
        }
    }
}

/// A [`Write`] before it has its numbers; the fields mean the same.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) time_ms: u64,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) patient: String,
    pub(super) author: String,
    pub(super) client_ref: Option<String>,
    pub(super) fault: Option<FaultKind>,
    pub(super) content: Content,
}

/// Why a record was not stored.
#[derive(Debug, thiserror::Error)]
pub(super) enum AppendError {
    /// Writing or syncing failed now.
    #[error("the record could not be stored: {0}")]
    Failed(io::Error),
    /// It failed before, and what the disk holds is no longer certain.
    #[error("an earlier write failed; restart MockMed")]
    Poisoned,
}

/// The store. Holds a lock on its file for as long as it lives.
#[derive(Debug)]
pub(super) struct Store(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    file: File,
    len_bytes: u64,
    writes: Vec<Write>,
    poisoned: bool,
}

impl Store {
    /// Opens the store in `data`, making it if there is none. Cuts a torn last line off.
    pub(super) fn open(data: &Path) -> Result<Self, MockMedError> {
        let path = data.join(FILE);
        let failed = |source| MockMedError::Store { path: path.clone(), source };
        std::fs::create_dir_all(data).map_err(failed)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(MockMedError::InUse { path }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // The lock comes before the first look, so that nobody else's half-written line is taken for a torn one.
        let bytes = read_all(&mut file).map_err(failed)?;
        let whole_len = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let writes = parse(&bytes[..whole_len]).map_err(|(line, why)| MockMedError::Damaged {
            path: path.clone(),
            line,
            why,
        })?;
        if whole_len < bytes.len() {
            file.set_len(whole_len as u64).map_err(failed)?;
        }
        file.sync_all().map_err(failed)?;
        // The name of a new file is durable only with its directory.
        File::open(data).and_then(|directory| directory.sync_all()).map_err(failed)?;
        Ok(Self(Mutex::new(Inner { file, len_bytes: whole_len as u64, writes, poisoned: false })))
    }

    /// Stores `copies` records of `entry`, all of one actuation. Durable on return.
    ///
    /// # Errors
    /// Nothing may have been stored, and nothing will be until the store is opened again.
    pub(super) fn append(&self, entry: &Entry, copies: u64) -> Result<(), AppendError> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.poisoned {
            return Err(AppendError::Poisoned);
        }
        let last = inner.writes.last();
        let (last_record, last_actuation) = last.map_or((0, 0), |write| (write.record, write.actuation));
        let Entry { time_ms, method, path, patient, author, client_ref, fault, content } = entry.clone();
        let first = Write {
            record: last_record + 1,
            actuation: last_actuation + 1,
            time_ms,
            method,
            path,
            patient,
            author,
            client_ref,
            fault,
            content,
        };
        let writes: Vec<Write> =
            (0..copies).map(|more| Write { record: first.record + more, ..first.clone() }).collect();
        let mut lines = Vec::new();
        for write in &writes {
            serde_json::to_writer(&mut lines, write).map_err(|why| AppendError::Failed(why.into()))?;
            lines.push(b'\n');
        }
        match inner.write_durably(&lines) {
            Ok(()) => {
                inner.writes.extend(writes);
                Ok(())
            }
            Err(why) => {
                inner.poisoned = true;
                Err(AppendError::Failed(why))
            }
        }
    }

    /// The stored records that `wanted` picks, oldest first.
    pub(super) fn select(&self, wanted: impl Fn(&Write) -> bool) -> Vec<Write> {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.writes.iter().filter(|write| wanted(write)).cloned().collect()
    }
}

impl Inner {
    fn write_durably(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.len_bytes))?;
        let written = self.file.write_all(lines).and_then(|()| self.file.sync_data());
        if written.is_err() {
            // Best effort: take back what nobody was told about. The error that counts is the one above.
            self.file.set_len(self.len_bytes).and_then(|()| self.file.sync_data()).ok();
        }
        written?;
        self.len_bytes += lines.len() as u64;
        Ok(())
    }
}

fn read_all(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(file, &mut bytes)?;
    Ok(bytes)
}

/// Parses whole lines; on failure says which line, from 1, and why.
fn parse(bytes: &[u8]) -> Result<Vec<Write>, (usize, String)> {
    let mut writes: Vec<Write> = Vec::new();
    for (at, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let write: Write = serde_json::from_slice(line).map_err(|why| (at + 1, why.to_string()))?;
        if write.record != at as u64 + 1 {
            return Err((at + 1, format!("its number is {}", write.record)));
        }
        writes.push(write);
    }
    Ok(writes)
}
