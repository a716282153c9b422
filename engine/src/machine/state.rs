//! What the machine knows: the fold of events and nothing else. Ordered maps only; no floats. Open work only: a run
//! that ended leaves its trace in a running hash, and its recorded answers come back through `Facts`.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use protocol::capability::Capability;
use protocol::cursor::Cursor;
use protocol::decision::{Action, Disposition};
use protocol::delivery::{DeliveryState, EffectStatus, ReceiptOutcome};
use protocol::digest::{MacDigest, Sha256Digest, StateDigest};
use protocol::event::{
    Author, CheckpointKind, DecisionFinished, DecisionOutcome, DecisionPrepared, DecisionRecorded,
    PauseOpened, RunAdmitted, StepFacts,
};
use protocol::ids::{
    AttentionId, DecisionId, DeliveryId, IdempotencyKey, InstanceId, KeyId, LeaseToken, PauseId, RequestId,
    RunId, Seq, StepId,
};
use protocol::refusal::RefusalCode;
use protocol::time::{Deadline, UnixMillis};
use serde::{Deserialize, Serialize};

/// The machine's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The position after the last event folded in.
    pub next: Seq,
    /// The latest wall time that an event carries.
    pub latest_wall: UnixMillis,
    /// Open runs.
    pub runs: BTreeMap<RunId, Run>,
    /// Request ids of open runs.
    pub requests: BTreeMap<RequestId, RunId>,
    /// Open pauses.
    pub attention: BTreeMap<AttentionId, RunId>,
    /// Idempotency keys of decisions on open runs.
    pub keys: BTreeMap<IdempotencyKey, RunId>,
    /// Capability keys that exist.
    pub capability_keys: BTreeSet<KeyId>,
    /// What has ended.
    pub retired: Retired,
}

/// The trace of runs that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retired {
    /// How many.
    pub runs: u64,
    /// Running hash over each run's last state, in order of their ends; none before the first.
    pub hash: Option<StateDigest>,
}

/// An open run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// How it was admitted.
    pub admitted: RunAdmitted,
    /// When.
    pub admitted_at: UnixMillis,
    /// Where it stands.
    pub cursor: Cursor,
    /// Its verified steps, in order.
    pub lineage: Vec<Link>,
    /// The delivery boundary that was crossed for the step at the cursor, if it was and is not settled as absent.
    pub crossing: Option<Crossing>,
    /// The open pause.
    pub pause: Option<Pause>,
    /// The current lease.
    pub lease: Option<Lease>,
    /// Every decision on this run, by key.
    pub decisions: BTreeMap<IdempotencyKey, Decision>,
    /// Who asked for its end, if somebody did.
    pub cancel: Option<Author>,
    /// The process that asks the holder to stand down.
    pub stand_down: Option<InstanceId>,
    /// Capabilities issued so far.
    pub capabilities: u64,
    /// Delivery boundaries crossed so far.
    pub deliveries: u32,
}

/// A checkpoint, as far as later steps need it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Digest of the checkpoint.
    pub digest: Sha256Digest,
    /// Digest of the one before.
    pub parent: Option<Sha256Digest>,
    /// Index of its step.
    pub index: u32,
    /// Name of its step.
    pub step: StepId,
    /// Who did it.
    pub kind: CheckpointKind,
    /// Whether its effect matters to the business.
    pub consequential: bool,
    /// Bundle version it was committed under.
    pub bundle: Sha256Digest,
    /// Salted digest of the parameters it was committed with.
    pub parameters: MacDigest,
    /// Its effects as read.
    pub effects: Vec<(String, EffectStatus)>,
    /// Whether the engine acted.
    pub delivery_attempted: bool,
}

/// A delivery boundary that was crossed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crossing {
    /// Its id.
    pub delivery: DeliveryId,
    /// The step.
    pub step: StepFacts,
    /// The process that crossed it.
    pub holder: InstanceId,
    /// See `StepIntent`.
    pub absent_after: Deadline,
    /// Bytes promised to its outcome.
    pub reserve: u32,
    /// What the executor said, once it returned.
    pub receipt: Option<ReceiptOutcome>,
}

/// An open pause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// How it was opened.
    pub opened: PauseOpened,
    /// When.
    pub at: UnixMillis,
    /// Its current capability.
    pub capability: Option<Box<Capability>>,
    /// Whether its expiry was recorded.
    pub expired: bool,
    /// A demonstration was asked for.
    pub needs_demonstration: bool,
    /// Help was asked for.
    pub escalated: bool,
}

/// Exclusive ownership of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Its fencing token.
    pub token: LeaseToken,
    /// Its owner.
    pub holder: InstanceId,
    /// Until when.
    pub until: Deadline,
}

/// An admitted decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Its id.
    pub id: DecisionId,
    /// The run.
    pub run: RunId,
    /// The pause.
    pub pause: PauseId,
    /// The pause's name towards agents.
    pub attention: AttentionId,
    /// Digest of the whole request.
    pub request: Sha256Digest,
    /// The capability that was presented.
    pub capability: Sha256Digest,
    /// The action.
    pub action: Action,
    /// The disposition as given.
    pub disposition: Option<Disposition>,
    /// Who decided.
    pub author: Author,
    /// When it was admitted.
    pub at: UnixMillis,
    /// How far it is.
    pub phase: Phase,
}

impl Decision {
    /// A decision that was terminal as it was admitted.
    pub(crate) fn recorded(fact: &DecisionRecorded, at: UnixMillis) -> Self {
        Self {
            id: fact.decision,
            run: fact.run,
            pause: fact.pause,
            attention: fact.attention.clone(),
            request: fact.request,
            capability: fact.capability,
            action: fact.action,
            disposition: fact.disposition,
            author: fact.author.clone(),
            at,
            phase: Phase::Terminal { outcome: DecisionOutcome::Completed, refusal: None },
        }
    }

    /// A decision that was admitted under a lease.
    pub(crate) fn prepared(fact: &DecisionPrepared, at: UnixMillis) -> Self {
        Self {
            id: fact.decision,
            run: fact.run,
            pause: fact.pause,
            attention: fact.attention.clone(),
            request: fact.request,
            capability: fact.capability,
            action: fact.action,
            disposition: fact.disposition,
            author: fact.author.clone(),
            at,
            phase: Phase::Prepared,
        }
    }

    /// Folds its end.
    pub(crate) fn finish(&mut self, fact: &DecisionFinished) {
        self.phase = Phase::Terminal { outcome: fact.outcome, refusal: fact.refusal };
    }
}

/// How far a decision is. Source: DESIGN §4.3.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Admitted under a lease; nothing was called.
    Prepared,
    /// The executor was about to be called.
    Started {
        /// By this process.
        holder: InstanceId,
        /// See `DecisionStarted`.
        absent_after: Deadline,
        /// Bytes promised to its outcome.
        reserve: u32,
        /// See `DecisionStarted`.
        absence_provable: bool,
    },
    /// Its holder is gone; what came of it is not known.
    Uncertain {
        /// The process that carried it out.
        holder: InstanceId,
        /// See `DecisionStarted`.
        absent_after: Deadline,
        /// Whether that process itself journalled that it gave the call up. A decision's executor only reads, so
        /// nothing can come of it any more.
        given_up: bool,
    },
    /// Ended.
    Terminal {
        /// How.
        outcome: DecisionOutcome,
        /// The code of a refusal that the live state caused.
        refusal: Option<RefusalCode>,
    },
}

impl State {
    /// Digest of the state: BLAKE3 over canonical JSON of everything but the position. Source: RULINGS 27.
    #[must_use]
    pub fn digest(&self) -> StateDigest {
        let mut value = protocol::canonical_json::value_of(self);
        if let Some(members) = value.as_object_mut() {
            members.remove("next");
        }
        StateDigest(*blake3::hash(&protocol::canonical_json::bytes_of(&value)).as_bytes())
    }

    /// Bytes promised to outcomes of work in flight. Source: RULINGS 7.
    #[must_use]
    pub fn reserved_bytes(&self) -> u64 {
        self.runs.values().map(Run::reserved_bytes).sum()
    }

    /// Processes whose life or death decides something here: holders of leases, of crossings and of decisions under
    /// way or uncertain, and those that asked a holder to stand down. `Context::alive` answers for each of them.
    #[must_use]
    pub fn watched(&self) -> BTreeSet<InstanceId> {
        self.runs.values().flat_map(Run::watched).collect()
    }

    /// The open pause of this name, with its run.
    #[must_use]
    pub fn pause(&self, attention: &AttentionId) -> Option<(&Run, &Pause)> {
        let run = self.runs.get(self.attention.get(attention)?)?;
        run.pause.as_ref().map(|pause| (run, pause))
    }
}

impl Run {
    /// Its id.
    #[must_use]
    pub const fn id(&self) -> RunId {
        self.admitted.run
    }

    /// Digest of the last checkpoint.
    #[must_use]
    pub fn lineage_head(&self) -> Option<Sha256Digest> {
        self.lineage.last().map(|link| link.digest)
    }

    /// Whether every step is done.
    #[must_use]
    pub fn at_end(&self) -> bool {
        self.cursor.step() >= self.admitted.steps
    }

    /// A decision that crossed and whose outcome is not recorded.
    #[must_use]
    pub fn decision_in_flight(&self) -> Option<(&IdempotencyKey, &Decision)> {
        self.decisions.iter().find(|(_, decision)| match decision.phase {
            Phase::Started { .. } => true,
            Phase::Prepared | Phase::Uncertain { .. } | Phase::Terminal { .. } => false,
        })
    }

    /// Decisions whose outcome is not known.
    pub fn uncertain_decisions(&self) -> impl Iterator<Item = (&IdempotencyKey, &Decision)> {
        self.decisions.iter().filter(|(_, decision)| match decision.phase {
            Phase::Uncertain { .. } => true,
            Phase::Prepared | Phase::Started { .. } | Phase::Terminal { .. } => false,
        })
    }

    /// Whether the step at the cursor may have been delivered, as far as the journal knows.
    #[must_use]
    pub fn delivery_state(&self) -> DeliveryState {
        if self.uncertain_decisions().next().is_some() {
            return DeliveryState::Unknown;
        }
        match self.crossing.as_ref().map(|crossing| crossing.receipt) {
            None | Some(Some(ReceiptOutcome::NotSent)) => DeliveryState::NotDelivered,
            Some(Some(ReceiptOutcome::Acted)) => DeliveryState::Delivered,
            Some(None | Some(ReceiptOutcome::Unclear)) => DeliveryState::Unknown,
        }
    }

    pub(crate) fn watched(&self) -> impl Iterator<Item = InstanceId> {
        let decisions = self.decisions.values().filter_map(|decision| match decision.phase {
            Phase::Started { holder, .. } | Phase::Uncertain { holder, .. } => Some(holder),
            Phase::Prepared | Phase::Terminal { .. } => None,
        });
        let lease = self.lease.map(|lease| lease.holder);
        let crossing = self.crossing.as_ref().map(|crossing| crossing.holder);
        lease.into_iter().chain(crossing).chain(self.stand_down).chain(decisions)
    }

    fn reserved_bytes(&self) -> u64 {
        let crossing = match (&self.crossing, &self.pause) {
            (Some(crossing), None) => u64::from(crossing.reserve),
            (Some(_) | None, Some(_)) | (None, None) => 0,
        };
        let decisions: u64 = self
            .decisions
            .values()
            .map(|decision| match decision.phase {
                Phase::Started { reserve, .. } => u64::from(reserve),
                Phase::Prepared | Phase::Uncertain { .. } | Phase::Terminal { .. } => 0,
            })
            .sum();
        crossing + decisions
    }
}
