//! The journal against a model (a list), over random work of several processes, deaths and power cuts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use opjournal_journal::Journal;
use opjournal_journal::verify::Integrity;
use opjournal_journal::vfs::Vfs;
use opjournal_journal::vfs::fault::{FaultVfs, Hook, Operation, When};
use proptest::prelude::*;
use protocol::ids::BootId;

use crate::disk::Disk;
use crate::support::{BOOT, Command, Home, Memory, said};
use crate::tail::in_memory;

#[derive(Clone, Debug)]
enum Act {
    /// Process 0, 1 or 2 says texts together.
    Say {
        by: usize,
        texts: Vec<u16>,
    },
    /// Says one text, if nobody has.
    Once {
        by: usize,
        text: u16,
    },
    Reopen {
        by: usize,
    },
    /// The process is gone at the nth change of its next command: the bytes stay as they are.
    Dies {
        by: usize,
        nth: u64,
    },
    /// Power fails at the nth change of the next command of a process: all processes are gone, and some of what was not
    /// synced.
    PowerCut {
        by: usize,
        nth: u64,
        choice: u64,
    },
}

fn act() -> impl Strategy<Value = Act> {
    let by = 0_usize..3;
    prop_oneof![
        6 => (by.clone(), prop::collection::vec(0_u16..2_000, 1..4)).prop_map(|(by, texts)| Act::Say { by, texts }),
        3 => (by.clone(), 0_u16..30).prop_map(|(by, text)| Act::Once { by, text }),
        1 => by.clone().prop_map(|by| Act::Reopen { by }),
        2 => (by.clone(), 0_u64..14).prop_map(|(by, nth)| Act::Dies { by, nth }),
        2 => (by, 0_u64..14, any::<u64>()).prop_map(|(by, nth, choice)| Act::PowerCut { by, nth, choice }),
    ]
}

fn text_of(text: u16) -> Vec<u8> {
    // Of many lengths, so that blocks and segments end anywhere.
    let mut bytes = text.to_le_bytes().to_vec();
    bytes.resize(2 + usize::from(text) % 90, 0x20);
    bytes
}

/// From when on a process is dead to its disk, if at all.
#[derive(Default)]
struct Fate {
    armed: AtomicBool,
    left: AtomicU64,
    dead: AtomicBool,
}

impl Fate {
    fn hook(self: Arc<Self>) -> Hook {
        Arc::new(move |event| {
            let changes = event.operation != Operation::Read && event.when == When::Before;
            if changes && self.armed.load(Ordering::SeqCst) && self.left.fetch_sub(1, Ordering::SeqCst) == 0 {
                self.dead.store(true, Ordering::SeqCst);
            }
            if self.dead.load(Ordering::SeqCst) { Err(std::io::Error::from_raw_os_error(5)) } else { Ok(()) }
        })
    }
}

struct Process {
    journal: Journal<Memory>,
    fate: Arc<Fate>,
}

struct World {
    home: Home,
    disk: Disk,
    boot: u8,
    processes: Vec<Option<Process>>,
    /// Everything acknowledged, in order of its sequence, and, at any place, what was not acknowledged.
    acknowledged: Vec<(u64, Vec<u8>)>,
    unsure: Vec<Vec<Vec<u8>>>,
}

impl World {
    fn new(large: bool) -> Self {
        let (mut home, disk) = in_memory();
        home.options.segment_bytes_max = if large { 100_000 } else { 2_048 };
        let processes = (0..3).map(|_| None).collect();
        Self { home, disk, boot: 0xb0, processes, acknowledged: Vec::new(), unsure: Vec::new() }
    }

    fn process(&mut self, by: usize) -> &Process {
        let home = &self.home;
        self.processes[by].get_or_insert_with(|| {
            let fate = Arc::new(Fate::default());
            let vfs: Arc<dyn Vfs> = Arc::new(FaultVfs::new(Arc::clone(&home.vfs), Arc::clone(&fate).hook()));
            let (journal, _) = home.open_on(&vfs).unwrap_or_else(|error| panic!("opening: {error}"));
            Process { journal, fate }
        })
    }

    fn say(&mut self, by: usize, texts: &[u16]) {
        let texts: Vec<Vec<u8>> = texts.iter().copied().map(text_of).collect();
        match self.process(by).journal.submit(Command::SayAll(texts.clone())) {
            Ok(Ok(seqs)) => self.acknowledged.extend(seqs.iter().map(|seq| seq.0).zip(texts)),
            Ok(Err(error)) => panic!("a machine's refusal: {error}"),
            Err(_) => self.unsure.push(texts),
        }
    }

    fn once(&mut self, by: usize, text: u16) {
        let text = text_of(text);
        let before = self.acknowledged.iter().find(|(_, said)| *said == text).map(|(seq, _)| *seq);
        let seqs = self.process(by).journal.submit(Command::SayOnce(text.clone()));
        let seqs = seqs.expect("an answer").expect("an answer");
        match before {
            Some(before) => assert!(seqs.iter().any(|seq| seq.0 == before), "a key that was said is found"),
            // It may have been said by one that was told nothing, or now.
            None => self.acknowledged.extend(seqs.iter().map(|seq| (seq.0, text.clone()))),
        }
    }

    fn dies(&mut self, by: usize, nth: u64) {
        let process = self.process(by);
        process.fate.left.store(nth, Ordering::SeqCst);
        process.fate.armed.store(true, Ordering::SeqCst);
        self.say(by, &[1, 2]);
        self.processes[by] = None;
    }

    fn power_cut(&mut self, by: usize, nth: u64, choice: u64) {
        let process = self.process(by);
        process.fate.left.store(nth, Ordering::SeqCst);
        process.fate.armed.store(true, Ordering::SeqCst);
        self.say(by, &[3, 4]);
        self.disk = self.disk.after_power_cut(choice);
        self.processes.iter_mut().for_each(|process| *process = None);
        self.boot += 1;
        self.home.vfs = Arc::new(self.disk.clone());
        self.home.options.boot_id = BootId([self.boot; 16]);
    }

    fn check(&mut self) {
        self.acknowledged.sort();
        // Whoever opens recovers; until then the others show what was synced only.
        for by in 0..3 {
            self.process(by);
        }
        let all = said(&self.process(0).journal);
        let memory: Vec<(u64, Vec<u8>)> = self
            .process(0)
            .journal
            .query(|memory| memory.said.iter().map(|(seq, text)| (seq.0, text.clone())).collect())
            .expect("a query");
        for (seq, text) in &self.acknowledged {
            assert!(memory.contains(&(*seq, text.clone())), "record {seq} was acknowledged and is gone");
        }
        // What was not acknowledged is there whole or not at all.
        let rest: Vec<Vec<u8>> = memory
            .iter()
            .filter(|said| !self.acknowledged.contains(said))
            .map(|said| said.1.clone())
            .collect();
        let whole: usize = self.unsure.iter().map(Vec::len).sum();
        assert!(rest.len() <= whole, "{} records that nobody said", rest.len());
        let mut left = rest.as_slice();
        while !left.is_empty() {
            let found = self.unsure.iter().position(|texts| left.starts_with(texts));
            let n = found.expect("a command is there whole or not at all");
            left = &left[self.unsure.remove(n).len()..];
        }
        // All processes and a reader agree.
        for by in 0..3 {
            assert_eq!(said(&self.process(by).journal), all, "process {by}");
        }
        assert_eq!(self.home.said().as_ref(), Ok(&all));
        assert_eq!(self.home.integrity(self.home.options.boot_id), Integrity::Intact);
        // Once found, it stays.
        self.acknowledged = memory;
        self.unsure.clear();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]
    #[test]
    fn whatever_happens_acknowledged_records_stay_in_order_and_commands_are_whole(
        large in any::<bool>(),
        acts in prop::collection::vec(act(), 1..40),
    ) {
        assert_eq!(BOOT, BootId([0xb0; 16]));
        let mut world = World::new(large);
        for act in acts {
            match act {
                Act::Say { by, texts } => world.say(by, &texts),
                Act::Once { by, text } => world.once(by, text),
                Act::Reopen { by } => world.processes[by] = None,
                Act::Dies { by, nth } => {
                    world.dies(by, nth);
                    world.check();
                }
                Act::PowerCut { by, nth, choice } => {
                    world.power_cut(by, nth, choice);
                    world.check();
                }
            }
        }
        world.check();
    }
}
