//! What a journal does while nothing goes wrong: order, durability, look-ups, several processes, rotation.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use crate::support::{BOOT, Command, Home, SAID, draft, key_of, said, say};
use opjournal_journal::verify::{Integrity, verify};
use opjournal_journal::vfs::os::OsVfs;
use opjournal_journal::{Alignment, AppendError, BlockFault, LookupKey, OpenError, ReadError};
use protocol::ids::Seq;

fn texts(range: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    range.map(|n| format!("text {n}").into_bytes()).collect()
}

/// First sequence and count of each block of a segment with 8-byte alignment.
fn blocks(bytes: &[u8]) -> Vec<(u64, u32)> {
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let (mut found, mut at) = (Vec::new(), 128);
    while bytes[at..].starts_with(b"OPBK") {
        let first = u64::from_le_bytes(bytes[at + 16..at + 24].try_into().expect("eight bytes"));
        found.push((first, u32_at(at + 12)));
        at += u32_at(at + 4) as usize;
    }
    found
}

fn assert_intact(home: &Home) {
    let verdict = verify(&OsVfs, &home.dir, BOOT, &mut |_, _| {}).expect("a verdict");
    assert_eq!((verdict.integrity, &verdict.findings[..]), (Integrity::Intact, &[][..]));
}

#[test]
fn what_was_said_is_there_after_reopening_across_many_segments_and_alignments() {
    for align in [Alignment::B8, Alignment::B512, Alignment::B4096] {
        let mut home = Home::new();
        home.options.align = align;
        home.options.segment_bytes_max = 20_000;
        let (journal, report) = home.open().expect("a journal");
        assert!(report.created);
        for (n, text) in texts(0..200).iter().enumerate() {
            assert_eq!(say(&journal, text), Ok(Seq(n as u64 + 1)), "record 0 tells of the first epoch");
        }
        journal.close().expect("a close");
        assert!(home.segments().len() > 2);
        let (journal, report) = home.open().expect("a journal");
        assert_eq!((report.created, report.new_epoch, report.cuts), (false, None, vec![]));
        assert_eq!(said(&journal), texts(0..200));
        assert_eq!(home.said(), Ok(texts(0..200)));
        assert_intact(&home);
    }
}

#[test]
fn commands_that_wait_together_share_blocks_and_each_gets_its_own_answer() {
    let home = Home::new();
    let (journal, _) = home.open().expect("a journal");
    let start = Arc::new(Barrier::new(32));
    std::thread::scope(|scope| {
        for thread in 0..32 {
            let (journal, start) = (journal.clone(), Arc::clone(&start));
            scope.spawn(move || {
                start.wait();
                for n in 0..20 {
                    let text = format!("{thread} {n}").into_bytes();
                    let seq = say(&journal, &text).expect("an answer");
                    assert_eq!(journal.reader().read(seq).expect("durable on return").payload, text);
                }
            });
        }
    });
    assert_eq!(said(&journal).len(), 640);
    let bytes = std::fs::read(home.dir.join(&home.segments()[0])).expect("bytes");
    let blocks = bytes.windows(4).filter(|window| window == b"OPBK").count();
    assert!(blocks < 641, "{blocks} blocks");
    assert_intact(&home);
}

#[test]
fn several_openings_agree_on_one_order_and_see_each_other() {
    let home = Home::small_segments();
    let journals: Vec<_> = (0..4).map(|_| home.open().expect("a journal").0).collect();
    std::thread::scope(|scope| {
        for (n, journal) in journals.iter().enumerate() {
            scope.spawn(move || {
                for m in 0..50 {
                    say(journal, format!("{n} {m}").as_bytes()).expect("an answer");
                }
            });
        }
    });
    let all = said(&journals[0]);
    assert_eq!(all.len(), 200);
    for journal in &journals {
        assert_eq!(said(journal), all);
    }
    assert_eq!(home.said(), Ok(all.clone()));
    assert_eq!(said(&home.open().expect("a journal").0), all);
    assert_eq!(home.kinds().iter().filter(|kind| **kind != SAID).count(), 1, "nobody began a new epoch");
    assert_intact(&home);
}

#[test]
fn a_key_is_said_once_whatever_segment_and_process_it_was_said_in() {
    let home = Home::small_segments();
    let journals: Vec<_> = (0..3).map(|_| home.open().expect("a journal").0).collect();
    for n in 0..120_usize {
        let once = Command::SayOnce(format!("{}", n % 40).into_bytes());
        let seqs = journals[n % 3].submit(once).expect("an answer").expect("an answer");
        assert_eq!(seqs, [Seq(n as u64 % 40 + 1)]);
    }
    assert!(home.segments().len() > 2);
    let reader = home.reader();
    assert_eq!(reader.lookup(&key_of(b"7")), Ok(vec![Seq(8)]));
    assert_eq!(reader.lookup(&key_of(b"x")), Ok(vec![]));
    assert_eq!(reader.lookup(&LookupKey::new(2, b"all")).expect("a lookup").len(), 40);
    assert_eq!(reader.read(Seq(8)).expect("a record").payload, b"7");
    assert_eq!(reader.read(Seq(41)), Err(ReadError::NotFound { seq: Seq(41), next_seq: Seq(41) }));
}

#[test]
fn a_command_sees_what_it_and_those_before_it_pushed() {
    let home = Home::small_segments();
    let (journal, _) = home.open().expect("a journal");
    for text in texts(0..60) {
        say(&journal, &text).expect("an answer");
    }
    let ask = Command::Ask(Box::new(|memory, commit| {
        let before = commit.next_seq();
        let space = commit.space_left();
        let seq = commit.push(draft(b"new")).expect("a push");
        assert_eq!((seq, commit.next_seq()), (before, Seq(before.0 + 1)));
        assert!(commit.space_left() < space);
        assert_eq!(commit.lookup(&key_of(b"new")), Ok(vec![seq]));
        assert_eq!(commit.read(seq).expect("a pushed record").payload, b"new");
        for n in [1, 30, 60] {
            assert_eq!(
                commit.read(Seq(n)).expect("a durable record").payload,
                format!("text {}", n - 1).as_bytes()
            );
        }
        assert!(commit.read(Seq(before.0 + 1)).is_err());
        memory.said.push((seq, b"new".to_vec()));
    }));
    journal.submit(ask).expect("an answer").expect("an answer");
    assert_eq!(home.said().expect("records").last().map(Vec::as_slice), Some(&b"new"[..]));
}

#[test]
fn records_that_do_not_fit_are_refused_and_what_does_not_fit_one_block_goes_into_two() {
    let home = Home::new();
    let (journal, _) = home.open().expect("a journal");
    let large = |n: u8| vec![n; 200 << 10];
    let answer = journal.submit(Command::SayAll((0..6).map(large).collect()));
    assert!(matches!(answer, Err(AppendError::TooLarge { .. })), "one command is one block");
    assert!(matches!(say(&journal, &[0; 256 << 10]), Err(AppendError::TooLarge { .. })));
    // The first command keeps the journal until the others are about to ask, so that they are decided together.
    let asking = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let (journal, seen) = (&journal, Arc::clone(&asking));
        scope.spawn(move || {
            let wait = Command::Ask(Box::new(move |_, _| {
                let mut patience = 10_000;
                while seen.load(Ordering::SeqCst) < 12 || patience > 0 {
                    patience -= i32::from(seen.load(Ordering::SeqCst) == 12);
                    std::thread::yield_now();
                }
            }));
            journal.submit(wait).expect("an answer").expect("an answer");
        });
        for n in 0..12_u8 {
            let asking = Arc::clone(&asking);
            scope.spawn(move || {
                asking.fetch_add(1, Ordering::SeqCst);
                // One after the other: the third may find the block full.
                let three = Command::Ask(Box::new(move |memory, commit| {
                    for _ in 0..3 {
                        let seq = commit.push(draft(&large(n))).expect("a push");
                        memory.said.push((seq, large(n)));
                    }
                }));
                journal.submit(three).expect("an answer").expect("an answer");
            });
        }
    });
    let bytes = std::fs::read(home.dir.join(&home.segments()[0])).expect("bytes");
    for (first, count) in blocks(&bytes).into_iter().skip(1) {
        assert!((first - 1) % 3 == 0 && count % 3 == 0, "a command is split: {count} records from {first}");
    }
    let texts = home.said().expect("records");
    assert_eq!(texts.len(), 36);
    assert!(texts.chunks(3).all(|three| three[0] == three[1] && three[1] == three[2]));
    assert_eq!(said(&journal), texts);
    assert_intact(&home);
}

#[test]
fn a_journal_says_no_after_it_was_closed() {
    let home = Home::new();
    let (journal, _) = home.open().expect("a journal");
    let other = journal.clone();
    journal.close().expect("a close");
    assert_eq!(say(&other, b"x"), Err(AppendError::Closed));
    assert_eq!(other.query(|memory| memory.applied), Err(AppendError::Closed));
}

#[test]
fn a_panic_of_the_machine_leaves_nobody_waiting_and_the_lock_free() {
    let home = Home::new();
    let (journal, _) = home.open().expect("a journal");
    let panics = Command::Ask(Box::new(|_, commit| {
        commit.push(draft(b"never")).expect("a push");
        panic!("planned");
    }));
    assert_eq!(journal.submit(panics).map(|_| ()), Err(AppendError::Panicked));
    assert_eq!(say(&journal, b"x"), Err(AppendError::Panicked));
    let (journal, _) = home.open().expect("a journal");
    assert_eq!(said(&journal), Vec::<Vec<u8>>::new());
}

#[test]
fn starting_goes_on_from_a_given_sequence_and_not_from_beyond_the_end() {
    let home = Home::small_segments();
    let (journal, _) = home.open().expect("a journal");
    for text in texts(0..60) {
        say(&journal, &text).expect("an answer");
    }
    drop(journal);
    for from in 0..=61 {
        let opened = opjournal_journal::open(Arc::clone(&home.vfs), &home.dir, home.options.clone())
            .expect("a journal");
        assert_eq!(opened.next_seq(), Seq(61));
        let journal = opened.start(Seq(from), crate::support::Memory::default()).expect("a start");
        assert_eq!(said(&journal), texts(from.saturating_sub(1) as u32..60), "{from}");
    }
    let opened =
        opjournal_journal::open(Arc::clone(&home.vfs), &home.dir, home.options.clone()).expect("a journal");
    let refused = opened.start(Seq(62), crate::support::Memory::default()).map(|_| ());
    assert_eq!(refused, Err(OpenError::Ahead { from: Seq(62), next_seq: Seq(61) }));
}

#[test]
fn a_record_of_an_unknown_kind_stops_those_who_want_to_understand_it() {
    let home = Home::new();
    let (one, _) = home.open().expect("a journal");
    let (two, _) = home.open().expect("a journal");
    let push = |optional| {
        Command::Ask(Box::new(move |_, commit| {
            let mut draft = draft(b"new kind");
            (draft.kind, draft.optional) = (101, optional);
            commit.push(draft).expect("a push");
        }))
    };
    one.submit(push(true)).expect("an answer").expect("an answer");
    assert_eq!(two.query(|memory| memory.applied), Ok(2));
    one.submit(push(false)).expect("an answer").expect("an answer");
    let unknown = |result: Result<u64, AppendError>| matches!(result, Err(AppendError::UnknownRecord(_)));
    assert!(unknown(two.query(|memory| memory.applied)));
    assert!(unknown(two.query(|memory| memory.applied)), "it stays so");
    assert!(matches!(home.open().map(|_| ()), Err(OpenError::UnknownRecord(_))));
    assert_intact(&home);
}

#[test]
fn errors_name_the_place_and_the_next_step_and_no_path() {
    let damage = opjournal_journal::Damage {
        file: "00000000000000000007.seg".to_owned(),
        segment: 3,
        offset: 4096,
        fault: BlockFault::Checksum.into(),
        first_lost: Seq(9),
    };
    assert_eq!(
        OpenError::Damaged(damage.clone()).to_string(),
        "00000000000000000007.seg is damaged at byte 4096: a block's checksum does not fit; records from 9 were \
         acknowledged. Run `opjournal verify` to see what is lost, then `opjournal repair`, which keeps a copy"
    );
    assert_eq!(
        ReadError::Damaged(damage).to_string(),
        "00000000000000000007.seg is damaged at byte 4096: a block's checksum does not fit. \
         Run `opjournal verify` to see what is lost"
    );
}
