//! What became of a run, and what each layer says of it. One table: outcome → run state → agent's outcome; the exit
//! code stands in the command line's table, keyed by [`RunOutcome`]. Source: RULINGS 2.

use crate::vocabulary::codes;

codes!(
    /// What became of a run. Only [`RunOutcome::Verified`] is success, in every layer and wording.
    RunOutcome {
        /// A delivery is unresolved, or a consequential step is neither confirmed nor proven absent.
        ReconciliationRequired = "RECONCILIATION_REQUIRED",
        /// The end was reached and every declared effect, at least one, is confirmed.
        Verified = "VERIFIED",
        /// Every effect made was undone and read as absent.
        RolledBack = "ROLLED_BACK",
        /// The end was reached; not every declared effect is confirmed, or none is declared.
        CompletedUnverified = "COMPLETED_UNVERIFIED",
        /// A policy ended it.
        RejectedPolicy = "REJECTED_POLICY",
        /// An operator ended it.
        RejectedByOperator = "REJECTED_BY_OPERATOR",
        /// It was canceled before its next delivery.
        Canceled = "CANCELED",
        /// The platform under it failed.
        FailedPlatform = "FAILED_PLATFORM",
        /// It stopped, and no effect was made.
        HaltedBeforeEffect = "HALTED_BEFORE_EFFECT",
        /// It stopped.
        Halted = "HALTED",
    }
);

codes!(
    /// Where a run stands.
    RunState {
        /// Recorded, no step begun.
        Admitted = "admitted",
        /// On its way.
        Running = "running",
        /// Waits for a person.
        Paused = "paused",
        /// Ended at its end.
        Completed = "completed",
        /// Ended before its end.
        Halted = "halted",
        /// Ended by an operator or a policy.
        Rejected = "rejected",
        /// Ended by a failure under it.
        Failed = "failed",
    }
);

codes!(
    /// What an agent is told. Source: attended-contract §8.
    AgentOutcome {
        /// Verified success.
        Done = "done",
        /// A person should look.
        NeedsReview = "needs_review",
        /// A write may have happened.
        NotSureIfSaved = "not_sure_if_saved",
        /// Nothing was written.
        DidNotRun = "did_not_run",
        /// Still going.
        Running = "running",
    }
);

codes!(
    /// Whether the run changed a record in the outside world, told apart from the outcome.
    RecordChanged {
        /// An independent read says so.
        Yes = "yes",
        /// The journal proves that nothing was written.
        No = "no",
        /// Neither is proven.
        Unknown = "unknown",
    }
);

impl RunOutcome {
    /// The run's final state.
    #[must_use]
    pub const fn state(self) -> RunState {
        match self {
            Self::Verified | Self::CompletedUnverified => RunState::Completed,
            Self::RejectedPolicy | Self::RejectedByOperator => RunState::Rejected,
            Self::FailedPlatform => RunState::Failed,
            Self::ReconciliationRequired
            | Self::RolledBack
            | Self::Canceled
            | Self::HaltedBeforeEffect
            | Self::Halted => RunState::Halted,
        }
    }

    /// What an agent is told.
    #[must_use]
    pub const fn agent(self, changed: RecordChanged) -> AgentOutcome {
        match self {
            Self::Verified => AgentOutcome::Done,
            Self::ReconciliationRequired => AgentOutcome::NotSureIfSaved,
            Self::HaltedBeforeEffect => AgentOutcome::DidNotRun,
            Self::RolledBack | Self::CompletedUnverified => AgentOutcome::NeedsReview,
            Self::RejectedPolicy
            | Self::RejectedByOperator
            | Self::Canceled
            | Self::FailedPlatform
            | Self::Halted => match changed {
                RecordChanged::No => AgentOutcome::DidNotRun,
                RecordChanged::Yes | RecordChanged::Unknown => AgentOutcome::NeedsReview,
            },
        }
    }
}
