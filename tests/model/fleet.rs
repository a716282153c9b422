//! Several processes over one journal. Each has its leases, its executors' calls and its decisions under way; it can be
//! stopped at any point and wake up later, die, and be replaced. Every command goes through the machine and past the
//! model; every event is folded by both.

use std::collections::{BTreeMap, BTreeSet};

use engine::machine::{
    Answer, Context, Decision, Facts, FreshIds, LiveFacts, MachineLimits, RecordedAttention, Run, State,
    apply, decide_audited, pause,
};
use protocol::bundle::{Attended, Profile};
use protocol::capability::CapabilityKey;
use protocol::command::{Command, Finding, LiveFinding, StartRun, Verified};
use protocol::decision::{Action, DecidedVia, DecisionRequest, Operator};
use protocol::delivery::{DeliveryState, EffectStatus, ReceiptOutcome};
use protocol::digest::{MacDigest, Sha256Digest, StateDigest};
use protocol::event::{Author, CheckpointKind, EffectReading, Entry, Event, StepFacts};
use protocol::ids::{
    AttentionId, DecisionId, DeliveryId, IdempotencyKey, InstanceId, JournalId, LeaseToken, PauseId, RunId,
    WorkflowId,
};
use protocol::pause::{Category, IdentityStatus, Reason};
use protocol::refusal::Refusal;

use crate::model::{Model, Now};
use crate::plan::{LIMIT, Plan, SETTLE, plan};
use crate::world::{Appears, World};
use crate::{Judged, Violation, rule};

/// Processes at a time.
pub const PROCESSES: usize = 3;

const BUNDLE: Sha256Digest = Sha256Digest([2; 32]);
const POLICY: Sha256Digest = Sha256Digest([3; 32]);
const PARAMETERS: MacDigest = MacDigest([4; 32]);
const KEY: [u8; 32] = [7; 32];

/// What a process is at, for one run that it holds or believes to hold.
#[derive(Clone, Debug)]
enum Task {
    /// Between two commands.
    Idle,
    /// In its executor.
    Calling { step: StepFacts, delivery: DeliveryId, begun: u64, acted: bool },
    /// Carrying out a decision: first it reads, later it records.
    Deciding { decision: DecisionId, action: Action, step: StepFacts, found: Option<LiveFinding> },
}

/// An executor's call that its process gave up and that may still be at work.
#[derive(Clone, Debug)]
struct Stray {
    run: RunId,
    step: u32,
    delivery: DeliveryId,
    begun: u64,
}

#[derive(Clone, Debug)]
struct Process {
    id: InstanceId,
    tasks: BTreeMap<RunId, (LeaseToken, Task)>,
    strays: Vec<Stray>,
    tokens: Vec<(RunId, LeaseToken)>,
}

/// How an executor's call goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// It acts; the call has not returned.
    Act(Appears),
    /// It returns and says what it did.
    Return,
    /// It returns without a clear word.
    ReturnUnclear,
    /// Its process gives it up; it may still be at work.
    GiveUp,
}

/// Everything that is simulated.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// The machine's state, as every process finds it after catching up.
    pub state: State,
    /// The reference.
    pub model: Model,
    /// What is really there.
    pub world: World,
    journal: Vec<Entry>,
    marks: Vec<(usize, StateDigest)>,
    processes: Vec<Process>,
    minted: u64,
    plans: BTreeMap<RunId, Plan>,
    asked: Vec<DecisionRequest>,
    told: BTreeMap<IdempotencyKey, Decision>,
    ended: BTreeMap<IdempotencyKey, Decision>,
    attention: BTreeMap<AttentionId, RunId>,
    rejected: BTreeSet<RunId>,
    finished: BTreeSet<RunId>,
    room: bool,
    key: bool,
}

impl Default for Fleet {
    fn default() -> Self {
        let mut fleet = Self {
            state: State::default(),
            model: Model::default(),
            world: World::default(),
            journal: vec![],
            marks: vec![],
            processes: vec![],
            minted: 0,
            plans: BTreeMap::new(),
            asked: vec![],
            told: BTreeMap::new(),
            ended: BTreeMap::new(),
            attention: BTreeMap::new(),
            rejected: BTreeSet::new(),
            finished: BTreeSet::new(),
            room: true,
            key: true,
        };
        for _ in 0..PROCESSES {
            let process = fleet.new_process();
            fleet.processes.push(process);
        }
        fleet
    }
}

impl Fleet {
    fn mint(&mut self) -> [u8; 16] {
        self.minted += 1;
        let mut id = [0; 16];
        id[8..].copy_from_slice(&self.minted.to_be_bytes());
        id
    }

    fn new_process(&mut self) -> Process {
        let id = InstanceId(self.mint());
        Process { id, tasks: BTreeMap::new(), strays: vec![], tokens: vec![] }
    }

    /// A process dies with everything it was at, and another takes its place.
    pub fn kill(&mut self, process: usize) {
        self.processes[process % PROCESSES] = self.new_process();
    }

    /// The machine starts anew.
    pub fn reboot(&mut self) {
        self.world.reboot();
        (0..PROCESSES).for_each(|process| self.kill(process));
    }

    /// Whether the disk has room for new work.
    pub fn set_room(&mut self, room: bool) {
        self.room = room;
    }

    /// Whether the capability key can be read.
    pub fn set_key(&mut self, key: bool) {
        self.key = key;
    }

    fn alive(&self) -> BTreeSet<InstanceId> {
        self.processes.iter().map(|process| process.id).collect()
    }

    fn facts(&self, command: &Command) -> Facts {
        let mut facts = Facts::default();
        match command {
            Command::Decide { request, .. } => {
                facts.decision = self.ended.get(&request.idempotency_key).cloned();
                facts.attention = self
                    .attention
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

    /// One process sends one command; machine and model judge it.
    fn submit(&mut self, process: usize, command: &Command) -> Result<Answer, Violation> {
        let fresh = FreshIds {
            run: RunId(self.mint()),
            pause: PauseId(self.mint()),
            decision: DecisionId(self.mint()),
            delivery: DeliveryId(self.mint()),
        };
        let instance = self.processes[process].id;
        let alive = self.alive();
        // The service asks only about those that the state names; that must be enough.
        let watched = self.state.watched();
        let asked: BTreeSet<InstanceId> =
            alive.iter().copied().filter(|id| *id == instance || watched.contains(id)).collect();
        let facts = self.facts(command);
        let key = CapabilityKey::new(KEY);
        let cx = Context {
            journal: JournalId([9; 16]),
            next: self.state.next,
            now: self.world.moment(),
            instance,
            fresh,
            alive: &asked,
            key: self.key.then_some(&key),
            facts: &facts,
            live: LiveFacts {
                bundle: Some(BUNDLE),
                parameters: Some(PARAMETERS),
                policy: Some(POLICY),
                executor: true,
                child_lives: false,
            },
            space_left: if self.room { u64::MAX } else { self.state.reserved_bytes() },
            limits: MachineLimits::default(),
        };
        let decided = decide_audited(&self.state, command, &cx);
        let again = decide_audited(&self.state, command, &cx);
        rule(decided == again, || "equal arguments gave two answers".into())?;
        let wall = self.world.moment().wall;
        let now = Now { process: instance, time: self.world.now, alive: &alive, room: self.room };
        let about = |violation: Violation| Violation(format!("{violation}\n  at {command:?}"));
        self.model.judge(command, &decided, &now).map_err(about)?;
        for event in decided.events {
            let entry = Entry { seq: self.state.next, time: wall, producer: instance, event };
            self.model.fold(&entry.event, entry.seq, &now, &mut self.world).map_err(about)?;
            self.remember(&entry.event);
            apply(&mut self.state, &entry);
            self.journal.push(entry);
        }
        self.check_told(&decided.answer)?;
        Ok(decided.answer)
    }

    /// Keeps what a service would find in the journal by key.
    fn remember(&mut self, event: &Event) {
        if let Event::PauseOpened(opened) = event {
            self.attention.insert(opened.attention.clone(), opened.run);
        }
        if let Event::RunFinished(finished) = event
            && let Some(run) = self.state.runs.get(&finished.run)
        {
            self.finished.insert(finished.run);
            self.ended.extend(run.decisions.clone());
            if finished.reason == Reason::Rejected {
                self.rejected.insert(finished.run);
            }
        }
    }

    /// The same key with the same content has one terminal answer, for ever and to everybody.
    fn check_told(&mut self, answer: &Answer) -> Judged {
        let Answer::Decided { decision, .. } = answer else { return Ok(()) };
        let key = self.journal.iter().rev().find_map(|entry| {
            if let Event::DecisionRecorded(recorded) = &entry.event {
                return (recorded.decision == decision.id).then_some(&recorded.key);
            }
            let Event::DecisionPrepared(prepared) = &entry.event else { return None };
            (prepared.decision == decision.id).then_some(&prepared.key)
        });
        let Some(key) = key else { return rule(false, || format!("no record of {decision:?}")) };
        let first = self.told.entry(key.clone()).or_insert_with(|| decision.clone());
        rule(first == decision, || format!("told {first:?} and then {decision:?}"))
    }

    /// Starts a run of a plan.
    ///
    /// # Errors
    /// The rule that was broken.
    pub fn start(&mut self, process: usize, number: u8) -> Judged {
        let plan = plan(number);
        let start = StartRun {
            workflow: workflow(),
            bundle: BUNDLE,
            profile: Profile::Demo,
            parameters: PARAMETERS,
            policy: POLICY,
            steps: u32::try_from(plan.steps.len()).unwrap_or(u32::MAX),
            effects: plan.steps.iter().map(|step| step.effects).sum(),
            settle: SETTLE,
            request: None,
            request_digest: PARAMETERS,
            author: author(),
        };
        if let Answer::Started { run, .. } = self.submit(process % PROCESSES, &Command::StartRun(start))? {
            self.plans.insert(run, plan);
        }
        Ok(())
    }

    /// The `nth` of the runs that were started, ended ones included; none while there are none.
    #[must_use]
    pub fn run(&self, nth: usize) -> Option<RunId> {
        self.plans.keys().nth(nth % self.plans.len().max(1)).copied()
    }

    /// Asks for the end of a run.
    ///
    /// # Errors
    /// The rule that was broken.
    pub fn cancel(&mut self, process: usize, run: RunId) -> Judged {
        self.submit(process % PROCESSES, &Command::Cancel { run, author: author() }).map(|_| ())
    }

    /// The process goes on with the run by one command: acquires it, or does what comes next under the lease that it
    /// believes to have.
    ///
    /// # Errors
    /// The rule that was broken.
    pub fn drive(&mut self, process: usize, run: RunId, recheck: bool, call: Call) -> Judged {
        let process = process % PROCESSES;
        let Some((token, task)) = self.processes[process].tasks.get(&run).cloned() else {
            return self.acquire(process, run, recheck).map(|_| ());
        };
        match task {
            Task::Idle => self.next_command(process, run, token),
            Task::Calling { step, delivery, begun, acted } => {
                self.go_on_calling(process, run, token, Pending { step, delivery, begun, acted }, call)
            }
            Task::Deciding { decision, action, step, found: None } => {
                // A driver that read nothing and says so in the wrong words proves nothing either.
                let found = Some(match call {
                    Call::ReturnUnclear => LiveFinding::Absent(vec![]),
                    Call::Act(_) | Call::Return | Call::GiveUp => self.read(run, action, &step),
                });
                self.set_task(process, run, token, Task::Deciding { decision, action, step, found });
                Ok(())
            }
            Task::Deciding { decision, found: Some(finding), .. } => {
                let command = match call {
                    Call::Act(_) | Call::Return | Call::ReturnUnclear => {
                        Command::FinishDecision { run, token, decision, finding }
                    }
                    Call::GiveUp => Command::LoseDecision { run, token, decision },
                };
                self.go_on_after(process, run, token, &command)
            }
        }
    }

    fn set_task(&mut self, process: usize, run: RunId, token: LeaseToken, task: Task) {
        self.processes[process].tasks.insert(run, (token, task));
        self.processes[process].tokens.push((run, token));
    }

    fn acquire(&mut self, process: usize, run: RunId, recheck: bool) -> Result<Answer, Violation> {
        let answer =
            self.submit(process, &Command::Acquire { run, limit: LIMIT, recheck, author: author() })?;
        if let Answer::Leased { token, .. } = &answer {
            self.set_task(process, run, *token, Task::Idle);
        }
        Ok(answer)
    }

    /// What an honest driver sends next, for what it reads of the run; under a lease that it may have lost.
    fn next_command(&mut self, process: usize, run: RunId, token: LeaseToken) -> Judged {
        let (Some(open), Some(plan)) = (self.state.runs.get(&run), self.plans.get(&run)) else {
            self.processes[process].tasks.remove(&run);
            return Ok(());
        };
        let Some(step) = plan.steps.get(open.cursor.step() as usize).cloned() else {
            return rule(false, || format!("an open run at its end: {open:?}"));
        };
        let commit = |kind, effects| Command::CommitStep {
            run,
            token,
            step: step.clone(),
            kind,
            verified: Verified { effects, identity_status: IdentityStatus::NotRequired, identity: None },
        };
        let stop = |category| Command::Stop { run, token, step: step.clone(), finding: finding(category) };
        let persons = step.attended == Attended::Always;
        let command = match open.delivery_state() {
            DeliveryState::Delivered if self.world.shows((run, step.index)) => {
                commit(CheckpointKind::Engine, readings(&step, EffectStatus::Confirmed))
            }
            DeliveryState::Delivered => stop(Category::EffectRefuted),
            DeliveryState::Unknown => stop(Category::DeliveryUncertain),
            DeliveryState::NotDelivered if step.skippable && !plan.guard_holds => {
                commit(CheckpointKind::Skipped, vec![])
            }
            DeliveryState::NotDelivered if persons => stop(Category::AttendedStep),
            DeliveryState::NotDelivered if step.acts => {
                Command::BeginStep { run, token, step: step.clone(), action: PARAMETERS }
            }
            DeliveryState::NotDelivered => commit(CheckpointKind::Read, vec![]),
        };
        self.go_on_after(process, run, token, &command)
    }

    /// Sends a command and goes on as its answer says.
    fn go_on_after(&mut self, process: usize, run: RunId, token: LeaseToken, command: &Command) -> Judged {
        let answer = self.submit(process, command)?;
        let task = match (answer, command) {
            (Answer::Deliver { delivery }, Command::BeginStep { step, .. }) => {
                let begun = self.world.now;
                Some((token, Task::Calling { step: step.clone(), delivery, begun, acted: false }))
            }
            (Answer::Decided { token, .. }, _) => token.map(|token| (token, Task::Idle)),
            (Answer::Committed { .. } | Answer::Recorded, _) => Some((token, Task::Idle)),
            (_, _) => None,
        };
        if let Some((token, task)) = task {
            self.set_task(process, run, token, task);
        } else {
            self.processes[process].tasks.remove(&run);
            // Gives back what it may still have, as a driver that stops does.
            self.submit(process, &Command::Release { run, token })?;
        }
        Ok(())
    }

    fn go_on_calling(
        &mut self,
        process: usize,
        run: RunId,
        token: LeaseToken,
        call: Pending,
        how: Call,
    ) -> Judged {
        let Pending { step, delivery, begun, acted } = call;
        let outcome = match how {
            Call::Act(appears) if !acted => {
                self.world.act((run, step.index), delivery, begun, appears)?;
                let task = Task::Calling { step, delivery, begun, acted: true };
                self.set_task(process, run, token, task);
                return Ok(());
            }
            Call::Act(_) | Call::Return if acted => ReceiptOutcome::Acted,
            Call::Act(_) | Call::Return => ReceiptOutcome::NotSent,
            Call::ReturnUnclear => ReceiptOutcome::Unclear,
            Call::GiveUp => {
                if !acted {
                    self.processes[process].strays.push(Stray { run, step: step.index, delivery, begun });
                }
                let finding = finding(Category::DeliveryUncertain);
                return self.go_on_after(process, run, token, &Command::Stop { run, token, step, finding });
            }
        };
        let seen = finding(Category::Halt);
        let receipt = Command::RecordReceipt {
            run,
            token,
            delivery,
            outcome,
            reason: Reason::AnswerUnclear,
            evidence: None,
            seen,
        };
        self.go_on_after(process, run, token, &receipt)
    }

    /// An executor's call that its process gave up acts after all.
    ///
    /// # Errors
    /// The rule that was broken.
    pub fn stray_acts(&mut self, process: usize, appears: Appears) -> Judged {
        let Some(stray) = self.processes[process % PROCESSES].strays.pop() else { return Ok(()) };
        self.world.act((stray.run, stray.step), stray.delivery, stray.begun, appears)
    }

    /// What the live state shows for a decision.
    fn read(&self, run: RunId, action: Action, step: &StepFacts) -> LiveFinding {
        let shows = self.world.shows((run, step.index)) || step.effects == 0;
        let verified = Verified {
            effects: readings(step, EffectStatus::Confirmed),
            identity_status: IdentityStatus::NotRequired,
            identity: None,
        };
        let guard_holds = self.plans.get(&run).is_none_or(|plan| plan.guard_holds);
        match action {
            Action::Continue if shows => LiveFinding::Verified(verified),
            Action::Skip if guard_holds => LiveFinding::GuardHolds,
            Action::Skip => LiveFinding::GuardUnmet,
            Action::Reconcile if shows && step.effects > 0 => LiveFinding::Verified(verified),
            Action::Reconcile => LiveFinding::Absent(readings(step, EffectStatus::Absent)),
            Action::Continue | Action::Reject | Action::Teach | Action::Escalate => LiveFinding::NotVerified,
        }
    }

    /// The open item of a run, or the last one that it had.
    fn item(&self, run: RunId) -> Option<(AttentionId, Sha256Digest)> {
        let open = self.state.runs.get(&run).and_then(|run| run.pause.as_ref());
        let Some(open) = open else {
            let last = self.attention.iter().filter(|(_, of)| **of == run).map(|(id, _)| id).next_back();
            return last.map(|attention| (attention.clone(), Sha256Digest([0; 32])));
        };
        let digest = open.capability.as_ref().map_or(Sha256Digest([0; 32]), |current| current.digest());
        Some((open.opened.attention.clone(), digest))
    }

    /// Somebody decides on a run's item, under one of a few keys.
    ///
    /// # Errors
    /// The rule that was broken.
    pub fn decide(&mut self, process: usize, run: RunId, action: Action, key: u8) -> Judged {
        let Some((attention_id, capability_digest)) = self.item(run) else { return Ok(()) };
        let idempotency_key = key_named(&format!("pool-{}", key % 96));
        let request =
            DecisionRequest { attention_id, capability_digest, idempotency_key, action, disposition: None };
        self.asked.push(request.clone());
        self.send_decision(process % PROCESSES, request).map(|_| ())
    }

    /// Somebody does at a pause what it allows, and carries it out for some commands.
    ///
    /// # Errors
    /// The rule that was broken.
    pub fn attend(&mut self, process: usize, run: RunId, key: u8, turns: u8, call: Call) -> Judged {
        let Some(open) = self.state.runs.get(&run) else { return Ok(()) };
        let action = polite_action(open);
        self.person_acts(run);
        self.decide(process, run, action, key)?;
        if self.processes[process % PROCESSES].tasks.contains_key(&run) {
            (0..turns).try_for_each(|_| self.drive(process, run, false, call))?;
        }
        Ok(())
    }

    /// Somebody repeats an earlier request, word for word.
    ///
    /// # Errors
    /// The rule that was broken.
    pub fn repeat(&mut self, process: usize, nth: usize) -> Judged {
        let Some(request) = self.asked.get(nth % self.asked.len().max(1)).cloned() else { return Ok(()) };
        self.send_decision(process % PROCESSES, request).map(|_| ())
    }

    fn send_decision(&mut self, process: usize, request: DecisionRequest) -> Result<Answer, Violation> {
        let action = request.action;
        let answer =
            self.submit(process, &Command::Decide { request, author: author(), may_preempt: true })?;
        if let Answer::CarryOut { token, decision, run } = &answer {
            let (id, step) = (run.id(), run.pause.as_ref().map(|pause| pause.opened.step.clone()));
            let Some(step) = step else { return Err(Violation("carried out without a pause".into())) };
            let task = Task::Deciding { decision: decision.id, action, step, found: None };
            self.set_task(process, id, *token, task);
        }
        Ok(answer)
    }

    /// A person does the step at which a run waits, if it is theirs.
    pub fn person_acts(&mut self, run: RunId) {
        let waits = self.state.runs.get(&run).and_then(|run| run.pause.as_ref());
        if let Some(pause) = waits
            && pause.opened.step.attended == Attended::Always
        {
            self.world.act_by_hand((run, pause.opened.step.index));
        }
    }

    /// A process crosses the boundary of the step at the cursor under the run's current lease, whatever an honest driver
    /// would do.
    ///
    /// # Errors
    /// The rule that was broken.
    pub fn cross_anyway(&mut self, process: usize, run: RunId) -> Judged {
        let (Some(open), Some(plan)) = (self.state.runs.get(&run), self.plans.get(&run)) else {
            return Ok(());
        };
        let step = plan.steps.get(open.cursor.step() as usize).cloned();
        let (Some(lease), Some(step)) = (open.lease, step) else { return Ok(()) };
        let (process, token) = (process % PROCESSES, lease.token);
        let command = Command::BeginStep { run, token, step: step.clone(), action: PARAMETERS };
        if let Answer::Deliver { delivery } = self.submit(process, &command)? {
            let begun = self.world.now;
            self.set_task(process, run, token, Task::Calling { step, delivery, begun, acted: false });
        }
        Ok(())
    }

    /// A process writes under some lease that it once had, whatever it does otherwise.
    ///
    /// # Errors
    /// The rule that was broken.
    pub fn write_stale(&mut self, process: usize, nth: usize, kind: u8) -> Judged {
        let process = process % PROCESSES;
        let tokens = &self.processes[process].tokens;
        let Some((run, token)) = tokens.get(nth % tokens.len().max(1)).copied() else { return Ok(()) };
        if self.state.runs.get(&run).and_then(|run| run.lease).is_some_and(|lease| lease.token == token) {
            return Ok(());
        }
        let Some(step) = self.plans.get(&run).and_then(|plan| plan.steps.first()).cloned() else {
            return Ok(());
        };
        let command = match kind % 4 {
            0 => Command::BeginStep { run, token, step, action: PARAMETERS },
            1 => Command::Stop { run, token, step, finding: finding(Category::Halt) },
            2 => Command::CommitStep {
                run,
                token,
                kind: CheckpointKind::Engine,
                verified: Verified {
                    effects: readings(&step, EffectStatus::Confirmed),
                    identity_status: IdentityStatus::NotRequired,
                    identity: None,
                },
                step,
            },
            _ => Command::Release { run, token },
        };
        self.submit(process, &command).map(|_| ())
    }

    /// Notes the state's digest, and goes on from a copy of the state that went through its text form, as a snapshot
    /// does.
    ///
    /// # Errors
    /// The rule that was broken.
    pub fn snapshot(&mut self) -> Judged {
        self.marks.push((self.journal.len(), self.state.digest()));
        let text = serde_json::to_vec(&self.state).map_err(|error| Violation(error.to_string()))?;
        let back: State = serde_json::from_slice(&text).map_err(|error| Violation(error.to_string()))?;
        rule(back == self.state, || "a snapshot changed the state".into())?;
        self.state = back;
        Ok(())
    }

    /// What was journalled so far.
    #[must_use]
    pub fn journal(&self) -> &[Entry] {
        &self.journal
    }

    /// Folds the journal anew and compares with what was noted on the way.
    ///
    /// # Errors
    /// The rule that was broken.
    pub fn replay(&self) -> Judged {
        let mut marks = self.marks.iter().peekable();
        let mut state = State::default();
        for at in 0..=self.journal.len() {
            while let Some((_, digest)) = marks.next_if(|(mark, _)| *mark == at) {
                rule(state.digest() == *digest, || format!("replay differs after {at} events"))?;
            }
            if let Some(entry) = self.journal.get(at) {
                apply(&mut state, entry);
            }
        }
        rule(state == self.state, || "replay ends in another state".into())
    }

    /// Every process dies, time passes, and one polite operator brings every run to its end.
    ///
    /// # Errors
    /// The rule that was broken, or the run that could not be ended.
    pub fn end_politely(&mut self) -> Judged {
        (0..PROCESSES).for_each(|process| self.kill(process));
        self.set_room(true);
        self.set_key(true);
        // Longer than any clock was set back, and any pause lasts.
        self.world.pass(60 * 24 * 60 * 60 * 1_000);
        for run in self.plans.keys().copied().collect::<Vec<_>>() {
            let mut patience = 40;
            while self.state.runs.contains_key(&run) {
                rule(patience > 0, || format!("cannot be ended: {:?}", self.state.runs.get(&run)))?;
                patience -= 1;
                self.polite_turn(run)?;
            }
        }
        rule(self.model.is_idle(), || "the model knows of more runs".into())
    }

    /// Resumes the run; where it waits, decides what is allowed; and carries out what follows.
    fn polite_turn(&mut self, run: RunId) -> Judged {
        if let Answer::Paused { .. } = self.acquire(0, run, true)? {
            self.person_acts(run);
            let Some(open) = self.state.runs.get(&run) else { return Ok(()) };
            let action = polite_action(open);
            let Some((attention_id, capability_digest)) = self.item(run) else { return Ok(()) };
            let idempotency_key = key_named(&format!("polite-{}", self.minted));
            let request = DecisionRequest {
                attention_id,
                capability_digest,
                idempotency_key,
                action,
                disposition: None,
            };
            if let Answer::Refused(Refusal::Busy) = self.send_decision(0, request)? {
                return rule(false, || "busy, and everybody else is dead".into());
            }
        }
        let mut turns = 0;
        while self.processes[0].tasks.contains_key(&run) {
            rule(turns < 40, || "a driver that does not stop".into())?;
            turns += 1;
            self.drive(0, run, false, Call::Act(Appears::Now))?;
        }
        Ok(())
    }
}

/// What brings a paused run on, of what its pause allows.
fn polite_action(run: &Run) -> Action {
    let allowed = run.pause.as_ref().map(|waits| pause::allowed_actions(run, waits)).unwrap_or_default();
    [Action::Reconcile, Action::Continue, Action::Reject]
        .into_iter()
        .find(|action| allowed.contains(action))
        .unwrap_or(Action::Escalate)
}

/// A call that has not returned.
struct Pending {
    step: StepFacts,
    delivery: DeliveryId,
    begun: u64,
    acted: bool,
}

fn readings(step: &StepFacts, status: EffectStatus) -> Vec<EffectReading> {
    (0..step.effects)
        .map(|number| EffectReading { effect: format!("effect-{number}"), status, evidence: None })
        .collect()
}

fn finding(category: Category) -> Finding {
    Finding {
        category,
        reason: Reason::Unreadable,
        evidence: vec![],
        identity_status: IdentityStatus::NotRequired,
        identity: None,
        baseline: true,
    }
}

fn author() -> Author {
    match Operator::new("operator") {
        Some(operator) => Author { operator, via: DecidedVia::Console },
        None => unreachable!("the name is not blank"),
    }
}

fn workflow() -> WorkflowId {
    match "wf_000000000000000000000001".parse() {
        Ok(id) => id,
        Err(_) => unreachable!("the prefix and 24 digits are a workflow id"),
    }
}

fn key_named(name: &str) -> IdempotencyKey {
    match format!("{name:_<16}").parse() {
        Ok(key) => key,
        Err(_) => unreachable!("16 letters, digits, dashes and underscores are a key"),
    }
}
