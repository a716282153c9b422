//! Every flipped bit is found and located, and none is written over. Issue A, 6.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use opjournal_journal::own::EpochReason;
use opjournal_journal::verify::{FindingKind, Integrity, verify};
use opjournal_journal::{OpenError, Reader};
use protocol::ids::Seq;

use crate::disk::Disk;
use crate::support::{BOOT, Command, Home, Memory, key_of, say};
use crate::tail::in_memory;

fn several_segments() -> (Home, Disk) {
    let (home, disk) = in_memory();
    let (journal, _) = home.open().expect("a journal");
    for n in 0.. {
        say(&journal, &[n; 9]).expect("an answer");
        if home.segments().len() == 3 {
            break;
        }
    }
    drop(journal);
    (home, disk)
}

fn check(home: &Home, disk: &Disk, path: &Path, bit: usize) {
    let disk = disk.copy();
    disk.flip(path, bit);
    let home = home.on(&disk);
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
    let what = format!("{name} bit {bit}");

    let verdict = verify(home.vfs.as_ref(), &home.dir, BOOT, &mut |_, _| {}).expect("a verdict");
    let finding = verdict.findings.iter().find(|finding| finding.file == name);
    let finding = finding.unwrap_or_else(|| panic!("{what}: {:?}", verdict.findings));
    assert!(finding.offset as usize <= bit / 8, "{what}: {finding:?}");

    let before: Vec<_> = disk.names().iter().map(|path| disk.bytes(path)).collect();
    match home.open().map(|(_, report)| report) {
        Err(OpenError::Damaged(damage)) => {
            assert_eq!(verdict.integrity, Integrity::Damaged, "{what}");
            assert_eq!(damage.file, name, "{what}");
            assert!(damage.offset as usize <= bit / 8, "{what}: {damage:?}");
            let after: Vec<_> = disk.names().iter().map(|path| disk.bytes(path)).collect();
            assert_eq!(before, after, "{what}: nothing is changed");
        }
        Err(other) => panic!("{what}: {other}"),
        Ok(report) if name == "lock" => {
            assert_eq!(finding.kind, FindingKind::MarkUnreadable, "{what}");
            assert_eq!(report.new_epoch, Some(EpochReason::MarkUnreadable), "{what}: not silently");
        }
        Ok(report) => {
            // A stray bit after the end: everything is there, and it is said.
            assert!(matches!(finding.kind, FindingKind::Tail(_)), "{what}: opened silently");
            assert_eq!(report.cuts.len(), 1, "{what}");
        }
    }
    // Whatever is damaged, what is before it can be read, and the reader says so too.
    let first_lost = finding.first_lost.map_or(0, |seq| seq.0);
    if let Ok(reader) = Reader::open(Arc::clone(&home.vfs), &home.dir, BOOT) {
        let records = reader.from(Seq(0)).expect("records");
        assert!(records.map_while(Result::ok).count() as u64 >= first_lost, "{what}");
    }
}

#[test]
fn every_flipped_bit_of_every_file_is_found_where_it_is_and_never_opened_silently() {
    let (home, disk) = several_segments();
    let mut flips: Vec<(PathBuf, usize)> = Vec::new();
    for path in disk.names() {
        let bits = disk.bytes(&path).len() * 8;
        flips.extend((0..bits).map(|bit| (path.clone(), bit)));
    }
    assert!(flips.len() > 20_000);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (home, disk, flips) = (&home, &disk, &flips);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                flips
                    .iter()
                    .skip(thread)
                    .step_by(threads)
                    .for_each(|(path, bit)| check(home, disk, path, *bit));
            });
        }
    });
}

#[test]
fn closed_segments_beyond_the_limit_are_checked_when_they_are_used() {
    let (mut home, disk) = several_segments();
    home.options.check_closed_bytes = 0;
    let path = home.path(&home.segments()[0]);
    let len = disk.bytes(&path).len();
    // In the key table, which is at the end.
    disk.flip(&path, (len - 20) * 8);
    let opened = opjournal_journal::open(Arc::clone(&home.vfs), &home.dir, home.options.clone());
    let opened = opened.expect("the open segment is whole");
    let next_seq = opened.next_seq();
    let journal = opened.start(next_seq, Memory::default()).expect("a start");
    let ask = Command::Ask(Box::new(|_, commit| {
        assert!(commit.lookup(&key_of(b"x")).is_err(), "no proof of absence from a damaged table");
    }));
    journal.submit(ask).expect("an answer").expect("an answer");
}
