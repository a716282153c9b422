//! The strict parser: what it accepts has one meaning, is bounded, and survives its canonical form.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::MAX_INTEGER;
use crate::vocabulary::codes;

/// Deepest nesting of arrays and objects; the outermost one counts. Source: RULINGS 40.
pub const MAX_DEPTH: usize = 64;

codes!(
    /// Why bytes are not acceptable as JSON.
    JsonFault {
        /// More bytes than the caller allows.
        TooLarge = "too_large",
        /// Begins with a byte order mark.
        ByteOrderMark = "byte_order_mark",
        /// Not UTF-8.
        NotUtf8 = "not_utf8",
        /// Nothing but white space.
        Empty = "empty",
        /// Not JSON, or it ends too early.
        Syntax = "json_syntax",
        /// Something follows the value.
        TrailingData = "trailing_data",
        /// Two members of one object have the same name.
        DuplicateKey = "duplicate_key",
        /// Nested deeper than [`MAX_DEPTH`].
        TooDeep = "too_deep",
        /// A number whose value is an integer beyond ±(2^53-1), however it is spelt. Source: RULINGS 21.
        NumberRange = "number_range",
    }
);

impl JsonFault {
    /// What is wrong and what to do, in a fixed sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::TooLarge => "The text is larger than the limit; make it smaller.",
            Self::ByteOrderMark => "The text begins with a byte order mark; save it as plain UTF-8.",
            Self::NotUtf8 => "The text is not UTF-8; save it as UTF-8.",
            Self::Empty => "There is nothing here; a JSON value is expected.",
            Self::Syntax => "This is not valid JSON, or it ends too early; correct it here or just before.",
            Self::TrailingData => "Something follows the end of the JSON value; remove it.",
            Self::DuplicateKey => "This name occurs twice in its object; keep one of the two.",
            Self::TooDeep => "Arrays and objects are nested more than 64 levels deep; flatten them.",
            Self::NumberRange => {
                "The value of this number is an integer beyond ±9007199254740991; write it as text instead."
            }
        }
    }
}

/// Where and why bytes were refused. Never carries a value; the pointer names members only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}", pointer_or_root(pointer), fault.sentence())]
pub struct JsonProblem {
    /// JSON pointer (RFC 6901) to the value, or to the innermost one that was begun. A name of more than 128
    /// characters is cut and ends in `…`.
    pub pointer: String,
    /// What is wrong.
    pub fault: JsonFault,
}

fn pointer_or_root(pointer: &str) -> &str {
    if pointer.is_empty() { "(root)" } else { pointer }
}

/// Parses one JSON value from at most `max_bytes` bytes.
///
/// A number with an integral value becomes an integer (`1.0` is `1`, `-0` is `0`), so two values are equal
/// exactly when their canonical forms are. Never recurses deeper than [`MAX_DEPTH`].
/// # Errors
/// The first problem, as [`JsonFault`] lists them.
pub fn parse_strict(bytes: &[u8], max_bytes: usize) -> Result<Value, JsonProblem> {
    parse(bytes, max_bytes, Numbers::Exact)
}

/// As [`parse_strict`], for what somebody else's program wrote: numbers of any size are taken as they are. That a name
/// stands twice is refused all the same, for such a text says two things at once.
/// # Errors
/// The first problem, as [`JsonFault`] lists them.
pub fn parse_foreign(bytes: &[u8], max_bytes: usize) -> Result<Value, JsonProblem> {
    parse(bytes, max_bytes, Numbers::Any)
}

/// Which numbers are accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// Those whose canonical forms are equal exactly when they are.
    Exact,
    /// Every one.
    Any,
}

fn parse(bytes: &[u8], max_bytes: usize, numbers: Numbers) -> Result<Value, JsonProblem> {
    let at_root = |fault| JsonProblem { pointer: String::new(), fault };
    if bytes.len() > max_bytes {
        return Err(at_root(JsonFault::TooLarge));
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(at_root(JsonFault::ByteOrderMark));
    }
    let text = core::str::from_utf8(bytes).map_err(|_| at_root(JsonFault::NotUtf8))?;
    if text.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
        return Err(at_root(JsonFault::Empty));
    }
    let mut place = Place { parts: Vec::new(), fault: None, numbers };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    match (StrictValue { place: &mut place }).deserialize(&mut deserializer) {
        Ok(value) => deserializer.end().map(|()| value).map_err(|_| at_root(JsonFault::TrailingData)),
        Err(error) => {
            let fault = place.fault.unwrap_or_else(|| syntax_fault(text, &error));
            Err(JsonProblem { pointer: place.pointer(), fault })
        }
    }
}

/// Appends one reference token of a JSON pointer, escaped as RFC 6901 says and cut after 128 characters.
pub(crate) fn push_token(pointer: &mut String, token: &str) {
    const LONGEST: usize = 128;
    pointer.push('/');
    for (index, c) in token.chars().enumerate() {
        match c {
            _ if index == LONGEST => {
                pointer.push('…');
                return;
            }
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            _ => pointer.push(c),
        }
    }
}

/// Tells a number too large for a double, which `serde_json` reports as bad syntax, from other bad syntax:
/// the token that ends where the parser stopped is a number and its value infinite.
fn syntax_fault(text: &str, error: &serde_json::Error) -> JsonFault {
    let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    let bytes = line.as_bytes();
    let stop = error.column().min(bytes.len());
    let end = stop + bytes[stop..].iter().take_while(|byte| is_part(byte)).count();
    for end in [end, stop.saturating_sub(1)] {
        let start = end - bytes[..end].iter().rev().take_while(|byte| is_part(byte)).count();
        if let Some(Ok(number)) = line.get(start..end).map(str::parse::<f64>)
            && number.is_infinite()
        {
            return JsonFault::NumberRange;
        }
    }
    JsonFault::Syntax
}

enum Part {
    Name(String),
    Index(usize),
}

/// Where the parser is, and what our own checks found there.
struct Place {
    parts: Vec<Part>,
    fault: Option<JsonFault>,
    numbers: Numbers,
}

impl Place {
    fn pointer(&self) -> String {
        use core::fmt::Write as _;
        let mut pointer = String::new();
        for part in &self.parts {
            match part {
                Part::Name(name) => push_token(&mut pointer, name),
                // Writing to a `String` cannot fail.
                Part::Index(index) => drop(write!(pointer, "/{index}")),
            }
        }
        pointer
    }

    fn refuse<E: serde::de::Error>(&mut self, fault: JsonFault) -> E {
        self.fault = Some(fault);
        E::custom("refused")
    }

    /// Refuses a container that would be nested too deeply; `parts` holds one part per container around it.
    fn enter<E: serde::de::Error>(&mut self) -> Result<(), E> {
        if self.parts.len() >= MAX_DEPTH { Err(self.refuse(JsonFault::TooDeep)) } else { Ok(()) }
    }
}

/// Reads one value at `place`. On an error `place` is left where it happened.
struct StrictValue<'p> {
    place: &'p mut Place,
}

impl<'de> DeserializeSeed<'de> for StrictValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValue<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        if value > MAX_INTEGER.unsigned_abs() && self.place.numbers == Numbers::Exact {
            return Err(self.place.refuse(JsonFault::NumberRange));
        }
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > MAX_INTEGER.unsigned_abs() && self.place.numbers == Numbers::Exact {
            return Err(self.place.refuse(JsonFault::NumberRange));
        }
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        let taken = normal_float(value).or_else(|| match self.place.numbers {
            Numbers::Exact => None,
            Numbers::Any => Number::from_f64(value),
        });
        match taken {
            Some(number) => Ok(Value::Number(number)),
            None => Err(self.place.refuse(JsonFault::NumberRange)),
        }
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.place.enter::<A::Error>()?;
        let mut list = Vec::new();
        loop {
            self.place.parts.push(Part::Index(list.len()));
            let item = items.next_element_seed(StrictValue { place: &mut *self.place })?;
            self.place.parts.pop();
            match item {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.place.enter::<A::Error>()?;
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            self.place.parts.push(Part::Name(name.clone()));
            if object.contains_key(&name) {
                return Err(self.place.refuse(JsonFault::DuplicateKey));
            }
            let member = members.next_value_seed(StrictValue { place: &mut *self.place })?;
            self.place.parts.pop();
            object.insert(name, member);
        }
        Ok(Value::Object(object))
    }
}

/// The one stored form of a floating-point value: an integer where its value is one. `None` beyond
/// [`MAX_INTEGER`], where every double is an integer.
pub(crate) fn normal_float(value: f64) -> Option<Number> {
    // Both bounds are exact doubles, and a value between them that survives the round trip is an integer.
    let limit = MAX_INTEGER as f64;
    if !(-limit..=limit).contains(&value) {
        return None;
    }
    let integer = value as i64;
    if integer as f64 == value { Some(integer.into()) } else { Number::from_f64(value) }
}
