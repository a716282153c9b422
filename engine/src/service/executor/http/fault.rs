//! Reads an executor's arguments and collects everything that is wrong with them, each with its JSON pointer.

use serde_json::{Map, Value};

use crate::service::ports::ArgsFault;

/// Whether parameters have been filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// As a bundle gives them: `${name}` stands for a value that is not known yet.
    Template,
    /// As an executor gets them: every text is a value.
    Bound,
}

/// The faults found so far.
pub(super) struct Faults {
    stage: Stage,
    found: Vec<ArgsFault>,
}

/// A place in the arguments.
#[derive(Clone, Debug, Default)]
pub(super) struct At(String);

impl At {
    /// The member `name` of this place.
    pub(super) fn member(&self, name: &str) -> Self {
        Self(format!("{}/{}", self.0, name.replace('~', "~0").replace('/', "~1")))
    }

    /// The element `index` of this place.
    pub(super) fn element(&self, index: usize) -> Self {
        Self(format!("{}/{index}", self.0))
    }
}

impl Faults {
    pub(super) const fn new(stage: Stage) -> Self {
        Self { stage, found: Vec::new() }
    }

    /// `value`, unless anything was found.
    pub(super) fn finish<T>(self, value: Option<T>) -> Result<T, Vec<ArgsFault>> {
        match value {
            Some(value) if self.found.is_empty() => Ok(value),
            Some(_) | None => Err(self.found),
        }
    }

    /// Notes a fault; the answer fits where a value was wanted.
    pub(super) fn add<T>(&mut self, at: &At, message: &str) -> Option<T> {
        self.found.push(ArgsFault { pointer: at.0.clone(), message: message.to_owned() });
        None
    }

    /// An object with these members and no others.
    pub(super) fn object<'a>(
        &mut self,
        value: &'a Value,
        at: &At,
        members: &[&str],
    ) -> Option<&'a Map<String, Value>> {
        let object = self.map(value, at)?;
        for name in object.keys().filter(|name| !members.contains(&name.as_str())) {
            self.add::<()>(&at.member(name), &format!("remove this; known here: {}", members.join(", ")));
        }
        Some(object)
    }

    /// An object whose member names are free.
    pub(super) fn map<'a>(&mut self, value: &'a Value, at: &At) -> Option<&'a Map<String, Value>> {
        value.as_object().or_else(|| self.add(at, "must be an object"))
    }

    /// An array with at least one element.
    pub(super) fn array<'a>(&mut self, value: &'a Value, at: &At) -> Option<&'a Vec<Value>> {
        value
            .as_array()
            .filter(|array| !array.is_empty())
            .or_else(|| self.add(at, "must be an array with at least one element"))
    }

    /// Text that must be known before any run.
    pub(super) fn constant<'a>(&mut self, value: &'a Value, at: &At) -> Option<&'a str> {
        let text = value.as_str().or_else(|| self.add(at, "must be text"))?;
        if self.refers(text) { self.add(at, "must not refer to a parameter") } else { Some(text) }
    }

    /// Text, or a number or a truth value as text.
    pub(super) fn scalar(&mut self, value: &Value, at: &At) -> Option<String> {
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(truth) => Some(truth.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                self.add(at, "must be text, a number, true or false")
            }
        }
    }

    /// Whether these are arguments as a bundle gives them.
    pub(super) const fn is_template(&self) -> bool {
        match self.stage {
            Stage::Template => true,
            Stage::Bound => false,
        }
    }

    /// Whether a text has a parameter in it that is not filled in yet.
    pub(super) fn refers(&self, text: &str) -> bool {
        // `$$` is a dollar sign that begins nothing.
        self.is_template() && text.replace("$$", "").contains("${")
    }

    /// Whether a value is one parameter that is not filled in yet, and so of a type not known yet.
    pub(super) fn is_open(&self, value: &Value) -> bool {
        value.as_str().is_some_and(|text| {
            self.refers(text) && text.starts_with("${") && text.find('}') == Some(text.len() - 1)
        })
    }
}
