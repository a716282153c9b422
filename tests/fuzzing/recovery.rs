//! A journal's folder after anything happened to its files.

use std::path::{Path, PathBuf};

use journal::verify::{Integrity, verify};
use journal::vfs::Vfs as _;
use journal::{Mark, Record};
use protocol::ids::Seq;

use super::base::{BOOT, DIR, base, broken, looks, open, records, say};
use super::disk::Disk;
use super::input::Input;
use crate::{Judged, rule};

/// Most changes that one input makes.
const CHANGES_MAX: usize = 24;

/// Whatever happened to the files: nothing panics; what was acknowledged is there, or opening says that it is not; what
/// opens takes another record and keeps it. Each change is some bytes of the input: which file, what, where.
///
/// # Errors
/// The rule that was broken.
pub fn recovery(bytes: &[u8]) -> Judged {
    let (base, whole) = base()?;
    let disk = base.copy();
    let mut input = Input::new(bytes);
    for _ in 0..CHANGES_MAX {
        if input.is_empty() {
            break;
        }
        change(&disk, base, &mut input);
    }
    looks(&disk)?;
    // A mark that another one replaced, or none, cannot vouch for what the base held.
    let lock = Path::new(DIR).join("lock");
    let vouched = Mark::decode(&disk.bytes(&lock)) == Mark::decode(&base.bytes(&lock));
    let found = records(&disk);
    rule(whole.starts_with(&found), || "a reader shows records that were never written".to_owned())?;
    if let Ok(verdict) = verify(&disk, Path::new(DIR), BOOT, &mut |_, _| {})
        && vouched
        && verdict.integrity != Integrity::Damaged
    {
        rule(found.len() == whole.len(), || {
            format!("{:?}, and {} of {} records", verdict.integrity, found.len(), whole.len())
        })?;
    }
    opens(&disk, whole, vouched)
}

/// Opens for writing, twice, with a record in between.
fn opens(disk: &Disk, whole: &[Record], vouched: bool) -> Judged {
    let before: Vec<_> = segments(disk);
    let (journal, report) = match open(disk) {
        Ok(opened) => opened,
        Err(_) => {
            // Refused: then no segment was changed.
            return rule(segments(disk) == before, || "a refused opening changed a segment".to_owned());
        }
    };
    let said = say(&journal, b"another").map_err(broken("appending after opening"))?;
    journal.close().map_err(broken("closing"))?;
    let after = records(disk);
    let kept = after.iter().zip(whole).take_while(|(after, before)| after == before).count();
    if kept < whole.len() {
        rule(!vouched, || format!("{kept} of {} records, and opened all the same", whole.len()))?;
        // Without a mark that reaches it an end that is missing cannot be seen; it is never taken for granted, though.
        rule(report.created || report.new_epoch.is_some(), || {
            format!("{kept} of {} records, and opened as if nothing were", whole.len())
        })?;
    }
    rule(after.last().is_some_and(|last| last.seq == said), || format!("record {said} is not there"))?;
    let (journal, report) = open(disk).map_err(broken("opening a second time"))?;
    rule(report.new_epoch.is_none() && report.cuts.is_empty(), || {
        format!("recovery is not done after the first time: {report:?}")
    })?;
    let next = say(&journal, b"more").map_err(broken("appending a second time"))?;
    rule(next == said.next(), || format!("{next} after {said}"))?;
    journal.close().map_err(broken("closing a second time"))?;
    let more = records(disk);
    rule(more.starts_with(&after) && more.len() == after.len() + 1, || {
        "the second time lost records".to_owned()
    })?;
    rule(more.iter().zip(0..).all(|(record, n)| record.seq == Seq(n)), || "a gap".to_owned())?;
    looks(disk)
}

fn segments(disk: &Disk) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = disk.paths().into_iter().filter(|path| path.extension().is_some_and(|end| end == "seg"));
    paths.map(|path| (path.clone(), disk.bytes(&path))).collect()
}

/// One change of one file.
fn change(disk: &Disk, base: &Disk, input: &mut Input<'_>) {
    let paths = disk.paths();
    let what = input.byte();
    let Some(path) = paths.get(input.below(paths.len())) else { return };
    let mut bytes = disk.bytes(path);
    let at = input.below(bytes.len());
    match what % 12 {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << (input.byte() % 8);
            }
        }
        1 => bytes.truncate(at),
        2 => bytes[at..].fill(0),
        3 => {
            let new = input.bytes(usize::from(what >> 4));
            let end = bytes.len().min(at + new.len());
            bytes[at..end].copy_from_slice(&new[..end - at]);
        }
        4 => bytes.extend_from_slice(input.bytes(usize::from(what >> 4))),
        5 => bytes.resize(bytes.len() + usize::from(input.byte()) * 16, 0),
        // A part of a file again, or in another's place.
        6 => {
            let len = input.below(bytes.len() - at + 1);
            let part = bytes[at..at + len].to_vec();
            bytes.extend_from_slice(&part);
        }
        7 => {
            let other =
                paths.get(input.below(paths.len())).map(|other| base.bytes(other)).unwrap_or_default();
            let (from, len) = (input.below(other.len()), input.below(other.len()));
            let part = &other[from..other.len().min(from + len)];
            let end = bytes.len().min(at + part.len());
            bytes[at..end].copy_from_slice(&part[..end - at]);
        }
        8 => bytes.drain(at..(at + usize::from(input.byte())).min(bytes.len())).for_each(drop),
        9 => {
            // A file that is gone is like one that never was.
            let _ = disk.remove(path);
            return;
        }
        10 => {
            if let Some(other) = paths.get(input.below(paths.len())) {
                let _ = disk.rename(path, other);
            }
            return;
        }
        _ => {
            let name = format!("{:020}.seg", input.byte());
            disk.put(&Path::new(DIR).join(name), bytes);
            return;
        }
    }
    disk.put(path, bytes);
}
