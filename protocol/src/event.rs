//! Every fact that the journal may hold about runs. Kind numbers and field orders are for ever: new meaning is a new
//! kind. `EVENTS.md` beside this crate lists them; a test compares it with this file.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::bundle::{Attended, Profile};
use crate::capability::{Capability, CapabilityClaims, Transition};
use crate::cursor::{Cursor, Frame};
use crate::decision::{Action, DecidedVia, Disposition, Operator};
use crate::delivery::{DeliveryState, EffectStatus, ReceiptOutcome, Settlement};
use crate::digest::{MacDigest, Sha256Digest, StateDigest};
use crate::ids::{
    AttentionId, DecisionId, DeliveryId, IdempotencyKey, InstanceId, KeyId, LeaseToken, PauseId, RequestId,
    RunId, Seq, StepId, WorkflowId,
};
use crate::outcome::{RecordChanged, RunOutcome};
use crate::pause::{Category, IdentityStatus, Reason, Resolution};
use crate::refusal::RefusalCode;
use crate::time::{Deadline, Millis, UnixMillis};
use crate::vocabulary::{Described, Description, codes, record};

record!(
    /// What the machine must know of a step; a projection of the bundle without any protected text.
    StepFacts {
        /// Index in the workflow, from 0.
        index: u32,
        /// Name.
        id: StepId,
        /// Who does it.
        attended: Attended,
        /// Whether the step acts on the outside world.
        acts: bool,
        /// Whether its effect matters to the business.
        consequential: bool,
        /// Whether its guard says `on_unmet: skip`.
        skippable: bool,
        /// Postconditions that can be read again at any time.
        postconditions: u32,
        /// Postconditions that compare with the state before the step.
        relative: u32,
        /// Effects that an independent read verifies.
        effects: u32,
        /// Effects that only a person can attest.
        attested: u32,
        /// Whether the source record's identity must be proven.
        identity_required: bool,
        /// How long its action may take.
        limit: Millis,
    }
);

record!(
    /// Proof of the right to write: the lease's token, and until when this event renews it.
    Under {
        /// The lease.
        token: LeaseToken,
        /// Renewed until then.
        until: Deadline,
    }
);

record!(
    /// One effect as an independent read found it.
    EffectReading {
        /// Name of the effect in the bundle.
        effect: String,
        /// What the read says.
        status: EffectStatus,
        /// Salted digest of what was read.
        evidence: Option<MacDigest>,
    }
);

codes!(
    /// Who did a step that a checkpoint commits.
    CheckpointKind {
        /// The engine acted and verified.
        Engine = "engine",
        /// The engine only read.
        Read = "read",
        /// A person did it, and said so at the console; the engine verified.
        Human = "human",
        /// A reconcile found the engine's uncertain delivery to have happened.
        Reconciled = "reconciled",
        /// Skipped because its guard does not hold.
        Skipped = "skipped",
        /// It was done outside the engine, and nothing proves that a person did it; the engine verified.
        Outside = "outside",
    }
);

codes!(
    /// How a decision ended.
    DecisionOutcome {
        /// Admitted and done.
        Completed = "completed",
        /// Admitted; the run halted.
        Halted = "halted",
        /// Admitted, then refused by what the live state showed; nothing acted and the pause is open.
        Refused = "refused",
        /// A reconcile proved that nothing was delivered under it; the pause is open again.
        NotDelivered = "not_delivered",
    }
);

record!(
    /// An operator, as seen by the surface that passed the request on.
    Author {
        /// Effective OS account.
        operator: Operator,
        /// Surface.
        via: DecidedVia,
    }
);

record!(
    /// A run exists; nothing was done yet.
    RunAdmitted {
        /// Its id.
        run: RunId,
        /// Its workflow.
        workflow: WorkflowId,
        /// Its bundle version.
        bundle: Sha256Digest,
        /// Its profile.
        profile: Profile,
        /// Salted digest of its bound parameters.
        parameters: MacDigest,
        /// Digest of the policy and deployment in force.
        policy: Sha256Digest,
        /// Steps in the workflow.
        steps: u32,
        /// Effects declared by all steps together.
        effects: u32,
        /// Time after a delivery's limit in which a late effect may still appear.
        settle: Millis,
        /// The caller's name for the request.
        request: Option<RequestId>,
        /// Salted digest of the whole request.
        request_digest: MacDigest,
        /// Who started it.
        author: Author,
    }
);

record!(
    /// A process owns the run. The token is this record's sequence.
    LeaseGranted {
        /// The run.
        run: RunId,
        /// The owner.
        holder: InstanceId,
        /// Until when, unless renewed.
        until: Deadline,
    }
);

record!(
    /// The owner gave the run back.
    LeaseReleased {
        /// The run.
        run: RunId,
        /// The lease.
        token: LeaseToken,
    }
);

record!(
    /// The delivery boundary of a step is about to be crossed.
    StepIntent {
        /// The run.
        run: RunId,
        /// The step.
        step: StepFacts,
        /// Exact place.
        cursor: Cursor,
        /// This crossing.
        delivery: DeliveryId,
        /// Salted digest of the bound action.
        action: MacDigest,
        /// After this, and when no executor can still act, an absent effect is proven absent.
        absent_after: Deadline,
        /// Bytes promised to the records of its outcome.
        reserve: u32,
        /// The writer's right.
        under: Under,
    }
);

record!(
    /// The executor's call returned.
    StepReceipt {
        /// The run.
        run: RunId,
        /// The crossing.
        delivery: DeliveryId,
        /// What the executor says.
        outcome: ReceiptOutcome,
        /// Salted digest of what it saw.
        evidence: Option<MacDigest>,
        /// The writer's right.
        under: Under,
    }
);

record!(
    /// A verified step. Checkpoints form a lineage.
    Checkpoint {
        /// The run.
        run: RunId,
        /// The step.
        step: StepFacts,
        /// Exact place.
        cursor: Cursor,
        /// Who did it.
        kind: CheckpointKind,
        /// Digest of the checkpoint before, none for the first.
        parent: Option<Sha256Digest>,
        /// Bundle version.
        bundle: Sha256Digest,
        /// Salted digest of the bound parameters.
        parameters: MacDigest,
        /// Its effects as read.
        effects: Vec<EffectReading>,
        /// Whether the identity was proven.
        identity_status: IdentityStatus,
        /// Salted digest of the identity as captured; at the halt, for a human-completed step.
        identity: Option<MacDigest>,
        /// The crossing it confirms, if the engine acted.
        delivery: Option<DeliveryId>,
        /// Whether the engine crossed the delivery boundary for this step.
        delivery_attempted: bool,
        /// The decision behind it, if there is one.
        decision: Option<DecisionId>,
        /// The writer's right.
        under: Under,
    }
);

record!(
    /// The run waits for a person, durably, at an exact place.
    PauseOpened {
        /// The run.
        run: RunId,
        /// The pause.
        pause: PauseId,
        /// Its name towards agents.
        attention: AttentionId,
        /// The step.
        step: StepFacts,
        /// Exact place.
        cursor: Cursor,
        /// Why.
        category: Category,
        /// The closed reason.
        reason: Reason,
        /// Whether the step's delivery may have happened.
        delivery: DeliveryState,
        /// The last crossing of this step, if there was one.
        last_delivery: Option<DeliveryId>,
        /// Digest of the last checkpoint.
        lineage_head: Option<Sha256Digest>,
        /// Salted digests of what was seen.
        evidence: Vec<MacDigest>,
        /// Whether the identity is proven.
        identity_status: IdentityStatus,
        /// Salted digest of the identity captured here.
        identity: Option<MacDigest>,
        /// Whether the state before the step was captured, for relative postconditions.
        baseline: bool,
        /// When the pause expires.
        expires: Deadline,
    }
);

record!(
    /// The pause's current capability; an earlier one is retired.
    CapabilityIssued {
        /// The run.
        run: RunId,
        /// The capability.
        capability: Box<Capability>,
    }
);

record!(
    /// The pause expired. Final.
    PauseExpired {
        /// The run.
        run: RunId,
        /// The pause.
        pause: PauseId,
    }
);

record!(
    /// The pause ended.
    PauseClosed {
        /// The run.
        run: RunId,
        /// The pause.
        pause: PauseId,
        /// How.
        resolution: Resolution,
        /// Who asked for it.
        author: Author,
    }
);

record!(
    /// A decision that is terminal as it is admitted: teach, escalate or reject.
    DecisionRecorded {
        /// The decision.
        decision: DecisionId,
        /// The run.
        run: RunId,
        /// The pause.
        pause: PauseId,
        /// The pause's name towards agents.
        attention: AttentionId,
        /// The caller's key.
        key: IdempotencyKey,
        /// Digest of the whole request.
        request: Sha256Digest,
        /// The capability that was presented.
        capability: Sha256Digest,
        /// The action.
        action: Action,
        /// The disposition as given.
        disposition: Option<Disposition>,
        /// Who decided.
        author: Author,
    }
);

record!(
    /// A decision that needs the live state was admitted under the lease.
    DecisionPrepared {
        /// The decision.
        decision: DecisionId,
        /// The run.
        run: RunId,
        /// The pause.
        pause: PauseId,
        /// The pause's name towards agents.
        attention: AttentionId,
        /// The caller's key.
        key: IdempotencyKey,
        /// Digest of the whole request.
        request: Sha256Digest,
        /// The capability that was presented.
        capability: Sha256Digest,
        /// The action.
        action: Action,
        /// The disposition as given.
        disposition: Option<Disposition>,
        /// Who decided.
        author: Author,
        /// The writer's right.
        under: Under,
    }
);

record!(
    /// The executor is about to be called for a decision.
    DecisionStarted {
        /// The decision.
        decision: DecisionId,
        /// The run.
        run: RunId,
        /// After this, and when no executor can still act, it is proven that nothing was delivered under it.
        absent_after: Deadline,
        /// Bytes promised to the records of its outcome.
        reserve: u32,
        /// The writer's right.
        under: Under,
        /// Whether nothing uncertain on this run could still act as it began. Only then does what it reads prove
        /// an absence: an earlier read may have been overtaken by a late effect.
        absence_provable: bool,
    }
);

record!(
    /// A decision ended.
    DecisionFinished {
        /// The decision.
        decision: DecisionId,
        /// The run.
        run: RunId,
        /// Its key.
        key: IdempotencyKey,
        /// How it ended.
        outcome: DecisionOutcome,
        /// The code of a refusal that the live state caused.
        refusal: Option<RefusalCode>,
        /// The reconcile that settled it, if it was another decision.
        settled_by: Option<DecisionId>,
    }
);

record!(
    /// A delivery or decision crossed the boundary, and its holder is gone or was overtaken.
    DeliveryUncertain {
        /// The run.
        run: RunId,
        /// The step's crossing, if the engine was acting.
        delivery: Option<DeliveryId>,
        /// The decision, if one was being carried out.
        decision: Option<DecisionId>,
        /// The process that held the lease.
        holder: InstanceId,
        /// Why.
        reason: Reason,
    }
);

record!(
    /// An uncertain delivery was settled by reading.
    DeliverySettled {
        /// The run.
        run: RunId,
        /// The step's crossing, if the engine had acted.
        delivery: Option<DeliveryId>,
        /// What was proven.
        settlement: Settlement,
        /// The reconcile.
        decision: DecisionId,
        /// The effects as read.
        effects: Vec<EffectReading>,
    }
);

record!(
    /// An operator asked for the run to end before its next delivery.
    CancelRequested {
        /// The run.
        run: RunId,
        /// Who.
        author: Author,
    }
);

record!(
    /// An operator's reject asks the lease's holder to stand down. Void when the asking process is gone.
    StandDownRequested {
        /// The run.
        run: RunId,
        /// The asking process.
        by: InstanceId,
    }
);

record!(
    /// The run ended.
    RunFinished {
        /// The run.
        run: RunId,
        /// What became of it.
        outcome: RunOutcome,
        /// Why it ended here.
        reason: Reason,
        /// Whether a record changed.
        changed: RecordChanged,
        /// Effects confirmed.
        confirmed: u32,
    }
);

record!(
    /// A refusal, without the offending values.
    RefusalRecorded {
        /// Its code.
        code: RefusalCode,
        /// The run, where one was found.
        run: Option<RunId>,
        /// The pause, where one was found.
        pause: Option<PauseId>,
        /// The action that was asked for.
        action: Option<Action>,
        /// Who asked.
        author: Option<Author>,
    }
);

record!(
    /// Refusals of malformed or unknown requests, at most one record a minute.
    RefusalsCounted {
        /// How many.
        count: u64,
        /// The first of them.
        since: UnixMillis,
    }
);

record!(
    /// The machine's state after a record.
    StateRecorded {
        /// The last record that is folded in.
        through: Seq,
        /// Digest of the state.
        digest: StateDigest,
        /// SHA-256 of the snapshot file, where one was written and synced before this record.
        snapshot: Option<Sha256Digest>,
    }
);

record!(
    /// A capability key exists; from now on its absence is an error.
    KeyRegistered {
        /// Its id.
        key: KeyId,
    }
);

/// A record's payload, decoded by whatever codec the journal has.
pub trait PayloadSource {
    /// The codec's error.
    type Error;

    /// Decodes the whole payload as a `T`.
    ///
    /// # Errors
    /// Those of the codec; bytes left over are one.
    fn decode<T: serde::de::DeserializeOwned>(self) -> Result<T, Self::Error>;
}

macro_rules! events {
    ($( $number:literal $text:literal $name:ident ),+ $(,)?) => {
        /// One fact.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "event", rename_all = "snake_case")]
        pub enum Event {
            $(
                #[doc = concat!("Kind ", stringify!($number), ", `", $text, "`.")]
                #[serde(rename = $text)]
                $name($name)
            ),+
        }

        $(
            impl From<$name> for Event {
                fn from(fact: $name) -> Self {
                    Self::$name(fact)
                }
            }
        )+

        impl Event {
            /// Kind number and name of every event, in order.
            pub const KINDS: &'static [(u16, &'static str)] = &[$(($number, $text)),+];

            /// Stable kind number of the record.
            #[must_use]
            pub const fn kind(&self) -> u16 {
                match self { $( Self::$name(_) => $number ),+ }
            }

            /// Stable name of the kind.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $( Self::$name(_) => $text ),+ }
            }

            /// Serialises the payload, without the kind, with whatever codec `serializer` is.
            ///
            /// # Errors
            /// Those of the codec.
            pub fn serialize_payload<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $( Self::$name(fact) => fact.serialize(serializer) ),+ }
            }

            /// Reads the payload of a record of this kind; `None` when the kind is unknown.
            ///
            /// # Errors
            /// Those of the codec.
            pub fn decode_payload<P: PayloadSource>(kind: u16, payload: P) -> Result<Option<Self>, P::Error> {
                match kind { $( $number => payload.decode::<$name>().map(|fact| Some(Self::$name(fact))), )+ _ => Ok(None) }
            }

            /// Name of the structure that each kind holds, in order.
            pub const STRUCTURES: &'static [&'static str] = &[$(stringify!($name)),+];

            /// Describes every structure and enumeration that an event can hold.
            #[must_use]
            pub fn descriptions() -> BTreeMap<&'static str, Description> {
                let mut into = BTreeMap::new();
                $( $name::describe(&mut into); )+
                describe_parts(&mut into);
                into
            }
        }
    };
}

events!(
    100 "run_admitted" RunAdmitted,
    101 "lease_granted" LeaseGranted,
    102 "lease_released" LeaseReleased,
    103 "step_intent" StepIntent,
    104 "step_receipt" StepReceipt,
    105 "checkpoint" Checkpoint,
    106 "pause_opened" PauseOpened,
    107 "capability_issued" CapabilityIssued,
    108 "pause_expired" PauseExpired,
    109 "pause_closed" PauseClosed,
    110 "decision_recorded" DecisionRecorded,
    111 "decision_prepared" DecisionPrepared,
    112 "decision_started" DecisionStarted,
    113 "decision_finished" DecisionFinished,
    114 "delivery_uncertain" DeliveryUncertain,
    115 "delivery_settled" DeliverySettled,
    116 "cancel_requested" CancelRequested,
    117 "stand_down_requested" StandDownRequested,
    118 "run_finished" RunFinished,
    119 "refusal_recorded" RefusalRecorded,
    120 "refusals_counted" RefusalsCounted,
    121 "state_recorded" StateRecorded,
    122 "key_registered" KeyRegistered,
);

/// Version of every payload above.
pub const PAYLOAD_VERSION: u8 = 1;

/// Describes what events are made of.
fn describe_parts(into: &mut BTreeMap<&'static str, Description>) {
    StepFacts::describe(into);
    Under::describe(into);
    EffectReading::describe(into);
    CheckpointKind::describe(into);
    DecisionOutcome::describe(into);
    Author::describe(into);
    Attended::describe(into);
    Profile::describe(into);
    Capability::describe(into);
    CapabilityClaims::describe(into);
    Transition::describe(into);
    Frame::describe(into);
    Action::describe(into);
    DecidedVia::describe(into);
    Disposition::describe(into);
    DeliveryState::describe(into);
    EffectStatus::describe(into);
    ReceiptOutcome::describe(into);
    Settlement::describe(into);
    RunOutcome::describe(into);
    RecordChanged::describe(into);
    Category::describe(into);
    IdentityStatus::describe(into);
    Reason::describe(into);
    Resolution::describe(into);
    RefusalCode::describe(into);
    crate::time::describe(into);
}

impl Checkpoint {
    /// Digest of the checkpoint in its lineage: over everything but the writer's right.
    #[must_use]
    pub fn digest(&self) -> Sha256Digest {
        let mut value = crate::canonical_json::value_of(self);
        if let Some(members) = value.as_object_mut() {
            members.remove("under");
        }
        crate::canonical_json::digest_of(&value)
    }
}

impl PauseOpened {
    /// Digest of what the pause found; bound by its capability.
    #[must_use]
    pub fn digest(&self) -> Sha256Digest {
        crate::canonical_json::digest_of(self)
    }
}

/// An event at its place in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Position.
    pub seq: Seq,
    /// Producer's wall clock.
    pub time: UnixMillis,
    /// Producing process.
    pub producer: InstanceId,
    /// The fact.
    #[serde(flatten)]
    pub event: Event,
}
