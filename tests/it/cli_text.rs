//! What a person sees: stdout, stderr and exit code of the main commands, pinned together. Ids, times, paths and
//! addresses are replaced by their kind. To accept a change: `INSTA_UPDATE=always cargo test -p opjournal-tests cli_text`.

use std::path::Path;

use serde_json::json;

use crate::support::process::{Call, Ended, text};
use crate::support::scenario::{Bench, TRIAGE};

/// A command's end as one text.
fn told(bench: Option<&Bench>, line: &str, ended: &Ended) -> String {
    let mut page = format!("$ opjournal {line}\nexit {}\n", ended.exit.expect("an exit code"));
    for (name, text) in [("stdout", ended.stdout_text()), ("stderr", ended.stderr_text())] {
        if !text.is_empty() {
            page.push_str(&format!("--- {name}\n{text}"));
        }
    }
    without_what_varies(bench, &page)
}

fn without_what_varies(bench: Option<&Bench>, page: &str) -> String {
    let mut page = page.replace("opjournal-under-test", "opjournal");
    if let Some(bench) = bench {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        for (varies, kind) in [
            (bench.file(""), "FOLDER/"),
            (root.join(""), "ROOT/"),
            (bench.clinic.address.clone().into(), "CLINIC"),
        ] {
            page = page.replace(&varies.display().to_string(), kind);
        }
    }
    times(&hex(&operators(&page)))
}

/// The account's name, and what fills its column up, become `OPERATOR`.
fn operators(page: &str) -> String {
    let author = engine::service::Engine::author(protocol::decision::DecidedVia::Script);
    let named = format!("{} (script)", author.expect("a named account").operator.as_str());
    let mut parts = page.split(&named);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |page, part| {
        let rest = part.trim_start_matches(' ');
        let space = if rest.len() < part.len() { " " } else { "" };
        format!("{page}OPERATOR (script){space}{rest}")
    })
}

/// Long hexadecimal numbers, and short ones that name something, become `HEX`.
fn hex(page: &str) -> String {
    const BEFORE: [&str; 6] = ["engine ", "run_", "decision_", "delivery_", "sha256:", "blake3:"];
    let mut out = String::new();
    let mut digits = String::new();
    for character in page.chars().chain(['\0']) {
        if character.is_ascii_digit() || ('a'..='f').contains(&character) {
            digits.push(character);
            continue;
        }
        let names = digits.len() >= 8 && BEFORE.iter().any(|before| out.ends_with(before));
        out.push_str(if digits.len() >= 16 || names { "HEX" } else { &digits });
        digits.clear();
        if character != '\0' {
            out.push(character);
        }
    }
    out
}

/// `2026-01-31 12:34:56` and the like become `TIME`.
fn times(page: &str) -> String {
    const FORM: &[u8] = b"dddd-dd-dd dd:dd:dd";
    let fits = |at: &[u8]| {
        at.len() >= FORM.len()
            && FORM.iter().zip(at).all(|(form, byte)| match form {
                b'd' => byte.is_ascii_digit(),
                b' ' => matches!(byte, b' ' | b'T'),
                _ => form == byte,
            })
    };
    let mut out = String::new();
    let mut rest = page;
    while let Some(character) = rest.chars().next() {
        if fits(rest.as_bytes()) {
            out.push_str("TIME");
            rest = rest[FORM.len()..].trim_start_matches(|more: char| more == '.' || more.is_ascii_digit());
        } else {
            out.push(character);
            rest = &rest[character.len_utf8()..];
        }
    }
    out
}

fn of(bench: &Bench, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    told(Some(bench), line, &plain(Call::text(&bench.home, &words)).run())
}

/// As in a pipe of 100 columns.
fn plain(call: Call) -> Call {
    call.env("COLUMNS", "100").env("NO_COLOR", "1")
}

#[test]
fn help_and_usage_errors() {
    for (name, line) in [
        ("help", "--help"),
        ("help_short", "-h"),
        ("help_run", "run --help"),
        ("help_decide", "decide --help"),
        ("exit_codes", "exit-codes"),
        ("unknown_command", "no-such-command"),
        ("unknown_option", "verify --no-such-option"),
        ("stray_argument", "verify what-may-be-a-value"),
        ("missing_argument", "run"),
        ("malformed_key", "decide 0123456789abcdef01234567 --action continue --capability x --key y"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        insta::assert_snapshot!(name, told(None, line, &plain(Call::bare(&words)).run()));
    }
}

#[test]
fn a_home_that_is_empty() {
    let bench = Bench::new(&TRIAGE);
    for (name, line) in [
        ("empty_verify", "verify"),
        ("empty_runs", "runs list"),
        ("empty_runs_json", "runs list --json"),
        ("empty_info", "info"),
    ] {
        insta::assert_snapshot!(name, of(&bench, line));
    }
}

#[test]
fn a_bundle_that_is_good_and_one_that_is_not() {
    let bench = Bench::new(&TRIAGE);
    insta::assert_snapshot!("bundle_good", of(&bench, &format!("bundle check {}", bench.bundle.display())));
    let bad = bench.file("bad");
    std::fs::create_dir(&bad).expect("a folder");
    let workflow = json!({
        "format": 1,
        "name": "bad",
        "profile": "demo",
        "unknown": 1,
        "parameters": [{ "name": "patient", "type": "text" }],
        "steps": [{ "id": "one", "intent": "Do it", "attended": "sometimes", "consequential": true }],
    });
    std::fs::write(bad.join("workflow.json"), workflow.to_string()).expect("a file");
    for (name, line) in [("bundle_bad", ""), ("bundle_bad_json", " --json")] {
        insta::assert_snapshot!(name, of(&bench, &format!("bundle check {}{line}", bad.display())));
    }
}

#[test]
fn a_small_run_from_its_start_to_its_replay() {
    let bench = Bench::new(&TRIAGE);
    insta::assert_snapshot!("run_paused", of(&bench, &bench.run_arguments().join(" ")));
    let item = bench.item();
    let id = text(&item, "/id");
    insta::assert_snapshot!("attention_list", of(&bench, "attention list"));
    insta::assert_snapshot!("attention_show", of(&bench, &format!("attention show {id}")));
    let refused = bench.decide_live_arguments(&item, "skip", "a-skip-not-allowed");
    insta::assert_snapshot!("decide_not_allowed", of(&bench, &refused.join(" ")));
    insta::assert_snapshot!("decide_not_allowed_json", of(&bench, &format!("{} --json", refused.join(" "))));
    let early = bench.decide_live_arguments(&item, "continue", "a-continue-too-soon");
    insta::assert_snapshot!("decide_not_verified", of(&bench, &early.join(" ")));
    bench.do_task(2);
    let done = bench.decide_live_arguments(&item, "continue", "the-key-of-the-continue");
    insta::assert_snapshot!("decide_continue", of(&bench, &done.join(" ")));
    insta::assert_snapshot!("decide_repeated", of(&bench, &done.join(" ")));
    insta::assert_snapshot!("run_repeated", of(&bench, &bench.run_arguments().join(" ")));
    insta::assert_snapshot!("runs_list", of(&bench, "runs list --all"));
    insta::assert_snapshot!("verify", of(&bench, "verify"));
    insta::assert_snapshot!("replay", of(&bench, "replay"));
    let segment = bench.home.join("journal/00000000000000000000.seg");
    let mut content = std::fs::read(&segment).expect("the segment");
    content[700] ^= 1;
    std::fs::write(&segment, content).expect("the segment");
    insta::assert_snapshot!("verify_damaged", of(&bench, "verify"));
    insta::assert_snapshot!("run_damaged", of(&bench, &bench.run_arguments().join(" ")));
}
