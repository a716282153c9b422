//! The doors between the engine and the world: clock, ids, executors, boundary hooks. A host program gives its own.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use protocol::delivery::ReceiptOutcome;
use protocol::ids::DeliveryId;
use protocol::time::Moment;
use serde_json::Value;

/// Tells the time. The real one reads the kernel; a test gives its own.
pub trait Clock: Send + Sync {
    /// Now, by all clocks at once.
    fn now(&self) -> Moment;
    /// Waits. A simulated clock moves itself on instead.
    fn sleep(&self, span: Duration);
}

/// Mints identifiers.
pub trait Ids: Send + Sync {
    /// 128 bits that nobody has used before.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    fn fresh(&self) -> Result<[u8; 16], std::io::Error>;
}

/// A read to make: a guard, a postcondition, an identity check or an effect's verification. Its arguments are bound and
/// protected.
#[derive(Clone)]
pub struct BoundCheck {
    /// Arguments with parameters filled in.
    pub args: Value,
    /// How long the read may take.
    pub time_limit: Duration,
    /// For a relative check: what [`Reading::seen`] held before the action.
    pub baseline: Option<Vec<u8>>,
    /// Whether the check compares with the state before the action.
    pub relative: bool,
}

/// An action to perform, at most once. Its arguments are bound and protected.
#[derive(Clone)]
pub struct BoundAction {
    /// Arguments with parameters filled in.
    pub args: Value,
    /// How long the action may take.
    pub time_limit: Duration,
    /// Names this crossing of the delivery boundary; none for an action of class `read`.
    pub delivery: Option<DeliveryId>,
}

impl fmt::Debug for BoundCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BoundCheck(protected, {:?})", self.time_limit)
    }
}

impl fmt::Debug for BoundAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BoundAction(protected, {:?}, {:?})", self.delivery, self.time_limit)
    }
}

/// What a read showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The read worked, and what it saw is as declared.
    Holds,
    /// The read worked, and something is there that differs.
    Fails,
    /// The read worked, and there is nothing at all.
    Absent,
    /// The read did not work: no answer, an error, an answer that could not be understood.
    Unreadable,
}

/// The answer to a check.
#[derive(Clone)]
pub struct Reading {
    /// What it showed.
    pub verdict: Verdict,
    /// The bytes that were judged; protected. Only their salted digest enters the journal.
    pub seen: Option<Vec<u8>>,
}

/// The answer to an action. An executor's word proves nothing by itself: a step is verified only by independent reads.
#[derive(Clone)]
pub struct ActReport {
    /// [`ReceiptOutcome::NotSent`] only if the executor can prove that nothing left this process; when in doubt,
    /// [`ReceiptOutcome::Unclear`].
    pub outcome: ReceiptOutcome,
    /// What the target answered; protected. Only its salted digest enters the journal.
    pub seen: Option<Vec<u8>>,
}

/// Touches the outside world on the engine's behalf. Built, used and dropped on one thread, so it need not be `Send`.
pub trait Executor {
    /// Reads and judges. Must not change anything in the outside world. May be repeated.
    fn check(&mut self, check: &BoundCheck) -> Reading;
    /// Acts. Called at most once for a delivery id; must never retry by itself.
    fn act(&mut self, action: &BoundAction) -> ActReport;
}

/// What arguments are for, so that a factory can judge them before any run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgsPurpose {
    /// [`Executor::check`].
    Check,
    /// [`Executor::act`] of a step that may change something.
    Write,
    /// [`Executor::act`] of a step that changes nothing.
    Read,
}

/// Makes executors of one kind.
pub trait ExecutorFactory: Send + Sync {
    /// Builds one, on the thread that will use it.
    ///
    /// # Errors
    /// A fixed sentence without protected values.
    fn build(&self) -> Result<Box<dyn Executor>, ExecutorError>;

    /// Judges arguments as a bundle gives them, parameters not yet filled in.
    ///
    /// # Errors
    /// Every fault, with a JSON pointer relative to the arguments.
    fn check_args(&self, purpose: ArgsPurpose, args: &Value) -> Result<(), Vec<ArgsFault>> {
        let _ = (purpose, args);
        Ok(())
    }

    /// What binds a pause to this deployment: the target and whatever else must stay the same until a decision.
    /// Only a salted digest of it leaves the process.
    fn fingerprint(&self) -> Vec<u8>;
}

/// What is wrong with an executor's arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgsFault {
    /// JSON pointer relative to the arguments; empty for the whole.
    pub pointer: String,
    /// What to change, without any value.
    pub message: String,
}

/// Why an executor could not be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the executor could not be started: {reason}")]
pub struct ExecutorError {
    /// A fixed sentence without protected values.
    pub reason: &'static str,
}

/// A point that the engine passes around an executor call. A crash test kills the process here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// Before an action is handed to its executor, after the intent is durable.
    BeforeAct,
    /// After the action returned, before its receipt.
    AfterAct,
    /// Before a read.
    BeforeCheck,
    /// After a read.
    AfterCheck,
}

/// Called at every [`Boundary`]. The default does nothing.
pub type BoundaryHook = Arc<dyn Fn(Boundary) + Send + Sync>;
