//! The program as a shell sees it: stdout, stderr and exit code together.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};

use serde_json::{Value, json};

/// A value that must never be seen again, wherever it was put in.
const CANARY: &str = "CANARY-7f3a";

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_opjournal"));
    for name in ["OPJOURNAL_HOME", "XDG_STATE_HOME"] {
        command.env_remove(name);
    }
    command
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    program().arg("--home").arg(home).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn triage() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bundles/triage")
}

/// A clinic in a process of its own, ended with this value.
struct Clinic {
    child: Child,
    stdin: Option<ChildStdin>,
    config: PathBuf,
}

impl Clinic {
    fn start(folder: &Path) -> Self {
        let mut child = program()
            .args(["--json", "--end-with-stdin", "mockmed", "serve", "--port", "0", "--data"])
            .arg(folder.join("clinic"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let greeting: Value = serde_json::from_str(&line).unwrap();
        let config = folder.join("clinic.json");
        let deployment = json!({ "http": {
            "target": greeting["address"],
            "sign_in": { "path": "/sign-in", "form": {
                "user": { "value": greeting["user"] }, "password": { "value": greeting["password"] } } },
            "credentials": { "readback": { "header": "X-Api-Key", "value": { "value": greeting["readback_key"] } } },
        } });
        std::fs::write(&config, deployment.to_string()).unwrap();
        Self { child, stdin, config }
    }

    fn config(&self) -> &str {
        self.config.to_str().unwrap()
    }
}

impl Drop for Clinic {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn parameters(folder: &Path, note: &str) -> PathBuf {
    let path = folder.join("params.json");
    let parameters = json!({
        "patient": "p-001", "name": "Ada Sample", "dob": "1984-03-12", "note": note, "reference": "test-1",
    });
    std::fs::write(&path, parameters.to_string()).unwrap();
    path
}

#[test]
fn help_and_version_end_well_and_go_to_stdout() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in
        [vec!["--help"], vec!["--version"], vec!["help", "decide"], vec!["runs", "list", "--help"]]
    {
        let output = run(folder.path(), &arguments);
        assert_eq!(code(&output), 0, "{arguments:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{arguments:?}: {output:?}");
    }
    let help = stdout(&run(folder.path(), &["--help"]));
    for command in [
        "quickstart",
        "run",
        "runs",
        "resume",
        "cancel",
        "attention",
        "decide",
        "replay",
        "verify",
        "export",
        "bundle",
        "info",
        "exit-codes",
        "mockmed",
        "completions",
        "man",
    ] {
        assert!(help.contains(&format!("\n  {command} ")), "{command} is not in the help:\n{help}");
    }
    assert!(!help.contains("end-with-stdin"), "{help}");
}

#[test]
fn an_error_has_its_exit_code_its_stable_code_and_a_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let config = folder.path().join("config.json");
    std::fs::write(&config, "{}").unwrap();
    let config = config.to_str().unwrap();
    let digest = format!("sha256:{}", "0".repeat(64));
    let run_id = format!("run_{}", "0".repeat(32));
    let item = "0".repeat(24);
    let missing = folder.path().join("missing");
    let missing = missing.to_str().unwrap();
    for (arguments, exit, stable) in [
        (vec!["no-such-command"], 64, "usage"),
        (vec!["run"], 64, "usage"),
        (vec!["runs", "show", "17"], 64, "usage"),
        (vec!["resume"], 64, "usage"),
        (vec!["quickstart"], 64, "usage"),
        (vec!["info", "--set-limit", "pause=1"], 64, "usage"),
        (vec!["run", missing, "--target", "http://x/path"], 64, "invalid_config"),
        (vec!["run", missing, "--config", config], 64, "invalid_config"),
        (vec!["run", missing, "--config", missing], 69, "not_found"),
        (vec!["run", missing, "--params", missing], 69, "not_found"),
        (vec!["runs", "list"], 69, "no_journal"),
        (vec!["runs", "show", &run_id], 69, "no_journal"),
        (vec!["attention", "list"], 69, "no_journal"),
        (vec!["cancel", &run_id], 69, "no_journal"),
        (vec!["resume", "--all"], 69, "no_journal"),
        (vec!["decide", &item, "--action", "reject", "--capability", &digest], 69, "no_journal"),
        (
            vec![
                "decide",
                &item,
                "--action",
                "reject",
                "--capability",
                &digest,
                "--disposition",
                "not_applicable",
            ],
            64,
            "invalid_request",
        ),
        (vec!["run", missing], 2, "invalid_bundle"),
    ] {
        let output = run(&home, &arguments);
        assert_eq!(code(&output), exit, "{arguments:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{arguments:?} wrote to stdout: {output:?}");
        if stable != "usage" {
            assert!(
                stderr(&output).contains(&format!("code {stable}, exit {exit}\n")),
                "{arguments:?}: {output:?}"
            );
        }

        let output = run(&home, &[vec!["--json"], arguments.clone()].concat());
        assert_eq!(code(&output), exit, "{arguments:?}: {output:?}");
        let error = document(&output)["error"].clone();
        assert_eq!(error["code"], stable, "{arguments:?}");
        assert_eq!(error["exit"], exit, "{arguments:?}");
        for text in ["message", "next_step"] {
            assert!(error[text].as_str().is_some_and(|text| !text.is_empty()), "{arguments:?}: {error}");
        }
    }
}

#[test]
fn looking_makes_no_home() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    for arguments in [
        vec!["info"],
        vec!["info", "--counts"],
        vec!["runs", "list"],
        vec!["attention", "list"],
        vec!["verify"],
    ] {
        run(&home, &arguments);
        assert!(!home.exists(), "{arguments:?} made the home");
    }
    assert_eq!(code(&run(&home, &["info"])), 0);
}

#[test]
fn no_error_repeats_a_value_that_the_caller_gave() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let triage = triage();
    let triage = triage.to_str().unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let not_json = file("a.json", CANARY.to_owned());
    let not_object = file("b.json", json!([CANARY]).to_string());
    let wrong_type =
        file("c.json", json!({ "patient": { "x": CANARY }, "dob": CANARY, "note": [CANARY] }).to_string());
    let request = file("d.json", json!({ "attention_id": CANARY, "action": CANARY }).to_string());
    let config = file("e.json", json!({ "http": { "target": CANARY, "credentials": CANARY } }).to_string());
    let pair = format!("note={CANARY}");
    let dob = format!("dob={CANARY}");
    let target = ["--target", "http://127.0.0.1:1"];
    let lines: Vec<Vec<&str>> = vec![
        vec!["run", triage, "--param", CANARY],
        vec!["run", triage, "--param", &pair, CANARY],
        vec!["run", triage, "--param", &pair, "--param", &pair],
        vec!["run", triage, "--param", &dob],
        vec!["run", triage, "--params", &not_json],
        vec!["run", triage, "--params", &not_object],
        vec!["run", triage, "--params", &wrong_type],
        vec!["run", triage, "--config", &config],
        vec!["decide", "--request", &request],
    ];
    // A home with a journal, so that a malformed request gets as far as the engine.
    let good = parameters(folder.path(), CANARY);
    let admitted = run(
        &home,
        &[vec!["run", triage, "--detach", "--params", good.to_str().unwrap()], target.into()].concat(),
    );
    assert!(code(&admitted) != 0, "{admitted:?}");
    for line in lines {
        for prefix in [vec![], vec!["--json"]] {
            let mut arguments = [prefix, line.clone()].concat();
            if line[0] == "run" && !line.contains(&"--config") {
                arguments.extend(target);
            }
            let output = run(&home, &arguments);
            assert!(code(&output) >= 2, "{arguments:?}: {output:?}");
            let seen = format!("{}{}", stdout(&output), stderr(&output));
            assert!(!seen.contains(CANARY), "{arguments:?}: {seen}");
        }
    }
}

#[test]
fn a_run_waits_for_its_person_and_the_same_request_is_the_same_run() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let clinic = Clinic::start(folder.path());
    let (bundle, parameters) = (triage(), parameters(folder.path(), CANARY));
    let request = [
        "--json",
        "run",
        bundle.to_str().unwrap(),
        "--params",
        parameters.to_str().unwrap(),
        "--request-id",
        "visit-17",
        "--config",
        clinic.config(),
    ];
    let mut seen = String::new();
    let mut keep = |output: &Output| seen.push_str(&format!("{}{}", stdout(output), stderr(output)));

    let first = run(&home, &request);
    keep(&first);
    assert_eq!(code(&first), 4, "{first:?}");
    assert_eq!(document(&first)["replayed"], false);
    let again = run(&home, &request);
    keep(&again);
    assert_eq!(code(&again), 4, "{again:?}");
    assert_eq!(document(&again)["replayed"], true);
    assert_eq!(document(&again)["run"], document(&first)["run"]);

    let id = document(&first)["run"]["attention_id"].as_str().unwrap().to_owned();
    let shown = run(&home, &["--json", "attention", "show", &id]);
    keep(&shown);
    let commands = document(&shown)["commands"].clone();
    assert!(commands["continue"].as_array().is_some_and(|words| words[0] == "opjournal"), "{commands}");
    let text = run(&home, &["attention", "show", &id]);
    keep(&text);
    assert!(
        stdout(&text).contains(&format!(" decide {id} --action continue --capability sha256:")),
        "{text:?}"
    );

    // A program decides: recorded as such, refused while the form is not there, and the same for ever under its key.
    let capability = document(&shown)["item"]["capability"]["digest"].as_str().unwrap().to_owned();
    let escalate = [
        "--json",
        "decide",
        &id,
        "--action",
        "escalate",
        "--capability",
        &capability,
        "--key",
        "escalate-0123456789",
    ];
    let decided = run(&home, &escalate);
    keep(&decided);
    assert_eq!(code(&decided), 4, "{decided:?}");
    assert_eq!(document(&decided)["decision"]["decided_via"], "script");
    let repeated = run(&home, &escalate);
    keep(&repeated);
    assert_eq!(document(&repeated)["decision"], document(&decided)["decision"]);
    assert_eq!(document(&repeated)["replayed"], true);

    let stale = run(
        &home,
        &[
            "--json",
            "decide",
            &id,
            "--action",
            "reject",
            "--capability",
            &format!("sha256:{}", "0".repeat(64)),
        ],
    );
    keep(&stale);
    assert_eq!((code(&stale), document(&stale)["error"]["code"].as_str()), (2, Some("stale_capability")));
    assert!(stderr(&stale).starts_with("key: reject-"), "the key is printed first: {stale:?}");

    let reject = run(&home, &["--json", "decide", &id, "--action", "reject", "--capability", &capability]);
    keep(&reject);
    assert_eq!(code(&reject), 1, "{reject:?}");
    assert_eq!(document(&reject)["run"]["execution_outcome"], "REJECTED_BY_OPERATOR");
    for arguments in [
        vec!["runs", "list", "--all"],
        vec!["info", "--counts"],
        vec!["attention", "list"],
        vec!["resume", "--all"],
    ] {
        let output = run(&home, &arguments);
        keep(&output);
        assert_eq!(code(&output), 0, "{arguments:?}: {output:?}");
    }
    assert!(!seen.contains(CANARY), "{seen}");
    for file in std::fs::read_dir(home.join("journal")).unwrap() {
        let path = file.unwrap().path();
        let bytes = if path.is_file() { std::fs::read(&path).unwrap() } else { vec![] };
        let found = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
        assert!(!found, "{} holds a parameter's value", path.display());
    }
}

#[test]
fn the_quickstart_holds_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let output = program()
        .args(["quickstart", "--unattended-demo", "--json"])
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(code(&output), 0, "{output:?}");
    let told = document(&output);
    assert_eq!((&told["ok"], &told["operator"]), (&json!(true), &json!("automation")));
    assert_eq!((&told["notes"], &told["note_actuations"]), (&json!(1), &json!(1)));
    let names: Vec<&str> =
        told["stages"].as_array().unwrap().iter().filter_map(|stage| stage["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            "clinic",
            "run",
            "pause",
            "fault",
            "form",
            "kill",
            "resume",
            "reconcile",
            "proof",
            "replay",
            "verify"
        ]
    );
    let stage = |name: &str| {
        let mut stages = told["stages"].as_array().unwrap().iter();
        stages.find(|stage| stage["name"] == name).unwrap().clone()
    };
    assert_eq!(stage("kill").get("exit"), None, "the engine must have been killed, not have ended");
    assert_eq!(stage("resume")["result"]["run"]["outcome"], "not_sure_if_saved");
    let decided = &stage("reconcile")["result"];
    assert_eq!(decided["run"]["execution_outcome"], "VERIFIED");
    assert_eq!(decided["decision"]["decided_via"], "script", "automation is never recorded as a person's");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the temporary home is still there");
}

#[test]
fn the_quickstart_stays_in_a_home_that_was_named_and_can_be_replayed_there() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let told = run(&home, &["quickstart", "--unattended-demo"]);
    assert_eq!(code(&told), 0, "{told:?}");
    for (arguments, exit) in [
        (vec!["replay"], 0),
        (vec!["verify"], 0),
        (vec!["runs", "list", "--all"], 0),
        (vec!["export", "--jsonl"], 0),
    ] {
        assert_eq!(code(&run(&home, &arguments)), exit, "{arguments:?}");
    }
    let bytes =
        std::fs::read_dir(home.join("journal")).unwrap().map(|file| std::fs::read(file.unwrap().path()));
    for value in ["Ada Sample", "1984-03-12", "Triage seen", "demo-only"] {
        let seen = stdout(&run(&home, &["replay"])) + &stdout(&run(&home, &["export", "--jsonl"]));
        assert!(!seen.contains(value), "{value}");
    }
    for bytes in bytes.filter_map(Result::ok) {
        assert!(!bytes.windows(10).any(|window| window == b"Ada Sample"));
    }
}

/// A terminal: what a person types into, and what the program has as stdin and stderr.
fn terminal() -> (std::fs::File, std::fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap().into_string().unwrap();
    let program = std::fs::OpenOptions::new().read(true).write(true).open(name).unwrap();
    (person.into(), program)
}

#[test]
fn a_decision_is_a_persons_only_if_they_typed_it_at_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let clinic = Clinic::start(folder.path());
    let parameters = parameters(folder.path(), "A note");
    let bundle = triage();
    let started = run(
        &home,
        &[
            "--json",
            "run",
            bundle.to_str().unwrap(),
            "--params",
            parameters.to_str().unwrap(),
            "--config",
            clinic.config(),
        ],
    );
    let id = document(&started)["run"]["attention_id"].as_str().unwrap().to_owned();
    let shown = document(&run(&home, &["--json", "attention", "show", &id]));
    let capability = shown["item"]["capability"]["digest"].as_str().unwrap().to_owned();
    for (number, (typed, extra, want)) in [
        (Some("escalate\n"), None, Ok("console")),
        (Some("yes\n"), None, Err("not_confirmed")),
        (Some("\u{4}"), None, Err("not_confirmed")),
        (None, Some("--script"), Ok("script")),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("at-a-terminal-000{number}");
        let (mut person, terminal) = terminal();
        if let Some(typed) = typed {
            person.write_all(typed.as_bytes()).unwrap();
        }
        let mut command = program();
        command.arg("--home").arg(&home).args([
            "--json",
            "decide",
            &id,
            "--action",
            "escalate",
            "--capability",
        ]);
        command.args([capability.as_str(), "--key", &key]).args(extra);
        let child = command
            .stdin(terminal.try_clone().unwrap())
            .stderr(terminal)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let answer = document(&output);
        match want {
            Ok(via) => assert_eq!(answer["decision"]["decided_via"], via, "{typed:?} {extra:?}"),
            Err(code) => assert_eq!(answer["error"]["code"], code, "{typed:?} {extra:?}"),
        }
    }
}

#[test]
fn a_decision_in_a_file_is_exactly_the_contracts_request() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let clinic = Clinic::start(folder.path());
    let parameters = parameters(folder.path(), "A note");
    let bundle = triage();
    let started = run(
        &home,
        &[
            "--json",
            "run",
            bundle.to_str().unwrap(),
            "--params",
            parameters.to_str().unwrap(),
            "--config",
            clinic.config(),
        ],
    );
    let id = document(&started)["run"]["attention_id"].clone();
    let shown = document(&run(&home, &["--json", "attention", "show", id.as_str().unwrap()]));
    let request = json!({
        "attention_id": id,
        "capability_digest": shown["item"]["capability"]["digest"],
        "idempotency_key": "from-a-file-0001",
        "action": "teach",
        "disposition": "teach_requested",
    });
    let mut extra = request.clone();
    extra["operator"] = json!("somebody else");
    for (body, exit) in [(&request, 4), (&extra, 64)] {
        let mut child = program()
            .arg("--home")
            .arg(&home)
            .args(["--json", "decide", "--request", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(body.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(code(&output), exit, "{body}: {output:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = program()
        .arg("--home")
        .arg(folder.path())
        .args(["man"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 0, "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_child_that_is_tied_to_its_parent_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut clinic = Clinic::start(folder.path());
    drop(clinic.stdin.take());
    assert_eq!(clinic.child.wait().unwrap().code(), Some(70));
}

#[test]
fn manual_pages_and_completions_name_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = run(folder.path(), &["man", "--dir", folder.path().to_str().unwrap()]);
    assert_eq!(code(&pages), 0, "{pages:?}");
    for page in ["opjournal.1", "opjournal-decide.1", "opjournal-runs-list.1"] {
        assert!(folder.path().join(page).exists(), "{page}: {pages:?}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = run(folder.path(), &["completions", shell]);
        assert!(stdout(&script).contains("quickstart"), "{shell}");
    }
}

#[test]
fn a_bundle_is_checked_with_a_pointer_to_each_problem() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = triage();
    let good = run(folder.path(), &["--json", "bundle", "check", bundle.to_str().unwrap()]);
    assert_eq!(code(&good), 0, "{good:?}");
    let digest = run(folder.path(), &["bundle", "digest", bundle.to_str().unwrap()]);
    assert_eq!(stdout(&digest).trim(), document(&good)["version"].as_str().unwrap());

    let mut workflow: Value =
        serde_json::from_slice(&std::fs::read(bundle.join("workflow.json")).unwrap()).unwrap();
    workflow["steps"][0]["action"]["args"]["path"] = json!("//elsewhere.example/x");
    std::fs::write(folder.path().join("workflow.json"), workflow.to_string()).unwrap();
    let wrong = run(folder.path(), &["--json", "bundle", "check", folder.path().to_str().unwrap()]);
    assert_eq!(code(&wrong), 2, "{wrong:?}");
    assert_eq!(document(&wrong)["problems"][0]["pointer"], "/steps/0/action/args/path");
}
