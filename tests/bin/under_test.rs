//! The `opjournal` program itself, with hooks: it counts the points at which a crash could matter, and ends, stops or
//! fails at those that the environment names. Without these variables it is the program as it is shipped.
//!
//! | variable | meaning |
//! |---|---|
//! | `OPJOURNAL_TEST_POINTS` | file to which the name of each passed point is appended; its lines before the start are counted, so that an index is global over all processes of a scenario |
//! | `OPJOURNAL_TEST_KILL_AT` | places, separated by commas: SIGKILL to itself there |
//! | `OPJOURNAL_TEST_STOP_AT` | the same with SIGSTOP; it goes on with SIGCONT |
//! | `OPJOURNAL_TEST_FAIL_SYNC` | number of a sync of a segment in this process, from 0, that fails with EIO |
//!
//! A place is a global index, from 0, or the start of a point's name with `#N`: the Nth such point of this process,
//! from 1.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ExitCode, abort};
use std::sync::{Arc, Mutex, PoisonError};

use cli::{Hooks, main_with};
use engine::service::ports::Boundary;
use journal::vfs::fault::{Event, FaultVfs, Operation, When};
use journal::vfs::os::OsVfs;
use rustix::process::{Signal, getpid, kill_process};

fn main() -> ExitCode {
    let points = match Points::from_environment() {
        Ok(points) => Arc::new(points),
        Err(why) => {
            // A harness that asks for nonsense must not run a scenario that proves nothing.
            eprintln!("opjournal-under-test: {why}");
            abort();
        }
    };
    let disk = Arc::clone(&points);
    let vfs = FaultVfs::new(Arc::new(OsVfs), Arc::new(move |event| disk.on_disk(event)));
    let boundary = Arc::new(move |boundary| points.pass(name_of(boundary)));
    main_with(Hooks { vfs: Arc::new(vfs), boundary })
}

const fn name_of(boundary: Boundary) -> &'static str {
    match boundary {
        Boundary::BeforeAct => "before act",
        Boundary::AfterAct => "after act",
        Boundary::BeforeCheck => "before check",
        Boundary::AfterCheck => "after check",
    }
}

/// Where to do something.
enum Place {
    /// At the point with this number.
    Index(u64),
    /// At the nth point of this process whose name starts so.
    Named { start: String, left: u64 },
}

impl Place {
    fn list(variable: &str) -> Result<Vec<Self>, String> {
        let Some(text) = variable_text(variable)? else { return Ok(Vec::new()) };
        text.split(',')
            .map(|place| Self::parse(place).ok_or(format!("{variable}: no place: {place}")))
            .collect()
    }

    fn parse(text: &str) -> Option<Self> {
        if let Ok(index) = text.parse() {
            return Some(Self::Index(index));
        }
        let (start, nth) = text.split_once('#')?;
        Some(Self::Named { start: start.to_owned(), left: nth.parse().ok().filter(|nth| *nth > 0)? })
    }

    fn is_here(&mut self, index: u64, name: &str) -> bool {
        match self {
            Self::Index(wanted) => *wanted == index,
            Self::Named { start, left } => {
                let hit = name.starts_with(start.as_str()) && *left > 0;
                *left -= u64::from(hit);
                hit && *left == 0
            }
        }
    }
}

/// What has been passed, and what is still to come.
struct Points(Mutex<State>);

struct State {
    log: Option<File>,
    next: u64,
    kill_at: Vec<Place>,
    stop_at: Vec<Place>,
    syncs: u64,
    fail_sync: Option<u64>,
}

impl Points {
    fn from_environment() -> Result<Self, String> {
        let (log, next) = match variable_text("OPJOURNAL_TEST_POINTS")? {
            Some(path) => open_log(Path::new(&path)).map_err(|error| format!("{path}: {error}"))?,
            None => (None, 0),
        };
        let fail_sync = variable_text("OPJOURNAL_TEST_FAIL_SYNC")?
            .map(|text| text.parse().map_err(|_| format!("OPJOURNAL_TEST_FAIL_SYNC: no number: {text}")))
            .transpose()?;
        Ok(Self(Mutex::new(State {
            log,
            next,
            kill_at: Place::list("OPJOURNAL_TEST_KILL_AT")?,
            stop_at: Place::list("OPJOURNAL_TEST_STOP_AT")?,
            syncs: 0,
            fail_sync,
        })))
    }

    /// One operation on a file of the home. The points are those of segments: before and after each write, after each
    /// sync, creation and renaming; and what was done to any other file, after it was done.
    fn on_disk(&self, event: &Event<'_>) -> io::Result<()> {
        let file = event.path.file_name().unwrap_or_default().to_string_lossy();
        let segment = file.contains(".seg");
        match (event.when, event.operation) {
            (When::Before, Operation::Write { offset, bytes }) if segment => {
                self.pass(&format!("before write {file} {offset}+{bytes}"));
            }
            (When::Before, Operation::Sync) if segment => return self.sync_may_fail(),
            (When::After, Operation::Write { offset, bytes }) if segment => {
                self.pass(&format!("after write {file} {offset}+{bytes}"));
            }
            (When::After, Operation::Sync) => self.pass(&format!("after sync {}", plain(event.path))),
            (When::After, Operation::Write { .. }) => {
                self.pass(&format!("after write {}", plain(event.path)))
            }
            (When::After, Operation::Create) => self.pass(&format!("after create {}", plain(event.path))),
            (When::After, Operation::Rename) => self.pass(&format!("after rename {}", plain(event.path))),
            (When::After, Operation::SetLen) => self.pass(&format!("after set_len {}", plain(event.path))),
            (When::After, Operation::Remove) => self.pass(&format!("after remove {}", plain(event.path))),
            (When::After, Operation::SyncDir) => self.pass(&format!("after sync_dir {}", plain(event.path))),
            (When::Before | When::After, Operation::Read)
            | (
                When::Before,
                Operation::Write { .. }
                | Operation::Sync
                | Operation::Create
                | Operation::Rename
                | Operation::SetLen
                | Operation::Remove
                | Operation::SyncDir,
            ) => {}
        }
        Ok(())
    }

    fn pass(&self, name: &str) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = state.next;
        state.next += 1;
        if let Some(log) = &mut state.log
            && log.write_all(format!("{name}\n").as_bytes()).is_err()
        {
            abort();
        }
        if state.kill_at.iter_mut().any(|place| place.is_here(index, name)) {
            signal(Signal::KILL);
            // Nothing is done after this point, however long the signal takes.
            loop {
                std::thread::park();
            }
        }
        if state.stop_at.iter_mut().any(|place| place.is_here(index, name)) {
            signal(Signal::STOP);
            // The other threads are stopped a moment later than this one asked for it.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    fn sync_may_fail(&self) -> io::Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fails = state.fail_sync == Some(state.syncs);
        state.syncs += 1;
        drop(state);
        if !fails {
            return Ok(());
        }
        self.pass("failed sync");
        Err(io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error()))
    }
}

fn signal(signal: Signal) {
    if kill_process(getpid(), signal).is_err() {
        abort();
    }
}

/// The log, and how many points earlier processes have passed.
fn open_log(path: &Path) -> io::Result<(Option<File>, u64)> {
    let log = OpenOptions::new().create(true).append(true).open(path)?;
    let passed = BufReader::new(File::open(path)?).lines().count() as u64;
    Ok((Some(log), passed))
}

/// A file's place in the home without what differs from run to run, so that two recordings can be compared.
fn plain(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.contains(".seg") || name == "lock" {
        return name.into_owned();
    }
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let shown = |text: &str| {
        let opaque = text.len() > 20 && text.bytes().filter(u8::is_ascii_hexdigit).count() > 16;
        if opaque { "…".to_owned() } else { text.to_owned() }
    };
    format!("{}/{}", shown(&folder), shown(&name))
}

fn variable_text(name: &str) -> Result<Option<String>, String> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(format!("{name} is not text")),
    }
}
