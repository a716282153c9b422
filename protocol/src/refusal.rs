//! Every refusal: stable code, fixed sentence, next step. The only table of codes; MCP, CLI, docs and the journal
//! print from it. The rows of attended-contract §4 stand first, in its order.

use crate::digest::Sha256Digest;
use crate::ids::LeaseToken;
use crate::time::Millis;
use crate::vocabulary::codes;

codes!(
    /// Stable code of a refusal.
    RefusalCode {
        /// Row 1.
        InvalidRequest = "invalid_request",
        /// Row 2.
        IdempotencyConflict = "idempotency_conflict",
        /// Rows 3 and 14.
        Busy = "busy",
        /// Rows 3 and 13.
        DeliveryUncertain = "delivery_uncertain",
        /// Row 5.
        UnknownAttention = "unknown_attention",
        /// Row 6.
        RunRejected = "run_rejected",
        /// Row 7.
        StaleCapability = "stale_capability",
        /// Row 8.
        CapabilityInvalid = "capability_invalid",
        /// Row 9.
        ActionNotAllowed = "action_not_allowed",
        /// Row 10.
        PauseExpired = "pause_expired",
        /// Row 11.
        BundleMismatch = "bundle_mismatch",
        /// Row 12.
        StateDiverged = "state_diverged",
        /// Row 15.
        ExecutorMissing = "executor_missing",
        /// Row 16.
        NotVerified = "not_verified",
        /// A skip whose guard holds: the step must run.
        GuardHolds = "guard_holds",
        /// The writer's lease is no longer the current one.
        Fenced = "fenced",
        /// The writer's own lease ran out before it crossed a delivery boundary.
        LeaseExpired = "lease_expired",
        /// Another process asked this holder to stand down for a reject.
        StandDown = "stand_down",
        /// No such run.
        UnknownRun = "unknown_run",
        /// The run has ended.
        RunFinished = "run_finished",
        /// The run waits for a person.
        RunPaused = "run_paused",
        /// The run is not in the state that this step of it needs.
        WrongPhase = "wrong_phase",
        /// Same request id, other content.
        RequestIdConflict = "request_id_conflict",
        /// The outcome of work in flight could not be recorded if new work took this space.
        DiskFull = "disk_full",
        /// The journal's lock was not free in time.
        JournalBusy = "journal_busy",
        /// The writer saw a failed write or sync and accepts nothing until reopened.
        Poisoned = "poisoned",
        /// The capability key is missing although the journal says that it was made.
        KeyMissing = "key_missing",
        /// Parameters do not fit the bundle's declaration.
        InvalidParameters = "invalid_parameters",
        /// The bundle does not pass its checks.
        InvalidBundle = "invalid_bundle",
        /// The profile demands an admission that this build cannot check.
        NotAdmitted = "not_admitted",
        /// The run's parameters or salt were purged or cannot be read.
        EvidenceMissing = "evidence_missing",
    }
);

impl RefusalCode {
    /// What happened, in one fixed sentence without any value of the request.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::InvalidRequest => {
                "The request is malformed: a field is missing, unknown or not of its form."
            }
            Self::IdempotencyConflict => "This idempotency key was used before for a different request.",
            Self::Busy => "Another process is working on this run right now.",
            Self::DeliveryUncertain => {
                "An earlier action may have reached the application; its outcome is not known."
            }
            Self::UnknownAttention => "There is no open item with this id.",
            Self::RunRejected => "The run of this item was rejected and has ended.",
            Self::StaleCapability => "The item has changed since this capability was read.",
            Self::CapabilityInvalid => "The capability's signature does not verify with this home's key.",
            Self::ActionNotAllowed => "This action is not allowed on this item as it stands.",
            Self::PauseExpired => "The capability or the pause has expired.",
            Self::BundleMismatch => "The stored bundle is not the version that the run was admitted with.",
            Self::StateDiverged => {
                "The pause, lineage, cursor, parameters or policy are not what the capability was issued for."
            }
            Self::ExecutorMissing => "This process has no executor for the run.",
            Self::NotVerified => "The live state does not show what the step declares.",
            Self::GuardHolds => "The step's guard holds, so the step must run and cannot be skipped.",
            Self::Fenced => "A newer lease exists; nothing of this writer's is accepted.",
            Self::LeaseExpired => "This process's lease ran out before the action began.",
            Self::StandDown => "An operator asked this run's holder to stand down.",
            Self::UnknownRun => "There is no run with this id.",
            Self::RunFinished => "The run has ended.",
            Self::RunPaused => "The run waits for a person's decision.",
            Self::WrongPhase => "The run is not at the point that this record belongs to.",
            Self::RequestIdConflict => "This request id was used before with other inputs; nothing was run.",
            Self::DiskFull => {
                "There is not enough space left to take on new work and still record its outcome."
            }
            Self::JournalBusy => "The journal's lock was not free within the waiting time.",
            Self::Poisoned => {
                "An earlier write or sync failed; nothing is accepted until the journal is reopened."
            }
            Self::KeyMissing => "The capability key of this home is missing or unusable.",
            Self::InvalidParameters => "The parameters do not fit what the bundle declares.",
            Self::InvalidBundle => "The bundle does not pass its checks.",
            Self::NotAdmitted => {
                "This profile needs an active admission, which this version cannot check yet."
            }
            Self::EvidenceMissing => "The run's protected inputs are not in this home any more.",
        }
    }

    /// What to do next, in one fixed sentence.
    #[must_use]
    pub const fn next_step(self) -> &'static str {
        match self {
            Self::InvalidRequest => "Correct the request; see `opjournal decide --help`.",
            Self::IdempotencyConflict => {
                "Use a new key for a new request; repeat the old request unchanged to see its answer."
            }
            Self::Busy => "Wait a moment and repeat the same request with the same key.",
            Self::DeliveryUncertain => "Reconcile the item: it reads the application and never acts.",
            Self::UnknownAttention => "List the open items with `opjournal attention list`.",
            Self::RunRejected => "Nothing to do; start a new run if the work is still needed.",
            Self::StaleCapability => {
                "Read the item again with `opjournal attention show` and decide on what it shows now."
            }
            Self::CapabilityInvalid => {
                "Check that the key file is this home's, mode 0600 and 32 bytes; restore it from its backup if it is not."
            }
            Self::ActionNotAllowed => {
                "Choose one of the allowed actions that `opjournal attention show` lists."
            }
            Self::PauseExpired => {
                "Read the item again; if it has a new capability, repeat with that; if the pause itself expired, use `opjournal resume RUN`."
            }
            Self::BundleMismatch => {
                "Restore the bundle as it was admitted; `opjournal cancel RUN` ends a run of which nothing is uncertain."
            }
            Self::StateDiverged => {
                "Restore the deployment and inputs that the run was paused with; a new run would repeat what this one may have done."
            }
            Self::ExecutorMissing => {
                "Repeat the request from a process whose deployment has the executor (`--target` or `--config`)."
            }
            Self::NotVerified => "Finish the task in the application, then decide again with a new key.",
            Self::GuardHolds => "Do the step, then continue; or reject the run.",
            Self::Fenced => "Stop; the newer holder goes on with the run.",
            Self::LeaseExpired => "Acquire the run again with `opjournal resume RUN`.",
            Self::StandDown => "Stop; the operator's reject is being recorded.",
            Self::UnknownRun => "List the runs with `opjournal runs list`.",
            Self::RunFinished => "See its outcome with `opjournal runs show RUN`.",
            Self::RunPaused => "See what it waits for with `opjournal attention list`.",
            Self::WrongPhase => "Read the run again with `opjournal runs show RUN`.",
            Self::RequestIdConflict => "Use a new request id for other inputs.",
            Self::DiskFull => "Free some space on the home's disk and try again; work in flight is not lost.",
            Self::JournalBusy => {
                "Find the process that is stopped while it holds the journal's lock, and try again."
            }
            Self::Poisoned => "Check the disk, then start opjournal again: opening runs recovery.",
            Self::KeyMissing => {
                "Restore the key file from its backup; opjournal never makes a new one silently."
            }
            Self::InvalidParameters => {
                "Correct the parameters; `opjournal bundle check` lists what is declared."
            }
            Self::InvalidBundle => "Run `opjournal bundle check DIR` and mend what it lists.",
            Self::NotAdmitted => "Use profile `demo` for now.",
            Self::EvidenceMissing => {
                "Restore the home's evidence from its backup. A new run would repeat what this one may have done; look at the application first."
            }
        }
    }
}

/// Why a command was refused. Data for the caller; the text is the code's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// See [`RefusalCode::InvalidRequest`].
    InvalidRequest,
    /// See [`RefusalCode::IdempotencyConflict`].
    IdempotencyConflict,
    /// See [`RefusalCode::Busy`].
    Busy,
    /// See [`RefusalCode::DeliveryUncertain`].
    DeliveryUncertain {
        /// How long until an absent effect may be proven absent, where only time is missing.
        retry_after: Option<Millis>,
    },
    /// See [`RefusalCode::UnknownAttention`].
    UnknownAttention,
    /// See [`RefusalCode::RunRejected`].
    RunRejected,
    /// See [`RefusalCode::StaleCapability`].
    StaleCapability,
    /// See [`RefusalCode::CapabilityInvalid`].
    CapabilityInvalid,
    /// See [`RefusalCode::ActionNotAllowed`].
    ActionNotAllowed,
    /// See [`RefusalCode::PauseExpired`].
    PauseExpired {
        /// Digest of the capability that was issued instead, where the pause itself is still good.
        current: Option<Sha256Digest>,
    },
    /// See [`RefusalCode::BundleMismatch`].
    BundleMismatch,
    /// See [`RefusalCode::StateDiverged`].
    StateDiverged,
    /// See [`RefusalCode::ExecutorMissing`].
    ExecutorMissing,
    /// See [`RefusalCode::NotVerified`].
    NotVerified,
    /// See [`RefusalCode::GuardHolds`].
    GuardHolds,
    /// See [`RefusalCode::Fenced`].
    Fenced {
        /// The token that the writer presented.
        yours: LeaseToken,
        /// The token of the current lease, if there is one.
        current: Option<LeaseToken>,
    },
    /// See [`RefusalCode::LeaseExpired`].
    LeaseExpired,
    /// See [`RefusalCode::StandDown`].
    StandDown,
    /// See [`RefusalCode::UnknownRun`].
    UnknownRun,
    /// See [`RefusalCode::RunFinished`].
    RunFinished,
    /// See [`RefusalCode::RunPaused`].
    RunPaused,
    /// See [`RefusalCode::WrongPhase`].
    WrongPhase,
    /// See [`RefusalCode::RequestIdConflict`].
    RequestIdConflict,
    /// See [`RefusalCode::DiskFull`].
    DiskFull,
    /// See [`RefusalCode::JournalBusy`].
    JournalBusy,
    /// See [`RefusalCode::Poisoned`].
    Poisoned,
    /// See [`RefusalCode::KeyMissing`].
    KeyMissing,
    /// See [`RefusalCode::InvalidParameters`].
    InvalidParameters,
    /// See [`RefusalCode::InvalidBundle`].
    InvalidBundle,
    /// See [`RefusalCode::NotAdmitted`].
    NotAdmitted,
    /// See [`RefusalCode::EvidenceMissing`].
    EvidenceMissing,
}

impl Refusal {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> RefusalCode {
        match self {
            Self::InvalidRequest => RefusalCode::InvalidRequest,
            Self::IdempotencyConflict => RefusalCode::IdempotencyConflict,
            Self::Busy => RefusalCode::Busy,
            Self::DeliveryUncertain { .. } => RefusalCode::DeliveryUncertain,
            Self::UnknownAttention => RefusalCode::UnknownAttention,
            Self::RunRejected => RefusalCode::RunRejected,
            Self::StaleCapability => RefusalCode::StaleCapability,
            Self::CapabilityInvalid => RefusalCode::CapabilityInvalid,
            Self::ActionNotAllowed => RefusalCode::ActionNotAllowed,
            Self::PauseExpired { .. } => RefusalCode::PauseExpired,
            Self::BundleMismatch => RefusalCode::BundleMismatch,
            Self::StateDiverged => RefusalCode::StateDiverged,
            Self::ExecutorMissing => RefusalCode::ExecutorMissing,
            Self::NotVerified => RefusalCode::NotVerified,
            Self::GuardHolds => RefusalCode::GuardHolds,
            Self::Fenced { .. } => RefusalCode::Fenced,
            Self::LeaseExpired => RefusalCode::LeaseExpired,
            Self::StandDown => RefusalCode::StandDown,
            Self::UnknownRun => RefusalCode::UnknownRun,
            Self::RunFinished => RefusalCode::RunFinished,
            Self::RunPaused => RefusalCode::RunPaused,
            Self::WrongPhase => RefusalCode::WrongPhase,
            Self::RequestIdConflict => RefusalCode::RequestIdConflict,
            Self::DiskFull => RefusalCode::DiskFull,
            Self::JournalBusy => RefusalCode::JournalBusy,
            Self::Poisoned => RefusalCode::Poisoned,
            Self::KeyMissing => RefusalCode::KeyMissing,
            Self::InvalidParameters => RefusalCode::InvalidParameters,
            Self::InvalidBundle => RefusalCode::InvalidBundle,
            Self::NotAdmitted => RefusalCode::NotAdmitted,
            Self::EvidenceMissing => RefusalCode::EvidenceMissing,
        }
    }
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let code = self.code();
        write!(f, "{code}: {} {}", code.sentence(), code.next_step())
    }
}

impl core::error::Error for Refusal {}
