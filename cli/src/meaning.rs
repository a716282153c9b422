//! What each event means, in words: one function per kind, fixed sentences with closed codes, ids and counts. Nothing
//! protected can stand here, because nothing protected is in the journal.

use engine::service::story::{Chapter, author_of, cut_finding};
use journal::own::{CutFinding, EpochReason, EpochStarted, TailCut};
use protocol::delivery::{EffectStatus, ReceiptOutcome, Settlement};
use protocol::event::{
    Author, CancelRequested, CapabilityIssued, Checkpoint, CheckpointKind, DecisionFinished, DecisionOutcome,
    DecisionPrepared, DecisionRecorded, DecisionStarted, DeliverySettled, DeliveryUncertain, EffectReading,
    Event, KeyRegistered, LeaseGranted, LeaseReleased, PauseClosed, PauseExpired, PauseOpened,
    RefusalRecorded, RefusalsCounted, RunAdmitted, RunFinished, StandDownRequested, StateRecorded, StepFacts,
    StepIntent, StepReceipt,
};
use protocol::ids::Seq;
use protocol::outcome::RecordChanged;
use protocol::pause::Resolution;

use crate::time;

/// What a record says.
pub(crate) fn of(chapter: &Chapter) -> String {
    match chapter {
        Chapter::Fact(entry) => meaning(entry.seq, &entry.event),
        Chapter::EpochStarted(_, started) => epoch_started(*started),
        Chapter::TailCut(_, cut) => tail_cut(cut),
        Chapter::Unknown(record) => {
            format!("an optional record of kind {} that a newer opjournal wrote; passed over", record.kind)
        }
    }
}

/// Who is behind a record: a person or program by account and surface, else the engine process that wrote it.
pub(crate) fn actor(chapter: &Chapter) -> String {
    let author = match chapter {
        Chapter::Fact(entry) => author_of(&entry.event),
        Chapter::EpochStarted(..) | Chapter::TailCut(..) | Chapter::Unknown(_) => None,
    };
    author.map_or_else(|| format!("engine {}", tail(&chapter.producer(), 8)), by)
}

/// An author: account and surface.
pub(crate) fn by(author: &Author) -> String {
    format!("{} ({})", harmless(author.operator.as_str()), author.via)
}

/// An id or digest, cut short for the eye: its prefix and first digits.
pub(crate) fn short(id: &impl ToString) -> String {
    let text = id.to_string();
    let digits = text.rfind(['_', ':']).map_or(0, |at| at + 1);
    let shown = if text.contains(':') { 12 } else { 8 };
    text.chars().take(digits + shown).collect()
}

/// The same without its prefix.
fn tail(id: &impl ToString, shown: usize) -> String {
    let text = id.to_string();
    let digits = text.rfind(['_', ':']).map_or(0, |at| at + 1);
    text.chars().skip(digits).take(shown).collect()
}

/// A text that was given from outside, made harmless for a terminal: control characters, and those that reorder or hide
/// what stands beside them, are written as escapes.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut safe, character| {
        if misleads(character) {
            safe.extend(character.escape_unicode())
        } else {
            safe.push(character)
        }
        safe
    })
}

/// Whether a character steers a terminal, or reorders or hides what stands beside it.
pub(crate) fn misleads(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn meaning(seq: Seq, event: &Event) -> String {
    match event {
        Event::RunAdmitted(fact) => run_admitted(fact),
        Event::LeaseGranted(fact) => lease_granted(seq, fact),
        Event::LeaseReleased(fact) => lease_released(fact),
        Event::StepIntent(fact) => step_intent(fact),
        Event::StepReceipt(fact) => step_receipt(fact),
        Event::Checkpoint(fact) => checkpoint(fact),
        Event::PauseOpened(fact) => pause_opened(fact),
        Event::CapabilityIssued(fact) => capability_issued(fact),
        Event::PauseExpired(fact) => pause_expired(fact),
        Event::PauseClosed(fact) => pause_closed(fact),
        Event::DecisionRecorded(fact) => decision_recorded(fact),
        Event::DecisionPrepared(fact) => decision_prepared(fact),
        Event::DecisionStarted(fact) => decision_started(fact),
        Event::DecisionFinished(fact) => decision_finished(fact),
        Event::DeliveryUncertain(fact) => delivery_uncertain(fact),
        Event::DeliverySettled(fact) => delivery_settled(fact),
        Event::CancelRequested(fact) => cancel_requested(fact),
        Event::StandDownRequested(fact) => stand_down_requested(fact),
        Event::RunFinished(fact) => run_finished(fact),
        Event::RefusalRecorded(fact) => refusal_recorded(fact),
        Event::RefusalsCounted(fact) => refusals_counted(fact),
        Event::StateRecorded(fact) => state_recorded(fact),
        Event::KeyRegistered(fact) => key_registered(fact),
    }
}

fn step(step: &StepFacts) -> String {
    format!("step {} `{}`", u64::from(step.index) + 1, step.id)
}

fn run_admitted(fact: &RunAdmitted) -> String {
    let request = fact.request.as_ref().map_or_else(String::new, |request| format!(", request id {request}"));
    format!(
        "{} is admitted: workflow {}, bundle {}, profile {}, {} steps, {} effects declared{request}",
        fact.run,
        fact.workflow,
        short(&fact.bundle),
        fact.profile,
        fact.steps,
        fact.effects,
    )
}

/// A lease's token is the sequence of its grant.
fn lease_granted(seq: Seq, fact: &LeaseGranted) -> String {
    format!("engine {} owns the run (lease {seq})", tail(&fact.holder, 8))
}

fn lease_released(fact: &LeaseReleased) -> String {
    format!("the run is given back (lease {})", fact.token.0)
}

fn step_intent(fact: &StepIntent) -> String {
    format!(
        "{} is about to act: from here on it may have happened, until its outcome is recorded ({})",
        step(&fact.step),
        short(&fact.delivery)
    )
}

fn step_receipt(fact: &StepReceipt) -> String {
    let what = match fact.outcome {
        ReceiptOutcome::Acted => "the executor says that it acted; a read must still prove it",
        ReceiptOutcome::NotSent => "nothing left the process: it did not happen",
        ReceiptOutcome::Unclear => "the answer does not tell whether it happened",
    };
    format!("{what} ({})", short(&fact.delivery))
}

/// Who did the step of a checkpoint. Whether it was a person is what the surface of its decision says, so it is not said here.
pub(crate) const fn doer(kind: CheckpointKind) -> &'static str {
    match kind {
        CheckpointKind::Engine => "the engine did it and verified it",
        CheckpointKind::Read => "the engine read it",
        CheckpointKind::Human => "a person did it; the engine verified it",
        CheckpointKind::Outside => "it was done outside the engine; the engine verified it",
        CheckpointKind::Reconciled => "a reconcile found that it had happened",
        CheckpointKind::Skipped => "skipped, because its guard does not hold",
    }
}

fn checkpoint(fact: &Checkpoint) -> String {
    format!(
        "{} is committed: {}{}; checkpoint {}",
        step(&fact.step),
        doer(fact.kind),
        effects(&fact.effects),
        short(&fact.digest())
    )
}

fn effects(effects: &[EffectReading]) -> String {
    let confirmed = effects.iter().filter(|effect| effect.status == EffectStatus::Confirmed).count();
    if effects.is_empty() {
        String::new()
    } else {
        format!(", {confirmed} of {} effects confirmed by a read", effects.len())
    }
}

fn pause_opened(fact: &PauseOpened) -> String {
    format!(
        "the run waits for a person at {}: {} ({}), delivery {}; item {}, until {}",
        step(&fact.step),
        fact.category,
        fact.reason,
        fact.delivery,
        fact.attention,
        time::utc(fact.expires.wall),
    )
}

fn capability_issued(fact: &CapabilityIssued) -> String {
    let allowed: Vec<&str> = fact.capability.claims.allowed.iter().map(|action| action.as_str()).collect();
    format!("capability {} allows {}", short(&fact.capability.digest()), allowed.join(", "))
}

fn pause_expired(_: &PauseExpired) -> String {
    "the pause has expired; it can only be rejected, escalated, or checked again".to_owned()
}

fn pause_closed(fact: &PauseClosed) -> String {
    match fact.resolution {
        Resolution::Continued => "the wait is over: what was done outside the engine is verified",
        Resolution::Skipped => "the wait is over: the step is skipped",
        Resolution::Reconciled => "the wait is over: what was uncertain is proven to have happened",
        Resolution::Rejected => "the wait is over: the run is rejected",
        Resolution::Canceled => "the wait is over: the run is canceled",
        Resolution::Rechecked => "the wait is over: the step is checked again",
    }
    .to_owned()
}

fn decision_recorded(fact: &DecisionRecorded) -> String {
    let given = fact.disposition.map_or_else(String::new, |disposition| format!(" ({disposition})"));
    format!(
        "decision {}{given} on item {}, key {}, capability {}: recorded and final",
        fact.action,
        fact.attention,
        fact.key,
        short(&fact.capability)
    )
}

fn decision_prepared(fact: &DecisionPrepared) -> String {
    let given = fact.disposition.map_or_else(String::new, |disposition| format!(" ({disposition})"));
    format!(
        "decision {}{given} on item {}, key {}, capability {}: admitted; the live state must bear it out",
        fact.action,
        fact.attention,
        fact.key,
        short(&fact.capability)
    )
}

fn decision_started(fact: &DecisionStarted) -> String {
    format!("{} is being carried out: the application is read, nothing is done in it", short(&fact.decision))
}

/// How a decision ended, in words.
pub(crate) const fn ending(outcome: DecisionOutcome) -> &'static str {
    match outcome {
        DecisionOutcome::Completed => "completed",
        DecisionOutcome::Halted => "halted the run",
        DecisionOutcome::Refused => "refused by what the live state showed; the pause stays open",
        DecisionOutcome::NotDelivered => "proven that nothing was delivered; the pause is open again",
    }
}

fn decision_finished(fact: &DecisionFinished) -> String {
    let refusal = fact.refusal.map_or_else(String::new, |code| format!(" ({code})"));
    let settled = fact.settled_by.map_or_else(String::new, |by| format!(", settled by {}", short(&by)));
    format!("{} ended: {}{refusal}{settled}", short(&fact.decision), ending(fact.outcome))
}

fn delivery_uncertain(fact: &DeliveryUncertain) -> String {
    let what = match (&fact.delivery, &fact.decision) {
        (Some(delivery), _) => short(delivery),
        (None, Some(decision)) => short(decision),
        (None, None) => "a delivery".to_owned(),
    };
    format!(
        "{what} may or may not have happened ({}, engine {}); nothing acts again until a reconcile settles it",
        fact.reason,
        tail(&fact.holder, 8)
    )
}

fn delivery_settled(fact: &DeliverySettled) -> String {
    let what = match fact.settlement {
        Settlement::Confirmed => "it is proven by reading that it happened",
        Settlement::Absent => "it is proven that it did not happen; the step may run",
    };
    format!("{what}{} ({})", effects(&fact.effects), short(&fact.decision))
}

fn cancel_requested(_: &CancelRequested) -> String {
    "the run is to end before its next delivery".to_owned()
}

fn stand_down_requested(fact: &StandDownRequested) -> String {
    format!("engine {} asks the run's owner to stand down for a reject", tail(&fact.by, 8))
}

fn run_finished(fact: &RunFinished) -> String {
    let changed = match fact.changed {
        RecordChanged::Yes => "a record was changed",
        RecordChanged::No => "no record was changed",
        RecordChanged::Unknown => "whether a record was changed is not proven",
    };
    format!(
        "the run ends: {} ({}); {} effects confirmed, {changed}",
        fact.outcome, fact.reason, fact.confirmed
    )
}

fn refusal_recorded(fact: &RefusalRecorded) -> String {
    let action = fact.action.map_or_else(|| "a request".to_owned(), |action| format!("decision {action}"));
    format!("{action} is refused ({}): {}", fact.code, fact.code.sentence())
}

fn refusals_counted(fact: &RefusalsCounted) -> String {
    format!("{} malformed or unknown requests were refused since {}", fact.count, time::utc(fact.since))
}

fn state_recorded(fact: &StateRecorded) -> String {
    let snapshot = if fact.snapshot.is_some() { ", with a snapshot" } else { "" };
    format!("the state through record {} is {}{snapshot}", fact.through, short(&fact.digest))
}

fn key_registered(fact: &KeyRegistered) -> String {
    format!("capability key {} exists; from now on its absence is an error", fact.key)
}

fn epoch_started(fact: EpochStarted) -> String {
    let why = match fact.reason {
        EpochReason::Created => "the journal is created",
        EpochReason::DirtyMark => "a write had begun that nobody had said was synced",
        EpochReason::MarkMissing => "the synced mark was missing",
        EpochReason::MarkUnreadable => "the synced mark was unreadable",
        EpochReason::OtherBoot => "the machine was started anew",
    };
    format!("writer epoch {} begins: {why}", fact.epoch)
}

fn tail_cut(fact: &TailCut) -> String {
    let what = match fact.finding {
        CutFinding::Torn => "a write that did not end",
        CutFinding::Unprovable => "a last block of which nothing can tell whether it was acknowledged",
        CutFinding::Stray => "stray bytes after everything that was written",
    };
    format!(
        "recovery cut {} bytes off segment {} at byte {}: {what} ({}); a copy is kept",
        fact.bytes,
        fact.segment,
        fact.offset,
        cut_finding(fact.finding)
    )
}

#[cfg(test)]
mod tests {
    use protocol::ids::{InstanceId, RunId};

    use super::*;

    #[test]
    fn no_text_from_outside_can_steer_a_terminal() {
        for (text, want) in [
            ("anna", "anna"),
            ("jürgen müller", "jürgen müller"),
            ("\u{1b}[2Jx", "\\u{1b}[2Jx"),
            ("a\u{9b}31m\u{7f}", "a\\u{9b}31m\\u{7f}"),
            ("a\u{202e}b\u{200b}\r\n", "a\\u{202e}b\\u{200b}\\u{d}\\u{a}"),
        ] {
            assert_eq!(harmless(text), want);
        }
    }

    #[test]
    fn ids_are_cut_to_what_the_eye_can_hold() {
        assert_eq!(short(&RunId([0xab; 16])), "run_abababab");
        assert_eq!(tail(&InstanceId([0xcd; 16]), 8), "cdcdcdcd");
        assert_eq!(short(&protocol::digest::Sha256Digest([0xef; 32])), "sha256:efefefefefef");
    }
}
