//! The request that arguments describe. No parameter can change which place it goes to: each path segment and each
//! query value is percent-encoded by itself.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Value};
use ureq::http::{HeaderName, HeaderValue, Method};

use super::fault::{At, Faults};
use crate::service::ports::ArgsPurpose;

/// Members of arguments that describe a request.
pub(super) const MEMBERS: [&str; 5] = ["method", "path", "query", "headers", "credential"];

/// Headers that belong to the protocol, or would carry what only a credential may.
const RESERVED: [&str; 18] = [
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "cookie2",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A request, but for its origin, its session and the value of its credential.
pub(super) struct Request {
    pub(super) method: Method,
    /// Begins with `/`; percent-encoded.
    pub(super) path_and_query: String,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) credential: Option<String>,
    pub(super) body: Option<Body>,
}

/// What a request carries.
pub(super) struct Body {
    pub(super) content_type: &'static str,
    pub(super) bytes: Vec<u8>,
}

impl Body {
    /// A form, encoded.
    pub(super) fn form<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self { content_type: "application/x-www-form-urlencoded", bytes: pairs(fields).into_bytes() }
    }
}

/// Reads the members that describe a request.
pub(super) fn read(
    args: &Map<String, Value>,
    purpose: ArgsPurpose,
    known_credentials: &BTreeSet<&str>,
    faults: &mut Faults,
) -> Option<Request> {
    let root = At::default();
    let method = method(args.get("method"), purpose, &root.member("method"), faults);
    let path = match args.get("path") {
        Some(value) => path(value, &root.member("path"), faults),
        None => faults.add(&root, "needs `path`"),
    };
    let query = match args.get("query") {
        // A query that lost a value would ask another question, so none may be left out.
        Some(value) => {
            let fields = fields(value, &root.member("query"), OptionalFields::No, faults);
            fields.map(|fields| pairs(borrowed(&fields)))
        }
        None => Some(String::new()),
    };
    let headers = match args.get("headers") {
        Some(value) => headers(value, &root.member("headers"), faults),
        None => Some(Vec::new()),
    };
    let credential = match args.get("credential") {
        Some(value) => credential(value, known_credentials, &root.member("credential"), faults).map(Some),
        None => Some(None),
    };
    let body = body(args, &root, faults);

    let (path, query) = (path?, query?);
    let path_and_query = if query.is_empty() { path } else { format!("{path}?{query}") };
    Some(Request { method: method?, path_and_query, headers: headers?, credential: credential?, body: body? })
}

/// A path that has no parameter in it.
///
/// # Errors
/// What to change.
pub(super) fn constant_path(path: &str) -> Result<(), &'static str> {
    if !path.starts_with('/') || path.starts_with("//") {
        return Err(
            "must begin with exactly one `/`: requests go to the deployment's target and nowhere else",
        );
    }
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(
            "must be printable ASCII without spaces; percent-encode the rest, or give an array of segments",
        );
    }
    if path.contains(['#', '?', '\\', '"', '<', '>', '`', '{', '}', '^', '|']) {
        return Err("must be a path alone; put what follows a `?` into `query`");
    }
    let mut rest = path.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        match rest.get(at + 1..at + 3) {
            Some(hex) if hex.iter().all(u8::is_ascii_hexdigit) => {}
            Some(_) | None => return Err("has a `%` that is not followed by two hexadecimal digits"),
        }
        rest = rest.get(at + 3..).unwrap_or_default();
    }
    let segments = path.split('/').skip(1);
    if segments
        .map(|segment| segment.to_ascii_lowercase().replace("%2e", "."))
        .any(|segment| is_dots(&segment))
    {
        return Err("must not have `.` or `..` as a segment");
    }
    Ok(())
}

/// Whether a header may not be given by a bundle.
pub(super) fn header_is_reserved(header: &HeaderName) -> bool {
    // A deployment's credential may well be the one authorization header.
    header.as_str() != "authorization" && RESERVED.contains(&header.as_str())
}

fn method(value: Option<&Value>, purpose: ArgsPurpose, at: &At, faults: &mut Faults) -> Option<Method> {
    let text = match value {
        Some(value) => Some(faults.constant(value, at)?),
        None => None,
    };
    match purpose {
        ArgsPurpose::Check => match text {
            None | Some("GET") => Some(Method::GET),
            Some(_) => faults.add(at, "a check may only GET"),
        },
        ArgsPurpose::Read => match text {
            None | Some("GET") => Some(Method::GET),
            Some("HEAD") => Some(Method::HEAD),
            Some(_) => faults.add(at, "an action of class `read` may only GET or HEAD"),
        },
        ArgsPurpose::Write => match text {
            Some("POST") => Some(Method::POST),
            Some("PUT") => Some(Method::PUT),
            Some("PATCH") => Some(Method::PATCH),
            Some("DELETE") => Some(Method::DELETE),
            Some(_) | None => faults.add(at, "an action of class `write` needs POST, PUT, PATCH or DELETE"),
        },
    }
}

fn path(value: &Value, at: &At, faults: &mut Faults) -> Option<String> {
    match value {
        Value::String(path) => {
            if faults.refers(path) {
                return faults.add(at, "give a path with parameters as an array of segments");
            }
            match constant_path(path) {
                Ok(()) => Some(path.clone()),
                Err(why) => faults.add(at, why),
            }
        }
        Value::Array(segments) => {
            let segments: Vec<_> = segments
                .iter()
                .enumerate()
                .map(|(index, segment)| path_segment(segment, &at.element(index), faults))
                .collect();
            segments.into_iter().try_fold(String::new(), |path, segment| Some(path + "/" + &segment?)).map(
                |path| {
                    if path.is_empty() { "/".to_owned() } else { path }
                },
            )
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            faults.add(at, "must be text or an array of segments")
        }
    }
}

fn path_segment(value: &Value, at: &At, faults: &mut Faults) -> Option<String> {
    let segment = faults.scalar(value, at)?;
    if segment.is_empty() || is_dots(&segment) {
        return faults.add(at, "must not be empty, `.` or `..`");
    }
    if segment.chars().any(char::is_control) {
        return faults.add(at, "must not have control characters");
    }
    // A parameter's value may have a `/` in it, which is then encoded; the bundle's own text means two segments by it.
    if faults.is_template() && segment.contains('/') {
        return faults.add(at, "split this at each `/` into segments");
    }
    Some(encoded(&segment))
}

fn headers(value: &Value, at: &At, faults: &mut Faults) -> Option<Vec<(HeaderName, HeaderValue)>> {
    let headers: Vec<_> = faults
        .map(value, at)?
        .iter()
        .map(|(name, value)| header(name, value, &at.member(name), faults))
        .collect();
    headers.into_iter().collect()
}

fn header(name: &str, value: &Value, at: &At, faults: &mut Faults) -> Option<(HeaderName, HeaderValue)> {
    let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else {
        return faults.add(at, "is not a name of a header");
    };
    if RESERVED.contains(&header.as_str()) {
        return faults
            .add(at, "this header is not for bundles; a secret one is a `credential` of the deployment");
    }
    let text = faults.scalar(value, at)?;
    match HeaderValue::from_str(&text) {
        Ok(mut value) => {
            value.set_sensitive(true);
            Some((header, value))
        }
        Err(_) => faults.add(at, "must be printable ASCII"),
    }
}

fn credential(value: &Value, known: &BTreeSet<&str>, at: &At, faults: &mut Faults) -> Option<String> {
    let name = faults.constant(value, at)?;
    if known.contains(name) {
        Some(name.to_owned())
    } else {
        faults.add(at, "the deployment has no credential of this name")
    }
}

fn body(args: &Map<String, Value>, root: &At, faults: &mut Faults) -> Option<Option<Body>> {
    match (args.get("form"), args.get("json")) {
        (Some(_), Some(_)) => faults.add(root, "has both `form` and `json`; keep one"),
        (Some(form), None) => {
            let fields = fields(form, &root.member("form"), OptionalFields::LeftOut, faults);
            fields.map(|fields| Some(Body::form(borrowed(&fields))))
        }
        (None, Some(json)) => {
            Some(Some(Body { content_type: "application/json", bytes: json.to_string().into_bytes() }))
        }
        (None, None) => Some(None),
    }
}

/// What becomes of a field whose optional parameter was not given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OptionalFields {
    LeftOut,
    No,
}

fn fields(
    value: &Value,
    at: &At,
    optional: OptionalFields,
    faults: &mut Faults,
) -> Option<Vec<(String, String)>> {
    let mut fields = Vec::new();
    let mut whole = true;
    for (name, value) in faults.map(value, at)? {
        if value.is_null() && optional == OptionalFields::LeftOut && !faults.is_template() {
            continue;
        }
        match faults.scalar(value, &at.member(name)) {
            Some(value) => fields.push((name.clone(), value)),
            None => whole = false,
        }
    }
    whole.then_some(fields)
}

fn borrowed(fields: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
}

fn pairs<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let pairs: Vec<_> =
        fields.into_iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    pairs.join("&")
}

/// Everything but the unreserved characters of RFC 3986 §2.3, percent-encoded.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

fn is_dots(segment: &str) -> bool {
    matches!(segment, "." | "..")
}
