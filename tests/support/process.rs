//! The program under test as a child process: its arguments, its places to die, stop or fail, and how it ended.

use std::ffi::OsStr;
use std::fmt;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};
use serde_json::Value;

/// Catches a hang: far beyond what any command takes, also on a busy machine.
pub(crate) const HANG: Duration = Duration::from_secs(60);
/// Between two looks at something that changes soon.
pub(crate) const LOOK: Duration = Duration::from_millis(5);

const PROGRAM: &str = env!("CARGO_BIN_EXE_opjournal-under-test");

/// A call of the program that is not made yet.
pub(crate) struct Call {
    command: Command,
    shown: Vec<String>,
}

impl Call {
    /// The program on a home, with `--json`.
    pub(crate) fn json(home: &Path, arguments: &[impl AsRef<OsStr>]) -> Self {
        Self::text(home, arguments).argument("--json")
    }

    /// The program on a home, as a person sees it.
    pub(crate) fn text(home: &Path, arguments: &[impl AsRef<OsStr>]) -> Self {
        Self::bare(arguments).argument("--home").argument(home)
    }

    /// The program with these arguments and nothing else.
    pub(crate) fn bare(arguments: &[impl AsRef<OsStr>]) -> Self {
        Self::of(Command::new(PROGRAM), arguments)
    }

    /// The program where no file may become longer than `limit` bytes: beyond it a write fails.
    pub(crate) fn limited(home: &Path, arguments: &[impl AsRef<OsStr>], limit: u64) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", &super::host::limited(limit), PROGRAM]);
        Self::of(command, arguments).argument("--home").argument(home).argument("--json")
    }

    fn of(mut command: Command, arguments: &[impl AsRef<OsStr>]) -> Self {
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("OPJOURNAL_") {
                command.env_remove(name);
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let call = Self { command, shown: Vec::new() };
        arguments.iter().fold(call, |call, argument| call.argument(argument))
    }

    /// One more argument.
    pub(crate) fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.shown.push(argument.as_ref().to_string_lossy().into_owned());
        self.command.arg(argument);
        self
    }

    /// A variable of the environment.
    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Where to stop with SIGSTOP: see `under_test.rs`.
    pub(crate) fn stop_at(self, place: &str) -> Self {
        self.env("OPJOURNAL_TEST_STOP_AT", place)
    }

    /// Where to die: see `under_test.rs`.
    pub(crate) fn kill_at(self, place: &str) -> Self {
        self.env("OPJOURNAL_TEST_KILL_AT", place)
    }

    /// Starts it.
    pub(crate) fn start(mut self) -> Running {
        let mut child = self.command.spawn().expect("the program under test starts");
        let (mut stdout, mut stderr) =
            (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        let (send, output) = mpsc::channel();
        thread::spawn(move || {
            let errors = thread::spawn(move || {
                let mut bytes = Vec::new();
                stderr.read_to_end(&mut bytes).map(|_| bytes)
            });
            let mut bytes = Vec::new();
            let read = stdout.read_to_end(&mut bytes).map(|_| bytes);
            let errors = errors.join().expect("no panic");
            // Nobody waits any more for a process that was given up.
            let _ = send.send((read, errors));
        });
        Running { child, output, shown: self.shown }
    }

    /// Runs it to its end.
    pub(crate) fn run(self) -> Ended {
        self.start().wait()
    }
}

type Output = (std::io::Result<Vec<u8>>, std::io::Result<Vec<u8>>);

/// A process that was started. Killed when dropped.
pub(crate) struct Running {
    child: Child,
    output: mpsc::Receiver<Output>,
    shown: Vec<String>,
}

impl Running {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("a signal");
    }

    /// Waits until it has stopped itself.
    pub(crate) fn wait_until_stopped(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < HANG {
            let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
            match waitpid(Some(self.pid()), options).expect("a child") {
                Some((_, status)) if is_stopped(status) => return,
                Some((_, status)) => panic!("{:?} did not stop, but ended: {status:?}", self.shown),
                None => thread::sleep(LOOK),
            }
        }
        panic!("{:?} did not stop", self.shown);
    }

    /// Waits until it ends.
    pub(crate) fn wait(mut self) -> Ended {
        let Ok((stdout, stderr)) = self.output.recv_timeout(HANG) else {
            panic!("{:?} hangs", self.shown);
        };
        let status = self.child.wait().expect("a status");
        Ended {
            shown: std::mem::take(&mut self.shown),
            exit: status.code(),
            signal: status.signal(),
            stdout: stdout.expect("stdout"),
            stderr: stderr.expect("stderr"),
        }
    }
}

fn is_stopped(status: WaitStatus) -> bool {
    status.stopped()
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already, and then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a process ended.
pub(crate) struct Ended {
    shown: Vec<String>,
    pub(crate) exit: Option<i32>,
    signal: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Ended {
    /// Whether SIGKILL ended it.
    pub(crate) fn was_killed(&self) -> bool {
        self.signal == Some(Signal::KILL.as_raw())
    }

    pub(crate) fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub(crate) fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// The one JSON document on stdout.
    pub(crate) fn document(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|why| panic!("no JSON ({why}): {self}"))
    }

    /// The code of the error that it printed as JSON; empty without one.
    pub(crate) fn code(&self) -> String {
        text(&self.document(), "/error/code")
    }

    /// Must have exited so.
    #[track_caller]
    pub(crate) fn must_exit(self, exit: i32) -> Self {
        assert_eq!(self.exit, Some(exit), "{self}");
        self
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match (self.exit, self.signal) {
            (Some(exit), _) => format!("exit {exit}"),
            (None, signal) => format!("signal {signal:?}"),
        };
        write!(f, "`{}`: {how}\n{}{}", self.shown.join(" "), self.stdout_text(), self.stderr_text())
    }
}

/// The text at a JSON pointer; empty if there is none.
pub(crate) fn text(document: &Value, pointer: &str) -> String {
    document.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}
