//! What a person or a program sees. Text and `--json` come from the same value; data goes to stdout, talk to stderr.
//! Colours only on a terminal, and never with `NO_COLOR`. A reader that goes away is no panic.

use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;

use crate::failure::{Code, Failure};

/// Where output goes and how it looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    json: bool,
    /// Colours on stdout.
    pub(crate) out: Paint,
    /// Colours on stderr.
    pub(crate) err: Paint,
}

impl Output {
    /// As the terminal and the environment say.
    pub(crate) fn new(json: bool) -> Self {
        let plain = json || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let colours = |terminal: bool| Paint { on: terminal && !plain && !dumb };
        Self { json, out: colours(io::stdout().is_terminal()), err: colours(io::stderr().is_terminal()) }
    }

    /// Whether `--json` was given.
    pub(crate) const fn json(&self) -> bool {
        self.json
    }

    /// Prints a command's result: `value` itself under `--json`, else the text made from it.
    ///
    /// # Errors
    /// When stdout cannot be written. A reader that went away is none: the command has done its work.
    pub(crate) fn result<T: Serialize>(
        &self,
        value: &T,
        text: impl FnOnce(&T, Paint) -> String,
    ) -> Result<(), Failure> {
        let page = if self.json {
            let mut page = serde_json::to_string_pretty(value).map_err(|_| {
                Failure::new(Code::Internal, "the result cannot be written as JSON", "Report this.")
            })?;
            page.push('\n');
            page
        } else {
            text(value, self.out)
        };
        let mut stdout = io::stdout().lock();
        match stdout.write_all(page.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::output(&error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Stdout for a long result that is written line by line. End it with [`Stream::finish`].
    pub(crate) fn stream(&self) -> Stream {
        Stream { stdout: io::BufWriter::with_capacity(64 * 1024, io::stdout().lock()) }
    }

    /// Talk for a person: a line on stderr, nothing under `--json`.
    pub(crate) fn note(&self, text: &str) {
        if !self.json {
            self.say(text);
        }
    }

    /// A line on stderr that is said in any case.
    pub(crate) fn say(&self, text: &str) {
        // Nobody has to read it.
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// Says why the command failed: one JSON object on stdout under `--json`, else lines on stderr.
    pub(crate) fn failure(&self, failure: &Failure) {
        if failure.code() == Code::OutputClosed {
            return;
        }
        if self.json {
            let mut stdout = io::stdout().lock();
            // If it cannot be written, the exit code still tells.
            let _ = writeln!(stdout, "{:#}", failure.to_json()).and_then(|()| stdout.flush());
        } else {
            self.say(failure_text(failure, self.err).trim_end());
        }
    }
}

/// A failure as a person reads it.
pub(crate) fn failure_text(failure: &Failure, paint: Paint) -> String {
    let mut text = format!("{} {}\n", paint.red(&paint.bold("error:")), failure.message());
    for (name, value) in failure.details() {
        match value.as_array() {
            Some(items) => {
                for item in items {
                    text.push_str(&format!("  - {}\n", problem_text(item)));
                }
            }
            None => text.push_str(&format!("  {}: {}\n", name.replace('_', " "), plain(value))),
        }
    }
    if !failure.next_step().is_empty() {
        text.push_str(&format!("{} {}\n", paint.bold("next: "), failure.next_step()));
    }
    let (code, exit) = (failure.code().as_str(), failure.exit().code());
    text.push_str(&paint.dim(&format!("code {code}, exit {exit}")));
    text.push('\n');
    text
}

/// A problem of a bundle or of parameters: its place and what to do.
pub(crate) fn problem_text(problem: &serde_json::Value) -> String {
    let member = |name: &str| problem.get(name).map(plain).filter(|text| !text.is_empty());
    match (member("file"), member("pointer"), member("message")) {
        (file, pointer, Some(message)) => {
            let place: Vec<String> = file.into_iter().chain(pointer).collect();
            let place = if place.is_empty() { "(whole document)".to_owned() } else { place.join(" ") };
            format!("{place}: {message}")
        }
        (_, _, None) => plain(problem),
    }
}

/// A value as text for a terminal, which no text of a bundle or a target may steer.
fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), crate::meaning::harmless)
}

/// Stdout, buffered.
pub(crate) struct Stream {
    stdout: io::BufWriter<io::StdoutLock<'static>>,
}

impl Stream {
    /// Writes a line.
    ///
    /// # Errors
    /// When stdout cannot be written, also when its reader went away: then there is no reason to go on.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        writeln!(self.stdout, "{text}").map_err(|error| Failure::output(&error))
    }

    /// Writes a value as one line of JSON.
    ///
    /// # Errors
    /// As [`Stream::line`].
    pub(crate) fn json<T: Serialize>(&mut self, value: &T) -> Result<(), Failure> {
        let line = serde_json::to_string(value)
            .map_err(|_| Failure::new(Code::Internal, "a line cannot be written as JSON", "Report this."))?;
        self.line(&line)
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// As [`Stream::line`].
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.stdout.flush().map_err(|error| Failure::output(&error))
    }
}

/// Colours, or none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// Stronger.
    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// Weaker.
    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// Good.
    pub(crate) fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    /// Wants attention.
    pub(crate) fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }

    /// Wrong.
    pub(crate) fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    /// A name or a command to type.
    pub(crate) fn cyan(self, text: &str) -> String {
        self.with("36", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_happened_then_what_to_do_then_its_code() {
        let failure = Failure::no_journal();
        let text = failure_text(&failure, Paint::default());
        assert_eq!(
            text,
            "error: there is no journal in this home\n\
             next:  Start one with `opjournal run BUNDLE`, see one at work with `opjournal quickstart`, or name another \
             home with `--home DIR`.\n\
             code no_journal, exit 69\n"
        );
    }

    #[test]
    fn problems_are_listed_with_their_places() {
        let problems = serde_json::json!([{ "pointer": "/steps/0", "code": "x", "message": "needs `id`" }]);
        let failure = Failure::usage("wrong", "mend it").with("problems", problems);
        assert!(failure_text(&failure, Paint::default()).contains("\n  - /steps/0: needs `id`\n"));
    }

    #[test]
    fn paint_is_off_unless_it_is_on() {
        assert_eq!(Paint::default().red("x"), "x");
        assert_eq!(Paint { on: true }.red("x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
