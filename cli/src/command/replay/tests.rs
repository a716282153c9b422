//! The story of journals that are made here: a run with a decision of a person, from admission to its end.

use std::path::Path;
use std::sync::Arc;

use engine::machine::{self, State};
use engine::service::codec;
use journal::vfs::os::OsVfs;
use journal::{AppendError, Commit, Draft, Machine, Options, Record, UnknownRecord};
use protocol::bundle::{Attended, Profile};
use protocol::cursor::Cursor;
use protocol::decision::{Action, DecidedVia};
use protocol::delivery::EffectStatus;
use protocol::digest::{MacDigest, Sha256Digest, StateDigest};
use protocol::event::{
    Author, Checkpoint, CheckpointKind, DecisionFinished, DecisionOutcome, DecisionPrepared, EffectReading,
    Entry, Event, LeaseGranted, RunAdmitted, RunFinished, StateRecorded, StepFacts, Under,
};
use protocol::ids::{BootId, DecisionId, InstanceId, JournalId, LeaseToken, PauseId, Seq};
use protocol::outcome::{RecordChanged, RunOutcome};
use protocol::pause::{IdentityStatus, Reason};
use protocol::time::{BootMillis, Deadline, Millis, UnixMillis};

use super::*;

const BOOT: BootId = BootId([0xb0; 16]);
const RUN: RunId = RunId([0x0a; 16]);
const OTHER_RUN: RunId = RunId([0x0c; 16]);
const DECISION: DecisionId = DecisionId([0x0d; 16]);

struct Scribe;

impl Machine for Scribe {
    type Command = Vec<Draft>;
    type Answer = Result<(), AppendError>;

    fn apply(&mut self, _: &Record) -> Result<(), UnknownRecord> {
        Ok(())
    }

    fn decide(&mut self, drafts: Vec<Draft>, commit: &mut Commit<'_>) -> Self::Answer {
        commit.push_all(&drafts).map(|_| ())
    }
}

impl Lines for Vec<String> {
    fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.extend(text.lines().map(str::to_owned));
        Ok(())
    }

    fn done(self) -> Result<(), Failure> {
        DONE.with_borrow_mut(|done| *done = self);
        Ok(())
    }
}

thread_local! {
    /// What the last story of this test said.
    static DONE: std::cell::RefCell<Vec<String>> = const { std::cell::RefCell::new(Vec::new()) };
}

fn author(operator: &str) -> Author {
    // As a journal holds it: a name that was never checked.
    Author { operator: serde_json::from_value(json!(operator)).expect("a text"), via: DecidedVia::Console }
}

fn until() -> Deadline {
    Deadline { wall: UnixMillis(1_769_851_860_000), boot_id: BOOT, boot: BootMillis(60_000) }
}

fn step(index: u32, id: &str) -> StepFacts {
    StepFacts {
        index,
        id: id.parse().expect("a step id"),
        attended: Attended::OnHalt,
        acts: true,
        consequential: true,
        skippable: false,
        postconditions: 1,
        relative: 0,
        effects: 1,
        attested: 0,
        identity_required: false,
        limit: Millis(1000),
    }
}

fn admitted(run: RunId, operator: &str) -> Event {
    RunAdmitted {
        run,
        workflow: format!("wf_{:024x}", 7).parse().expect("a workflow id"),
        bundle: Sha256Digest([1; 32]),
        profile: Profile::Demo,
        parameters: MacDigest([2; 32]),
        policy: Sha256Digest([3; 32]),
        steps: 2,
        effects: 2,
        settle: Millis(0),
        request: None,
        request_digest: MacDigest([4; 32]),
        author: author(operator),
    }
    .into()
}

fn checkpoint(
    index: u32,
    kind: CheckpointKind,
    parent: Option<Sha256Digest>,
    decision: Option<DecisionId>,
) -> Checkpoint {
    let effect = EffectReading { effect: "note".to_owned(), status: EffectStatus::Confirmed, evidence: None };
    Checkpoint {
        run: RUN,
        step: step(index, ["find-patient", "add-note"][index as usize]),
        cursor: Cursor::start(),
        kind,
        parent,
        bundle: Sha256Digest([1; 32]),
        parameters: MacDigest([2; 32]),
        effects: vec![effect],
        identity_status: IdentityStatus::NotRequired,
        identity: None,
        delivery: None,
        delivery_attempted: kind == CheckpointKind::Engine,
        decision,
        under: Under { token: LeaseToken(Seq(2)), until: until() },
    }
}

/// A run in which the engine did the first step and a person the second; `operator` decided.
fn story(operator: &str) -> Vec<Event> {
    let first = checkpoint(0, CheckpointKind::Engine, None, None);
    let second = checkpoint(1, CheckpointKind::Human, Some(first.digest()), Some(DECISION));
    let key: protocol::ids::IdempotencyKey = "visit-17-continue".parse().expect("a key");
    vec![
        admitted(RUN, operator),
        LeaseGranted { run: RUN, holder: InstanceId([0xaa; 16]), until: until() }.into(),
        first.into(),
        admitted(OTHER_RUN, operator),
        DecisionPrepared {
            decision: DECISION,
            run: RUN,
            pause: PauseId([5; 16]),
            attention: format!("{:024x}", 9).parse().expect("an attention id"),
            key: key.clone(),
            request: Sha256Digest([6; 32]),
            capability: Sha256Digest([7; 32]),
            action: Action::Continue,
            disposition: None,
            author: author(operator),
            under: Under { token: LeaseToken(Seq(2)), until: until() },
        }
        .into(),
        second.into(),
        DecisionFinished {
            decision: DECISION,
            run: RUN,
            key,
            outcome: DecisionOutcome::Completed,
            refusal: None,
            settled_by: None,
        }
        .into(),
        RunFinished {
            run: RUN,
            outcome: RunOutcome::Verified,
            reason: Reason::EndReached,
            changed: RecordChanged::Yes,
            confirmed: 2,
        }
        .into(),
    ]
}

/// A journal of these events in blocks of two, with the state recorded after `record_after` of them and at the end;
/// `spoil` changes the digest that the last record says.
fn journal(dir: &Path, events: &[Event], record_after: usize, spoil: bool) -> Reader {
    let mut options = Options::new(InstanceId([0xaa; 16]), BOOT, Arc::new(|| UnixMillis(1_769_851_800_000)));
    options.journal_id = Some(JournalId([0x11; 16]));
    let opened = journal::open(Arc::new(OsVfs), dir, options).expect("a journal");
    let (mut state, mut seq) = (State::default(), opened.next_seq());
    let journal = opened.start(Seq(0), Scribe).expect("a writer");
    let (time, producer) = (UnixMillis(1_769_851_800_000), InstanceId([0xaa; 16]));
    let mut drafts = Vec::new();
    let mut say = |event: Event, state: &mut State| {
        drafts.push(codec::draft(&event, time).expect("a record"));
        machine::apply(state, &Entry { seq, time, producer, event });
        seq = seq.next();
    };
    for (n, event) in events.iter().enumerate() {
        say(event.clone(), &mut state);
        if n + 1 == record_after || n + 1 == events.len() {
            let digest =
                if spoil && n + 1 == events.len() { StateDigest([0xee; 32]) } else { state.digest() };
            let through = Seq(state.next.0 - 1);
            say(StateRecorded { through, digest, snapshot: None }.into(), &mut state);
        }
    }
    for block in drafts.chunks(2) {
        journal.submit(block.to_vec()).expect("an answer").expect("an append");
    }
    journal.close().expect("closing");
    Reader::open(Arc::new(OsVfs), dir, BOOT).expect("a reader")
}

/// Tells the story; what it said, and why it stopped, if it did.
fn told(reader: &Reader, args: &Args, json: bool) -> (Vec<String>, Option<Exit>, Replayed) {
    let mut teller = Teller::new(args, json, Paint::default(), Vec::new());
    let (replayed, stopped) = teller.replay(reader).expect("an output");
    let stopped = stopped.map(failure);
    teller.finish(&replayed, stopped.as_ref(), true).expect("an output");
    (DONE.with_borrow_mut(std::mem::take), stopped.map(|failure| failure.exit()), replayed)
}

const ALL: Args = Args { run: None, limit: None };

#[test]
fn the_story_tells_each_event_then_lineage_and_decisions_and_compares_the_states() {
    let dir = tempfile::tempdir().expect("a folder");
    let reader = journal(dir.path(), &story("anna"), 3, false);
    let (lines, stopped, replayed) = told(&reader, &ALL, false);
    let text = lines.join("\n");
    assert_eq!(stopped, None, "{text}");
    assert_eq!((replayed.compared, replayed.first_different), (2, None), "{text}");
    let at = |wanted: &str| {
        lines
            .iter()
            .position(|line| line.contains(wanted))
            .unwrap_or_else(|| panic!("no line says {wanted:?}:\n{text}"))
    };
    assert!(at("writer epoch 1 begins") < at("is admitted"));
    assert!(lines[at("is admitted")].contains("2026-01-31T09:30:00.000Z  anna (console)"), "{text}");
    assert!(
        at("step 2 `add-note` is committed: a person did it; the engine verified it")
            < at("the run ends: VERIFIED")
    );
    assert!(at("the run ends: VERIFIED") < at("lineage of its checkpoints"));
    let first = checkpoint(0, CheckpointKind::Engine, None, None).digest();
    let link = &lines[at(&format!("{} →", meaning::short(&first)))];
    assert!(link.contains("decided by anna (console)") && !link.contains("NOT"), "{text}");
    assert!(at("continue by anna (console)") < at("              key visit-17-continue"));
    at(&format!("capability {}", Sha256Digest([7; 32])));
    at(&DECISION.to_string());
    at(&format!("{OTHER_RUN} not ended"));
    at("2 recorded states compared, all equal");
    assert_eq!(
        lines.last().map(String::as_str),
        Some(format!("state {}", replayed.end.expect("a state")).as_str())
    );
}

#[test]
fn a_state_that_folding_does_not_give_is_told_with_its_range() {
    let dir = tempfile::tempdir().expect("a folder");
    let reader = journal(dir.path(), &story("anna"), 3, true);
    let (lines, _, replayed) = told(&reader, &ALL, false);
    let text = lines.join("\n");
    let different = replayed.first_different.expect("a difference");
    assert_eq!(
        (replayed.last_equal, different.seq, different.recorded),
        (Some(Seq(4)), Seq(10), StateDigest([0xee; 32]))
    );
    assert!(text.contains("the state recorded at 10 is NOT the one that folding gives"), "{text}");
    assert!(text.contains("between record 4 and record 10"), "{text}");
}

#[test]
fn one_run_is_told_alone_and_everything_is_compared_all_the_same() {
    let dir = tempfile::tempdir().expect("a folder");
    let reader = journal(dir.path(), &story("anna"), 3, false);
    let (lines, _, replayed) = told(&reader, &Args { run: Some(OTHER_RUN), limit: None }, false);
    let text = lines.join("\n");
    assert_eq!(lines.iter().filter(|line| line.contains("console")).count(), 1, "{text}");
    assert!(text.contains(&format!("{OTHER_RUN} not ended")) && !text.contains(&RUN.to_string()), "{text}");
    assert_eq!(replayed.compared, 2);
}

#[test]
fn a_limit_tells_the_last_records_only() {
    let dir = tempfile::tempdir().expect("a folder");
    let reader = journal(dir.path(), &story("anna"), 3, false);
    let (lines, _, replayed) = told(&reader, &Args { run: None, limit: Some(2) }, true);
    assert_eq!(replayed.compared, 2);
    let seqs: Vec<Value> =
        lines.iter().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["seq"].clone()).collect();
    assert_eq!(seqs, [json!(9), json!(10), Value::Null]);
}

#[test]
fn json_is_one_object_a_line_with_a_summary_last() {
    let dir = tempfile::tempdir().expect("a folder");
    let reader = journal(dir.path(), &story("anna"), 3, false);
    let (lines, _, replayed) = told(&reader, &Args { run: Some(RUN), limit: None }, true);
    let lines: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let (summary, records) = lines.split_last().expect("lines");
    assert_eq!(records.len(), 7);
    assert_eq!(records[0]["name"], "run_admitted");
    assert_eq!(records[0]["fields"]["author"]["operator"], "anna");
    let summary = &summary["summary"];
    assert_eq!(summary["state"], json!(replayed.end));
    assert_eq!(summary["states"]["all_equal"], true);
    assert_eq!((&summary["run"]["run"], &summary["run"]["outcome"]), (&json!(RUN), &json!("VERIFIED")));
    assert_eq!(summary["run"]["lineage"][1]["parent"], summary["run"]["lineage"][0]["digest"]);
    assert_eq!(summary["run"]["decisions"][0]["key"], "visit-17-continue");
    assert_eq!(summary["run"]["decisions"][0]["end"]["outcome"], "completed");
}

#[test]
fn an_operators_name_cannot_steer_the_terminal_that_shows_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let reader = journal(dir.path(), &story("an\u{1b}[2J\u{9b}1mna\u{202e}\u{7f}"), 3, false);
    for json in [false, true] {
        let (lines, ..) = told(&reader, &ALL, json);
        assert!(lines.iter().all(|line| !line.chars().any(meaning::misleads)), "{lines:#?}");
    }
}

#[test]
fn damage_ends_the_story_after_everything_before_it_was_told() {
    let dir = tempfile::tempdir().expect("a folder");
    journal(dir.path(), &story("anna"), 3, false);
    let segment = dir.path().join(format!("{:020}.seg", 0));
    let mut bytes = std::fs::read(&segment).expect("a segment");
    let written = bytes.iter().rposition(|byte| *byte != 0).expect("a record");
    bytes[written / 2] ^= 1;
    std::fs::write(&segment, bytes).expect("a flipped bit");
    let reader = Reader::open(Arc::new(OsVfs), dir.path(), BOOT).expect("a reader");
    let (lines, stopped, replayed) = told(&reader, &ALL, false);
    let text = lines.join("\n");
    assert_eq!(stopped, Some(Exit::Damaged), "{text}");
    assert!(text.contains("is admitted") && !text.contains("the run ends"), "{text}");
    assert!(text.contains(&format!("stopped before record {}", replayed.next)), "{text}");
    let (lines, ..) = told(&reader, &ALL, true);
    let summary: Value = serde_json::from_str(lines.last().expect("a summary")).expect("JSON");
    assert_eq!(summary["summary"]["stopped"]["code"], "damaged");
    assert_eq!(summary["summary"]["stopped"]["file"], format!("{:020}.seg", 0));
}

#[test]
fn a_checkpoint_that_does_not_continue_the_one_before_is_told() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut events = story("anna");
    events[5] = checkpoint(1, CheckpointKind::Human, Some(Sha256Digest([9; 32])), Some(DECISION)).into();
    let reader = journal(dir.path(), &events, 3, false);
    let (lines, ..) = told(&reader, &ALL, false);
    assert!(
        lines.iter().any(|line| line.contains("does NOT continue the checkpoint before it")),
        "{lines:#?}"
    );
}
