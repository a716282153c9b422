//! Readers of single JSON values: each adds its own problem and answers `None` only then.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::bind::{Declared, check_references};
use super::parameters::ParameterSpec;
use super::problem::{At, ProblemCode, Problems};
use super::protected::Protected;
use super::{DEFAULT_TIME_LIMIT, TIME_LIMITS, WORKFLOW_FORMAT};
use crate::time::Millis;

impl ParameterSpec {
    /// Whether `text` is 1 to 64 of `a-z 0-9 _`, the first a letter: the form of names of parameters,
    /// executors and effects.
    pub(super) fn is_name(text: &str) -> bool {
        (1..=64).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    }
}

const NAME_FORM: &str = "1 to 64 of a-z, 0-9 and _, the first a letter";

/// All items, unless one is missing; goes through every one of them, for its problems.
pub(super) fn all<T>(read: impl Iterator<Item = Option<T>>) -> Option<Vec<T>> {
    let mut items = Some(Vec::new());
    for item in read {
        match (&mut items, item) {
            (Some(items), Some(item)) => items.push(item),
            (Some(_) | None, None) | (None, Some(_)) => items = None,
        }
    }
    items
}

/// Names in use, with the pointer to their first bearer.
#[derive(Default)]
pub(super) struct Names(BTreeMap<String, String>);

impl Names {
    /// Passes `name` on if nothing before bears it.
    pub(super) fn claim<'n>(
        &mut self,
        name: &'n str,
        at: &At<'_>,
        field: &str,
        problems: &mut Problems,
    ) -> Option<&'n str> {
        if let Some(first) = self.0.get(name) {
            let message = format!("This name is taken by {first}; choose another one.");
            return problems.add(&at.name(field), ProblemCode::DuplicateName, message);
        }
        self.0.insert(name.into(), at.pointer());
        Some(name)
    }
}

/// A JSON object at its place. Its readers add their problems themselves.
pub(super) struct Object<'a> {
    members: &'a Map<String, Value>,
    pub(super) at: &'a At<'a>,
}

impl<'a> Object<'a> {
    /// Takes an object, and complains about each member that is not in `known`.
    pub(super) fn open(
        value: &'a Value,
        at: &'a At<'a>,
        known: &[&str],
        problems: &mut Problems,
    ) -> Option<Self> {
        let Value::Object(members) = value else {
            return wrong_type(at, "an object", problems);
        };
        for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
            let message = format!("The format has no such member; use one of {}.", known.join(", "));
            problems.add::<()>(&at.name(name), ProblemCode::UnknownField, message);
        }
        Some(Self { members, at })
    }

    pub(super) fn get(&self, field: &str) -> Option<&'a Value> {
        self.members.get(field)
    }

    pub(super) fn required(&self, field: &str, problems: &mut Problems) -> Option<&'a Value> {
        match self.get(field) {
            Some(value) => Some(value),
            None => {
                let message = format!("`{field}` is missing; add it.");
                problems.add(&self.at.name(field), ProblemCode::MissingField, message)
            }
        }
    }

    pub(super) fn text(&self, field: &str, problems: &mut Problems) -> Option<&'a str> {
        match self.required(field, problems)? {
            Value::String(text) => Some(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                wrong_type(&self.at.name(field), "a string", problems)
            }
        }
    }

    /// Passes `text` on if it has its form.
    pub(super) fn valid<'t>(
        &self,
        field: &str,
        text: &'t str,
        valid: bool,
        form: &str,
        problems: &mut Problems,
    ) -> Option<&'t str> {
        if valid {
            return Some(text);
        }
        let message = format!("`{field}` has another form than allowed; use {form}.");
        problems.add(&self.at.name(field), ProblemCode::InvalidValue, message)
    }

    pub(super) fn name(&self, field: &str, problems: &mut Problems) -> Option<&'a str> {
        let text = self.text(field, problems)?;
        self.valid(field, text, ParameterSpec::is_name(text), NAME_FORM, problems)
    }

    pub(super) fn flag(&self, field: &str, default: Option<bool>, problems: &mut Problems) -> Option<bool> {
        match (self.get(field), default) {
            (None, Some(default)) => Some(default),
            (Some(_), _) | (None, None) => match self.required(field, problems)? {
                Value::Bool(flag) => Some(*flag),
                Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                    wrong_type(&self.at.name(field), "true or false", problems)
                }
            },
        }
    }

    pub(super) fn number(
        &self,
        field: &str,
        default: Option<u64>,
        range: RangeInclusive<u64>,
        problems: &mut Problems,
    ) -> Option<u64> {
        let value = match (self.get(field), default) {
            (None, Some(default)) => return Some(default),
            (Some(_), _) | (None, None) => self.required(field, problems)?,
        };
        let at = self.at.name(field);
        match value {
            Value::Number(number) if number.is_f64() => wrong_type(&at, "a whole number", problems),
            Value::Number(number) => match number.as_u64().filter(|number| range.contains(number)) {
                Some(number) => Some(number),
                None => {
                    let message =
                        format!("`{field}` is out of range; use {} to {}.", range.start(), range.end());
                    problems.add(&at, ProblemCode::OutOfRange, message)
                }
            },
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                wrong_type(&at, "a whole number", problems)
            }
        }
    }

    pub(super) fn choice<T>(
        &self,
        field: &str,
        default: Option<T>,
        from_text: fn(&str) -> Option<T>,
        texts: &[&str],
        problems: &mut Problems,
    ) -> Option<T> {
        match (self.get(field), default) {
            (None, Some(default)) => Some(default),
            (Some(_), _) | (None, None) => {
                let chosen = from_text(self.text(field, problems)?);
                if chosen.is_none() {
                    let message = format!("`{field}` knows no such text; use one of {}.", texts.join(", "));
                    problems.add::<()>(&self.at.name(field), ProblemCode::InvalidValue, message);
                }
                chosen
            }
        }
    }

    pub(super) fn list(
        &self,
        field: &str,
        required: bool,
        range: RangeInclusive<usize>,
        problems: &mut Problems,
    ) -> Option<&'a [Value]> {
        if !required && self.get(field).is_none() {
            return Some(&[]);
        }
        let at = self.at.name(field);
        match self.required(field, problems)? {
            Value::Array(items) if range.contains(&items.len()) => Some(items),
            Value::Array(_) => {
                let message = format!(
                    "`{field}` has too few or too many items; use {} to {}.",
                    range.start(),
                    range.end()
                );
                problems.add(&at, ProblemCode::WrongCount, message)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                wrong_type(&at, "an array", problems)
            }
        }
    }

    /// An optional object: `Some(None)` when it is absent.
    pub(super) fn nested<T>(
        &self,
        field: &str,
        problems: &mut Problems,
        read: impl FnOnce(&Value, &At<'_>, &mut Problems) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.get(field) {
            None => Some(None),
            Some(value) => read(value, &self.at.name(field), problems).map(Some),
        }
    }

    pub(super) fn args(
        &self,
        declared: &Declared<'_>,
        in_action: bool,
        problems: &mut Problems,
    ) -> Option<Protected<Value>> {
        let at = self.at.name("args");
        match self.required("args", problems)? {
            args @ Value::Object(_) => {
                check_references(args, &at, declared, in_action, problems);
                Some(Protected::new(args.clone()))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                wrong_type(&at, "an object", problems)
            }
        }
    }

    pub(super) fn time_limit(&self, problems: &mut Problems) -> Option<Millis> {
        let (shortest, longest) = TIME_LIMITS;
        let range = shortest.0..=longest.0;
        self.number("time_limit_ms", Some(DEFAULT_TIME_LIMIT.0), range, problems).map(Millis)
    }

    /// The version of the format, which must be ours.
    pub(super) fn format(&self, problems: &mut Problems) -> Option<()> {
        if self.number("format", None, 0..=u64::MAX, problems)? == WORKFLOW_FORMAT {
            return Some(());
        }
        let message =
            format!("This program reads format {WORKFLOW_FORMAT} only; use a newer program, or that format.");
        problems.add(&self.at.name("format"), ProblemCode::UnsupportedFormat, message)
    }
}

fn wrong_type<T>(at: &At<'_>, expected: &str, problems: &mut Problems) -> Option<T> {
    problems.add(at, ProblemCode::WrongType, format!("This must be {expected}."))
}
