//! A long-lived host program on a home, asked line by line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::process::text;
use super::scenario::Bench;

const PROGRAM: &str = env!("CARGO_BIN_EXE_opjournal-test-host");

/// Ends when dropped.
pub(crate) struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Host {
    /// Opens the bench's home.
    pub(crate) fn start(bench: &Bench) -> Self {
        Self::spawn(Command::new(PROGRAM), bench)
    }

    /// The same where no file may become longer than `limit` bytes: beyond it a write fails.
    pub(crate) fn start_limited(bench: &Bench, limit: u64) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", &limited(limit), PROGRAM]);
        Self::spawn(command, bench)
    }

    fn spawn(mut command: Command, bench: &Bench) -> Self {
        let mut child = command
            .arg(&bench.home)
            .arg(bench.file("config.json"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the host starts");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut host = Self { child, stdin, stdout };
        let ready = host.read();
        assert_eq!(ready["ready"], true, "{ready}");
        host
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("no answer ({why}): {line}"))
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask(&mut self, request: &Value) -> Value {
        let stdin = self.stdin.as_mut().expect("open");
        writeln!(stdin, "{request}").expect("a request");
        self.read()
    }

    /// Decides on an item as it was shown.
    pub(crate) fn decide(&mut self, item: &Value, action: &str, key: &str) -> Value {
        self.ask(&json!({ "decide": {
            "attention_id": text(item, "/id"),
            "capability_digest": text(item, "/capability/digest"),
            "idempotency_key": key,
            "action": action,
        } }))
    }

    /// Ends it by the end of its input; it closes its engine.
    pub(crate) fn close(mut self) {
        drop(self.stdin.take());
        let status = self.child.wait().expect("a status");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A shell's line that runs its own `$0` where no file may become longer than `limit` bytes. A write beyond it would end
/// the process with a signal, if that were not ignored; then it fails as on a full disk. POSIX counts in 512 bytes.
pub(crate) fn limited(limit: u64) -> String {
    format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", limit / 512)
}
