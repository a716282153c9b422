//! What may leave the engine towards agents and queues. No field here can hold a name, an intent, a value, a text, a
//! path or a MAC; success, halt, refusal and fault share these types, so that an error cannot become a leak.
//! Source: DESIGN §6, attended-contract §6.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::decision::{Action, DecidedVia, Disposition};
use crate::delivery::DeliveryState;
use crate::digest::Sha256Digest;
use crate::event::DecisionOutcome;
use crate::ids::{AttentionId, DecisionId, RunId, WorkflowId};
use crate::outcome::{AgentOutcome, RecordChanged, RunOutcome, RunState};
use crate::pause::{Category, IdentityStatus, Reason};
use crate::refusal::RefusalCode;
use crate::time::UnixMillis;
use crate::vocabulary::codes;

codes!(
    /// Where an attention item stands.
    AttentionStatus {
        /// Waits for a decision.
        Open = "open",
        /// A corrective demonstration was asked for; still open.
        NeedsDemonstration = "needs_demonstration",
        /// Qualified help was asked for; still open.
        Escalated = "escalated",
        /// Expired; only reject, escalate and teach, or `resume RUN`.
        Expired = "expired",
    }
);

/// An open pause, as an agent or a queue sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttentionItem {
    /// Opaque, stable.
    pub id: AttentionId,
    /// The run.
    pub run: RunId,
    /// Opaque.
    pub workflow: WorkflowId,
    /// Why it waits.
    pub category: Category,
    /// The closed reason.
    pub reason: Reason,
    /// Where it stands.
    pub status: AttentionStatus,
    /// When the pause was opened.
    pub created_at: UnixMillis,
    /// When it expires.
    pub expires_at: UnixMillis,
    /// Number of the step, from 1.
    pub step_number: u32,
    /// Steps in the workflow.
    pub step_count: u32,
    /// What the step declares.
    pub counts: Counts,
    /// Opaque names of evidence.
    pub artifact_ids: Vec<Sha256Digest>,
    /// What may be done.
    pub capability: CapabilityView,
}

/// How much a step declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Postconditions.
    pub postconditions: u32,
    /// Effects.
    pub effects: u32,
    /// Checkpoints committed so far.
    pub checkpoints: u32,
}

/// A capability, without its claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityView {
    /// What a decision must present.
    pub digest: Sha256Digest,
    /// What the pause allows as it stands.
    pub allowed_actions: Vec<Action>,
    /// When it expires.
    pub expires_at: UnixMillis,
    /// Whether the step may have been delivered.
    pub delivery_state: DeliveryState,
    /// Whether the step demands a proven identity.
    pub identity_required: bool,
    /// Whether it is proven.
    pub identity_status: IdentityStatus,
}

/// A decision as recorded. Equal for ever, in any process; `replayed` says whether this answer repeats it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionView {
    /// The decision.
    pub decision: DecisionId,
    /// The run.
    pub run: RunId,
    /// The pause.
    pub attention_id: AttentionId,
    /// The action.
    pub action: Action,
    /// The disposition as given.
    pub disposition: Option<Disposition>,
    /// The capability that was presented.
    pub capability_digest: Sha256Digest,
    /// Through which surface it came.
    pub decided_via: DecidedVia,
    /// When it was admitted.
    pub decided_at: UnixMillis,
    /// How it ended.
    pub outcome: DecisionOutcome,
    /// The code of a refusal that the live state caused.
    pub refusal: Option<RefusalCode>,
}

/// A run as an agent sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunView {
    /// The run.
    pub run_id: RunId,
    /// Opaque.
    pub workflow: WorkflowId,
    /// Where it stands.
    pub state: RunState,
    /// What became of it, once it ended.
    pub execution_outcome: Option<RunOutcome>,
    /// What an agent is told.
    pub outcome: AgentOutcome,
    /// Why it ended or waits.
    pub reason: Option<Reason>,
    /// Whether a record changed.
    pub record_changed: RecordChanged,
    /// Whether starting it again cannot do anything twice.
    pub safe_to_retry: bool,
    /// The open item, while it waits.
    pub attention_id: Option<AttentionId>,
    /// Step that it stands at, from 1; one more than `step_count` at the end.
    pub step_number: u32,
    /// Steps in the workflow.
    pub step_count: u32,
    /// Checkpoints committed.
    pub checkpoints: u32,
    /// Effects confirmed.
    pub effects_confirmed: u32,
    /// Effects declared.
    pub effects_declared: u32,
    /// When it was admitted.
    pub started_at: UnixMillis,
}
