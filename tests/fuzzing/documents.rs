//! What comes from outside as JSON.

use std::collections::BTreeMap;

use protocol::bundle::{Problem, Workflow, bind, check_parameters};
use protocol::canonical_json::{MAX_DEPTH, digest_of, parse_strict, to_canonical};
use protocol::decision::{DecisionRequest, MAX_REQUEST_BYTES};
use protocol::refusal::Refusal;
use serde_json::Value;

use super::base::broken;
use crate::{Judged, rule};

const VALUE_BYTES_MAX: usize = 1 << 16;

/// What the strict parser takes has one canonical form, and that form means the same.
///
/// # Errors
/// The rule that was broken.
pub fn canonical_json(bytes: &[u8]) -> Judged {
    let value = match parse_strict(bytes, VALUE_BYTES_MAX) {
        Ok(value) => value,
        Err(problem) => return pointer(&problem.pointer),
    };
    rule(bytes.len() <= VALUE_BYTES_MAX, || "more bytes than allowed".to_owned())?;
    rule(depth(&value) <= MAX_DEPTH, || format!("{} levels deep", depth(&value)))?;
    let canonical = to_canonical(&value).map_err(broken("a value that was taken has no canonical form"))?;
    let again = parse_strict(&canonical, usize::MAX).map_err(broken("a canonical form is refused"))?;
    rule(again == value, || format!("{value} became {again}"))?;
    let twice = to_canonical(&again).map_err(broken("the canonical form of a canonical form"))?;
    rule(twice == canonical, || format!("{value} has two canonical forms"))?;
    // Another parser of our dependencies reads the same out of it.
    let other: Value =
        serde_json::from_slice(&canonical).map_err(broken("serde_json refuses a canonical form"))?;
    rule(digest_of(&other) == digest_of(&value), || format!("{value} is {other} to serde_json"))
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// A JSON pointer, in the form of RFC 6901.
fn pointer(text: &str) -> Judged {
    rule(text.is_empty() || text.starts_with('/'), || format!("no JSON pointer: {text}"))
}

/// A decision request is taken as it is, or refused as invalid; what is taken survives its text.
///
/// # Errors
/// The rule that was broken.
pub fn decision_request(bytes: &[u8]) -> Judged {
    let request = match DecisionRequest::from_json(bytes) {
        Ok(request) => request,
        Err(refusal) => {
            return rule(refusal == Refusal::InvalidRequest, || format!("refused as {refusal:?}"));
        }
    };
    rule(bytes.len() <= MAX_REQUEST_BYTES, || "more bytes than allowed".to_owned())?;
    let text = serde_json::to_vec(&request).map_err(broken("a request as JSON"))?;
    let again =
        DecisionRequest::from_json(&text).map_err(|refusal| crate::Violation(format!("{refusal:?}")))?;
    rule(again == request && again.digest() == request.digest(), || format!("{request:?} became {again:?}"))?;
    rule(request.disposition.is_none_or(|disposition| disposition.action() == request.action), || {
        format!("the disposition of another action: {request:?}")
    })
}

/// A workflow is read whole or refused with places; what is read can be counted, described and bound. After a line with
/// `---` may stand parameters for it.
///
/// # Errors
/// The rule that was broken.
pub fn workflow(bytes: &[u8]) -> Judged {
    const BREAK: &[u8] = b"\n---\n";
    let at = bytes.windows(BREAK.len()).position(|window| window == BREAK);
    let (text, given) = at.map_or((bytes, &b"{}"[..]), |at| (&bytes[..at], &bytes[at + BREAK.len()..]));
    let workflow = match Workflow::from_json(text) {
        Ok(workflow) => workflow,
        Err(problems) => return listed(&problems),
    };
    let steps = workflow.steps();
    rule(!steps.is_empty() && workflow.step_count() as usize == steps.len(), || "no steps".to_owned())?;
    let facts: Vec<_> = (0..workflow.step_count()).filter_map(|index| workflow.facts(index)).collect();
    let effects: u32 = facts.iter().map(|facts| facts.effects + facts.attested).sum();
    rule(facts.len() == steps.len() && effects == workflow.effect_count(), || format!("{facts:?}"))?;
    rule(workflow.facts(workflow.step_count()).is_none(), || "a step after the last".to_owned())?;
    let given = parse_strict(given, VALUE_BYTES_MAX).unwrap_or(Value::Null);
    let parameters = match check_parameters(workflow.parameters(), &given) {
        Ok(parameters) => parameters,
        Err(problems) => return listed(&problems),
    };
    bound(&workflow, &parameters)
}

/// Whatever the parameters, binding fills in every reference or says where it cannot.
fn bound(workflow: &Workflow, parameters: &BTreeMap<String, Value>) -> Judged {
    for action in workflow.steps().iter().filter_map(|step| step.action.as_ref()) {
        if let Err(error) = bind(action.args.expose(), parameters, None) {
            pointer(&error.pointer)?;
        }
    }
    Ok(())
}

fn listed(problems: &[Problem]) -> Judged {
    rule(!problems.is_empty(), || "refused without a problem".to_owned())?;
    for problem in problems {
        pointer(&problem.pointer)?;
        rule(!problem.message.is_empty(), || format!("no sentence for {:?}", problem.code))?;
    }
    Ok(())
}
