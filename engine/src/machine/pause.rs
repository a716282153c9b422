//! Pauses: how one is opened, what it allows as it stands, and how it expires.
//! Source: DESIGN §4.2, attended-contract §2 and §3, RULINGS 14 and 15.

use alloc::format;
use alloc::vec::Vec;

use protocol::bundle::Attended;
use protocol::command::Finding;
use protocol::decision::Action;
use protocol::delivery::DeliveryState;
use protocol::digest::Sha256Digest;
use protocol::event::{PauseOpened, StepFacts};
use protocol::ids::{AttentionId, PauseId};
use protocol::pause::{Category, IdentityStatus};

use super::capability;
use super::context::Context;
use super::state::{Pause, Run, State};
use super::work::Work;

/// The pause's name towards agents: stable, and says nothing about the pause.
#[must_use]
pub fn attention_id(pause: PauseId) -> AttentionId {
    let mut labelled = Vec::from(*b"opjournal/v1/attention\0");
    labelled.extend_from_slice(&pause.0);
    let digest = Sha256Digest::of(&labelled).0;
    let text = digest[..12].iter().fold(alloc::string::String::new(), |mut text, byte| {
        text.push_str(&format!("{byte:02x}"));
        text
    });
    match text.parse() {
        Ok(id) => id,
        Err(_) => unreachable!("24 lower-case hex digits are an attention id"),
    }
}

/// Opens a pause at the cursor and issues its first capability. The lease is left as it is.
///
/// Where the delivery is not known, no category that comes later in the order hides that.
pub(super) fn open(work: &mut Work<'_, '_>, step: &StepFacts, finding: &Finding) -> AttentionId {
    let pause = work.cx.fresh.pause;
    let attention = attention_id(pause);
    let delivery = work.run.delivery_state();
    let category = match delivery {
        DeliveryState::Unknown => finding.category.min(Category::DeliveryUncertain),
        DeliveryState::NotDelivered | DeliveryState::Delivered => finding.category,
    };
    let opened = PauseOpened {
        run: work.run.id(),
        pause,
        attention: attention.clone(),
        step: step.clone(),
        cursor: work.run.cursor.clone(),
        category,
        reason: finding.reason,
        delivery,
        last_delivery: work.run.crossing.as_ref().map(|crossing| crossing.delivery),
        lineage_head: work.run.lineage_head(),
        evidence: finding.evidence.clone(),
        identity_status: finding.identity_status,
        identity: finding.identity,
        baseline: finding.baseline,
        expires: work.cx.now.after(work.cx.limits.pause_ms),
    };
    work.push(opened);
    capability::issue(work);
    attention
}

/// What the pause allows in the state as it is now, in the order of [`Action::ALL`]. The step decides, not the caller.
#[must_use]
pub fn allowed_actions(run: &Run, pause: &Pause) -> Vec<Action> {
    let step = &pause.opened.step;
    let delivery = run.delivery_state();
    let checkable = step.postconditions.saturating_add(step.effects) > 0;
    let identity_fits = match pause.opened.identity_status {
        IdentityStatus::Verified => true,
        IdentityStatus::Mismatch => false,
        IdentityStatus::NotRequired | IdentityStatus::Unverified => !step.identity_required,
    };
    Action::ALL
        .iter()
        .copied()
        .filter(|action| match action {
            Action::Continue => {
                delivery != DeliveryState::Unknown
                    && checkable
                    && (step.relative == 0 || pause.opened.baseline)
                    && step.attested == 0
                    && identity_fits
            }
            Action::Skip => !step.consequential && step.skippable && delivery == DeliveryState::NotDelivered,
            Action::Reject => !delivery.may_have_happened(),
            Action::Reconcile => delivery.may_have_happened(),
            Action::Teach | Action::Escalate => true,
        })
        .collect()
}

/// Whether the pause itself has expired, recorded or not.
pub(super) fn has_expired(pause: &Pause, cx: &Context<'_>, state: &State) -> bool {
    pause.expired || pause.opened.expires.has_passed(&cx.now, state.latest_wall)
}

/// Whether `resume RUN` may close this pause and check its step again: when it expired, or when something stopped the
/// engine that may be gone by now. A step that waits for a person's own work, and a delivery that may have happened
/// without a receipt, are never checked away.
pub(super) fn may_be_rechecked(run: &Run, pause: &Pause, expired: bool) -> bool {
    match run.delivery_state() {
        DeliveryState::Unknown => false,
        DeliveryState::Delivered => expired,
        DeliveryState::NotDelivered => {
            let waits_for_person = match pause.opened.step.attended {
                Attended::Always => pause.opened.category == Category::AttendedStep,
                Attended::Never | Attended::OnHalt => false,
            };
            expired || !waits_for_person
        }
    }
}
