//! The workflow format, version 1: `workflow.json` as types, and every check that needs no executor.
//!
//! A [`Workflow`] exists only if all checks passed; one that did not pass yields every problem with its
//! place. The published schema ([`WORKFLOW_SCHEMA`]) says the same as far as a schema can. Files are the
//! engine's concern.

mod bind;
mod object;
mod parameters;
mod pattern;
mod problem;
mod protected;
mod read;
mod version;

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde_json::Value;

pub use bind::{BindError, BindFault, MAX_BOUND_BYTES, bind};
pub use parameters::{MAX_PARAMETERS_BYTES, ParameterSpec, ParameterType, Parameters, check_parameters};
pub use pattern::{MAX_PATTERN_CHARS, Pattern, PatternFault};
pub use problem::{MAX_PROBLEMS, Problem, ProblemCode};
pub use protected::Protected;
pub use version::{UNVERSIONED_FILES, bundle_path, bundle_version, workflow_digest};

use crate::canonical_json::parse_strict;
use crate::digest::Sha256Digest;
use crate::event::StepFacts;
use crate::ids::{StepId, WorkflowId};
use crate::time::Millis;
use crate::vocabulary::codes;

/// The version of the format that this code reads.
pub const WORKFLOW_FORMAT: u64 = 1;
/// Name of the file that holds the workflow, at the root of its bundle.
pub const WORKFLOW_FILE: &str = "workflow.json";
/// JSON Schema (draft 2020-12) of `workflow.json`.
pub const WORKFLOW_SCHEMA: &str = include_str!("../schema/workflow.schema.json");
/// Largest bundle, all files together, and so the largest `workflow.json`, in bytes. Source: RULINGS 40.
pub const MAX_BUNDLE_BYTES: u64 = 16 << 20;
/// Most files in a bundle. Source: RULINGS 40.
pub const MAX_BUNDLE_FILES: usize = 10_000;
/// Most steps in a workflow.
pub const MAX_STEPS: usize = 10_000;
/// Most parameters of a workflow.
pub const MAX_PARAMETERS: usize = 256;
/// Most postconditions of a step, and most effects of a step.
pub const MAX_CHECKS: usize = 100;
/// Longest name of a workflow, in characters.
pub const MAX_NAME_CHARS: usize = 80;
/// Longest intent of a step, in characters.
pub const MAX_INTENT_CHARS: usize = 500;
/// Shortest and longest time limit of an action or check.
pub const TIME_LIMITS: (Millis, Millis) = (Millis(100), Millis(600_000));
/// Time limit of an action or check that declares none.
pub const DEFAULT_TIME_LIMIT: Millis = Millis(30_000);
/// Longest settle time.
pub const MAX_SETTLE: Millis = Millis(600_000);
/// Settle time of a workflow that declares none.
pub const DEFAULT_SETTLE: Millis = Millis(2_000);

codes!(
    /// Who does a step.
    Attended {
        /// The engine; where it cannot, the run ends instead of waiting for a person.
        Never = "never",
        /// A person, always; the engine only verifies.
        Always = "always",
        /// The engine; where it cannot, a person is asked.
        OnHalt = "on_halt",
    }
);

codes!(
    /// How strict admission and decisions are.
    Profile {
        /// Synthetic data only; no admission needed.
        Demo = "demo",
        /// Admitted workflows only.
        Standard = "standard",
        /// Admitted workflows only, under the strictest rules.
        Regulated = "regulated",
    }
);

codes!(
    /// What an action does to the outside world.
    EffectClass {
        /// Changes nothing there.
        Read = "read",
        /// May change something there.
        Write = "write",
    }
);

codes!(
    /// What becomes of a step whose guard does not hold.
    OnUnmet {
        /// The run stops at the step.
        Halt = "halt",
        /// The step may be left out.
        Skip = "skip",
    }
);

/// A workflow that passed every check.
#[derive(Clone, Debug, PartialEq)]
pub struct Workflow {
    name: String,
    profile: Profile,
    parameters: Vec<ParameterSpec>,
    settle: Millis,
    steps: Vec<Step>,
}

/// One step of a workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Name, unique in the workflow.
    pub id: StepId,
    /// What the step is for, in a person's words. Protected text.
    pub intent: Protected<String>,
    /// Who does it.
    pub attended: Attended,
    /// What the engine does; absent exactly in a step that a person always does.
    pub action: Option<ActionSpec>,
    /// What must hold before it.
    pub guard: Option<Guard>,
    /// How the source record's identity is proven; absent where it need not be.
    pub identity: Option<Check>,
    /// Its postconditions.
    pub expect: Vec<Check>,
    /// The business facts it must cause.
    pub effects: Vec<EffectSpec>,
    /// Whether its effect matters to the business.
    pub consequential: bool,
}

/// What an executor is asked to do.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionSpec {
    /// Kind of executor, as the deployment names it.
    pub executor: String,
    /// What the action does to the outside world.
    pub effect_class: EffectClass,
    /// Arguments: an object, with references to parameters for [`bind`].
    pub args: Protected<Value>,
    /// How long it may take.
    pub limit: Millis,
}

/// A question that an executor answers by reading.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Kind of executor, as the deployment names it.
    pub executor: String,
    /// Arguments: an object, with references to parameters for [`bind`].
    pub args: Protected<Value>,
    /// Whether it compares with the state before the action, and so cannot be proven again later.
    pub relative: bool,
    /// How long it may take.
    pub limit: Millis,
}

/// What must hold before a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// The question.
    pub check: Check,
    /// What follows from a "no".
    pub on_unmet: OnUnmet,
}

/// A business fact that a step must cause.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectSpec {
    /// Name, unique in the workflow.
    pub id: String,
    /// How it is proven.
    pub proof: EffectProof,
}

/// How an effect is proven.
#[derive(Clone, Debug, PartialEq)]
pub enum EffectProof {
    /// By an independent read, which can be repeated at any time.
    Verify(Check),
    /// By a person's word only.
    Attested,
}

impl Workflow {
    /// Reads `workflow.json` from its bytes.
    ///
    /// # Errors
    /// Every problem, at most [`MAX_PROBLEMS`], in the order of the format; never empty. Text that the strict
    /// parser refuses yields one problem.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Vec<Problem>> {
        let limit = usize::try_from(MAX_BUNDLE_BYTES).unwrap_or(usize::MAX);
        let value = parse_strict(bytes, limit).map_err(|problem| Vec::from([Problem::from(problem)]))?;
        Self::from_value(&value)
    }

    /// Reads a workflow from a value that [`parse_strict`] gave.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    pub fn from_value(value: &Value) -> Result<Self, Vec<Problem>> {
        read::workflow(value)
    }

    /// Its name: people's word for it, and what [`id`](Self::id) is made of.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its opaque name towards agents: the same for every version of the bundle.
    #[must_use]
    pub fn id(&self) -> WorkflowId {
        let digest = Sha256Digest::of(format!("opjournal workflow\0{}", self.name).as_bytes()).to_string();
        // The text is `sha256:` and 64 hex digits, so the 24 digits exist and the id has its form.
        let digits = digest.get(7..31).unwrap_or_default();
        match format!("wf_{digits}").parse() {
            Ok(id) => id,
            Err(_) => unreachable!("24 hex digits of a digest make a workflow id"),
        }
    }

    /// How strict it is.
    #[must_use]
    pub const fn profile(&self) -> Profile {
        self.profile
    }

    /// Its parameters, in the order of the file.
    #[must_use]
    pub fn parameters(&self) -> &[ParameterSpec] {
        &self.parameters
    }

    /// Time after a delivery's limit in which a late effect may still appear. Source: RULINGS 1.
    #[must_use]
    pub const fn settle(&self) -> Millis {
        self.settle
    }

    /// Its steps, in order; 1 to [`MAX_STEPS`].
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The step at `index`, from 0.
    #[must_use]
    pub fn step(&self, index: u32) -> Option<&Step> {
        self.steps.get(usize::try_from(index).ok()?)
    }

    /// How many steps it has.
    #[must_use]
    pub fn step_count(&self) -> u32 {
        count(self.steps.len())
    }

    /// How many effects all its steps declare.
    #[must_use]
    pub fn effect_count(&self) -> u32 {
        count(self.steps.iter().map(|step| step.effects.len()).sum())
    }

    /// What the machine must know of the step at `index`.
    #[must_use]
    pub fn facts(&self, index: u32) -> Option<StepFacts> {
        self.step(index).map(|step| step.facts(index))
    }
}

impl Step {
    /// What the machine must know of this step, without any protected text. `index` is its place, from 0.
    #[must_use]
    pub fn facts(&self, index: u32) -> StepFacts {
        let relative = count(self.expect.iter().filter(|check| check.relative).count());
        let verified = count(self.effects.iter().filter(|effect| effect.verifier().is_some()).count());
        StepFacts {
            index,
            id: self.id.clone(),
            attended: self.attended,
            acts: self.action.as_ref().is_some_and(|action| match action.effect_class {
                EffectClass::Write => true,
                EffectClass::Read => false,
            }),
            consequential: self.consequential,
            skippable: self.guard.as_ref().is_some_and(|guard| match guard.on_unmet {
                OnUnmet::Skip => true,
                OnUnmet::Halt => false,
            }),
            postconditions: count(self.expect.len()).saturating_sub(relative),
            relative,
            effects: verified,
            attested: count(self.effects.len()).saturating_sub(verified),
            identity_required: self.identity.is_some(),
            limit: self.limit(),
        }
    }

    /// How long its longest single call may take: its action or one of its checks.
    #[must_use]
    pub fn limit(&self) -> Millis {
        let checks = self.guard.iter().map(|guard| &guard.check).chain(&self.identity).chain(&self.expect);
        let checks = checks.chain(self.effects.iter().filter_map(EffectSpec::verifier));
        checks
            .map(|check| check.limit)
            .chain(self.action.iter().map(|action| action.limit))
            .max()
            .unwrap_or_default()
    }
}

impl EffectSpec {
    /// The independent read that verifies it, if there is one.
    #[must_use]
    pub const fn verifier(&self) -> Option<&Check> {
        match &self.proof {
            EffectProof::Verify(check) => Some(check),
            EffectProof::Attested => None,
        }
    }
}

/// The format's limits keep every count far below `u32::MAX`.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
