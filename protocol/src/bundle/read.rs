//! Reads a workflow from JSON and finds every problem on the way, not only the first.
//!
//! Each function answers `None` only after it has added a problem, and goes on past it where it can.

use alloc::format;
use alloc::vec::Vec;

use serde_json::Value;

use super::bind::Declared;
use super::object::{Names, Object, all};
use super::parameters::{ParameterSpec, ParameterType};
use super::pattern::Pattern;
use super::problem::{At, Problem, ProblemCode, Problems};
use super::protected::Protected;
use super::{
    ActionSpec, Attended, Check, DEFAULT_SETTLE, EffectClass, EffectProof, EffectSpec, Guard, MAX_CHECKS,
    MAX_INTENT_CHARS, MAX_NAME_CHARS, MAX_PARAMETERS, MAX_SETTLE, MAX_STEPS, OnUnmet, Profile, Step,
    Workflow,
};
use crate::ids::StepId;
use crate::time::Millis;

/// Names that requests to run a workflow use for themselves. Source: RULINGS 21.
const RESERVED_NAMES: [&str; 3] = ["request_id", "target_url_override", "wait_seconds"];

/// Longest `max_length` of a text parameter.
const MAX_TEXT_CHARS: u64 = 262_144;

/// Reads the whole document.
pub(super) fn workflow(value: &Value) -> Result<Workflow, Vec<Problem>> {
    let mut problems = Problems::default();
    let workflow = read_workflow(value, &mut problems);
    problems.finish(workflow)
}

fn read_workflow(value: &Value, problems: &mut Problems) -> Option<Workflow> {
    let at = At::ROOT;
    let fields = ["format", "name", "profile", "parameters", "settle_ms", "steps"];
    let object = Object::open(value, &at, &fields, problems)?;
    let format = object.format(problems);
    let name = object.text("name", problems).and_then(|name| {
        let valid = name.len() <= MAX_NAME_CHARS
            && name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            && name.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-')
            });
        object.valid(
            "name",
            name,
            valid,
            "1 to 80 of a-z, 0-9, _ and -, the first a letter or digit",
            problems,
        )
    });
    let profile = object.choice("profile", Some(Profile::Demo), Profile::from_text, Profile::TEXTS, problems);
    let items = object.list("parameters", false, 0..=MAX_PARAMETERS, problems);
    let parameters = items.and_then(|items| read_parameters(items, &at.name("parameters"), problems));
    let settle = object.number("settle_ms", Some(DEFAULT_SETTLE.0), 0..=MAX_SETTLE.0, problems).map(Millis);
    let declared = items.map(declared_names).unwrap_or_default();
    let steps = object
        .list("steps", true, 1..=MAX_STEPS, problems)
        .and_then(|items| read_steps(items, &at.name("steps"), &declared, problems));
    format?;
    Some(Workflow {
        name: name?.into(),
        profile: profile?,
        parameters: parameters?,
        settle: settle?,
        steps: steps?,
    })
}

/// The names that references may use, from declarations with other problems, too.
fn declared_names(items: &[Value]) -> Declared<'_> {
    let required = |item: &Value| item.get("required").and_then(Value::as_bool).unwrap_or(true);
    items.iter().filter_map(|item| Some((item.get("name")?.as_str()?, required(item)))).collect()
}

fn read_parameters(items: &[Value], at: &At<'_>, problems: &mut Problems) -> Option<Vec<ParameterSpec>> {
    let mut names = Names::default();
    all(items
        .iter()
        .enumerate()
        .map(|(index, item)| read_parameter(item, &at.index(index), &mut names, problems)))
}

fn read_parameter(
    value: &Value,
    at: &At<'_>,
    names: &mut Names,
    problems: &mut Problems,
) -> Option<ParameterSpec> {
    let object = Object::open(value, at, &["name", "type", "required", "pattern", "max_length"], problems)?;
    let name = object.name("name", problems).and_then(|name| {
        if RESERVED_NAMES.contains(&name) {
            let message = "The engine uses this name itself; choose another one.";
            return problems.add(&at.name("name"), ProblemCode::ReservedName, message);
        }
        names.claim(name, at, "name", problems)
    });
    let kind = object.choice("type", None, ParameterType::from_text, ParameterType::TEXTS, problems);
    let required = object.flag("required", Some(true), problems);
    let pattern = match object.get("pattern") {
        None => Some(None),
        Some(_) => object.text("pattern", problems).and_then(|source| match Pattern::new(source) {
            Ok(pattern) => Some(Some(pattern)),
            Err(fault) => problems.add(&at.name("pattern"), ProblemCode::InvalidPattern, fault.sentence()),
        }),
    };
    let max_length = match object.get("max_length") {
        None => Some(None),
        Some(_) => object
            .number("max_length", None, 1..=MAX_TEXT_CHARS, problems)
            .map(|longest| u32::try_from(longest).ok()),
    };
    let kind = kind?;
    let text_only = match kind {
        ParameterType::String => &[][..],
        ParameterType::Integer | ParameterType::Number | ParameterType::Boolean => {
            &["pattern", "max_length"][..]
        }
    };
    for field in text_only.iter().filter(|field| object.get(field).is_some()) {
        let message = format!("`{field}` is for parameters of type string only; remove it.");
        problems.add::<()>(&at.name(field), ProblemCode::NotAllowedHere, message);
    }
    Some(ParameterSpec {
        name: name?.into(),
        kind,
        required: required?,
        pattern: pattern?,
        max_length: max_length?,
    })
}

fn read_steps(
    items: &[Value],
    at: &At<'_>,
    declared: &Declared<'_>,
    problems: &mut Problems,
) -> Option<Vec<Step>> {
    let mut steps = Names::default();
    let mut effects = Names::default();
    all(items
        .iter()
        .enumerate()
        .map(|(index, item)| read_step(item, &at.index(index), declared, &mut steps, &mut effects, problems)))
}

fn read_step(
    value: &Value,
    at: &At<'_>,
    declared: &Declared<'_>,
    step_names: &mut Names,
    effect_names: &mut Names,
    problems: &mut Problems,
) -> Option<Step> {
    let fields =
        ["id", "intent", "attended", "action", "guard", "identity", "expect", "effects", "consequential"];
    let object = Object::open(value, at, &fields, problems)?;
    let id = object.text("id", problems).and_then(|text| {
        let id: Option<StepId> = text.parse().ok();
        object.valid(
            "id",
            text,
            id.is_some(),
            "1 to 64 of a-z, 0-9, _ and -, the first a letter",
            problems,
        )?;
        step_names.claim(text, at, "id", problems)?;
        id
    });
    let intent = object.text("intent", problems).and_then(|text| {
        let valid = !text.is_empty()
            && text.chars().nth(MAX_INTENT_CHARS).is_none()
            && !text.chars().any(char::is_control);
        object.valid("intent", text, valid, "1 to 500 characters without control characters", problems)
    });
    let attended =
        object.choice("attended", Some(Attended::OnHalt), Attended::from_text, Attended::TEXTS, problems);
    let scope = Scope { declared, relative: false };
    let action =
        object.nested("action", problems, |value, at, problems| read_action(value, at, declared, problems));
    let guard =
        object.nested("guard", problems, |value, at, problems| read_guard(value, at, scope, problems));
    let identity =
        object.nested("identity", problems, |value, at, problems| read_check(value, at, scope, problems));
    let expect = object.list("expect", false, 0..=MAX_CHECKS, problems).and_then(|items| {
        let (at, scope) = (at.name("expect"), Scope { relative: true, ..scope });
        all(items.iter().enumerate().map(|(index, item)| read_check(item, &at.index(index), scope, problems)))
    });
    let effects = object.list("effects", false, 0..=MAX_CHECKS, problems).and_then(|items| {
        let at = at.name("effects");
        all(items
            .iter()
            .enumerate()
            .map(|(index, item)| read_effect(item, &at.index(index), scope, effect_names, problems)))
    });
    let consequential = object.flag("consequential", None, problems);
    check_step(&object, attended, problems);
    Some(Step {
        id: id?,
        intent: Protected::new(intent?.into()),
        attended: attended?,
        action: action?,
        guard: guard?,
        identity: identity?,
        expect: expect?,
        effects: effects?,
        consequential: consequential?,
    })
}

/// The rules that bind the members of a step to each other. Looks at the text itself, so that another problem
/// in the step hides none of these.
fn check_step(step: &Object<'_>, attended: Option<Attended>, problems: &mut Problems) {
    let at = step.at;
    let items = |field| step.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let inner = |field, inner| step.get(field).and_then(|value| value.get(inner)).and_then(Value::as_str);
    let consequential = step.get("consequential").and_then(Value::as_bool) == Some(true);
    let verified = items("effects").iter().any(|effect| effect.get("verify").is_some());
    let attested = items("effects").iter().any(|effect| effect.get("attested").is_some());
    let mut add = |at: &At<'_>, code, message: &str| {
        problems.add::<()>(at, code, message);
    };
    match (attended, step.get("action")) {
        (Some(Attended::Always), Some(_)) => add(
            &at.name("action"),
            ProblemCode::AttendedWithAction,
            "A person always does this step, so the engine has nothing to do; \
             remove `action`, or say `on_halt`.",
        ),
        (Some(Attended::Always), None) if items("expect").is_empty() && !verified => add(
            at,
            ProblemCode::NothingToVerify,
            "Nothing here shows that the person did it; add `expect`, or an effect with `verify`.",
        ),
        (Some(Attended::Never | Attended::OnHalt), None) => add(
            &at.name("action"),
            ProblemCode::MissingField,
            "`action` is missing; add it, or say `\"attended\": \"always\"` if a person does this step.",
        ),
        (Some(Attended::Always | Attended::Never | Attended::OnHalt) | None, _) => {}
    }
    match inner("action", "effect_class").and_then(EffectClass::from_text) {
        Some(EffectClass::Read) => {
            if consequential {
                add(
                    &at.name("consequential"),
                    ProblemCode::ConsequentialRead,
                    "A read changes nothing; say `\"consequential\": false`, or make the action a `write`.",
                );
            }
            if !items("effects").is_empty() {
                add(
                    &at.name("effects"),
                    ProblemCode::ReadWithEffects,
                    "A read has no effects; use `expect`, or make the action a `write`.",
                );
            }
        }
        Some(EffectClass::Write) if attended == Some(Attended::Always) => {}
        Some(EffectClass::Write) if !verified => add(
            &at.name("effects"),
            ProblemCode::NoVerifier,
            "A write needs an effect with `verify`: an independent read that shows it happened, \
             for nothing else can settle it when its answer is lost.",
        ),
        Some(EffectClass::Write) if attested => add(
            &at.name("effects"),
            ProblemCode::NotAllowedHere,
            "No read can settle an effect that only a person can attest; \
             declare it in a step that a person always does.",
        ),
        Some(EffectClass::Write) | None => {}
    }
    if consequential && inner("guard", "on_unmet") == Some(OnUnmet::Skip.as_str()) {
        add(
            &at.name("guard").name("on_unmet"),
            ProblemCode::ConsequentialSkip,
            "A consequential step may not be left out; say `halt`.",
        );
    }
}

fn read_action(
    value: &Value,
    at: &At<'_>,
    declared: &Declared<'_>,
    problems: &mut Problems,
) -> Option<ActionSpec> {
    let object = Object::open(value, at, &["executor", "effect_class", "args", "time_limit_ms"], problems)?;
    let executor = object.name("executor", problems);
    let effect_class =
        object.choice("effect_class", None, EffectClass::from_text, EffectClass::TEXTS, problems);
    let args = object.args(declared, true, problems);
    let limit = object.time_limit(problems);
    Some(ActionSpec { executor: executor?.into(), effect_class: effect_class?, args: args?, limit: limit? })
}

/// What a check may use: the declared parameters, and `relative`.
#[derive(Clone, Copy)]
struct Scope<'a> {
    declared: &'a Declared<'a>,
    relative: bool,
}

fn read_check(value: &Value, at: &At<'_>, scope: Scope<'_>, problems: &mut Problems) -> Option<Check> {
    let object = Object::open(value, at, &["executor", "args", "relative", "time_limit_ms"], problems)?;
    let executor = object.name("executor", problems);
    let args = object.args(scope.declared, false, problems);
    let relative = object.flag("relative", Some(false), problems);
    if relative == Some(true) && !scope.relative {
        problems.add::<()>(
            &at.name("relative"),
            ProblemCode::RelativeNotAllowed,
            "Only a check in `expect` may compare with the state before the action; this one \
             is read at other times, too.",
        );
    }
    let limit = object.time_limit(problems);
    Some(Check { executor: executor?.into(), args: args?, relative: relative?, limit: limit? })
}

fn read_guard(value: &Value, at: &At<'_>, scope: Scope<'_>, problems: &mut Problems) -> Option<Guard> {
    let object = Object::open(value, at, &["check", "on_unmet"], problems)?;
    let check = object
        .required("check", problems)
        .and_then(|value| read_check(value, &at.name("check"), scope, problems));
    let on_unmet = object.choice("on_unmet", None, OnUnmet::from_text, OnUnmet::TEXTS, problems);
    Some(Guard { check: check?, on_unmet: on_unmet? })
}

fn read_effect(
    value: &Value,
    at: &At<'_>,
    scope: Scope<'_>,
    names: &mut Names,
    problems: &mut Problems,
) -> Option<EffectSpec> {
    let object = Object::open(value, at, &["id", "verify", "attested"], problems)?;
    let id = object.name("id", problems).and_then(|id| names.claim(id, at, "id", problems));
    let proof = match (object.get("verify"), object.get("attested")) {
        (Some(check), None) => {
            read_check(check, &at.name("verify"), scope, problems).map(EffectProof::Verify)
        }
        (None, Some(Value::Bool(true))) => Some(EffectProof::Attested),
        (None, Some(Value::Bool(false))) => problems.add(
            &at.name("attested"),
            ProblemCode::InvalidValue,
            "`attested` is either true or absent; give `verify` instead.",
        ),
        (None, Some(_)) => object.flag("attested", None, problems).map(|_| EffectProof::Attested),
        (None, None) => problems.add(
            &at.name("verify"),
            ProblemCode::MissingField,
            "`verify` is missing; add the read that shows the effect, or \
             say `\"attested\": true` if only a person can.",
        ),
        (Some(_), Some(_)) => problems.add(
            &at.name("attested"),
            ProblemCode::NotAllowedHere,
            "An effect has either `verify` or `attested`; remove one of the two.",
        ),
    };
    Some(EffectSpec { id: id?.into(), proof: proof? })
}
