//! A segment's bytes after its header, and what else the journal's format decodes by itself.

use std::path::PathBuf;

use journal::Mark;
use journal::format::segment_header::SegmentHeader;
use journal::format::{Field, block as layout};
use journal::vfs::Vfs as _;

use super::base::{BOOT, DIR, base, broken, looks, open, records, say};
use super::disk::Disk;
use super::input::Input;
use crate::{Judged, Violation, rule};

/// Any bytes where blocks are expected never panic, are never read beyond the limits, and become records only if they are
/// a block; what opens for writing takes another record and still has those before. The first byte says whether the
/// first block's place, length and checksum are put right, so that what is inside gets looked at.
///
/// # Errors
/// The rule that was broken.
pub fn block(bytes: &[u8]) -> Judged {
    alone(bytes)?;
    let mut input = Input::new(bytes);
    let mode = input.byte();
    let disk = segment(input.rest(), mode)?;
    looks(&disk)?;
    let before = records(&disk);
    let verdict =
        journal::verify::verify(&disk, DIR.as_ref(), BOOT, &mut |_, _| {}).map_err(broken("verifying"))?;
    rule(verdict.records == before.len() as u64, || {
        format!("verify counts {} records, a reader {}", verdict.records, before.len())
    })?;
    let copy = disk.copy();
    let Ok((journal, _)) = open(&copy) else { return Ok(()) };
    let seq = say(&journal, b"another").map_err(broken("appending after opening"))?;
    journal.close().map_err(broken("closing"))?;
    let after = records(&copy);
    rule(after.starts_with(&before), || "opening lost records that could be read".to_owned())?;
    let last = after.last().map(|record| (record.seq, record.payload.as_slice()));
    rule(last == Some((seq, b"another")), || format!("the record after opening is not there: {last:?}"))?;
    looks(&copy)
}

/// The structures that are decoded by themselves survive it.
fn alone(bytes: &[u8]) -> Judged {
    if let Some(mark) = Mark::decode(bytes) {
        rule(mark.encode() == *bytes, || format!("{mark:?} has other bytes"))?;
    }
    if let Ok(header) = SegmentHeader::decode(bytes) {
        rule(SegmentHeader::decode(&header.encode()) == Ok(header.clone()), || {
            format!("{header:?} reads differently")
        })?;
    }
    Ok(())
}

/// A journal of one segment with these bytes for blocks, without a mark.
fn segment(content: &[u8], mode: u8) -> Result<Disk, Violation> {
    let (base, _) = base()?;
    let path = PathBuf::from(DIR).join("00000000000000000000.seg");
    let whole = base.bytes(&path);
    let header = SegmentHeader::decode(&whole).map_err(broken("the base's header"))?;
    let start = header.first_block() as usize;
    let mut bytes = whole[..start].to_vec();
    let mut block = content.to_vec();
    if mode & 1 == 1 {
        block.resize(block.len().max(layout::HEADER_BYTES).next_multiple_of(8), 0);
        put_right(&mut block, &whole[start..], &header, mode);
    }
    bytes.extend_from_slice(&block);
    // Zero space after it, or none.
    bytes.resize(bytes.len() + usize::from(mode >> 4) * 64, 0);
    let disk = base.copy();
    for other in disk.paths() {
        disk.remove(&other).map_err(broken("removing a file"))?;
    }
    disk.put(&path, bytes);
    Ok(disk)
}

/// Makes the block at the start of a segment one that belongs there, as far as `mode` says; its content stays.
fn put_right(block: &mut [u8], belongs: &[u8], header: &SegmentHeader, mode: u8) {
    let magic = if mode & 2 == 0 { layout::MAGIC } else { layout::TABLE_MAGIC };
    let len = block.len();
    put(block, "magic", &magic);
    put(block, "len", &(len as u32).to_le_bytes());
    for name in ["first_seq", "chain"] {
        let Field { offset, bytes, .. } = field(name);
        block[offset..offset + bytes].copy_from_slice(&belongs[offset..offset + bytes]);
    }
    if mode & 4 == 0 {
        put(block, "epoch", &1_u64.to_le_bytes());
        put(block, "synced", &0_u64.to_le_bytes());
        put(block, "zero", &0_u32.to_le_bytes());
    }
    let Field { offset, bytes, .. } = field("crc");
    let mut crc = Crc::new();
    crc.update(&header.journal_id.0);
    crc.update(&header.segment.to_le_bytes());
    crc.update(&block[..offset]);
    crc.update(&block[offset + bytes..]);
    put(block, "crc", &crc.value().to_le_bytes());
}

fn put(block: &mut [u8], name: &str, value: &[u8]) {
    let Field { offset, bytes, .. } = field(name);
    block[offset..offset + bytes].copy_from_slice(value);
}

fn field(name: &str) -> Field {
    let found = layout::FIELDS.iter().find(|field| field.name == name);
    *found.unwrap_or(&layout::FIELDS[0])
}

/// CRC-32C, bit by bit, so that the target does not share the code that it tests.
struct Crc(u32);

impl Crc {
    const fn new() -> Self {
        Self(!0)
    }

    fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 ^= u32::from(*byte);
            for _ in 0..8 {
                self.0 = (self.0 >> 1) ^ (0x82f6_3b78 & (self.0 & 1).wrapping_neg());
            }
        }
    }

    const fn value(&self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_is_put_right_is_taken() {
        let mut crc = Crc::new();
        crc.update(b"123456789");
        assert_eq!(crc.value(), 0xe306_9283);
        let (disk, found) = base().unwrap();
        let whole = disk.bytes(&PathBuf::from(DIR).join("00000000000000000000.seg"));
        let start = SegmentHeader::decode(&whole).unwrap().first_block() as usize;
        let Field { offset, .. } = field("len");
        let len = u32::from_le_bytes(whole[start + offset..start + offset + 4].try_into().unwrap()) as usize;
        let mut block = whole[start..start + len].to_vec();
        for name in ["magic", "crc", "chain", "len"] {
            let Field { offset, bytes, .. } = field(name);
            block[offset..offset + bytes].fill(0xff);
        }
        let rebuilt = segment(&block, 1).unwrap();
        assert_eq!(records(&rebuilt), found[..1]);
        assert_eq!(records(&segment(&block, 0).unwrap()), []);
    }
}
