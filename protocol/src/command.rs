//! Every request the machine accepts. Those of callers come through the service's public methods; those of the
//! service's own driver carry the lease token they act under.

use alloc::vec::Vec;

use crate::bundle::Profile;
use crate::decision::DecisionRequest;
use crate::delivery::ReceiptOutcome;
use crate::digest::{MacDigest, Sha256Digest, StateDigest};
use crate::event::{Author, CheckpointKind, EffectReading, StepFacts};
use crate::ids::{DecisionId, DeliveryId, KeyId, LeaseToken, RequestId, RunId, Seq, WorkflowId};
use crate::pause::{Category, IdentityStatus, Reason};
use crate::time::Millis;

/// A request to start a run; protected values were stored as evidence before.
#[derive(Clone, Debug)]
pub struct StartRun {
    /// Its workflow.
    pub workflow: WorkflowId,
    /// Its bundle version.
    pub bundle: Sha256Digest,
    /// Its profile.
    pub profile: Profile,
    /// Salted digest of the bound parameters.
    pub parameters: MacDigest,
    /// Digest of policy and deployment.
    pub policy: Sha256Digest,
    /// Steps in the workflow.
    pub steps: u32,
    /// Effects that all its steps declare.
    pub effects: u32,
    /// Settle time of the bundle.
    pub settle: Millis,
    /// The caller's name for the request.
    pub request: Option<RequestId>,
    /// Salted digest of the whole request, under the salt of the run that it would start.
    pub request_digest: MacDigest,
    /// Who asks.
    pub author: Author,
}

/// Why the driver stops at a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Category of the pause.
    pub category: Category,
    /// The closed reason.
    pub reason: Reason,
    /// Salted digests of what was seen.
    pub evidence: Vec<MacDigest>,
    /// Whether the identity is proven.
    pub identity_status: IdentityStatus,
    /// Salted digest of the captured identity.
    pub identity: Option<MacDigest>,
    /// Whether the state before the step was captured.
    pub baseline: bool,
}

/// A step whose checks all passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Its effects as read.
    pub effects: Vec<EffectReading>,
    /// Whether the identity is proven.
    pub identity_status: IdentityStatus,
    /// Salted digest of the identity as read.
    pub identity: Option<MacDigest>,
}

/// What the live state showed for a decision that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveFinding {
    /// Everything the step declares, and everything retained from before, reads as it should.
    Verified(Verified),
    /// For a skip: the guard does not hold.
    GuardUnmet,
    /// For a skip: the guard holds, so the step must run.
    GuardHolds,
    /// For a reconcile: every effect reads as absent, or the step has none and the engine never acted on it.
    Absent(Vec<EffectReading>),
    /// Anything else.
    NotVerified,
}

/// A request to the machine.
#[derive(Clone, Debug)]
pub enum Command {
    /// Admits a run.
    StartRun(StartRun),
    /// Ends a run before its next delivery.
    Cancel {
        /// The run.
        run: RunId,
        /// Who asks.
        author: Author,
    },
    /// Takes the run's lease, over from a dead or overdue holder where there is one.
    Acquire {
        /// The run.
        run: RunId,
        /// Time limit of the step that comes next; the lease lasts that long and the grace.
        limit: Millis,
        /// Whether a pause that can be checked again is to be closed for that.
        recheck: bool,
        /// Who asks.
        author: Author,
    },
    /// Gives the lease back.
    Release {
        /// The run.
        run: RunId,
        /// The lease.
        token: LeaseToken,
    },
    /// Crosses the delivery boundary of the step at the cursor.
    BeginStep {
        /// The run.
        run: RunId,
        /// The lease.
        token: LeaseToken,
        /// The step.
        step: StepFacts,
        /// Salted digest of the bound action.
        action: MacDigest,
    },
    /// The executor's call returned.
    RecordReceipt {
        /// The run.
        run: RunId,
        /// The lease.
        token: LeaseToken,
        /// The crossing.
        delivery: DeliveryId,
        /// What the executor says.
        outcome: ReceiptOutcome,
        /// Why, where it is unclear.
        reason: Reason,
        /// Salted digest of what it saw.
        evidence: Option<MacDigest>,
        /// Identity and baseline as captured before the action, for the pause that an unclear outcome opens.
        seen: Finding,
    },
    /// Commits a verified step.
    CommitStep {
        /// The run.
        run: RunId,
        /// The lease.
        token: LeaseToken,
        /// The step.
        step: StepFacts,
        /// [`CheckpointKind::Engine`], [`CheckpointKind::Read`] or [`CheckpointKind::Skipped`].
        kind: CheckpointKind,
        /// What was verified.
        verified: Verified,
    },
    /// Stops at the step: pauses, or ends the run where the step may never be attended and nothing was delivered.
    Stop {
        /// The run.
        run: RunId,
        /// The lease.
        token: LeaseToken,
        /// The step.
        step: StepFacts,
        /// Why.
        finding: Finding,
    },
    /// A person's decision.
    Decide {
        /// The request.
        request: DecisionRequest,
        /// Who decides, and through which surface.
        author: Author,
        /// Whether a reject may ask a live holder to stand down.
        may_preempt: bool,
    },
    /// What the live state showed for a decision in `delivery_started`.
    FinishDecision {
        /// The run.
        run: RunId,
        /// The lease.
        token: LeaseToken,
        /// The decision.
        decision: DecisionId,
        /// What was found.
        finding: LiveFinding,
    },
    /// The executor was lost while it worked for a decision.
    LoseDecision {
        /// The run.
        run: RunId,
        /// The lease.
        token: LeaseToken,
        /// The decision.
        decision: DecisionId,
    },
    /// Journals a capability key before its first use.
    RegisterKey {
        /// Its id.
        key: KeyId,
    },
    /// Records the state's digest.
    RecordState {
        /// The last record folded in.
        through: Seq,
        /// The digest.
        digest: StateDigest,
        /// SHA-256 of the snapshot file, where one was written.
        snapshot: Option<Sha256Digest>,
    },
}
