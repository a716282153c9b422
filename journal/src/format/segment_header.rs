//! FORMAT.md, "Segment header".

use protocol::ids::{Epoch, JournalId, Seq};
use protocol::time::UnixMillis;

use super::{Alignment, Field, all_zero, array_at, put, u16_at, u32_at, u64_at};
use crate::chain::Chain;

/// The first bytes of every segment. The line end shows a transfer in text mode at once.
pub const MAGIC: [u8; 8] = *b"OPJSEG\r\n";
/// The only major version this code reads and writes.
pub const MAJOR: u16 = 1;
/// The minor version this code writes.
pub const MINOR: u16 = 0;
/// Bytes of the header.
pub const HEADER_BYTES: usize = CRC_AT + 4;
/// Incompatible feature bits this code knows.
pub const INCOMPATIBLE_KNOWN: u64 = 0;

const MAJOR_AT: usize = 8;
const MINOR_AT: usize = MAJOR_AT + 2;
const HEADER_LEN_AT: usize = MINOR_AT + 2;
const COMPATIBLE_AT: usize = HEADER_LEN_AT + 4;
const INCOMPATIBLE_AT: usize = COMPATIBLE_AT + 8;
const CHECKSUM_ID_AT: usize = INCOMPATIBLE_AT + 8;
const HASH_ID_AT: usize = CHECKSUM_ID_AT + 1;
const CODEC_ID_AT: usize = HASH_ID_AT + 1;
const ALIGN_LOG2_AT: usize = CODEC_ID_AT + 1;
const ZERO_A_AT: usize = ALIGN_LOG2_AT + 1;
const JOURNAL_ID_AT: usize = ZERO_A_AT + 4;
const SEGMENT_AT: usize = JOURNAL_ID_AT + 16;
const ZERO_B_AT: usize = SEGMENT_AT + 4;
const FIRST_SEQ_AT: usize = ZERO_B_AT + 4;
const EPOCH_AT: usize = FIRST_SEQ_AT + 8;
const CHAIN_AT: usize = EPOCH_AT + 8;
const CREATED_MS_AT: usize = CHAIN_AT + 32;
const ZERO_C_AT: usize = CREATED_MS_AT + 8;
const CRC_AT: usize = ZERO_C_AT + 4;

/// The table of FORMAT.md.
pub const FIELDS: [Field; 20] = [
    Field::new("magic", 0, MAGIC.len()),
    Field::new("major", MAJOR_AT, 2),
    Field::new("minor", MINOR_AT, 2),
    Field::new("header_len", HEADER_LEN_AT, 4),
    Field::new("compatible", COMPATIBLE_AT, 8),
    Field::new("incompatible", INCOMPATIBLE_AT, 8),
    Field::new("checksum_id", CHECKSUM_ID_AT, 1),
    Field::new("hash_id", HASH_ID_AT, 1),
    Field::new("codec_id", CODEC_ID_AT, 1),
    Field::new("align_log2", ALIGN_LOG2_AT, 1),
    Field::new("zero_a", ZERO_A_AT, 4),
    Field::new("journal_id", JOURNAL_ID_AT, 16),
    Field::new("segment", SEGMENT_AT, 4),
    Field::new("zero_b", ZERO_B_AT, 4),
    Field::new("first_seq", FIRST_SEQ_AT, 8),
    Field::new("epoch", EPOCH_AT, 8),
    Field::new("chain", CHAIN_AT, 32),
    Field::new("created_ms", CREATED_MS_AT, 8),
    Field::new("zero_c", ZERO_C_AT, 4),
    Field::new("crc", CRC_AT, 4),
];

const CHECKSUM_CRC32C: u8 = 1;
const HASH_BLAKE3: u8 = 1;
const CODEC_BINCODE: u8 = 1;

/// What a segment says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Where blocks may start.
    pub align: Alignment,
    /// The same in all segments of a journal.
    pub journal_id: JournalId,
    /// Segment number, from 0.
    pub segment: u32,
    /// Sequence of the first record.
    pub first_seq: Seq,
    /// Writer epoch at creation.
    pub epoch: Epoch,
    /// Chain at entry.
    pub chain: Chain,
    /// Wall clock at creation.
    pub created: UnixMillis,
}

/// Why bytes are not a segment header that this code can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderFault {
    /// Fewer bytes than a header.
    #[error("the segment header is cut short")]
    Short,
    /// Not the magic of a segment.
    #[error("the segment header does not start with the magic of a segment")]
    Magic,
    /// The checksum does not fit.
    #[error("the checksum of the segment header does not fit")]
    Checksum,
    /// Whole, but of a version or with features that this code does not know.
    #[error("the segment is of a newer format ({what}); use a newer opjournal")]
    Unsupported {
        /// The field that is not known.
        what: &'static str,
    },
    /// The gap before the first block holds bytes other than zero.
    #[error("the bytes between the segment header and the first block are not zero")]
    Gap,
}

impl SegmentHeader {
    /// The header's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, MAJOR_AT, &MAJOR.to_le_bytes());
        put(&mut bytes, MINOR_AT, &MINOR.to_le_bytes());
        put(&mut bytes, HEADER_LEN_AT, &(HEADER_BYTES as u32).to_le_bytes());
        put(&mut bytes, CHECKSUM_ID_AT, &[CHECKSUM_CRC32C, HASH_BLAKE3, CODEC_BINCODE, self.align.log2()]);
        put(&mut bytes, JOURNAL_ID_AT, &self.journal_id.0);
        put(&mut bytes, SEGMENT_AT, &self.segment.to_le_bytes());
        put(&mut bytes, FIRST_SEQ_AT, &self.first_seq.0.to_le_bytes());
        put(&mut bytes, EPOCH_AT, &self.epoch.0.to_le_bytes());
        put(&mut bytes, CHAIN_AT, &self.chain.0);
        put(&mut bytes, CREATED_MS_AT, &self.created.0.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        put(&mut bytes, CRC_AT, &crc.to_le_bytes());
        bytes
    }

    /// Reads a header.
    ///
    /// # Errors
    /// A [`HeaderFault`]; a checksum that fits but a field that is not known is [`HeaderFault::Unsupported`].
    pub fn decode(bytes: &[u8]) -> Result<Self, HeaderFault> {
        if bytes.len() < HEADER_BYTES {
            return Err(HeaderFault::Short);
        }
        let bytes = &bytes[..HEADER_BYTES];
        if bytes[..MAGIC.len()] != MAGIC {
            return Err(HeaderFault::Magic);
        }
        if u32_at(bytes, CRC_AT) != crc32c::crc32c(&bytes[..CRC_AT]) {
            return Err(HeaderFault::Checksum);
        }
        let unsupported = |what| Err(HeaderFault::Unsupported { what });
        if u16_at(bytes, MAJOR_AT) != MAJOR {
            return unsupported("major version");
        }
        if u32_at(bytes, HEADER_LEN_AT) as usize != HEADER_BYTES {
            return unsupported("header length");
        }
        if u64_at(bytes, INCOMPATIBLE_AT) & !INCOMPATIBLE_KNOWN != 0 {
            return unsupported("feature bits");
        }
        if bytes[CHECKSUM_ID_AT] != CHECKSUM_CRC32C {
            return unsupported("checksum");
        }
        if bytes[HASH_ID_AT] != HASH_BLAKE3 {
            return unsupported("hash");
        }
        if bytes[CODEC_ID_AT] != CODEC_BINCODE {
            return unsupported("payload codec");
        }
        let Some(align) = Alignment::from_log2(bytes[ALIGN_LOG2_AT]) else { return unsupported("alignment") };
        let zeros = [(ZERO_A_AT, 4), (ZERO_B_AT, 4), (ZERO_C_AT, 4)];
        if zeros.iter().any(|&(at, len)| !all_zero(&bytes[at..at + len])) {
            return unsupported("zero field");
        }
        Ok(Self {
            align,
            journal_id: JournalId(array_at(bytes, JOURNAL_ID_AT)),
            segment: u32_at(bytes, SEGMENT_AT),
            first_seq: Seq(u64_at(bytes, FIRST_SEQ_AT)),
            epoch: Epoch(u64_at(bytes, EPOCH_AT)),
            chain: Chain(array_at(bytes, CHAIN_AT)),
            created: UnixMillis(u64_at(bytes, CREATED_MS_AT)),
        })
    }

    /// Offset of the first block, in bytes.
    #[must_use]
    pub const fn first_block(&self) -> u64 {
        self.align.round_up(HEADER_BYTES as u64)
    }

    /// The checksum of the seed of this segment's blocks, to go on from. FORMAT.md, "Checksums and chain".
    pub(crate) fn seed(&self) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&self.journal_id.0), &self.segment.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> SegmentHeader {
        SegmentHeader {
            align: Alignment::B512,
            journal_id: JournalId([7; 16]),
            segment: 3,
            first_seq: Seq(99),
            epoch: Epoch(4),
            chain: Chain([9; 32]),
            created: UnixMillis(1234),
        }
    }

    #[test]
    fn a_header_survives_its_bytes_and_any_flipped_bit_is_found() {
        let bytes = header().encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header()));
        assert_eq!(header().first_block(), 512);
        for bit in 0..HEADER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&flipped).is_err(), "bit {bit}");
        }
        for len in 0..HEADER_BYTES {
            assert_eq!(SegmentHeader::decode(&bytes[..len]), Err(HeaderFault::Short));
        }
    }

    #[test]
    fn a_whole_header_with_an_unknown_field_is_newer_not_damaged() {
        for (at, value, what) in [
            (MAJOR_AT, 2, Some("major version")),
            (MINOR_AT, 1, None),
            (HEADER_LEN_AT, 129, Some("header length")),
            (COMPATIBLE_AT, 1, None),
            (INCOMPATIBLE_AT, 1, Some("feature bits")),
            (CHECKSUM_ID_AT, 2, Some("checksum")),
            (HASH_ID_AT, 2, Some("hash")),
            (CODEC_ID_AT, 2, Some("payload codec")),
            (ALIGN_LOG2_AT, 4, Some("alignment")),
            (ZERO_A_AT, 1, Some("zero field")),
            (ZERO_B_AT, 1, Some("zero field")),
            (ZERO_C_AT, 1, Some("zero field")),
        ] {
            let mut bytes = header().encode();
            bytes[at] = value;
            let crc = crc32c::crc32c(&bytes[..CRC_AT]);
            put(&mut bytes, CRC_AT, &crc.to_le_bytes());
            let fault = SegmentHeader::decode(&bytes).err();
            assert_eq!(fault, what.map(|what| HeaderFault::Unsupported { what }), "{at}");
        }
    }
}
