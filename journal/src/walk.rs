//! The forward scan of one segment, block by block. It judges each block; it does not judge what a block that does
//! not continue means (that is `recovery` and `verify`).

use std::io;
use std::sync::Arc;

use protocol::ids::Seq;

use crate::format::Alignment;
use crate::format::block::{
    BlockFault, BlockHeader, ENTRY_BYTES, Entry, HEADER_BYTES, Place, Shape, decode_entry,
};
use crate::format::record::{Record, RecordView};
use crate::format::{BLOCK_BYTES_MAX, all_zero};
use crate::vfs::{self, VfsFile};

/// Bytes read at once, at least.
const CHUNK_BYTES: u64 = 256 << 10;

/// A block that continues the segment.
pub(crate) struct Block<'a> {
    /// Where it starts, and what was expected there.
    pub place: Place,
    pub header: BlockHeader,
    bytes: &'a [u8],
}

impl<'a> Block<'a> {
    fn content(&self) -> &'a [u8] {
        &self.bytes[HEADER_BYTES..HEADER_BYTES + self.header.used]
    }

    /// Its records with their sequences. They were all checked, so none is left out.
    pub(crate) fn views(&self) -> impl Iterator<Item = (Seq, RecordView<'a>)> + use<'a> {
        let (mut rest, mut seq) = (self.content(), self.header.first_seq);
        std::iter::from_fn(move || {
            let (view, after) = RecordView::split(rest).ok()?;
            let item = (seq, view);
            (rest, seq) = (after, seq.next());
            Some(item)
        })
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = Record> + use<'a> {
        let epoch = self.header.epoch;
        self.views().map(move |(seq, view)| view.to_record(seq, epoch))
    }

    /// Look-up keys of its records.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Entry> + use<'a> {
        self.views().flat_map(|(seq, view)| view.keys().map(move |key| (key, seq)))
    }

    /// In a table block: its entries.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> + use<'a> {
        self.content().chunks_exact(ENTRY_BYTES).map(decode_entry)
    }
}

/// What stands at the walk's place.
pub(crate) enum Step<'a> {
    /// The walk has gone over it.
    Block(Block<'a>),
    /// The walk stays where it is.
    End(End),
}

/// Why the walk goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Only zeros to the end of the file, if there is more at all.
    Zeros,
    /// After the last table block: bytes other than zero.
    AfterTable,
    /// What stands there does not continue the segment.
    Fault(BlockFault),
}

/// How far the walk got with the key table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableState {
    /// No table block yet.
    None,
    /// Some, but not the last.
    Begun,
    /// All.
    Complete,
}

pub(crate) struct Walk {
    file: Arc<dyn VfsFile>,
    /// Bytes of the file that are looked at.
    end: u64,
    align: Alignment,
    seed: u32,
    place: Place,
    /// After the last block of records.
    records_end: Place,
    table: TableState,
    buf: Vec<u8>,
    buf_at: u64,
}

impl Walk {
    /// A walk from `place`, between two blocks of records, up to `end` bytes.
    pub(crate) fn new(file: Arc<dyn VfsFile>, end: u64, align: Alignment, seed: u32, place: Place) -> Self {
        let (buf, table) = (Vec::new(), TableState::None);
        Self { file, end, align, seed, place, records_end: place, table, buf, buf_at: 0 }
    }

    /// Where the next block must start, and what it must say.
    pub(crate) const fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) const fn records_end(&self) -> &Place {
        &self.records_end
    }

    pub(crate) const fn table(&self) -> TableState {
        self.table
    }

    /// Goes over one block, if it continues the segment.
    pub(crate) fn step(&mut self) -> io::Result<Step<'_>> {
        let place = self.place;
        let left = self.end.saturating_sub(place.offset);
        let head = self.load(place.offset, left.min(HEADER_BYTES as u64))?;
        if all_zero(&self.buf[head..][..left.min(HEADER_BYTES as u64) as usize]) && self.zeros_to_end()? {
            return Ok(Step::End(End::Zeros));
        }
        if self.table == TableState::Complete {
            return Ok(Step::End(End::AfterTable));
        }
        let bytes = &self.buf[head..][..left.min(HEADER_BYTES as u64) as usize];
        let header = match BlockHeader::decode(bytes, self.align) {
            Ok(header) if header.len as u64 > left => return Ok(Step::End(End::Fault(BlockFault::PastEnd))),
            Ok(header) => header,
            Err(fault) => return Ok(Step::End(End::Fault(fault))),
        };
        let at = self.load(place.offset, header.len as u64)?;
        let block = &self.buf[at..at + header.len];
        if let Err(fault) = header.check(block, self.seed, &place) {
            return Ok(Step::End(End::Fault(fault)));
        }
        let after = header.place_after(&place, block);
        match (header.shape, self.table) {
            (Shape::Records, TableState::None) => self.records_end = after,
            (Shape::Table, TableState::None | TableState::Begun) => {
                self.table = if header.is_last() { TableState::Complete } else { TableState::Begun };
            }
            // Records after a table block: verified bytes in a place where no writer puts them.
            (Shape::Records | Shape::Table, TableState::Begun | TableState::Complete) => {
                return Ok(Step::End(End::Fault(BlockFault::Table)));
            }
        }
        self.place = after;
        Ok(Step::Block(Block { place, header, bytes: &self.buf[at..at + header.len] }))
    }

    /// Makes sure that `bytes` from `offset` are in the buffer; says where in it.
    fn load(&mut self, offset: u64, bytes: u64) -> io::Result<usize> {
        let have = offset.checked_sub(self.buf_at).filter(|at| at + bytes <= self.buf.len() as u64);
        if let Some(at) = have {
            return Ok(at as usize);
        }
        let want = bytes.max(CHUNK_BYTES.min(self.end.saturating_sub(offset))) as usize;
        self.buf.resize(want, 0);
        self.buf_at = offset;
        // A file that shrank in the meantime reads as zeros: what was cut is not there.
        let read = vfs::read_up_to(self.file.as_ref(), &mut self.buf, offset)?;
        self.buf[read..].fill(0);
        Ok(0)
    }

    fn zeros_to_end(&mut self) -> io::Result<bool> {
        let mut offset = self.place.offset;
        while offset < self.end {
            let bytes = CHUNK_BYTES.min(self.end - offset);
            let at = self.load(offset, bytes)?;
            if !all_zero(&self.buf[at..at + bytes as usize]) {
                return Ok(false);
            }
            offset += bytes;
        }
        Ok(true)
    }
}

/// What stands beyond a place where a segment does not continue.
pub(crate) struct Tail {
    /// Bytes from the place up to and with the last one that is not zero.
    pub bytes: u64,
    /// Whether an intact block says that a sequence beyond the place was synced.
    pub proof_of_loss: bool,
    /// Whether the bytes look like the block that belongs here.
    pub resembles: bool,
}

/// Looks at everything from `place` to `end`.
pub(crate) fn look_on(
    file: &dyn VfsFile,
    end: u64,
    align: Alignment,
    seed: u32,
    place: &Place,
) -> io::Result<Tail> {
    let step = align.bytes() as usize;
    let mut tail = Tail { bytes: 0, proof_of_loss: false, resembles: false };
    // Two blocks' worth, so that any block that starts in the first half is in it.
    let mut buf = vec![0; 2 * BLOCK_BYTES_MAX];
    let mut offset = place.offset;
    while offset < end {
        let len = (2 * BLOCK_BYTES_MAX as u64).min(end - offset) as usize;
        let read = vfs::read_up_to(file, &mut buf[..len], offset)?;
        let bytes = &buf[..read];
        if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
            tail.bytes = offset + last as u64 + 1 - place.offset;
        }
        if offset == place.offset {
            tail.resembles = BlockHeader::resembles(bytes, place);
        }
        let starts = bytes.len().min(BLOCK_BYTES_MAX);
        for at in (0..starts).step_by(step) {
            let Ok(header) = BlockHeader::decode(&bytes[at..], align) else { continue };
            let beyond = header.synced > place.next_seq;
            let whole = bytes.get(at..at + header.len);
            if beyond && whole.is_some_and(|block| header.checksum_fits(block, seed)) {
                tail.proof_of_loss = true;
            }
        }
        if read < len {
            break;
        }
        offset += BLOCK_BYTES_MAX as u64;
    }
    Ok(tail)
}
