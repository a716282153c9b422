//! `protocol/EVENTS.md` says what the code does: its tables are made from the types' own descriptions and from the
//! comments beside them, and compared. `UPDATE_GOLDEN=1` rewrites the parts between its markers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use journal::payload;
use protocol::cursor::Cursor;
use protocol::decision::Operator;
use protocol::digest::{MacDigest, Sha256Digest, StateDigest};
use protocol::event::{Event, PAYLOAD_VERSION};
use protocol::ids::{
    AttentionId, BootId, DecisionId, DeliveryId, IdempotencyKey, InstanceId, JournalId, KeyId, LeaseToken,
    PauseId, RequestId, RunId, Seq, StepId, WorkflowId,
};
use protocol::time::{BootMillis, Millis, UnixMillis};
use protocol::vocabulary::Description;
use serde_json::{Value, json};

/// The type of a field, read from its Rust text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Named(String),
    OptionOf(Box<Type>),
    ListOf(Box<Type>),
}

impl Type {
    pub(crate) fn parse(rust: &str) -> Self {
        let rust: String = rust.chars().filter(|character| !character.is_whitespace()).collect();
        let inside = |name: &str| {
            rust.strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('<'))
                .and_then(|rest| rest.strip_suffix('>'))
        };
        if let Some(inner) = inside("Option") {
            return Self::OptionOf(Box::new(Self::parse(inner)));
        }
        if let Some(inner) = inside("Vec") {
            return Self::ListOf(Box::new(Self::parse(inner)));
        }
        if let Some(inner) = inside("Box") {
            return Self::parse(inner);
        }
        match rust.as_str() {
            "String" => Self::Named("text".to_owned()),
            "Cursor" => Self::ListOf(Box::new(Self::Named("Frame".to_owned()))),
            _ => Self::Named(rust),
        }
    }

    fn leaf(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::OptionOf(inner) | Self::ListOf(inner) => inner.leaf(),
        }
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::OptionOf(inner) => write!(f, "option of {inner}"),
            Self::ListOf(inner) => write!(f, "list of {inner}"),
        }
    }
}

/// Every enumeration that stands in `value`, which is a `structure`, with the text that stands there.
pub(crate) fn members(structure: &str, value: &Value) -> Vec<(String, String)> {
    let descriptions = Event::descriptions();
    let mut found = Vec::new();
    collect(&descriptions, &Type::Named(structure.to_owned()), value, &mut found);
    found
}

fn collect(
    descriptions: &BTreeMap<&'static str, Description>,
    of: &Type,
    value: &Value,
    found: &mut Vec<(String, String)>,
) {
    match of {
        Type::OptionOf(_) if value.is_null() => {}
        Type::OptionOf(inner) => collect(descriptions, inner, value, found),
        Type::ListOf(inner) => {
            for item in value.as_array().expect("a list") {
                collect(descriptions, inner, item, found);
            }
        }
        Type::Named(name) => match descriptions.get(name.as_str()) {
            Some(Description::Enumeration(_)) => {
                found.push((name.clone(), value.as_str().expect("a text").to_owned()));
            }
            Some(Description::Structure(fields)) => {
                let members = value.as_object().expect("an object");
                assert_eq!(members.len(), fields.len(), "{name}");
                for (field, rust) in *fields {
                    collect(descriptions, &Type::parse(rust), &members[*field], found);
                }
            }
            None => {}
        },
    }
}

/// A scalar type: how it is stored and what it looks like in JSON. Both are checked on a sample.
struct Scalar {
    name: &'static str,
    stored: &'static str,
    json: String,
}

fn bytes(name: &'static str, stored: &[u8], json: &Value) -> Scalar {
    let text = json.as_str().expect("a text");
    let (prefix, hex) = text.split_at(text.len() - stored.len() * 2);
    let want: String = stored.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, want, "{name}: the JSON form is a prefix and the bytes in hex");
    let stored = match stored.len() {
        16 => "16 bytes",
        32 => "32 bytes",
        other => panic!("{name} is {other} bytes"),
    };
    Scalar { name, stored, json: format!("`{prefix}` and the bytes as lower-case hex digits") }
}

fn number(name: &'static str, stored: &[u8], json: &Value) -> Scalar {
    assert_eq!(stored, [253, 255, 255, 255, 255, 255, 255, 255, 255], "{name} is a u64");
    assert_eq!(json, &json!(u64::MAX), "{name}");
    Scalar { name, stored: "u64", json: "number".to_owned() }
}

fn text(name: &'static str, stored: &[u8], json: &Value) -> Scalar {
    let text = json.as_str().expect("a text");
    let mut want = vec![u8::try_from(text.len()).expect("short")];
    want.extend_from_slice(text.as_bytes());
    assert_eq!(stored, want, "{name} is a text");
    Scalar { name, stored: "text", json: "the same text".to_owned() }
}

/// A scalar, checked on a sample.
macro_rules! scalar {
    ($form:ident, $name:ident, $sample:expr) => {{
        let sample: $name = $sample;
        let stored = payload::encode(&sample).expect("bytes");
        $form(stringify!($name), &stored, &serde_json::to_value(&sample).expect("JSON"))
    }};
}

fn scalars() -> Vec<Scalar> {
    let (id, digest) = ([0x0a; 16], [0x0b; 32]);
    vec![
        scalar!(bytes, JournalId, JournalId(id)),
        scalar!(bytes, InstanceId, InstanceId(id)),
        scalar!(bytes, RunId, RunId(id)),
        scalar!(bytes, PauseId, PauseId(id)),
        scalar!(bytes, DecisionId, DecisionId(id)),
        scalar!(bytes, DeliveryId, DeliveryId(id)),
        scalar!(bytes, BootId, BootId(id)),
        scalar!(bytes, KeyId, KeyId(id)),
        scalar!(bytes, Sha256Digest, Sha256Digest(digest)),
        scalar!(bytes, MacDigest, MacDigest(digest)),
        scalar!(bytes, StateDigest, StateDigest(digest)),
        scalar!(number, Seq, Seq(u64::MAX)),
        scalar!(number, LeaseToken, LeaseToken(Seq(u64::MAX))),
        scalar!(number, UnixMillis, UnixMillis(u64::MAX)),
        scalar!(number, Millis, Millis(u64::MAX)),
        scalar!(number, BootMillis, BootMillis(u64::MAX)),
        scalar!(text, IdempotencyKey, "abcdefghijklmnop".parse().expect("a key")),
        scalar!(text, RequestId, "visit-17".parse().expect("a request id")),
        scalar!(text, StepId, "add-note".parse().expect("a step id")),
        scalar!(text, WorkflowId, format!("wf_{:024x}", 7).parse().expect("a workflow id")),
        scalar!(text, AttentionId, format!("{:024x}", 7).parse().expect("an attention id")),
        scalar!(text, Operator, Operator::new("anna").expect("an operator")),
    ]
}

/// Types of FORMAT.md's payload codec that stand in a field as they are.
const CODEC_TYPES: [&str; 5] = ["bool", "u16", "u32", "u64", "text"];

/// The comments of every type of the protocol: of the type itself under `""`, of its fields and of its variants' texts.
fn comments() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut found: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for path in sources(&root().join("protocol/src")) {
        let source = fs::read_to_string(&path).expect("UTF-8");
        let (mut comment, mut current) = (String::new(), None::<String>);
        for line in source.lines().map(str::trim) {
            if let Some(said) = line.strip_prefix("///") {
                comment.push_str(said);
                continue;
            }
            if line.starts_with("#[") {
                continue;
            }
            let line = line.strip_prefix("pub ").unwrap_or(line);
            let name = |text: &str| {
                text.strip_prefix("struct ").unwrap_or(text).strip_suffix(" {").map(str::to_owned)
            };
            let said = plain(&std::mem::take(&mut comment));
            match name(line).filter(|name| name.chars().all(char::is_alphanumeric)) {
                Some(name) if !said.is_empty() => {
                    found.entry(name.clone()).or_default().insert(String::new(), said);
                    current = Some(name);
                }
                Some(_) | None if line.starts_with('}') => current = None,
                Some(_) | None => {
                    let Some(members) = current.as_ref().and_then(|name| found.get_mut(name)) else {
                        continue;
                    };
                    let member = match (line.split_once(" = \""), line.split_once(": ")) {
                        (Some((_, text)), _) => text.trim_end_matches(['"', ',']),
                        (None, Some((field, _))) => field,
                        (None, None) => continue,
                    };
                    members.entry(member.to_owned()).or_insert(said);
                }
            }
        }
    }
    found
}

/// A comment without the marks that only mean something beside the code.
fn plain(comment: &str) -> String {
    let comment = comment.trim().replace("[`", "`").replace("`]", "`").replace('|', "\\|");
    let comment = comment.split(" Source: ").next().unwrap_or_default();
    match comment.find(" (RULINGS") {
        Some(at) => {
            let end = comment[at..].find(')').map_or(comment.len(), |end| at + end + 1);
            format!("{}{}", &comment[..at], &comment[end..])
        }
        None => comment.to_owned(),
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// Each generated part, by the name in its marker.
fn parts() -> Vec<(&'static str, String)> {
    let comments = comments();
    let said = |of: &str, member: &str| {
        comments.get(of).and_then(|members| members.get(member)).map_or("", String::as_str)
    };
    let mut kinds = String::from("| kind | version | name | structure |\n|---|---|---|---|\n");
    for ((kind, name), structure) in Event::KINDS.iter().zip(Event::STRUCTURES) {
        let _ = writeln!(kinds, "| {kind} | {PAYLOAD_VERSION} | {name} | {structure} |");
    }
    let mut types = String::from("| type | stored as | in JSON |\n|---|---|---|\n");
    for Scalar { name, stored, json } in scalars() {
        let _ = writeln!(types, "| {name} | {stored} | {json} |");
    }
    let (mut structures, mut enumerations) = (String::new(), String::new());
    let descriptions = Event::descriptions();
    // In the order of their kinds, then what they are made of.
    let mut names: Vec<&str> = Event::STRUCTURES.to_vec();
    names.extend(descriptions.keys().filter(|name| !Event::STRUCTURES.contains(name)));
    for name in names {
        let about = said(name, "");
        match &descriptions[name] {
            Description::Structure(fields) => {
                let _ = write!(
                    structures,
                    "\n### {name}\n\n{about}\n\n| field | type | meaning |\n|---|---|---|\n"
                );
                for (field, rust) in *fields {
                    let _ =
                        writeln!(structures, "| {field} | {} | {} |", Type::parse(rust), said(name, field));
                }
            }
            Description::Enumeration(texts) => {
                let _ = write!(
                    enumerations,
                    "\n### {name}\n\n{about}\n\n| number | text | meaning |\n|---|---|---|\n"
                );
                for (number, text) in texts.iter().enumerate() {
                    let _ = writeln!(enumerations, "| {number} | {text} | {} |", said(name, text));
                }
            }
        }
    }
    vec![
        ("kinds", kinds),
        ("scalars", types),
        ("structures", structures.trim_start().to_owned()),
        ("enumerations", enumerations.trim_start().to_owned()),
    ]
}

fn markers(name: &str) -> (String, String) {
    (format!("<!-- generated: {name} -->\n"), format!("<!-- end: {name} -->\n"))
}

#[test]
fn events_md_is_the_code() {
    let path = root().join("protocol/EVENTS.md");
    let stands = fs::read_to_string(&path).expect("EVENTS.md");
    let mut wanted = stands.clone();
    for (name, part) in parts() {
        let (begin, end) = markers(name);
        let from = wanted.find(&begin).unwrap_or_else(|| panic!("no marker {begin}")) + begin.len();
        let to = from + wanted[from..].find(&end).unwrap_or_else(|| panic!("no marker {end}"));
        wanted.replace_range(from..to, &format!("\n{part}\n"));
    }
    if wanted != stands && std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&path, wanted).expect("EVENTS.md");
        return;
    }
    let differs = stands.lines().zip(wanted.lines()).find(|(stands, wanted)| stands != wanted);
    assert!(
        stands == wanted,
        "EVENTS.md is not what the code says, first here: {differs:?}; UPDATE_GOLDEN=1 rewrites it"
    );
}

#[test]
fn every_type_of_a_field_is_described() {
    let descriptions = Event::descriptions();
    let scalars = scalars();
    let mut known: BTreeSet<&str> = scalars.iter().map(|scalar| scalar.name).collect();
    known.extend(CODEC_TYPES);
    known.extend(descriptions.keys());
    let mut named = BTreeSet::new();
    for (structure, description) in &descriptions {
        let Description::Structure(fields) = description else { continue };
        for (field, rust) in *fields {
            let of = Type::parse(rust);
            assert!(
                known.contains(of.leaf()),
                "{structure}.{field} is a `{of}`, which EVENTS.md does not describe"
            );
            named.insert(of.leaf().to_owned());
        }
    }
    for scalar in &scalars {
        let used = named.contains(scalar.name);
        assert!(used, "{} stands in no event", scalar.name);
    }
    for name in descriptions.keys() {
        assert!(named.contains(*name) || Event::STRUCTURES.contains(name), "{name} stands in no event");
    }
}

#[test]
fn every_structure_field_and_variant_has_a_meaning() {
    let comments = comments();
    for (name, description) in Event::descriptions() {
        let own = comments.get(name).unwrap_or_else(|| panic!("{name} has no comment"));
        let members: Vec<&str> = match description {
            Description::Structure(fields) => fields.iter().map(|(field, _)| *field).collect(),
            Description::Enumeration(texts) => texts.to_vec(),
        };
        for member in members {
            assert!(own.get(member).is_some_and(|said| !said.is_empty()), "{name}.{member} has no comment");
        }
    }
}

#[test]
fn a_cursor_is_stored_as_the_list_of_its_frames() {
    assert_eq!(payload::encode(&Cursor::start()), Ok(vec![1, 0, 0, 0]));
    assert_eq!(
        serde_json::to_value(Cursor::start()).expect("JSON"),
        json!([{ "block": 0, "step": 0, "row": 0 }])
    );
}
