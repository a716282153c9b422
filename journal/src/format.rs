//! The bytes of the journal: constants and encoders. FORMAT.md is normative; a test compares its tables with
//! the `FIELDS` of each structure here.
//!
//! Nothing here does I/O.

pub mod block;
pub mod mark;
pub mod record;
pub mod segment_header;

/// Bytes of the largest block, header and padding included. RULINGS 40.
pub const BLOCK_BYTES_MAX: usize = 1 << 20;
/// Bytes of the largest record, header included. RULINGS 40.
pub const RECORD_BYTES_MAX: usize = 256 << 10;
/// Bytes of a payload that fits every record, whatever its look-up keys.
pub const PAYLOAD_BYTES_MAX: usize =
    RECORD_BYTES_MAX - record::HEADER_BYTES - record::KEYS_MAX * record::KEY_BYTES;

/// One row of a table in FORMAT.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name as in the table.
    pub name: &'static str,
    /// Offset in bytes from the start of the structure.
    pub offset: usize,
    /// Length in bytes.
    pub bytes: usize,
}

impl Field {
    pub(crate) const fn new(name: &'static str, offset: usize, bytes: usize) -> Self {
        Self { name, offset, bytes }
    }
}

/// Where blocks may start and end. Chosen when a journal is created, the same in all its segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alignment {
    /// 8 bytes: blocks share sectors (powersafe overwrite is assumed; FORMAT.md, "Zero space").
    #[default]
    B8,
    /// 512 bytes: a write never touches a 512-byte sector that holds an earlier block.
    B512,
    /// 4,096 bytes: the same for sectors of 4 KiB.
    B4096,
}

impl Alignment {
    /// Bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        1 << self.log2()
    }

    pub(crate) const fn log2(self) -> u8 {
        match self {
            Self::B8 => 3,
            Self::B512 => 9,
            Self::B4096 => 12,
        }
    }

    pub(crate) const fn from_log2(log2: u8) -> Option<Self> {
        match log2 {
            3 => Some(Self::B8),
            9 => Some(Self::B512),
            12 => Some(Self::B4096),
            _ => None,
        }
    }

    /// `bytes` rounded up.
    pub(crate) const fn round_up(self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.bytes())
    }
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

/// The `N` bytes at `at`. Callers have checked the length: every structure is read whole before it is looked at.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Whether every byte is zero.
pub(crate) fn all_zero(bytes: &[u8]) -> bool {
    let (head, words, tail) = (bytes.len() / 16 * 16, bytes.chunks_exact(16), bytes.len());
    words.fold(0_u128, |sum, word| sum | u128::from_le_bytes(array_at(word, 0))) == 0
        && bytes[head..tail].iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows `| offset | bytes | field | …` of the first table after the heading.
    fn table(heading: &str) -> Vec<(String, String, String)> {
        let format = include_str!("../FORMAT.md");
        let start = format.find(&format!("\n## {heading}\n")).expect("heading");
        format[start + 1..]
            .lines()
            .skip(1)
            .take_while(|line| !line.starts_with("## "))
            .filter(|line| line.starts_with("| ") && !line.starts_with("| offset"))
            .map(|line| {
                let mut cells = line.split('|').skip(1).map(|cell| cell.trim().to_owned());
                (cells.next().expect("offset"), cells.next().expect("bytes"), cells.next().expect("field"))
            })
            .collect()
    }

    #[test]
    fn the_tables_of_format_md_are_the_constants() {
        for (heading, fields) in [
            ("Segment header", segment_header::FIELDS.as_slice()),
            ("Block header", block::FIELDS.as_slice()),
            ("Record", record::FIELDS.as_slice()),
            ("The synced mark", mark::FIELDS.as_slice()),
        ] {
            let rows = table(heading);
            let fixed: Vec<_> = rows
                .iter()
                .filter_map(|(offset, bytes, name)| {
                    Some((offset.parse().ok()?, bytes.parse().ok()?, name.as_str()))
                })
                .collect();
            let ours: Vec<(usize, usize, &str)> =
                fields.iter().map(|field| (field.offset, field.bytes, field.name)).collect();
            assert_eq!(fixed, ours, "{heading}");
        }
    }

    #[test]
    fn fields_follow_each_other_without_a_gap() {
        for fields in [
            segment_header::FIELDS.as_slice(),
            block::FIELDS.as_slice(),
            record::FIELDS.as_slice(),
            mark::FIELDS.as_slice(),
        ] {
            for pair in fields.windows(2) {
                assert_eq!(pair[0].offset + pair[0].bytes, pair[1].offset, "{}", pair[1].name);
            }
        }
    }

    #[test]
    fn zero_means_every_byte() {
        for len in 0..40 {
            let mut bytes = vec![0; len];
            assert!(all_zero(&bytes));
            for at in 0..len {
                bytes[at] = 1;
                assert!(!all_zero(&bytes), "{len} {at}");
                bytes[at] = 0;
            }
        }
    }
}
