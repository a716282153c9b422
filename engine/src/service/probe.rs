//! Reads of the live state for one step: guard, identity, postconditions, effects, and what earlier steps left behind.
//! Nothing here acts, and nothing here writes to the journal.

use std::time::Duration;

use protocol::bundle::{Check, EffectSpec, Step};
use protocol::command::{Finding, LiveFinding, Verified};
use protocol::decision::Action;
use protocol::delivery::EffectStatus;
use protocol::digest::MacDigest;
use protocol::event::{CheckpointKind, EffectReading};
use protocol::pause::{Category, IdentityStatus, Reason};
use protocol::refusal::Refusal;
use protocol::time::Millis;

use crate::machine::{Run, lineage};

use super::executor::{CallError, ExecutorThread};
use super::home::Home;
use super::inputs::Inputs;
use super::ports::{BoundCheck, Clock, Reading, Verdict};

/// Between two reads of an effect that may still appear.
const POLL: Duration = Duration::from_millis(50);

/// Reads for one run.
pub(super) struct Probe<'a> {
    pub(super) executors: &'a ExecutorThread,
    pub(super) inputs: &'a Inputs,
    pub(super) home: &'a Home,
    pub(super) clock: &'a dyn Clock,
    pub(super) run: &'a Run,
}

/// Why a read has no verdict at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProbeError {
    /// The arguments do not bind.
    Refused(Refusal),
    /// The executor was begun and did not come back.
    Lost,
}

/// The identity of the source record, as read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub(super) status: IdentityStatus,
    pub(super) digest: Option<MacDigest>,
}

/// What a guard says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    Holds,
    Unmet,
    Unreadable,
}

impl Probe<'_> {
    fn check(&self, check: &Check, baseline: Option<Vec<u8>>) -> Result<Reading, ProbeError> {
        let args = self.inputs.bind(&check.args, None).map_err(ProbeError::Refused)?;
        let bound = BoundCheck {
            args,
            time_limit: Duration::from_millis(check.limit.0),
            baseline,
            relative: check.relative,
        };
        match self.executors.check(&check.executor, bound) {
            Ok(reading) => Ok(reading),
            Err(CallError::NotBegun) => Ok(Reading { verdict: Verdict::Unreadable, seen: None }),
            Err(CallError::Lost | CallError::Failed) => Err(ProbeError::Lost),
        }
    }

    /// Reads the guard; a step without one may run.
    pub(super) fn guard(&self, step: &Step) -> Result<Guard, ProbeError> {
        let Some(guard) = &step.guard else { return Ok(Guard::Holds) };
        Ok(match self.check(&guard.check, None)?.verdict {
            Verdict::Holds => Guard::Holds,
            Verdict::Fails | Verdict::Absent => Guard::Unmet,
            Verdict::Unreadable => Guard::Unreadable,
        })
    }

    /// Reads the identity that the step demands.
    pub(super) fn identity(&self, step: &Step) -> Result<Identity, ProbeError> {
        let Some(check) = &step.identity else {
            return Ok(Identity { status: IdentityStatus::NotRequired, digest: None });
        };
        let reading = self.check(check, None)?;
        let status = match reading.verdict {
            Verdict::Holds => IdentityStatus::Verified,
            Verdict::Fails | Verdict::Absent => IdentityStatus::Mismatch,
            Verdict::Unreadable => IdentityStatus::Unverified,
        };
        Ok(Identity { status, digest: reading.seen.map(|seen| self.inputs.digest(&seen)) })
    }

    /// Captures the state before the step for its relative postconditions and keeps it as evidence. True when every
    /// one of them has a baseline, or there is none to need it.
    pub(super) fn capture_baseline(&self, step: &Step, index: u32) -> Result<bool, ProbeError> {
        let mut usable = true;
        for (number, check) in step.expect.iter().enumerate().filter(|(_, check)| check.relative) {
            let seen = self.check(check, None)?.seen;
            let stored = seen
                .is_some_and(|seen| self.home.store_baseline(self.run.id(), index, number, &seen).is_ok());
            usable &= stored;
        }
        Ok(usable)
    }

    /// The first postcondition that does not hold, as a finding.
    pub(super) fn postconditions(
        &self,
        step: &Step,
        index: u32,
    ) -> Result<Option<(Category, Reason)>, ProbeError> {
        for (number, check) in step.expect.iter().enumerate() {
            let baseline =
                if check.relative { self.home.baseline(self.run.id(), index, number).ok() } else { None };
            match self.check(check, baseline)?.verdict {
                Verdict::Holds => {}
                Verdict::Fails | Verdict::Absent => {
                    return Ok(Some((Category::Postcondition, Reason::PostconditionFailed)));
                }
                Verdict::Unreadable => return Ok(Some((Category::Postcondition, Reason::Unreadable))),
            }
        }
        Ok(None)
    }

    /// Reads every effect of the step, again and again for at most `patience` while some are not there yet.
    pub(super) fn effects(&self, step: &Step, patience: Millis) -> Result<Vec<EffectReading>, ProbeError> {
        let begun = self.clock.now();
        let deadline = begun.after(patience);
        loop {
            let readings = step
                .effects
                .iter()
                .filter_map(|effect| effect.verifier().map(|check| (effect.id.as_str(), check)))
                .map(|(name, check)| self.effect(name, check))
                .collect::<Result<Vec<_>, _>>()?;
            let settled = readings.iter().all(|reading| match reading.status {
                EffectStatus::Confirmed | EffectStatus::Refuted => true,
                EffectStatus::Absent | EffectStatus::Indeterminate | EffectStatus::Unverifiable => false,
            });
            if settled || deadline.has_passed(&self.clock.now(), begun.wall) {
                return Ok(readings);
            }
            self.clock.sleep(POLL);
        }
    }

    fn effect(&self, name: &str, check: &Check) -> Result<EffectReading, ProbeError> {
        let reading = self.check(check, None)?;
        let status = match reading.verdict {
            Verdict::Holds => EffectStatus::Confirmed,
            Verdict::Fails => EffectStatus::Refuted,
            Verdict::Absent => EffectStatus::Absent,
            Verdict::Unreadable => EffectStatus::Indeterminate,
        };
        let evidence = reading.seen.map(|seen| self.inputs.digest(&seen));
        Ok(EffectReading { effect: name.to_owned(), status, evidence })
    }

    /// Whether everything that earlier steps left behind still reads as it did: each confirmed effect, and the last
    /// step's postconditions. They are re-read, never re-performed. Relative postconditions cannot be proved again.
    pub(super) fn retained(&self) -> Result<Option<(Category, Reason)>, ProbeError> {
        if !lineage::is_proven(self.run) {
            return Err(ProbeError::Refused(Refusal::StateDiverged));
        }
        for link in &self.run.lineage {
            let Some(step) = self.inputs.workflow().step(link.index) else {
                return Err(ProbeError::Refused(Refusal::BundleMismatch));
            };
            for (name, _) in link.effects.iter().filter(|(_, status)| *status == EffectStatus::Confirmed) {
                let check = step.effects.iter().find(|effect| effect.id == *name);
                let Some(check) = check.and_then(EffectSpec::verifier) else {
                    return Err(ProbeError::Refused(Refusal::BundleMismatch));
                };
                match self.check(check, None)?.verdict {
                    Verdict::Holds => {}
                    Verdict::Fails | Verdict::Absent => {
                        return Ok(Some((Category::EffectRefuted, Reason::EarlierEffectLost)));
                    }
                    Verdict::Unreadable => {
                        return Ok(Some((Category::EffectIndeterminate, Reason::EffectUnreadable)));
                    }
                }
            }
        }
        let last = self.run.lineage.last().filter(|link| match link.kind {
            CheckpointKind::Engine
            | CheckpointKind::Read
            | CheckpointKind::Human
            | CheckpointKind::Outside
            | CheckpointKind::Reconciled => true,
            CheckpointKind::Skipped => false,
        });
        if let Some(step) = last.and_then(|link| self.inputs.workflow().step(link.index)) {
            for check in step.expect.iter().filter(|check| !check.relative) {
                match self.check(check, None)?.verdict {
                    Verdict::Holds => {}
                    Verdict::Fails | Verdict::Absent => {
                        return Ok(Some((Category::Postcondition, Reason::PostconditionFailed)));
                    }
                    Verdict::Unreadable => return Ok(Some((Category::Postcondition, Reason::Unreadable))),
                }
            }
        }
        Ok(None)
    }

    /// What the live state shows for a decision that needs it.
    pub(super) fn judge(&self, action: Action, step: &Step, index: u32) -> Result<LiveFinding, ProbeError> {
        match action {
            Action::Skip => Ok(match self.guard(step)? {
                // What earlier steps left behind is read again here, for the run goes on from this.
                Guard::Unmet if self.retained()?.is_none() => LiveFinding::GuardUnmet,
                Guard::Holds => LiveFinding::GuardHolds,
                Guard::Unmet | Guard::Unreadable => LiveFinding::NotVerified,
            }),
            Action::Continue | Action::Reconcile => self.judge_done(action, step, index),
            Action::Reject | Action::Teach | Action::Escalate => Ok(LiveFinding::NotVerified),
        }
    }

    /// Whether everything beside the effects is as a person's finished step declares it: the record is the one that was
    /// captured at the halt, its postconditions hold, and nothing of earlier steps is lost.
    fn is_as_declared(&self, step: &Step, index: u32, identity: Identity) -> Result<bool, ProbeError> {
        let proven = match identity.status {
            IdentityStatus::NotRequired | IdentityStatus::Verified => true,
            IdentityStatus::Mismatch | IdentityStatus::Unverified => false,
        };
        let captured = self.run.pause.as_ref().and_then(|pause| pause.opened.identity);
        let same_record = captured.is_none() || captured == identity.digest;
        Ok(proven && same_record && self.postconditions(step, index)?.is_none() && self.retained()?.is_none())
    }

    fn judge_done(&self, action: Action, step: &Step, index: u32) -> Result<LiveFinding, ProbeError> {
        let effects = self.effects(step, Millis(0))?;
        let every = |status: EffectStatus| effects.iter().all(|reading| reading.status == status);
        // A reconcile needs an independent read, and that is enough: a screen alone proves nothing, and what it shows by now
        // takes nothing back. What it left open is read when the run goes on.
        let settled = match action {
            Action::Reconcile => !effects.is_empty(),
            Action::Continue | Action::Skip | Action::Reject | Action::Teach | Action::Escalate => true,
        };
        if settled && every(EffectStatus::Confirmed) {
            let identity = self.identity(step)?;
            if action == Action::Reconcile || self.is_as_declared(step, index, identity)? {
                return Ok(LiveFinding::Verified(Verified {
                    effects,
                    identity_status: identity.status,
                    identity: identity.digest,
                }));
            }
        }
        let acted = self.run.crossing.is_some();
        let absent = if acted {
            !effects.is_empty() && every(EffectStatus::Absent)
        } else {
            // The engine never acted on this step, so nothing of its own can be there; the reads must have worked.
            effects.iter().all(|reading| match reading.status {
                EffectStatus::Confirmed | EffectStatus::Absent | EffectStatus::Refuted => true,
                EffectStatus::Indeterminate | EffectStatus::Unverifiable => false,
            })
        };
        Ok(match action {
            Action::Reconcile if absent => LiveFinding::Absent(effects),
            Action::Reconcile
            | Action::Continue
            | Action::Skip
            | Action::Reject
            | Action::Teach
            | Action::Escalate => LiveFinding::NotVerified,
        })
    }
}

/// The finding of a step whose effects were read, if they do not confirm it. The first category of the contract's
/// order wins.
pub(super) fn effects_finding(step: &Step, readings: &[EffectReading]) -> Option<(Category, Reason)> {
    let any = |status: EffectStatus| readings.iter().any(|reading| reading.status == status);
    if step.effects.iter().any(|effect| effect.verifier().is_none()) {
        Some((Category::EffectUnverifiable, Reason::EffectNeedsAttestation))
    } else if any(EffectStatus::Indeterminate) || any(EffectStatus::Unverifiable) {
        Some((Category::EffectIndeterminate, Reason::EffectUnreadable))
    } else if any(EffectStatus::Absent) {
        Some((Category::EffectRefuted, Reason::EffectMissing))
    } else if any(EffectStatus::Refuted) {
        Some((Category::EffectRefuted, Reason::EffectDiffers))
    } else {
        None
    }
}

/// A finding with what was seen of the identity.
pub(super) fn finding(category: Category, reason: Reason, identity: Identity, baseline: bool) -> Finding {
    Finding {
        category,
        reason,
        evidence: vec![],
        identity_status: identity.status,
        identity: identity.digest,
        baseline,
    }
}
