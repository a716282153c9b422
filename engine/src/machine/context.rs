//! Everything that `decide` may know beside the state: time, fresh ids, who lives, what is recorded of old work, and
//! what the service read just now. All of it lands in events where it matters, so replay asks nobody.

use alloc::collections::BTreeSet;

use protocol::capability::CapabilityKey;
use protocol::digest::{MacDigest, Sha256Digest};
use protocol::ids::{DecisionId, DeliveryId, InstanceId, JournalId, PauseId, RunId, Seq};
use protocol::time::{Millis, Moment};

use super::state::Decision;

/// What `decide` is told.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    /// The journal.
    pub journal: JournalId,
    /// Position that the first event will take.
    pub next: Seq,
    /// Now, by all clocks.
    pub now: Moment,
    /// The process that asks.
    pub instance: InstanceId,
    /// Ids that nobody has used.
    pub fresh: FreshIds,
    /// Processes whose liveness lock is held, among those that [`State::watched`](super::State::watched) names; the
    /// asking one included. Leaving out a process that lives would let an absence be proven while it can still act.
    pub alive: &'a BTreeSet<InstanceId>,
    /// The home's capability key.
    pub key: Option<&'a CapabilityKey>,
    /// What the journal has recorded of the command's keys beyond the open runs.
    pub facts: &'a Facts,
    /// What the service read just now, for the command's run.
    pub live: LiveFacts,
    /// Preallocated bytes left in the journal.
    pub space_left: u64,
    /// Limits in force.
    pub limits: MachineLimits,
}

/// Ids for one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreshIds {
    /// For a run.
    pub run: RunId,
    /// For a pause.
    pub pause: PauseId,
    /// For a decision.
    pub decision: DecisionId,
    /// For a delivery.
    pub delivery: DeliveryId,
}

/// Recorded facts of work that is not open any more, found by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The decision recorded under the request's idempotency key.
    pub decision: Option<Decision>,
    /// What is recorded of the request's attention id.
    pub attention: Option<RecordedAttention>,
    /// What is recorded of the request id.
    pub request: Option<RecordedRequest>,
    /// Whether a run of the command's run id has ended.
    pub run_finished: bool,
}

/// A pause that is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedAttention {
    /// Whether its run was rejected.
    pub run_rejected: bool,
}

/// A run that was started under a request id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    /// The run.
    pub run: RunId,
    /// Salted digest of the request as recorded.
    pub recorded: MacDigest,
    /// Digest of the new request under that run's salt; none when the salt was purged, and then content is not
    /// compared (RULINGS 23).
    pub presented: Option<MacDigest>,
}

/// What the service read just now. `None` means that it could not be read or does not exist here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveFacts {
    /// Version of the stored bundle, recomputed.
    pub bundle: Option<Sha256Digest>,
    /// Salted digest of the stored parameters, recomputed.
    pub parameters: Option<MacDigest>,
    /// Digest of this process's policy and deployment; none without a deployment.
    pub policy: Option<Sha256Digest>,
    /// Whether this process has an executor for the run.
    pub executor: bool,
    /// Whether a child of an executor that acted on this run still holds the lock that it inherited (RULINGS 1).
    pub child_lives: bool,
}

/// Limits of the machine. Defaults and ranges: the table of limits (RULINGS 40).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineLimits {
    /// How long a capability is good.
    pub capability_ms: Millis,
    /// How long a pause is good.
    pub pause_ms: Millis,
    /// What a lease lasts beyond its step's limit.
    pub lease_grace_ms: Millis,
}

impl Default for MachineLimits {
    fn default() -> Self {
        Self {
            capability_ms: Millis::from_secs(24 * 60 * 60),
            pause_ms: Millis::from_secs(7 * 24 * 60 * 60),
            lease_grace_ms: Millis::from_secs(30),
        }
    }
}

impl Context<'_> {
    /// Whether a process is known to live.
    #[must_use]
    pub fn lives(&self, instance: InstanceId) -> bool {
        self.alive.contains(&instance)
    }
}
