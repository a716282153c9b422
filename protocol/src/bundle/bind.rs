//! References to parameters in the arguments of actions and checks.
//!
//! In any text among the arguments `${name}` stands for a parameter, `${delivery.id}` (in an action only) for
//! the crossing of the delivery boundary that the call belongs to, and `$$` for a dollar sign; names of
//! members are taken as they are. A text that is one reference and nothing else takes the parameter's value
//! and type, `null` for an optional one that was not given. Within longer text a number or boolean is printed
//! as canonical JSON prints it.
//!
//! A reference puts its value in as it is. Where a text has a syntax of its own (a URL, a command), quoting
//! is for the executor, whose arguments should therefore take the parts one by one.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde_json::{Map, Value};

use super::parameters::ParameterSpec;
use super::problem::{At, ProblemCode, Problems};
use crate::canonical_json::write_number;
use crate::ids::DeliveryId;
use crate::vocabulary::codes;

/// Most bytes that the references of one set of arguments may put in.
pub const MAX_BOUND_BYTES: usize = 1 << 20;

/// The built-in reference to the delivery.
const DELIVERY_ID: &str = "delivery.id";

codes!(
    /// Why arguments could not be bound. A workflow that passed its checks, with parameters that passed
    /// theirs, meets only [`TooLarge`](Self::TooLarge), and [`NoDelivery`](Self::NoDelivery) if an action is
    /// bound without its delivery.
    BindFault {
        /// A `$` that begins neither a reference nor `$$`.
        Malformed = "malformed_reference",
        /// The parameter is not among those given.
        Unknown = "unknown_reference",
        /// `${delivery.id}` where there is no delivery.
        NoDelivery = "no_delivery",
        /// A reference within longer text to an optional parameter that was not given.
        AbsentInText = "absent_in_text",
        /// The references put in more than [`MAX_BOUND_BYTES`].
        TooLarge = "too_large",
    }
);

impl BindFault {
    /// What is wrong and what to do, in a fixed sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Malformed => "A `$` begins a reference `${name}`; write `$$` for a dollar sign.",
            Self::Unknown => {
                "The workflow declares no parameter of this name; declare it or correct the reference."
            }
            Self::NoDelivery => "`${delivery.id}` is known in the arguments of an action only.",
            Self::AbsentInText => {
                "An optional parameter cannot stand within longer text; make it required, or let it be \
                 the whole text."
            }
            Self::TooLarge => {
                "The references put in more than 1 MiB; use fewer references to long parameters."
            }
        }
    }
}

/// Where and why arguments could not be bound. Never carries a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}", if pointer.is_empty() { "(root)" } else { pointer }, fault.sentence())]
pub struct BindError {
    /// JSON pointer within the arguments.
    pub pointer: String,
    /// What is wrong.
    pub fault: BindFault,
}

/// Replaces every reference in `args`. `params` are those of [`check_parameters`](super::check_parameters);
/// `delivery` is there for an action and absent for a check.
///
/// # Errors
/// As [`BindFault`] lists them; nothing is half bound.
pub fn bind(
    args: &Value,
    params: &BTreeMap<String, Value>,
    delivery: Option<&DeliveryId>,
) -> Result<Value, BindError> {
    Binder { params, delivery: delivery.map(DeliveryId::to_string), room: MAX_BOUND_BYTES }
        .value(args, &At::ROOT)
}

struct Binder<'a> {
    params: &'a BTreeMap<String, Value>,
    delivery: Option<String>,
    /// Bytes that references may still put in.
    room: usize,
}

impl Binder<'_> {
    fn value(&mut self, value: &Value, at: &At<'_>) -> Result<Value, BindError> {
        match value {
            Value::String(text) => {
                self.text(text).map_err(|fault| BindError { pointer: at.pointer(), fault })
            }
            Value::Array(items) => {
                let bound: Result<Vec<_>, _> = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| self.value(item, &at.index(index)))
                    .collect();
                bound.map(Value::Array)
            }
            Value::Object(members) => {
                let mut bound = Map::new();
                for (name, member) in members {
                    bound.insert(name.clone(), self.value(member, &at.name(name))?);
                }
                Ok(Value::Object(bound))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
        }
    }

    fn text(&mut self, text: &str) -> Result<Value, BindFault> {
        if let Some(name) = whole_reference(text)
            && name != DELIVERY_ID
        {
            let value = self.params.get(name).ok_or(BindFault::Unknown)?.clone();
            self.take(match &value {
                Value::String(text) => text.len(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => 0,
            })?;
            return Ok(value);
        }
        let mut bound = String::new();
        for piece in Pieces(text) {
            match piece.ok_or(BindFault::Malformed)? {
                Piece::Text(text) => bound.push_str(text),
                Piece::Reference(name) => {
                    let text = self.inner_text(name)?.into_owned();
                    self.take(text.len())?;
                    bound.push_str(&text);
                }
            }
        }
        Ok(Value::String(bound))
    }

    /// What a reference within longer text stands for.
    fn inner_text(&self, name: &str) -> Result<Cow<'_, str>, BindFault> {
        if name == DELIVERY_ID {
            return self.delivery.as_deref().map(Cow::Borrowed).ok_or(BindFault::NoDelivery);
        }
        match self.params.get(name).ok_or(BindFault::Unknown)? {
            Value::String(text) => Ok(Cow::Borrowed(text)),
            Value::Bool(flag) => Ok(Cow::Borrowed(if *flag { "true" } else { "false" })),
            Value::Number(number) => {
                let mut printed = String::new();
                write_number(&mut printed, number);
                Ok(Cow::Owned(printed))
            }
            // No checked parameter is an array or an object.
            Value::Null | Value::Array(_) | Value::Object(_) => Err(BindFault::AbsentInText),
        }
    }

    fn take(&mut self, bytes: usize) -> Result<(), BindFault> {
        self.room = self.room.checked_sub(bytes).ok_or(BindFault::TooLarge)?;
        Ok(())
    }
}

/// What a workflow declares, as far as references go: whether each parameter is required. Holds names whose
/// declaration has other problems, too, so that one mistake is one problem.
pub(super) type Declared<'a> = BTreeMap<&'a str, bool>;

/// Adds every problem of the references in `value`. `in_action` allows `${delivery.id}`.
pub(super) fn check_references(
    value: &Value,
    at: &At<'_>,
    declared: &Declared<'_>,
    in_action: bool,
    problems: &mut Problems,
) {
    match value {
        Value::String(text) => check_text(text, at, declared, in_action, problems),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check_references(item, &at.index(index), declared, in_action, problems);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let at = at.name(name);
                if name.contains("${") {
                    problems.add::<()>(
                        &at,
                        ProblemCode::ReferenceNotAllowed,
                        "The name of a member cannot hold a reference; put it into the member's value.",
                    );
                }
                check_references(member, &at, declared, in_action, problems);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn check_text(text: &str, at: &At<'_>, declared: &Declared<'_>, in_action: bool, problems: &mut Problems) {
    let whole = whole_reference(text).is_some();
    for piece in Pieces(text) {
        let (code, fault) = match piece {
            None => (ProblemCode::MalformedReference, BindFault::Malformed),
            Some(Piece::Text(_)) => continue,
            Some(Piece::Reference(DELIVERY_ID)) if in_action => continue,
            Some(Piece::Reference(DELIVERY_ID)) => (ProblemCode::ReferenceNotAllowed, BindFault::NoDelivery),
            Some(Piece::Reference(name)) => match declared.get(name) {
                None => (ProblemCode::UnknownReference, BindFault::Unknown),
                Some(false) if !whole => (ProblemCode::ReferenceNotAllowed, BindFault::AbsentInText),
                Some(_) => continue,
            },
        };
        problems.add::<()>(at, code, fault.sentence());
    }
}

/// The parameter that a text refers to, if it is one reference and nothing else.
fn whole_reference(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    is_reference_name(name).then_some(name)
}

fn is_reference_name(name: &str) -> bool {
    name == DELIVERY_ID || ParameterSpec::is_name(name)
}

enum Piece<'a> {
    Text(&'a str),
    Reference(&'a str),
}

/// The pieces of a text; `None` for a malformed one, which is the last.
struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = Option<Piece<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let text = self.0;
        let Some(after) = text.strip_prefix('$') else {
            let (piece, rest) = text.split_at(text.find('$').unwrap_or(text.len()));
            self.0 = rest;
            return Some(Some(Piece::Text(piece)));
        };
        self.0 = "";
        if let Some(rest) = after.strip_prefix('$') {
            self.0 = rest;
            return Some(Some(Piece::Text("$")));
        }
        let reference = after.strip_prefix('{').and_then(|name| name.split_once('}'));
        match reference {
            Some((name, rest)) if is_reference_name(name) => {
                self.0 = rest;
                Some(Some(Piece::Reference(name)))
            }
            Some(_) | None => Some(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn params() -> BTreeMap<String, Value> {
        [
            ("name", json!("O'Hara $ ${age}")),
            ("age", json!(42)),
            ("dose", json!(0.5)),
            ("urgent", json!(true)),
            ("note", Value::Null),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_string(), value))
        .collect()
    }

    const DELIVERY: DeliveryId = DeliveryId([7; 16]);

    #[test]
    fn a_reference_takes_the_value_once_and_a_whole_one_its_type() {
        for (args, want) in [
            (json!("${age}"), json!(42)),
            (json!("${dose}"), json!(0.5)),
            (json!("${urgent}"), json!(true)),
            (json!("${note}"), Value::Null),
            (json!("${name}"), json!("O'Hara $ ${age}")),
            (json!("<${name}>"), json!("<O'Hara $ ${age}>")),
            (json!("${age}${dose}/${urgent}"), json!("420.5/true")),
            (json!("$$${age}$$"), json!("$42$")),
            (json!("$${age}"), json!("${age}")),
            (json!({"${age}": [{"b": "${age}"}, 1, null]}), json!({"${age}": [{"b": 42}, 1, null]})),
            (json!("${delivery.id}"), json!("delivery_07070707070707070707070707070707")),
            (json!("k-${delivery.id}"), json!("k-delivery_07070707070707070707070707070707")),
        ] {
            assert_eq!(bind(&args, &params(), Some(&DELIVERY)), Ok(want), "{args}");
        }
    }

    #[test]
    fn what_cannot_be_bound_says_where_and_never_what() {
        for (args, delivery, pointer, fault) in [
            (json!({"a": ["${nobody}"]}), None, "/a/0", BindFault::Unknown),
            (json!({"a": "x ${nobody}"}), None, "/a", BindFault::Unknown),
            (json!({"a": "x ${note}"}), None, "/a", BindFault::AbsentInText),
            (json!({"a/b": "${delivery.id}"}), None, "/a~1b", BindFault::NoDelivery),
            (json!("5 $"), None, "", BindFault::Malformed),
            (json!("$5"), None, "", BindFault::Malformed),
            (json!("${age"), None, "", BindFault::Malformed),
            (json!("${}"), None, "", BindFault::Malformed),
            (json!("${Age}"), None, "", BindFault::Malformed),
            (json!("${ age }"), None, "", BindFault::Malformed),
            (json!("${delivery.key}"), Some(&DELIVERY), "", BindFault::Malformed),
        ] {
            let error = bind(&args, &params(), delivery).unwrap_err();
            assert_eq!(error, BindError { pointer: pointer.to_string(), fault }, "{args}");
        }
    }

    #[test]
    fn references_cannot_multiply_a_long_value_without_limit() {
        let params: BTreeMap<_, _> = [("text".to_string(), json!("x".repeat(MAX_BOUND_BYTES / 4)))].into();
        assert!(bind(&json!(["${text}", "${text}", "${text}${text}"]), &params, None).is_ok());
        let error = bind(&json!(["${text}", "${text}", "${text}${text}${text}"]), &params, None).unwrap_err();
        assert_eq!((error.pointer.as_str(), error.fault), ("/2", BindFault::TooLarge));
    }

    proptest! {
        #[test]
        fn binding_never_panics_and_fails_only_where_the_check_finds_a_problem(
            text in "[a-z${}. é]{0,12}|(\\$\\{(age|note|dose|delivery\\.id|no)\\}|\\$|\\{|\\}|x){0,4}",
            in_action in any::<bool>(),
        ) {
            let args = json!({"a": [text, {"b": text}]});
            let params = params();
            let declared: Declared<'_> = params.keys().map(|name| (name.as_str(), name != "note")).collect();
            let mut problems = Problems::default();
            check_references(&args, &At::ROOT, &declared, in_action, &mut problems);
            let bound = bind(&args, &params, in_action.then_some(&DELIVERY));
            prop_assert_eq!(bound.is_ok(), problems.is_empty(), "{}", args);
        }
    }
}
