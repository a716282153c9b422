//! What a person may decide on a pause, and how the request looks. Source: attended-contract §4.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::canonical_json;
use crate::digest::Sha256Digest;
use crate::ids::{AttentionId, IdempotencyKey};
use crate::refusal::Refusal;
use crate::vocabulary::codes;

codes!(
    /// An operator's action on a pause.
    Action {
        /// The person did the task; verify it and go on from the next step.
        Continue = "continue",
        /// The step does not apply; go on without it.
        Skip = "skip",
        /// End the run for ever.
        Reject = "reject",
        /// Ask for a corrective demonstration.
        Teach = "teach",
        /// Ask for qualified help.
        Escalate = "escalate",
        /// Settle an uncertain delivery by reading.
        Reconcile = "reconcile",
    }
);

impl Action {
    /// Whether the action drives the run on and so needs a lease and an executor.
    #[must_use]
    pub const fn needs_executor(self) -> bool {
        match self {
            Self::Continue | Self::Skip | Self::Reconcile => true,
            Self::Reject | Self::Teach | Self::Escalate => false,
        }
    }
}

codes!(
    /// The closed reason that goes with an action.
    Disposition {
        /// With continue.
        CompletedByOperator = "completed_by_operator",
        /// With skip.
        NotApplicable = "not_applicable",
        /// With reject.
        RejectedByOperator = "rejected_by_operator",
        /// With teach.
        TeachRequested = "teach_requested",
        /// With escalate.
        CannotComplete = "cannot_complete",
        /// With escalate.
        NeedsAssistance = "needs_assistance",
        /// With reconcile.
        ReconciliationRequested = "reconciliation_requested",
    }
);

impl Disposition {
    /// The action this disposition belongs to.
    #[must_use]
    pub const fn action(self) -> Action {
        match self {
            Self::CompletedByOperator => Action::Continue,
            Self::NotApplicable => Action::Skip,
            Self::RejectedByOperator => Action::Reject,
            Self::TeachRequested => Action::Teach,
            Self::CannotComplete | Self::NeedsAssistance => Action::Escalate,
            Self::ReconciliationRequested => Action::Reconcile,
        }
    }
}

codes!(
    /// The surface through which a request came. Set by the surface, never by the request.
    DecidedVia {
        /// The terminal, where a person typed: the only one that counts as a person's decision.
        Console = "console",
        /// An accepted form: the client's host said so, no more.
        Elicitation = "elicitation",
        /// A program.
        Script = "script",
        /// Nothing is known.
        Unknown = "unknown",
    }
);

/// A decision request, shape-checked. Nothing else may stand in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionRequest {
    /// The pause, as agents name it.
    pub attention_id: AttentionId,
    /// Digest of the capability that the operator saw.
    pub capability_digest: Sha256Digest,
    /// The caller's stable name for this request.
    pub idempotency_key: IdempotencyKey,
    /// What to do.
    pub action: Action,
    /// Why, from the closed list; an absent one and its explicit default are different requests.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub disposition: Option<Disposition>,
}

/// A member that may be absent and may not be `null`: the digest is over the request as given.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Disposition>, D::Error> {
    Disposition::deserialize(deserializer).map(Some)
}

impl DecisionRequest {
    /// Parses a request from JSON bytes.
    ///
    /// # Errors
    /// [`Refusal::InvalidRequest`] for anything malformed, unknown, duplicate or missing, and for a disposition
    /// of another action. The offending value is never part of the answer.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Refusal> {
        let value =
            canonical_json::parse_strict(bytes, MAX_REQUEST_BYTES).map_err(|_| Refusal::InvalidRequest)?;
        let request: Self = serde_json::from_value(value).map_err(|_| Refusal::InvalidRequest)?;
        request.check()?;
        Ok(request)
    }

    /// Checks what types cannot: that the disposition belongs to the action.
    ///
    /// # Errors
    /// [`Refusal::InvalidRequest`].
    pub fn check(&self) -> Result<(), Refusal> {
        match self.disposition {
            Some(disposition) if disposition.action() != self.action => Err(Refusal::InvalidRequest),
            Some(_) | None => Ok(()),
        }
    }

    /// Digest over the canonical form of the request as given.
    #[must_use]
    pub fn digest(&self) -> Sha256Digest {
        canonical_json::digest_of(self)
    }
}

/// Largest decision request that is read, in bytes.
pub const MAX_REQUEST_BYTES: usize = 4096;

/// The effective OS account that decided: text of the password database, never an environment variable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Operator(String);

impl Operator {
    /// An operator of this account name; `None` when it is blank, over 128 bytes or holds a control character,
    /// for then nobody can be named.
    #[must_use]
    pub fn new(account: &str) -> Option<Self> {
        let name = account.trim();
        (!name.is_empty() && name.len() <= 128 && !name.chars().any(char::is_control))
            .then(|| Self(name.into()))
    }

    /// The account name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
