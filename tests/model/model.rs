//! What the machine should say, from a few maps: who owns a run, how its step stands, which key means what. It is told
//! true time and who lives, folds the journalled events its own way, and never looks at the machine's state.

use std::collections::{BTreeMap, BTreeSet};

use engine::machine::{Answer, Decided, MachineLimits};
use protocol::bundle::Attended;
use protocol::command::Command;
use protocol::decision::{Action, DecisionRequest};
use protocol::delivery::{ReceiptOutcome, Settlement};
use protocol::digest::Sha256Digest;
use protocol::event::{DecisionOutcome, Event, StepFacts};
use protocol::ids::{DecisionId, DeliveryId, IdempotencyKey, InstanceId, LeaseToken, RunId, Seq};
use protocol::outcome::RunOutcome;
use protocol::refusal::{Refusal, RefusalCode};

use crate::plan::LIMIT;
use crate::world::World;
use crate::{Judged, rule};

/// The reference.
#[derive(Clone, Debug, Default)]
pub struct Model {
    runs: BTreeMap<RunId, ModelRun>,
    keys: BTreeMap<IdempotencyKey, Bound>,
}

#[derive(Clone, Debug)]
struct ModelRun {
    steps: u32,
    at: u32,
    step: Step,
    owner: Option<Owner>,
    paused: bool,
    deciding: Option<(DecisionId, InstanceId)>,
    /// Decisions whose outcome is not known, with whoever may still carry them out.
    uncertain: BTreeMap<DecisionId, InstanceId>,
    canceled: bool,
    asked_to_stand_down: Option<InstanceId>,
}

/// How the step at the cursor stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Free,
    Crossed(DeliveryId),
    Acted(DeliveryId),
}

#[derive(Clone, Copy, Debug)]
struct Owner {
    token: LeaseToken,
    process: InstanceId,
    until: u64,
}

/// What a key is bound to.
#[derive(Clone, Debug)]
struct Bound {
    content: Sha256Digest,
    ended: Option<(DecisionOutcome, Option<RefusalCode>)>,
}

/// Who asks, when, and who lives.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    /// The process that asks.
    pub process: InstanceId,
    /// True time.
    pub time: u64,
    /// Every process that lives.
    pub alive: &'a BTreeSet<InstanceId>,
    /// Whether the disk has room.
    pub room: bool,
}

impl ModelRun {
    fn is_owned(&self, now: &Now<'_>) -> bool {
        self.owner.is_some_and(|owner| now.alive.contains(&owner.process) && now.time < owner.until)
    }

    fn is_owner(&self, token: LeaseToken, process: InstanceId) -> bool {
        self.owner.is_some_and(|owner| owner.token == token && owner.process == process)
    }

    /// What may act: the owner in time, on the free step at the cursor, with nobody in its way.
    fn may_act(&self, token: LeaseToken, step: &StepFacts, now: &Now<'_>) -> bool {
        self.is_owner(token, now.process)
            && self.owner.is_some_and(|owner| now.time < owner.until)
            && self.asked_to_stand_down.is_none_or(|asking| !now.alive.contains(&asking))
            && !self.paused
            && !self.canceled
            && self.step == Step::Free
            && step.index == self.at
            && step.acts
            && step.attended != Attended::Always
            && now.room
    }
}

impl Model {
    /// Whether every run has ended.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.runs.is_empty()
    }

    /// Judges what the machine said, before it is folded.
    ///
    /// # Errors
    /// The rule that it broke.
    pub fn judge(&self, command: &Command, decided: &Decided, now: &Now<'_>) -> Judged {
        let answer = &decided.answer;
        match command {
            Command::BeginStep { run, token, step, .. } => {
                self.judge_writer(*run, *token, decided, now)?;
                let may = self.runs.get(run).is_some_and(|run| run.may_act(*token, step, now));
                let acts = matches!(answer, Answer::Deliver { .. });
                rule(may == acts, || format!("may act: {may}, yet told {answer:?}"))
            }
            Command::RecordReceipt { run, token, .. }
            | Command::CommitStep { run, token, .. }
            | Command::Stop { run, token, .. }
            | Command::FinishDecision { run, token, .. }
            | Command::LoseDecision { run, token, .. } => {
                rule(*answer != Answer::Refused(Refusal::DiskFull), || {
                    "an outcome was refused for space".into()
                })?;
                self.judge_writer(*run, *token, decided, now)
            }
            Command::Release { run, token } => {
                let stale = self.runs.get(run).is_none_or(|run| !run.is_owner(*token, now.process));
                rule(!stale || decided.events.is_empty(), || "a stale release wrote something".into())
            }
            Command::Acquire { run, .. } => {
                let busy = *answer == Answer::Refused(Refusal::Busy);
                let owned = self.runs.get(run).is_some_and(|run| run.is_owned(now));
                rule(busy == owned, || format!("owned: {owned}, yet told {answer:?}"))
            }
            Command::Decide { request, .. } => self.judge_decision(request, answer, now),
            Command::StartRun(_)
            | Command::Cancel { .. }
            | Command::RegisterKey { .. }
            | Command::RecordState { .. } => Ok(()),
        }
    }

    /// A fenced writer leaves a refusal record at most.
    fn judge_writer(&self, run: RunId, token: LeaseToken, decided: &Decided, now: &Now<'_>) -> Judged {
        let fenced = self.runs.get(&run).is_some_and(|run| !run.is_owner(token, now.process));
        let told = matches!(decided.answer, Answer::Refused(Refusal::Fenced { .. }));
        rule(fenced == told, || format!("fenced: {fenced}, yet told {:?}", decided.answer))?;
        let only_a_record = decided.events.iter().all(|event| matches!(event, Event::RefusalRecorded(_)));
        rule(!fenced || only_a_record, || format!("a fenced writer wrote {:?}", decided.events))
    }

    fn judge_decision(&self, request: &DecisionRequest, answer: &Answer, now: &Now<'_>) -> Judged {
        let refused = |code| matches!(answer, Answer::Refused(refusal) if refusal.code() == code);
        if let Some(bound) = self.keys.get(&request.idempotency_key) {
            if bound.content != request.digest() {
                return rule(refused(RefusalCode::IdempotencyConflict), || {
                    format!("other content under a known key, told {answer:?}")
                });
            }
            let replayed = matches!(answer, Answer::Decided { replayed: true, .. });
            rule(replayed == bound.ended.is_some(), || {
                format!("key ended: {:?}, told {answer:?}", bound.ended)
            })?;
        } else {
            rule(!refused(RefusalCode::IdempotencyConflict), || "conflict on a new key".into())?;
            rule(!matches!(answer, Answer::Decided { replayed: true, .. }), || "replay of a new key".into())?;
        }
        if let Answer::CarryOut { decision, .. } = answer {
            let run = self.runs.get(&decision.run);
            rule(run.is_some_and(|run| run.paused && !run.is_owned(now)), || {
                format!("carried out on a run that is not free: {run:?}")
            })?;
            let Some(run) = run else { return Ok(()) };
            let unsure =
                matches!(run.step, Step::Crossed(_)) || !run.uncertain.is_empty() || run.deciding.is_some();
            let passes = match decision.action {
                Action::Continue | Action::Skip => !unsure,
                Action::Reconcile => unsure || matches!(run.step, Step::Acted(_)),
                Action::Reject | Action::Teach | Action::Escalate => false,
            };
            rule(passes, || format!("{} carried out on {run:?}", decision.action))?;
        }
        Ok(())
    }

    /// Folds an event, and judges it by what is really there.
    ///
    /// # Errors
    /// The rule that the event breaks.
    pub fn fold(&mut self, event: &Event, seq: Seq, now: &Now<'_>, world: &mut World) -> Judged {
        self.bind(event)?;
        let Some(run) = run_of(event) else { return Ok(()) };
        if let Event::RunAdmitted(admitted) = event {
            self.runs.insert(
                run,
                ModelRun {
                    steps: admitted.steps,
                    at: 0,
                    step: Step::Free,
                    owner: None,
                    paused: false,
                    deciding: None,
                    uncertain: BTreeMap::new(),
                    canceled: false,
                    asked_to_stand_down: None,
                },
            );
            return Ok(());
        }
        let limits = MachineLimits::default();
        let renewed = now.time.saturating_add(LIMIT.0).saturating_add(limits.lease_grace_ms.0);
        let Some(known) = self.runs.get_mut(&run) else {
            return rule(matches!(event, Event::RefusalRecorded(_)), || {
                format!("no open run for {}", event.name())
            });
        };
        if let Some(token) = under(event) {
            rule(known.is_owner(token, now.process), || {
                format!("{} under a lease that is not the current one", event.name())
            })?;
            if let Some(owner) = &mut known.owner {
                owner.until = renewed;
            }
        }
        let place = (run, known.at);
        match event {
            Event::LeaseGranted(granted) => {
                rule(!known.is_owned(now), || "granted over a living holder".into())?;
                known.owner = Some(Owner { token: LeaseToken(seq), process: granted.holder, until: renewed });
                known.asked_to_stand_down = None;
            }
            Event::LeaseReleased(released) => {
                if known.owner.is_some_and(|owner| owner.token == released.token) {
                    known.owner = None;
                    known.asked_to_stand_down = None;
                }
            }
            Event::StepIntent(intent) => {
                rule(known.step == Step::Free, || {
                    format!("step {} begun again without proof of absence: {:?}", known.at, known.step)
                })?;
                rule(world.actuations(place) == 0, || format!("step {} acted already", known.at))?;
                rule(intent.step.index == known.at, || "a step out of order".into())?;
                known.step = Step::Crossed(intent.delivery);
                known.asked_to_stand_down = None;
            }
            Event::StepReceipt(receipt) => match receipt.outcome {
                ReceiptOutcome::NotSent => {
                    rule(world.actuations(place) == 0, || "not sent, and yet it acted".into())?;
                    known.step = Step::Free;
                }
                ReceiptOutcome::Acted => known.step = Step::Acted(receipt.delivery),
                ReceiptOutcome::Unclear => {}
            },
            Event::Checkpoint(checkpoint) => {
                rule(checkpoint.effects.is_empty() || world.shows(place), || {
                    format!("a {} checkpoint without its effect", checkpoint.kind)
                })?;
                known.at += 1;
                known.step = Step::Free;
            }
            Event::PauseOpened(_) => {
                rule(!known.paused, || "paused twice".into())?;
                known.paused = true;
            }
            Event::PauseClosed(_) => known.paused = false,
            Event::DecisionStarted(started) => {
                rule(known.deciding.is_none(), || "two decisions at once".into())?;
                known.deciding = Some((started.decision, now.process));
                known.asked_to_stand_down = None;
            }
            Event::DecisionFinished(finished) => {
                if known.deciding.is_some_and(|(deciding, _)| deciding == finished.decision) {
                    known.deciding = None;
                }
                known.uncertain.remove(&finished.decision);
            }
            Event::DeliveryUncertain(uncertain) => {
                if let Some((deciding, process)) = known.deciding
                    && uncertain.decision == Some(deciding)
                {
                    known.deciding = None;
                    known.uncertain.insert(deciding, process);
                }
            }
            Event::DeliverySettled(settled) => match settled.settlement {
                Settlement::Absent => {
                    if let Step::Crossed(delivery) | Step::Acted(delivery) = known.step {
                        world.is_claimed_absent(place, delivery)?;
                    }
                    known.step = Step::Free;
                }
                Settlement::Confirmed => {
                    rule(world.shows(place), || "confirmed, and not there".into())?;
                }
            },
            Event::CancelRequested(_) => known.canceled = true,
            Event::StandDownRequested(requested) => known.asked_to_stand_down = Some(requested.by),
            Event::RunFinished(finished) => {
                let settled =
                    known.step == Step::Free && known.uncertain.is_empty() && known.deciding.is_none();
                rule(settled, || format!("ended with something unsettled: {known:?}"))?;
                let at_end = known.at >= known.steps;
                rule(at_end || finished.outcome != RunOutcome::Verified, || "a false success".into())?;
                self.runs.remove(&run);
            }
            Event::RunAdmitted(_)
            | Event::CapabilityIssued(_)
            | Event::PauseExpired(_)
            | Event::DecisionRecorded(_)
            | Event::DecisionPrepared(_)
            | Event::RefusalRecorded(_)
            | Event::RefusalsCounted(_)
            | Event::StateRecorded(_)
            | Event::KeyRegistered(_) => {}
        }
        Ok(())
    }

    /// A key is bound once, to one content, and ends once.
    fn bind(&mut self, event: &Event) -> Judged {
        let (key, bound) = match event {
            Event::DecisionRecorded(recorded) => {
                let ended = Some((DecisionOutcome::Completed, None));
                (recorded.key.clone(), Bound { content: recorded.request, ended })
            }
            Event::DecisionPrepared(prepared) => {
                (prepared.key.clone(), Bound { content: prepared.request, ended: None })
            }
            Event::DecisionFinished(finished) => {
                let Some(bound) = self.keys.get_mut(&finished.key) else {
                    return rule(false, || "an unknown decision ended".into());
                };
                rule(bound.ended.is_none(), || "a decision ended twice".into())?;
                bound.ended = Some((finished.outcome, finished.refusal));
                return Ok(());
            }
            Event::RunAdmitted(_)
            | Event::LeaseGranted(_)
            | Event::LeaseReleased(_)
            | Event::StepIntent(_)
            | Event::StepReceipt(_)
            | Event::Checkpoint(_)
            | Event::PauseOpened(_)
            | Event::CapabilityIssued(_)
            | Event::PauseExpired(_)
            | Event::PauseClosed(_)
            | Event::DecisionStarted(_)
            | Event::DeliveryUncertain(_)
            | Event::DeliverySettled(_)
            | Event::CancelRequested(_)
            | Event::StandDownRequested(_)
            | Event::RunFinished(_)
            | Event::RefusalRecorded(_)
            | Event::RefusalsCounted(_)
            | Event::StateRecorded(_)
            | Event::KeyRegistered(_) => return Ok(()),
        };
        rule(self.keys.insert(key, bound).is_none(), || "a key was bound twice".into())
    }
}

/// The lease that an event was written under.
fn under(event: &Event) -> Option<LeaseToken> {
    match event {
        Event::StepIntent(fact) => Some(fact.under.token),
        Event::StepReceipt(fact) => Some(fact.under.token),
        Event::Checkpoint(fact) => Some(fact.under.token),
        Event::DecisionPrepared(fact) => Some(fact.under.token),
        Event::DecisionStarted(fact) => Some(fact.under.token),
        Event::RunAdmitted(_)
        | Event::LeaseGranted(_)
        | Event::LeaseReleased(_)
        | Event::PauseOpened(_)
        | Event::CapabilityIssued(_)
        | Event::PauseExpired(_)
        | Event::PauseClosed(_)
        | Event::DecisionRecorded(_)
        | Event::DecisionFinished(_)
        | Event::DeliveryUncertain(_)
        | Event::DeliverySettled(_)
        | Event::CancelRequested(_)
        | Event::StandDownRequested(_)
        | Event::RunFinished(_)
        | Event::RefusalRecorded(_)
        | Event::RefusalsCounted(_)
        | Event::StateRecorded(_)
        | Event::KeyRegistered(_) => None,
    }
}

/// The run that an event is about.
#[must_use]
pub fn run_of(event: &Event) -> Option<RunId> {
    match event {
        Event::RunAdmitted(fact) => Some(fact.run),
        Event::LeaseGranted(fact) => Some(fact.run),
        Event::LeaseReleased(fact) => Some(fact.run),
        Event::StepIntent(fact) => Some(fact.run),
        Event::StepReceipt(fact) => Some(fact.run),
        Event::Checkpoint(fact) => Some(fact.run),
        Event::PauseOpened(fact) => Some(fact.run),
        Event::CapabilityIssued(fact) => Some(fact.run),
        Event::PauseExpired(fact) => Some(fact.run),
        Event::PauseClosed(fact) => Some(fact.run),
        Event::DecisionRecorded(fact) => Some(fact.run),
        Event::DecisionPrepared(fact) => Some(fact.run),
        Event::DecisionStarted(fact) => Some(fact.run),
        Event::DecisionFinished(fact) => Some(fact.run),
        Event::DeliveryUncertain(fact) => Some(fact.run),
        Event::DeliverySettled(fact) => Some(fact.run),
        Event::CancelRequested(fact) => Some(fact.run),
        Event::StandDownRequested(fact) => Some(fact.run),
        Event::RunFinished(fact) => Some(fact.run),
        Event::RefusalRecorded(fact) => fact.run,
        Event::RefusalsCounted(_) | Event::StateRecorded(_) | Event::KeyRegistered(_) => None,
    }
}
