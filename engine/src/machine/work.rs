//! One run at work: the fold of facts onto it, and the scratch copy that `decide` builds its events on.

use alloc::vec::Vec;

use protocol::decision::Action;
use protocol::delivery::{ReceiptOutcome, Settlement};
use protocol::event::{DecisionFinished, Entry, Event, Under};
use protocol::ids::{LeaseToken, Seq};
use protocol::pause::Reason;
use protocol::time::Deadline;

use super::context::Context;
use super::state::{Crossing, Decision, Lease, Link, Pause, Phase, Run};

/// A run as it would stand after the events so far. Pushing an event folds it at once, so that a rule never reasons
/// about a state that its own earlier events have changed.
pub(super) struct Work<'a, 'c> {
    pub(super) run: Run,
    pub(super) events: Vec<Event>,
    pub(super) cx: &'a Context<'c>,
}

impl<'a, 'c> Work<'a, 'c> {
    pub(super) fn on(run: &Run, cx: &'a Context<'c>) -> Self {
        Self { run: run.clone(), events: Vec::new(), cx }
    }

    /// Position that the next event will take.
    pub(super) fn next(&self) -> Seq {
        Seq(self.cx.next.0.saturating_add(self.events.len() as u64))
    }

    pub(super) fn push(&mut self, event: impl Into<Event>) {
        let entry = Entry {
            seq: self.next(),
            time: self.cx.now.wall,
            producer: self.cx.instance,
            event: event.into(),
        };
        apply(&mut self.run, &entry);
        self.events.push(entry.event);
    }
}

/// Folds a fact about this run.
pub(super) fn apply(run: &mut Run, entry: &Entry) {
    match &entry.event {
        Event::LeaseGranted(granted) => {
            run.lease =
                Some(Lease { token: LeaseToken(entry.seq), holder: granted.holder, until: granted.until });
            run.stand_down = None;
        }
        Event::LeaseReleased(released) => {
            if run.lease.is_some_and(|lease| lease.token == released.token) {
                run.lease = None;
                run.stand_down = None;
            }
        }
        Event::StepIntent(intent) => {
            renew(run, &intent.under);
            run.stand_down = None;
            run.deliveries = run.deliveries.saturating_add(1);
            run.crossing = Some(Crossing {
                delivery: intent.delivery,
                step: intent.step.clone(),
                holder: entry.producer,
                absent_after: intent.absent_after,
                reserve: intent.reserve,
                receipt: None,
            });
        }
        Event::StepReceipt(receipt) => {
            renew(run, &receipt.under);
            match receipt.outcome {
                ReceiptOutcome::NotSent => run.crossing = None,
                ReceiptOutcome::Acted | ReceiptOutcome::Unclear => {
                    if let Some(crossing) = &mut run.crossing {
                        crossing.receipt = Some(receipt.outcome);
                    }
                }
            }
        }
        Event::Checkpoint(checkpoint) => {
            renew(run, &checkpoint.under);
            run.lineage.push(Link {
                digest: checkpoint.digest(),
                parent: checkpoint.parent,
                index: checkpoint.step.index,
                step: checkpoint.step.id.clone(),
                kind: checkpoint.kind,
                consequential: checkpoint.step.consequential,
                bundle: checkpoint.bundle,
                parameters: checkpoint.parameters,
                effects: checkpoint
                    .effects
                    .iter()
                    .map(|reading| (reading.effect.clone(), reading.status))
                    .collect(),
                delivery_attempted: checkpoint.delivery_attempted,
            });
            run.crossing = None;
            run.cursor = run.cursor.next();
        }
        Event::PauseOpened(opened) => {
            run.pause = Some(Pause {
                opened: opened.clone(),
                at: entry.time,
                capability: None,
                expired: false,
                needs_demonstration: false,
                escalated: false,
            });
        }
        Event::CapabilityIssued(issued) => {
            run.capabilities = issued.capability.claims.sequence;
            if let Some(pause) = &mut run.pause {
                pause.capability = Some(issued.capability.clone());
            }
        }
        Event::PauseExpired(_) => {
            if let Some(pause) = &mut run.pause {
                pause.expired = true;
            }
        }
        Event::PauseClosed(_) => run.pause = None,
        Event::DecisionRecorded(recorded) => {
            if let Some(pause) = &mut run.pause {
                match recorded.action {
                    Action::Teach => pause.needs_demonstration = true,
                    Action::Escalate => pause.escalated = true,
                    Action::Reject | Action::Continue | Action::Skip | Action::Reconcile => {}
                }
            }
            run.decisions.insert(recorded.key.clone(), Decision::recorded(recorded, entry.time));
        }
        Event::DecisionPrepared(prepared) => {
            renew(run, &prepared.under);
            run.decisions.insert(prepared.key.clone(), Decision::prepared(prepared, entry.time));
        }
        Event::DecisionStarted(started) => {
            renew(run, &started.under);
            run.stand_down = None;
            if let Some(decision) =
                run.decisions.values_mut().find(|decision| decision.id == started.decision)
            {
                decision.phase = Phase::Started {
                    holder: entry.producer,
                    absent_after: started.absent_after,
                    reserve: started.reserve,
                    absence_provable: started.absence_provable,
                };
            }
        }
        Event::DecisionFinished(finished) => finish(run, finished),
        Event::DeliveryUncertain(uncertain) => {
            if let Some(id) = uncertain.decision
                && let Some(decision) = run.decisions.values_mut().find(|decision| decision.id == id)
                && let Phase::Started { holder, absent_after, .. } = decision.phase
            {
                decision.phase =
                    Phase::Uncertain { holder, absent_after, given_up: was_given_up(uncertain.reason) };
            }
        }
        Event::DeliverySettled(settled) => match settled.settlement {
            Settlement::Absent => run.crossing = None,
            Settlement::Confirmed => {}
        },
        Event::CancelRequested(requested) => run.cancel = Some(requested.author.clone()),
        Event::StandDownRequested(requested) => run.stand_down = Some(requested.by),
        Event::RunAdmitted(_)
        | Event::RunFinished(_)
        | Event::RefusalRecorded(_)
        | Event::RefusalsCounted(_)
        | Event::StateRecorded(_)
        | Event::KeyRegistered(_) => {}
    }
}

fn finish(run: &mut Run, finished: &DecisionFinished) {
    if let Some(decision) = run.decisions.get_mut(&finished.key) {
        decision.finish(finished);
    }
}

/// Whether the reason is the holder's own record that it gave its executor's call up. Every other reason is what
/// somebody else concluded about a holder that may still be at it.
const fn was_given_up(reason: Reason) -> bool {
    match reason {
        Reason::ExecutorLost => true,
        Reason::StepIsAttended
        | Reason::GuardUnmet
        | Reason::Unreadable
        | Reason::IdentityMismatch
        | Reason::IdentityUnverified
        | Reason::NotSent
        | Reason::AnswerUnclear
        | Reason::HolderDied
        | Reason::LeaseExpired
        | Reason::PostconditionFailed
        | Reason::EffectMissing
        | Reason::EffectDiffers
        | Reason::EffectUnreadable
        | Reason::EffectNeedsAttestation
        | Reason::EarlierEffectLost
        | Reason::ProvenAbsent
        | Reason::EndReached
        | Reason::Rejected
        | Reason::Canceled => false,
    }
}

/// Every event under a lease renews it. Source: RULINGS 10.
fn renew(run: &mut Run, under: &Under) {
    if let Some(lease) = &mut run.lease
        && lease.token == under.token
    {
        lease.until = later(lease.until, under.until);
    }
}

/// Of two deadlines of one process, the later; of another boot, the new one.
fn later(old: Deadline, new: Deadline) -> Deadline {
    if old.boot_id == new.boot_id && old.boot > new.boot { old } else { new }
}
