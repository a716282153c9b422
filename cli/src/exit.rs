//! Every exit code, in one table (RULINGS 36), and what leads to each. README quotes the table; a test compares.

use std::process::ExitCode;

use protocol::outcome::{AgentOutcome, RunOutcome};
use protocol::projection::RunView;
use protocol::refusal::RefusalCode;
use serde::Serialize;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// Verified success; for a command that only looks or writes a file: done.
    Verified,
    /// A run ended otherwise.
    Ended,
    /// The rules refuse the request.
    Refused,
    /// A delivery may or may not have happened.
    Uncertain,
    /// A run is not at its end.
    Open,
    /// The command line or a request is malformed.
    Usage,
    /// Damage.
    Damaged,
    /// The last block is unprovable.
    CannotTell,
    /// A write that did not end.
    TornTail,
    /// Something that is needed is not there.
    Unavailable,
    /// A fault of opjournal or of the system under it.
    Internal,
    /// No room, or no place, to write.
    CannotWrite,
    /// Somebody else is at it.
    Busy,
    /// Not allowed by the system.
    Permission,
}

/// One row of [`TABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The number that the shell sees.
    pub code: u8,
    /// Its name.
    pub name: Exit,
    /// What it means.
    pub meaning: &'static str,
}

/// The table, by number.
pub const TABLE: [Row; 14] = [
    row(0, Exit::Verified, "verified success; for commands that do not run anything: done, and intact"),
    row(1, Exit::Ended, "the run halted, was rejected or canceled, or completed unverified"),
    row(2, Exit::Refused, "refused; nothing was done"),
    row(3, Exit::Uncertain, "uncertain: a delivery may have happened; reconcile it"),
    row(4, Exit::Open, "the run is paused or still running"),
    row(64, Exit::Usage, "the command line or the request is malformed"),
    row(65, Exit::Damaged, "the journal or its data is damaged"),
    row(66, Exit::CannotTell, "cannot tell: the last block is unprovable"),
    row(67, Exit::TornTail, "torn tail: a write that did not end, after everything acknowledged"),
    row(69, Exit::Unavailable, "a service, a file or a journal that is needed is not there"),
    row(70, Exit::Internal, "internal fault, or the journal stopped after a failed write"),
    row(73, Exit::CannotWrite, "cannot write: the disk is full or the place unfit"),
    row(75, Exit::Busy, "busy: another process is working on it; try again"),
    row(77, Exit::Permission, "permission denied"),
];

const fn row(code: u8, name: Exit, meaning: &'static str) -> Row {
    Row { code, name, meaning }
}

impl Exit {
    /// The number that the shell sees.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Verified => 0,
            Self::Ended => 1,
            Self::Refused => 2,
            Self::Uncertain => 3,
            Self::Open => 4,
            Self::Usage => 64,
            Self::Damaged => 65,
            Self::CannotTell => 66,
            Self::TornTail => 67,
            Self::Unavailable => 69,
            Self::Internal => 70,
            Self::CannotWrite => 73,
            Self::Busy => 75,
            Self::Permission => 77,
        }
    }

    /// What a refusal means to the shell.
    pub(crate) const fn of_refusal(code: RefusalCode) -> Self {
        match code {
            RefusalCode::InvalidRequest => Self::Usage,
            RefusalCode::DeliveryUncertain => Self::Uncertain,
            RefusalCode::RunPaused => Self::Open,
            RefusalCode::Busy
            | RefusalCode::JournalBusy
            | RefusalCode::Fenced
            | RefusalCode::LeaseExpired
            | RefusalCode::StandDown => Self::Busy,
            RefusalCode::ExecutorMissing | RefusalCode::KeyMissing => Self::Unavailable,
            RefusalCode::DiskFull => Self::CannotWrite,
            RefusalCode::Poisoned => Self::Internal,
            RefusalCode::IdempotencyConflict
            | RefusalCode::UnknownAttention
            | RefusalCode::RunRejected
            | RefusalCode::StaleCapability
            | RefusalCode::CapabilityInvalid
            | RefusalCode::ActionNotAllowed
            | RefusalCode::PauseExpired
            | RefusalCode::BundleMismatch
            | RefusalCode::StateDiverged
            | RefusalCode::NotVerified
            | RefusalCode::GuardHolds
            | RefusalCode::UnknownRun
            | RefusalCode::RunFinished
            | RefusalCode::WrongPhase
            | RefusalCode::RequestIdConflict
            | RefusalCode::InvalidParameters
            | RefusalCode::InvalidBundle
            | RefusalCode::NotAdmitted
            | RefusalCode::EvidenceMissing => Self::Refused,
        }
    }

    /// What a run's end means to the shell.
    pub(crate) const fn of_outcome(outcome: RunOutcome) -> Self {
        match outcome {
            RunOutcome::Verified => Self::Verified,
            RunOutcome::ReconciliationRequired => Self::Uncertain,
            RunOutcome::FailedPlatform => Self::Internal,
            RunOutcome::RolledBack
            | RunOutcome::CompletedUnverified
            | RunOutcome::RejectedPolicy
            | RunOutcome::RejectedByOperator
            | RunOutcome::Canceled
            | RunOutcome::HaltedBeforeEffect
            | RunOutcome::Halted => Self::Ended,
        }
    }

    /// What a run as it stands means to the shell.
    pub(crate) const fn of_run(run: &RunView) -> Self {
        match run.execution_outcome {
            Some(outcome) => Self::of_outcome(outcome),
            None => match run.outcome {
                AgentOutcome::NotSureIfSaved => Self::Uncertain,
                AgentOutcome::Done
                | AgentOutcome::NeedsReview
                | AgentOutcome::DidNotRun
                | AgentOutcome::Running => Self::Open,
            },
        }
    }

    /// What an error of the system means to the shell.
    pub(crate) fn of_io(kind: std::io::ErrorKind) -> Self {
        use std::io::ErrorKind;
        if matches!(kind, ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) {
            Self::Permission
        } else if matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
        {
            Self::CannotWrite
        } else if matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory) {
            Self::Unavailable
        } else {
            // The library's enumeration grows; what it grows by is a fault of the system.
            Self::Internal
        }
    }

    /// Of two runs, the one that the shell should hear of: the one that needs somebody most.
    pub(crate) fn worst(self, other: Self) -> Self {
        const ORDER: [Exit; 14] = [
            Exit::Damaged,
            Exit::Internal,
            Exit::CannotWrite,
            Exit::Permission,
            Exit::CannotTell,
            Exit::TornTail,
            Exit::Uncertain,
            Exit::Usage,
            Exit::Unavailable,
            Exit::Busy,
            Exit::Refused,
            Exit::Open,
            Exit::Ended,
            Exit::Verified,
        ];
        ORDER.into_iter().find(|exit| *exit == self || *exit == other).unwrap_or(self)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_each_exit_once_in_ascending_order_under_its_own_number() {
        for pair in TABLE.windows(2) {
            assert!(pair[0].code < pair[1].code, "{pair:?}");
        }
        for row in TABLE {
            assert_eq!(row.code, row.name.code(), "{row:?}");
            assert_eq!(row.name.worst(row.name), row.name, "{row:?} is not in the order");
        }
    }

    #[test]
    fn only_a_verified_run_is_success_and_no_refusal_is() {
        for outcome in RunOutcome::ALL {
            let success = *outcome == RunOutcome::Verified;
            assert_eq!(Exit::of_outcome(*outcome) == Exit::Verified, success, "{outcome}");
        }
        for code in RefusalCode::ALL {
            assert!(Exit::of_refusal(*code).code() >= 2, "{code}");
        }
    }

    #[test]
    fn exit_codes_of_refusals_and_outcomes_are_these() {
        for (code, want) in [
            (RefusalCode::InvalidRequest, 64),
            (RefusalCode::IdempotencyConflict, 2),
            (RefusalCode::Busy, 75),
            (RefusalCode::DeliveryUncertain, 3),
            (RefusalCode::StaleCapability, 2),
            (RefusalCode::ExecutorMissing, 69),
            (RefusalCode::DiskFull, 73),
            (RefusalCode::Poisoned, 70),
            (RefusalCode::RunPaused, 4),
        ] {
            assert_eq!(Exit::of_refusal(code).code(), want, "{code}");
        }
        for (outcome, want) in [
            (RunOutcome::Verified, 0),
            (RunOutcome::CompletedUnverified, 1),
            (RunOutcome::RejectedByOperator, 1),
            (RunOutcome::Canceled, 1),
            (RunOutcome::ReconciliationRequired, 3),
        ] {
            assert_eq!(Exit::of_outcome(outcome).code(), want, "{outcome}");
        }
    }

    #[test]
    fn of_several_runs_the_one_that_needs_somebody_most_is_told() {
        assert_eq!(Exit::Verified.worst(Exit::Open), Exit::Open);
        assert_eq!(Exit::Open.worst(Exit::Uncertain), Exit::Uncertain);
        assert_eq!(Exit::Ended.worst(Exit::Verified), Exit::Ended);
    }
}
