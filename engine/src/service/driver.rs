//! Drives a run under a lease, step by step, until it waits, ends, or the lease is lost:
//! guard → intent → delivery boundary → receipt → postconditions → effects → checkpoint. Acting never comes before the
//! append.

use std::time::Duration;

use protocol::bundle::{Attended, EffectClass, Step};
use protocol::command::{Command, Finding, Verified};
use protocol::delivery::{DeliveryState, ReceiptOutcome};
use protocol::digest::MacDigest;
use protocol::event::{CheckpointKind, StepFacts};
use protocol::ids::{DeliveryId, LeaseToken, RunId};
use protocol::pause::{Category, IdentityStatus, Reason};
use protocol::refusal::Refusal;
use protocol::time::Deadline;

use crate::machine::step::BEGIN_WITHIN;
use crate::machine::{Answer, Run};

use super::engine::Engine;
use super::error::EngineError;
use super::executor::CallError;
use super::inputs::Inputs;
use super::ports::{ActReport, BoundAction};
use super::probe::{Guard, Identity, Probe, ProbeError, effects_finding, finding};

/// What a step came to.
enum Flow {
    /// Committed; go on.
    On,
    /// The run waits, ended, or is another's.
    Stopped,
}

/// One run under one lease.
pub(super) struct Driver<'e> {
    engine: &'e Engine,
    run: RunId,
    token: LeaseToken,
    inputs: Inputs,
}

impl<'e> Driver<'e> {
    pub(super) fn new(engine: &'e Engine, run: RunId, token: LeaseToken, inputs: Inputs) -> Self {
        Self { engine, run, token, inputs }
    }

    /// Goes on until the run stops. `prove` re-reads what earlier steps left behind first; a run that goes on in the
    /// process that has just verified it needs no second proof.
    ///
    /// # Errors
    /// [`EngineError`]; the run then stands as the journal says.
    pub(super) fn go(mut self, prove: bool) -> Result<(), EngineError> {
        let mut prove = prove;
        loop {
            let Some(run) = self.engine.open_run(self.run)? else { return Ok(()) };
            if run.lease.is_none_or(|lease| lease.token != self.token) {
                // Overtaken: the newer holder goes on. The next write would be refused and recorded as such.
                return Err(Refusal::Fenced {
                    yours: self.token,
                    current: run.lease.map(|lease| lease.token),
                }
                .into());
            }
            if let (Some(author), false) = (&run.cancel, run.delivery_state().may_have_happened()) {
                self.release()?;
                self.engine.cancel(self.run, author.clone())?;
                return Ok(());
            }
            let index = run.cursor.step();
            let Some(step) = self.inputs.workflow().step(index).cloned() else {
                return Err(Refusal::BundleMismatch.into());
            };
            let facts = step.facts(index);
            let flow = self.one(&run, &step, &facts, std::mem::take(&mut prove));
            match flow {
                Ok(Flow::On) => {}
                Ok(Flow::Stopped) => return Ok(()),
                Err(EngineError::Refused(Refusal::LeaseExpired)) => self.token = self.renew(&facts)?,
                Err(EngineError::Refused(refusal @ Refusal::StandDown)) => {
                    self.release()?;
                    return Err(refusal.into());
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn one(&self, run: &Run, step: &Step, facts: &StepFacts, prove: bool) -> Result<Flow, EngineError> {
        let probe = self.probe(run);
        let unknown = Identity {
            status: if facts.identity_required {
                IdentityStatus::Unverified
            } else {
                IdentityStatus::NotRequired
            },
            digest: None,
        };
        if prove && !run.lineage.is_empty() {
            match probe.retained() {
                Ok(None) => {}
                Ok(Some((category, reason))) => {
                    return self.stop(facts, finding(category, reason, unknown, false));
                }
                Err(error) => return self.unreadable(error, facts, unknown),
            }
        }
        match run.delivery_state() {
            // A receipt without a checkpoint: the effect is looked for, never made again.
            DeliveryState::Delivered => return self.verify(&probe, step, facts, unknown, true),
            DeliveryState::Unknown => {
                return self
                    .stop(facts, finding(Category::DeliveryUncertain, Reason::ExecutorLost, unknown, false));
            }
            DeliveryState::NotDelivered => {}
        }
        let prepared = self.prepare(&probe, step, facts);
        let (identity, baseline) = match prepared {
            Ok(Prepared::Ready { identity, baseline }) => (identity, baseline),
            Ok(Prepared::Skip) => {
                let skipped =
                    Verified { effects: vec![], identity_status: unknown.status, identity: unknown.digest };
                return self.commit(facts, CheckpointKind::Skipped, skipped);
            }
            Ok(Prepared::Stop(finding)) => return self.stop(facts, finding),
            Err(error) => return self.unreadable(error, facts, unknown),
        };
        match &step.action {
            Some(action) if step.attended != Attended::Always => {
                let seen = finding(Category::Halt, Reason::NotSent, identity, baseline);
                match action.effect_class {
                    EffectClass::Read => self.read(&probe, step, facts, identity),
                    EffectClass::Write => self.act(&probe, step, facts, identity, seen),
                }
            }
            Some(_) | None => {
                self.stop(facts, finding(Category::AttendedStep, Reason::StepIsAttended, identity, baseline))
            }
        }
    }

    /// Guard, identity and baseline, before anything is delivered.
    fn prepare(&self, probe: &Probe<'_>, step: &Step, facts: &StepFacts) -> Result<Prepared, ProbeError> {
        let no_identity = Identity { status: IdentityStatus::NotRequired, digest: None };
        match probe.guard(step)? {
            Guard::Holds => {}
            Guard::Unmet if facts.skippable && !facts.consequential => return Ok(Prepared::Skip),
            Guard::Unmet => {
                let identity = if facts.identity_required { probe.identity(step)? } else { no_identity };
                return Ok(Prepared::Stop(finding(
                    Category::UnmetGuard,
                    Reason::GuardUnmet,
                    identity,
                    false,
                )));
            }
            Guard::Unreadable => {
                let identity = Identity {
                    status: if facts.identity_required {
                        IdentityStatus::Unverified
                    } else {
                        IdentityStatus::NotRequired
                    },
                    digest: None,
                };
                return Ok(Prepared::Stop(finding(
                    Category::Resolution,
                    Reason::Unreadable,
                    identity,
                    false,
                )));
            }
        }
        let identity = probe.identity(step)?;
        let stop = |reason| Ok(Prepared::Stop(finding(Category::Identity, reason, identity, false)));
        match identity.status {
            IdentityStatus::NotRequired | IdentityStatus::Verified => {}
            IdentityStatus::Mismatch => return stop(Reason::IdentityMismatch),
            IdentityStatus::Unverified => return stop(Reason::IdentityUnverified),
        }
        let baseline = probe.capture_baseline(step, facts.index)?;
        Ok(Prepared::Ready { identity, baseline })
    }

    /// A step of class `read`: no delivery boundary is crossed, so a crash simply reads again.
    fn read(
        &self,
        probe: &Probe<'_>,
        step: &Step,
        facts: &StepFacts,
        identity: Identity,
    ) -> Result<Flow, EngineError> {
        let report = self.call(step, None)?;
        let acted = report.is_ok_and(|report| match report.outcome {
            ReceiptOutcome::Acted => true,
            ReceiptOutcome::NotSent | ReceiptOutcome::Unclear => false,
        });
        if !acted {
            return self.stop(facts, finding(Category::Resolution, Reason::Unreadable, identity, false));
        }
        self.verify(probe, step, facts, identity, false)
    }

    fn act(
        &self,
        probe: &Probe<'_>,
        step: &Step,
        facts: &StepFacts,
        identity: Identity,
        seen: Finding,
    ) -> Result<Flow, EngineError> {
        let Some(action) = &step.action else { return Err(Refusal::InvalidBundle.into()) };
        // The arguments as the bundle has them; the parameters that fill them are bound by the run's own digest.
        let digest = self.inputs.digest(&protocol::canonical_json::bytes_of(action.args.expose()));
        // Read before the intent, so that it is over before the journalled time after which absence can be proven.
        let begin_before = self.engine.clock.now().after(BEGIN_WITHIN);
        let begun = self.engine.submit(Command::BeginStep {
            run: self.run,
            token: self.token,
            step: facts.clone(),
            action: digest,
        })?;
        let Answer::Deliver { delivery } = begun else { return stopped(begun) };
        let (outcome, reason, evidence) = match self.call(step, Some((delivery, begin_before)))? {
            Ok(report) => {
                let evidence: Option<MacDigest> = report.seen.as_deref().map(|seen| self.inputs.digest(seen));
                (report.outcome, Reason::AnswerUnclear, evidence)
            }
            Err(CallError::NotBegun) => (ReceiptOutcome::NotSent, Reason::NotSent, None),
            Err(CallError::Failed) => (ReceiptOutcome::Unclear, Reason::ExecutorLost, None),
            // Still at work, perhaps: there is no receipt to write, and only time and the holder's end can tell.
            Err(CallError::Lost) => {
                return self.stop(
                    facts,
                    Finding { category: Category::DeliveryUncertain, reason: Reason::ExecutorLost, ..seen },
                );
            }
        };
        let recorded = self.engine.submit(Command::RecordReceipt {
            run: self.run,
            token: self.token,
            delivery,
            outcome,
            reason,
            evidence,
            seen: seen.clone(),
        })?;
        match (outcome, recorded) {
            (ReceiptOutcome::Acted, Answer::Recorded) => self.verify(probe, step, facts, identity, true),
            (ReceiptOutcome::NotSent, Answer::Recorded) => self.stop(facts, seen),
            (_, answer) => stopped(answer),
        }
    }

    /// Hands the action to its executor. The outer error is a binding that does not work, which a checked bundle has
    /// not; then nothing was delivered.
    fn call(
        &self,
        step: &Step,
        crossing: Option<(DeliveryId, Deadline)>,
    ) -> Result<Result<ActReport, CallError>, EngineError> {
        let Some(action) = &step.action else { return Err(Refusal::InvalidBundle.into()) };
        let (delivery, begin_before) = crossing.unzip();
        let Ok(args) = self.inputs.bind(&action.args, delivery.as_ref()) else {
            return Ok(Err(CallError::NotBegun));
        };
        let bound = BoundAction { args, time_limit: Duration::from_millis(action.limit.0), delivery };
        Ok(self.engine.executors.act(&action.executor, bound, begin_before))
    }

    /// Postconditions and effects by independent reads, then the checkpoint.
    fn verify(
        &self,
        probe: &Probe<'_>,
        step: &Step,
        facts: &StepFacts,
        identity: Identity,
        acted: bool,
    ) -> Result<Flow, EngineError> {
        let settle = self.inputs.workflow().settle();
        let readings = match probe.effects(step, if acted { settle } else { protocol::time::Millis(0) }) {
            Ok(readings) => readings,
            Err(error) => return self.unreadable(error, facts, identity),
        };
        let failed = match effects_finding(step, &readings) {
            Some(found) => Some(found),
            None => match probe.postconditions(step, facts.index) {
                Ok(found) => found,
                Err(error) => return self.unreadable(error, facts, identity),
            },
        };
        if let Some((category, reason)) = failed {
            let evidence = readings.iter().filter_map(|reading| reading.evidence).collect();
            return self.stop(facts, Finding { evidence, ..finding(category, reason, identity, true) });
        }
        let kind = if acted { CheckpointKind::Engine } else { CheckpointKind::Read };
        self.commit(
            facts,
            kind,
            Verified { effects: readings, identity_status: identity.status, identity: identity.digest },
        )
    }

    fn commit(
        &self,
        facts: &StepFacts,
        kind: CheckpointKind,
        verified: Verified,
    ) -> Result<Flow, EngineError> {
        let answer = self.engine.submit(Command::CommitStep {
            run: self.run,
            token: self.token,
            step: facts.clone(),
            kind,
            verified,
        })?;
        if matches!(answer, Answer::Committed { .. }) { Ok(Flow::On) } else { stopped(answer) }
    }

    fn stop(&self, facts: &StepFacts, finding: Finding) -> Result<Flow, EngineError> {
        let answer = self.engine.submit(Command::Stop {
            run: self.run,
            token: self.token,
            step: facts.clone(),
            finding,
        })?;
        stopped(answer)
    }

    /// A read without a verdict stops the step; a bundle that does not bind is the caller's to know.
    fn unreadable(
        &self,
        error: ProbeError,
        facts: &StepFacts,
        identity: Identity,
    ) -> Result<Flow, EngineError> {
        match error {
            ProbeError::Refused(refusal) => {
                self.release()?;
                Err(refusal.into())
            }
            ProbeError::Lost => {
                self.stop(facts, finding(Category::Resolution, Reason::Unreadable, identity, false))
            }
        }
    }

    fn renew(&self, facts: &StepFacts) -> Result<LeaseToken, EngineError> {
        let author = self.engine.author_of(self.run)?;
        let answer = self.engine.submit(Command::Acquire {
            run: self.run,
            limit: facts.limit,
            recheck: false,
            author,
        })?;
        if let Answer::Leased { token, .. } = answer {
            return Ok(token);
        }
        stopped(answer).and(Err(Refusal::RunPaused.into()))
    }

    fn release(&self) -> Result<(), EngineError> {
        self.engine.submit(Command::Release { run: self.run, token: self.token }).map(|_| ())
    }

    fn probe<'p>(&'p self, run: &'p Run) -> Probe<'p> {
        Probe {
            executors: &self.engine.executors,
            inputs: &self.inputs,
            home: &self.engine.home,
            clock: self.engine.clock.as_ref(),
            run,
        }
    }
}

/// What stands before a step's action.
enum Prepared {
    Ready { identity: Identity, baseline: bool },
    Skip,
    Stop(Finding),
}

/// An answer after which the run is not this driver's any more.
fn stopped(answer: Answer) -> Result<Flow, EngineError> {
    match answer {
        Answer::Refused(refusal) => Err(refusal.into()),
        Answer::Recorded
        | Answer::Started { .. }
        | Answer::Leased { .. }
        | Answer::Paused { .. }
        | Answer::Deliver { .. }
        | Answer::Committed { .. }
        | Answer::Finished { .. }
        | Answer::CarryOut { .. }
        | Answer::Decided { .. } => Ok(Flow::Stopped),
    }
}
