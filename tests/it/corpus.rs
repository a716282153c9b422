//! The fuzz targets over their checked-in corpus, and over mutations of it from a fixed seed. On Linux this happens in a
//! process of its own with little memory, so that an allocation for a length that bytes only claim ends it.

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::Command;

use opjournal_tests::fuzzing::{TARGETS, Target};

/// Set in the process with little memory.
const INSIDE: &str = "OPJOURNAL_CORPUS_INSIDE";
/// All of its address space, in KiB.
const MEMORY_KIB: &str = "524288";
const TEST: &str = "corpus::every_fuzz_target_holds_on_its_corpus_and_on_mutations_of_it";
const SEED: u64 = 0x6f70_6a6f_7572_6e61;
/// A mutation makes no input longer than this.
const INPUT_BYTES_MAX: usize = 4_096;

#[test]
fn every_fuzz_target_holds_on_its_corpus_and_on_mutations_of_it() {
    if cfg!(target_os = "linux") && std::env::var_os(INSIDE).is_none() {
        return with_little_memory();
    }
    for target in &TARGETS {
        let corpus = corpus(target);
        for (name, input) in &corpus {
            judge(target, input, name);
        }
        let mut random = Random(SEED);
        for n in 0..target.mutations {
            let input = mutated(&corpus, &mut random);
            judge(target, &input, &format!("mutation {n} of seed {SEED:#x}"));
        }
    }
}

#[test]
fn every_fuzz_target_has_its_program_and_no_other_has_one() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let mut programs: Vec<String> = names(&fuzz.join("fuzz_targets"));
    programs.iter_mut().for_each(|name| *name = name.trim_end_matches(".rs").to_owned());
    let targets: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(programs, targets);
    assert_eq!(names(&fuzz.join("corpus")), targets);
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for name in targets {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

fn corpus(target: &Target) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target.name);
    let inputs = names(&folder).into_iter().map(|name| {
        let bytes = fs::read(folder.join(&name)).unwrap();
        (name, bytes)
    });
    let inputs: Vec<_> = inputs.collect();
    assert!(!inputs.is_empty(), "{} has a corpus", target.name);
    inputs
}

fn judge(target: &Target, input: &[u8], what: &str) {
    let judged = catch_unwind(|| (target.judge)(input));
    let broken = match judged {
        Ok(Ok(())) => return,
        Ok(Err(violation)) => violation.to_string(),
        Err(_) => "a panic, told above".to_owned(),
    };
    let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
    panic!("{}, {what}: {broken}\ninput: {hex}", target.name);
}

/// Runs the test again with a limit that the shell sets, since a process cannot ask for one without a system call of its
/// own.
fn with_little_memory() {
    let this = std::env::current_exe().unwrap();
    let output = Command::new("/bin/sh")
        .args([
            "-c",
            &format!("ulimit -v {MEMORY_KIB} && exec \"$0\" --exact {TEST} --test-threads 1 --nocapture"),
        ])
        .arg(this)
        .env(INSIDE, "1")
        // Arenas for threads reserve address space that they do not use.
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}\n{said}", output.status);
    assert!(said.contains("1 passed"), "the test has another name: {said}");
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, of: usize) -> usize {
        (self.next() >> 33) as usize % of.max(1)
    }
}

/// Some input of the corpus with one to eight changes.
fn mutated(corpus: &[(String, Vec<u8>)], random: &mut Random) -> Vec<u8> {
    const TELLING: [&[u8]; 8] = [
        &[0],
        &[0xff],
        &[0xfb, 0xff, 0xff],
        &[0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        b"\"",
        b"{",
        b"[1,",
        b"-0",
    ];
    let mut input = corpus[random.below(corpus.len())].1.clone();
    for _ in 0..=random.below(8) {
        let at = random.below(input.len() + 1);
        let end = (at + random.below(16)).min(input.len());
        match random.below(6) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => input[at] = random.next() as u8,
            2 => drop(input.drain(at..end)),
            3 => {
                let part = input[at..end].to_vec();
                input.splice(at..at, part);
            }
            4 => {
                let other = &corpus[random.below(corpus.len())].1;
                let from = random.below(other.len() + 1);
                let part = other[from..(from + random.below(64)).min(other.len())].to_vec();
                input.splice(at..end, part);
            }
            _ => {
                let telling = TELLING[random.below(TELLING.len())];
                input.splice(at..end, telling.iter().copied());
            }
        }
    }
    input.truncate(INPUT_BYTES_MAX);
    input
}
