//! What became of a run, derived from evidence in one order. Source: RULINGS 2.

use protocol::delivery::{DeliveryState, EffectStatus};
use protocol::event::{CheckpointKind, LeaseReleased, RunFinished};
use protocol::outcome::{RecordChanged, RunOutcome};
use protocol::pause::Reason;

use super::state::Run;
use super::work::Work;

/// Why a run ends here, as far as the order of outcomes asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The cursor reached the end.
    End,
    /// A policy ended it.
    Policy,
    /// An operator rejected it.
    Rejected,
    /// It was canceled.
    Canceled,
    /// The platform under it failed.
    Platform,
    /// It stopped.
    Halt,
}

/// What the journal proves of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// A delivery or decision is uncertain and not settled.
    pub uncertain: bool,
    /// The cursor reached the end.
    pub at_end: bool,
    /// Effects declared.
    pub declared: u32,
    /// Effects confirmed.
    pub confirmed: u32,
    /// Every effect made was undone and read as absent, and at least one was made.
    pub rolled_back: bool,
    /// A consequential step that the engine acted on is neither confirmed nor proven absent. A delivery that was not
    /// attempted is proven absent by that.
    pub consequential_open: bool,
    /// Some effect was made, or may have been.
    pub made: bool,
}

/// The outcome: the first of RULINGS 2's order that holds.
#[must_use]
pub const fn derive(evidence: Evidence, ending: Ending) -> RunOutcome {
    if evidence.uncertain {
        return RunOutcome::ReconciliationRequired;
    }
    if evidence.at_end && evidence.declared > 0 && evidence.confirmed == evidence.declared {
        return RunOutcome::Verified;
    }
    if evidence.rolled_back {
        return RunOutcome::RolledBack;
    }
    if evidence.at_end {
        return RunOutcome::CompletedUnverified;
    }
    if evidence.consequential_open {
        return RunOutcome::ReconciliationRequired;
    }
    match ending {
        Ending::Policy => RunOutcome::RejectedPolicy,
        Ending::Rejected => RunOutcome::RejectedByOperator,
        Ending::Canceled => RunOutcome::Canceled,
        Ending::Platform => RunOutcome::FailedPlatform,
        Ending::End | Ending::Halt if evidence.made => RunOutcome::Halted,
        Ending::End | Ending::Halt => RunOutcome::HaltedBeforeEffect,
    }
}

/// Gathers the evidence of a run as it stands.
#[must_use]
pub fn evidence(run: &Run) -> Evidence {
    let confirmed = run
        .lineage
        .iter()
        .flat_map(|link| &link.effects)
        .filter(|(_, status)| *status == EffectStatus::Confirmed)
        .count();
    let acted = run.lineage.iter().any(|link| {
        link.delivery_attempted
            || match link.kind {
                CheckpointKind::Engine
                | CheckpointKind::Human
                | CheckpointKind::Outside
                | CheckpointKind::Reconciled => true,
                CheckpointKind::Read | CheckpointKind::Skipped => false,
            }
    });
    let unconfirmed = run.lineage.iter().any(|link| {
        link.consequential
            && link.delivery_attempted
            && !link.effects.iter().any(|(_, status)| *status == EffectStatus::Confirmed)
    });
    let state = run.delivery_state();
    Evidence {
        uncertain: state == DeliveryState::Unknown,
        at_end: run.at_end(),
        declared: run.admitted.effects,
        confirmed: u32::try_from(confirmed).unwrap_or(u32::MAX),
        rolled_back: false,
        consequential_open: unconfirmed
            || run.crossing.as_ref().is_some_and(|crossing| crossing.step.consequential)
                && state.may_have_happened(),
        made: acted || state.may_have_happened(),
    }
}

/// Whether a record changed, told apart from the outcome.
#[must_use]
pub const fn record_changed(evidence: Evidence) -> RecordChanged {
    if evidence.confirmed > 0 {
        RecordChanged::Yes
    } else if evidence.made || evidence.uncertain {
        RecordChanged::Unknown
    } else {
        RecordChanged::No
    }
}

/// Ends the run here and says what became of it. A lease is released with it.
pub(super) fn finish(work: &mut Work<'_, '_>, ending: Ending, reason: Reason) -> RunOutcome {
    let evidence = evidence(&work.run);
    let outcome = derive(evidence, ending);
    if let Some(lease) = work.run.lease {
        work.push(LeaseReleased { run: work.run.id(), token: lease.token });
    }
    work.push(RunFinished {
        run: work.run.id(),
        outcome,
        reason,
        changed: record_changed(evidence),
        confirmed: evidence.confirmed,
    });
    outcome
}
