//! `replay`: the story of the journal or of one run, folded again from the first record, and whether every recorded
//! state is the one that folding gives.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use engine::service::story::{self, Chapter, Decided, Link, Replayed, RunStories, RunStory, StoryError};
use journal::Reader;
use protocol::ids::RunId;
use protocol::refusal::RefusalCode;
use serde_json::{Value, json};

use crate::context::Cx;
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use crate::meaning;
use crate::output::{Paint, Stream};
use crate::time;

/// Every record in order: position, time, who, what it means. After a run's end, or at the end, its lineage of
/// checkpoints and its decisions; last, each recorded state compared with the one that folding the journal again gives.
///
/// Takes no lock and writes nothing, so it works on a read-only copy. `--json` prints one object a line (EVENTS.md, "JSON
/// lines") and a last one with the summary. Ends with 65 when a state differs or damage stops it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opjournal replay
  opjournal replay --run run_… --json
  opjournal replay --limit 20             the last 20 records; everything is compared all the same
  opjournal --home /mnt/copy replay       a copy, offline")]
pub(crate) struct Args {
    /// Tell of this run only
    #[arg(long, value_name = "RUN")]
    run: Option<RunId>,

    /// Tell the last N records only
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: Option<u32>,
}

/// Tells the story.
pub(crate) fn run(args: &Args, cx: &Cx) -> Result<Exit, Failure> {
    let reader = cx.reader()?;
    // Without a mark of this boot the last block may still be one that was never acknowledged.
    let confirmed = reader.info().is_ok_and(|info| info.confirmed);
    let mut teller = Teller::new(args, cx.out.json(), cx.out.out, cx.out.stream());
    let (replayed, stopped) = teller.replay(&reader)?;
    let known = teller.told > 0 || args.run.is_none();
    if !known && stopped.is_none() {
        return Err(RefusalCode::UnknownRun.into());
    }
    let stopped = stopped.map(failure);
    let exit = match &stopped {
        Some(failure) => failure.exit(),
        None if replayed.first_different.is_some() => Exit::Damaged,
        None => Exit::Verified,
    };
    teller.finish(&replayed, stopped.as_ref(), confirmed)?;
    match stopped {
        Some(failure) if !cx.out.json() => Err(failure),
        Some(_) | None => Ok(exit),
    }
}

fn failure(error: StoryError) -> Failure {
    match error {
        StoryError::Read(error) => error.into(),
        StoryError::Codec(error) => codec(&error),
    }
}

/// What a record that is not understood means to the command.
pub(super) fn codec(error: &engine::service::codec::CodecError) -> Failure {
    use engine::service::codec::CodecError;
    match error {
        CodecError::Unknown { seq, .. } => {
            Failure::new(Code::NewerFormat, error.to_string(), "Use the newer opjournal that wrote it.")
                .with("seq", *seq)
        }
        CodecError::Malformed { seq, .. } => Failure::new(
            Code::Damaged,
            error.to_string(),
            "Its checksum fits, so it was written so: report this, and keep the journal as it is.",
        )
        .with("seq", *seq),
        CodecError::TooLarge { .. } => Failure::new(Code::Internal, error.to_string(), "Report this."),
    }
}

/// Where lines go.
trait Lines {
    fn line(&mut self, text: &str) -> Result<(), Failure>;
    fn done(self) -> Result<(), Failure>;
}

impl Lines for Stream {
    fn line(&mut self, text: &str) -> Result<(), Failure> {
        Self::line(self, text)
    }

    fn done(self) -> Result<(), Failure> {
        self.finish()
    }
}

struct Teller<L> {
    run: Option<RunId>,
    limit: Option<usize>,
    json: bool,
    paint: Paint,
    lines: L,
    /// The last lines, where only those are told.
    kept: VecDeque<String>,
    stories: RunStories,
    /// The story of the selected run, once it has ended.
    selected: Option<RunStory>,
    /// Records that belong to the selection.
    told: u64,
}

impl<L: Lines> Teller<L> {
    fn new(args: &Args, json: bool, paint: Paint, lines: L) -> Self {
        Self {
            run: args.run,
            limit: args.limit.map(|limit| limit as usize),
            json,
            paint,
            lines,
            kept: VecDeque::new(),
            stories: RunStories::default(),
            selected: None,
            told: 0,
        }
    }

    /// Tells record by record. The outer error is a failed output, which ends everything.
    fn replay(&mut self, reader: &Reader) -> Result<(Replayed, Option<StoryError>), Failure> {
        let mut failed = None;
        let replayed = story::replay(reader, &mut |chapter, _| match self.tell(chapter) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                failed = Some(failure);
                ControlFlow::Break(())
            }
        });
        match (failed, replayed) {
            (Some(failure), _) => Err(failure),
            (None, Ok(replayed)) => Ok((replayed, None)),
            (None, Err(stopped)) => Ok((stopped.replayed, Some(stopped.error))),
        }
    }

    fn tell(&mut self, chapter: &Chapter) -> Result<(), Failure> {
        if self.run.is_some() && self.run != chapter.run() {
            return Ok(());
        }
        self.told += 1;
        let mut text = if self.json { json_line(chapter)? } else { self.text(chapter) };
        if let Chapter::Fact(entry) = chapter
            && let Some((run, story)) = self.stories.note(entry)
        {
            if self.run.is_some() {
                self.selected = Some(story);
            } else if !self.json {
                text.push('\n');
                text.push_str(self.of_run(run, &story).trim_end());
            }
        }
        match self.limit {
            None => self.lines.line(&text),
            Some(limit) => {
                if self.kept.len() == limit {
                    self.kept.pop_front();
                }
                self.kept.push_back(text);
                Ok(())
            }
        }
    }

    fn text(&self, chapter: &Chapter) -> String {
        let run = chapter.run().map_or_else(|| "-".to_owned(), |run| meaning::short(&run));
        format!(
            "{:>6}  {}  {:<22} {:<12}  {}",
            chapter.seq().0,
            self.paint.dim(&time::utc(chapter.time())),
            meaning::actor(chapter),
            run,
            meaning::of(chapter),
        )
    }

    /// The lineage and the decisions of a run.
    fn of_run(&self, run: RunId, story: &RunStory) -> String {
        let ended = story.finished.as_ref().map_or("not ended", |finished| finished.outcome.as_str());
        let mut text = format!("\n        {} {ended}\n", self.paint.bold(&run.to_string()));
        if !story.lineage.is_empty() {
            text.push_str("          lineage of its checkpoints:\n");
        }
        for link in &story.lineage {
            let _ = writeln!(text, "            {}", self.link(link, story));
        }
        if !story.decisions.is_empty() {
            text.push_str("          decisions:\n");
        }
        for decided in &story.decisions {
            text.push_str(&decision(decided));
        }
        text
    }

    fn link(&self, link: &Link, story: &RunStory) -> String {
        let parent = link.parent.map_or_else(|| "(first)".to_owned(), |parent| meaning::short(&parent));
        let decided = link.decision.and_then(|id| story.decision(id));
        let by = decided
            .map_or_else(String::new, |decided| format!(", decided by {}", meaning::by(&decided.author)));
        let broken = if link.continues {
            String::new()
        } else {
            self.paint.red("  does NOT continue the checkpoint before it")
        };
        format!(
            "{parent:<19} → {:<19}  step {} `{}`: {}{by} (record {}){broken}",
            meaning::short(&link.digest),
            u64::from(link.index) + 1,
            link.step,
            meaning::doer(link.kind),
            link.seq,
        )
    }

    /// What is left: kept lines, runs that have not ended, the comparison.
    fn finish(
        mut self,
        replayed: &Replayed,
        stopped: Option<&Failure>,
        confirmed: bool,
    ) -> Result<(), Failure> {
        for text in std::mem::take(&mut self.kept) {
            self.lines.line(&text)?;
        }
        let open = std::mem::take(&mut self.stories).into_open();
        if self.json {
            let selected =
                self.run.zip(self.selected.take().as_ref().or_else(|| open.values().next()).map(story_json));
            let summary = summary_json(replayed, self.told, stopped, confirmed, selected);
            self.lines.line(&summary.to_string())?;
        } else {
            let ended = self.run.zip(self.selected.take());
            for (run, story) in ended.into_iter().chain(open) {
                let text = self.of_run(run, &story);
                self.lines.line(text.trim_end())?;
            }
            let text = summary_text(replayed, stopped.is_some(), confirmed, self.paint);
            self.lines.line(&text)?;
        }
        self.lines.done()
    }
}

/// One line of JSON in which nothing can steer a terminal. What could stands in strings only, where an escape is the same.
pub(super) fn json_line(chapter: &Chapter) -> Result<String, Failure> {
    let line = serde_json::to_string(chapter)
        .map_err(|_| Failure::new(Code::Internal, "a record cannot be written as JSON", "Report this."))?;
    Ok(line.chars().fold(String::with_capacity(line.len()), |mut safe, character| {
        if meaning::misleads(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(character);
        }
        safe
    }))
}

fn decision(decided: &Decided) -> String {
    let mut text = format!(
        "            {} by {} (record {}): ",
        decided.action,
        meaning::by(&decided.author),
        decided.seq
    );
    match &decided.end {
        None => text.push_str("not ended"),
        Some(end) => {
            text.push_str(meaning::ending(end.outcome));
            if let Some(code) = end.refusal {
                let _ = write!(text, " ({code})");
            }
            if let Some(by) = end.settled_by {
                let _ = write!(text, ", settled by {}", meaning::short(&by));
            }
            if end.seq != decided.seq {
                let _ = write!(text, " (record {})", end.seq);
            }
        }
    }
    let _ = write!(
        text,
        "\n              {}\n              key {}\n              capability {}\n",
        decided.decision, decided.key, decided.capability
    );
    text
}

fn summary_text(replayed: &Replayed, stopped: bool, confirmed: bool, paint: Paint) -> String {
    let mut text = format!("\n{} records, {} events folded", replayed.records, replayed.events);
    if stopped {
        let _ = write!(text, "; {}", paint.red(&format!("stopped before record {}", replayed.next)));
    }
    text.push('\n');
    match &replayed.first_different {
        None if replayed.compared == 0 => text.push_str("no recorded state to compare with"),
        None => {
            let states = if replayed.compared == 1 { "state" } else { "states" };
            text.push_str(
                &paint.green(&format!("{} recorded {states} compared, all equal", replayed.compared)),
            );
        }
        Some(different) => {
            let since =
                replayed.last_equal.map_or_else(|| "the beginning".to_owned(), |seq| format!("record {seq}"));
            let _ = write!(
                text,
                "{}\n  recorded    {}\n  recomputed  {}\n  they part somewhere between {since} and record {}",
                paint.red(&format!(
                    "the state recorded at {} is NOT the one that folding gives",
                    different.seq
                )),
                different.recorded,
                different.recomputed,
                different.seq
            );
        }
    }
    if replayed.passed_over > 0 {
        let _ = write!(
            text,
            "; {} more were taken while others wrote, and cannot be compared",
            replayed.passed_over
        );
    }
    if let Some(end) = replayed.end {
        let _ = write!(text, "\nstate {end}");
    }
    if !confirmed {
        text.push_str("\nno synced mark of this boot: the last block is unconfirmed");
    }
    text
}

fn summary_json(
    replayed: &Replayed,
    told: u64,
    stopped: Option<&Failure>,
    confirmed: bool,
    selected: Option<(RunId, Value)>,
) -> Value {
    let different = replayed.first_different.map(|different| {
        json!({ "seq": different.seq, "recorded": different.recorded, "recomputed": different.recomputed })
    });
    let stopped = stopped.map(|failure| failure.to_json()["error"].clone());
    let mut summary = json!({
        "records": replayed.records,
        "events": replayed.events,
        "told": told,
        "next_seq": replayed.next,
        "states": {
            "compared": replayed.compared,
            "passed_over": replayed.passed_over,
            "all_equal": different.is_none(),
            "last_equal": replayed.last_equal,
            "first_different": different,
        },
        "state": replayed.end,
        "confirmed": confirmed,
        "stopped": stopped,
    });
    if let Some((run, story)) = selected {
        summary["run"] = story;
        summary["run"]["run"] = json!(run);
    }
    json!({ "summary": summary })
}

fn story_json(story: &RunStory) -> Value {
    let lineage: Vec<Value> = story
        .lineage
        .iter()
        .map(|link| {
            json!({
                "seq": link.seq, "step": link.step, "index": link.index, "kind": link.kind, "parent": link.parent,
                "digest": link.digest, "continues": link.continues, "decision": link.decision,
            })
        })
        .collect();
    let decisions: Vec<Value> = story
        .decisions
        .iter()
        .map(|decided| {
            let end = decided.end.map(|end| {
                json!({
                    "seq": end.seq, "outcome": end.outcome, "refusal": end.refusal, "settled_by": end.settled_by,
                })
            });
            json!({
                "seq": decided.seq, "decision": decided.decision, "key": decided.key,
                "capability": decided.capability, "action": decided.action, "disposition": decided.disposition,
                "operator": decided.author.operator, "via": decided.author.via, "end": end,
            })
        })
        .collect();
    let outcome = story.finished.as_ref().map(|finished| finished.outcome);
    json!({ "outcome": outcome, "lineage": lineage, "decisions": decisions })
}

#[cfg(test)]
#[path = "replay/tests.rs"]
mod tests;
