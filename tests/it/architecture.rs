//! What must stay absent, and which document must agree with which code. Each test is a line of ARCHITECTURE.md.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every Rust source below `folder`, with its path from the workspace's root.
fn sources(folder: &str) -> Vec<(String, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(folder), &mut found);
    found.sort();
    found
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(root()).expect("below the root").display().to_string();
            (name, fs::read_to_string(&path).expect("UTF-8"))
        })
        .collect()
}

/// The code of a file: without comments, and without its unit tests, which stand last.
fn code(source: &str) -> String {
    source
        .split("#[cfg(test)]\nmod ")
        .next()
        .unwrap_or_default()
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Files whose code holds one of `words`.
fn naming(folder: &str, words: &[&str]) -> BTreeSet<String> {
    sources(folder)
        .into_iter()
        // A file of unit tests may build what the code beside it may not.
        .filter(|(name, _)| !name.ends_with("/tests.rs") && !name.contains("/tests/"))
        .filter(|(_, source)| words.iter().any(|word| code(source).contains(word)))
        .map(|(name, _)| name)
        .collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn dependencies_point_one_way() {
    for (member, forbidden) in [
        ("protocol", &["journal", "engine", "opjournal"][..]),
        ("journal", &["engine", "opjournal"][..]),
        ("engine", &["opjournal"][..]),
    ] {
        let manifest = text(&format!("{member}/Cargo.toml"));
        let dependencies = manifest.split("[dependencies]").nth(1).expect("dependencies");
        let dependencies = dependencies.split("\n[").next().expect("a section");
        for name in forbidden {
            let named = dependencies
                .lines()
                .any(|line| line.starts_with(&format!("{name} ")) || line.starts_with(&format!("{name}.")));
            assert!(!named, "{member} depends on {name}");
        }
    }
}

#[test]
fn the_unmaintained_crates_each_stand_behind_one_module() {
    for (name, place) in [("bincode::", "journal/src/payload.rs"), ("fs2::", "journal/src/lock.rs")] {
        let mut found = BTreeSet::new();
        for folder in ["protocol/src", "journal/src", "engine/src", "cli/src"] {
            found.extend(naming(folder, &[name]));
        }
        assert_eq!(found, set(&[place]), "{name}");
    }
    // The index comes later; until then nothing may name it.
    assert!(naming("journal/src", &["sled::"]).is_empty());
}

#[test]
fn protocol_and_machine_name_no_clock_file_thread_or_randomness() {
    let banned = [
        "std::",
        "SystemTime",
        "Instant",
        "HashMap",
        "HashSet",
        "thread::",
        "getrandom",
        "f32",
        "f64",
        "Mutex",
    ];
    for folder in ["engine/src/machine", "protocol/src"] {
        for (name, source) in sources(folder) {
            if name.contains("/tests") {
                continue;
            }
            let code = code(&source);
            for word in banned {
                let named = code.lines().any(|line| line.contains(word));
                // Floats exist in JSON numbers only, where RFC 8785 prints them.
                let json = name.contains("canonical_json") || name.contains("bundle");
                assert!(!named || (json && word.starts_with('f')), "{name} names {word}");
            }
        }
    }
}

#[test]
fn nobody_writes_unsafe() {
    for folder in ["protocol", "journal", "engine", "cli", "tests", "benches"] {
        for (name, source) in sources(folder) {
            // Spelt in two halves, so that these lines do not find themselves.
            for word in [concat!("unsa", "fe {"), concat!("unsa", "fe fn"), concat!("unsa", "fe impl")] {
                assert!(!code(&source).contains(word), "{name}");
            }
        }
    }
    assert!(text("Cargo.toml").contains("unsafe_code = \"forbid\""));
}

#[test]
fn the_engine_does_not_know_the_demonstration_target() {
    for (name, source) in sources("engine/src") {
        assert!(!source.to_lowercase().contains("mockmed"), "{name}");
    }
}

#[test]
fn the_command_line_holds_no_rule_about_runs() {
    let rules = ["machine::decide", "machine::apply", "allowed_actions(", "protocol::command"];
    assert_eq!(naming("cli/src", &rules), BTreeSet::new());
}

#[test]
fn nothing_listens_outside_the_demonstration_target() {
    let found = naming("cli/src", &["TcpListener", "UnixListener"]);
    assert!(found.iter().all(|name| name.starts_with("cli/src/mockmed")), "{found:?}");
    for folder in ["protocol/src", "journal/src", "engine/src"] {
        let found: Vec<_> = naming(folder, &["TcpListener", "UnixListener"])
            .into_iter()
            .filter(|name| !name.contains("test"))
            .collect();
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn the_codemap_names_every_source_file_and_no_other() {
    let architecture = text("ARCHITECTURE.md");
    let map =
        architecture.split("```text").nth(1).and_then(|rest| rest.split("```").next()).expect("a codemap");
    let mut named = BTreeSet::new();
    let mut folder = String::new();
    for line in map.lines().filter(|line| !line.trim().is_empty()) {
        let entry = line.split_whitespace().next().expect("a word");
        if line.starts_with(' ') {
            named.insert(format!("{folder}{entry}"));
        } else {
            folder = entry.to_owned();
            assert!(root().join(&folder).is_dir(), "{folder} is in the codemap and not in the tree");
        }
    }
    for path in &named {
        assert!(root().join(path).exists(), "{path} is in the codemap and not in the tree");
    }
    for folder in ["protocol/src", "journal/src", "engine/src", "cli/src"] {
        for (name, _) in sources(folder) {
            let covered = named.contains(&name)
                || named.iter().any(|entry| entry.ends_with('/') && name.starts_with(entry.as_str()));
            assert!(covered, "{name} is in the tree and not in the codemap");
        }
    }
}

#[test]
fn readme_and_ci_run_the_same_test_command() {
    let command = "cargo test --workspace";
    assert!(text("README.md").contains(command));
    assert_eq!(text(".ci/run").lines().last(), Some(command));
}

#[test]
fn readme_shows_the_example_that_is_compiled() {
    let example = text("engine/examples/own_executor.rs");
    let readme = text("README.md");
    let shown =
        readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a Rust block");
    for line in shown.lines().map(str::trim).filter(|line| !line.is_empty()) {
        assert!(example.contains(line), "README shows a line that the example has not: {line}");
    }
}
