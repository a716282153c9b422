//! Canonical JSON (RFC 8785), the digests over it, and the strict parser for everything that comes from
//! outside.
//!
//! `serde_jcs` 0.2, `serde_json_canonicalizer` 0.4 and `json-canon` 0.1 all need `std`, so the form is
//! written here on `ryu-js`, the number printer they rest on themselves. The RFC's own vectors are in this
//! module's tests.

mod strict;

use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;
use serde_json::Value;

use crate::digest::Sha256Digest;

pub use strict::{JsonFault, JsonProblem, MAX_DEPTH, parse_foreign, parse_strict};
pub(crate) use strict::{normal_float, push_token};

/// Largest integer that canonical JSON can tell from its neighbours: 2^53 - 1.
pub const MAX_INTEGER: i64 = (1 << 53) - 1;

/// Why a value has no canonical form. Never carries the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    /// An integer that the canonical form would make equal to another one.
    #[error(
        "an integer lies beyond ±(2^53-1), where canonical JSON cannot tell two of \
         them apart; send it as text"
    )]
    InexactInteger,
    /// The type's own serialisation failed, or a map has keys that are not text.
    #[error("the value cannot be written as JSON")]
    NotJson,
}

/// The canonical form of `value`: RFC 8785, UTF-8, without a final newline.
///
/// Floating-point numbers of any size are written as the RFC says.
/// # Errors
/// [`CanonicalError::InexactInteger`] for a number stored as an integer beyond [`MAX_INTEGER`].
pub fn to_canonical(value: &Value) -> Result<Vec<u8>, CanonicalError> {
    if has_inexact_integer(value) {
        return Err(CanonicalError::InexactInteger);
    }
    Ok(bytes_of_value(value))
}

/// The canonical form of anything that serialises to JSON.
///
/// # Errors
/// Those of [`to_canonical`], and [`CanonicalError::NotJson`].
pub fn canonical_of<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    to_canonical(&serde_json::to_value(value).map_err(|_| CanonicalError::NotJson)?)
}

/// One of this project's own values as a JSON tree.
///
/// # Panics
/// If the type's serialisation fails, which no type of this workspace can: their map keys are text or
/// integers, and no `Serialize` of theirs answers an error. For foreign types use [`canonical_of`].
#[must_use]
pub fn value_of<T: Serialize + ?Sized>(value: &T) -> Value {
    match serde_json::to_value(value) {
        Ok(value) => value,
        Err(_) => unreachable!("own types have text keys and a `Serialize` that cannot fail"),
    }
}

/// The canonical form of one of this project's own values, for digests and signatures.
///
/// An integer beyond [`MAX_INTEGER`] (a clock or counter gone wild) is written with all its digits, where the
/// RFC knows no form: two different values never get one digest.
/// # Panics
/// As [`value_of`].
#[must_use]
pub fn bytes_of<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    bytes_of_value(&value_of(value))
}

/// SHA-256 over [`bytes_of`].
///
/// # Panics
/// As [`value_of`].
#[must_use]
pub fn digest_of<T: Serialize + ?Sized>(value: &T) -> Sha256Digest {
    Sha256Digest::of(&bytes_of(value))
}

fn bytes_of_value(value: &Value) -> Vec<u8> {
    let mut out = String::new();
    write_value(&mut out, value);
    out.into_bytes()
}

/// Whether a number stored as an integer lies beyond [`MAX_INTEGER`].
fn has_inexact_integer(value: &Value) -> bool {
    match value {
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => integer.unsigned_abs() > MAX_INTEGER.unsigned_abs(),
            (None, Some(_)) => true,
            (None, None) => false,
        },
        Value::Array(items) => items.iter().any(has_inexact_integer),
        Value::Object(members) => members.values().any(has_inexact_integer),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            // RFC 8785 §3.2.3: by UTF-16 code units, which differs from byte order above U+FFFF.
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|(left, _), (right, _)| left.encode_utf16().cmp(right.encode_utf16()));
            out.push('{');
            for (index, (name, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_text(out, name);
                out.push(':');
                write_value(out, member);
            }
            out.push('}');
        }
    }
}

/// Appends a number as the canonical form prints it.
pub(crate) fn write_number(out: &mut String, number: &serde_json::Number) {
    use core::fmt::Write as _;
    // Within ±2^53 an integer's digits are what ECMAScript prints, too. Writing to a `String` cannot fail.
    let _ = match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(integer), _, _) => write!(out, "{integer}"),
        (None, Some(integer), _) => write!(out, "{integer}"),
        (None, None, Some(float)) => out.write_str(ryu_js::Buffer::new().format(float)),
        // Only a number of arbitrary precision gets here; it keeps its own text.
        (None, None, None) => write!(out, "{number}"),
    };
}

/// RFC 8785 §3.2.2.2.
fn write_text(out: &mut String, text: &str) {
    const HEX: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' => {
                let code = c as usize;
                out.push_str("\\u00");
                out.push(HEX[code >> 4]);
                out.push(HEX[code & 15]);
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests;
