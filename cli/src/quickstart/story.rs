//! How the demonstration is told: as it goes for a person, and as one document at the end for a program.

use std::io::{self, Write as _};
use std::time::Instant;

use serde::Serialize;
use serde_json::{Map, Value};

use super::child::Ended;
use crate::output::{Output, Paint};

/// One stage, for a program.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Stage {
    number: usize,
    name: &'static str,
    ended_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    facts: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
}

/// The telling.
pub(super) struct Story {
    out: Output,
    begun: Instant,
    stages: Vec<Stage>,
}

impl Story {
    pub(super) fn new(out: Output) -> Self {
        Self { out, begun: Instant::now(), stages: Vec::new() }
    }

    /// Milliseconds since the beginning.
    pub(super) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The stages so far.
    pub(super) fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// Name of the stage that is being told.
    pub(super) fn current(&self) -> &'static str {
        self.stages.last().map_or("beginning", |stage| stage.name)
    }

    /// Begins a stage.
    pub(super) fn begin(&mut self, name: &'static str, title: &str) {
        let number = self.stages.len() + 1;
        let paint = self.paint();
        self.write(&format!("\n{} {}\n", paint.cyan(&format!("{number:>2}")), paint.bold(title)));
        self.stages.push(Stage {
            number,
            name,
            ended_ms: self.elapsed_ms(),
            command: None,
            exit: None,
            facts: Map::new(),
            result: None,
        });
    }

    /// Shows a command that is about to run.
    pub(super) fn command(&mut self, arguments: &[String]) {
        let shown: Vec<String> = arguments.iter().map(|word| abbreviated(word)).collect();
        self.write(&format!("   {}\n", self.paint().dim(&format!("$ opjournal {}", shown.join(" ")))));
        self.stage(|stage| stage.command = Some(arguments.to_vec()));
    }

    /// What a command came to.
    pub(super) fn ended(&mut self, ended: &Ended) {
        let (exit, result) = (ended.exit, ended.document.clone());
        self.stage(|stage| {
            stage.exit = exit;
            stage.result = result;
        });
    }

    /// A fact of this stage, for a program.
    pub(super) fn fact(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        self.stage(|stage| {
            stage.facts.insert(name.to_owned(), value);
        });
    }

    /// A paragraph, for a person.
    pub(super) fn tell(&mut self, text: &str) {
        let lines: String = text.lines().map(|line| format!("   {line}\n")).collect();
        self.write(&lines);
        let now = self.elapsed_ms();
        self.stage(|stage| stage.ended_ms = now);
    }

    /// What went well, for a person.
    pub(super) fn good(&mut self, text: &str) {
        let mark = self.paint().green("✓");
        self.tell(&format!("{mark} {text}"));
    }

    /// Something that a person has to do; told on stderr when stdout is for a program.
    pub(super) fn ask(&mut self, text: &str) {
        if self.out.json() {
            self.out.say(text);
        } else {
            self.tell(text);
        }
    }

    /// Text as it is, for a person.
    pub(super) fn write(&self, text: &str) {
        if !self.out.json() {
            let mut stdout = io::stdout().lock();
            // Nobody has to read it.
            let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        }
    }

    pub(super) fn paint(&self) -> Paint {
        self.out.out
    }

    fn stage(&mut self, change: impl FnOnce(&mut Stage)) {
        if let Some(stage) = self.stages.last_mut() {
            change(stage);
        }
    }
}

/// A word of a command, short enough to read.
fn abbreviated(word: &str) -> String {
    match word.strip_prefix("sha256:") {
        Some(digits) => format!("sha256:{}…", digits.get(..8).unwrap_or_default()),
        None => word.to_owned(),
    }
}
