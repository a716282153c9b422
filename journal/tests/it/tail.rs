//! The end of the journal after a crash: what is cut, what is refused, what is reported. RULINGS 6, 9.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use opjournal_journal::own::{CutFinding, EpochReason, TAIL_CUT};
use opjournal_journal::verify::{Integrity, verify};
use opjournal_journal::vfs::Vfs;
use opjournal_journal::{ASIDE_DIR, Cleanness, Mark, OpenError};
use protocol::ids::{BootId, Seq};

use crate::disk::Disk;
use crate::support::{BOOT, Home, OTHER_BOOT, SAID, say};

/// A home on a disk in memory.
pub(crate) fn in_memory() -> (Home, Disk) {
    let disk = Disk::default();
    let mut home = Home::small_segments();
    home.dir = PathBuf::from("/home/journal");
    home.vfs = Arc::new(disk.clone());
    (home, disk)
}

impl Home {
    pub(crate) fn on(&self, disk: &Disk) -> Self {
        let mut home = Self::new();
        home.options = self.options.clone();
        home.dir.clone_from(&self.dir);
        home.vfs = Arc::new(disk.clone());
        home
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(crate) fn integrity(&self, boot: BootId) -> Integrity {
        verify(self.vfs.as_ref(), &self.dir, boot, &mut |_, _| {}).expect("a verdict").integrity
    }

    fn mark(&self, disk: &Disk) -> Mark {
        Mark::decode(&disk.bytes(&self.path("lock"))).expect("a mark")
    }

    fn set_mark(&self, disk: &Disk, mark: &Mark) {
        disk.set_bytes(&self.path("lock"), &mark.encode());
    }
}

/// What the lock file says when the journal is opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Clean,
    Dirty,
    Missing,
    Garbage,
    OtherBoot,
}

const ALL: [Says; 5] = [Says::Clean, Says::Dirty, Says::Missing, Says::Garbage, Says::OtherBoot];

/// How the bytes of the last block are broken at `at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Breakage {
    Truncated,
    Zeroed,
    Garbled,
    Duplicated,
}

const BREAKAGES: [Breakage; 4] =
    [Breakage::Truncated, Breakage::Zeroed, Breakage::Garbled, Breakage::Duplicated];

/// Three records, of which the last stands in the last block; the mark before it; the block's place.
struct Scene {
    home: Home,
    disk: Disk,
    before: Mark,
    after: Mark,
    path: PathBuf,
}

fn scene() -> Scene {
    let (home, disk) = in_memory();
    let (journal, _) = home.open().expect("a journal");
    say(&journal, b"one").expect("an answer");
    say(&journal, b"two").expect("an answer");
    let before = home.mark(&disk);
    say(&journal, b"three").expect("an answer");
    let after = home.mark(&disk);
    drop(journal);
    let path = home.path(home.segments().last().expect("a segment"));
    Scene { home, disk, before, after, path }
}

impl Scene {
    fn broken(&self, breakage: Breakage, at: usize) -> (Home, Disk) {
        let disk = self.disk.copy();
        let mut bytes = disk.bytes(&self.path);
        let (start, end) = (self.before.position.offset as usize, self.after.position.offset as usize);
        let at = start + at;
        match breakage {
            Breakage::Truncated => bytes.truncate(at),
            Breakage::Zeroed => bytes[at..end].fill(0),
            Breakage::Garbled => bytes[at..end].iter_mut().for_each(|byte| *byte ^= 0x5a),
            Breakage::Duplicated => bytes.copy_within(start..end, end + (at - start) / 8 * 8),
        }
        disk.set_bytes(&self.path, &bytes);
        (self.home.on(&disk), disk)
    }

    fn block_len(&self) -> usize {
        (self.after.position.offset - self.before.position.offset) as usize
    }
}

fn set(home: &Home, disk: &Disk, says: Says, mark: &Mark) {
    match says {
        Says::Clean => home.set_mark(disk, &Mark { state: Cleanness::Clean, ..*mark }),
        Says::Dirty => home.set_mark(disk, &Mark { state: Cleanness::Dirty, ..*mark }),
        Says::Missing => disk.remove(&home.path("lock")).expect("a removal"),
        Says::Garbage => disk.set_bytes(&home.path("lock"), &[7; 96]),
        Says::OtherBoot => home.set_mark(disk, &Mark { boot_id: OTHER_BOOT, ..*mark }),
    }
}

const fn reason(says: Says) -> Option<EpochReason> {
    match says {
        Says::Clean => None,
        Says::Dirty => Some(EpochReason::DirtyMark),
        Says::Missing => Some(EpochReason::MarkMissing),
        Says::Garbage => Some(EpochReason::MarkUnreadable),
        Says::OtherBoot => Some(EpochReason::OtherBoot),
    }
}

fn texts(count: usize) -> Vec<Vec<u8>> {
    [&b"one"[..], b"two", b"three"][..count].iter().map(|text| text.to_vec()).collect()
}

/// Opens twice, appends in between and after, and checks that all of it is found.
fn assert_goes_on(home: &Home, kept: usize, what: &str) {
    let (journal, _) = home.open().unwrap_or_else(|error| panic!("{what}: {error}"));
    say(&journal, b"next").expect("an answer");
    drop(journal);
    let (journal, report) = home.open().expect("a journal");
    assert_eq!((report.new_epoch, report.cuts), (None, vec![]), "{what}: once was enough");
    say(&journal, b"last").expect("an answer");
    drop(journal);
    let mut want = texts(kept);
    want.extend([b"next".to_vec(), b"last".to_vec()]);
    assert_eq!(home.said(), Ok(want), "{what}");
    assert_eq!(home.integrity(BOOT), Integrity::Intact, "{what}");
}

#[test]
fn a_block_that_was_never_acknowledged_is_cut_at_whatever_byte_it_was_torn() {
    let scene = scene();
    for breakage in BREAKAGES {
        for at in 0..scene.block_len() {
            for says in ALL {
                let what = format!("{breakage:?} at {at}, {says:?}");
                let (home, disk) = scene.broken(breakage, at);
                set(&home, &disk, says, &scene.before);
                let bytes = disk.bytes(&scene.path);
                let whole =
                    bytes.starts_with(&scene.disk.bytes(&scene.path)[..scene.after.position.offset as usize]);
                let start = if whole { scene.after } else { scene.before }.position.offset as usize;
                let left = bytes.get(start..).unwrap_or_default().iter().any(|byte| *byte != 0);
                let (journal, report) = home.open().unwrap_or_else(|error| panic!("{what}: {error}"));
                drop(journal);
                // A whole block beyond a clean mark: somebody wrote without saying so.
                let why =
                    if whole && says == Says::Clean { Some(EpochReason::DirtyMark) } else { reason(says) };
                assert_eq!(report.new_epoch, why, "{what}");
                assert_eq!(report.cuts.len(), usize::from(left), "{what}");
                for cut in &report.cuts {
                    assert_eq!(cut.what.offset as usize, start, "{what}");
                    let copy = disk.bytes(&home.dir.join(ASIDE_DIR).join(&cut.copy));
                    assert_eq!(copy, bytes[start..start + cut.what.bytes as usize], "{what}: a copy is kept");
                    if says == Says::Clean && !whole {
                        assert_eq!(cut.what.finding, CutFinding::Stray, "{what}");
                    }
                }
                let own = home.kinds().iter().filter(|kind| **kind == TAIL_CUT).count();
                assert_eq!(own, usize::from(left), "{what}: the cut is journalled");
                assert_goes_on(&home, if whole { 3 } else { 2 }, &what);
            }
        }
    }
}

#[test]
fn an_acknowledged_block_that_a_mark_reaches_is_damage_and_nothing_is_changed() {
    let scene = scene();
    for breakage in BREAKAGES {
        for at in 0..scene.block_len() {
            for says in [Says::Clean, Says::Dirty] {
                let what = format!("{breakage:?} at {at}, {says:?}");
                let (home, disk) = scene.broken(breakage, at);
                set(&home, &disk, says, &scene.after);
                let before = disk.bytes(&scene.path);
                let unchanged = before == scene.disk.bytes(&scene.path);
                let opened = home.open().map(|(_, report)| report.cuts.len());
                if breakage == Breakage::Duplicated {
                    // The block itself is whole; what follows it is cut.
                    assert_eq!(opened, Ok(1), "{what}");
                } else if unchanged {
                    assert_eq!(opened, Ok(0), "{what}: the padding is zero already");
                } else {
                    let Err(OpenError::Damaged(damage)) = opened else { panic!("{what}: opened") };
                    let start = scene.before.position.offset;
                    assert_eq!((damage.offset, damage.first_lost), (start, Seq(3)), "{what}");
                    assert_eq!(disk.bytes(&scene.path), before, "{what}: nothing is changed");
                    assert_eq!(home.integrity(BOOT), Integrity::Damaged, "{what}");
                }
            }
        }
    }
}

#[test]
fn an_acknowledged_block_that_no_mark_reaches_is_cut_and_said_to_be_undecidable() {
    let scene = scene();
    for says in [Says::Missing, Says::Garbage, Says::OtherBoot] {
        for at in 0..scene.block_len() {
            let (home, disk) = scene.broken(Breakage::Garbled, at);
            set(&home, &disk, says, &scene.after);
            let want = if at >= 24 {
                (Integrity::CannotTell, CutFinding::Unprovable)
            } else {
                (Integrity::TornTail, CutFinding::Torn)
            };
            assert_eq!(home.integrity(BOOT), want.0, "{says:?} {at}");
            let (_, report) = home.open().expect("a journal");
            assert_eq!(
                report.cuts.iter().map(|cut| cut.what.finding).collect::<Vec<_>>(),
                [want.1],
                "{says:?} {at}"
            );
            assert_goes_on(&home, 2, &format!("{says:?} {at}"));
        }
    }
}

#[test]
fn a_flipped_bit_in_the_header_of_the_last_block_is_undecidable_too() {
    let scene = scene();
    for bit in 0..80 * 8 {
        let disk = scene.disk.copy();
        disk.flip(&scene.path, scene.before.position.offset as usize * 8 + bit);
        let home = scene.home.on(&disk);
        disk.remove(&home.path("lock")).expect("a removal");
        assert_eq!(home.integrity(BOOT), Integrity::CannotTell, "bit {bit}");
    }
}

#[test]
fn damage_before_the_last_block_is_never_cut_whatever_the_mark_says() {
    let scene = scene();
    let start = 128;
    for at in start..scene.before.position.offset as usize {
        for says in ALL {
            let disk = scene.disk.copy();
            disk.flip(&scene.path, at * 8);
            let home = scene.home.on(&disk);
            set(&home, &disk, says, &scene.after);
            let opened = home.open().map(|_| ());
            assert!(matches!(opened, Err(OpenError::Damaged(_))), "{at} {says:?}: {opened:?}");
            assert_eq!(home.integrity(BOOT), Integrity::Damaged, "{at} {says:?}");
        }
    }
}

#[test]
fn a_whole_block_that_nobody_vouches_for_is_kept_and_a_new_epoch_begins() {
    let scene = scene();
    for says in [Says::Dirty, Says::Missing, Says::Garbage, Says::OtherBoot] {
        let disk = scene.disk.copy();
        let home = scene.home.on(&disk);
        set(&home, &disk, says, &scene.before);
        let reader = home.reader();
        let info = reader.info().expect("info");
        let seen: Vec<_> =
            reader.from(Seq(0)).expect("records").map(|record| record.expect("a record").seq).collect();
        if says == Says::Dirty {
            assert_eq!(
                (info.confirmed, info.next_seq, seen.len()),
                (true, Seq(3), 3),
                "readers stop at the mark"
            );
        } else {
            assert_eq!((info.confirmed, info.next_seq, seen.len()), (false, Seq(4), 4), "{says:?}");
        }
        let (journal, report) = home.open().expect("a journal");
        assert_eq!((report.new_epoch, report.epoch.0), (reason(says), 2), "{says:?}");
        drop(journal);
        assert_goes_on(&home, 3, &format!("{says:?}"));
        assert_eq!(home.kinds().iter().filter(|kind| **kind != SAID).count(), 2);
    }
}

#[test]
fn a_running_process_recovers_when_it_finds_that_another_died_in_a_commit() {
    for torn in [false, true] {
        let (home, disk) = in_memory();
        let (one, _) = home.open().expect("a journal");
        say(&one, b"one").expect("an answer");
        let mark = home.mark(&disk);
        let (two, _) = home.open().expect("a journal");
        say(&two, b"two").expect("an answer");
        drop(two);
        let path = home.path(&home.segments()[0]);
        if torn {
            disk.flip(&path, (home.mark(&disk).position.offset as usize - 1) * 8);
        }
        home.set_mark(&disk, &Mark { state: Cleanness::Dirty, ..mark });
        assert_eq!(say(&one, b"three"), Ok(Seq(4)), "after what recovery journalled");
        let want: &[&[u8]] = if torn { &[b"one", b"three"] } else { &[b"one", b"two", b"three"] };
        assert_eq!(crate::support::said(&one), want, "{torn}");
        assert_eq!(home.said().expect("records"), want, "{torn}");
        assert_eq!(home.integrity(BOOT), Integrity::Intact);
    }
}

#[test]
fn segments_that_are_gone_are_missed_when_the_mark_or_a_later_one_knows_of_them() {
    let (home, disk) = in_memory();
    let (journal, _) = home.open().expect("a journal");
    for n in 0..60_u8 {
        say(&journal, &[n]).expect("an answer");
    }
    drop(journal);
    let names = home.segments();
    assert!(names.len() > 3);
    for gone in &names {
        let disk = disk.copy();
        let home = home.on(&disk);
        disk.remove(&home.path(gone)).expect("a removal");
        assert!(matches!(home.open(), Err(OpenError::Damaged(_))), "{gone}");
        assert_eq!(home.integrity(BOOT), Integrity::Damaged, "{gone}");
    }
    for name in &names {
        disk.remove(Path::new(&home.path(name))).expect("a removal");
    }
    assert!(matches!(home.open(), Err(OpenError::Damaged(_))));
    assert_eq!(home.integrity(BOOT), Integrity::Damaged);
}
