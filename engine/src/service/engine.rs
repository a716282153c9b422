//! The engine as a host program or the command line uses it. Each method is one request: read what it needs, submit a
//! command, act on the answer.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use journal::vfs::Vfs;
use journal::vfs::os::OsVfs;
use journal::{Journal, OpenReport};
use protocol::bundle::Step;
use protocol::canonical_json;
use protocol::capability::CapabilityKey;
use protocol::command::{Command, LiveFinding, StartRun};
use protocol::decision::{Action, DecidedVia, DecisionRequest};
use protocol::event::{Author, DecisionOutcome};
use protocol::ids::{AttentionId, InstanceId, LeaseToken, RequestId, RunId, Seq};
use protocol::projection::{AttentionItem, DecisionView, RunView};
use protocol::refusal::Refusal;
use protocol::time::{Deadline, Millis};
use serde_json::Value;

use crate::machine::{Answer, Decision, LiveFacts, MachineLimits, Run};

use super::args::check_executor_args;
use super::bundle::Bundle;
use super::driver::Driver;
use super::error::EngineError;
use super::executor::{Deployment, ExecutorThread};
use super::home::{Home, protected_digest};
use super::inputs::{self, Inputs};
use super::platform::{SystemClock, SystemIds, effective_operator};
use super::ports::{BoundaryHook, Clock, ExecutorFactory, Ids};
use super::probe::{Probe, ProbeError};
use super::shell::{Counted, Request, Shell};
use super::{keys, project, snapshot};

/// How to open an engine. `new` gives the defaults; every field may be changed before [`Engine::open`].
pub struct EngineOptions {
    /// The home directory. Made when absent.
    pub home: PathBuf,
    /// Executors that this process can use.
    pub deployment: Deployment,
    /// Limits of pauses, capabilities and leases.
    pub limits: MachineLimits,
    /// How long a commit may wait for the journal's lock. Default 10 s.
    pub lock_wait: Millis,
    /// How long a reject waits for a holder to stand down. Default 5 s.
    pub reject_wait: Millis,
    /// Events after which closing writes a snapshot. Default 1,000.
    pub snapshot_every: u64,
    /// Largest segment, in bytes. Default 64 MiB.
    pub segment_bytes_max: u64,
    /// The file system. Default: the real one.
    pub vfs: Arc<dyn Vfs>,
    /// The clock. Default: the kernel's.
    pub clock: Arc<dyn Clock>,
    /// Identifiers. Default: the kernel's randomness.
    pub ids: Arc<dyn Ids>,
    /// Called around executor calls. Default: nothing.
    pub hook: BoundaryHook,
}

impl EngineOptions {
    /// Defaults, for a home.
    #[must_use]
    pub fn new(home: impl Into<PathBuf>) -> Self {
        Self {
            home: home.into(),
            deployment: Deployment::none(),
            limits: MachineLimits::default(),
            lock_wait: Millis::from_secs(10),
            reject_wait: Millis::from_secs(5),
            snapshot_every: 1000,
            segment_bytes_max: 64 * 1024 * 1024,
            vfs: Arc::new(OsVfs),
            clock: Arc::new(SystemClock::new()),
            ids: Arc::new(SystemIds),
            hook: Arc::new(|_| {}),
        }
    }

    /// Adds an executor; bundles name it by `kind`.
    #[must_use]
    pub fn executor(mut self, kind: &str, factory: impl ExecutorFactory + 'static) -> Self {
        self.deployment = self.deployment.with(kind, factory);
        self
    }
}

/// A request to start a run.
#[derive(Clone, Debug)]
pub struct StartRequest {
    /// Folder of the bundle.
    pub bundle: PathBuf,
    /// Parameters: an object of declared names. Protected.
    pub parameters: Value,
    /// The caller's name for this request: the same one never runs twice.
    pub request_id: Option<RequestId>,
    /// Who starts it.
    pub author: Author,
}

/// A run that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Its id.
    pub run: RunId,
    /// Whether the same request had started it before.
    pub replayed: bool,
}

/// The answer to a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionAnswer {
    /// The decision as recorded; equal for ever.
    pub decision: DecisionView,
    /// Whether this repeats an earlier answer.
    pub replayed: bool,
}

/// An open engine. Safe to share between threads; several processes may open one home.
pub struct Engine {
    pub(super) journal: Journal<Shell>,
    pub(super) executors: ExecutorThread,
    pub(super) home: Home,
    pub(super) clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    report: OpenReport,
    reject_wait: Millis,
    snapshot_every: u64,
    /// Held for the life of the process; the kernel frees it when the process dies.
    _liveness: journal::lock::Liveness,
}

impl Engine {
    /// Opens a home, making it when absent: recovers the journal and folds it from the newest snapshot. Resumes nothing.
    ///
    /// # Errors
    /// [`EngineError::Open`] when acknowledged records are damaged or the lock is not free, [`EngineError::Home`] when
    /// the folder cannot be used.
    pub fn open(options: EngineOptions) -> Result<Self, EngineError> {
        let home = Home::new(&options.home, Arc::clone(&options.vfs));
        home.create().map_err(|(what, source)| EngineError::Home { what, source })?;
        let fresh = || options.ids.fresh().map_err(|source| EngineError::Home { what: "randomness", source });
        let instance = InstanceId(fresh()?);
        let liveness = journal::lock::Liveness::create(Arc::clone(home.vfs()), &home.live(), instance)
            .map_err(|source| EngineError::Home { what: "the liveness lock", source })?;
        let clock = Arc::clone(&options.clock);
        if journal_is_gone(&home)
            .map_err(|source| EngineError::Home { what: "the journal's folder", source })?
        {
            return Err(EngineError::JournalGone);
        }
        let opened = journal::open(
            Arc::clone(&options.vfs),
            &home.journal(),
            journal::Options {
                segment_bytes_max: options.segment_bytes_max,
                lock_wait: options.lock_wait,
                ..journal::Options::new(instance, clock.now().boot_id, Arc::new(move || clock.now().wall))
            },
        )?;
        let report = opened.report().clone();
        let (state, from) = snapshot::newest(&home, &opened.reader());
        let shell = Shell {
            state,
            journal: opened.journal_id(),
            instance,
            key: keys::load(&home).ok(),
            home: home.clone(),
            clock: Arc::clone(&options.clock),
            ids: Arc::clone(&options.ids),
            limits: options.limits,
            counted: Counted::default(),
            since_recorded: 0,
            since_snapshot: 0,
            reaped: false,
        };
        let journal = opened.start(from, shell)?;
        Ok(Self {
            journal,
            executors: ExecutorThread::new(options.deployment, options.hook, Arc::clone(&options.clock)),
            home,
            clock: options.clock,
            ids: options.ids,
            report,
            reject_wait: options.reject_wait,
            snapshot_every: options.snapshot_every,
            _liveness: liveness,
        })
    }

    /// What opening found and did.
    #[must_use]
    pub const fn report(&self) -> &OpenReport {
        &self.report
    }

    /// Where the home is.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.home.root()
    }

    /// The author of requests from this process: the effective OS account, through `via`.
    ///
    /// # Errors
    /// [`EngineError::NoOperator`].
    pub fn author(via: DecidedVia) -> Result<Author, EngineError> {
        effective_operator().map(|operator| Author { operator, via }).ok_or(EngineError::NoOperator)
    }

    /// Admits a run: checks the bundle and the parameters, stores both, journals the admission. Runs no step.
    ///
    /// # Errors
    /// [`EngineError::Bundle`], [`EngineError::Parameters`], `executor_missing`, `request_id_conflict`, `disk_full`.
    pub fn start(&self, request: &StartRequest) -> Result<Started, EngineError> {
        let bundle = Bundle::load(&request.bundle)?;
        let problems = check_executor_args(&bundle.workflow, self.executors.deployment());
        if !problems.is_empty() {
            return Err(super::bundle::BundleError::Problems(problems).into());
        }
        if !inputs::serves(self.executors.deployment(), &bundle.workflow) {
            return Err(Refusal::ExecutorMissing.into());
        }
        let parameters =
            protocol::bundle::check_parameters(bundle.workflow.parameters(), &request.parameters)
                .map_err(EngineError::Parameters)?;
        self.ensure_key()?;

        let salt = CapabilityKey::new(self.random_key()?);
        let Some(policy) = inputs::policy_digest(self.executors.deployment(), &salt) else {
            return Err(Refusal::ExecutorMissing.into());
        };
        let parameters = canonical_json::bytes_of(&parameters);
        let content = canonical_json::bytes_of(&serde_json::json!({
            "bundle": bundle.version,
            "parameters": protocol::digest::Sha256Digest::of(&parameters),
            "workflow": bundle.workflow.id(),
        }));
        bundle
            .copy_to(&self.home.bundle(bundle.version))
            .map_err(|source| EngineError::Home { what: "the bundle's folder", source })?;
        let answer = self.admit(
            &salt,
            &parameters,
            StartRun {
                workflow: bundle.workflow.id(),
                bundle: bundle.version,
                profile: bundle.workflow.profile(),
                parameters: protected_digest(&salt, &parameters),
                policy,
                steps: bundle.workflow.step_count(),
                effects: bundle.workflow.effect_count(),
                settle: bundle.workflow.settle(),
                request: request.request_id.clone(),
                request_digest: protected_digest(&salt, &content),
                author: request.author.clone(),
            },
            content,
        )?;
        if let Answer::Started { run, replayed } = answer {
            Ok(Started { run, replayed })
        } else {
            Err(unexpected(answer))
        }
    }

    /// Stores the inputs under the id that the run will have, then admits it. The inputs are synced before the event
    /// that binds them; a request that turns out to be a repetition leaves none behind.
    fn admit(
        &self,
        salt: &CapabilityKey,
        parameters: &[u8],
        start: StartRun,
        content: Vec<u8>,
    ) -> Result<Answer, EngineError> {
        let run = RunId(self.ids.fresh().map_err(|source| EngineError::Home { what: "randomness", source })?);
        self.home
            .store_inputs(run, salt, parameters)
            .map_err(|source| EngineError::Home { what: "the evidence store", source })?;
        let live = LiveFacts { executor: true, ..LiveFacts::default() };
        let request =
            Request { command: Command::StartRun(start), live, content: Some(content), run: Some(run) };
        let answer = self.journal.submit(request);
        let admitted = matches!(&answer, Ok(Answer::Started { replayed: false, .. }));
        // After a failed append the admission may still turn out to be durable, so its inputs stay.
        if !admitted && answer.is_ok() {
            self.home.discard_inputs(run);
        }
        Ok(answer?)
    }

    /// Drives a run until it waits, ends or is another's: a new one, one whose process died, or one whose pause can be
    /// checked again. Everything that earlier steps left behind is re-read first, never re-performed.
    ///
    /// # Errors
    /// `unknown_run`, `run_finished`, `busy`, `executor_missing`, `bundle_mismatch`, `state_diverged`.
    pub fn resume(&self, run: RunId, author: &Author) -> Result<RunView, EngineError> {
        self.pick_up(run, author, true)
    }

    /// As [`Engine::resume`], for a run that is free: one that waits for a person stays as it is.
    ///
    /// # Errors
    /// As [`Engine::resume`].
    pub fn resume_free(&self, run: RunId, author: &Author) -> Result<RunView, EngineError> {
        self.pick_up(run, author, false)
    }

    fn pick_up(&self, id: RunId, author: &Author, recheck: bool) -> Result<RunView, EngineError> {
        let Some(run) = self.open_run(id)? else { return self.run(id) };
        let inputs = self.inputs(&run)?;
        let limit = inputs.workflow().step(run.cursor.step()).map_or(Millis::from_secs(30), Step::limit);
        let answer = self.submit(Command::Acquire { run: id, limit, recheck, author: author.clone() })?;
        if let Answer::Leased { token, .. } = answer {
            Driver::new(self, id, token, inputs).go(true)?;
            self.snapshot_if_due()?;
        } else if !matches!(answer, Answer::Paused { .. } | Answer::Finished { .. }) {
            return Err(unexpected(answer));
        }
        self.run(id)
    }

    /// A person's decision. A continue, skip or reconcile reads the live state before it is recorded; afterwards the
    /// run goes on in this process, and this returns when it stops again. Use [`Engine::run`] to see where.
    ///
    /// # Errors
    /// The refusals of attended-contract §4, in its order.
    pub fn decide(&self, request: &DecisionRequest, author: &Author) -> Result<DecisionAnswer, EngineError> {
        let (answer, next) = self.decide_only(request, author)?;
        match next {
            Next::Nothing => {}
            Next::GoOn(token) => self.quietly(self.go_on(&answer.decision, token))?,
            // A run that has ended is found only by a search, and there is nothing to pick up in it.
            Next::PickUp if self.open_run(answer.decision.run)?.is_none() => {}
            Next::PickUp => {
                // Only the pause that this decision settled may be checked again for it, not a later one of the run.
                let settled = answer.decision.outcome == DecisionOutcome::NotDelivered;
                let recheck = settled && self.is_open(&answer.decision.attention_id)?;
                self.quietly(self.pick_up(answer.decision.run, author, recheck))?;
            }
        }
        Ok(answer)
    }

    /// Drives the run on under the lease that a decision kept. A continue has just read everything that earlier steps left
    /// behind; the others have not.
    fn go_on(&self, decision: &DecisionView, token: LeaseToken) -> Result<(), EngineError> {
        let Some(open) = self.open_run(decision.run)? else { return Ok(()) };
        let inputs = self.inputs(&open)?;
        Driver::new(self, decision.run, token, inputs).go(decision.action != Action::Continue)
    }

    fn is_open(&self, attention: &AttentionId) -> Result<bool, EngineError> {
        let id = attention.clone();
        Ok(self.journal.query(move |shell| shell.state.attention.contains_key(&id))?)
    }

    /// The decision is recorded whatever becomes of the run afterwards; what stops the run is the run's to tell.
    fn quietly<T>(&self, result: Result<T, EngineError>) -> Result<(), EngineError> {
        match result {
            Ok(_) | Err(EngineError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn decide_only(
        &self,
        request: &DecisionRequest,
        author: &Author,
    ) -> Result<(DecisionAnswer, Next), EngineError> {
        let deadline = self.clock.now().after(self.reject_wait);
        loop {
            let live = self.live_for(&request.attention_id)?;
            let command =
                Command::Decide { request: request.clone(), author: author.clone(), may_preempt: true };
            let answer = self.journal.submit(Request { command, live, content: None, run: None })?;
            if let Answer::Decided { decision, replayed, .. } = &answer {
                let next = if decision.action.needs_executor() { Next::PickUp } else { Next::Nothing };
                return Ok((recorded(decision, *replayed)?, next));
            }
            if let Answer::CarryOut { token, decision, run } = &answer {
                return self.carry_out(*token, decision, run);
            }
            let waits = request.action == Action::Reject && answer == Answer::Refused(Refusal::Busy);
            if !waits || !self.becomes_free(&request.attention_id, deadline)? {
                return Err(unexpected(answer));
            }
        }
    }

    /// Waits until nobody holds the lease of this item's run, but not beyond `deadline`: a reject has asked its holder to
    /// stand down. It looks and writes nothing.
    fn becomes_free(&self, attention: &AttentionId, deadline: Deadline) -> Result<bool, EngineError> {
        loop {
            let now = self.clock.now();
            if deadline.has_passed(&now, now.wall) {
                return Ok(false);
            }
            let id = attention.clone();
            let held = self
                .journal
                .query(move |shell| shell.state.pause(&id).is_some_and(|(run, _)| run.lease.is_some()))?;
            if !held {
                return Ok(true);
            }
            self.clock.sleep(Duration::from_millis(50));
        }
    }

    /// Reads the live state for a decision in `delivery_started`, and records what it showed.
    fn carry_out(
        &self,
        token: LeaseToken,
        decision: &Decision,
        run: &Run,
    ) -> Result<(DecisionAnswer, Next), EngineError> {
        let command = match self.judge(decision, run) {
            Ok(finding) => Command::FinishDecision { run: run.id(), token, decision: decision.id, finding },
            Err(ProbeError::Lost) => Command::LoseDecision { run: run.id(), token, decision: decision.id },
            Err(ProbeError::Refused(_)) => Command::FinishDecision {
                run: run.id(),
                token,
                decision: decision.id,
                finding: LiveFinding::NotVerified,
            },
        };
        let answer = self.submit(command)?;
        let Answer::Decided { decision, replayed, token } = answer else { return Err(unexpected(answer)) };
        let next = token.map_or(Next::PickUp, Next::GoOn);
        Ok((recorded(&decision, replayed)?, next))
    }

    fn judge(&self, decision: &Decision, run: &Run) -> Result<LiveFinding, ProbeError> {
        let inputs = Inputs::load(&self.home, &run.admitted).map_err(ProbeError::Refused)?;
        let index = run.cursor.step();
        let Some(step) = inputs.workflow().step(index) else {
            return Err(ProbeError::Refused(Refusal::BundleMismatch));
        };
        let probe = Probe {
            executors: &self.executors,
            inputs: &inputs,
            home: &self.home,
            clock: self.clock.as_ref(),
            run,
        };
        probe.judge(decision.action, step, index)
    }

    /// Ends a run before its next delivery. A delivery that may have happened is never rewritten: then the run ends
    /// once that is reconciled.
    ///
    /// # Errors
    /// `unknown_run`, `run_finished`.
    pub fn cancel(&self, run: RunId, author: Author) -> Result<RunView, EngineError> {
        self.submit(Command::Cancel { run, author })?;
        self.run(run)
    }

    /// A run as it stands, open or ended.
    ///
    /// # Errors
    /// `unknown_run`.
    pub fn run(&self, run: RunId) -> Result<RunView, EngineError> {
        if let Some(open) = self.open_run(run)? {
            return Ok(project::open_run(&open));
        }
        super::history::finished(&self.journal.reader(), run)?.ok_or_else(|| Refusal::UnknownRun.into())
    }

    /// Open runs, oldest first.
    ///
    /// # Errors
    /// [`EngineError::Append`] once the writer is poisoned.
    pub fn open_runs(&self) -> Result<Vec<RunView>, EngineError> {
        let mut runs = self
            .journal
            .query(|shell| shell.state.runs.values().map(project::open_run).collect::<Vec<_>>())?;
        runs.sort_by_key(|run| (run.started_at, run.run_id));
        Ok(runs)
    }

    /// Open items, oldest first.
    ///
    /// # Errors
    /// [`EngineError::Append`] once the writer is poisoned.
    pub fn attention(&self) -> Result<Vec<AttentionItem>, EngineError> {
        let mut items = self.journal.query(|shell| attention_of(&shell.state))?;
        items.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(items)
    }

    /// One open item.
    ///
    /// # Errors
    /// `unknown_attention`.
    pub fn attention_item(&self, id: &AttentionId) -> Result<AttentionItem, EngineError> {
        let id = id.clone();
        let item = self.journal.query(move |shell| {
            shell.state.pause(&id).and_then(|(run, pause)| project::attention_item(run, pause))
        })?;
        item.ok_or_else(|| Refusal::UnknownAttention.into())
    }

    /// Counts a request that was too malformed to be a command. Source: RULINGS 16.
    pub fn count_malformed(&self) {
        // A refusal is answered even if it cannot be journalled.
        let _ = self.journal.query(Shell::count_refusal);
    }

    /// Records the state's digest, with a snapshot once enough has happened, and closes the journal.
    ///
    /// # Errors
    /// [`EngineError::Append`]; everything acknowledged stays so.
    pub fn close(self) -> Result<(), EngineError> {
        self.record_state()?;
        self.journal.close()?;
        Ok(())
    }

    /// As [`Engine::record_state`], once enough has happened for a snapshot: a process that lives long and dies suddenly
    /// leaves one, too.
    pub(super) fn snapshot_if_due(&self) -> Result<(), EngineError> {
        let since = self.journal.query(|shell| shell.since_snapshot)?;
        if since >= self.snapshot_every { self.record_state() } else { Ok(()) }
    }

    /// Records the digest of the state as it is now, if anything happened since the last one.
    ///
    /// # Errors
    /// [`EngineError::Append`].
    pub fn record_state(&self) -> Result<(), EngineError> {
        let (since, through, state) = self.journal.query(|shell| {
            let through = Seq(shell.state.next.0.saturating_sub(1));
            let due = shell.since_recorded > 0 || shell.counted.pending();
            (shell.since_snapshot, through, due.then(|| shell.state.clone()))
        })?;
        let Some(state) = state else { return Ok(()) };
        let snapshot = if since >= self.snapshot_every {
            let written = snapshot::write(&self.home, through, &state).ok();
            snapshot::prune(&self.home);
            written
        } else {
            None
        };
        self.submit(Command::RecordState { through, digest: state.digest(), snapshot })?;
        Ok(())
    }

    pub(super) fn submit(&self, command: Command) -> Result<Answer, EngineError> {
        let request = Request { command, live: LiveFacts::default(), content: None, run: None };
        let answer = self.journal.submit(request)?;
        if let Answer::Refused(refusal) = answer { Err(refusal.into()) } else { Ok(answer) }
    }

    pub(super) fn open_run(&self, run: RunId) -> Result<Option<Run>, EngineError> {
        Ok(self.journal.query(move |shell| shell.state.runs.get(&run).cloned())?)
    }

    pub(super) fn author_of(&self, run: RunId) -> Result<Author, EngineError> {
        self.open_run(run)?.map(|run| run.admitted.author).ok_or_else(|| Refusal::UnknownRun.into())
    }

    fn inputs(&self, run: &Run) -> Result<Inputs, EngineError> {
        let inputs = Inputs::load(&self.home, &run.admitted)?;
        if !inputs::serves(self.executors.deployment(), inputs.workflow()) {
            return Err(Refusal::ExecutorMissing.into());
        }
        if inputs::policy_digest(self.executors.deployment(), &inputs.salt) != Some(run.admitted.policy) {
            return Err(Refusal::StateDiverged.into());
        }
        Ok(inputs)
    }

    fn live_for(&self, attention: &AttentionId) -> Result<LiveFacts, EngineError> {
        let id = attention.clone();
        let admitted =
            self.journal.query(move |shell| shell.state.pause(&id).map(|(run, _)| run.admitted.clone()))?;
        Ok(admitted.map_or_else(LiveFacts::default, |admitted| {
            inputs::live_facts(&self.home, self.executors.deployment(), &admitted)
        }))
    }

    /// Makes and journals the capability key before its first use; from then on "missing" is an error.
    fn ensure_key(&self) -> Result<(), EngineError> {
        let registered = self.journal.query(|shell| shell.state.capability_keys.clone())?;
        if !registered.is_empty() {
            let key = keys::load(&self.home)?;
            return if registered.contains(&key.id()) { Ok(()) } else { Err(keys::KeyError::Foreign.into()) };
        }
        let key = keys::create(&self.home, self.ids.as_ref())?;
        let id = key.id();
        self.journal.query(move |shell| shell.key = Some(key))?;
        self.submit(Command::RegisterKey { key: id })?;
        Ok(())
    }

    fn random_key(&self) -> Result<[u8; CapabilityKey::BYTES], EngineError> {
        let fresh = || self.ids.fresh().map_err(|source| EngineError::Home { what: "randomness", source });
        let mut bytes = [0_u8; CapabilityKey::BYTES];
        bytes[..16].copy_from_slice(&fresh()?);
        bytes[16..].copy_from_slice(&fresh()?);
        Ok(bytes)
    }
}

/// What follows a decision.
enum Next {
    Nothing,
    GoOn(LeaseToken),
    PickUp,
}

fn recorded(decision: &Decision, replayed: bool) -> Result<DecisionAnswer, EngineError> {
    project::decision(decision)
        .map(|decision| DecisionAnswer { decision, replayed })
        .ok_or_else(|| Refusal::DeliveryUncertain { retry_after: None }.into())
}

fn attention_of(state: &crate::machine::State) -> Vec<AttentionItem> {
    state
        .runs
        .values()
        .filter_map(|run| run.pause.as_ref().and_then(|pause| project::attention_item(run, pause)))
        .collect()
}

fn unexpected(answer: Answer) -> EngineError {
    match answer {
        Answer::Refused(refusal) => refusal.into(),
        Answer::Recorded
        | Answer::Started { .. }
        | Answer::Leased { .. }
        | Answer::Paused { .. }
        | Answer::Deliver { .. }
        | Answer::Committed { .. }
        | Answer::Finished { .. }
        | Answer::CarryOut { .. }
        | Answer::Decided { .. } => Refusal::WrongPhase.into(),
    }
}

/// Whether the home once had a journal and has none now. Its key is made after its first segment, so a key without any
/// segment means that the journal was lost or taken away; a new one would forget what was done.
fn journal_is_gone(home: &Home) -> std::io::Result<bool> {
    if !keys::exists(home)? {
        return Ok(false);
    }
    let folder = home.journal();
    let segments = home.vfs().exists(&folder)?
        && home.vfs().list(&folder)?.iter().any(|name| name.ends_with(journal::SEGMENT_SUFFIX));
    Ok(!segments)
}
