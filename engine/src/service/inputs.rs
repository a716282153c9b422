//! What a run works with: its bundle, its bound parameters and its salt, read from the home and checked against what
//! was admitted.

use std::collections::BTreeMap;

use protocol::bundle::{self, Check, EffectSpec, Parameters, Protected, Step, Workflow};
use protocol::canonical_json;
use protocol::capability::CapabilityKey;
use protocol::digest::{MacDigest, Sha256Digest};
use protocol::event::RunAdmitted;
use protocol::ids::DeliveryId;
use protocol::refusal::Refusal;
use serde_json::Value;

use crate::machine::LiveFacts;

use super::bundle::Bundle;
use super::executor::Deployment;
use super::home::{Home, protected_digest};

/// A run's protected inputs, checked.
pub(super) struct Inputs {
    pub(super) bundle: Bundle,
    pub(super) parameters: Parameters,
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
        let given: Value = serde_json::from_slice(&bytes).map_err(|_| Refusal::StateDiverged)?;
        let parameters = bundle::check_parameters(bundle.workflow.parameters(), &given)
            .map_err(|_| Refusal::StateDiverged)?;
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
    pub(super) fn bind(
        &self,
        args: &Protected<Value>,
        delivery: Option<&DeliveryId>,
    ) -> Result<Value, Refusal> {
        bundle::bind(args.expose(), &self.parameters, delivery).map_err(|_| Refusal::InvalidBundle)
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
        // No executor of this version has a child process.
        child_lives: false,
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
        .chain(step.effects.iter().filter_map(EffectSpec::verifier))
}
