//! The owner thread: executors are built, used and dropped on it, and only exact requests reach it.
//!
//! A request that is still queued when its time is over is withdrawn and was never begun; one that is running when its
//! time is over is *lost*: whether it acted is not known. The difference is settled by one atomic exchange. An action that
//! crosses a delivery boundary is begun before the moment that its intent allows, or never.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use protocol::time::Deadline;

use super::ports::{
    ActReport, BoundAction, BoundCheck, Boundary, BoundaryHook, Clock, Executor, ExecutorFactory, Reading,
};

#[cfg(feature = "http")]
pub mod http;

/// Time beyond a call's own limit after which the owner thread is given up.
const OVERTIME: Duration = Duration::from_secs(2);
/// How long a request may wait for the owner thread.
const QUEUE_LIMIT: Duration = Duration::from_secs(30);

/// The executors that this process can use, by kind.
#[derive(Clone, Default)]
pub struct Deployment {
    factories: BTreeMap<String, Arc<dyn ExecutorFactory>>,
}

impl Deployment {
    /// No executor at all: decisions that need one answer `executor_missing`.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds an executor kind; bundles name it in `executor`.
    #[must_use]
    pub fn with(mut self, kind: &str, factory: impl ExecutorFactory + 'static) -> Self {
        self.factories.insert(kind.to_owned(), Arc::new(factory));
        self
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.factories.is_empty()
    }

    /// The factory of a kind.
    #[must_use]
    pub fn factory(&self, kind: &str) -> Option<&dyn ExecutorFactory> {
        self.factories.get(kind).map(AsRef::as_ref)
    }

    /// Kinds and fingerprints, for the policy digest.
    pub(crate) fn fingerprint(&self) -> Vec<(String, Vec<u8>)> {
        self.factories.iter().map(|(kind, factory)| (kind.clone(), factory.fingerprint())).collect()
    }
}

/// Why a call has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// It was never begun: no such executor, none could be built, or its turn did not come.
    #[error("the executor did not begin")]
    NotBegun,
    /// It was begun and did not come back; it may still be at work.
    #[error("the executor did not come back")]
    Lost,
    /// It was begun and ended by a panic; nothing of it can still act.
    #[error("the executor failed")]
    Failed,
}

enum Call {
    Check(BoundCheck, mpsc::Sender<News<Reading>>),
    Act(BoundAction, mpsc::Sender<News<ActReport>>),
}

/// What the owner thread tells a waiting caller.
enum News<T> {
    /// Its turn has come; from now on its own time limit runs.
    Begun,
    /// It is over.
    Done(Result<T, CallError>),
}

struct Job {
    kind: String,
    call: Call,
    stage: Arc<AtomicU8>,
    /// After this it may not be begun any more.
    begin_before: Option<Deadline>,
}

const QUEUED: u8 = 0;
const BEGUN: u8 = 1;
const WITHDRAWN: u8 = 2;

/// A handle to the owner thread. The thread starts with the first call and ends when the handle is dropped.
pub struct ExecutorThread {
    deployment: Deployment,
    hook: BoundaryHook,
    clock: Arc<dyn Clock>,
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
}

impl ExecutorThread {
    /// A handle; nothing is started yet.
    #[must_use]
    pub fn new(deployment: Deployment, hook: BoundaryHook, clock: Arc<dyn Clock>) -> Self {
        Self { deployment, hook, clock, jobs: Mutex::new(None) }
    }

    /// The deployment behind it.
    #[must_use]
    pub const fn deployment(&self) -> &Deployment {
        &self.deployment
    }

    /// Reads. An executor that does not answer makes the check unreadable.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn check(&self, kind: &str, check: BoundCheck) -> Result<Reading, CallError> {
        let limit = check.time_limit;
        (self.hook)(Boundary::BeforeCheck);
        let (reply, answer) = mpsc::channel();
        let result = self.call(kind, Call::Check(check, reply), &answer, limit, None);
        (self.hook)(Boundary::AfterCheck);
        result
    }

    /// Acts, at most once, and not after `begin_before`.
    ///
    /// # Errors
    /// [`CallError`]. Only [`CallError::NotBegun`] says that nothing was delivered.
    pub fn act(
        &self,
        kind: &str,
        action: BoundAction,
        begin_before: Option<Deadline>,
    ) -> Result<ActReport, CallError> {
        let limit = action.time_limit;
        let writes = action.delivery.is_some();
        if writes {
            (self.hook)(Boundary::BeforeAct);
        }
        let (reply, answer) = mpsc::channel();
        let result = self.call(kind, Call::Act(action, reply), &answer, limit, begin_before);
        if writes {
            (self.hook)(Boundary::AfterAct);
        }
        result
    }

    fn call<T>(
        &self,
        kind: &str,
        call: Call,
        answer: &mpsc::Receiver<News<T>>,
        limit: Duration,
        begin_before: Option<Deadline>,
    ) -> Result<T, CallError> {
        let stage = Arc::new(AtomicU8::new(QUEUED));
        self.send(Job { kind: kind.to_owned(), call, stage: Arc::clone(&stage), begin_before })?;
        let mut news = answer.recv_timeout(QUEUE_LIMIT);
        if matches!(news, Err(RecvTimeoutError::Timeout)) {
            if stage.compare_exchange(QUEUED, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return Err(CallError::NotBegun);
            }
            // Begun in this very moment: the thread says so before it does anything else.
            news = answer.recv_timeout(QUEUE_LIMIT);
        }
        if matches!(news, Ok(News::Begun)) {
            news = answer.recv_timeout(limit.saturating_add(OVERTIME));
        }
        match news {
            Ok(News::Done(result)) => result,
            Err(RecvTimeoutError::Disconnected) => Err(CallError::Failed),
            Ok(News::Begun) | Err(RecvTimeoutError::Timeout) => {
                // Begun and overdue: the thread is given up, so that later calls are not queued behind it.
                *self.jobs.lock().unwrap_or_else(PoisonError::into_inner) = None;
                Err(CallError::Lost)
            }
        }
    }

    fn send(&self, job: Job) -> Result<(), CallError> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = match &*jobs {
            Some(sender) => sender,
            None => {
                let (sender, receiver) = mpsc::channel();
                let deployment = self.deployment.clone();
                let clock = Arc::clone(&self.clock);
                thread::Builder::new()
                    .name("opjournal-executor".into())
                    .spawn(move || own(&deployment, clock.as_ref(), &receiver))
                    .map_err(|_| CallError::NotBegun)?;
                jobs.insert(sender)
            }
        };
        sender.send(job).map_err(|_| CallError::NotBegun)
    }
}

/// The owner thread's life: builds each kind at its first use and keeps it.
fn own(deployment: &Deployment, clock: &dyn Clock, jobs: &mpsc::Receiver<Job>) {
    let mut executors: BTreeMap<String, Box<dyn Executor>> = BTreeMap::new();
    while let Ok(job) = jobs.recv() {
        if job.stage.compare_exchange(QUEUED, BEGUN, Ordering::AcqRel, Ordering::Acquire).is_err() {
            continue;
        }
        let executor = executor_for(deployment, &mut executors, &job.kind);
        // Judged last, with everything built: what follows is the call itself.
        let now = clock.now();
        let in_time = job.begin_before.is_none_or(|deadline| !deadline.has_passed(&now, now.wall));
        let executor = executor.filter(|_| in_time);
        let survived = match job.call {
            Call::Check(check, reply) => serve(executor, &reply, |executor| executor.check(&check)),
            Call::Act(action, reply) => serve(executor, &reply, |executor| executor.act(&action)),
        };
        if !survived {
            executors.remove(&job.kind);
        }
    }
}

fn executor_for<'e>(
    deployment: &Deployment,
    executors: &'e mut BTreeMap<String, Box<dyn Executor>>,
    kind: &str,
) -> Option<&'e mut Box<dyn Executor>> {
    if !executors.contains_key(kind) {
        let factory = deployment.factory(kind)?;
        let built = catch_unwind(AssertUnwindSafe(|| factory.build())).ok().and_then(Result::ok)?;
        executors.insert(kind.to_owned(), built);
    }
    executors.get_mut(kind)
}

/// Answers one call; false when the executor panicked in it and must be built anew.
fn serve<T>(
    executor: Option<&mut Box<dyn Executor>>,
    reply: &mpsc::Sender<News<T>>,
    call: impl FnOnce(&mut dyn Executor) -> T,
) -> bool {
    // A caller that has gone away hears no answer; that is its affair.
    let Some(executor) = executor else {
        let _ = reply.send(News::Done(Err(CallError::NotBegun)));
        return true;
    };
    let _ = reply.send(News::Begun);
    let result = catch_unwind(AssertUnwindSafe(|| call(executor.as_mut())));
    let survived = result.is_ok();
    let _ = reply.send(News::Done(result.map_err(|_| CallError::Failed)));
    survived
}
