//! The journal as its writer sees it: closed segments, the open one, and where it ends. Everything here that writes
//! is called under the commit lock only.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::ids::{Epoch, Seq};

use crate::error::{Damage, Fault, IoFailure, OpenError, ReadError, UnknownRecord};
use crate::format::block::{Entry, Finish, Place, Shape, finish};
use crate::format::mark::{Cleanness, Mark, Position};
use crate::format::record::{LookupKey, Record};
use crate::format::segment_header::SegmentHeader;
use crate::lock::CommitLock;
use crate::options::Options;
use crate::segment::{self, MAKING_SUFFIX, Segment};
use crate::vfs::{self, Mode, Vfs, VfsFile};
use crate::walk::{End, Step, TableState};

/// Zero space of a new segment, and the least by which one grows.
const FILL_BYTES_MIN: u64 = 256 << 10;
/// The most by which a segment grows at once.
const FILL_BYTES_MAX: u64 = 8 << 20;
static ZEROS: [u8; 256 << 10] = [0; 256 << 10];

/// Called with each record in order.
pub(crate) type Apply<'a> = &'a mut dyn FnMut(Record) -> Result<(), UnknownRecord>;

pub(crate) struct Log {
    pub vfs: Arc<dyn Vfs>,
    pub dir: PathBuf,
    pub options: Options,
    pub closed: Vec<Segment>,
    pub open: Segment,
    /// Look-up keys of the open segment, those of pushed drafts included.
    pub keys: BTreeSet<Entry>,
    /// Where the next block goes.
    pub place: Place,
    /// Epoch of the next block.
    pub epoch: Epoch,
    /// Bytes of the open segment's file; those after `place` are zero and allocated.
    pub filled: u64,
}

impl Log {
    pub(crate) const fn position(&self) -> Position {
        position(&self.open, &self.place)
    }

    pub(crate) const fn space_left(&self) -> u64 {
        self.filled.saturating_sub(self.place.offset)
    }

    /// Makes zero space for `bytes` more, if the disk allows; says whether there is.
    ///
    /// # Errors
    /// A failure other than a full disk: what is on the disk is unknown then.
    pub(crate) fn ensure_space(&mut self, bytes: u64) -> Result<bool, IoFailure> {
        let need = self.place.offset.saturating_add(bytes);
        if need <= self.filled {
            return Ok(true);
        }
        // Another process may have made space and then written nothing.
        self.filled = self.open.file.len().map_err(IoFailure::new("reading a segment's length"))?;
        if need <= self.filled {
            return Ok(true);
        }
        let generous = self.filled + self.filled.clamp(FILL_BYTES_MIN, FILL_BYTES_MAX);
        let bounded = generous.min(self.options.segment_bytes_max);
        // Generously first, and if that is too much, just what is needed.
        for target in [bounded.max(need), need] {
            if fill(self.open.file.as_ref(), self.filled, target)? {
                self.filled = target;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes and syncs one block, whose records stand in `block` after room for the header. There is space for it.
    ///
    /// # Errors
    /// What is on the disk is unknown then, and the mark stays dirty.
    pub(crate) fn commit(
        &mut self,
        lock: &CommitLock,
        block: &mut Vec<u8>,
        count: u32,
    ) -> Result<(), IoFailure> {
        let how = Finish {
            shape: Shape::Records,
            count,
            last: false,
            epoch: self.epoch,
            place: &self.place,
            align: self.open.header.align,
            seed: self.open.seed(),
        };
        let after = finish(block, &how);
        self.write_mark(lock, Cleanness::Dirty)?;
        vfs::write_all(self.open.file.as_ref(), block, self.place.offset)
            .map_err(IoFailure::new("writing a block"))?;
        self.open.file.sync_data().map_err(IoFailure::new("syncing a block"))?;
        let before = std::mem::replace(&mut self.place, after);
        self.open.note(&before);
        self.write_mark(lock, Cleanness::Clean)
    }

    pub(crate) fn write_mark(&self, lock: &CommitLock, state: Cleanness) -> Result<(), IoFailure> {
        let mark = Mark { state, position: self.position(), boot_id: self.options.boot_id };
        lock.write_mark(&mark).map_err(IoFailure::new("writing the synced mark"))
    }

    /// Closes the open segment and starts the next, if it holds records and has no room for `room` more bytes of
    /// blocks within the limit. The new one has at least `reserved` bytes of zero space. A full disk leaves all
    /// as it is.
    ///
    /// # Errors
    /// What is on the disk is unknown then, and the mark stays dirty.
    pub(crate) fn rotate_if_full(
        &mut self,
        lock: &CommitLock,
        room: u64,
        reserved: u64,
    ) -> Result<(), IoFailure> {
        let align = self.open.header.align;
        let table = segment::table_len(self.keys.len(), align);
        let has_records = self.place.next_seq > self.open.header.first_seq;
        if !has_records || self.place.offset + table + room <= self.options.segment_bytes_max {
            return Ok(());
        }
        let (bytes, end) = segment::table_bytes(self.keys.iter(), self.place, align, self.open.seed());
        // Space for both is had before anything is closed.
        let Some(next) = self.make_next(&end, reserved)? else { return Ok(()) };
        if !self.ensure_space(table)? {
            return next.discard(self);
        }
        self.write_mark(lock, Cleanness::Dirty)?;
        let file = self.open.file.as_ref();
        vfs::write_all(file, &bytes, self.place.offset).map_err(IoFailure::new("writing a key table"))?;
        file.sync_data().map_err(IoFailure::new("syncing a key table"))?;
        self.place = end;
        self.go_to_next(next)?;
        self.write_mark(lock, Cleanness::Clean)
    }

    /// After the key table of the open segment: cuts the file there, and goes on in a new segment.
    pub(crate) fn finish_rotation(&mut self, reserved: u64) -> Result<(), OpenError> {
        let end = self.place;
        let next = self.make_next(&end, reserved)?.ok_or(OpenError::DiskFull)?;
        Ok(self.go_to_next(next)?)
    }

    fn make_next(&self, end: &Place, reserved: u64) -> Result<Option<Making>, IoFailure> {
        let header = SegmentHeader {
            align: self.open.header.align,
            journal_id: self.open.header.journal_id,
            segment: self.open.header.segment + 1,
            first_seq: end.next_seq,
            epoch: self.epoch,
            chain: end.chain,
            created: (self.options.now)(),
        };
        Making::make(self.vfs.as_ref(), &self.dir, header, reserved, &self.options)
    }

    fn go_to_next(&mut self, next: Making) -> Result<(), IoFailure> {
        let file = self.open.file.as_ref();
        file.set_len(self.place.offset).map_err(IoFailure::new("cutting a closed segment"))?;
        file.sync_all().map_err(IoFailure::new("syncing a closed segment"))?;
        let filled = next.filled;
        let next = next.publish(self.vfs.as_ref(), &self.dir)?;
        self.enter(next, filled);
        Ok(())
    }

    /// Makes `next` the open segment.
    fn enter(&mut self, next: Segment, filled: u64) {
        self.place = next.start();
        self.filled = filled;
        self.keys.clear();
        self.closed.push(std::mem::replace(&mut self.open, next));
    }

    /// Reads on to `target`, which was synced, and applies every record on the way.
    ///
    /// # Errors
    /// The log is then between two blocks, and has applied what is before.
    pub(crate) fn catch_up(&mut self, target: &Position, apply: Apply<'_>) -> Result<(), OpenError> {
        loop {
            let here = target.segment == self.open.header.segment;
            let end = if here { target.offset } else { self.open.len()? };
            let mut walk = self.open.walk(self.place, end);
            loop {
                let step = walk.step().map_err(IoFailure::new("reading a segment"))?;
                match step {
                    Step::Block(block) if block.header.shape == Shape::Records => {
                        self.open.note(&block.place);
                        self.keys.extend(block.keys());
                        for record in block.records() {
                            apply(record)?;
                        }
                        self.place = *walk.place();
                    }
                    Step::Block(_) | Step::End(End::Zeros | End::AfterTable) if !here => match walk.table() {
                        TableState::Complete => break,
                        TableState::Begun => {}
                        TableState::None => {
                            return Err(OpenError::Damaged(self.open.damage(walk.place(), Fault::Unclosed)));
                        }
                    },
                    Step::Block(_) | Step::End(End::Zeros | End::AfterTable) => break,
                    Step::End(End::Fault(fault)) => {
                        return Err(OpenError::Damaged(self.open.damage(walk.place(), fault)));
                    }
                }
            }
            let end = *walk.place();
            if here {
                if position(&self.open, &end) != *target {
                    return Err(OpenError::Damaged(self.open.damage(&end, Fault::ShortOfMark)));
                }
                self.epoch = target.epoch;
                self.filled = self.open.len()?;
                return Ok(());
            }
            let name = segment::file_name(end.next_seq);
            let next = Segment::open(self.vfs.as_ref(), &self.dir, &name, Mode::ReadWrite)?;
            let next =
                next.and_then(|next| continues(&self.open, &end, &next).map(|()| next)).map_err(|fault| {
                    let segment = self.open.header.segment + 1;
                    OpenError::Damaged(Damage {
                        file: name,
                        segment,
                        offset: 0,
                        fault,
                        first_lost: end.next_seq,
                    })
                })?;
            self.enter(next, 0);
        }
    }

    /// Applies the records from `from` to the end again. `through` is a position that the way must lead through.
    pub(crate) fn replay(
        &mut self,
        from: Seq,
        through: Option<&Position>,
        apply: Apply<'_>,
    ) -> Result<(), OpenError> {
        if from > self.place.next_seq {
            return Err(OpenError::Ahead { from, next_seq: self.place.next_seq });
        }
        let mut missing = through;
        let first = self.closed.partition_point(|closed| closed.header.first_seq <= from);
        let first =
            if self.open.header.first_seq <= from { self.closed.len() } else { first.saturating_sub(1) };
        // Segment numbers count from 0, so they are positions in the list.
        let first = through.map_or(first, |position| first.min(position.segment as usize));
        for n in first..=self.closed.len() {
            let is_open = n == self.closed.len();
            let segment = if is_open { &mut self.open } else { &mut self.closed[n] };
            let end = if is_open { self.place.offset } else { segment.len()? };
            // From the start where a position must be met, since its block may be before the record's.
            let start = if missing.is_some() { segment.start() } else { segment.place_before(from) };
            let mut walk = segment.walk(start, end);
            loop {
                if missing.is_some_and(|wanted| position(segment, walk.place()) == *wanted) {
                    missing = None;
                }
                let step = walk.step().map_err(IoFailure::new("reading a segment"))?;
                match step {
                    Step::Block(block) => {
                        let epoch = block.header.epoch;
                        let records = match block.header.shape {
                            Shape::Records => block.header.count,
                            Shape::Table => continue,
                        };
                        segment.note(&block.place);
                        if block.header.first_seq.0 + u64::from(records) <= from.0 {
                            continue;
                        }
                        for (seq, view) in block.views().filter(|(seq, _)| *seq >= from) {
                            apply(view.to_record(seq, epoch))?;
                        }
                    }
                    Step::End(End::Zeros) => break,
                    Step::End(End::AfterTable) => {
                        return Err(OpenError::Damaged(segment.damage(walk.place(), Fault::AfterEnd)));
                    }
                    Step::End(End::Fault(fault)) => {
                        return Err(OpenError::Damaged(segment.damage(walk.place(), fault)));
                    }
                }
            }
        }
        match missing {
            None => Ok(()),
            Some(_) => Err(OpenError::Damaged(self.open.damage(&self.place, Fault::Discontinued))),
        }
    }

    /// Sequences of the records with `key`, ascending; those of pushed drafts included.
    pub(crate) fn lookup(&mut self, key: LookupKey) -> Result<Vec<Seq>, ReadError> {
        let mut found = Vec::new();
        for n in 0..self.closed.len() {
            let next = self.closed.get(n + 1).unwrap_or(&self.open);
            let exit = next.header.chain;
            found.extend(self.closed[n].lookup(key, exit)?);
        }
        found.extend(self.keys.range((key, Seq(0))..=(key, Seq(u64::MAX))).map(|(_, seq)| *seq));
        Ok(found)
    }

    /// The durable record at `seq`.
    pub(crate) fn read(&mut self, seq: Seq) -> Result<Record, ReadError> {
        let next_seq = self.place.next_seq;
        if seq >= next_seq {
            return Err(ReadError::NotFound { seq, next_seq });
        }
        if seq >= self.open.header.first_seq {
            return self.open.read(seq, self.place.offset);
        }
        let n = self.closed.partition_point(|closed| closed.header.first_seq <= seq);
        match n.checked_sub(1) {
            Some(n) => {
                let end = self.closed[n].len()?;
                self.closed[n].read(seq, end)
            }
            None => Err(ReadError::NotFound { seq, next_seq }),
        }
    }
}

pub(crate) const fn position(segment: &Segment, place: &Place) -> Position {
    Position {
        segment: segment.header.segment,
        offset: place.offset,
        next_seq: place.next_seq,
        chain: place.chain,
        epoch: place.epoch,
    }
}

/// Whether `next` is the segment after `segment`, which ends at `end`.
pub(crate) fn continues(segment: &Segment, end: &Place, next: &Segment) -> Result<(), Fault> {
    let (before, after) = (&segment.header, &next.header);
    if after.journal_id != before.journal_id || after.align != before.align {
        return Err(Fault::ForeignSegment);
    }
    if after.segment != before.segment + 1 {
        return Err(Fault::SegmentMissing);
    }
    let fits = after.first_seq == end.next_seq && after.chain == end.chain && after.epoch >= end.epoch;
    if fits { Ok(()) } else { Err(Fault::Discontinued) }
}

/// Writes zeros from `from` to `to` and syncs; `false`, and the file as it was, if the disk is full.
fn fill(file: &dyn VfsFile, from: u64, to: u64) -> Result<bool, IoFailure> {
    match write_zeros(file, from, to).and_then(|()| file.sync_all()) {
        Ok(()) => Ok(true),
        Err(error) if vfs::is_full(&error) => {
            file.set_len(from).map_err(IoFailure::new("trimming a segment"))?;
            Ok(false)
        }
        Err(error) => Err(IoFailure::new("extending a segment")(error)),
    }
}

pub(crate) fn write_zeros(file: &dyn VfsFile, from: u64, to: u64) -> io::Result<()> {
    let mut at = from;
    while at < to {
        let bytes = (to - at).min(ZEROS.len() as u64);
        vfs::write_all(file, &ZEROS[..bytes as usize], at)?;
        at += bytes;
    }
    Ok(())
}

/// A segment that has its content but not yet its name.
pub(crate) struct Making {
    header: SegmentHeader,
    file: Arc<dyn VfsFile>,
    pub filled: u64,
}

impl Making {
    /// Makes a segment with `reserved` bytes of zero space at least; `None` if the disk is full.
    pub(crate) fn make(
        vfs: &dyn Vfs,
        dir: &Path,
        header: SegmentHeader,
        reserved: u64,
        options: &Options,
    ) -> Result<Option<Self>, IoFailure> {
        let least = header.first_block() + reserved;
        let generous = FILL_BYTES_MIN.min(options.segment_bytes_max).max(least);
        for filled in [generous, least] {
            let path = dir.join(making_name(&header));
            match vfs.remove(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(IoFailure::new("removing a segment in the making")(error)),
            }
            let made = vfs.create_new(&path).and_then(|file| {
                vfs::write_all(file.as_ref(), &header.encode(), 0)?;
                write_zeros(file.as_ref(), header.encode().len() as u64, filled)?;
                file.sync_all()?;
                Ok(file)
            });
            match made {
                Ok(file) => return Ok(Some(Self { header, file: file.into(), filled })),
                Err(error) if vfs::is_full(&error) => {
                    // What is left of it would only take room; recovery removes it otherwise.
                    let _ = vfs.remove(&path);
                }
                Err(error) => return Err(IoFailure::new("making a segment")(error)),
            }
        }
        Ok(None)
    }

    /// Gives the segment its name, durably.
    pub(crate) fn publish(self, vfs: &dyn Vfs, dir: &Path) -> Result<Segment, IoFailure> {
        let name = segment::file_name(self.header.first_seq);
        vfs.rename(&dir.join(making_name(&self.header)), &dir.join(&name))
            .and_then(|()| vfs.sync_dir(dir))
            .map_err(IoFailure::new("naming a segment"))?;
        let stored = self.header.encode();
        Ok(Segment::new(self.header, &stored, name, self.file))
    }

    fn discard(self, log: &Log) -> Result<(), IoFailure> {
        log.vfs
            .remove(&log.dir.join(making_name(&self.header)))
            .map_err(IoFailure::new("removing a segment in the making"))
    }
}

fn making_name(header: &SegmentHeader) -> String {
    format!("{}{MAKING_SUFFIX}", segment::file_name(header.first_seq))
}
