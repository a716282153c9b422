//! What an answer must look like, and the verdict on the answer that came.

use std::cmp::Ordering;

use protocol::canonical_json::parse_foreign;
use serde_json::{Number, Value, json};

use super::exchange::Answer;
use super::fault::{At, Faults};
use crate::service::ports::{Reading, Verdict};

/// When an action counts as done.
#[derive(Clone)]
pub(super) struct Accept {
    status: Vec<u16>,
    location_prefix: Option<String>,
    body_contains: Vec<String>,
}

/// What a check expects, and what says that there is nothing at all.
pub(super) struct Expectation {
    expect: Expect,
    absent: Option<Absent>,
}

struct Expect {
    status: Vec<u16>,
    json: Vec<JsonTest>,
    body_contains: Vec<String>,
    body_excludes: Vec<String>,
}

struct Absent {
    /// None: the statuses of the expectation.
    status: Option<Vec<u16>>,
    json: Vec<JsonTest>,
}

/// One value of a JSON answer, and what it must be.
struct JsonTest {
    pointer: String,
    test: Test,
}

enum Test {
    Equals(Value),
    AtLeast(Number),
    OneOf(Vec<Value>),
    Exists(bool),
}

impl Accept {
    /// Anything that is not an error.
    pub(super) fn any_success() -> Self {
        Self { status: (200..400).collect(), location_prefix: None, body_contains: Vec::new() }
    }

    /// Reads `accept`; without it, `200`.
    pub(super) fn read(value: Option<&Value>, faults: &mut Faults) -> Option<Self> {
        let Some(value) = value else {
            return Some(Self { status: vec![200], location_prefix: None, body_contains: Vec::new() });
        };
        let at = At::default().member("accept");
        let object = faults.object(value, &at, &["status", "location_prefix", "body_contains"])?;
        let status = match object.get("status") {
            Some(value) => {
                statuses(value, &at.member("status"), faults, |status| (200..400).contains(&status))
            }
            None => faults.add(&at, "needs `status`"),
        };
        let location_prefix = match object.get("location_prefix") {
            Some(value) => location(value, &at.member("location_prefix"), faults).map(Some),
            None => Some(None),
        };
        let body_contains = texts(object.get("body_contains"), &at.member("body_contains"), faults);
        Some(Self { status: status?, location_prefix: location_prefix?, body_contains: body_contains? })
    }

    /// Whether it depends on a body.
    pub(super) const fn needs_body(&self) -> bool {
        !self.body_contains.is_empty()
    }

    /// Whether the answer fulfils it. A redirect must lead to a place on the target.
    pub(super) fn is_fulfilled(&self, answer: &Answer) -> bool {
        let led = match (&self.location_prefix, &answer.location) {
            (Some(prefix), Some(location)) => location.starts_with(prefix),
            (Some(_), None) => false,
            (None, Some(_)) => true,
            (None, None) => !answer.is_redirect(),
        };
        self.status.contains(&answer.status)
            && led
            && (!self.needs_body() || !answer.encoded)
            && self.body_contains.iter().all(|text| answer.contains(text))
    }
}

impl Expectation {
    /// Reads `expect` and `absent`.
    pub(super) fn read(expect: Option<&Value>, absent: Option<&Value>, faults: &mut Faults) -> Option<Self> {
        let root = At::default();
        let expect = match expect {
            Some(value) => Expect::read(value, &root.member("expect"), faults),
            None => faults.add(&root, "needs `expect`"),
        };
        let absent = match absent {
            Some(value) => Absent::read(value, &root.member("absent"), faults).map(Some),
            None => Some(None),
        };
        Some(Self { expect: expect?, absent: absent? })
    }

    /// Whether it speaks of a status, so that such an answer is judged and not followed or given up.
    pub(super) fn names(&self, status: u16) -> bool {
        self.expect.status.contains(&status)
            || self
                .absent
                .as_ref()
                .and_then(|absent| absent.status.as_ref())
                .is_some_and(|all| all.contains(&status))
    }

    /// Judges an answer that is no redirect to be followed.
    pub(super) fn judge(&self, answer: &Answer) -> Reading {
        let Some(body) = self.parse(answer) else { return unreadable() };
        let seen = self.seen(answer, body.as_ref());
        Reading { verdict: self.verdict(answer, body.as_ref()), seen: Some(seen) }
    }

    /// Judges an answer by whether its body differs from the one before. Without one the answer is a baseline.
    pub(super) fn compare(&self, answer: &Answer, baseline: Option<&[u8]>) -> Reading {
        let Some(body) = self.parse(answer) else { return unreadable() };
        if !answer.framed {
            return unreadable();
        }
        let verdict = match (self.verdict(answer, body.as_ref()), baseline) {
            (_, None) => Verdict::Unreadable,
            (Verdict::Holds, Some(before)) if before == answer.body => Verdict::Fails,
            (verdict, Some(_)) => verdict,
        };
        Reading { verdict, seen: Some(answer.body.clone()) }
    }

    /// The body as JSON where it matters: none if it matters and cannot be had, or if the answer says nothing about
    /// the matter at all.
    fn parse(&self, answer: &Answer) -> Option<Option<Value>> {
        let Answer { status, encoded, framed, .. } = *answer;
        // Server errors, refused access, time-outs and overload say nothing about a record. Nor do redirects.
        let speaks = (200..300).contains(&status) || self.names(status) || (400..500).contains(&status);
        let refused = matches!(status, 401 | 403 | 407 | 408 | 421 | 425 | 429);
        if !speaks || (refused && !self.names(status)) {
            return None;
        }
        let expected = self.expect.status.contains(&status);
        let absent = self.absent.as_ref().filter(|absent| absent.fits(status, &self.expect));
        // The end of a body that nothing announced may be the end of the connection only.
        let searches =
            expected && (!self.expect.body_contains.is_empty() || !self.expect.body_excludes.is_empty());
        if (searches && encoded) || (expected && !self.expect.body_excludes.is_empty() && !framed) {
            return None;
        }
        let wants_json =
            (expected && !self.expect.json.is_empty()) || absent.is_some_and(|it| !it.json.is_empty());
        if !wants_json {
            return Some(None);
        }
        // A text that names a member twice says two things at once, and one whose end nothing announced may be cut.
        let body = parse_foreign(&answer.body, answer.body.len()).ok()?;
        let whole = framed || body.is_object() || body.is_array();
        (whole && !encoded).then_some(Some(body))
    }

    fn verdict(&self, answer: &Answer, body: Option<&Value>) -> Verdict {
        if self.expect.holds(answer, body) {
            Verdict::Holds
        } else if self.absent.as_ref().is_some_and(|absent| absent.holds(answer, body, &self.expect)) {
            Verdict::Absent
        } else {
            Verdict::Fails
        }
    }

    /// The status and every value that was judged, and nothing else: what may change beside them does not matter.
    fn seen(&self, answer: &Answer, body: Option<&Value>) -> Vec<u8> {
        let values =
            |tests: &[JsonTest]| -> Vec<Value> { tests.iter().map(|test| json!(test.find(body))).collect() };
        let found =
            |texts: &[String]| -> Vec<bool> { texts.iter().map(|text| answer.contains(text)).collect() };
        json!({
            "absent": self.absent.as_ref().map(|absent| values(&absent.json)),
            "contains": found(&self.expect.body_contains),
            "excludes": found(&self.expect.body_excludes),
            "json": values(&self.expect.json),
            "status": answer.status,
        })
        .to_string()
        .into_bytes()
    }
}

impl Expect {
    fn read(value: &Value, at: &At, faults: &mut Faults) -> Option<Self> {
        let object = faults.object(value, at, &["status", "json", "body_contains", "body_excludes"])?;
        if object.is_empty() {
            return faults.add(at, "must expect something");
        }
        let status = match object.get("status") {
            Some(value) => {
                statuses(value, &at.member("status"), faults, |status| (200..500).contains(&status))
            }
            None => Some(vec![200]),
        };
        let json = tests(object.get("json"), &at.member("json"), faults);
        let body_contains = texts(object.get("body_contains"), &at.member("body_contains"), faults);
        let body_excludes = texts(object.get("body_excludes"), &at.member("body_excludes"), faults);
        Some(Self {
            status: status?,
            json: json?,
            body_contains: body_contains?,
            body_excludes: body_excludes?,
        })
    }

    fn holds(&self, answer: &Answer, body: Option<&Value>) -> bool {
        self.status.contains(&answer.status)
            && self.json.iter().all(|test| test.holds(body))
            && self.body_contains.iter().all(|text| answer.contains(text))
            && !self.body_excludes.iter().any(|text| answer.contains(text))
    }
}

impl Absent {
    fn read(value: &Value, at: &At, faults: &mut Faults) -> Option<Self> {
        let object = faults.object(value, at, &["status", "json"])?;
        if object.is_empty() {
            return faults.add(at, "must say what an absent record looks like: `status`, `json` or both");
        }
        let status = match object.get("status") {
            Some(value) => {
                let known = |status| (200..300).contains(&status) || matches!(status, 404 | 410);
                statuses(value, &at.member("status"), faults, known).map(Some)
            }
            None => Some(None),
        };
        let json = tests(object.get("json"), &at.member("json"), faults);
        let (status, json) = (status?, json?);
        if json.is_empty() && status.iter().flatten().any(|status| *status < 300) {
            return faults.add(at, "a successful answer shows an absence only by `json`");
        }
        Some(Self { status, json })
    }

    /// Whether an answer of this status can show an absence.
    fn fits(&self, status: u16, expect: &Expect) -> bool {
        self.status.as_ref().unwrap_or(&expect.status).contains(&status)
    }

    fn holds(&self, answer: &Answer, body: Option<&Value>, expect: &Expect) -> bool {
        self.fits(answer.status, expect) && self.json.iter().all(|test| test.holds(body))
    }
}

impl JsonTest {
    fn read(value: &Value, at: &At, faults: &mut Faults) -> Option<Self> {
        let object = faults.object(value, at, &["pointer", "equals", "at_least", "one_of", "exists"])?;
        let pointer = match object.get("pointer") {
            Some(value) => pointer(value, &at.member("pointer"), faults),
            None => faults.add(at, "needs `pointer`"),
        };
        let mut tests = object.iter().filter(|(name, _)| *name != "pointer");
        let (Some((name, value)), None) = (tests.next(), tests.next()) else {
            return faults.add(at, "needs exactly one of `equals`, `at_least`, `one_of` and `exists`");
        };
        let at = at.member(name);
        let test = match name.as_str() {
            "equals" => Some(Test::Equals(value.clone())),
            "at_least" => match value {
                Value::Number(number) => Some(Test::AtLeast(number.clone())),
                other if faults.is_open(other) => Some(Test::AtLeast(0.into())),
                Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                    faults.add(&at, "must be a number")
                }
            },
            "one_of" => faults.array(value, &at).map(|values| Test::OneOf(values.clone())),
            "exists" => match value {
                Value::Bool(exists) => Some(Test::Exists(*exists)),
                Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                    faults.add(&at, "must be true or false")
                }
            },
            // An unknown member, which `object` has noted.
            _ => None,
        };
        Some(Self { pointer: pointer?, test: test? })
    }

    fn find<'a>(&self, body: Option<&'a Value>) -> Option<&'a Value> {
        body.and_then(|body| body.pointer(&self.pointer))
    }

    fn holds(&self, body: Option<&Value>) -> bool {
        let found = self.find(body);
        match &self.test {
            Test::Equals(wanted) => found.is_some_and(|found| is_same(found, wanted)),
            Test::AtLeast(least) => match found {
                Some(Value::Number(found)) => {
                    matches!(compare(found, least), Some(Ordering::Equal | Ordering::Greater))
                }
                Some(
                    Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_),
                )
                | None => false,
            },
            Test::OneOf(wanted) => {
                found.is_some_and(|found| wanted.iter().any(|wanted| is_same(found, wanted)))
            }
            Test::Exists(wanted) => found.is_some_and(|found| !found.is_null()) == *wanted,
        }
    }
}

fn unreadable() -> Reading {
    Reading { verdict: Verdict::Unreadable, seen: None }
}

/// Equal as JSON, where `1` and `1.0` are one number.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare(one, other) == Some(Ordering::Equal),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| other.get(name).is_some_and(|other| is_same(one, other)))
        }
        (one, other) => one == other,
    }
}

fn compare(one: &Number, other: &Number) -> Option<Ordering> {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

fn statuses(value: &Value, at: &At, faults: &mut Faults, fits: impl Fn(u16) -> bool) -> Option<Vec<u16>> {
    let statuses: Vec<_> = faults
        .array(value, at)?
        .iter()
        .enumerate()
        .map(|(index, value)| {
            let status =
                value.as_u64().and_then(|status| u16::try_from(status).ok()).filter(|status| fits(*status));
            status.or_else(|| faults.add(&at.element(index), "this is not a status that can stand here"))
        })
        .collect();
    statuses.into_iter().collect()
}

fn location(value: &Value, at: &At, faults: &mut Faults) -> Option<String> {
    let prefix = value.as_str().or_else(|| faults.add(at, "must be text"))?;
    if prefix.starts_with('/') && !prefix.starts_with("//") {
        Some(prefix.to_owned())
    } else {
        faults.add(at, "must begin with exactly one `/`")
    }
}

fn texts(value: Option<&Value>, at: &At, faults: &mut Faults) -> Option<Vec<String>> {
    let Some(value) = value else { return Some(Vec::new()) };
    let texts: Vec<_> = faults
        .array(value, at)?
        .iter()
        .enumerate()
        .map(|(index, value)| match faults.scalar(value, &at.element(index)) {
            // Every body contains the empty text.
            Some(text) if text.is_empty() => faults.add(&at.element(index), "must not be empty"),
            other => other,
        })
        .collect();
    texts.into_iter().collect()
}

fn tests(value: Option<&Value>, at: &At, faults: &mut Faults) -> Option<Vec<JsonTest>> {
    let Some(value) = value else { return Some(Vec::new()) };
    let tests: Vec<_> = faults
        .array(value, at)?
        .iter()
        .enumerate()
        .map(|(index, value)| JsonTest::read(value, &at.element(index), faults))
        .collect();
    tests.into_iter().collect()
}

fn pointer(value: &Value, at: &At, faults: &mut Faults) -> Option<String> {
    let pointer = faults.constant(value, at)?;
    let escapes = pointer.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    if escapes && (pointer.is_empty() || pointer.starts_with('/')) {
        Some(pointer.to_owned())
    } else {
        faults.add(at, "must be a JSON pointer: empty, or beginning with `/`")
    }
}
