//! A disk that fails or is full. RULINGS 5, 7.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use opjournal_journal::verify::Integrity;
use opjournal_journal::vfs::fault::{Event, FaultVfs, Hook, Operation, When, fail_nth};
use opjournal_journal::vfs::{FileSystem, Vfs};
use opjournal_journal::{AppendError, OpenError};
use protocol::ids::Seq;

use crate::disk::Disk;
use crate::support::{BOOT, Command, Home, draft, said, say};
use crate::tail::in_memory;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn is_segment(event: &Event<'_>) -> bool {
    // A segment that was made here was opened by the name it had in the making.
    event.path.to_str().is_some_and(|path| path.contains(".seg"))
}

fn is_sync(event: &Event<'_>) -> bool {
    is_segment(event) && event.operation == Operation::Sync
}

/// A hook that fails what it is asked about while the switch is on.
fn switched(errno: i32, matches: fn(&Event<'_>) -> bool) -> (Arc<AtomicBool>, Hook) {
    let on = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&on);
    let hook: Hook = Arc::new(move |event| {
        let hit = event.when == When::Before && switch.load(Ordering::SeqCst) && matches(event);
        if hit { Err(io::Error::from_raw_os_error(errno)) } else { Ok(()) }
    });
    (on, hook)
}

fn faulty(disk: &Disk, hook: Hook) -> Arc<dyn Vfs> {
    Arc::new(FaultVfs::new(Arc::new(disk.clone()), hook))
}

#[test]
fn a_failed_write_or_sync_fails_every_waiter_is_not_retried_and_nothing_later_is_accepted() {
    for writes in [false, true] {
        let (home, disk) = in_memory();
        let syncs = Arc::new(AtomicU64::new(0));
        let (on, fail) = if writes {
            switched(EIO, |event| is_segment(event) && matches!(event.operation, Operation::Write { .. }))
        } else {
            switched(EIO, is_sync)
        };
        let (count, switch) = (Arc::clone(&syncs), Arc::clone(&on));
        let hook: Hook = Arc::new(move |event| {
            if switch.load(Ordering::SeqCst) && is_segment(event) && event.when == When::Before {
                count.fetch_add(1, Ordering::SeqCst);
            }
            fail(event)
        });
        let (journal, _) = home.open_on(&faulty(&disk, hook)).expect("a journal");
        say(&journal, b"before").expect("an answer");
        on.store(true, Ordering::SeqCst);
        std::thread::scope(|scope| {
            for n in 0..8_u8 {
                let journal = &journal;
                scope.spawn(move || assert!(matches!(say(journal, &[n]), Err(AppendError::Poisoned(_)))));
            }
        });
        let tried = syncs.load(Ordering::SeqCst);
        assert!(tried <= 2, "{tried} operations on the segment after the first failure");
        on.store(false, Ordering::SeqCst);
        for _ in 0..3 {
            assert!(
                matches!(say(&journal, b"later"), Err(AppendError::Poisoned(_))),
                "the disk is well, the journal is not"
            );
        }
        assert!(matches!(journal.query(|memory| memory.applied), Err(AppendError::Poisoned(_))));
        assert_eq!(syncs.load(Ordering::SeqCst), tried, "nothing was retried");
        assert!(matches!(journal.close(), Err(AppendError::Poisoned(_))));

        let (journal, report) = home.open().expect("reopening brings it back");
        assert_eq!(report.epoch.0, 2, "the mark stayed dirty");
        say(&journal, b"after").expect("an answer");
        let texts = said(&journal);
        assert_eq!(
            (texts.first().map(Vec::as_slice), texts.last().map(Vec::as_slice)),
            (Some(&b"before"[..]), Some(&b"after"[..]))
        );
        drop(journal);
        assert_eq!(home.integrity(BOOT), Integrity::Intact);
    }
}

#[test]
fn a_failure_of_any_single_operation_loses_nothing_acknowledged_and_acknowledges_nothing_lost() {
    for errno in [EIO, ENOSPC] {
        for nth in 0.. {
            let (home, disk) = in_memory();
            let hit = Arc::new(AtomicBool::new(false));
            let (fail, seen) =
                (fail_nth(nth, errno, |event| event.operation != Operation::Read), Arc::clone(&hit));
            let hook: Hook =
                Arc::new(move |event| fail(event).inspect_err(|_| seen.store(true, Ordering::SeqCst)));
            let mut acknowledged = Vec::new();
            if let Ok((journal, _)) = home.open_on(&faulty(&disk, hook)) {
                for n in 0..30_u8 {
                    if say(&journal, &[n]).is_ok() {
                        acknowledged.push(vec![n]);
                    }
                }
            }
            let (journal, _) = home.open().unwrap_or_else(|error| panic!("{errno} {nth}: {error}"));
            let mut found = said(&journal);
            // What failed may be there all the same, as the error says.
            found.retain(|text| acknowledged.contains(text));
            assert_eq!(found, acknowledged, "{errno} {nth}");
            say(&journal, b"after").expect("an answer");
            drop(journal);
            assert_eq!(home.integrity(BOOT), Integrity::Intact, "{errno} {nth}");
            if !hit.load(Ordering::SeqCst) {
                assert!(nth > 30, "{nth} operations were tried");
                break;
            }
        }
    }
}

/// A disk with room for so many bytes in segments.
fn full_beyond(bytes: Arc<AtomicU64>) -> Hook {
    Arc::new(move |event| {
        let end = match event.operation {
            Operation::Write { offset, bytes } => offset + bytes,
            Operation::Read
            | Operation::Sync
            | Operation::SetLen
            | Operation::Create
            | Operation::Rename
            | Operation::Remove
            | Operation::SyncDir => 0,
        };
        let full =
            event.when == When::Before && end > bytes.load(Ordering::SeqCst) && !event.path.ends_with("lock");
        if full { Err(io::Error::from_raw_os_error(ENOSPC)) } else { Ok(()) }
    })
}

#[test]
fn a_full_disk_refuses_what_does_not_fit_and_still_takes_what_space_was_reserved_for() {
    let (mut home, disk) = in_memory();
    home.options.segment_bytes_max = 64 << 20;
    let limit = Arc::new(AtomicU64::new(u64::MAX));
    let (journal, _) = home.open_on(&faulty(&disk, full_beyond(Arc::clone(&limit)))).expect("a journal");
    let reserve = 4_096;
    let reserving = Command::Ask(Box::new(move |memory, _| memory.reserve = reserve));
    journal.submit(reserving).expect("an answer").expect("an answer");
    say(&journal, b"first").expect("an answer");
    limit.store(0, Ordering::SeqCst);
    let filled = disk.bytes(&home.path(&home.segments()[0])).len() as u64;
    limit.store(filled, Ordering::SeqCst);

    // New work is refused by the machine's rule once it would eat into the reserve.
    let mut taken = 0_u64;
    loop {
        let (send, receive) = std::sync::mpsc::channel();
        let ask = Command::Ask(Box::new(move |memory, commit| {
            let draft = draft(&[1; 1000]);
            let need = 1_200 + memory.reserve;
            let room =
                commit.ensure_space(need).expect("the disk is only full") && commit.space_left() >= need;
            if room {
                let seq = commit.push(draft).expect("there is room");
                memory.said.push((seq, vec![1; 1000]));
            }
            send.send(room).expect("somebody listens");
        }));
        journal.submit(ask).expect("an answer").expect("an answer");
        if !receive.recv().expect("an answer") {
            break;
        }
        taken += 1;
    }
    assert!(taken > 10);
    // The outcomes that space was reserved for are taken, and then really nothing more.
    for n in 0..3_u8 {
        say(&journal, &[n; 800]).expect("reserved");
    }
    assert_eq!(say(&journal, &[9; 10_000]), Err(AppendError::DiskFull));
    assert_eq!(say(&journal, &[9; 10_000]), Err(AppendError::DiskFull), "again, and nothing is poisoned");
    // Room again.
    limit.store(u64::MAX, Ordering::SeqCst);
    say(&journal, &[9; 10_000]).expect("an answer");
    let texts = said(&journal);
    drop(journal);
    assert_eq!(home.said(), Ok(texts));
    assert_eq!(home.integrity(BOOT), Integrity::Intact);
}

#[test]
fn a_rotation_that_finds_no_room_for_the_next_segment_stays_in_this_one() {
    let (home, disk) = in_memory();
    let (on, hook) = switched(ENOSPC, |event| event.operation == Operation::Create);
    let (journal, _) = home.open_on(&faulty(&disk, hook)).expect("a journal");
    on.store(true, Ordering::SeqCst);
    for n in 0..60_u8 {
        say(&journal, &[n]).expect("an answer");
    }
    assert_eq!(home.segments().len(), 1);
    on.store(false, Ordering::SeqCst);
    for n in 60..62_u8 {
        say(&journal, &[n]).expect("an answer");
    }
    assert_eq!(home.segments().len(), 2);
    drop(journal);
    assert_eq!(home.said().expect("records").len(), 62);
    assert_eq!(home.integrity(BOOT), Integrity::Intact);
    assert_eq!(said(&home.open().expect("a journal").0).len(), 62);
}

/// Runs `act` with a hook that ends the process, as far as the disk can see, at the `nth` change. Says whether it came
/// so far.
fn dies_at(disk: &Disk, nth: u64, when: When, act: impl FnOnce(Arc<dyn Vfs>)) -> bool {
    let (seen, dead) = (AtomicU64::new(0), Arc::new(AtomicBool::new(false)));
    let died = Arc::clone(&dead);
    let hook: Hook = Arc::new(move |event| {
        if event.operation == Operation::Read {
            return Ok(());
        }
        if event.when == when && seen.fetch_add(1, Ordering::SeqCst) == nth {
            died.store(true, Ordering::SeqCst);
        }
        // The dead change nothing any more.
        if died.load(Ordering::SeqCst) { Err(io::Error::from_raw_os_error(EIO)) } else { Ok(()) }
    });
    act(faulty(disk, hook));
    dead.load(Ordering::SeqCst)
}

#[test]
fn a_process_may_die_at_any_change_of_a_rotation_and_again_at_any_change_of_the_recovery() {
    let (home, disk) = in_memory();
    let (journal, _) = home.open().expect("a journal");
    let mut texts = Vec::new();
    // Up to just before the second segment.
    while home.segments().len() < 2 {
        let next = disk.copy();
        let text = vec![texts.len() as u8];
        say(&journal, &text).expect("an answer");
        if home.segments().len() == 2 {
            drop(journal);
            return at_every_step(&home.on(&next), &next, &texts, &text);
        }
        texts.push(text);
    }
}

fn at_every_step(home: &Home, disk: &Disk, before: &[Vec<u8>], text: &[u8]) {
    let mut points = 0;
    for when in [When::Before, When::After] {
        for nth in 0.. {
            let first = disk.copy();
            let mut acknowledged = false;
            let died = dies_at(&first, nth, when, |vfs| {
                if let Ok((journal, _)) = home.open_on(&vfs) {
                    acknowledged = say(&journal, text).is_ok();
                }
            });
            if !died {
                break;
            }
            points += 1;
            for again in 0.. {
                let second = first.copy();
                let died = dies_at(&second, again, when, |vfs| drop(home.open_on(&vfs)));
                let home = home.on(&second);
                let what = format!("{when:?} {nth}, then {again}");
                let (journal, _) = home.open().unwrap_or_else(|error| panic!("{what}: {error}"));
                let found = said(&journal);
                let (sure, rest) = found.split_at(before.len());
                assert_eq!(sure, before, "{what}");
                assert!(rest.len() <= 1 && (!acknowledged || rest == [text.to_vec()]), "{what}");
                say(&journal, b"after").expect("an answer");
                drop(journal);
                let (journal, report) = home.open().expect("a journal");
                assert_eq!((report.new_epoch, said(&journal).len()), (None, found.len() + 1), "{what}");
                assert_eq!(home.integrity(BOOT), Integrity::Intact, "{what}");
                if !died {
                    break;
                }
            }
        }
    }
    assert!(points > 15, "{points} points");
}

#[test]
fn a_cut_is_journalled_once_whatever_change_its_recovery_dies_at() {
    let (home, disk) = in_memory();
    let (journal, _) = home.open().expect("a journal");
    say(&journal, b"one").expect("an answer");
    let end = disk.bytes(&home.path("lock"))[16..24].to_vec();
    let end = u64::from_le_bytes(end.try_into().expect("eight bytes")) as usize;
    drop(journal);
    let path = home.path(&home.segments()[0]);
    let mut bytes = disk.bytes(&path);
    // More than what recovery journals in its place.
    bytes[end..end + 600].fill(0x77);
    disk.set_bytes(&path, &bytes);
    disk.remove(&home.path("lock")).expect("a removal");
    for when in [When::Before, When::After] {
        for nth in 0.. {
            let disk = disk.copy();
            let died = dies_at(&disk, nth, when, |vfs| drop(home.open_on(&vfs)));
            let home = home.on(&disk);
            let (journal, _) = home.open().expect("a journal");
            drop(journal);
            let cuts = home.kinds().iter().filter(|kind| **kind == opjournal_journal::own::TAIL_CUT).count();
            assert_eq!(cuts, 1, "{when:?} {nth}");
            assert_eq!(home.said(), Ok(vec![b"one".to_vec()]));
            assert_eq!(home.integrity(BOOT), Integrity::Intact);
            if !died {
                break;
            }
        }
    }
}

#[test]
fn a_lock_that_is_held_too_long_is_busy_and_nothing_is_written() {
    let (mut home, disk) = in_memory();
    let (one, _) = home.open().expect("a journal");
    home.options.lock_wait = protocol::time::Millis(1);
    let (two, _) = home.open().expect("a journal");
    let holder = disk.open(&home.path("lock"), opjournal_journal::vfs::Mode::ReadWrite).expect("a file");
    assert!(holder.try_lock().expect("a lock"));
    let before = disk.bytes(&home.path(&home.segments()[0]));
    assert!(matches!(say(&two, b"x"), Err(AppendError::Busy { .. })));
    assert!(matches!(home.open(), Err(OpenError::Busy { .. })));
    assert_eq!(two.query(|memory| memory.said.len()), Ok(0), "asking takes no lock");
    assert_eq!(disk.bytes(&home.path(&home.segments()[0])), before);
    drop(holder);
    assert_eq!(say(&two, b"x"), Ok(Seq(1)));
    assert_eq!(said(&one), [b"x"]);
}

#[test]
fn a_network_file_system_is_refused_for_writing_and_read() {
    let (home, disk) = in_memory();
    let (journal, _) = home.open().expect("a journal");
    say(&journal, b"x").expect("an answer");
    drop(journal);
    let vfs = FaultVfs::new(Arc::new(disk), Arc::new(|_| Ok(()))).on_file_system(FileSystem::Network("NFS"));
    let vfs: Arc<dyn Vfs> = Arc::new(vfs);
    assert_eq!(home.open_on(&vfs).map(|_| ()), Err(OpenError::NetworkFileSystem { name: "NFS" }));
    assert_eq!(home.said().expect("records").len(), 1);
}

#[test]
fn a_read_error_is_an_error_and_never_the_end() {
    let (home, disk) = in_memory();
    let (journal, _) = home.open().expect("a journal");
    for n in 0..60_u8 {
        say(&journal, &[n]).expect("an answer");
    }
    drop(journal);
    let before: Vec<_> = disk.names().iter().map(|path| disk.bytes(path)).collect();
    for nth in 0.. {
        let hit = Arc::new(AtomicBool::new(false));
        let (fail, seen) = (fail_nth(nth, EIO, |event| event.operation == Operation::Read), Arc::clone(&hit));
        let hook: Hook =
            Arc::new(move |event| fail(event).inspect_err(|_| seen.store(true, Ordering::SeqCst)));
        let opened = home.open_on(&faulty(&disk, hook)).map(|_| ());
        if !hit.load(Ordering::SeqCst) {
            break;
        }
        assert!(matches!(opened, Err(OpenError::Io(_))), "{nth}: {opened:?}");
        let after: Vec<_> = disk.names().iter().map(|path| disk.bytes(path)).collect();
        assert_eq!(after, before, "{nth}: nothing is changed");
    }
}

#[test]
fn recovery_syncs_what_it_keeps_before_it_writes_and_a_clean_opening_writes_nothing() {
    let (home, disk) = in_memory();
    let (journal, _) = home.open().expect("a journal");
    say(&journal, b"one").expect("an answer");
    drop(journal);
    for clean in [true, false] {
        if !clean {
            disk.remove(&home.path("lock")).expect("a removal");
        }
        let seen = Arc::new(Mutex::new(Vec::new()));
        let events = Arc::clone(&seen);
        let hook: Hook = Arc::new(move |event| {
            if event.operation != Operation::Read && event.when == When::After && is_segment(event) {
                events.lock().expect("events").push(event.operation);
            }
            Ok(())
        });
        drop(home.open_on(&faulty(&disk, hook)).expect("a journal"));
        let seen = seen.lock().expect("events");
        if clean {
            assert!(seen.is_empty(), "{seen:?}");
        } else {
            assert_eq!(seen.first(), Some(&Operation::Sync), "{seen:?}");
            assert!(matches!(seen.get(1), Some(Operation::Write { .. })), "{seen:?}");
        }
    }
}
