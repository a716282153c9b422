//! Children of the demonstration: opjournal itself, in processes of its own. None of them outlives this one: each is
//! ended when its handle is dropped, and the ones that read no terminal also end when this process does.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::failure::{Code, Failure};

/// Who a child listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stdin {
    /// Nobody: it ends with this process.
    Tied,
    /// The person at the terminal.
    Person,
}

/// A running child.
pub(super) struct Running {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    /// Held open for as long as the child may live.
    _stdin: Option<ChildStdin>,
}

/// A child that has ended.
pub(super) struct Ended {
    /// Its exit code; none when it was killed.
    pub(super) exit: Option<i32>,
    /// The JSON document that it printed, or the last of several.
    pub(super) document: Option<Value>,
}

/// Starts opjournal in `folder` with `arguments` and `--json`.
///
/// # Errors
/// When the system starts no process.
pub(super) fn start(
    home: &Path,
    folder: &Path,
    arguments: &[String],
    stdin: Stdin,
) -> Result<Running, Failure> {
    let failed = |error: std::io::Error| Failure::io("starting a process", &error);
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.current_dir(folder).stdout(Stdio::piped());
    command.arg("--json").arg("--home").arg(home).args(arguments);
    match stdin {
        Stdin::Tied => {
            // Its talk is not shown: what matters is in its document.
            command.arg("--end-with-stdin").stdin(Stdio::piped()).stderr(Stdio::null());
        }
        Stdin::Person => {
            command.stdin(Stdio::inherit()).stderr(Stdio::inherit());
        }
    }
    let mut child = command.spawn().map_err(failed)?;
    let stdout = child.stdout.take().map(BufReader::new);
    let stdin = child.stdin.take();
    Ok(Running { child, stdout, _stdin: stdin })
}

impl Running {
    /// The first line that it prints.
    ///
    /// # Errors
    /// When it ends without one.
    pub(super) fn first_line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        if let Some(stdout) = &mut self.stdout {
            stdout.read_line(&mut line).map_err(|error| Failure::io("reading from a process", &error))?;
        }
        if line.is_empty() {
            let text = "a process ended without a word";
            return Err(Failure::new(Code::Quickstart, text, "Run the same command by itself to see why."));
        }
        Ok(line)
    }

    /// Whether it is still there.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Its process id.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, with the signal that cannot be caught, and waits for its end.
    ///
    /// # Errors
    /// When the system does not let us.
    pub(super) fn kill(mut self) -> Result<Ended, Failure> {
        self.child.kill().map_err(|error| Failure::io("killing a process", &error))?;
        self.wait()
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When its output cannot be read.
    pub(super) fn wait(mut self) -> Result<Ended, Failure> {
        let mut text = String::new();
        if let Some(stdout) = &mut self.stdout {
            stdout
                .read_to_string(&mut text)
                .map_err(|error| Failure::io("reading from a process", &error))?;
        }
        let status = self.child.wait().map_err(|error| Failure::io("waiting for a process", &error))?;
        // A command that answers line by line ends with its summary.
        let last = || text.lines().last().and_then(|line| serde_json::from_str(line).ok());
        Ok(Ended { exit: status.code(), document: serde_json::from_str(&text).ok().or_else(last) })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_running() {
            // If it cannot be killed, it is gone already.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Ended {
    /// A member of the document, by JSON pointer.
    ///
    /// # Errors
    /// When there is none: with the child's own error, if it told one.
    pub(super) fn text(&self, pointer: &str) -> Result<String, Failure> {
        let document = self.document.as_ref();
        if let Some(text) = document.and_then(|document| document.pointer(pointer)).and_then(Value::as_str) {
            return Ok(text.to_owned());
        }
        let error = document.and_then(|document| document.pointer("/error/message")).and_then(Value::as_str);
        let message = match error {
            Some(error) => format!("a command failed: {error}"),
            None => format!("a command answered nothing at {pointer}"),
        };
        Err(Failure::new(Code::Quickstart, message, "Look at the home with `opjournal replay`."))
    }
}
