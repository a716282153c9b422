//! The pages: plain HTML from the server. No script, no outside asset; every value is escaped where it is put in.

use std::fmt;

use super::forms::{self, NoteForm, TriageForm, Wrong};
use super::patients::Patient;
use super::store::{Content, Write};
use super::time;

/// The triage categories, by number.
const CATEGORIES: [(u8, &str); 5] =
    [(1, "Immediate"), (2, "Very urgent"), (3, "Urgent"), (4, "Standard"), (5, "Not urgent")];

const STYLE: &str = include_str!("style.css");

/// A plus sign in a rounded square.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 28 28'%3E\
    %3Crect width='28' height='28' rx='7' fill='%230b6e75'/%3E\
    %3Cpath d='M14 7v14M7 14h14' stroke='%23fff' stroke-width='3.5' stroke-linecap='round'/%3E%3C/svg%3E";

/// What the patient page shows besides the patient.
#[derive(Debug, Default)]
pub(super) struct PatientPage<'a> {
    /// All records of the patient, oldest first.
    pub(super) writes: &'a [Write],
    /// The kind of record that was just saved.
    pub(super) saved: Option<&'static str>,
    /// What was typed into the triage form.
    pub(super) triage: TriageForm,
    /// What was typed into the note form.
    pub(super) note: NoteForm,
    /// What is wrong with the form that was sent.
    pub(super) wrong: Vec<Wrong>,
}

/// Why the sign-in page is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignInReason {
    /// The user came by themselves.
    Plain,
    /// The page that was asked for needs a session, and there is none, or none any more.
    NeedsSession,
    /// User name or password was wrong.
    WrongPassword,
    /// The user has signed out.
    SignedOut,
}

/// The sign-in page. `next` is the path to go on to.
pub(super) fn sign_in(reason: SignInReason, next: &str) -> String {
    let banner = match reason {
        SignInReason::Plain => "",
        SignInReason::NeedsSession => {
            r#"<p class="banner bad" role="alert">You are not signed in, or your session has ended.</p>"#
        }
        SignInReason::WrongPassword => {
            r#"<p class="banner bad" role="alert">User name or password is wrong.</p>"#
        }
        SignInReason::SignedOut => r#"<p class="banner" role="status">You are signed out.</p>"#,
    };
    let main = format!(
        r#"<div class="narrow">{banner}
<section class="card" aria-labelledby="title">
<h1 id="title">Sign in</h1>
<p class="lead">Demonstration clinic with invented patients.</p>
<form method="post" action="/sign-in">
<input type="hidden" name="next" value="{next}">
<div class="field"><label for="user">User name</label>
<input id="user" name="user" required maxlength="100" autocomplete="username" autocapitalize="none" spellcheck="false"></div>
<div class="field"><label for="password">Password</label>
<input id="password" name="password" type="password" required maxlength="100" autocomplete="current-password"></div>
<button type="submit">Sign in</button>
</form></section></div>"#,
        next = Escaped(next),
    );
    page("Sign in", None, &main)
}

/// The list of patients that a search found, each with its latest triage category and its number of notes.
pub(super) fn patients(user: &str, search: &str, found: &[(&Patient, Option<u8>, usize)]) -> String {
    let mut rows = String::new();
    for (patient, category, notes) in found {
        rows.push_str(&format!(
            r#"<tr><th scope="row"><a href="/patients/{id}">{name}</a></th><td class="number">{mrn}</td><td class="number">{dob}</td><td>{reason}</td><td>{badge}</td><td class="number">{notes}</td></tr>
"#,
            id = Escaped(patient.id),
            name = Escaped(patient.name),
            mrn = Escaped(patient.mrn),
            dob = Escaped(patient.dob),
            reason = Escaped(patient.reason),
            badge = badge(*category),
        ));
    }
    let result = if found.is_empty() {
        format!(
            r#"<p class="card">No patient matches “{}”. <a href="/patients">Show all patients</a></p>"#,
            Escaped(search)
        )
    } else {
        format!(
            r#"<div class="card scroll" role="region" aria-label="Patients" tabindex="0"><table>
<thead><tr><th scope="col">Name</th><th scope="col">MRN</th><th scope="col">Date of birth</th><th scope="col">Reason for visit</th><th scope="col">Triage</th><th scope="col">Notes</th></tr></thead>
<tbody>
{rows}</tbody></table></div>"#
        )
    };
    let count = found.len();
    let patients = if count == 1 { "patient" } else { "patients" };
    let main = format!(
        r#"<h1>Patients</h1>
<p class="lead">{count} {patients}</p>
<search><form class="search" method="get" action="/patients">
<div><label for="q">Name, MRN or date of birth</label>
<input id="q" name="q" type="search" maxlength="100" value="{search}"></div>
<button type="submit">Search</button>
</form></search>
{result}"#,
        search = Escaped(search),
    );
    page("Patients", Some(user), &main)
}

/// The page of one patient.
pub(super) fn patient(user: &str, patient: &Patient, shown: &PatientPage<'_>) -> String {
    let banner = match (shown.wrong.is_empty(), shown.saved) {
        (false, _) => {
            let list: String =
                shown.wrong.iter().map(|wrong| format!("<li>{}</li>", Escaped(wrong.message))).collect();
            format!(r#"<div class="banner bad" role="alert">Nothing was saved.<ul>{list}</ul></div>"#)
        }
        (true, Some("triage")) => r#"<p class="banner" role="status">Triage saved</p>"#.to_owned(),
        (true, Some(_)) => r#"<p class="banner" role="status">Note saved</p>"#.to_owned(),
        (true, None) => String::new(),
    };
    let main = format!(
        r#"<p class="back"><a href="/patients">← All patients</a></p>
{banner}
<h1>{name}</h1>
<dl class="facts">
<div><dt>MRN</dt><dd class="number">{mrn}</dd></div>
<div><dt>Date of birth</dt><dd class="number">{dob}</dd></div>
<div><dt>Sex</dt><dd>{sex}</dd></div>
<div><dt>Allergies</dt><dd>{allergies}</dd></div>
<div><dt>Reason for visit</dt><dd>{reason}</dd></div>
</dl>
<div class="columns">
{triage}
{notes}
</div>"#,
        name = Escaped(patient.name),
        mrn = Escaped(patient.mrn),
        dob = Escaped(patient.dob),
        sex = Escaped(patient.sex),
        allergies = Escaped(patient.allergies),
        reason = Escaped(patient.reason),
        triage = triage_card(patient, shown),
        notes = notes_card(patient, shown),
    );
    page(patient.name, Some(user), &main)
}

/// A page for what went wrong, or what is not there.
pub(super) fn error(status: u16, user: Option<&str>, title: &str, text: &str) -> String {
    let main = format!(
        r#"<section class="card narrow" aria-labelledby="title"><p class="soft">Error {status}</p>
<h1 id="title">{title}</h1>
<p>{text}</p>
<p><a href="/patients">Go to the patients</a></p></section>"#,
        title = Escaped(title),
        text = Escaped(text),
    );
    page(title, user, &main)
}

fn triage_card(patient: &Patient, shown: &PatientPage<'_>) -> String {
    let latest = shown.writes.iter().rev().find_map(|write| match &write.content {
        Content::Triage { category, pain, text } => Some((write, *category, *pain, text)),
        Content::Note { .. } => None,
    });
    let latest = match latest {
        None => r#"<p class="soft">Not triaged yet.</p>"#.to_owned(),
        Some((write, category, pain, text)) => format!(
            r#"<p>{badge} <span class="soft">Pain {pain} of 10</span></p>
{text}<p class="meta">{meta}</p>"#,
            badge = badge(Some(category)),
            text = if text.is_empty() {
                String::new()
            } else {
                format!(r#"<p class="text">{}</p>"#, Escaped(text))
            },
            meta = meta(write),
        ),
    };
    let form = &shown.triage;
    let options: String = CATEGORIES
        .iter()
        .map(|(number, name)| {
            let selected = if form.category == number.to_string() { " selected" } else { "" };
            format!(r#"<option value="{number}"{selected}>{number} – {name}</option>"#)
        })
        .collect();
    format!(
        r#"<section class="card" aria-labelledby="triage"><h2 id="triage">Triage</h2>
{latest}
<h3 id="new-triage">New assessment</h3>
<form method="post" action="/patients/{id}/triage" aria-labelledby="new-triage">
<div class="pair">
<div class="field"><label for="triage-category">Category</label>
<select id="triage-category" name="category" required{category_state}><option value="">Choose…</option>{options}</select>{category_wrong}</div>
<div class="field"><label for="triage-pain">Pain score, 0 to 10</label>
<input id="triage-pain" name="pain" type="number" min="0" max="10" step="1" required value="{pain}"{pain_state}>{pain_wrong}</div>
</div>
<div class="field"><label for="triage-text">Assessment (optional)</label>
<textarea id="triage-text" name="text" maxlength="{text_max}"{text_state}>
{text}</textarea>{text_wrong}</div>
{reference}
<button type="submit">Save triage</button>
</form></section>"#,
        id = Escaped(patient.id),
        category_state = state(&shown.wrong, forms::CATEGORY),
        category_wrong = wrong(&shown.wrong, forms::CATEGORY),
        pain = Escaped(&form.pain),
        pain_state = state(&shown.wrong, forms::PAIN),
        pain_wrong = wrong(&shown.wrong, forms::PAIN),
        text_max = forms::TEXT_CHARS_MAX,
        text = Escaped(&form.text),
        text_state = state(&shown.wrong, forms::TRIAGE_TEXT),
        text_wrong = wrong(&shown.wrong, forms::TRIAGE_TEXT),
        reference = reference(&shown.wrong, forms::TRIAGE_REFERENCE, &form.client_ref),
    )
}

fn notes_card(patient: &Patient, shown: &PatientPage<'_>) -> String {
    let mut list = String::new();
    for write in shown.writes.iter().rev() {
        match &write.content {
            Content::Triage { .. } => {}
            Content::Note { text } => list.push_str(&format!(
                r#"<li><p class="text">{}</p><p class="meta">{}</p></li>
"#,
                Escaped(text),
                meta(write)
            )),
        }
    }
    let list = if list.is_empty() {
        r#"<p class="soft">No notes yet.</p>"#.to_owned()
    } else {
        format!(r#"<ul class="notes">{list}</ul>"#)
    };
    format!(
        r#"<section class="card" aria-labelledby="notes"><h2 id="notes">Notes</h2>
{list}
<h3 id="new-note">New note</h3>
<form method="post" action="/patients/{id}/notes" aria-labelledby="new-note">
<div class="field"><label for="note-text">Note</label>
<textarea id="note-text" name="text" required maxlength="{text_max}"{text_state}>
{text}</textarea>{text_wrong}</div>
{reference}
<button type="submit">Save note</button>
</form></section>"#,
        id = Escaped(patient.id),
        text_max = forms::TEXT_CHARS_MAX,
        text = Escaped(&shown.note.text),
        text_state = state(&shown.wrong, forms::NOTE_TEXT),
        text_wrong = wrong(&shown.wrong, forms::NOTE_TEXT),
        reference = reference(&shown.wrong, forms::NOTE_REFERENCE, &shown.note.client_ref),
    )
}

/// The field for the caller's own name of a delivery: out of a person's way, unless it is wrong.
fn reference(all: &[Wrong], field: &'static str, value: &str) -> String {
    let open = if all.iter().any(|wrong| wrong.field == field) { " open" } else { "" };
    format!(
        r#"<details{open}><summary>Reference</summary><label for="{field}">Your own reference (optional)</label>
<input id="{field}" name="client_ref" maxlength="{max}" autocomplete="off" spellcheck="false" value="{value}"{state}>{wrong}</details>"#,
        max = forms::REFERENCE_CHARS_MAX,
        value = Escaped(value),
        state = state(all, field),
        wrong = wrong(all, field),
    )
}

/// Attributes that tell a screen reader that a field is wrong, and where it says why.
fn state(all: &[Wrong], field: &'static str) -> String {
    if all.iter().any(|wrong| wrong.field == field) {
        format!(r#" aria-invalid="true" aria-describedby="{field}-wrong""#)
    } else {
        String::new()
    }
}

fn wrong(all: &[Wrong], field: &'static str) -> String {
    all.iter()
        .filter(|wrong| wrong.field == field)
        .map(|wrong| format!(r#"<p class="wrong" id="{field}-wrong">{}</p>"#, Escaped(wrong.message)))
        .collect()
}

fn badge(category: Option<u8>) -> String {
    match category.and_then(|number| CATEGORIES.iter().find(|(known, _)| *known == number)) {
        Some((number, name)) => format!(r#"<span class="badge c{number}">{number} – {name}</span>"#),
        None => r#"<span class="badge">Not triaged</span>"#.to_owned(),
    }
}

fn meta(write: &Write) -> String {
    let exact = time::rfc3339(write.time_ms);
    let reference = match &write.client_ref {
        None => String::new(),
        Some(reference) => format!(" · reference {}", Escaped(reference)),
    };
    format!(
        r#"{author} · <time datetime="{exact}">{short}</time> · record {record}{reference}"#,
        author = Escaped(&write.author),
        exact = Escaped(&exact),
        short = Escaped(&time::for_people(write.time_ms)),
        record = write.record,
    )
}

fn page(title: &str, user: Option<&str>, main: &str) -> String {
    let navigation = match user {
        None => String::new(),
        Some(user) => format!(
            r#"<nav aria-label="Main"><a href="/patients">Patients</a></nav>
<form method="post" action="/sign-out"><span>Signed in as {}</span><button class="quiet" type="submit">Sign out</button></form>"#,
            Escaped(user)
        ),
    };
    format!(
        r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · MockMed</title>
<link rel="icon" href="{ICON}">
<style>
{STYLE}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<a class="brand" href="/patients"><svg viewBox="0 0 28 28" aria-hidden="true"><rect width="28" height="28" rx="7" fill="#0b6e75"/><path d="M14 7v14M7 14h14" stroke="#fff" stroke-width="3.5" stroke-linecap="round"/></svg>MockMed</a>
{navigation}
</header>
<main id="main">
{main}
</main>
<footer>MockMed is a demonstration. Every patient is invented; enter no real data.</footer>
</body>
</html>
"##,
        title = Escaped(title),
    )
}

/// Text as HTML text or as the value of a quoted attribute.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            let (plain, special) = rest.split_at(at);
            f.write_str(plain)?;
            f.write_str(match special.as_bytes().first() {
                Some(b'&') => "&amp;",
                Some(b'<') => "&lt;",
                Some(b'>') => "&gt;",
                Some(b'"') => "&quot;",
                _ => "&#39;",
            })?;
            rest = &special[1..];
        }
        f.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        for (text, want) in [
            ("plain", "plain"),
            ("", ""),
            ("<script>alert('x')</script>", "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"),
            ("\" onfocus=\"x", "&quot; onfocus=&quot;x"),
            ("a & b &amp; ü", "a &amp; b &amp;amp; ü"),
        ] {
            assert_eq!(Escaped(text).to_string(), want);
        }
    }
}
