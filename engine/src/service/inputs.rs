//! What a run works with: its bundle, its bound parameters and its salt, read from the home and checked against what
//! was admitted; and the bundle's steps as the machine knows them.

use std::collections::BTreeMap;

use protocol::bundle::{self, Check, EffectClass, OnUnmet, Step, Workflow};
use protocol::canonical_json;
use protocol::capability::CapabilityKey;
use protocol::digest::{MacDigest, Sha256Digest};
use protocol::event::{RunAdmitted, StepFacts};
use protocol::ids::DeliveryId;
use protocol::refusal::Refusal;
use protocol::time::Millis;
use serde_json::Value;

use crate::machine::LiveFacts;

use super::bundle::Bundle;
use super::executor::Deployment;
use super::home::{Home, protected_digest};

/// A run's protected inputs, checked.
pub(super) struct Inputs {
    pub(super) bundle: Bundle,
    pub(super) parameters: BTreeMap<String, Value>,
    pub(super) salt: CapabilityKey,
}

impl Inputs {
    /// Loads them.
    ///
    /// # Errors
    /// `bundle_mismatch`, `state_diverged` or `evidence_missing`.
    pub(super) fn load(home: &Home, admitted: &RunAdmitted) -> Result<Self, Refusal> {
        let bundle = Bundle::load(&home.bundle(admitted.bundle)).map_err(|_| Refusal::BundleMismatch)?;
        if bundle.version != admitted.bundle {
            return Err(Refusal::BundleMismatch);
        }
        let salt = home.salt(admitted.run).map_err(|_| Refusal::EvidenceMissing)?;
        let bytes = home.parameters(admitted.run).map_err(|_| Refusal::EvidenceMissing)?;
        if protected_digest(&salt, &bytes) != admitted.parameters {
            return Err(Refusal::StateDiverged);
        }
        let parameters = serde_json::from_slice(&bytes).map_err(|_| Refusal::StateDiverged)?;
        Ok(Self { bundle, parameters, salt })
    }

    pub(super) fn workflow(&self) -> &Workflow {
        &self.bundle.workflow
    }

    /// Salted digest of a protected value.
    pub(super) fn digest(&self, bytes: &[u8]) -> MacDigest {
        protected_digest(&self.salt, bytes)
    }

    /// Fills parameters into arguments.
    ///
    /// # Errors
    /// `invalid_bundle` for a reference to nothing, which a checked bundle does not hold.
    pub(super) fn bind(&self, args: &Value, delivery: Option<&DeliveryId>) -> Result<Value, Refusal> {
        bundle::bind(args, &self.parameters, delivery).map_err(|_| Refusal::InvalidBundle)
    }
}

/// What the service reads just before a command on this run. Source: attended-contract §4, rows 11, 12 and 15.
pub(super) fn live_facts(home: &Home, deployment: &Deployment, admitted: &RunAdmitted) -> LiveFacts {
    let bundle = Bundle::load(&home.bundle(admitted.bundle)).ok();
    let salt = home.salt(admitted.run).ok();
    let parameters = match (&salt, home.parameters(admitted.run)) {
        (Some(salt), Ok(bytes)) => Some(protected_digest(salt, &bytes)),
        (Some(_) | None, _) => None,
    };
    LiveFacts {
        bundle: bundle.as_ref().map(|bundle| bundle.version),
        parameters,
        policy: salt.as_ref().and_then(|salt| policy_digest(deployment, salt)),
        executor: bundle.is_some_and(|bundle| serves(deployment, &bundle.workflow)),
    }
}

/// Digest of the policy and deployment in force; none without a deployment. The deployment enters as a salted digest,
/// since its target may be protected.
pub(super) fn policy_digest(deployment: &Deployment, salt: &CapabilityKey) -> Option<Sha256Digest> {
    if deployment.is_empty() {
        return None;
    }
    let fingerprint = canonical_json::bytes_of(&deployment.fingerprint());
    let policy = BTreeMap::from([
        ("deployment", Value::String(protected_digest(salt, &fingerprint).to_string())),
        ("format", Value::from(1)),
    ]);
    Some(canonical_json::digest_of(&policy))
}

/// Whether the deployment has every executor kind that the workflow names.
pub(super) fn serves(deployment: &Deployment, workflow: &Workflow) -> bool {
    kinds(workflow).all(|kind| deployment.factory(kind).is_some())
}

fn kinds(workflow: &Workflow) -> impl Iterator<Item = &str> {
    workflow.steps().iter().flat_map(|step| {
        step.action
            .iter()
            .map(|action| action.executor.as_str())
            .chain(checks(step).map(|check| check.executor.as_str()))
    })
}

/// Every check of a step.
pub(super) fn checks(step: &Step) -> impl Iterator<Item = &Check> {
    step.guard
        .iter()
        .map(|guard| &guard.check)
        .chain(step.identity.iter())
        .chain(step.expect.iter())
        .chain(step.effects.iter().filter_map(|effect| effect.verify.as_ref()))
}

/// Time limit of a person's step for the lease: what its slowest check may take.
fn limit(step: &Step) -> Millis {
    let action = step.action.as_ref().map(|action| action.time_limit);
    action.into_iter().chain(checks(step).map(|check| check.time_limit)).max().unwrap_or(Millis::from_secs(30))
}

/// The step as the machine knows it: no protected text.
pub(super) fn facts(step: &Step, index: u32) -> StepFacts {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    StepFacts {
        index,
        id: step.id.clone(),
        attended: step.attended,
        acts: step.action.as_ref().is_some_and(|action| match action.effect_class {
            EffectClass::Write => true,
            EffectClass::Read => false,
        }),
        consequential: step.consequential,
        skippable: step.guard.as_ref().is_some_and(|guard| match guard.on_unmet {
            OnUnmet::Skip => true,
            OnUnmet::Halt => false,
        }),
        postconditions: count(step.expect.iter().filter(|check| !check.relative).count()),
        relative: count(step.expect.iter().filter(|check| check.relative).count()),
        effects: count(step.effects.iter().filter(|effect| effect.verify.is_some()).count()),
        attested: count(step.effects.iter().filter(|effect| effect.verify.is_none()).count()),
        identity_required: step.identity.is_some(),
        limit: limit(step),
    }
}
