//! A journal of many runs, quickly: the machine says what would have been recorded, and the journal takes it in large
//! blocks instead of one a command. What comes of it is what a home holds that did this work.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use engine::machine::{
    Answer, Context, Facts, FreshIds, LiveFacts, MachineLimits, State, apply, decide_audited,
};
use engine::service::{Home, codec};
use journal::Draft;
use journal::format::record::encoded_len;
use journal::vfs::os::OsVfs;
use protocol::bundle::{Attended, Profile};
use protocol::capability::CapabilityKey;
use protocol::command::{Command, Finding, LiveFinding, StartRun, Verified};
use protocol::decision::{Action, DecidedVia, DecisionRequest, Disposition, Operator};
use protocol::delivery::{EffectStatus, ReceiptOutcome};
use protocol::digest::{MacDigest, Sha256Digest};
use protocol::event::{Author, CheckpointKind, EffectReading, Entry, StepFacts};
use protocol::ids::{BootId, DecisionId, DeliveryId, LeaseToken, PauseId, RunId, Seq};
use protocol::pause::{Category, IdentityStatus, Reason};
use protocol::time::{BootMillis, Millis, Moment, UnixMillis};

use crate::plain::{self, PRODUCER};

/// Bytes of records that go into one block.
const BLOCK_BYTES: usize = 512 << 10;
/// One run in so many is left waiting for its person.
const LEFT_OPEN: u64 = 500;
/// Events between two records of the state.
const STATE_EVERY: u64 = 50_000;

const LIMIT: Millis = Millis(10_000);
const BUNDLE: Sha256Digest = Sha256Digest([2; 32]);
const POLICY: Sha256Digest = Sha256Digest([3; 32]);
const PARAMETERS: MacDigest = MacDigest([4; 32]);
const EVIDENCE: MacDigest = MacDigest([5; 32]);

/// What was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// Events.
    pub events: u64,
    /// Runs that ended.
    pub ended: u64,
    /// Runs that wait for a person.
    pub open: usize,
    /// The state at the end.
    pub state: State,
}

/// Writes a journal of at least `events` events into a new home.
#[must_use]
pub fn write(home: &Path, events: u64) -> Written {
    let home = Home::new(home, Arc::new(OsVfs));
    home.create().expect("a home");
    let (journal, next) = plain::open(&home.journal());
    let mut writer = Writer::new(next);
    let submit = |writer: &mut Writer| {
        let first = writer.first;
        let drafts = std::mem::take(&mut writer.drafts);
        writer.first = writer.state.next;
        writer.bytes = 0;
        if !drafts.is_empty() {
            let seq = journal.submit(drafts).expect("an answer").expect("a sequence");
            assert_eq!(seq, first, "tokens name sequences");
        }
    };
    let (mut runs, mut recorded) = (0, 0);
    while writer.events < events {
        writer.one_run(runs % LEFT_OPEN == LEFT_OPEN - 1);
        runs += 1;
        if writer.events - recorded >= STATE_EVERY {
            recorded = writer.events;
            writer.record_state();
        }
        if writer.bytes >= BLOCK_BYTES {
            submit(&mut writer);
        }
    }
    submit(&mut writer);
    journal.close().expect("a close");
    Written {
        events: writer.events,
        ended: writer.state.retired.runs,
        open: writer.state.runs.len(),
        state: writer.state,
    }
}

/// The machine at work, and what is to be appended.
struct Writer {
    state: State,
    now: u64,
    fresh: u64,
    key: CapabilityKey,
    author: Author,
    events: u64,
    first: Seq,
    drafts: Vec<Draft>,
    bytes: usize,
}

impl Writer {
    fn new(next: Seq) -> Self {
        let operator = Operator::new("anna").expect("a name");
        Self {
            state: State { next, ..State::default() },
            now: 1_700_000_000_000,
            fresh: 0,
            key: CapabilityKey::new([7; 32]),
            author: Author { operator, via: DecidedVia::Console },
            events: 0,
            first: next,
            drafts: Vec::new(),
            bytes: 0,
        }
    }

    /// A step of the engine, one of a person, and another of the engine; or only as far as the person.
    fn one_run(&mut self, left_open: bool) {
        let run = self.started();
        let token =
            self.leased(Command::Acquire { run, limit: LIMIT, recheck: false, author: self.author.clone() });
        self.acts(run, token, 0);
        let finding = Finding {
            category: Category::AttendedStep,
            reason: Reason::StepIsAttended,
            evidence: vec![EVIDENCE],
            identity_status: IdentityStatus::Verified,
            identity: Some(EVIDENCE),
            baseline: true,
        };
        self.say(Command::Stop { run, token, step: step(1), finding });
        if left_open {
            return;
        }
        let Answer::CarryOut { token, decision, .. } = self.say(self.decision(run)) else {
            unreachable!("the pause is open and its capability valid")
        };
        let finding = LiveFinding::Verified(verified(&step(1)));
        self.say(Command::FinishDecision { run, token, decision: decision.id, finding });
        self.acts(run, token, 2);
    }

    fn started(&mut self) -> RunId {
        let request = format!("visit-{:012}", self.fresh).parse().expect("an id");
        let start = StartRun {
            workflow: "wf_000000000000000000000001".parse().expect("an id"),
            bundle: BUNDLE,
            profile: Profile::Demo,
            parameters: PARAMETERS,
            policy: POLICY,
            steps: 3,
            effects: 3,
            settle: Millis(500),
            request: Some(request),
            request_digest: EVIDENCE,
            author: self.author.clone(),
        };
        let answer = self.say(Command::StartRun(start));
        let Answer::Started { run, .. } = answer else {
            unreachable!("a start has room and a key: {answer:?}")
        };
        run
    }

    fn leased(&mut self, command: Command) -> LeaseToken {
        let answer = self.say(command);
        let Answer::Leased { token, .. } = answer else { unreachable!("the run is free: {answer:?}") };
        token
    }

    fn acts(&mut self, run: RunId, token: LeaseToken, index: u32) {
        let begin = Command::BeginStep { run, token, step: step(index), action: EVIDENCE };
        let Answer::Deliver { delivery } = self.say(begin) else { unreachable!("the step is at the cursor") };
        let seen = Finding {
            category: Category::Halt,
            reason: Reason::AnswerUnclear,
            evidence: Vec::new(),
            identity_status: IdentityStatus::Verified,
            identity: None,
            baseline: false,
        };
        self.say(Command::RecordReceipt {
            run,
            token,
            delivery,
            outcome: ReceiptOutcome::Acted,
            reason: Reason::AnswerUnclear,
            evidence: Some(EVIDENCE),
            seen,
        });
        let kind = CheckpointKind::Engine;
        self.say(Command::CommitStep {
            run,
            token,
            step: step(index),
            kind,
            verified: verified(&step(index)),
        });
    }

    fn decision(&self, run: RunId) -> Command {
        let pause = self.state.runs[&run].pause.as_ref().expect("a pause");
        let capability = pause.capability.as_ref().expect("a capability");
        let request = DecisionRequest {
            attention_id: pause.opened.attention.clone(),
            capability_digest: capability.digest(),
            idempotency_key: format!("continue-{:012}", self.fresh).parse().expect("a key"),
            action: Action::Continue,
            disposition: Some(Disposition::CompletedByOperator),
        };
        Command::Decide { request, author: self.author.clone(), may_preempt: true }
    }

    fn record_state(&mut self) {
        let through = Seq(self.state.next.0 - 1);
        self.say(Command::RecordState { through, digest: self.state.digest(), snapshot: None });
    }

    fn say(&mut self, command: Command) -> Answer {
        self.fresh += 1;
        self.now += 40;
        let mut id = [0; 16];
        // Ids are random in a home, so their order is not that of time.
        id[..8].copy_from_slice(&self.fresh.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        id[8..].copy_from_slice(&self.fresh.to_be_bytes());
        let (alive, facts) = (BTreeSet::from([PRODUCER]), Facts::default());
        let cx = Context {
            journal: protocol::ids::JournalId([9; 16]),
            next: self.state.next,
            now: Moment {
                wall: UnixMillis(self.now),
                boot_id: BootId([1; 16]),
                boot: BootMillis(self.now - 1_600_000_000_000),
            },
            instance: PRODUCER,
            fresh: FreshIds {
                run: RunId(id),
                pause: PauseId(id),
                decision: DecisionId(id),
                delivery: DeliveryId(id),
            },
            alive: &alive,
            key: Some(&self.key),
            facts: &facts,
            live: LiveFacts {
                bundle: Some(BUNDLE),
                parameters: Some(PARAMETERS),
                policy: Some(POLICY),
                executor: true,
                child_lives: false,
            },
            space_left: u64::MAX,
            limits: MachineLimits::default(),
        };
        let decided = decide_audited(&self.state, &command, &cx);
        let time = cx.now.wall;
        for event in decided.events {
            let draft = codec::draft(&event, time).expect("a draft");
            self.bytes += encoded_len(&draft);
            self.drafts.push(draft);
            let entry = Entry { seq: self.state.next, time, producer: PRODUCER, event };
            apply(&mut self.state, &entry);
            self.events += 1;
        }
        decided.answer
    }
}

fn step(index: u32) -> StepFacts {
    let attended = index == 1;
    StepFacts {
        index,
        id: ["find-patient", "fill-form", "add-note"][index as usize].parse().expect("an id"),
        attended: if attended { Attended::Always } else { Attended::OnHalt },
        acts: !attended,
        consequential: true,
        skippable: false,
        postconditions: 1,
        relative: 0,
        effects: 1,
        attested: 0,
        identity_required: attended,
        limit: LIMIT,
    }
}

fn verified(step: &StepFacts) -> Verified {
    let effect = format!("{}_once", step.id.as_str());
    Verified {
        effects: vec![EffectReading { effect, status: EffectStatus::Confirmed, evidence: Some(EVIDENCE) }],
        identity_status: if step.identity_required {
            IdentityStatus::Verified
        } else {
            IdentityStatus::NotRequired
        },
        identity: step.identity_required.then_some(EVIDENCE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_folds_to_the_state_that_it_was_written_from() {
        let home = tempfile::tempdir().unwrap();
        let written = write(home.path(), 12_000);
        assert!(written.ended > 500 && written.open == 1, "{} {}", written.ended, written.open);
        let view = engine::service::View::open(home.path(), Arc::new(OsVfs)).unwrap();
        assert_eq!(view.state().digest(), written.state.digest());
        let kinds: BTreeSet<u16> =
            view.reader().from(Seq(0)).unwrap().map(|record| record.unwrap().kind).collect();
        assert!(kinds.len() >= 14, "{kinds:?}");
    }
}
