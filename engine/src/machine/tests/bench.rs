//! A service without a disk: it asks `decide`, folds the events and remembers what ended.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::str::FromStr;

use protocol::bundle::{Attended, Profile};
use protocol::capability::CapabilityKey;
use protocol::command::{Command, Finding, LiveFinding, StartRun, Verified};
use protocol::decision::{Action, DecidedVia, DecisionRequest, Operator};
use protocol::delivery::{EffectStatus, ReceiptOutcome};
use protocol::digest::{MacDigest, Sha256Digest};
use protocol::event::{Author, CheckpointKind, EffectReading, Entry, Event, StepFacts};
use protocol::ids::{
    AttentionId, BootId, DecisionId, DeliveryId, IdempotencyKey, InstanceId, JournalId, LeaseToken, PauseId,
    RequestId, RunId, Seq,
};
use protocol::pause::{Category, IdentityStatus, Reason};
use protocol::time::{BootMillis, Millis, Moment, UnixMillis};

use crate::machine::{
    Answer, Context, Decided, Decision, Facts, FreshIds, LiveFacts, MachineLimits, Phase, RecordedAttention,
    Run, State, apply, decide_audited,
};

/// Two processes of one home.
pub(super) const A: InstanceId = InstanceId([0xa; 16]);
pub(super) const B: InstanceId = InstanceId([0xb; 16]);
pub(super) const BOOT: BootId = BootId([1; 16]);
pub(super) const LIMIT: Millis = Millis(1_000);
pub(super) const SETTLE: Millis = Millis(500);
pub(super) const BUNDLE: Sha256Digest = Sha256Digest([2; 32]);
pub(super) const POLICY: Sha256Digest = Sha256Digest([3; 32]);
pub(super) const PARAMETERS: MacDigest = MacDigest([4; 32]);
const MAC: MacDigest = MacDigest([5; 32]);

/// Parses a constant of the tests.
pub(super) fn parsed<T: FromStr>(text: &str) -> T
where
    T::Err: core::fmt::Debug,
{
    text.parse().unwrap()
}

pub(super) fn key(name: &str) -> IdempotencyKey {
    parsed(&alloc::format!("key:{name:_>16}"))
}

pub(super) fn author() -> Author {
    Author { operator: Operator::new("op").unwrap(), via: DecidedVia::Console }
}

/// A person's step with one effect.
pub(super) fn attended(index: u32) -> StepFacts {
    StepFacts {
        index,
        id: parsed(&alloc::format!("step-{index}")),
        attended: Attended::Always,
        acts: false,
        consequential: true,
        skippable: false,
        postconditions: 1,
        relative: 0,
        effects: 1,
        attested: 0,
        identity_required: false,
        limit: LIMIT,
    }
}

/// A step that the engine does, with one effect.
pub(super) fn acting(index: u32) -> StepFacts {
    StepFacts { attended: Attended::OnHalt, acts: true, ..attended(index) }
}

/// A person's step that may be skipped.
pub(super) fn skippable(index: u32) -> StepFacts {
    StepFacts { consequential: false, skippable: true, effects: 0, ..attended(index) }
}

pub(super) fn finding(category: Category) -> Finding {
    Finding {
        category,
        reason: Reason::StepIsAttended,
        evidence: vec![],
        identity_status: IdentityStatus::NotRequired,
        identity: None,
        baseline: true,
    }
}

pub(super) fn readings(step: &StepFacts, status: EffectStatus) -> Vec<EffectReading> {
    (0..step.effects)
        .map(|number| EffectReading { effect: alloc::format!("effect-{number}"), status, evidence: None })
        .collect()
}

pub(super) fn verified(step: &StepFacts) -> Verified {
    Verified {
        effects: readings(step, EffectStatus::Confirmed),
        identity_status: IdentityStatus::NotRequired,
        identity: None,
    }
}

#[derive(Clone)]
pub(super) struct Bench {
    pub(super) state: State,
    pub(super) me: InstanceId,
    pub(super) now: Moment,
    pub(super) alive: BTreeSet<InstanceId>,
    pub(super) key: Option<CapabilityKey>,
    pub(super) live: LiveFacts,
    pub(super) space: u64,
    pub(super) journal: Vec<Entry>,
    pub(super) fresh: u8,
    recorded: BTreeMap<IdempotencyKey, Decision>,
    pauses: BTreeMap<AttentionId, RunId>,
    rejected: BTreeSet<RunId>,
    finished: BTreeSet<RunId>,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self {
            state: State::default(),
            me: A,
            now: Moment { wall: UnixMillis(1_000_000), boot_id: BOOT, boot: BootMillis(1_000) },
            alive: BTreeSet::from([A, B]),
            key: Some(CapabilityKey::new([7; 32])),
            live: LiveFacts {
                bundle: Some(BUNDLE),
                parameters: Some(PARAMETERS),
                policy: Some(POLICY),
                executor: true,
                child_lives: false,
            },
            space: u64::MAX,
            journal: vec![],
            fresh: 0,
            recorded: BTreeMap::new(),
            pauses: BTreeMap::new(),
            rejected: BTreeSet::new(),
            finished: BTreeSet::new(),
        }
    }

    /// A service that found this state.
    pub(super) fn in_state(state: State) -> Self {
        Self { state, ..Self::new() }
    }

    /// The machine at work on a run of one step, which stands at a pause of this step.
    pub(super) fn paused_at(step: &StepFacts) -> (Self, RunId) {
        Self::paused_for(step, finding(Category::AttendedStep))
    }

    pub(super) fn paused_for(step: &StepFacts, finding: Finding) -> (Self, RunId) {
        let mut bench = Self::new();
        let run = bench.started(2);
        let token = bench.acquired(run);
        bench.say(Command::Stop { run, token, step: step.clone(), finding });
        (bench, run)
    }

    /// A run whose step was begun and whose executor has not come back.
    pub(super) fn crossed(step: &StepFacts) -> (Self, RunId, LeaseToken, DeliveryId) {
        let mut bench = Self::new();
        let run = bench.started(2);
        let token = bench.acquired(run);
        let delivery = bench.begun(run, token, step);
        (bench, run, token, delivery)
    }

    pub(super) fn at(mut self, me: InstanceId) -> Self {
        self.me = me;
        self
    }

    pub(super) fn passes(&mut self, span: Millis) {
        self.now.wall.0 += span.0;
        self.now.boot.0 += span.0;
    }

    pub(super) fn dies(&mut self, instance: InstanceId) {
        self.alive.remove(&instance);
        if self.me == instance {
            self.me = B;
        }
    }

    fn facts(&self, command: &Command) -> Facts {
        let mut facts = Facts::default();
        match command {
            Command::Decide { request, .. } => {
                facts.decision = self.recorded.get(&request.idempotency_key).cloned();
                facts.attention = self
                    .pauses
                    .get(&request.attention_id)
                    .map(|run| RecordedAttention { run_rejected: self.rejected.contains(run) });
            }
            Command::Cancel { run, .. }
            | Command::Acquire { run, .. }
            | Command::Release { run, .. }
            | Command::BeginStep { run, .. }
            | Command::RecordReceipt { run, .. }
            | Command::CommitStep { run, .. }
            | Command::Stop { run, .. }
            | Command::FinishDecision { run, .. }
            | Command::LoseDecision { run, .. } => facts.run_finished = self.finished.contains(run),
            Command::StartRun(_) | Command::RegisterKey { .. } | Command::RecordState { .. } => {}
        }
        facts
    }

    /// What the machine says, without recording it.
    pub(super) fn ask(&self, command: &Command) -> Decided {
        let facts = self.facts(command);
        let fresh = [self.fresh.wrapping_add(1); 16];
        let cx = Context {
            journal: JournalId([9; 16]),
            next: self.state.next,
            now: self.now,
            instance: self.me,
            fresh: FreshIds {
                run: RunId(fresh),
                pause: PauseId(fresh),
                decision: DecisionId(fresh),
                delivery: DeliveryId(fresh),
            },
            alive: &self.alive,
            key: self.key.as_ref(),
            facts: &facts,
            live: self.live,
            space_left: self.space,
            limits: MachineLimits::default(),
        };
        decide_audited(&self.state, command, &cx)
    }

    /// Asks, records and folds.
    pub(super) fn say(&mut self, command: Command) -> Answer {
        let decided = self.ask(&command);
        self.fresh = self.fresh.wrapping_add(1);
        for event in decided.events {
            self.fold(event);
        }
        decided.answer
    }

    pub(super) fn fold(&mut self, event: impl Into<Event>) {
        let entry =
            Entry { seq: self.state.next, time: self.now.wall, producer: self.me, event: event.into() };
        if let Event::PauseOpened(opened) = &entry.event {
            self.pauses.insert(opened.attention.clone(), opened.run);
        }
        if let Event::RunFinished(finished) = &entry.event
            && let Some(run) = self.state.runs.get(&finished.run)
        {
            self.finished.insert(finished.run);
            self.recorded.extend(run.decisions.clone());
            if finished.reason == Reason::Rejected {
                self.rejected.insert(finished.run);
            }
        }
        apply(&mut self.state, &entry);
        self.journal.push(entry);
    }

    pub(super) fn run(&self, run: RunId) -> &Run {
        &self.state.runs[&run]
    }

    pub(super) fn start_command(&self, steps: u32) -> StartRun {
        StartRun {
            workflow: parsed("wf_000000000000000000000001"),
            bundle: BUNDLE,
            profile: Profile::Demo,
            parameters: PARAMETERS,
            policy: POLICY,
            steps,
            effects: steps,
            settle: SETTLE,
            request: None,
            request_digest: MAC,
            author: author(),
        }
    }

    pub(super) fn started(&mut self, steps: u32) -> RunId {
        let answer = self.say(Command::StartRun(self.start_command(steps)));
        let Answer::Started { run, replayed: false } = answer else { panic!("{answer:?}") };
        run
    }

    pub(super) fn acquire(&mut self, run: RunId, recheck: bool) -> Answer {
        self.say(Command::Acquire { run, limit: LIMIT, recheck, author: author() })
    }

    pub(super) fn acquired(&mut self, run: RunId) -> LeaseToken {
        let answer = self.acquire(run, false);
        let Answer::Leased { token, .. } = answer else { panic!("{answer:?}") };
        token
    }

    pub(super) fn begin(run: RunId, token: LeaseToken, step: &StepFacts) -> Command {
        Command::BeginStep { run, token, step: step.clone(), action: MAC }
    }

    pub(super) fn begun(&mut self, run: RunId, token: LeaseToken, step: &StepFacts) -> DeliveryId {
        let answer = self.say(Self::begin(run, token, step));
        let Answer::Deliver { delivery } = answer else { panic!("{answer:?}") };
        delivery
    }

    pub(super) fn receipt(
        run: RunId,
        token: LeaseToken,
        delivery: DeliveryId,
        outcome: ReceiptOutcome,
    ) -> Command {
        Command::RecordReceipt {
            run,
            token,
            delivery,
            outcome,
            reason: Reason::AnswerUnclear,
            evidence: None,
            seen: finding(Category::Halt),
        }
    }

    pub(super) fn commit(run: RunId, token: LeaseToken, step: &StepFacts, kind: CheckpointKind) -> Command {
        Command::CommitStep { run, token, step: step.clone(), kind, verified: verified(step) }
    }

    /// A request for the run's open pause with its current capability.
    pub(super) fn request(&self, run: RunId, action: Action, name: &str) -> DecisionRequest {
        let pause = self.run(run).pause.as_ref().unwrap();
        DecisionRequest {
            attention_id: pause.opened.attention.clone(),
            capability_digest: pause
                .capability
                .as_ref()
                .map_or(Sha256Digest([0; 32]), |capability| capability.digest()),
            idempotency_key: key(name),
            action,
            disposition: None,
        }
    }

    pub(super) fn decide_command(request: DecisionRequest) -> Command {
        Command::Decide { request, author: author(), may_preempt: true }
    }

    pub(super) fn decide(&mut self, run: RunId, action: Action, name: &str) -> Answer {
        let request = self.request(run, action, name);
        self.say(Self::decide_command(request))
    }

    pub(super) fn carried_out(&mut self, run: RunId, action: Action, name: &str) -> (LeaseToken, DecisionId) {
        let answer = self.decide(run, action, name);
        let Answer::CarryOut { token, decision, .. } = answer else { panic!("{answer:?}") };
        (token, decision.id)
    }

    pub(super) fn finish(
        &mut self,
        run: RunId,
        (token, decision): (LeaseToken, DecisionId),
        finding: LiveFinding,
    ) -> Answer {
        self.say(Command::FinishDecision { run, token, decision, finding })
    }

    /// Names of the events recorded since `from`.
    pub(super) fn names_since(&self, from: Seq) -> Vec<&'static str> {
        self.journal.iter().filter(|entry| entry.seq >= from).map(|entry| entry.event.name()).collect()
    }

    /// Replaying the journal from nothing gives this state.
    pub(super) fn replays(&self) -> bool {
        let mut state = State::default();
        self.journal.iter().for_each(|entry| apply(&mut state, entry));
        state == self.state
    }
}

/// One word for an answer, for tables.
pub(super) fn word(answer: &Answer) -> String {
    match answer {
        Answer::Recorded => "recorded".into(),
        Answer::Started { replayed, .. } => if *replayed { "started again" } else { "started" }.into(),
        Answer::Leased { .. } => "leased".into(),
        Answer::Paused { .. } => "paused".into(),
        Answer::Deliver { .. } => "deliver".into(),
        Answer::Committed { .. } => "committed".into(),
        Answer::Finished { outcome } => outcome.as_str().into(),
        Answer::CarryOut { .. } => "carry out".into(),
        Answer::Decided { replayed: true, .. } => "replayed".into(),
        Answer::Decided { decision, .. } => {
            let Phase::Terminal { outcome, refusal } = &decision.phase else { panic!("{decision:?}") };
            refusal.map_or_else(|| outcome.as_str(), |code| code.as_str()).into()
        }
        Answer::Refused(refusal) => refusal.code().as_str().into(),
    }
}

pub(super) fn request_id(text: &str) -> RequestId {
    parsed(text)
}
