//! The independent reader in Python, written from FORMAT.md and EVENTS.md alone, sees what ours sees: the same records,
//! and the same verdict on damage. What it shows: both documents are enough to read a journal in another language.
//!
//! Needs `python3` with `blake3` (or the interpreter that `OPJOURNAL_PYTHON` names); without it the tests are skipped
//! with the reason, and fail under `OPJOURNAL_REQUIRE_PYTHON=1`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use engine::service::codec;
use engine::service::story::Chapter;
use journal::verify::{FindingKind, Integrity, Verdict};
use journal::vfs::os::OsVfs;
use journal::{
    Alignment, AppendError, Commit, Draft, LookupKey, Machine, Options, Reader, Record, UnknownRecord,
};
use protocol::event::Event;
use protocol::ids::{BootId, InstanceId, JournalId, Seq};
use protocol::time::UnixMillis;
use serde_json::{Value, json};

use crate::golden_events::samples;

const BOOT: BootId = BootId([0xb0; 16]);
const LATER_BOOT: BootId = BootId([0xb1; 16]);

/// Writes what it is given.
struct Scribe;

impl Machine for Scribe {
    type Command = Vec<Draft>;
    type Answer = Result<(), AppendError>;

    fn apply(&mut self, _: &Record) -> Result<(), UnknownRecord> {
        Ok(())
    }

    fn decide(&mut self, drafts: Vec<Draft>, commit: &mut Commit<'_>) -> Self::Answer {
        commit.push_all(&drafts).map(|_| ())
    }
}

fn write(dir: &Path, boot_id: BootId, align: Alignment, blocks: &[Vec<Draft>]) {
    let mut options =
        Options::new(InstanceId([0xaa; 16]), boot_id, Arc::new(|| UnixMillis(1_769_851_800_000)));
    (options.align, options.segment_bytes_max) = (align, 16 << 10);
    options.journal_id = Some(JournalId([0x11; 16]));
    let opened = journal::open(Arc::new(OsVfs), dir, options).expect("a journal");
    let journal = opened.start(Seq(0), Scribe).expect("a writer");
    for block in blocks {
        journal.submit(block.clone()).expect("an answer").expect("an append");
    }
    journal.close().expect("closing");
}

fn draft(event: &Event, at: u64) -> Draft {
    codec::draft(event, UnixMillis(1_769_851_800_000 + at)).expect("a record")
}

/// Every golden event, in blocks of different sizes, and optional records of a kind that nobody knows.
fn blocks() -> Vec<Vec<Draft>> {
    let mut drafts: Vec<Draft> = Event::KINDS
        .iter()
        .flat_map(|(kind, _)| samples(*kind))
        .enumerate()
        .map(|(n, event)| draft(&event, n as u64))
        .collect();
    drafts.insert(
        9,
        Draft {
            kind: 60_000,
            version: 7,
            optional: true,
            time: UnixMillis(u64::MAX),
            keys: vec![LookupKey::new(9, b"a later version's"), LookupKey::new(9, b"and another")],
            payload: vec![0, 255, 3],
        },
    );
    let mut blocks = Vec::new();
    while !drafts.is_empty() {
        let len = (1 + blocks.len() % 5).min(drafts.len());
        blocks.push(drafts.drain(..len).collect());
    }
    blocks
}

/// A journal of several segments with everything that a journal can hold: all kinds, a torn tail that was cut, and
/// several epochs.
fn rich(dir: &Path, align: Alignment) {
    let blocks = blocks();
    let (first, second) = blocks.split_at(blocks.len() / 2);
    write(dir, BOOT, align, first);
    let last = segments(dir).pop().expect("a segment");
    let end = Reader::open(Arc::new(OsVfs), dir, BOOT).expect("a reader").info().expect("a look").mark;
    let journal::lock::Stored::Mark(mark) = end else { panic!("no mark") };
    let mut bytes = fs::read(&last).expect("a segment");
    let at = usize::try_from(mark.position.offset).expect("small");
    bytes.resize(bytes.len().max(at + 100), 0);
    bytes[at..at + 100].fill(0x5a);
    fs::write(&last, bytes).expect("a torn write");
    write(dir, LATER_BOOT, align, second);
    write(dir, LATER_BOOT, align, &[vec![]]);
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "seg"))
        .collect();
    names.sort();
    names
}

/// The Python interpreter that can run the reader, or none, after saying why.
fn python() -> Option<String> {
    let python = std::env::var("OPJOURNAL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let tried = Command::new(&python).args(["-c", "import blake3"]).output();
    let why = match tried {
        Ok(output) if output.status.success() => return Some(python),
        Ok(_) => "it cannot import blake3; `pip install blake3`".to_owned(),
        Err(error) => error.to_string(),
    };
    let required = std::env::var_os("OPJOURNAL_REQUIRE_PYTHON").is_some_and(|value| value == "1");
    assert!(!required, "the independent reader cannot run with {python}: {why}");
    eprintln!("skipped: the independent reader cannot run with {python}: {why}");
    None
}

/// What the reader prints, line by line, and its exit code.
fn run(python: &str, options: &[&str], dirs: &[PathBuf]) -> (Vec<Value>, Option<i32>) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/reader.py");
    let output = Command::new(python).arg(script).args(options).args(dirs).output().expect("the reader runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("Traceback"), "the reader broke: {errors}");
    let lines =
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    (lines, output.status.code())
}

fn boot(id: BootId) -> String {
    id.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn ours(dir: &Path) -> Vec<Value> {
    let reader = Reader::open(Arc::new(OsVfs), dir, LATER_BOOT).expect("a reader");
    reader
        .from(Seq(0))
        .expect("records")
        .map(|record| {
            serde_json::to_value(Chapter::of(record.expect("a record")).expect("a chapter")).expect("JSON")
        })
        .collect()
}

fn verify(dir: &Path, boot_id: BootId) -> Verdict {
    journal::verify::verify(&OsVfs, dir, boot_id, &mut |_, _| {}).expect("a verdict")
}

fn word(integrity: Integrity) -> &'static str {
    match integrity {
        Integrity::Damaged => "damaged",
        Integrity::CannotTell => "cannot_tell",
        Integrity::TornTail => "torn_tail",
        Integrity::Intact => "intact",
    }
}

#[test]
fn the_independent_reader_sees_every_record_as_ours_does() {
    let Some(python) = python() else { return };
    for align in [Alignment::B8, Alignment::B512, Alignment::B4096] {
        let home = tempfile::tempdir().expect("a folder");
        rich(home.path(), align);
        let ours = ours(home.path());
        let (mut theirs, code) =
            run(&python, &["--dump", "--boot", &boot(LATER_BOOT)], &[home.path().to_owned()]);
        let verdict = theirs.pop().expect("a verdict")["verdict"].clone();
        assert_eq!(code, Some(0), "{align:?}: {verdict}");
        assert_eq!((&verdict["verdict"], &verdict["findings"]), (&json!("intact"), &json!([])), "{align:?}");
        assert_eq!(theirs.len(), ours.len(), "{align:?}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs, "{align:?}");
        }
        let kinds: BTreeMap<u64, usize> = ours.iter().fold(BTreeMap::new(), |mut kinds, line| {
            *kinds.entry(line["kind"].as_u64().expect("a kind")).or_default() += 1;
            kinds
        });
        for kind in Event::KINDS.iter().map(|(kind, _)| u64::from(*kind)).chain([1, 2, 60_000]) {
            assert!(kinds.contains_key(&kind), "{align:?}: no record of kind {kind} was compared");
        }
        assert!(segments(home.path()).len() > 2, "{align:?}: several segments");
    }
}

/// Small, fast, and the same for ever.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Corrupts a folder in one way and says how; none when the bytes are the same as before.
fn corrupt(dir: &Path, random: &mut Random) -> Option<String> {
    let mut files = segments(dir);
    files.push(dir.join("lock"));
    let path = files[random.below(files.len())].clone();
    let name = path.file_name().expect("a name").to_string_lossy().into_owned();
    let before = fs::read(&path).expect("a file");
    // Most of an open segment is zero space; damage to records is the more telling.
    let written = before.iter().rposition(|byte| *byte != 0).map_or(1, |at| at + 1);
    let within = if random.below(8) == 0 { before.len() } else { written };
    let at = random.below(within);
    let len = 1 + random.below(200.min(before.len() - at));
    let mut bytes = before.clone();
    let what = match random.below(10) {
        0..=3 => {
            bytes[at] ^= 1 << random.below(8);
            format!("bit flipped in {name} at {at}")
        }
        4 => {
            bytes[at..at + len].fill(0);
            format!("{len} bytes zeroed in {name} at {at}")
        }
        5 => {
            (at..at + len).for_each(|at| bytes[at] = random.next() as u8);
            format!("{len} bytes garbled in {name} at {at}")
        }
        6 => {
            bytes.truncate(at);
            format!("{name} cut at {at}")
        }
        7 => {
            let copy = bytes[at..at + len].to_vec();
            bytes.splice(at..at, copy);
            format!("{len} bytes doubled in {name} at {at}")
        }
        8 => {
            bytes.drain(at..at + len);
            format!("{len} bytes taken out of {name} at {at}")
        }
        _ if files.len() > 3 && random.below(2) == 0 => {
            fs::remove_file(&path).expect("removal");
            return Some(format!("{name} removed"));
        }
        _ => {
            let other = fs::read(&files[random.below(files.len())]).expect("a file");
            bytes = other;
            format!("{name} replaced by another file of the journal")
        }
    };
    (bytes != before).then(|| {
        fs::write(&path, bytes).expect("a file");
        what
    })
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder");
    for path in segments(from).into_iter().chain([from.join("lock")]) {
        fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("a copy");
    }
}

#[test]
fn both_readers_judge_every_corruption_alike() {
    const CASES: usize = 300;
    let Some(python) = python() else { return };
    let given = std::env::var("OPJOURNAL_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = given.unwrap_or(0x0bad_c0de);
    println!("OPJOURNAL_SEED={seed}");
    let (home, mut random) = (tempfile::tempdir().expect("a folder"), Random(seed.wrapping_mul(2) | 1));
    let source = home.path().join("source");
    rich(&source, Alignment::B8);
    let mut cases = Vec::new();
    while cases.len() < CASES {
        let dir = home.path().join(format!("{:03}", cases.len()));
        copy(&source, &dir);
        match corrupt(&dir, &mut random) {
            Some(what) => cases.push((what, dir)),
            None => fs::remove_dir_all(&dir).expect("removal"),
        }
    }
    let dirs: Vec<PathBuf> = cases.iter().map(|(_, dir)| dir.clone()).collect();
    let mut words: BTreeMap<&str, usize> = BTreeMap::new();
    // Under the mark's own boot its position counts; under another nothing tells what was synced.
    for boot_id in [LATER_BOOT, BOOT] {
        let (theirs, code) = run(&python, &["--boot", &boot(boot_id)], &dirs);
        assert_eq!((theirs.len(), code), (CASES, Some(1)));
        for ((what, dir), theirs) in cases.iter().zip(&theirs) {
            let word = judged_alike(what, &verify(dir, boot_id), &theirs["verdict"], seed);
            *words.entry(word).or_default() += 1;
        }
    }
    println!("{words:?}");
    assert!(words.get("damaged").is_some_and(|damaged| *damaged >= 200), "mostly damage: {words:?}");
}

/// Compares the verdicts and the places of all findings.
fn judged_alike(what: &str, ours: &Verdict, theirs: &Value, seed: u64) -> &'static str {
    let context = format!("seed {seed}, {what}\nours: {ours:#?}\ntheirs: {theirs:#}");
    assert_eq!(word(ours.integrity), theirs["verdict"], "{context}");
    assert_eq!(
        (ours.records, ours.next_seq.0),
        (number(&theirs["records"]), number(&theirs["next_seq"])),
        "{context}"
    );
    let mut places: Vec<(String, u64)> =
        ours.findings.iter().map(|finding| (finding.file.clone(), finding.offset)).collect();
    let listed = theirs["findings"].as_array().expect("findings");
    let mut their_places: Vec<(String, u64)> = listed
        .iter()
        .map(|finding| (finding["file"].as_str().expect("a file").to_owned(), number(&finding["offset"])))
        .collect();
    places.sort();
    their_places.sort();
    assert_eq!(places, their_places, "{context}");
    // What leaves a journal intact costs no record.
    if ours.integrity == Integrity::Intact {
        let harmless = ours.findings.iter().all(|finding| match finding.kind {
            FindingKind::MarkUnreadable | FindingKind::MarkElsewhere => true,
            FindingKind::Damage(_) | FindingKind::Tail(_) => false,
        });
        assert!(harmless, "{context}");
    }
    if what.starts_with("bit flipped") {
        assert!(!ours.findings.is_empty(), "a flipped bit is always reported; {context}");
    }
    word(ours.integrity)
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}
