//! Declared parameters, and the check of the values given for them.
//!
//! No message here shows a value: it names the parameter and the rule.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use serde::Serialize;
use serde_json::{Number, Value};

use super::pattern::Pattern;
use super::problem::{At, Problem, ProblemCode, Problems};
use crate::canonical_json::{self, MAX_INTEGER, normal_float};
use crate::vocabulary::codes;

/// Largest set of bound parameters: bytes of its canonical form. Source: RULINGS 40.
pub const MAX_PARAMETERS_BYTES: usize = 256 << 10;

codes!(
    /// Type of a parameter.
    ParameterType {
        /// Text.
        String = "string",
        /// A number without a fraction, within ±(2^53-1).
        Integer = "integer",
        /// A number; where its value is an integer, within ±(2^53-1).
        Number = "number",
        /// True or false.
        Boolean = "boolean",
    }
);

/// A declared parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterSpec {
    /// Name: 1 to 64 of `a-z 0-9 _`, the first a letter.
    pub name: String,
    /// Type.
    pub kind: ParameterType,
    /// Whether a value must be given.
    pub required: bool,
    /// What the whole text must match; for texts only.
    pub pattern: Option<Pattern>,
    /// Longest text in characters; for texts only.
    pub max_length: Option<u32>,
}

/// Checked parameters: a value for each declared one, `null` for an optional one that was not given.
/// Protected.
#[derive(Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Parameters(BTreeMap<String, Value>);

impl Deref for Parameters {
    type Target = BTreeMap<String, Value>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parameters({} protected)", self.0.len())
    }
}

/// Checks `given`, an object of name and value, against the declared parameters.
///
/// An optional parameter may be absent or `null`. The result passes this check again. A number with an
/// integral value is bound as an integer.
/// # Errors
/// Every problem, in the order of declaration, then of unknown names; never empty and never showing a value.
pub fn check_parameters(declared: &[ParameterSpec], given: &Value) -> Result<Parameters, Vec<Problem>> {
    let mut problems = Problems::default();
    let root = At::ROOT;
    let Value::Object(given) = given else {
        problems.add::<()>(
            &root,
            ProblemCode::WrongType,
            "Parameters are given as one object, each value under its parameter's name.",
        );
        return problems.finish(None);
    };
    let mut bound = BTreeMap::new();
    for spec in declared {
        let at = root.name(&spec.name);
        let value = match given.get(&spec.name) {
            None | Some(Value::Null) if !spec.required => Some(Value::Null),
            None => problems.add(
                &at,
                ProblemCode::MissingParameter,
                format!("Parameter `{}` is required; give it a value of type {}.", spec.name, spec.kind),
            ),
            Some(value) => spec.check(value, &at, &mut problems),
        };
        if let Some(value) = value {
            bound.insert(spec.name.clone(), value);
        }
    }
    for name in given.keys().filter(|name| declared.iter().all(|spec| spec.name != **name)) {
        problems.add::<()>(
            &root.name(name),
            ProblemCode::UnknownParameter,
            "The workflow has no parameter of this name; leave it out or correct the name.",
        );
    }
    let bound = Parameters(bound);
    if problems.is_empty() && canonical_json::bytes_of(&bound).len() > MAX_PARAMETERS_BYTES {
        problems.add::<()>(
            &root,
            ProblemCode::TooLarge,
            "All parameters together are larger than 256 KiB; give less, or a reference to where it is kept.",
        );
    }
    problems.finish(Some(bound))
}

impl ParameterSpec {
    fn check(&self, value: &Value, at: &At<'_>, problems: &mut Problems) -> Option<Value> {
        let broken = match (self.kind, value) {
            (ParameterType::String, Value::String(text)) => match self.check_text(text) {
                Ok(()) => return Some(value.clone()),
                Err(broken) => broken,
            },
            (ParameterType::Integer | ParameterType::Number, Value::Number(number)) => match normal(number) {
                None => (ProblemCode::NumberRange, "is an integer beyond ±9007199254740991".into()),
                Some(number) if self.kind == ParameterType::Integer && number.as_i64().is_none() => {
                    (ProblemCode::WrongType, "must be of type integer and has a fraction".into())
                }
                Some(number) => return Some(Value::Number(number)),
            },
            (ParameterType::Boolean, Value::Bool(_)) => return Some(value.clone()),
            (
                ParameterType::String
                | ParameterType::Integer
                | ParameterType::Number
                | ParameterType::Boolean,
                _,
            ) => (ProblemCode::WrongType, format!("must be of type {}", self.kind)),
        };
        let (code, rule) = broken;
        problems.add(at, code, format!("Parameter `{}` {rule}.", self.name))
    }

    /// The rule that `text` breaks.
    fn check_text(&self, text: &str) -> Result<(), (ProblemCode, String)> {
        if let Some(longest) = self.max_length
            && text.chars().nth(usize::try_from(longest).unwrap_or(usize::MAX)).is_some()
        {
            return Err((
                ProblemCode::TooLarge,
                format!("is longer than the {longest} characters it may have"),
            ));
        }
        if self.pattern.as_ref().is_some_and(|pattern| !pattern.matches(text)) {
            let rule = "does not match the pattern that the workflow declares for it";
            return Err((ProblemCode::PatternMismatch, rule.into()));
        }
        Ok(())
    }
}

/// The one stored form of a number; `None` beyond the range of exact integers.
fn normal(number: &Number) -> Option<Number> {
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => (integer.unsigned_abs() <= MAX_INTEGER.unsigned_abs()).then(|| integer.into()),
        (None, Some(float)) => normal_float(float),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use serde_json::json;

    use super::*;

    fn spec(name: &str, kind: ParameterType, required: bool) -> ParameterSpec {
        ParameterSpec { name: name.to_string(), kind, required, pattern: None, max_length: None }
    }

    fn declared() -> Vec<ParameterSpec> {
        Vec::from([
            ParameterSpec {
                pattern: Some(Pattern::new("MRN-[0-9]+").unwrap()),
                ..spec("mrn", ParameterType::String, true)
            },
            ParameterSpec { max_length: Some(3), ..spec("note", ParameterType::String, false) },
            spec("age", ParameterType::Integer, false),
            spec("dose", ParameterType::Number, false),
            spec("urgent", ParameterType::Boolean, false),
        ])
    }

    #[test]
    fn each_broken_rule_names_its_parameter_and_never_the_value() {
        for (case, given, want) in [
            ("not an object", json!(["CANARY"]), &[("", ProblemCode::WrongType)][..]),
            ("missing", json!({}), &[("/mrn", ProblemCode::MissingParameter)]),
            ("null is not a value", json!({"mrn": null}), &[("/mrn", ProblemCode::WrongType)]),
            ("wrong type", json!({"mrn": 7700}), &[("/mrn", ProblemCode::WrongType)]),
            ("pattern", json!({"mrn": "CANARY"}), &[("/mrn", ProblemCode::PatternMismatch)]),
            ("pattern is whole", json!({"mrn": "MRN-1 CANARY"}), &[("/mrn", ProblemCode::PatternMismatch)]),
            ("length", json!({"mrn": "MRN-1", "note": "CANARY"}), &[("/note", ProblemCode::TooLarge)]),
            ("fraction", json!({"mrn": "MRN-1", "age": 7700.5}), &[("/age", ProblemCode::WrongType)]),
            (
                "2^53",
                json!({"mrn": "MRN-1", "age": 9007199254740992_u64}),
                &[("/age", ProblemCode::NumberRange)],
            ),
            ("u64", json!({"mrn": "MRN-1", "dose": u64::MAX}), &[("/dose", ProblemCode::NumberRange)]),
            ("1e300", json!({"mrn": "MRN-1", "dose": 1e300}), &[("/dose", ProblemCode::NumberRange)]),
            (
                "text for boolean",
                json!({"mrn": "MRN-1", "urgent": "true"}),
                &[("/urgent", ProblemCode::WrongType)],
            ),
            ("array", json!({"mrn": "MRN-1", "dose": ["CANARY"]}), &[("/dose", ProblemCode::WrongType)]),
            (
                "all at once",
                json!({"zip/code": "CANARY", "age": "CANARY", "dose": {}}),
                &[
                    ("/mrn", ProblemCode::MissingParameter),
                    ("/age", ProblemCode::WrongType),
                    ("/dose", ProblemCode::WrongType),
                    ("/zip~1code", ProblemCode::UnknownParameter),
                ],
            ),
        ] {
            let problems = check_parameters(&declared(), &given).unwrap_err();
            let got: Vec<_> =
                problems.iter().map(|problem| (problem.pointer.as_str(), problem.code)).collect();
            assert_eq!(got, want, "{case}");
            let shown = format!("{problems:?}");
            assert!(!shown.contains("CANARY") && !shown.contains("7700"), "{case}: {shown}");
        }
    }

    #[test]
    fn what_passes_is_bound_in_one_form_and_passes_again() {
        let given = json!({"mrn": "MRN-1", "note": "\u{e9}\u{1f600}x", "age": 7.0, "dose": 0.5});
        let bound = check_parameters(&declared(), &given).unwrap();
        let want = json!({"mrn": "MRN-1", "note": "\u{e9}\u{1f600}x", "age": 7, "dose": 0.5, "urgent": null});
        assert_eq!(canonical_json::value_of(&bound), want);
        assert_eq!(check_parameters(&declared(), &want), Ok(bound.clone()));
        assert_eq!(format!("{bound:?}"), "Parameters(5 protected)");
    }

    #[test]
    fn all_parameters_together_have_a_limit() {
        let declared = [spec("text", ParameterType::String, true)];
        let fits = "x".repeat(MAX_PARAMETERS_BYTES - r#"{"text":""}"#.len());
        assert!(check_parameters(&declared, &json!({ "text": fits })).is_ok());
        let problems = check_parameters(&declared, &json!({"text": fits + "x"})).unwrap_err();
        assert_eq!((problems[0].pointer.as_str(), problems[0].code), ("", ProblemCode::TooLarge));
    }
}
