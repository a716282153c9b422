//! FORMAT.md, "Block header" and "Table block".

use protocol::ids::{Epoch, Seq};

use super::record::{KEY_BYTES, LookupKey, RecordFault, RecordView};
use super::{Alignment, BLOCK_BYTES_MAX, Field, all_zero, array_at, put, u32_at, u64_at};
use crate::chain::Chain;

/// The first bytes of a block of records.
pub const MAGIC: [u8; 4] = *b"OPBK";
/// The first bytes of a table block.
pub const TABLE_MAGIC: [u8; 4] = *b"OPTB";
/// Bytes of the header of either.
pub const HEADER_BYTES: usize = CHAIN_AT + 32;
/// Bytes of an entry of a table block.
pub const ENTRY_BYTES: usize = KEY_BYTES + 8;
/// Entries in every table block of a segment but its last.
pub const TABLE_ENTRIES_MAX: usize = (BLOCK_BYTES_MAX - HEADER_BYTES) / ENTRY_BYTES;

const LEN_AT: usize = MAGIC.len();
const CRC_AT: usize = LEN_AT + 4;
const COUNT_AT: usize = CRC_AT + 4;
const FIRST_SEQ_AT: usize = COUNT_AT + 4;
const EPOCH_AT: usize = FIRST_SEQ_AT + 8;
const SYNCED_AT: usize = EPOCH_AT + 8;
const USED_AT: usize = SYNCED_AT + 8;
/// `zero` in a block, `last` in a table block.
const ZERO_AT: usize = USED_AT + 4;
const CHAIN_AT: usize = ZERO_AT + 4;

/// The rows of fixed length in the table of FORMAT.md.
pub const FIELDS: [Field; 10] = [
    Field::new("magic", 0, MAGIC.len()),
    Field::new("len", LEN_AT, 4),
    Field::new("crc", CRC_AT, 4),
    Field::new("count", COUNT_AT, 4),
    Field::new("first_seq", FIRST_SEQ_AT, 8),
    Field::new("epoch", EPOCH_AT, 8),
    Field::new("synced", SYNCED_AT, 8),
    Field::new("used", USED_AT, 4),
    Field::new("zero", ZERO_AT, 4),
    Field::new("chain", CHAIN_AT, 32),
];

/// Which of the two a header starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Records,
    Table,
}

/// A place between blocks, and what the block there must say to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Bytes from the start of the segment.
    pub offset: u64,
    pub next_seq: Seq,
    pub epoch: Epoch,
    /// `synced` of the block before.
    pub synced: Seq,
    pub chain: Chain,
}

/// Why bytes are not the block that continues the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockFault {
    /// Fewer bytes than a block header before the end of the file.
    #[error("a block header is cut short")]
    Short,
    /// No magic of a block.
    #[error("there is no block where one must start")]
    Magic,
    /// A length below the header's, above the largest, or not a multiple of the alignment.
    #[error("a block's length is out of range")]
    Length,
    /// The block would go on beyond the end of the file.
    #[error("a block is cut short")]
    PastEnd,
    /// The checksum does not fit.
    #[error("a block's checksum does not fit")]
    Checksum,
    /// Whole, but of another place: its first sequence is not the next one.
    #[error("a block's first sequence is not the next one")]
    FirstSeq,
    /// Whole, but of another place: it does not hold the chain value of what is before it.
    #[error("a block does not continue the chain")]
    Chain,
    /// Whole and in its place, but its epoch is smaller than that of the block before.
    #[error("a block's epoch is smaller than the one before")]
    Epoch,
    /// Whole and in its place, but `synced` is beyond its first sequence or smaller than in the block before.
    #[error("a block's synced sequence is out of range")]
    Synced,
    /// Whole and in its place, but `used` or `count` do not fit its records or entries.
    #[error("a block's counts do not fit its content")]
    Count,
    /// Whole and in its place, but its padding is not zero.
    #[error("a block's padding is not zero")]
    Padding,
    /// Whole and in its place, but with a field that must be zero: a newer format.
    #[error("a block has a field of a newer format; use a newer opjournal")]
    Unsupported,
    /// Whole and in its place, but a record in it is not one.
    #[error("{0}")]
    Record(#[from] RecordFault),
    /// Whole and in its place, but the key table is not that of the segment's records.
    #[error("the key table is not that of the segment's records")]
    Table,
}

impl BlockFault {
    /// Whether the block verified (checksum, sequence, chain) and is wrong all the same. No torn write looks so;
    /// such a block is never cut.
    pub(crate) const fn verified(self) -> bool {
        match self {
            Self::Short
            | Self::Magic
            | Self::Length
            | Self::PastEnd
            | Self::Checksum
            | Self::FirstSeq
            | Self::Chain => false,
            Self::Epoch
            | Self::Synced
            | Self::Count
            | Self::Padding
            | Self::Unsupported
            | Self::Record(_)
            | Self::Table => true,
        }
    }
}

/// A block header as stored, its length checked, nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockHeader {
    pub shape: Shape,
    pub len: usize,
    crc: u32,
    pub count: u32,
    pub first_seq: Seq,
    pub epoch: Epoch,
    pub synced: Seq,
    pub used: usize,
    zero: u32,
    pub chain: Chain,
}

impl BlockHeader {
    /// Reads the header at the start of `bytes`. The length is in range on return, so it can be read.
    pub(crate) fn decode(bytes: &[u8], align: Alignment) -> Result<Self, BlockFault> {
        if bytes.len() < HEADER_BYTES {
            return Err(BlockFault::Short);
        }
        let shape = match array_at::<4>(bytes, 0) {
            MAGIC => Shape::Records,
            TABLE_MAGIC => Shape::Table,
            _ => return Err(BlockFault::Magic),
        };
        let len = u32_at(bytes, LEN_AT) as usize;
        if !(HEADER_BYTES..=BLOCK_BYTES_MAX).contains(&len) || !(len as u64).is_multiple_of(align.bytes()) {
            return Err(BlockFault::Length);
        }
        Ok(Self {
            shape,
            len,
            crc: u32_at(bytes, CRC_AT),
            count: u32_at(bytes, COUNT_AT),
            first_seq: Seq(u64_at(bytes, FIRST_SEQ_AT)),
            epoch: Epoch(u64_at(bytes, EPOCH_AT)),
            synced: Seq(u64_at(bytes, SYNCED_AT)),
            used: u32_at(bytes, USED_AT) as usize,
            zero: u32_at(bytes, ZERO_AT),
            chain: Chain(array_at(bytes, CHAIN_AT)),
        })
    }

    /// In a table block: whether it is the segment's last.
    pub(crate) const fn is_last(&self) -> bool {
        self.zero == 1
    }

    /// Whether `block`, all bytes of this block, has the checksum it says.
    pub(crate) fn checksum_fits(&self, block: &[u8], seed: u32) -> bool {
        self.crc == checksum(block, seed)
    }

    /// Whether `block`, all bytes of this block, continues the segment at `place`.
    pub(crate) fn check(&self, block: &[u8], seed: u32, place: &Place) -> Result<(), BlockFault> {
        if !self.checksum_fits(block, seed) {
            return Err(BlockFault::Checksum);
        }
        if self.first_seq != place.next_seq {
            return Err(BlockFault::FirstSeq);
        }
        if self.chain != place.chain {
            return Err(BlockFault::Chain);
        }
        if self.epoch < place.epoch {
            return Err(BlockFault::Epoch);
        }
        if self.synced > self.first_seq || self.synced < place.synced {
            return Err(BlockFault::Synced);
        }
        let Some(content) = block.get(HEADER_BYTES..HEADER_BYTES.saturating_add(self.used)) else {
            return Err(BlockFault::Count);
        };
        match self.shape {
            Shape::Records => {
                if self.zero != 0 {
                    return Err(BlockFault::Unsupported);
                }
                let (mut rest, mut count) = (content, 0);
                while !rest.is_empty() {
                    (_, rest) = RecordView::split(rest)?;
                    count += 1;
                }
                if count != self.count || count == 0 {
                    return Err(BlockFault::Count);
                }
            }
            Shape::Table => {
                if self.zero > 1 {
                    return Err(BlockFault::Unsupported);
                }
                let count = self.count as usize;
                if self.used != count * ENTRY_BYTES || (!self.is_last() && count != TABLE_ENTRIES_MAX) {
                    return Err(BlockFault::Count);
                }
            }
        }
        if all_zero(&block[HEADER_BYTES + self.used..]) { Ok(()) } else { Err(BlockFault::Padding) }
    }

    /// The place after this block, which has been checked and has these bytes.
    pub(crate) fn place_after(&self, place: &Place, block: &[u8]) -> Place {
        let records = match self.shape {
            Shape::Records => u64::from(self.count),
            Shape::Table => 0,
        };
        Place {
            offset: place.offset + self.len as u64,
            next_seq: Seq(place.next_seq.0.saturating_add(records)),
            epoch: self.epoch,
            synced: self.synced,
            chain: Chain::after_block(block),
        }
    }

    /// Whether at least two of magic, first sequence and chain are those of the block that belongs at `place`.
    pub(crate) fn resembles(bytes: &[u8], place: &Place) -> bool {
        if bytes.len() < HEADER_BYTES {
            return false;
        }
        let magic = array_at::<4>(bytes, 0);
        let fits = [
            magic == MAGIC || magic == TABLE_MAGIC,
            u64_at(bytes, FIRST_SEQ_AT) == place.next_seq.0,
            array_at::<32>(bytes, CHAIN_AT) == place.chain.0,
        ];
        fits.iter().filter(|fit| **fit).count() >= 2
    }
}

fn checksum(block: &[u8], seed: u32) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(seed, &block[..CRC_AT]), &block[COUNT_AT..])
}

/// What [`finish`] writes into a header.
pub(crate) struct Finish<'a> {
    pub shape: Shape,
    pub count: u32,
    pub last: bool,
    pub epoch: Epoch,
    pub place: &'a Place,
    pub align: Alignment,
    pub seed: u32,
}

/// Completes a block whose content stands in `block` after [`HEADER_BYTES`] bytes of room: header, padding,
/// checksum. Everything before `place` is synced. Returns the place after it.
pub(crate) fn finish(block: &mut Vec<u8>, how: &Finish<'_>) -> Place {
    let used = block.len() - HEADER_BYTES;
    let len = how.align.round_up(block.len() as u64) as usize;
    block.resize(len, 0);
    let magic = match how.shape {
        Shape::Records => MAGIC,
        Shape::Table => TABLE_MAGIC,
    };
    put(block, 0, &magic);
    put(block, LEN_AT, &(len as u32).to_le_bytes());
    put(block, COUNT_AT, &how.count.to_le_bytes());
    put(block, FIRST_SEQ_AT, &how.place.next_seq.0.to_le_bytes());
    put(block, EPOCH_AT, &how.epoch.0.to_le_bytes());
    put(block, SYNCED_AT, &how.place.next_seq.0.to_le_bytes());
    put(block, USED_AT, &(used as u32).to_le_bytes());
    put(block, ZERO_AT, &u32::from(how.last).to_le_bytes());
    put(block, CHAIN_AT, &how.place.chain.0);
    let crc = checksum(block, how.seed);
    put(block, CRC_AT, &crc.to_le_bytes());
    let records = match how.shape {
        Shape::Records => u64::from(how.count),
        Shape::Table => 0,
    };
    Place {
        offset: how.place.offset + len as u64,
        next_seq: Seq(how.place.next_seq.0 + records),
        epoch: how.epoch,
        synced: how.place.next_seq,
        chain: Chain::after_block(block),
    }
}

/// An entry of a key table. Its order is that of the table.
pub(crate) type Entry = (LookupKey, Seq);

/// Appends an entry's bytes.
pub(crate) fn encode_entry(out: &mut Vec<u8>, (key, seq): &Entry) {
    out.extend_from_slice(&key.0);
    out.extend_from_slice(&seq.0.to_le_bytes());
}

/// Reads the entry at the start of `bytes`, which hold one.
pub(crate) fn decode_entry(bytes: &[u8]) -> Entry {
    (LookupKey(array_at(bytes, 0)), Seq(u64_at(bytes, KEY_BYTES)))
}

#[cfg(test)]
mod tests {
    use protocol::ids::InstanceId;
    use protocol::time::UnixMillis;

    use super::*;
    use crate::format::record::{Draft, encode_into};

    const SEED: u32 = 77;

    fn place() -> Place {
        Place { offset: 128, next_seq: Seq(10), epoch: Epoch(3), synced: Seq(8), chain: Chain([5; 32]) }
    }

    fn block(records: u32) -> (Vec<u8>, Place) {
        let mut bytes = vec![0; HEADER_BYTES];
        for n in 0..records {
            let draft = Draft {
                kind: 100,
                version: 1,
                optional: false,
                time: UnixMillis(1),
                keys: vec![],
                payload: vec![n as u8; 5],
            };
            encode_into(&mut bytes, &draft, &[], InstanceId([1; 16]));
        }
        let how = Finish {
            shape: Shape::Records,
            count: records,
            last: false,
            epoch: Epoch(3),
            place: &place(),
            align: Alignment::B8,
            seed: SEED,
        };
        let after = finish(&mut bytes, &how);
        (bytes, after)
    }

    fn check(bytes: &[u8], seed: u32, place: &Place) -> Result<(), BlockFault> {
        let header = BlockHeader::decode(bytes, Alignment::B8)?;
        if header.len > bytes.len() {
            return Err(BlockFault::PastEnd);
        }
        header.check(&bytes[..header.len], seed, place)
    }

    #[test]
    fn a_block_continues_where_it_was_made_and_any_flipped_bit_is_found() {
        let (bytes, after) = block(3);
        assert_eq!(check(&bytes, SEED, &place()), Ok(()));
        let header = BlockHeader::decode(&bytes, Alignment::B8).expect("a header");
        assert_eq!(header.place_after(&place(), &bytes), after);
        assert_eq!((after.next_seq, after.synced), (Seq(13), Seq(10)));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(check(&flipped, SEED, &place()).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn each_wrong_field_has_its_own_fault_even_under_a_right_checksum() {
        let used = (3 * (36 + 5)) as u8;
        for (case, at, value, want) in [
            ("length below the header", LEN_AT, 72, BlockFault::Length),
            ("length off the alignment", LEN_AT, 81, BlockFault::Length),
            ("length beyond a block", LEN_AT + 3, 1, BlockFault::Length),
            ("length beyond the bytes", LEN_AT + 1, 1, BlockFault::PastEnd),
            ("magic", 0, 0, BlockFault::Magic),
            ("count too small", COUNT_AT, 2, BlockFault::Count),
            ("count too large", COUNT_AT, 4, BlockFault::Count),
            ("first sequence", FIRST_SEQ_AT, 11, BlockFault::FirstSeq),
            ("older epoch", EPOCH_AT, 2, BlockFault::Epoch),
            ("synced beyond itself", SYNCED_AT, 11, BlockFault::Synced),
            ("synced before the last one", SYNCED_AT, 7, BlockFault::Synced),
            ("used beyond the block", USED_AT + 3, 0xff, BlockFault::Count),
            ("used too small", USED_AT, used - 1, BlockFault::Record(RecordFault::Length)),
            ("used too large", USED_AT, used + 1, BlockFault::Record(RecordFault::Length)),
            ("zero field", ZERO_AT, 1, BlockFault::Unsupported),
            ("chain", CHAIN_AT, 6, BlockFault::Chain),
            ("padding", HEADER_BYTES + used as usize, 1, BlockFault::Padding),
        ] {
            let (mut bytes, _) = block(3);
            bytes[at] = value;
            let crc = checksum(&bytes, SEED);
            put(&mut bytes, CRC_AT, &crc.to_le_bytes());
            assert_eq!(check(&bytes, SEED, &place()), Err(want), "{case}");
        }
        let (bytes, _) = block(3);
        assert_eq!(check(&bytes, SEED + 1, &place()), Err(BlockFault::Checksum), "another segment's seed");
        let newer = Place { epoch: Epoch(2), ..place() };
        assert_eq!(check(&bytes, SEED, &newer), Ok(()), "a newer epoch goes on from an older");
    }

    #[test]
    fn a_table_block_says_how_many_entries_it_holds_and_whether_it_is_the_last() {
        let mut bytes = vec![0; HEADER_BYTES];
        encode_entry(&mut bytes, &(LookupKey([1; 16]), Seq(4)));
        assert_eq!(decode_entry(&bytes[HEADER_BYTES..]), (LookupKey([1; 16]), Seq(4)));
        let mut how = Finish {
            shape: Shape::Table,
            count: 1,
            last: true,
            epoch: Epoch(3),
            place: &place(),
            align: Alignment::B8,
            seed: SEED,
        };
        let after = finish(&mut bytes, &how);
        assert_eq!(after.next_seq, place().next_seq);
        assert_eq!(check(&bytes, SEED, &place()), Ok(()));
        how.last = false;
        bytes.truncate(HEADER_BYTES + ENTRY_BYTES);
        finish(&mut bytes, &how);
        assert_eq!(check(&bytes, SEED, &place()), Err(BlockFault::Count), "only the last may be short");
    }
}
