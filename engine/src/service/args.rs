//! What the deployment's executors say of a bundle's arguments, as problems with JSON pointers into `workflow.json`.

use protocol::bundle::{Check, EffectClass, Problem, ProblemCode, Workflow};
use serde_json::Value;

use super::executor::Deployment;
use super::ports::ArgsPurpose;

/// Every problem that the deployment's executors see in a workflow's arguments. Executor kinds that the deployment has
/// not are left to `executor_missing`.
#[must_use]
pub fn check_executor_args(workflow: &Workflow, deployment: &Deployment) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut judge = |kind: &str, purpose: ArgsPurpose, args: &Value, pointer: String| {
        let Some(factory) = deployment.factory(kind) else { return };
        for fault in factory.check_args(purpose, args).err().unwrap_or_default() {
            problems.push(Problem {
                pointer: format!("{pointer}/args{}", fault.pointer),
                code: ProblemCode::InvalidValue,
                message: fault.message,
            });
        }
    };
    for (index, step) in workflow.steps().iter().enumerate() {
        let at = format!("/steps/{index}");
        if let Some(action) = &step.action {
            let purpose = match action.effect_class {
                EffectClass::Read => ArgsPurpose::Read,
                EffectClass::Write => ArgsPurpose::Write,
            };
            judge(&action.executor, purpose, action.args.expose(), format!("{at}/action"));
        }
        let mut check = |check: &Check, pointer: String| {
            judge(&check.executor, ArgsPurpose::Check, check.args.expose(), pointer)
        };
        if let Some(guard) = &step.guard {
            check(&guard.check, format!("{at}/guard/check"));
        }
        if let Some(identity) = &step.identity {
            check(identity, format!("{at}/identity"));
        }
        for (number, postcondition) in step.expect.iter().enumerate() {
            check(postcondition, format!("{at}/expect/{number}"));
        }
        for (number, effect) in step.effects.iter().enumerate() {
            if let Some(verifier) = effect.verifier() {
                check(verifier, format!("{at}/effects/{number}/verify"));
            }
        }
    }
    problems
}
