//! One segment file: its name, its header, a sparse index of its blocks, its key table.

use std::io;
use std::path::Path;
use std::sync::Arc;

use protocol::ids::Seq;

use crate::chain::Chain;
use crate::error::{Damage, Fault, IoFailure, ReadError};
use crate::format::block::{
    BlockFault, BlockHeader, ENTRY_BYTES, Finish, HEADER_BYTES as BLOCK_HEADER_BYTES, Place, Shape,
    TABLE_ENTRIES_MAX, decode_entry, encode_entry, finish,
};
use crate::format::record::{LookupKey, Record};
use crate::format::segment_header::{HEADER_BYTES, HeaderFault, SegmentHeader};
use crate::format::{Alignment, BLOCK_BYTES_MAX, all_zero};
use crate::vfs::{self, Mode, Vfs, VfsFile};
use crate::walk::{Block, End, Step, Walk};

/// Ending of a segment's file name.
pub const SUFFIX: &str = ".seg";
/// Ends the name of a segment in the making.
pub(crate) const MAKING_SUFFIX: &str = ".tmp";
const NAME_DIGITS: usize = 20;
/// The sparse index holds a place at least this many bytes after the one before.
const INDEX_BYTES: u64 = 16 << 10;

/// Name of the segment whose first record is `first_seq`.
pub(crate) fn file_name(first_seq: Seq) -> String {
    format!("{:0NAME_DIGITS$}{SUFFIX}", first_seq.0)
}

pub(crate) fn parse_name(name: &str) -> Option<Seq> {
    let digits = name.strip_suffix(SUFFIX)?;
    let valid = digits.len() == NAME_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if valid { digits.parse().ok().map(Seq) } else { None }
}

/// Whether a name is that of a segment in the making.
pub(crate) fn is_making(name: &str) -> bool {
    name.strip_suffix(MAKING_SUFFIX).is_some_and(|name| parse_name(name).is_some())
}

/// Names of the segments in a directory, in order. No directory is no segment.
pub(crate) fn list(vfs: &dyn Vfs, dir: &Path) -> io::Result<Vec<String>> {
    let mut names = match vfs.list(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    names.retain(|name| parse_name(name).is_some());
    names.sort_unstable();
    Ok(names)
}

/// A segment that was opened and whose header is whole.
pub(crate) struct Segment {
    pub header: SegmentHeader,
    pub name: String,
    pub file: Arc<dyn VfsFile>,
    seed: u32,
    start: Place,
    /// Places of some blocks, ascending; the first block's always.
    index: Vec<Place>,
    /// Where the key table is, once it was looked for.
    table: Option<KeyTable>,
}

impl Segment {
    /// Opens a segment. The outer error is the system's; the inner one is what is wrong with the header.
    pub(crate) fn open(
        vfs: &dyn Vfs,
        dir: &Path,
        name: &str,
        mode: Mode,
    ) -> Result<Result<Self, Fault>, IoFailure> {
        let failed = IoFailure::new("opening a segment");
        let file: Arc<dyn VfsFile> = match vfs.open(&dir.join(name), mode) {
            Ok(file) => file.into(),
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = vec![0; Alignment::B4096.bytes() as usize];
        let read =
            vfs::read_up_to(file.as_ref(), &mut bytes, 0).map_err(IoFailure::new("reading a segment"))?;
        bytes.truncate(read);
        Ok(Self::from_start(name, file, &bytes))
    }

    fn from_start(name: &str, file: Arc<dyn VfsFile>, bytes: &[u8]) -> Result<Self, Fault> {
        let header = SegmentHeader::decode(bytes)?;
        let gap = bytes.get(HEADER_BYTES..header.first_block() as usize).ok_or(HeaderFault::Short)?;
        if !all_zero(gap) {
            return Err(HeaderFault::Gap.into());
        }
        if parse_name(name) != Some(header.first_seq) {
            return Err(Fault::NameMismatch);
        }
        Ok(Self::new(header, &bytes[..HEADER_BYTES], name.to_owned(), file))
    }

    /// A segment whose file has this header, stored as these bytes.
    pub(crate) fn new(header: SegmentHeader, stored: &[u8], name: String, file: Arc<dyn VfsFile>) -> Self {
        let start = Place {
            offset: header.first_block(),
            next_seq: header.first_seq,
            epoch: header.epoch,
            // A segment is made after everything before it was synced.
            synced: header.first_seq,
            chain: Chain::after_header(stored),
        };
        let seed = header.seed();
        Self { header, name, file, seed, start, index: vec![start], table: None }
    }

    /// The place of the first block.
    pub(crate) const fn start(&self) -> Place {
        self.start
    }

    pub(crate) const fn seed(&self) -> u32 {
        self.seed
    }

    pub(crate) fn len(&self) -> Result<u64, ReadError> {
        Ok(self.file.len().map_err(IoFailure::new("reading a segment's length"))?)
    }

    pub(crate) fn walk(&self, from: Place, end: u64) -> Walk {
        Walk::new(Arc::clone(&self.file), end, self.header.align, self.seed, from)
    }

    pub(crate) fn damage(&self, place: &Place, fault: impl Into<Fault>) -> Damage {
        Damage {
            file: self.name.clone(),
            segment: self.header.segment,
            offset: place.offset,
            fault: fault.into(),
            first_lost: place.next_seq,
        }
    }

    /// Damage of the header.
    pub(crate) fn damage_at_start(&self, fault: Fault) -> Damage {
        self.damage(&Place { offset: 0, ..self.start }, fault)
    }

    /// Remembers that a block starts at `place`. Called in ascending order, perhaps more than once.
    pub(crate) fn note(&mut self, place: &Place) {
        if self.index.last().is_some_and(|last| place.offset >= last.offset + INDEX_BYTES) {
            self.index.push(*place);
        }
    }

    /// The last known place at or before the block that holds `seq`.
    pub(crate) fn place_before(&self, seq: Seq) -> Place {
        let after = self.index.partition_point(|place| place.next_seq <= seq);
        self.index[after.saturating_sub(1)]
    }

    /// The record at `seq`, which is in this segment, whose blocks end at or before `end`.
    pub(crate) fn read(&mut self, seq: Seq, end: u64) -> Result<Record, ReadError> {
        let mut walk = self.walk(self.place_before(seq), end);
        loop {
            let step = walk.step().map_err(IoFailure::new("reading a segment"))?;
            match step {
                Step::Block(block) if block.header.shape == Shape::Records => {
                    self.note(&block.place);
                    if seq.0 < block.header.first_seq.0 + u64::from(block.header.count) {
                        return record_in(&block, seq)
                            .ok_or(ReadError::NotFound { seq, next_seq: block.place.next_seq });
                    }
                }
                Step::Block(block) => {
                    return Err(ReadError::NotFound { seq, next_seq: block.place.next_seq });
                }
                Step::End(End::Zeros | End::AfterTable) => {
                    return Err(ReadError::NotFound { seq, next_seq: walk.place().next_seq });
                }
                Step::End(End::Fault(fault)) => return Err(self.damage(walk.place(), fault).into()),
            }
        }
    }

    /// The sequences of the records with `key`, from the key table of this closed segment. `exit` is the chain
    /// after its last block, as the next segment's header has it.
    pub(crate) fn lookup(&mut self, key: LookupKey, exit: Chain) -> Result<Vec<Seq>, ReadError> {
        let table = match self.table {
            Some(table) => table,
            None => {
                let len = self.len()?;
                let found = KeyTable::locate(self.file.as_ref(), len, self.header.align, exit)
                    .map_err(IoFailure::new("reading a key table"))?;
                let place = Place { offset: len, ..self.start };
                *self.table.insert(found.ok_or_else(|| self.damage(&place, BlockFault::Table))?)
            }
        };
        Ok(table.find(self.file.as_ref(), key).map_err(IoFailure::new("reading a key table"))?)
    }
}

fn record_in(block: &Block<'_>, seq: Seq) -> Option<Record> {
    let epoch = block.header.epoch;
    block.views().find(|(at, _)| *at == seq).map(|(seq, view)| view.to_record(seq, epoch))
}

/// Where a closed segment's key table is. It was checked against the chain when it was located.
#[derive(Clone, Copy, Debug)]
struct KeyTable {
    /// Offset of its first block.
    offset: u64,
    /// Bytes of each block but the last.
    full_bytes: u64,
    entries: u64,
}

impl KeyTable {
    /// Finds the table from the end of the file: its last block ends there and gives `exit`; each block before it
    /// is full and gives the chain value that the next one holds. `None` if the bytes do not.
    fn locate(file: &dyn VfsFile, len: u64, align: Alignment, exit: Chain) -> io::Result<Option<Self>> {
        let window = len.min(BLOCK_BYTES_MAX as u64);
        let mut bytes = vec![0; window as usize];
        vfs::read_exact(file, &mut bytes, len - window)?;
        let last = (0..bytes.len())
            .rev()
            .filter(|at| (len - window + *at as u64).is_multiple_of(align.bytes()))
            .find_map(|at| {
                let header = BlockHeader::decode(&bytes[at..], align).ok()?;
                let fits = header.shape == Shape::Table
                    && header.is_last()
                    && header.len == bytes.len() - at
                    && Chain::after_block(&bytes[at..]) == exit;
                if fits { Some((len - window + at as u64, header)) } else { None }
            });
        let Some((mut offset, mut header)) = last else { return Ok(None) };
        let full_bytes = align.round_up((BLOCK_HEADER_BYTES + TABLE_ENTRIES_MAX * ENTRY_BYTES) as u64);
        let mut entries = u64::from(header.count);
        bytes.resize(full_bytes as usize, 0);
        while let Some(before) = offset.checked_sub(full_bytes) {
            vfs::read_exact(file, &mut bytes, before)?;
            if Chain::after_block(&bytes) != header.chain {
                break;
            }
            match BlockHeader::decode(&bytes, align) {
                Ok(found) if found.shape == Shape::Table && found.count as usize == TABLE_ENTRIES_MAX => {
                    (offset, header) = (before, found);
                    entries += u64::from(found.count);
                }
                Ok(_) | Err(_) => break,
            }
        }
        Ok(Some(Self { offset, full_bytes, entries }))
    }

    fn entry(&self, file: &dyn VfsFile, n: u64) -> io::Result<(LookupKey, Seq)> {
        let (block, within) = (n / TABLE_ENTRIES_MAX as u64, n % TABLE_ENTRIES_MAX as u64);
        let at =
            self.offset + block * self.full_bytes + BLOCK_HEADER_BYTES as u64 + within * ENTRY_BYTES as u64;
        let mut bytes = [0; ENTRY_BYTES];
        vfs::read_exact(file, &mut bytes, at)?;
        Ok(decode_entry(&bytes))
    }

    fn find(&self, file: &dyn VfsFile, key: LookupKey) -> io::Result<Vec<Seq>> {
        let (mut low, mut high) = (0, self.entries);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(file, middle)?.0 < key { low = middle + 1 } else { high = middle }
        }
        let mut found = Vec::new();
        while low < self.entries {
            let (at, seq) = self.entry(file, low)?;
            if at != key {
                break;
            }
            found.push(seq);
            low += 1;
        }
        Ok(found)
    }
}

/// The table blocks for `entries` (ascending), as they follow the last block at `place`, and the place after them.
pub(crate) fn table_bytes<'a>(
    entries: impl ExactSizeIterator<Item = &'a (LookupKey, Seq)>,
    mut place: Place,
    align: Alignment,
    seed: u32,
) -> (Vec<u8>, Place) {
    let (mut left, mut entries) = (entries.len(), entries);
    let mut all = Vec::new();
    loop {
        let count = left.min(TABLE_ENTRIES_MAX);
        left -= count;
        let mut block = vec![0; BLOCK_HEADER_BYTES];
        for entry in entries.by_ref().take(count) {
            encode_entry(&mut block, entry);
        }
        let (epoch, last) = (place.epoch, left == 0);
        let how =
            Finish { shape: Shape::Table, count: count as u32, last, epoch, place: &place, align, seed };
        let after = finish(&mut block, &how);
        all.extend_from_slice(&block);
        place = after;
        if last {
            return (all, place);
        }
    }
}

/// Bytes of the key table for so many entries.
pub(crate) fn table_len(entries: usize, align: Alignment) -> u64 {
    let full = align.round_up((BLOCK_HEADER_BYTES + TABLE_ENTRIES_MAX * ENTRY_BYTES) as u64);
    let blocks = entries.saturating_sub(1) / TABLE_ENTRIES_MAX;
    let rest = entries - blocks * TABLE_ENTRIES_MAX;
    blocks as u64 * full + align.round_up((BLOCK_HEADER_BYTES + rest * ENTRY_BYTES) as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use protocol::ids::Epoch;

    use super::*;
    use crate::vfs::os::OsVfs;

    #[test]
    fn names_order_as_sequences_do_and_nothing_else_is_a_segment() {
        assert_eq!(file_name(Seq(7)), "00000000000000000007.seg");
        assert_eq!(parse_name(&file_name(Seq(u64::MAX))), Some(Seq(u64::MAX)));
        for name in
            ["7.seg", "+0000000000000000007.seg", "00000000000000000007.seg.tmp", "99999999999999999999.seg"]
        {
            assert_eq!(parse_name(name), None, "{name}");
        }
    }

    #[test]
    fn every_key_of_a_table_of_several_blocks_is_found_and_no_other() {
        let dir = tempfile::tempdir().expect("a directory");
        for (align, count) in [
            (Alignment::B8, 0_u32),
            (Alignment::B8, 1),
            (Alignment::B512, TABLE_ENTRIES_MAX as u32),
            (Alignment::B4096, TABLE_ENTRIES_MAX as u32 + 1),
            (Alignment::B8, 2 * TABLE_ENTRIES_MAX as u32 + 5),
        ] {
            let key = |n: u32| LookupKey::new(0, &n.to_le_bytes());
            let entries: BTreeSet<_> = (0..count).flat_map(|n| [(key(n / 2), Seq(u64::from(n)))]).collect();
            let place = Place {
                offset: 4096,
                next_seq: Seq(9),
                epoch: Epoch(1),
                synced: Seq(9),
                chain: Chain([1; 32]),
            };
            let (bytes, after) = table_bytes(entries.iter(), place, align, 5);
            assert_eq!(bytes.len() as u64, table_len(entries.len(), align), "{count}");
            let path = dir.path().join(format!("{count}"));
            let file = OsVfs.create_new(&path).expect("a file");
            vfs::write_all(file.as_ref(), &bytes, place.offset).expect("a write");
            let len = place.offset + bytes.len() as u64;
            let table =
                KeyTable::locate(file.as_ref(), len, align, after.chain).expect("a read").expect("a table");
            assert_eq!((table.offset, table.entries), (place.offset, u64::from(count)));
            for n in (0..count / 2).step_by(997).chain((count / 2).checked_sub(1)) {
                let n = u64::from(n);
                let found = table.find(file.as_ref(), key(n as u32)).expect("a read");
                assert_eq!(found, [Seq(2 * n), Seq(2 * n + 1)], "{count} {n}");
            }
            assert!(table.find(file.as_ref(), key(u32::MAX)).expect("a read").is_empty());
            let none = KeyTable::locate(file.as_ref(), len, align, place.chain).expect("a read");
            assert!(none.is_none(), "a table that the chain does not end with is none");
        }
    }
}
