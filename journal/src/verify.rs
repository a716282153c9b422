//! The verdict on a journal, for anybody who can read the folder. Takes no lock and changes nothing.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use protocol::ids::{BootId, Epoch, JournalId, Seq};

use crate::chain::Chain;
use crate::check::{TableCheck, in_parallel, walk_closed};
use crate::error::{Damage, Fault, IoFailure, ReadError};
use crate::format::block::Place;
use crate::lock::{LOCK_FILE, Stored, peek_mark};
use crate::log::{continues, position};
use crate::own::CutFinding;
use crate::recovery::{Judgement, Said, end_of, follows, judge};
use crate::segment::{self, Segment};
use crate::vfs::{Mode, Vfs};
use crate::walk::Step;

/// How often a journal that is written to meanwhile is looked at again.
const LOOKS_MAX: usize = 8;

/// What was found, in one word. The first that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integrity {
    /// Something that was acknowledged, or may have been, is not as it was written, or not there.
    Damaged,
    /// The last block is not whole, and nothing says whether it was ever acknowledged.
    CannotTell,
    /// A write that did not end, or stray bytes, after everything that was acknowledged as far as can be told.
    TornTail,
    /// Everything is as it was written.
    Intact,
}

/// Whether records are missing at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// No witness outside the journal was asked.
    Unknown,
}

/// What kind of thing a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// Damage.
    Damage(Fault),
    /// The tail after the last block.
    Tail(CutFinding),
    /// The synced mark's bytes are not a mark. Nothing of the records is lost by that.
    MarkUnreadable,
    /// The synced mark speaks of another place than the end of the journal.
    MarkElsewhere,
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Name of the file in the journal's directory.
    pub file: String,
    /// Segment number, if it is a segment.
    pub segment: Option<u32>,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// What it is.
    pub kind: FindingKind,
    /// The first record that is lost by it, as far as can be told.
    pub first_lost: Option<Seq>,
    /// The same for a person.
    pub message: String,
}

impl From<Damage> for Finding {
    fn from(damage: Damage) -> Self {
        Self {
            message: damage.to_string(),
            file: damage.file,
            segment: Some(damage.segment),
            offset: damage.offset,
            kind: FindingKind::Damage(damage.fault),
            first_lost: Some(damage.first_lost),
        }
    }
}

/// The verdict.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Names the journal; `None` if no segment header is whole.
    pub journal_id: Option<JournalId>,
    /// Segments that were found.
    pub segments: usize,
    /// Records that can be read.
    pub records: u64,
    /// Sequence after the last record that can be read.
    pub next_seq: Seq,
    /// Chain value after it.
    pub head: Chain,
    /// Writer epoch there.
    pub epoch: Epoch,
    /// All that is not as it should be; at most one per segment, the first.
    pub findings: Vec<Finding>,
    /// In one word.
    pub integrity: Integrity,
    /// Whether records are missing at the end.
    pub complete: Completeness,
}

/// Verifies every byte of every segment, and the synced mark. `progress` is told bytes done and bytes in all.
///
/// # Errors
/// [`ReadError::NoJournal`] or a failure of the system; damage is in the verdict.
pub fn verify(
    vfs: &dyn Vfs,
    dir: &Path,
    boot_id: BootId,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<Verdict, ReadError> {
    let mut looks = 0;
    loop {
        let before = peek_mark(vfs, dir).map_err(IoFailure::new("reading the synced mark"))?;
        let verdict = look(vfs, dir, &before, boot_id, progress)?;
        let after = peek_mark(vfs, dir).map_err(IoFailure::new("reading the synced mark"))?;
        looks += 1;
        // A finding may be a writer at work if the mark has moved.
        if verdict.findings.is_empty() || before == after || looks == LOOKS_MAX {
            return Ok(verdict);
        }
    }
}

/// What the walk of one segment gave.
struct Walked {
    end: Result<Place, Damage>,
    /// Bytes after the end, in the last segment.
    tail: Option<(u64, CutFinding)>,
}

fn look(
    vfs: &dyn Vfs,
    dir: &Path,
    mark: &Stored,
    boot_id: BootId,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<Verdict, ReadError> {
    let said = Said::by(mark, boot_id);
    let names = segment::list(vfs, dir).map_err(IoFailure::new("listing the journal"))?;
    if names.is_empty() && said.position().is_none_or(|position| position.next_seq == Seq(0)) {
        return Err(ReadError::NoJournal);
    }
    let mut findings = Vec::new();
    let mut segments: Vec<Option<Segment>> = Vec::with_capacity(names.len());
    for (n, name) in names.iter().enumerate() {
        let before = segments.last().and_then(Option::as_ref);
        let opened = Segment::open(vfs, dir, name, Mode::Read)?;
        let checked = opened.and_then(|segment| in_place(n, before, &segment).map(|()| segment));
        segments.push(checked.map_err(|fault| findings.push(unreadable(name, n, fault))).ok());
    }
    if names.is_empty() {
        findings.push(unreadable(&segment::file_name(Seq(0)), 0, Fault::NoSegments));
    }
    let walked = walk_all(&mut segments, &said, progress)?;
    let mut verdict = Verdict {
        journal_id: None,
        segments: names.len(),
        records: 0,
        next_seq: Seq(0),
        head: Chain([0; 32]),
        epoch: Epoch(0),
        findings,
        integrity: Integrity::Intact,
        complete: Completeness::Unknown,
    };
    for (n, (segment, walked)) in segments.iter().zip(walked).enumerate() {
        let (Some(segment), Some(walked)) = (segment, walked) else { continue };
        let next = segments.get(n + 1).and_then(Option::as_ref);
        verdict.journal_id.get_or_insert(segment.header.journal_id);
        let until = walked.end.as_ref().map_or_else(|damage| damage.first_lost, |end| end.next_seq);
        verdict.records += until.0.saturating_sub(segment.header.first_seq.0);
        verdict.next_seq = until;
        match walked.end {
            Err(damage) => verdict.findings.push(damage.into()),
            Ok(end) => {
                (verdict.head, verdict.epoch) = (end.chain, end.epoch);
                if let Some(next) = next {
                    let link = continues(segment, &end, next);
                    verdict.findings.extend(link.err().map(|fault| next.damage_at_start(fault).into()));
                }
                if n + 1 == segments.len() {
                    verdict.findings.extend(walked.tail.map(|tail| tail_finding(segment, &end, tail)));
                    verdict.findings.extend(mark_elsewhere(&said, segment, &end));
                }
            }
        }
    }
    if *mark == Stored::Unreadable {
        let message = "the synced mark is not readable; the next opening for writing begins a new epoch";
        verdict.findings.push(about_mark(FindingKind::MarkUnreadable, message));
    }
    verdict.integrity = integrity(&verdict.findings);
    Ok(verdict)
}

/// Whether the `n`th segment, in the order of names, may be the one that it says it is.
fn in_place(n: usize, before: Option<&Segment>, segment: &Segment) -> Result<(), Fault> {
    match before {
        // After a segment whose header cannot be read only the number is known.
        None if n > 0 && segment.header.segment as usize == n => Ok(()),
        None if n > 0 => Err(Fault::SegmentMissing),
        before => follows(before, segment),
    }
}

fn unreadable(name: &str, n: usize, fault: Fault) -> Finding {
    let first_lost = segment::parse_name(name).unwrap_or_default();
    Damage { file: name.to_owned(), segment: n as u32, offset: 0, fault, first_lost }.into()
}

/// Walks all segments, several at once.
fn walk_all(
    segments: &mut [Option<Segment>],
    said: &Said,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<Vec<Option<Walked>>, ReadError> {
    let mut total = 0;
    for segment in segments.iter().flatten() {
        total += segment.len()?;
    }
    let (done, progress) = (AtomicU64::new(0), Mutex::new(progress));
    let went = |bytes| {
        let done = done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // Told once in a mebibyte, and by one thread at a time; another that has news goes on.
        if done >> 20 != (done - bytes) >> 20
            && let Ok(mut progress) = progress.try_lock()
        {
            progress(done, total);
        }
    };
    let last = segments.len().saturating_sub(1);
    let found = Mutex::new(Vec::with_capacity(segments.len()));
    in_parallel(segments.iter_mut().enumerate(), |(n, segment)| {
        let walked = segment.as_mut().map(|segment| {
            if n == last {
                walk_last(segment, said, &went)
            } else {
                Ok(walk_closed(segment, &went).map(|end| Walked { end, tail: None })?)
            }
        });
        if let Ok(mut found) = found.lock() {
            found.push((n, walked));
        }
    });
    let mut found = found.into_inner().unwrap_or_default();
    found.sort_unstable_by_key(|(n, _)| *n);
    if let Ok(mut progress) = progress.lock() {
        progress(total, total);
    }
    found.into_iter().map(|(_, walked)| walked.transpose()).collect()
}

fn walk_last(segment: &Segment, said: &Said, went: &(dyn Fn(u64) + Sync)) -> Result<Walked, ReadError> {
    let len = segment.len()?;
    let (mut walk, mut table) = (segment.walk(segment.start(), len), TableCheck::default());
    let end = loop {
        match walk.step().map_err(IoFailure::new("reading a segment"))? {
            Step::Block(block) => {
                if let Err(fault) = table.note(&block) {
                    return Ok(Walked { end: Err(segment.damage(&block.place, fault)), tail: None });
                }
                went(block.header.len as u64);
            }
            Step::End(end) => break end,
        }
    };
    Ok(match judge(segment, len, &walk, end, said)? {
        Err(damage) => Walked { end: Err(damage), tail: None },
        Ok(Judgement::Whole) => Walked { end: Ok(end_of(&walk)), tail: None },
        Ok(Judgement::Cut(bytes, finding)) => Walked { end: Ok(end_of(&walk)), tail: Some((bytes, finding)) },
    })
}

fn tail_finding(segment: &Segment, end: &Place, (bytes, finding): (u64, CutFinding)) -> Finding {
    let what = match finding {
        CutFinding::Torn => "a write that did not end",
        CutFinding::Unprovable => "a block that is not whole; nothing says whether it was ever acknowledged",
        CutFinding::Stray => "stray bytes after everything that was acknowledged",
    };
    Finding {
        file: segment.name.clone(),
        segment: Some(segment.header.segment),
        offset: end.offset,
        kind: FindingKind::Tail(finding),
        first_lost: match finding {
            CutFinding::Unprovable => Some(end.next_seq),
            CutFinding::Torn | CutFinding::Stray => None,
        },
        message: format!("{} has {bytes} bytes from byte {} on: {what}", segment.name, end.offset),
    }
}

fn mark_elsewhere(said: &Said, segment: &Segment, end: &Place) -> Option<Finding> {
    match said {
        Said::Clean(mark) if *mark != position(segment, end) => {
            let message = "the synced mark speaks of another place than the end of the journal";
            Some(about_mark(FindingKind::MarkElsewhere, message))
        }
        Said::Clean(_) | Said::Dirty(_) | Said::Nothing(_) => None,
    }
}

fn about_mark(kind: FindingKind, message: &str) -> Finding {
    let (file, message) = (LOCK_FILE.to_owned(), message.to_owned());
    Finding { file, segment: None, offset: 0, kind, first_lost: None, message }
}

fn integrity(findings: &[Finding]) -> Integrity {
    let any = |test: fn(FindingKind) -> bool| findings.iter().any(|finding| test(finding.kind));
    if any(|kind| matches!(kind, FindingKind::Damage(_))) {
        Integrity::Damaged
    } else if any(|kind| kind == FindingKind::Tail(CutFinding::Unprovable)) {
        Integrity::CannotTell
    } else if any(|kind| matches!(kind, FindingKind::Tail(_))) {
        Integrity::TornTail
    } else {
        Integrity::Intact
    }
}
