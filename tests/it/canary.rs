//! Protected values stay where they belong. Values that occur nowhere else are planted in parameters, in the patient's
//! data, in the bundle's texts, in the deployment's secrets, and in what the application answers; then a run is led
//! through a pause, refusals, errors, a crash and a torn write. Afterwards none of them is in any byte of the home
//! outside `evidence/` and `bundles/`, nor in anything that a command has printed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use protocol::digest::Sha256Digest;
use serde_json::{Value, json};

use crate::crash::tear;
use crate::support::host::Host;
use crate::support::operator::Operator;
use crate::support::process::{Call, Ended, text};
use crate::support::scenario::{Bench, THREE_STEPS, TRIAGE};

/// In the bundle's own texts.
const INTENT: &str = "CANARY-intent-4b1f";
/// In a parameter, and so on the patient's page and in the read-back.
const NOTE: &str = "CANARY-note-93cd";
/// What a person fills into the form.
const BY_HAND: &str = "CANARY-by-hand-07ae";
/// In parameters that are refused.
const REFUSED: &str = "CANARY-refused-5d20";
/// In a request that is malformed.
const MALFORMED: &str = "CANARY-malformed-c81e";
/// In the page on which the application says what is wrong.
const ERROR_PAGE: &str = "CANARY-error-page-2f66";

/// The patient's data in the clinic, and the deployment's secrets.
const KNOWN: [&str; 7] = [
    "Ada Sample",
    "1984-03-12",
    "MRN-900001",
    "Penicillin",
    "Chest pain since this morning",
    "demo-only",
    "readback-demo-only",
];

/// Everything that a command has printed.
#[derive(Default)]
struct Printed(Vec<(String, Vec<u8>)>);

impl Printed {
    fn keep(&mut self, ended: Ended) -> Ended {
        self.0.push((format!("output of {ended}"), [&ended.stdout[..], &ended.stderr[..]].concat()));
        ended
    }

    /// The command as a person and as a program sees it. Only for what changes nothing, or may be repeated.
    fn both(&mut self, home: &Path, arguments: &[String]) -> Ended {
        self.keep(Call::text(home, arguments).run());
        self.keep(Call::json(home, arguments).run())
    }
}

/// A copy of the scenario's bundle with canaries in all its texts.
fn bundle_with_canaries(folder: &Path, bundle: &Path) -> PathBuf {
    let mut workflow: Value =
        serde_json::from_slice(&fs::read(bundle.join("workflow.json")).expect("a workflow")).expect("JSON");
    for step in workflow["steps"].as_array_mut().expect("steps") {
        step["intent"] = json!(format!("{INTENT}: {}", text(step, "/intent")));
    }
    let copy = folder.join("bundle");
    fs::create_dir_all(&copy).expect("a folder");
    fs::write(copy.join("workflow.json"), workflow.to_string()).expect("a workflow");
    copy
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn protected_values_are_in_no_byte_of_the_journal_and_in_no_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let original = Bench::new(&TRIAGE).bundle.clone();
    let bench = Bench::with_bundle(&TRIAGE, bundle_with_canaries(folder.path(), &original));
    let mut printed = Printed::default();
    let mut parameters = bench.parameters();
    parameters["note"] = json!(NOTE);
    bench.write("params.json", &parameters);

    let item = refusals_and_a_pause(&bench, &mut printed);
    crash_and_torn_write(&bench, &mut printed, &item);
    // Enough happens for a snapshot.
    let mut host = Host::start(&bench);
    let items = host.ask(&json!({ "items": null }));
    let waits = items["items"][0].clone();
    for n in 0..40 {
        let answer = host.decide(&waits, "escalate", &format!("an-escalation-of-many-{n}"));
        assert!(answer["decision"].is_object(), "{answer}");
    }
    host.close();
    look_at_everything(&bench, &mut printed);
    error_page(&bench, &mut printed);
    look_at_everything(&bench, &mut printed);
    let mut operator = Operator::undisturbed(&bench).having_done(2);
    operator.lead();
    look_at_everything(&bench, &mut printed);

    // A process that has the home open leaves its own file there.
    let host = Host::start(&bench);
    let files = files(&bench.home);
    host.close();
    let protected = |path: &Path| ["evidence", "bundles"].iter().any(|part| path.starts_with(part));
    for part in ["journal", "snapshots", "live", "keys", "journal/aside"] {
        assert!(files.iter().any(|(path, _)| path.starts_with(part)), "nothing in {part}: the test is blind");
    }
    let mut search = Search::of(&[INTENT, NOTE, BY_HAND, REFUSED, MALFORMED, ERROR_PAGE], &KNOWN);
    // Few parameters are so long that nobody could guess them all from an unsalted digest.
    let parameters = protocol::canonical_json::bytes_of(&parameters);
    search.add_digest("the parameters", Sha256Digest::of(&parameters));
    for (path, content) in files.iter().filter(|(path, _)| !protected(path)) {
        search.must_find_nothing(&path.display().to_string(), content);
    }
    for (what, content) in &printed.0 {
        search.must_find_nothing(what, content);
    }
    // The search can find them, where they belong.
    for (part, canary) in [("evidence", NOTE), ("bundles", INTENT)] {
        let search = Search::of(&[canary], &[]);
        let found =
            files.iter().any(|(path, content)| path.starts_with(part) && search.find(content).is_some());
        assert!(found, "the search does not find {canary} in {part}");
    }
}

/// What is refused without a run, then a run that waits, and decisions that are refused.
fn refusals_and_a_pause(bench: &Bench, printed: &mut Printed) -> Value {
    let run = bench.run_arguments_as("request-that-is-refused");
    let place = run.iter().position(|word| word == "--params").expect("parameters") + 1;
    for (name, wrong) in [
        ("pattern.json", json!({ "patient": REFUSED, "name": REFUSED, "dob": REFUSED })),
        ("type.json", json!({ "patient": { "inner": REFUSED } })),
        ("list.json", json!([REFUSED])),
    ] {
        let mut arguments = run.clone();
        arguments[place] = bench.write(name, &wrong).display().to_string();
        let refused = printed.both(&bench.home, &arguments);
        assert_ne!(refused.exit, Some(0), "{refused}");
    }
    fs::write(bench.file("broken.json"), format!("{{\"note\": \"{REFUSED}\", {REFUSED}")).expect("a file");
    let mut arguments = run;
    arguments[place] = bench.file("broken.json").display().to_string();
    printed.both(&bench.home, &arguments).must_exit(64);
    arguments.splice(place - 1..=place, words(&["--param", &format!("dob={REFUSED}"), REFUSED]));
    printed.both(&bench.home, &arguments);

    printed.both(&bench.home, &bench.run_arguments()).must_exit(4);
    let item = bench.item();
    for malformed in [
        json!({ "attention_id": MALFORMED, "capability_digest": MALFORMED, "idempotency_key": MALFORMED }),
        json!({ "note": MALFORMED }),
    ] {
        let request = bench.write("malformed.json", &malformed).display().to_string();
        printed.both(&bench.home, &words(&["decide", "--request", &request])).must_exit(64);
    }
    let early = bench.decide_live_arguments(&item, "continue", "a-continue-too-soon");
    printed.both(&bench.home, &early).must_exit(2);
    printed.both(&bench.home, &bench.decide_live_arguments(&item, "skip", "a-skip-not-allowed")).must_exit(2);
    item
}

/// The person does the step; the engine dies between its delivery and its receipt, and once in the middle of a block.
fn crash_and_torn_write(bench: &Bench, printed: &mut Printed, item: &Value) {
    bench.clinic.fill(
        "/patients/p-001/triage",
        &[("category", "2"), ("pain", "6"), ("text", BY_HAND), ("client_ref", "triage-person")],
    );
    let arguments = bench.decide_live_arguments(item, "continue", "the-key-of-the-continue");
    let points = bench.file("points");
    let call = bench.call(&arguments).env("OPJOURNAL_TEST_POINTS", &points);
    let killed = printed.keep(call.kill_at("after write 0#1").run());
    assert!(killed.was_killed(), "{killed}");
    let passed = fs::read_to_string(&points).expect("points");
    tear(&bench.home, passed.lines().last().expect("a point"), |bytes| bytes / 2);
    look_at_everything(bench, printed);
    let killed = printed.keep(bench.call(&arguments).kill_at("after act#1").run());
    assert!(killed.was_killed(), "{killed}");
    printed.both(&bench.home, &bench.run_arguments()).must_exit(3);
}

/// The application answers with a page that quotes what it did not take.
fn error_page(bench: &Bench, printed: &mut Printed) {
    let other = Bench::new(&THREE_STEPS);
    let mut parameters = other.parameters();
    // The clinic refuses control characters, on a page with the text in it.
    parameters["note"] = json!(format!("{ERROR_PAGE}\u{7}"));
    let file = bench.write("error-page.json", &parameters).display().to_string();
    let bundle = bundle_with_canaries(&bench.file("other"), &other.bundle).display().to_string();
    let config = bench.file("config.json").display().to_string();
    let start = ["run", &bundle, "--params", &file, "--request-id", "request-of-the-error-page"];
    let arguments = [&words(&start)[..], &words(&["--config", &config])[..]].concat();
    let ended = printed.both(&bench.home, &arguments);
    assert!([Some(3), Some(4)].contains(&ended.exit), "{ended}");
    let items = bench.call(&["attention", "list"]).run().document();
    let item = items["items"].as_array().expect("items").last().expect("an item").clone();
    printed.both(&bench.home, &bench.decide_live_arguments(&item, "reconcile", "a-reconcile-of-the-error"));
    // And then it does not answer at all, or not in this session.
    for fault in ["app_offline", "session_expired"] {
        bench.clinic.arm(&json!({ "fault": fault, "times": 1, "path_contains": "/" }));
        printed.both(&bench.home, &bench.resume_arguments(&text(&item, "/run")));
    }
}

/// Every command that shows something, as text and as JSON.
fn look_at_everything(bench: &Bench, printed: &mut Printed) {
    let runs = bench.call(&["runs", "list", "--all"]).run().must_exit(0).document();
    let items = bench.call(&["attention", "list"]).run().must_exit(0).document();
    let mut commands: Vec<Vec<String>> =
        ["runs list --all", "attention list", "info --counts", "verify", "replay"]
            .iter()
            .chain(&["export --jsonl", "exit-codes", "runs list --state paused"])
            .map(|line| line.split(' ').map(str::to_owned).collect())
            .collect();
    for run in runs["runs"].as_array().expect("runs") {
        let id = text(run, "/run_id");
        commands.push(words(&["runs", "show", &id]));
        commands.push(words(&["runs", "wait", &id, "--timeout", "0"]));
        commands.push(words(&["replay", "--run", &id]));
    }
    for item in items["items"].as_array().expect("items") {
        commands.push(words(&["attention", "show", &text(item, "/id")]));
    }
    commands.push(words(&["bundle", "check", &bench.bundle.display().to_string()]));
    commands.push(words(&["bundle", "digest", &bench.bundle.display().to_string()]));
    for command in commands {
        let ended = printed.both(&bench.home, &command);
        assert_ne!(ended.exit, Some(64), "{ended}");
    }
}

/// Values in all the forms in which they are looked for.
struct Search {
    /// What is looked for, by its first byte.
    forms: Vec<Vec<(String, Vec<u8>)>>,
}

impl Search {
    fn of(canaries: &[&str], known: &[&str]) -> Self {
        let mut search = Self { forms: vec![Vec::new(); 256] };
        for value in canaries.iter().chain(known) {
            let bytes = value.as_bytes();
            let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            // A digest without a salt gives a short value away as surely as the value itself.
            search.add_digest(value, Sha256Digest::of(bytes));
            search.add_digest(value, Sha256Digest::of(json!(value).to_string().as_bytes()));
            for (form, bytes) in [
                ("as it is", bytes.to_vec()),
                ("in hexadecimal", hex.into_bytes()),
                ("in UTF-16", value.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            ] {
                search.forms[usize::from(bytes[0])].push((format!("{value} ({form})"), bytes));
            }
        }
        search
    }

    fn add_digest(&mut self, what: &str, digest: Sha256Digest) {
        let printed = digest.to_string().trim_start_matches("sha256:").as_bytes().to_vec();
        for bytes in [printed, digest.0.to_vec()] {
            self.forms[usize::from(bytes[0])].push((format!("{what} (as a digest)"), bytes));
        }
    }

    fn find(&self, content: &[u8]) -> Option<&str> {
        content.iter().enumerate().find_map(|(at, first)| {
            let here = |form: &&(String, Vec<u8>)| content[at..].starts_with(&form.1);
            self.forms[usize::from(*first)].iter().find(here).map(|(name, _)| name.as_str())
        })
    }

    fn must_find_nothing(&self, what: &str, content: &[u8]) {
        if let Some(found) = self.find(content) {
            panic!("{found} is in {what}");
        }
    }
}

/// Every file below a folder, by its path in it.
fn files(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    walk(root)
        .into_iter()
        .filter(|path| path.is_file())
        .map(|path| {
            let content = fs::read(&path).expect("a file");
            (path.strip_prefix(root).expect("below the root").to_owned(), content)
        })
        .collect()
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(walk(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn everything_in_the_home_is_the_owners_alone() {
    let bench = Bench::new(&TRIAGE);
    Operator::undisturbed(&bench).lead();
    for path in walk(&bench.home) {
        let mode = fs::metadata(&path).expect("metadata").permissions().mode() & 0o777;
        let want = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, want, "{} has mode {mode:o}", path.display());
    }
}
