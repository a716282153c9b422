use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use tempfile::TempDir;

use super::*;

const WORKFLOW: &str = r#"{"format": 1, "name": "w", "steps": [{"id": "a", "intent": "x", "consequential": false,
    "action": {"executor": "http", "effect_class": "read", "args": {}}}]}"#;

fn bundle() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), WORKFLOW_FILE, WORKFLOW);
    dir
}

fn put(dir: &Path, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    let place = dir.join(path);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(place, content).unwrap();
}

fn problems(dir: &Path) -> Vec<Problem> {
    let BundleError::Problems(problems) = Bundle::load(dir).map(|_| ()).unwrap_err();
    problems
}

fn version(dir: &Path) -> Sha256Digest {
    Bundle::load(dir).unwrap().version
}

/// A case, what is done to a good bundle, and the problems: each code with the beginning of its message.
type Row = (&'static str, fn(&Path), &'static [(ProblemCode, &'static str)]);

#[test]
fn each_bad_folder_gives_its_code_and_names_the_file() {
    #[rustfmt::skip]
    let table: [Row; 24] = [
        ("empty", |dir| fs::remove_file(dir.join(WORKFLOW_FILE)).unwrap(), &[(ProblemCode::MissingFile, "workflow.json is")]),
        ("not there", |dir| fs::remove_dir_all(dir).unwrap(), &[(ProblemCode::Unreadable, "The folder cannot")]),
        (
            "a file",
            |dir| {
                fs::remove_dir_all(dir).unwrap();
                fs::write(dir, WORKFLOW).unwrap();
            },
            &[(ProblemCode::Unreadable, "The folder cannot")],
        ),
        ("workflow in a folder", |dir| {
            fs::remove_file(dir.join(WORKFLOW_FILE)).unwrap();
            put(dir, "inner/workflow.json", WORKFLOW);
        }, &[(ProblemCode::MissingFile, "workflow.json is")]),
        ("workflow is a folder", |dir| {
            fs::remove_file(dir.join(WORKFLOW_FILE)).unwrap();
            fs::create_dir(dir.join(WORKFLOW_FILE)).unwrap();
        }, &[(ProblemCode::MissingFile, "workflow.json is")]),
        ("workflow is a link", |dir| {
            fs::rename(dir.join(WORKFLOW_FILE), dir.join("real.json")).unwrap();
            symlink("real.json", dir.join(WORKFLOW_FILE)).unwrap();
        }, &[(ProblemCode::SymbolicLink, "workflow.json is")]),
        ("link to a file outside", |dir| symlink("/etc/passwd", dir.join("data")).unwrap(), &[(ProblemCode::SymbolicLink, "data is")]),
        ("link to a folder outside", |dir| symlink("..", dir.join("up")).unwrap(), &[(ProblemCode::SymbolicLink, "up is")]),
        ("link to nothing", |dir| symlink("nothing", dir.join("data")).unwrap(), &[(ProblemCode::SymbolicLink, "data is")]),
        ("link to itself, deep", |dir| {
            put(dir, "a/b/file", "");
            symlink("loop", dir.join("a/b/loop")).unwrap();
        }, &[(ProblemCode::SymbolicLink, "a/b/loop is")]),
        ("pipe", |dir| {
            rustix::fs::mkfifoat(rustix::fs::CWD, dir.join("pipe"), rustix::fs::Mode::RUSR).unwrap();
        }, &[(ProblemCode::NotRegular, "pipe is")]),
        ("socket", |dir| drop(std::os::unix::net::UnixListener::bind(dir.join("socket")).unwrap()), &[(ProblemCode::NotRegular, "socket is")]),
        ("backslash", |dir| put(dir, "..\\secret", ""), &[(ProblemCode::PathNotAllowed, "..\\\\secret has")]),
        ("colon", |dir| put(dir, "C:secret", ""), &[(ProblemCode::PathNotAllowed, "C:secret has")]),
        ("newline", |dir| put(dir, "d/a\nb", ""), &[(ProblemCode::PathNotAllowed, "d/a\\nb has")]),
        ("terminal sequence", |dir| put(dir, "\u{1b}[2J", ""), &[(ProblemCode::PathNotAllowed, "\\u{1b}[2J has")]),
        ("not UTF-8", |dir| put(dir, OsStr::from_bytes(b"a\xff"), ""), &[(ProblemCode::PathNotAllowed, "a\u{fffd} has")]),
        ("long path", |dir| {
            let part = "p".repeat(250);
            put(dir, format!("{part}/{part}/{part}/{part}/{part}"), "");
        }, &[(ProblemCode::PathNotAllowed, "pppp")]),
        ("one name in two forms", |dir| {
            put(dir, "\u{e9}", "");
            put(dir, "e\u{301}", "");
        }, &[(ProblemCode::PathNotUnique, "\u{e9} has")]),
        ("one folder in two forms", |dir| {
            put(dir, "\u{e9}/a", "");
            put(dir, "e\u{301}/b", "");
        }, &[(ProblemCode::PathNotUnique, "\u{e9} has")]),
        ("huge file, sparse", |dir| File::create(dir.join("huge")).unwrap().set_len(1 << 40).unwrap(), &[(ProblemCode::TooLarge, "huge takes")]),
        ("many files, too large together", |dir| {
            for number in 0..4 {
                put(dir, format!("data{number}"), vec![0; 5 << 20]);
            }
        }, &[(ProblemCode::TooLarge, "data3 takes")]),
        ("huge readme", |dir| File::create(dir.join("README.md")).unwrap().set_len(17 << 20).unwrap(), &[(ProblemCode::TooLarge, "README.md takes")]),
        ("problems of files and of the workflow", |dir| {
            symlink("/", dir.join("a")).unwrap();
            symlink("/", dir.join("b")).unwrap();
            put(dir, WORKFLOW_FILE, WORKFLOW.replace("false", "1"));
        }, &[(ProblemCode::SymbolicLink, "a is"), (ProblemCode::SymbolicLink, "b is"), (ProblemCode::WrongType, "This must be")]),
    ];
    // File systems of other platforms cannot hold these names, or not both of them.
    let linux_only = ["not UTF-8", "one name in two forms", "one folder in two forms"];
    let holds = |case| cfg!(target_os = "linux") || !linux_only.contains(&case);
    for (case, change, want) in table.into_iter().filter(|(case, ..)| holds(*case)) {
        let outer = tempfile::tempdir().unwrap();
        let dir = outer.path().join("bundle");
        put(&dir, WORKFLOW_FILE, WORKFLOW);
        change(&dir);
        let found = problems(&dir);
        assert_eq!(found.len(), want.len(), "{case}: {found:?}");
        for (problem, (code, begins)) in found.iter().zip(want) {
            assert_eq!(problem.code, *code, "{case}");
            assert!(problem.message.starts_with(begins), "{case}: {}", problem.message);
            let of_a_file = *code != ProblemCode::WrongType;
            assert_eq!(problem.pointer.is_empty(), of_a_file, "{case}: {}", problem.pointer);
        }
    }
}

#[test]
fn too_many_files_stop_the_walk() {
    let dir = bundle();
    for number in 0..MAX_BUNDLE_FILES {
        File::create(dir.path().join(format!("f{number}"))).unwrap();
    }
    let found = problems(dir.path());
    assert_eq!((found.len(), found[0].code), (1, ProblemCode::TooManyFiles));
    fs::remove_file(dir.path().join("f0")).unwrap();
    assert!(Bundle::load(dir.path()).is_ok());
}

#[test]
fn a_bad_text_keeps_its_pointer() {
    let dir = bundle();
    put(dir.path(), WORKFLOW_FILE, WORKFLOW.replace("\"args\"", "\"args\": {}, \"args\""));
    let found = problems(dir.path());
    assert_eq!(
        (found[0].pointer.as_str(), found[0].code),
        ("/steps/0/action/args", ProblemCode::DuplicateKey)
    );
    put(dir.path(), WORKFLOW_FILE, "[".repeat(10_000));
    assert_eq!(problems(dir.path())[0].code, ProblemCode::TooDeep);
}

#[test]
fn the_version_covers_content_and_not_layout_card_or_readme() {
    let dir = bundle();
    put(dir.path(), "data/\u{e9}.txt", "1");
    let base = version(dir.path());
    put(dir.path(), "README.md", "words");
    put(dir.path(), "opjournal-card.json", "{}");
    put(dir.path(), WORKFLOW_FILE, format!("\n{}\n", WORKFLOW.replace(": ", " : ")));
    fs::create_dir(dir.path().join("empty")).unwrap();
    assert_eq!(version(dir.path()), base);
    fs::remove_dir_all(dir.path().join("data")).unwrap();
    put(dir.path(), "data/e\u{301}.txt", "1");
    assert_eq!(version(dir.path()), base);
    put(dir.path(), "data/e\u{301}.txt", "2");
    assert_ne!(version(dir.path()), base);
}

#[test]
fn a_copy_is_private_has_the_same_version_and_is_made_once() {
    let dir = bundle();
    put(dir.path(), "data/deep/er/one.txt", "1");
    put(dir.path(), "data/two.txt", "2");
    put(dir.path(), "README.md", "words");
    let bundle = Bundle::load(dir.path()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let copy = home.path().join("copy");
    bundle.copy_to(&copy).unwrap();
    bundle.copy_to(&copy).unwrap();
    let copied = Bundle::load(&copy).unwrap();
    assert_eq!(copied.version, bundle.version);
    assert_eq!(copied.files().collect::<Vec<_>>(), bundle.files().collect::<Vec<_>>());
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    assert!(!copy.join("README.md").exists());
    for (path, mode) in
        [("", 0o700), ("data/deep/er", 0o700), ("data/two.txt", 0o600), (WORKFLOW_FILE, 0o600)]
    {
        assert_eq!(fs::metadata(copy.join(path)).unwrap().permissions().mode() & 0o777, mode, "{path}");
    }
}

#[test]
fn a_place_that_holds_something_else_is_left_alone() {
    let dir = bundle();
    let bundle = Bundle::load(dir.path()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let copy = home.path().join("copy");
    put(&copy, "precious", "1");
    assert_eq!(bundle.copy_to(&copy).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read(copy.join("precious")).unwrap(), b"1");
    let link = home.path().join("link");
    symlink(dir.path(), &link).unwrap();
    assert_eq!(bundle.copy_to(&link).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
}

#[test]
fn many_copying_at_once_all_succeed_and_leave_one_copy() {
    let dir = bundle();
    put(dir.path(), "data/two.txt", "2");
    let bundle = Bundle::load(dir.path()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let copy = home.path().join("copy");
    std::thread::scope(|scope| {
        let copiers: Vec<_> = (0..8).map(|_| scope.spawn(|| bundle.copy_to(&copy))).collect();
        for copier in copiers {
            copier.join().unwrap().unwrap();
        }
    });
    assert_eq!(version(&copy), bundle.version);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
}

#[test]
fn debug_output_shows_no_content() {
    let shown = format!("{:?}", Bundle::load(bundle().path()).unwrap());
    assert!(shown.starts_with("Bundle { version: sha256:") && !shown.contains("intent"), "{shown}");
}
