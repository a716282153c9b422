//! Opening for writing: what is there, whether something acknowledged is lost, and what to cut. FORMAT.md,
//! "Recovery". Runs under the commit lock; may be interrupted anywhere and done again.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use protocol::ids::{BootId, Epoch, JournalId, Seq};

use crate::chain::Chain;
use crate::check::{TableCheck, check_closed};
use crate::error::{Damage, Fault, IoFailure, OpenError, ReadError};
use crate::format::BLOCK_BYTES_MAX;
use crate::format::block::{Entry, HEADER_BYTES, Place, Shape};
use crate::format::mark::{Cleanness, Position};
use crate::format::record::encode_into;
use crate::format::segment_header::SegmentHeader;
use crate::lock::{CommitLock, LOCK_FILE, Stored};
use crate::log::{Log, Making, position, write_zeros};
use crate::options::Options;
use crate::own::{self, CutFinding, EpochReason, EpochStarted, TailCut};
use crate::segment::{self, MAKING_SUFFIX, Segment};
use crate::vfs::{self, Mode, Vfs};
use crate::walk::{End, Step, TableState, Walk, look_on};

/// Directory, in the journal's, of copies of what was cut.
pub const ASIDE_DIR: &str = "aside";
const ASIDE_SUFFIX: &str = ".cut";

/// What was cut at opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// As journalled.
    pub what: TailCut,
    /// Name of the copy in [`ASIDE_DIR`].
    pub copy: String,
}

/// What opening found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// Whether the journal was created now.
    pub created: bool,
    /// The epoch that the next block will have.
    pub epoch: Epoch,
    /// Sequence of the next record.
    pub next_seq: Seq,
    /// Why a new epoch began, if one did.
    pub new_epoch: Option<EpochReason>,
    /// What was cut and journalled now; more than one only if an earlier opening was interrupted.
    pub cuts: Vec<Cut>,
}

/// What the mark says to this boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Clean(Position),
    Dirty(Position),
    Nothing(EpochReason),
}

impl Said {
    pub(crate) fn by(stored: &Stored, boot_id: BootId) -> Self {
        match stored {
            Stored::Missing => Self::Nothing(EpochReason::MarkMissing),
            Stored::Unreadable => Self::Nothing(EpochReason::MarkUnreadable),
            Stored::Mark(mark) if mark.boot_id != boot_id => Self::Nothing(EpochReason::OtherBoot),
            Stored::Mark(mark) => match mark.state {
                Cleanness::Clean => Self::Clean(mark.position),
                Cleanness::Dirty => Self::Dirty(mark.position),
            },
        }
    }

    pub(crate) const fn position(&self) -> Option<&Position> {
        match self {
            Self::Clean(position) | Self::Dirty(position) => Some(position),
            Self::Nothing(_) => None,
        }
    }
}

pub(crate) struct Recovered {
    pub log: Log,
    pub report: OpenReport,
}

/// Recovers the journal in `dir`, creating it when absent. The lock is held.
pub(crate) fn recover(
    vfs: &Arc<dyn Vfs>,
    dir: &Path,
    options: &Options,
    lock: &CommitLock,
) -> Result<Recovered, OpenError> {
    let stored = lock.read_mark().map_err(IoFailure::new("reading the synced mark"))?;
    let said = Said::by(&stored, options.boot_id);
    remove_unfinished(vfs.as_ref(), dir)?;
    let names = segment::list(vfs.as_ref(), dir).map_err(IoFailure::new("listing the journal"))?;
    let Some((last, before)) = names.split_last() else {
        if said.position().is_some_and(|position| position.next_seq > Seq(0)) {
            let (file, fault) = (LOCK_FILE.to_owned(), Fault::NoSegments);
            return Err(OpenError::Damaged(Damage {
                file,
                segment: 0,
                offset: 0,
                fault,
                first_lost: Seq(0),
            }));
        }
        let tail = Tail::none(create(vfs.as_ref(), dir, options)?);
        return finish(assemble(vfs, dir, options, Vec::new(), tail), lock);
    };
    let mut closed: Vec<Segment> = Vec::with_capacity(before.len());
    for name in before {
        let segment = open_segment(vfs.as_ref(), dir, name, Mode::Read, closed.last())?;
        closed.push(segment);
    }
    let open = open_segment(vfs.as_ref(), dir, last, Mode::ReadWrite, closed.last())?;
    let tail = Tail::find(vfs.as_ref(), dir, open, &said)?;
    check_closed(&mut closed, &tail.open, options.check_closed_bytes)?;
    finish(assemble(vfs, dir, options, closed, tail), lock)
}

fn remove_unfinished(vfs: &dyn Vfs, dir: &Path) -> Result<(), IoFailure> {
    let names = vfs.list(dir).map_err(IoFailure::new("listing the journal"))?;
    for name in names.iter().filter(|name| segment::is_making(name)) {
        vfs.remove(&dir.join(name)).map_err(IoFailure::new("removing a segment in the making"))?;
    }
    Ok(())
}

/// Opens the segment after `before`, or the first.
pub(crate) fn open_segment(
    vfs: &dyn Vfs,
    dir: &Path,
    name: &str,
    mode: Mode,
    before: Option<&Segment>,
) -> Result<Segment, ReadError> {
    let opened = Segment::open(vfs, dir, name, mode)?;
    let number = before.map_or(0, |before| before.header.segment + 1);
    opened.and_then(|segment| follows(before, &segment).map(|()| segment)).map_err(|fault| {
        let first_lost = segment::parse_name(name).unwrap_or_default();
        ReadError::Damaged(Damage { file: name.to_owned(), segment: number, offset: 0, fault, first_lost })
    })
}

/// What the headers alone say about the order of two segments.
pub(crate) fn follows(before: Option<&Segment>, segment: &Segment) -> Result<(), Fault> {
    let header = &segment.header;
    match before.map(|before| &before.header) {
        None if header.segment != 0 => Err(Fault::SegmentMissing),
        None if header.chain != Chain::root(header.journal_id) || header.first_seq != Seq(0) => {
            Err(Fault::Discontinued)
        }
        None => Ok(()),
        Some(before) if header.journal_id != before.journal_id || header.align != before.align => {
            Err(Fault::ForeignSegment)
        }
        Some(before) if header.segment != before.segment + 1 => Err(Fault::SegmentMissing),
        Some(before) if header.first_seq <= before.first_seq || header.epoch < before.epoch => {
            Err(Fault::Discontinued)
        }
        Some(_) => Ok(()),
    }
}

fn create(vfs: &dyn Vfs, dir: &Path, options: &Options) -> Result<(Segment, u64), OpenError> {
    let journal_id = match options.journal_id {
        Some(journal_id) => journal_id,
        None => random_id().map_err(IoFailure::new("drawing a random id"))?,
    };
    let header = SegmentHeader {
        align: options.align,
        journal_id,
        segment: 0,
        first_seq: Seq(0),
        epoch: Epoch(1),
        chain: Chain::root(journal_id),
        created: (options.now)(),
    };
    let making =
        Making::make(vfs, dir, header, options.align.bytes(), options)?.ok_or(OpenError::DiskFull)?;
    let filled = making.filled;
    Ok((making.publish(vfs, dir)?, filled))
}

fn random_id() -> io::Result<JournalId> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| io::ErrorKind::Other)?;
    Ok(JournalId(bytes))
}

/// The open segment, and where it ends.
struct Tail {
    open: Segment,
    place: Place,
    keys: BTreeSet<Entry>,
    filled: u64,
    closed: bool,
    reason: Option<EpochReason>,
    /// Bytes from `place` that are to be cut.
    cut: Option<(u64, CutFinding)>,
}

impl Tail {
    /// Of a journal that was created just now.
    fn none((open, filled): (Segment, u64)) -> Self {
        let (place, reason) = (open.start(), Some(EpochReason::Created));
        Self { open, place, keys: BTreeSet::new(), filled, closed: false, reason, cut: None }
    }

    fn find(vfs: &dyn Vfs, dir: &Path, open: Segment, said: &Said) -> Result<Self, OpenError> {
        let mut tail = Self::none((open, 0));
        if let Said::Clean(_) = said {
            tail.look(said)?;
            if tail.reason.is_none() {
                return Ok(tail);
            }
        }
        // The cache may show what the disk never took: sync, forget, and only then look.
        let file = tail.open.file.as_ref();
        file.sync_all()
            .and_then(|()| file.drop_cache())
            .and_then(|()| vfs.sync_dir(dir))
            .map_err(IoFailure::new("syncing what is kept"))?;
        tail.look(said)?;
        Ok(tail)
    }

    fn look(&mut self, said: &Said) -> Result<(), OpenError> {
        let failed = || IoFailure::new("reading a segment");
        self.filled = self.open.len()?;
        let mut walk = self.open.walk(self.open.start(), self.filled);
        let mut table = TableCheck::default();
        let end = loop {
            match walk.step().map_err(failed())? {
                Step::Block(block) => {
                    table
                        .note(&block)
                        .map_err(|fault| OpenError::Damaged(self.open.damage(&block.place, fault)))?;
                    if block.header.shape == Shape::Records {
                        self.open.note(&block.place);
                    }
                }
                Step::End(end) => break end,
            }
        };
        let judgement = judge(&self.open, self.filled, &walk, end, said)?.map_err(OpenError::Damaged)?;
        self.place = end_of(&walk);
        self.keys = table.into_keys().into_iter().collect();
        self.closed = walk.table() == TableState::Complete;
        self.cut = match judgement {
            Judgement::Whole => None,
            Judgement::Cut(bytes, finding) => Some((bytes, finding)),
        };
        self.reason = match said {
            Said::Nothing(reason) => Some(*reason),
            Said::Dirty(_) => Some(EpochReason::DirtyMark),
            Said::Clean(mark) if *mark == position(&self.open, &self.place) && !self.closed => None,
            // Somebody wrote on without saying so.
            Said::Clean(mark) if mark.next_seq < self.place.next_seq => Some(EpochReason::DirtyMark),
            Said::Clean(_) => Some(EpochReason::MarkUnreadable),
        };
        Ok(())
    }
}

/// What the end of the last segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// Nothing but zeros after it.
    Whole,
    /// So many bytes that were never acknowledged, or cannot be told from such.
    Cut(u64, CutFinding),
}

/// After the last block of records, or after the key table if it is whole.
pub(crate) fn end_of(walk: &Walk) -> Place {
    match walk.table() {
        TableState::Complete => *walk.place(),
        TableState::None | TableState::Begun => *walk.records_end(),
    }
}

/// The decision table of FORMAT.md, for the last segment, which was walked to `end`. The inner error is damage.
pub(crate) fn judge(
    segment: &Segment,
    filled: u64,
    walk: &Walk,
    end: End,
    said: &Said,
) -> Result<Result<Judgement, Damage>, IoFailure> {
    let place = end_of(walk);
    let fault = match end {
        End::Zeros => Fault::ShortOfMark,
        End::AfterTable => Fault::AfterEnd,
        End::Fault(fault) => fault.into(),
    };
    let damage = Ok(Err(segment.damage(&place, fault)));
    if said.position().is_some_and(|mark| mark.next_seq > place.next_seq) {
        return damage;
    }
    match end {
        End::Zeros if walk.table() != TableState::Begun => return Ok(Ok(Judgement::Whole)),
        End::Fault(fault) if fault.verified() => return Ok(Err(segment.damage(walk.place(), fault))),
        End::Zeros | End::AfterTable | End::Fault(_) => {}
    }
    let tail = look_on(segment.file.as_ref(), filled, segment.header.align, segment.seed(), &place)
        .map_err(IoFailure::new("reading a segment"))?;
    if tail.proof_of_loss {
        return damage;
    }
    let finding = match said {
        Said::Clean(mark) if *mark == position(segment, &place) => CutFinding::Stray,
        Said::Clean(_) | Said::Dirty(_) | Said::Nothing(_) => {
            if tail.resembles && walk.table() == TableState::None {
                CutFinding::Unprovable
            } else {
                CutFinding::Torn
            }
        }
    };
    Ok(Ok(Judgement::Cut(tail.bytes, finding)))
}

fn assemble(vfs: &Arc<dyn Vfs>, dir: &Path, options: &Options, closed: Vec<Segment>, tail: Tail) -> Found {
    let Tail { open, place, keys, filled, closed: table_is_complete, reason, cut } = tail;
    let (vfs, dir, options) = (Arc::clone(vfs), dir.to_owned(), options.clone());
    let log = Log { vfs, dir, options, closed, open, keys, place, epoch: place.epoch, filled };
    Found { log, table_is_complete, reason, cut }
}

struct Found {
    log: Log,
    table_is_complete: bool,
    reason: Option<EpochReason>,
    cut: Option<(u64, CutFinding)>,
}

/// Cuts, ends an interrupted rotation, and journals what was done. Changes nothing if nothing was found.
fn finish(found: Found, lock: &CommitLock) -> Result<Recovered, OpenError> {
    let Found { mut log, table_is_complete, reason, cut } = found;
    let mut report = OpenReport { created: reason == Some(EpochReason::Created), ..OpenReport::default() };
    if reason.is_some() || cut.is_some() {
        lock.trim().map_err(IoFailure::new("writing the synced mark"))?;
        log.write_mark(lock, Cleanness::Dirty)?;
        if let Some((bytes, finding)) = cut {
            cut_tail(&log, bytes, finding)?;
        }
        // Where a cut may lie that no record speaks of yet: a record would stand at the same place.
        let mut ends = vec![(log.open.header.segment, log.place.offset)];
        if let Some(before) = log.closed.last().filter(|_| log.place == log.open.start()) {
            ends.push((before.header.segment, before.len()?));
        }
        if table_is_complete {
            log.finish_rotation(log.open.header.align.bytes())?;
        }
        report.cuts = pending_cuts(log.vfs.as_ref(), &log.dir, &ends)?;
        let has_blocks = !log.closed.is_empty() || log.place != log.open.start();
        if reason.is_some() && has_blocks {
            log.epoch = Epoch(log.epoch.0 + 1);
        }
        journal(&mut log, lock, reason, &report.cuts)?;
    }
    (report.epoch, report.next_seq, report.new_epoch) = (log.epoch, log.place.next_seq, reason);
    Ok(Recovered { log, report })
}

/// Copies the bytes from the end of the log aside, durably, and overwrites them with zeros, durably. Zeros, not
/// a shorter file: the space stays ours on a full disk.
fn cut_tail(log: &Log, bytes: u64, finding: CutFinding) -> Result<(), OpenError> {
    let (vfs, file) = (log.vfs.as_ref(), log.open.file.as_ref());
    let aside = log.dir.join(ASIDE_DIR);
    let start = log.place.offset;
    let copied = || -> io::Result<()> {
        vfs.create_dir_all(&aside)?;
        vfs.sync_dir(&log.dir)?;
        let making = aside.join(format!("copy{MAKING_SUFFIX}"));
        if vfs.exists(&making)? {
            vfs.remove(&making)?;
        }
        let copy = vfs.create_new(&making)?;
        let mut hasher = blake3::Hasher::new();
        let (mut done, mut buf) = (0, vec![0; BLOCK_BYTES_MAX]);
        while done < bytes {
            let part = &mut buf[..(bytes - done).min(BLOCK_BYTES_MAX as u64) as usize];
            vfs::read_exact(file, part, start + done)?;
            vfs::write_all(copy.as_ref(), part, done)?;
            hasher.update(part);
            done += part.len() as u64;
        }
        copy.sync_all()?;
        let what = TailCut { segment: log.open.header.segment, offset: start, bytes, finding };
        vfs.rename(&making, &aside.join(aside_name(&what, &hasher.finalize().to_hex()[..16])))?;
        vfs.sync_dir(&aside)?;
        write_zeros(file, start, start + bytes)?;
        file.sync_all()
    };
    copied().map_err(|error| match error {
        error if vfs::is_full(&error) => OpenError::DiskFull,
        error => OpenError::Io(IoFailure::new("cutting a torn tail")(error)),
    })
}

fn aside_name(what: &TailCut, digest: &str) -> String {
    let finding = match what.finding {
        CutFinding::Torn => "torn",
        CutFinding::Unprovable => "unprovable",
        CutFinding::Stray => "stray",
    };
    format!("{:010}-{:020}-{}-{finding}-{digest}{ASIDE_SUFFIX}", what.segment, what.offset, what.bytes)
}

fn parse_aside_name(name: &str) -> Option<TailCut> {
    let mut parts = name.strip_suffix(ASIDE_SUFFIX)?.split('-');
    let segment = parts.next()?.parse().ok()?;
    let offset = parts.next()?.parse().ok()?;
    let bytes = parts.next()?.parse().ok()?;
    let finding = match parts.next()? {
        "torn" => CutFinding::Torn,
        "unprovable" => CutFinding::Unprovable,
        "stray" => CutFinding::Stray,
        _ => return None,
    };
    Some(TailCut { segment, offset, bytes, finding })
}

/// Cuts at one of `ends` that were made and not journalled, by the names of the copies: an opening that is interrupted
/// after its cut leaves nothing else.
fn pending_cuts(vfs: &dyn Vfs, dir: &Path, ends: &[(u32, u64)]) -> Result<Vec<Cut>, IoFailure> {
    let mut names = match vfs.list(&dir.join(ASIDE_DIR)) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(IoFailure::new("listing what was cut")(error)),
    };
    names.sort_unstable();
    let parsed = names.into_iter().filter_map(|copy| parse_aside_name(&copy).map(|what| Cut { what, copy }));
    Ok(parsed.filter(|cut| ends.contains(&(cut.what.segment, cut.what.offset))).collect())
}

/// Writes what recovery did as one block.
fn journal(
    log: &mut Log,
    lock: &CommitLock,
    reason: Option<EpochReason>,
    cuts: &[Cut],
) -> Result<(), OpenError> {
    let now = (log.options.now)();
    let started =
        reason.map(|reason| own::draft(own::EPOCH_STARTED, now, &EpochStarted { epoch: log.epoch, reason }));
    let cuts = cuts.iter().map(|cut| own::draft(own::TAIL_CUT, now, &cut.what));
    let (mut block, mut count) = (vec![0; HEADER_BYTES], 0);
    for draft in started.into_iter().chain(cuts) {
        // Numbers always have an encoded form of a few bytes.
        let Ok(draft) = draft else { continue };
        encode_into(&mut block, &draft, &[], log.options.producer);
        count += 1;
    }
    let bytes = log.open.header.align.round_up(block.len() as u64);
    if !log.ensure_space(bytes)? {
        return Err(OpenError::DiskFull);
    }
    Ok(log.commit(lock, &mut block, count)?)
}
