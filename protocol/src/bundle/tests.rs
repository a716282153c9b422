extern crate std;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// A workflow that uses every member of the format.
fn base() -> Value {
    json!({
        "format": 1,
        "name": "triage",
        "profile": "demo",
        "parameters": [
            {"name": "mrn", "type": "string", "pattern": "MRN-[0-9]+"},
            {"name": "note", "type": "string", "required": false, "max_length": 200},
            {"name": "age", "type": "integer"}
        ],
        "settle_ms": 500,
        "steps": [
            {
                "id": "find",
                "intent": "Find the patient",
                "action": {"executor": "http", "effect_class": "read", "args": {"url": "/patients/${mrn}"}},
                "identity": {"executor": "http", "args": {"mrn": "${mrn}"}},
                "expect": [{"executor": "http", "args": {"note": "${note}"}, "time_limit_ms": 100}],
                "consequential": false
            },
            {
                "id": "examine",
                "intent": "A nurse fills in the form",
                "attended": "always",
                "expect": [{"executor": "http", "args": {}, "relative": true}],
                "effects": [
                    {"id": "exam", "verify": {"executor": "http", "args": {}}},
                    {"id": "consent", "attested": true}
                ],
                "consequential": true
            },
            {
                "id": "add-note",
                "intent": "Add a note",
                "attended": "never",
                "action": {
                    "executor": "http",
                    "effect_class": "write",
                    "args": {"key": "${delivery.id}", "price": "5 $$"},
                    "time_limit_ms": 600000
                },
                "guard": {"check": {"executor": "http", "args": {}}, "on_unmet": "halt"},
                "effects": [{"id": "note", "verify": {"executor": "http", "args": {"age": "over ${age}"}}}],
                "consequential": true
            },
            {
                "id": "tidy",
                "intent": "Tidy up",
                "attended": "on_halt",
                "action": {"executor": "command", "effect_class": "write", "args": {}},
                "guard": {"check": {"executor": "http", "args": {}}, "on_unmet": "skip"},
                "effects": [{"id": "tidied", "verify": {"executor": "http", "args": {}}}],
                "consequential": false
            }
        ]
    })
}

fn smallest() -> Value {
    json!({
        "format": 1,
        "name": "0",
        "steps": [{
            "id": "a",
            "intent": "x",
            "action": {"executor": "http", "effect_class": "read", "args": {}},
            "consequential": false
        }]
    })
}

/// `base` with some places replaced, added (an object's member, or `-` for the end of an array) or, for
/// `null`, removed.
fn changed(changes: &[(&str, Value)]) -> Value {
    let mut workflow = base();
    for (pointer, new) in changes {
        let (parent, last) = pointer.rsplit_once('/').unwrap();
        match workflow.pointer_mut(parent).unwrap() {
            Value::Object(members) if new.is_null() => drop(members.remove(last).unwrap()),
            Value::Object(members) => drop(members.insert(last.to_string(), new.clone())),
            Value::Array(items) if last == "-" => items.push(new.clone()),
            Value::Array(items) => items[last.parse::<usize>().unwrap()] = new.clone(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => unreachable!("{parent}"),
        }
    }
    workflow
}

fn found(problems: &[Problem]) -> Vec<(&str, ProblemCode)> {
    problems.iter().map(|problem| (problem.pointer.as_str(), problem.code)).collect()
}

fn schema() -> jsonschema::Validator {
    let schema = serde_json::from_str(WORKFLOW_SCHEMA).unwrap();
    assert!(jsonschema::meta::is_valid(&schema));
    jsonschema::draft202012::new(&schema).unwrap()
}

/// Whether the schema can tell that a bundle is bad.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Schema {
    Refuses,
    CannotSay,
}

use ProblemCode as Code;
use Schema::{CannotSay, Refuses};

type Row = (&'static str, Vec<(&'static str, Value)>, Vec<(&'static str, ProblemCode)>, Schema);

/// One row per rule about the content of a workflow that is valid JSON.
#[rustfmt::skip]
fn bad_workflows() -> Vec<Row> {
    let check = || json!({"executor": "http", "args": {}});
    let write = || json!({"executor": "http", "effect_class": "write", "args": {}});
    vec![
        // Types, members, forms and ranges.
        ("unknown member", vec![("/extra", json!(1))], vec![("/extra", Code::UnknownField)], Refuses),
        ("unknown member, deep", vec![("/steps/2/guard/check/retry", json!(1))], vec![("/steps/2/guard/check/retry", Code::UnknownField)], Refuses),
        ("a member's name is escaped", vec![("/steps/0/a", json!(1)), ("/steps/0/action/args", json!({"a/b": {"~": "${x}"}}))], vec![("/steps/0/a", Code::UnknownField), ("/steps/0/action/args/a~1b/~0", Code::UnknownReference)], Refuses),
        ("no format", vec![("/format", Value::Null)], vec![("/format", Code::MissingField)], Refuses),
        ("format of the future", vec![("/format", json!(2))], vec![("/format", Code::UnsupportedFormat)], Refuses),
        ("format as text", vec![("/format", json!("1"))], vec![("/format", Code::WrongType)], Refuses),
        ("no name", vec![("/name", Value::Null)], vec![("/name", Code::MissingField)], Refuses),
        ("empty name", vec![("/name", json!(""))], vec![("/name", Code::InvalidValue)], Refuses),
        ("capital in name", vec![("/name", json!("Triage"))], vec![("/name", Code::InvalidValue)], Refuses),
        ("path as name", vec![("/name", json!("../triage"))], vec![("/name", Code::InvalidValue)], Refuses),
        ("newline after name", vec![("/name", json!("triage\n"))], vec![("/name", Code::InvalidValue)], Refuses),
        ("long name", vec![("/name", json!("n".repeat(81)))], vec![("/name", Code::InvalidValue)], Refuses),
        ("unknown profile", vec![("/profile", json!("lax"))], vec![("/profile", Code::InvalidValue)], Refuses),
        ("profile as number", vec![("/profile", json!(1))], vec![("/profile", Code::WrongType)], Refuses),
        ("settle too long", vec![("/settle_ms", json!(600_001))], vec![("/settle_ms", Code::OutOfRange)], Refuses),
        ("settle negative", vec![("/settle_ms", json!(-1))], vec![("/settle_ms", Code::OutOfRange)], Refuses),
        ("settle with a fraction", vec![("/settle_ms", json!(0.5))], vec![("/settle_ms", Code::WrongType)], Refuses),
        ("steps as object", vec![("/steps", json!({}))], vec![("/steps", Code::WrongType)], Refuses),
        ("no steps", vec![("/steps", Value::Null)], vec![("/steps", Code::MissingField)], Refuses),
        ("empty steps", vec![("/steps", json!([]))], vec![("/steps", Code::WrongCount)], Refuses),
        ("too many steps", vec![("/steps", json!(vec![0; MAX_STEPS + 1]))], vec![("/steps", Code::WrongCount)], Refuses),
        ("step as text", vec![("/steps/1", json!("examine"))], vec![("/steps/1", Code::WrongType)], Refuses),
        ("no step id", vec![("/steps/0/id", Value::Null)], vec![("/steps/0/id", Code::MissingField)], Refuses),
        ("step id with a slash", vec![("/steps/0/id", json!("../find"))], vec![("/steps/0/id", Code::InvalidValue)], Refuses),
        ("step id twice", vec![("/steps/3/id", json!("find"))], vec![("/steps/3/id", Code::DuplicateName)], CannotSay),
        ("step id twice beside another problem", vec![("/steps/3/id", json!("find")), ("/steps/3/intent", json!(1))], vec![("/steps/3/id", Code::DuplicateName), ("/steps/3/intent", Code::WrongType)], Refuses),
        ("no intent", vec![("/steps/0/intent", Value::Null)], vec![("/steps/0/intent", Code::MissingField)], Refuses),
        ("empty intent", vec![("/steps/0/intent", json!(""))], vec![("/steps/0/intent", Code::InvalidValue)], Refuses),
        ("long intent", vec![("/steps/0/intent", json!("\u{1f600}".repeat(501)))], vec![("/steps/0/intent", Code::InvalidValue)], Refuses),
        ("terminal sequence in intent", vec![("/steps/0/intent", json!("\u{1b}[2J"))], vec![("/steps/0/intent", Code::InvalidValue)], Refuses),
        ("unknown attended", vec![("/steps/0/attended", json!("sometimes"))], vec![("/steps/0/attended", Code::InvalidValue)], Refuses),
        ("no consequential", vec![("/steps/0/consequential", Value::Null)], vec![("/steps/0/consequential", Code::MissingField)], Refuses),
        ("consequential as text", vec![("/steps/0/consequential", json!("no"))], vec![("/steps/0/consequential", Code::WrongType)], Refuses),
        ("no executor", vec![("/steps/0/action/executor", Value::Null)], vec![("/steps/0/action/executor", Code::MissingField)], Refuses),
        ("path as executor", vec![("/steps/0/action/executor", json!("/bin/sh"))], vec![("/steps/0/action/executor", Code::InvalidValue)], Refuses),
        ("no effect class", vec![("/steps/0/action/effect_class", Value::Null)], vec![("/steps/0/action/effect_class", Code::MissingField)], Refuses),
        ("unknown effect class", vec![("/steps/0/action/effect_class", json!("delete"))], vec![("/steps/0/action/effect_class", Code::InvalidValue)], Refuses),
        ("no args", vec![("/steps/0/action/args", Value::Null)], vec![("/steps/0/action/args", Code::MissingField)], Refuses),
        ("args as array", vec![("/steps/0/action/args", json!([]))], vec![("/steps/0/action/args", Code::WrongType)], Refuses),
        ("time limit too short", vec![("/steps/0/action/time_limit_ms", json!(99))], vec![("/steps/0/action/time_limit_ms", Code::OutOfRange)], Refuses),
        ("time limit too long", vec![("/steps/0/identity/time_limit_ms", json!(600_001))], vec![("/steps/0/identity/time_limit_ms", Code::OutOfRange)], Refuses),
        ("no guard check", vec![("/steps/2/guard/check", Value::Null)], vec![("/steps/2/guard/check", Code::MissingField)], Refuses),
        ("no on_unmet", vec![("/steps/2/guard/on_unmet", Value::Null)], vec![("/steps/2/guard/on_unmet", Code::MissingField)], Refuses),
        ("identity as flag", vec![("/steps/0/identity", json!(true))], vec![("/steps/0/identity", Code::WrongType)], Refuses),
        ("expect as object", vec![("/steps/0/expect", json!({}))], vec![("/steps/0/expect", Code::WrongType)], Refuses),
        ("too many checks", vec![("/steps/0/expect", json!(vec![check(); MAX_CHECKS + 1]))], vec![("/steps/0/expect", Code::WrongCount)], Refuses),
        ("relative as text", vec![("/steps/0/expect/0/relative", json!("no"))], vec![("/steps/0/expect/0/relative", Code::WrongType)], Refuses),
        ("effect id twice in a step", vec![("/steps/1/effects/1/id", json!("exam"))], vec![("/steps/1/effects/1/id", Code::DuplicateName)], CannotSay),
        ("effect id twice in the workflow", vec![("/steps/2/effects/0/id", json!("exam"))], vec![("/steps/2/effects/0/id", Code::DuplicateName)], CannotSay),
        ("effect without proof", vec![("/steps/1/effects/1/attested", Value::Null)], vec![("/steps/1/effects/1/verify", Code::MissingField)], Refuses),
        ("effect with two proofs", vec![("/steps/1/effects/1/verify", check())], vec![("/steps/1/effects/1/attested", Code::NotAllowedHere)], Refuses),
        ("attested false", vec![("/steps/1/effects/1/attested", json!(false))], vec![("/steps/1/effects/1/attested", Code::InvalidValue)], Refuses),
        ("attested as text", vec![("/steps/1/effects/1/attested", json!("yes"))], vec![("/steps/1/effects/1/attested", Code::WrongType)], Refuses),
        // Parameters.
        ("parameters as object", vec![("/parameters", json!({})), ("/steps", smallest()["steps"].clone())], vec![("/parameters", Code::WrongType)], Refuses),
        ("too many parameters", vec![("/parameters", json!(vec![0; MAX_PARAMETERS + 1])), ("/steps", smallest()["steps"].clone())], vec![("/parameters", Code::WrongCount)], Refuses),
        ("parameter without type", vec![("/parameters/2/type", Value::Null)], vec![("/parameters/2/type", Code::MissingField)], Refuses),
        ("parameter of unknown type", vec![("/parameters/2/type", json!("date"))], vec![("/parameters/2/type", Code::InvalidValue)], Refuses),
        ("parameter with a capital", vec![("/parameters/-", json!({"name": "Mrn", "type": "string"}))], vec![("/parameters/3/name", Code::InvalidValue)], Refuses),
        ("parameter twice", vec![("/parameters/-", json!({"name": "mrn", "type": "string"}))], vec![("/parameters/3/name", Code::DuplicateName)], CannotSay),
        ("request_id", vec![("/parameters/-", json!({"name": "request_id", "type": "string"}))], vec![("/parameters/3/name", Code::ReservedName)], Refuses),
        ("wait_seconds", vec![("/parameters/-", json!({"name": "wait_seconds", "type": "integer"}))], vec![("/parameters/3/name", Code::ReservedName)], Refuses),
        ("target_url_override", vec![("/parameters/-", json!({"name": "target_url_override", "type": "string"}))], vec![("/parameters/3/name", Code::ReservedName)], Refuses),
        ("pattern of an integer", vec![("/parameters/2/pattern", json!("[0-9]+"))], vec![("/parameters/2/pattern", Code::NotAllowedHere)], Refuses),
        ("length of an integer", vec![("/parameters/2/max_length", json!(3))], vec![("/parameters/2/max_length", Code::NotAllowedHere)], Refuses),
        ("pattern that does not compile", vec![("/parameters/0/pattern", json!("("))], vec![("/parameters/0/pattern", Code::InvalidPattern)], CannotSay),
        ("pattern with a Unicode class", vec![("/parameters/0/pattern", json!("\\d+"))], vec![("/parameters/0/pattern", Code::InvalidPattern)], CannotSay),
        ("pattern as number", vec![("/parameters/0/pattern", json!(7))], vec![("/parameters/0/pattern", Code::WrongType)], Refuses),
        ("length zero", vec![("/parameters/1/max_length", json!(0))], vec![("/parameters/1/max_length", Code::OutOfRange)], Refuses),
        ("a bad declaration hides no name", vec![("/parameters/0/required", json!("yes"))], vec![("/parameters/0/required", Code::WrongType)], Refuses),
        // References.
        ("reference to nothing", vec![("/steps/0/action/args/url", json!("/p/${patient}"))], vec![("/steps/0/action/args/url", Code::UnknownReference)], CannotSay),
        ("reference to nothing, twice in a text", vec![("/steps/0/action/args/url", json!("${a}${b}"))], vec![("/steps/0/action/args/url", Code::UnknownReference), ("/steps/0/action/args/url", Code::UnknownReference)], CannotSay),
        ("reference to nothing, in a list", vec![("/steps/0/expect/0/args/list", json!([1, {"x": "${nobody}"}]))], vec![("/steps/0/expect/0/args/list/1/x", Code::UnknownReference)], CannotSay),
        ("path in a reference", vec![("/steps/0/action/args/url", json!("${../secret}"))], vec![("/steps/0/action/args/url", Code::MalformedReference)], CannotSay),
        ("open reference", vec![("/steps/0/action/args/url", json!("${mrn"))], vec![("/steps/0/action/args/url", Code::MalformedReference)], CannotSay),
        ("lone dollar", vec![("/steps/2/action/args/price", json!("5 $"))], vec![("/steps/2/action/args/price", Code::MalformedReference)], CannotSay),
        ("reference in a name", vec![("/steps/0/action/args", json!({"${mrn}": 1}))], vec![("/steps/0/action/args/${mrn}", Code::ReferenceNotAllowed)], CannotSay),
        ("optional within text", vec![("/steps/0/action/args/url", json!("/p/${note}"))], vec![("/steps/0/action/args/url", Code::ReferenceNotAllowed)], CannotSay),
        ("delivery in a check", vec![("/steps/2/effects/0/verify/args/key", json!("${delivery.id}"))], vec![("/steps/2/effects/0/verify/args/key", Code::ReferenceNotAllowed)], CannotSay),
        ("reference to a reserved name", vec![("/steps/0/action/args/url", json!("${request_id}"))], vec![("/steps/0/action/args/url", Code::UnknownReference)], CannotSay),
        // The rules between members of a step.
        ("always, with an action", vec![("/steps/1/action", write())], vec![("/steps/1/action", Code::AttendedWithAction)], Refuses),
        ("always, with nothing to check", vec![("/steps/1/expect", Value::Null), ("/steps/1/effects", Value::Null)], vec![("/steps/1", Code::NothingToVerify)], Refuses),
        ("always, with a person's word only", vec![("/steps/1/expect", json!([])), ("/steps/1/effects", json!([{"id": "consent", "attested": true}]))], vec![("/steps/1", Code::NothingToVerify)], Refuses),
        ("on halt, without an action", vec![("/steps/3/action", Value::Null)], vec![("/steps/3/action", Code::MissingField)], Refuses),
        ("never, without an action", vec![("/steps/2/action", Value::Null)], vec![("/steps/2/action", Code::MissingField)], Refuses),
        ("consequential write without effects", vec![("/steps/2/effects", Value::Null)], vec![("/steps/2/effects", Code::NoVerifier)], Refuses),
        ("consequential write, attested only", vec![("/steps/2/effects", json!([{"id": "note", "attested": true}]))], vec![("/steps/2/effects", Code::NoVerifier)], Refuses),
        ("write with an attested effect", vec![("/steps/2/effects", json!([{"id": "note", "verify": check()}, {"id": "word", "attested": true}]))], vec![("/steps/2/effects", Code::NotAllowedHere)], CannotSay),
        ("write without effects that matters to nobody", vec![("/steps/2/effects", Value::Null), ("/steps/2/consequential", json!(false))], vec![("/steps/2/effects", Code::NoVerifier)], CannotSay),
        ("consequential and skippable", vec![("/steps/2/guard/on_unmet", json!("skip"))], vec![("/steps/2/guard/on_unmet", Code::ConsequentialSkip)], Refuses),
        ("always, consequential and skippable", vec![("/steps/1/guard", json!({"check": check(), "on_unmet": "skip"}))], vec![("/steps/1/guard/on_unmet", Code::ConsequentialSkip)], Refuses),
        ("consequential read", vec![("/steps/0/consequential", json!(true))], vec![("/steps/0/consequential", Code::ConsequentialRead)], Refuses),
        ("read with effects", vec![("/steps/0/effects", json!([{"id": "x", "verify": check()}]))], vec![("/steps/0/effects", Code::ReadWithEffects)], Refuses),
        ("relative guard", vec![("/steps/2/guard/check/relative", json!(true))], vec![("/steps/2/guard/check/relative", Code::RelativeNotAllowed)], Refuses),
        ("relative identity", vec![("/steps/0/identity/relative", json!(true))], vec![("/steps/0/identity/relative", Code::RelativeNotAllowed)], Refuses),
        ("relative effect", vec![("/steps/1/effects/0/verify/relative", json!(true))], vec![("/steps/1/effects/0/verify/relative", Code::RelativeNotAllowed)], Refuses),
        // Every problem is found, also where several meet in one step.
        (
            "several at once",
            vec![
                ("/settle_ms", json!("long")),
                ("/parameters/1/max_length", json!(-3)),
                ("/steps/0/intent", json!(["x"])),
                ("/steps/0/consequential", json!(true)),
                ("/steps/2/effects", json!([])),
                ("/steps/2/guard/on_unmet", json!("skip")),
                ("/steps/2/colour", json!("red")),
            ],
            vec![
                ("/parameters/1/max_length", Code::OutOfRange),
                ("/settle_ms", Code::WrongType),
                ("/steps/0/intent", Code::WrongType),
                ("/steps/0/consequential", Code::ConsequentialRead),
                ("/steps/2/colour", Code::UnknownField),
                ("/steps/2/effects", Code::NoVerifier),
                ("/steps/2/guard/on_unmet", Code::ConsequentialSkip),
            ],
            Refuses,
        ),
    ]
}

#[test]
fn each_bad_workflow_gives_its_code_at_its_place_and_the_schema_agrees_where_it_can() {
    let schema = schema();
    for (case, changes, want, says) in bad_workflows() {
        let workflow = changed(&changes);
        let problems = Workflow::from_json(workflow.to_string().as_bytes()).unwrap_err();
        assert_eq!(found(&problems), want, "{case}");
        let valid = if says == Refuses { "refused" } else { "passed" };
        assert_eq!(
            schema.is_valid(&workflow),
            says == CannotSay,
            "{case}: the schema should have {valid} it"
        );
        for problem in &problems {
            assert!(problem.message.ends_with('.') && problem.message.len() < 400, "{case}: {problem}");
        }
    }
}

#[test]
fn text_that_is_no_acceptable_json_gives_one_problem_at_its_place() {
    let text = base().to_string();
    let deep = format!(r#"{{"format": 1, "steps": {}"#, "[".repeat(10_000));
    let deep_at = format!("/steps{}", "/0".repeat(63));
    let deep_args =
        text.replacen("\"/patients/${mrn}\"", &format!("{}{}", "[".repeat(61), "]".repeat(61)), 1);
    let deep_args_at = format!("/steps/0/action/args/url{}", "/0".repeat(59));
    let number = |spelling: &str| text.replacen("\"/patients/${mrn}\"", spelling, 1).into_bytes();
    for (case, bytes, pointer, code) in [
        ("empty", Vec::new(), "", Code::Empty),
        ("white space", b"\n\n".to_vec(), "", Code::Empty),
        ("byte order mark", format!("\u{feff}{text}").into_bytes(), "", Code::ByteOrderMark),
        ("UTF-16", text.encode_utf16().flat_map(u16::to_le_bytes).collect(), "", Code::Syntax),
        (
            "not UTF-8",
            text.replace("triage", "tri\0age")
                .into_bytes()
                .iter()
                .map(|byte| if *byte == 0 { 0xff } else { *byte })
                .collect(),
            "",
            Code::NotUtf8,
        ),
        ("cut short", text.as_bytes()[..text.len() - 1].to_vec(), "", Code::Syntax),
        ("trailing garbage", format!("{text}x").into_bytes(), "", Code::TrailingData),
        ("second document", format!("{text}{text}").into_bytes(), "", Code::TrailingData),
        ("NUL at the end", format!("{text}\0").into_bytes(), "", Code::TrailingData),
        ("array", b"[]".to_vec(), "", Code::WrongType),
        ("null", b"null".to_vec(), "", Code::WrongType),
        (
            "duplicate at the top",
            text.replacen('{', r#"{"name": "x","#, 1).into_bytes(),
            "/name",
            Code::DuplicateKey,
        ),
        (
            "duplicate in args",
            text.replacen("\"url\":", "\"url\": 1, \"url\":", 1).into_bytes(),
            "/steps/0/action/args/url",
            Code::DuplicateKey,
        ),
        ("10,000 levels, cut", deep.into_bytes(), &deep_at, Code::TooDeep),
        ("65 levels", deep_args.into_bytes(), &deep_args_at, Code::TooDeep),
        ("2^53+1 in args", number("9007199254740993"), "/steps/0/action/args/url", Code::NumberRange),
        ("2^53 as a float", number("9007199254740992.0"), "/steps/0/action/args/url", Code::NumberRange),
        ("1e300", number("1e300"), "/steps/0/action/args/url", Code::NumberRange),
        ("1e999", number("-1e999"), "/steps/0/action/args/url", Code::NumberRange),
        ("over 16 MiB", vec![b' '; (16 << 20) + 1], "", Code::TooLarge),
    ] {
        let problems = Workflow::from_json(&bytes).unwrap_err();
        assert_eq!(found(&problems), [(pointer, code)], "{case}");
    }
}

#[test]
fn good_workflows_are_good_for_code_and_schema() {
    let schema = schema();
    let attended = changed(&[
        ("/steps/1/expect", Value::Null),
        ("/steps/1/guard", json!({"check": {"executor": "http", "args": {}}, "on_unmet": "halt"})),
    ]);
    let spelt = changed(&[("/settle_ms", json!(500.0))]);
    for (case, workflow) in
        [("all members", base()), ("fewest members", smallest()), ("attended", attended), ("500.0", spelt)]
    {
        assert_eq!(Workflow::from_json(workflow.to_string().as_bytes()).err(), None, "{case}");
        assert!(schema.is_valid(&workflow), "{case}");
    }
}

#[test]
fn what_is_left_out_gets_its_default() {
    let workflow = Workflow::from_value(&smallest()).unwrap();
    assert_eq!(
        (workflow.profile(), workflow.settle(), workflow.parameters()),
        (Profile::Demo, Millis(2_000), &[][..])
    );
    let step = workflow.step(0).unwrap();
    assert_eq!((step.attended, step.limit()), (Attended::OnHalt, Millis(30_000)));
    assert_eq!(workflow.step(1), None);
}

#[test]
fn the_machine_gets_the_facts_of_a_step() {
    let workflow = Workflow::from_value(&base()).unwrap();
    assert_eq!((workflow.step_count(), workflow.effect_count()), (4, 4));
    let facts: Vec<_> = (0..4).map(|index| workflow.facts(index).unwrap()).collect();
    let shown: Vec<_> = facts
        .iter()
        .map(|step| (step.id.as_str(), step.acts, step.consequential, step.skippable, step.identity_required))
        .collect();
    assert_eq!(
        shown,
        [
            ("find", false, false, false, true),
            ("examine", false, true, false, false),
            ("add-note", true, true, false, false),
            ("tidy", true, false, true, false),
        ]
    );
    let counts: Vec<_> = facts
        .iter()
        .map(|step| {
            (step.index, step.postconditions, step.relative, step.effects, step.attested, step.limit.0)
        })
        .collect();
    assert_eq!(
        counts,
        [(0, 1, 0, 0, 0, 30_000), (1, 0, 1, 1, 1, 30_000), (2, 0, 0, 1, 0, 600_000), (3, 0, 0, 1, 0, 30_000)]
    );
}

#[test]
fn the_id_is_made_of_the_name_alone() {
    let id = Workflow::from_value(&base()).unwrap().id();
    // printf 'opjournal workflow\0triage' | sha256sum | cut -c1-24
    assert_eq!(id.as_str(), "wf_442a0602412ed5ab2f33b38e");
    assert_eq!(Workflow::from_value(&changed(&[("/settle_ms", json!(1))])).unwrap().id(), id);
    assert_ne!(Workflow::from_value(&changed(&[("/name", json!("other"))])).unwrap().id(), id);
}

#[test]
fn debug_output_and_problems_show_no_protected_text() {
    let shown = format!("{:?}", Workflow::from_value(&base()).unwrap());
    for protected in ["Find the patient", "/patients/", "5 $$"] {
        assert!(!shown.contains(protected), "{protected} in {shown}");
    }
    let bad = changed(&[
        ("/steps/0/intent", json!("CANARY\u{7}")),
        ("/steps/0/action/args/url", json!("CANARY ${CANARY}")),
        ("/steps/0/action/executor", json!("CANARY")),
        ("/steps/0/attended", json!("CANARY")),
        ("/name", json!("CANARY")),
    ]);
    let problems = Workflow::from_value(&bad).unwrap_err();
    assert_eq!(problems.len(), 5);
    assert!(!format!("{problems:?}").contains("CANARY"));
}

#[test]
fn an_endless_list_of_problems_is_cut_and_says_so() {
    let workflow = changed(&[("/steps", json!(vec![0; 5_000]))]);
    let problems = Workflow::from_value(&workflow).unwrap_err();
    assert_eq!(problems.len(), MAX_PROBLEMS + 1);
    assert_eq!(problems[MAX_PROBLEMS].code, Code::TooManyProblems);
}

#[test]
fn the_schema_lists_the_texts_and_limits_of_the_code() {
    let schema: Value = serde_json::from_str(WORKFLOW_SCHEMA).unwrap();
    for (pointer, want) in [
        ("/properties/format/const", json!(WORKFLOW_FORMAT)),
        ("/properties/name/maxLength", json!(MAX_NAME_CHARS)),
        ("/properties/profile/enum", json!(Profile::TEXTS)),
        ("/properties/profile/default", json!("demo")),
        ("/properties/parameters/maxItems", json!(MAX_PARAMETERS)),
        ("/properties/settle_ms/maximum", json!(MAX_SETTLE)),
        ("/properties/settle_ms/default", json!(DEFAULT_SETTLE)),
        ("/properties/steps/maxItems", json!(MAX_STEPS)),
        ("/$defs/parameter/properties/type/enum", json!(ParameterType::TEXTS)),
        ("/$defs/parameter/properties/pattern/maxLength", json!(MAX_PATTERN_CHARS)),
        ("/$defs/time_limit_ms/minimum", json!(TIME_LIMITS.0)),
        ("/$defs/time_limit_ms/maximum", json!(TIME_LIMITS.1)),
        ("/$defs/time_limit_ms/default", json!(DEFAULT_TIME_LIMIT)),
        ("/$defs/action/properties/effect_class/enum", json!(EffectClass::TEXTS)),
        ("/$defs/step/properties/attended/enum", json!(Attended::TEXTS)),
        ("/$defs/step/properties/attended/default", json!("on_halt")),
        ("/$defs/step/properties/intent/maxLength", json!(MAX_INTENT_CHARS)),
        ("/$defs/step/properties/expect/maxItems", json!(MAX_CHECKS)),
        ("/$defs/step/properties/effects/maxItems", json!(MAX_CHECKS)),
        ("/$defs/step/properties/guard/properties/on_unmet/enum", json!(OnUnmet::TEXTS)),
    ] {
        assert_eq!(schema.pointer(pointer), Some(&want), "{pointer}");
    }
}

/// A value to put somewhere into a workflow.
fn any_piece() -> impl Strategy<Value = Value> {
    let texts = [
        "always", "never", "on_halt", "read", "write", "skip", "halt", "${mrn}", "${", "", "find", "exam",
        "string",
    ];
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(texts.to_vec()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!({})),
        Just(json!([])),
        Just(json!([{"executor": "http", "args": {}}])),
        Just(json!({"executor": "http", "effect_class": "write", "args": {}})),
    ]
}

/// Pointers to every place in a value.
fn places(value: &Value, at: String, into: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| places(item, format!("{at}/{index}"), into));
        }
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| places(member, format!("{at}/{name}"), into))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    into.push(at);
}

proptest! {
    #[test]
    fn whatever_stands_anywhere_the_code_accepts_nothing_that_the_schema_refuses(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any_piece()), 1..4)
    ) {
        std::thread_local! {
            static SCHEMA: jsonschema::Validator = schema();
        }
        let mut workflow = base();
        for (place, piece) in changes {
            let mut pointers = Vec::new();
            places(&workflow, String::new(), &mut pointers);
            *workflow.pointer_mut(place.get::<String>(&pointers)).unwrap() = piece;
        }
        match Workflow::from_json(workflow.to_string().as_bytes()) {
            Ok(_) => prop_assert!(SCHEMA.with(|schema| schema.is_valid(&workflow)), "{workflow}"),
            Err(problems) => prop_assert!(!problems.is_empty()),
        }
    }
}
