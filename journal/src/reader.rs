//! Reading without writing: no lock, no effect on writers, fit for a folder that cannot be written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::ids::{BootId, Epoch, JournalId, Seq};

use crate::chain::Chain;
use crate::error::{Damage, Fault, IoFailure, ReadError};
use crate::format::Alignment;
use crate::format::block::Shape;
use crate::format::record::{LookupKey, Record};
use crate::lock::{Stored, peek_mark};
use crate::log::{continues, position};
use crate::recovery::{Judgement, Said, end_of, judge, open_segment};
use crate::segment::{self, Segment};
use crate::vfs::{Mode, Vfs};
use crate::walk::{End, Step, TableState, Walk};

/// Looks at a journal anew with every call.
pub struct Reader {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    boot_id: BootId,
}

/// What a journal looks like from outside.
#[derive(Clone, Debug)]
pub struct Info {
    /// Names the journal for ever.
    pub journal_id: JournalId,
    /// Where blocks may start.
    pub align: Alignment,
    /// Segments, ascending.
    pub segments: Vec<SegmentInfo>,
    /// Sequence of the next record.
    pub next_seq: Seq,
    /// Writer epoch at the end.
    pub epoch: Epoch,
    /// Chain value at the end.
    pub chain: Chain,
    /// Whether a mark of this boot says that everything before `next_seq` was synced. If not, the last block may
    /// still be lost.
    pub confirmed: bool,
    /// The synced mark.
    pub mark: Stored,
}

/// One segment, from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Segment number.
    pub number: u32,
    /// Name of the file.
    pub file: String,
    /// Sequence of its first record.
    pub first_seq: Seq,
    /// Bytes of the file.
    pub bytes: u64,
}

/// One look at the journal: segments whose headers are whole, and how far to read.
struct View {
    segments: Vec<Segment>,
    /// The first segment that cannot be entered. What stands before it can be read all the same.
    broken: Option<Damage>,
    mark: Stored,
    said: Said,
}

impl Reader {
    /// Looks for a journal in `dir`.
    ///
    /// # Errors
    /// [`ReadError::NoJournal`] if there is none; damage of the first segment's header.
    pub fn open(vfs: Arc<dyn Vfs>, dir: &Path, boot_id: BootId) -> Result<Self, ReadError> {
        let reader = Self::new(vfs, dir, boot_id);
        reader.view()?;
        Ok(reader)
    }

    pub(crate) fn new(vfs: Arc<dyn Vfs>, dir: &Path, boot_id: BootId) -> Self {
        Self { vfs, dir: dir.to_owned(), boot_id }
    }

    /// The mark first: what it speaks of is there when the segments are listed.
    fn view(&self) -> Result<View, ReadError> {
        let mark =
            peek_mark(self.vfs.as_ref(), &self.dir).map_err(IoFailure::new("reading the synced mark"))?;
        let said = Said::by(&mark, self.boot_id);
        let names =
            segment::list(self.vfs.as_ref(), &self.dir).map_err(IoFailure::new("listing the journal"))?;
        let mut segments: Vec<Segment> = Vec::with_capacity(names.len());
        let mut broken = None;
        for name in &names {
            match open_segment(self.vfs.as_ref(), &self.dir, name, Mode::Read, segments.last()) {
                Ok(segment) => segments.push(segment),
                Err(ReadError::Damaged(damage)) => {
                    broken = Some(damage);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(position) = said.position() {
            if position.segment as usize >= segments.len() {
                broken = broken.or_else(|| {
                    Some(Damage {
                        file: segment::file_name(position.next_seq),
                        segment: position.segment,
                        offset: 0,
                        fault: Fault::NoSegments,
                        first_lost: segments.last().map_or(Seq(0), |last| last.header.first_seq),
                    })
                });
            } else {
                // A segment that appeared after the mark was read holds nothing that the mark speaks of.
                segments.truncate(position.segment as usize + 1);
                broken = None;
            }
        }
        match (segments.is_empty(), broken) {
            (true, Some(damage)) => Err(damage.into()),
            (true, None) => Err(ReadError::NoJournal),
            (false, broken) => Ok(View { segments, broken, mark, said }),
        }
    }

    /// Records from `from` on, in order, up to what the mark says was synced; without a mark of this boot, up to
    /// the last block that continues the journal. Every block is checked. Ends after the first error.
    ///
    /// # Errors
    /// [`ReadError`] if the journal cannot be looked at.
    pub fn from(&self, from: Seq) -> Result<Records, ReadError> {
        let View { segments, broken, said, .. } = self.view()?;
        let n = segments.partition_point(|segment| segment.header.first_seq <= from).saturating_sub(1);
        Ok(Records {
            segments,
            broken,
            n,
            walk: None,
            said,
            from,
            block: Vec::new().into_iter(),
            done: false,
        })
    }

    /// The record at `seq`.
    ///
    /// # Errors
    /// [`ReadError::NotFound`] beyond the end; damage or a failure on the way.
    pub fn read(&self, seq: Seq) -> Result<Record, ReadError> {
        match self.from(seq)?.next() {
            Some(record) => record,
            None => Err(ReadError::NotFound { seq, next_seq: self.info()?.next_seq }),
        }
    }

    /// Sequences of the records with `key`, ascending.
    ///
    /// # Errors
    /// [`ReadError`]; a miss is a proof of absence up to the end, an error is not.
    pub fn lookup(&self, key: &LookupKey) -> Result<Vec<Seq>, ReadError> {
        let View { mut segments, broken, .. } = self.view()?;
        if let Some(damage) = broken {
            return Err(damage.into());
        }
        let mut found = Vec::new();
        let exits: Vec<Chain> = segments.iter().skip(1).map(|segment| segment.header.chain).collect();
        for (segment, exit) in segments.iter_mut().zip(exits) {
            found.extend(segment.lookup(*key, exit)?);
        }
        let first = segments.last().map_or(Seq(0), |last| last.header.first_seq);
        for record in self.from(first)? {
            let record = record?;
            if record.keys.contains(key) && !found.contains(&record.seq) {
                found.push(record.seq);
            }
        }
        Ok(found)
    }

    /// What the journal looks like. Reads segment headers and the mark only, if the mark is of this boot.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn info(&self) -> Result<Info, ReadError> {
        let View { segments, broken, mark, said } = self.view()?;
        if let Some(damage) = broken {
            return Err(damage.into());
        }
        let Some(last) = segments.last() else { return Err(ReadError::NoJournal) };
        let (next_seq, epoch, chain) = match said.position() {
            Some(position) => (position.next_seq, position.epoch, position.chain),
            None => {
                let len = last.len()?;
                let mut walk = last.walk(last.start(), len);
                while let Step::Block(_) = walk.step().map_err(IoFailure::new("reading a segment"))? {}
                let place = end_of(&walk);
                (place.next_seq, place.epoch, place.chain)
            }
        };
        let (journal_id, align) = (last.header.journal_id, last.header.align);
        let mut infos = Vec::with_capacity(segments.len());
        for segment in &segments {
            let (number, file) = (segment.header.segment, segment.name.clone());
            infos.push(SegmentInfo {
                number,
                file,
                first_seq: segment.header.first_seq,
                bytes: segment.len()?,
            });
        }
        let confirmed = said.position().is_some();
        Ok(Info { journal_id, align, segments: infos, next_seq, epoch, chain, confirmed, mark })
    }
}

/// Records in order. Holds one block's records in memory.
pub struct Records {
    segments: Vec<Segment>,
    broken: Option<Damage>,
    n: usize,
    walk: Option<Walk>,
    said: Said,
    from: Seq,
    block: std::vec::IntoIter<Record>,
    done: bool,
}

impl Iterator for Records {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.block.next() {
                return Some(Ok(record));
            }
            if self.done {
                return None;
            }
            if let Err(error) = self.advance() {
                self.done = true;
                return Some(Err(error));
            }
        }
    }
}

impl Records {
    /// Goes over one block, or from one segment to the next, or finds the end.
    fn advance(&mut self) -> Result<(), ReadError> {
        let segment = &self.segments[self.n];
        let marked = self.said.position().filter(|mark| mark.segment == segment.header.segment);
        let end = match marked {
            Some(mark) => mark.offset,
            None => segment.len()?,
        };
        let walk = self.walk.get_or_insert_with(|| segment.walk(segment.place_before(self.from), end));
        match walk.step().map_err(IoFailure::new("reading a segment"))? {
            Step::Block(block) => {
                if block.header.shape == Shape::Records {
                    let from = self.from;
                    let records: Vec<_> = block.records().filter(|record| record.seq >= from).collect();
                    self.block = records.into_iter();
                }
            }
            Step::End(end) => {
                let next = self.segments.get(self.n + 1);
                if let (None, Some(damage)) = (next, self.broken.take()) {
                    return Err(damage.into());
                }
                self.done = is_the_end(segment, walk, end, next, &self.said)?;
                self.n += 1;
                self.walk = None;
            }
        }
        Ok(())
    }
}

/// Whether the journal ends where the walk of a segment does; `false` if it goes on in the next segment.
fn is_the_end(
    segment: &Segment,
    walk: &Walk,
    end: End,
    next: Option<&Segment>,
    said: &Said,
) -> Result<bool, ReadError> {
    let damage = |fault: Fault| Err(ReadError::Damaged(segment.damage(walk.place(), fault)));
    let marked = said.position().filter(|mark| mark.segment == segment.header.segment);
    match (end, marked, next) {
        (End::Zeros, Some(mark), _) if position(segment, walk.place()) == *mark => Ok(true),
        (End::Fault(fault), Some(_), _) | (End::Fault(fault), None, Some(_)) => damage(fault.into()),
        (End::Zeros | End::AfterTable, Some(_), _) => damage(Fault::ShortOfMark),
        (End::AfterTable, None, Some(_)) => damage(Fault::AfterEnd),
        (End::Zeros, None, Some(next)) => match walk.table() {
            TableState::Complete => {
                continues(segment, walk.place(), next).map_err(|fault| next.damage_at_start(fault))?;
                Ok(false)
            }
            TableState::None | TableState::Begun => damage(Fault::Unclosed),
        },
        (end, None, None) => match judge(segment, segment.len()?, walk, end, said)?? {
            Judgement::Whole | Judgement::Cut(..) => Ok(true),
        },
    }
}
