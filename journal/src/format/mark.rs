//! FORMAT.md, "The synced mark".

use protocol::ids::{BootId, Epoch, Seq};

use super::{Field, all_zero, array_at, put, u32_at, u64_at};
use crate::chain::Chain;

/// The first bytes of the mark.
pub const MAGIC: [u8; 8] = *b"OPJMARK1";
/// Bytes of the mark.
pub const MARK_BYTES: usize = CRC_AT + 4;

const STATE_AT: usize = MAGIC.len();
const ZERO_A_AT: usize = STATE_AT + 1;
const SEGMENT_AT: usize = ZERO_A_AT + 3;
const OFFSET_AT: usize = SEGMENT_AT + 4;
const NEXT_SEQ_AT: usize = OFFSET_AT + 8;
const BOOT_ID_AT: usize = NEXT_SEQ_AT + 8;
const CHAIN_AT: usize = BOOT_ID_AT + 16;
const EPOCH_AT: usize = CHAIN_AT + 32;
const ZERO_B_AT: usize = EPOCH_AT + 8;
const CRC_AT: usize = ZERO_B_AT + 4;

/// The table of FORMAT.md.
pub const FIELDS: [Field; 11] = [
    Field::new("magic", 0, MAGIC.len()),
    Field::new("state", STATE_AT, 1),
    Field::new("zero_a", ZERO_A_AT, 3),
    Field::new("segment", SEGMENT_AT, 4),
    Field::new("offset", OFFSET_AT, 8),
    Field::new("next_seq", NEXT_SEQ_AT, 8),
    Field::new("boot_id", BOOT_ID_AT, 16),
    Field::new("chain", CHAIN_AT, 32),
    Field::new("epoch", EPOCH_AT, 8),
    Field::new("zero_b", ZERO_B_AT, 4),
    Field::new("crc", CRC_AT, 4),
];

/// A place between two blocks of the journal. Everything before it is synced when a mark says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Segment number.
    pub segment: u32,
    /// Bytes from the start of that segment.
    pub offset: u64,
    /// Sequence of the next record.
    pub next_seq: Seq,
    /// Chain value there.
    pub chain: Chain,
    /// Writer epoch of the block before, or of the segment header.
    pub epoch: Epoch,
}

/// Whether a block may have been written beyond the mark's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleanness {
    /// Nothing was written beyond the position.
    Clean,
    /// A write beyond the position began.
    Dirty,
}

/// The mark as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Whether a write beyond the position began.
    pub state: Cleanness,
    /// The end of what was synced.
    pub position: Position,
    /// The boot that the mark speaks about.
    pub boot_id: BootId,
}

impl Mark {
    /// The mark's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        let state = match self.state {
            Cleanness::Clean => 1,
            Cleanness::Dirty => 2,
        };
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, STATE_AT, &[state]);
        put(&mut bytes, SEGMENT_AT, &self.position.segment.to_le_bytes());
        put(&mut bytes, OFFSET_AT, &self.position.offset.to_le_bytes());
        put(&mut bytes, NEXT_SEQ_AT, &self.position.next_seq.0.to_le_bytes());
        put(&mut bytes, BOOT_ID_AT, &self.boot_id.0);
        put(&mut bytes, CHAIN_AT, &self.position.chain.0);
        put(&mut bytes, EPOCH_AT, &self.position.epoch.0.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        put(&mut bytes, CRC_AT, &crc.to_le_bytes());
        bytes
    }

    /// Reads a mark; `None` if the bytes are not exactly one.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let whole = bytes.len() == MARK_BYTES
            && bytes[..MAGIC.len()] == MAGIC
            && u32_at(bytes, CRC_AT) == crc32c::crc32c(&bytes[..CRC_AT])
            && all_zero(&bytes[ZERO_A_AT..SEGMENT_AT])
            && all_zero(&bytes[ZERO_B_AT..CRC_AT]);
        if !whole {
            return None;
        }
        let state = match bytes[STATE_AT] {
            1 => Cleanness::Clean,
            2 => Cleanness::Dirty,
            _ => return None,
        };
        Some(Self {
            state,
            position: Position {
                segment: u32_at(bytes, SEGMENT_AT),
                offset: u64_at(bytes, OFFSET_AT),
                next_seq: Seq(u64_at(bytes, NEXT_SEQ_AT)),
                chain: Chain(array_at(bytes, CHAIN_AT)),
                epoch: Epoch(u64_at(bytes, EPOCH_AT)),
            },
            boot_id: BootId(array_at(bytes, BOOT_ID_AT)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_survives_its_bytes_and_any_flipped_bit_makes_it_unreadable() {
        for state in [Cleanness::Clean, Cleanness::Dirty] {
            let position = Position {
                segment: 2,
                offset: 4096,
                next_seq: Seq(9),
                chain: Chain([8; 32]),
                epoch: Epoch(3),
            };
            let mark = Mark { state, position, boot_id: BootId([4; 16]) };
            let bytes = mark.encode();
            assert_eq!(Mark::decode(&bytes), Some(mark));
            for bit in 0..MARK_BYTES * 8 {
                let mut flipped = bytes;
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Mark::decode(&flipped), None, "bit {bit}");
            }
            assert_eq!(Mark::decode(&bytes[..MARK_BYTES - 1]), None);
        }
    }
}
