//! Capabilities: what one binds, and whether the state is still what it was issued for.
//! Source: attended-contract §3.

use alloc::boxed::Box;

use protocol::canonical_json;
use protocol::capability::{CAPABILITY_FORMAT, Capability, CapabilityClaims, Transition};
use protocol::digest::Sha256Digest;
use protocol::event::CapabilityIssued;
use protocol::refusal::Refusal;

use super::context::Context;
use super::lineage;
use super::pause::allowed_actions;
use super::state::{Pause, Run};
use super::work::Work;

/// Issues the next capability of the run's open pause; the one before is retired. Without a key nothing is issued, and
/// every decision on the pause answers `capability_invalid`; once the key is back, the next look at the pause issues one
/// ([`issue_if_none`]).
pub(super) fn issue(work: &mut Work<'_, '_>) {
    let (Some(pause), Some(key)) = (&work.run.pause, work.cx.key) else { return };
    let claims = claims(&work.run, pause, work.run.capabilities.saturating_add(1), work.cx);
    let capability = Box::new(claims.sign(key));
    work.push(CapabilityIssued { run: work.run.id(), capability });
}

fn claims(run: &Run, pause: &Pause, sequence: u64, cx: &Context<'_>) -> CapabilityClaims {
    let opened = &pause.opened;
    let resume_from = run.cursor.next();
    let transition = transition(run);
    CapabilityClaims {
        format: CAPABILITY_FORMAT,
        sequence,
        journal: cx.journal,
        pause: opened.pause,
        run: run.id(),
        workflow: run.admitted.workflow.clone(),
        bundle: run.admitted.bundle,
        step_index: opened.step.index,
        step_id: opened.step.id.clone(),
        cursor: run.cursor.digest(),
        resume_from: resume_from.step(),
        pause_digest: opened.digest(),
        lineage_head: run.lineage_head(),
        parameters: run.admitted.parameters,
        policy: run.admitted.policy,
        transition,
        transition_digest: canonical_json::digest_of(&(transition, resume_from)),
        delivery: run.delivery_state(),
        identity_required: opened.step.identity_required,
        identity_status: opened.identity_status,
        issued_at: cx.now.wall,
        expires: cx.now.after(cx.limits.capability_ms),
        allowed: allowed_actions(run, pause),
    }
}

fn transition(run: &Run) -> Transition {
    if run.cursor.next().step() >= run.admitted.steps { Transition::Finish } else { Transition::NextStep }
}

/// Issues a capability for an open pause that has none because the key was missing when it was opened. Says whether it
/// did.
pub(super) fn issue_if_none(work: &mut Work<'_, '_>) -> bool {
    let before = work.run.capabilities;
    if work.run.pause.as_ref().is_some_and(|pause| pause.capability.is_none()) {
        issue(work);
    }
    work.run.capabilities != before
}

/// Rows 7 and 8 of the decision table: the presented digest is the current capability's, and its signature verifies.
pub(super) fn check_presented<'p>(
    pause: &'p Pause,
    presented: Sha256Digest,
    cx: &Context<'_>,
) -> Result<&'p Capability, Refusal> {
    let Some(capability) = &pause.capability else { return Err(Refusal::CapabilityInvalid) };
    if capability.digest() != presented {
        return Err(Refusal::StaleCapability);
    }
    match cx.key {
        Some(key) if capability.verifies(key) => Ok(capability),
        Some(_) | None => Err(Refusal::CapabilityInvalid),
    }
}

/// Rows 11 and 12: bundle, pause, lineage, cursor, parameters and policy are what the capability was issued for.
///
/// What lies in files comes from `cx.live`, read just now. A policy can be compared only where this process has a
/// deployment; without one it has no executor either, and row 15 answers for the actions that need it. The delivery state is not compared: a delivery
/// that becomes uncertain does not retire the capability (RULINGS 14).
pub(super) fn check_unchanged(
    run: &Run,
    pause: &Pause,
    capability: &Capability,
    cx: &Context<'_>,
) -> Result<(), Refusal> {
    let claims = &capability.claims;
    if cx.live.bundle != Some(claims.bundle) || run.admitted.bundle != claims.bundle {
        return Err(Refusal::BundleMismatch);
    }
    let unchanged = claims.journal == cx.journal
        && claims.run == run.id()
        && claims.pause == pause.opened.pause
        && claims.pause_digest == pause.opened.digest()
        && claims.lineage_head == run.lineage_head()
        && claims.cursor == run.cursor.digest()
        && claims.step_index == run.cursor.step()
        && claims.transition == transition(run)
        && claims.parameters == run.admitted.parameters
        && cx.live.parameters == Some(claims.parameters)
        && cx.live.policy.map_or(!cx.live.executor, |policy| policy == claims.policy)
        && lineage::is_proven(run);
    if unchanged { Ok(()) } else { Err(Refusal::StateDiverged) }
}
