//! The two forms that write: their fields, their limits, and what makes a value wrong.

use super::http::Fields;
use super::store::Content;

/// Most characters of an assessment or a note.
pub(super) const TEXT_CHARS_MAX: usize = 4000;
/// Most characters of a `client_ref`.
pub(super) const REFERENCE_CHARS_MAX: usize = 200;

/// Names of the fields in the page, by which a [`Wrong`] finds its place.
pub(super) const CATEGORY: &str = "triage-category";
/// See [`CATEGORY`].
pub(super) const PAIN: &str = "triage-pain";
/// See [`CATEGORY`].
pub(super) const TRIAGE_TEXT: &str = "triage-text";
/// See [`CATEGORY`].
pub(super) const TRIAGE_REFERENCE: &str = "triage-reference";
/// See [`CATEGORY`].
pub(super) const NOTE_TEXT: &str = "note-text";
/// See [`CATEGORY`].
pub(super) const NOTE_REFERENCE: &str = "note-reference";

/// One thing that is wrong with a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Which field.
    pub(super) field: &'static str,
    /// What to do about it.
    pub(super) message: &'static str,
}

/// The triage form as it was filled in.
#[derive(Clone, Debug, Default)]
pub(super) struct TriageForm {
    /// `1` to `5`.
    pub(super) category: String,
    /// `0` to `10`.
    pub(super) pain: String,
    /// Free text; may be empty.
    pub(super) text: String,
    /// May be empty.
    pub(super) client_ref: String,
}

/// The note form as it was filled in.
#[derive(Clone, Debug, Default)]
pub(super) struct NoteForm {
    /// Free text.
    pub(super) text: String,
    /// May be empty.
    pub(super) client_ref: String,
}

/// What a good form says: the record, and the caller's reference.
type Good = (Content, Option<String>);

impl TriageForm {
    /// What was sent.
    pub(super) fn read(fields: &Fields) -> Self {
        let field = |name| fields.get(name).unwrap_or_default().to_owned();
        Self {
            category: field("category"),
            pain: field("pain"),
            text: text(fields),
            client_ref: field("client_ref"),
        }
    }

    /// What it says, or everything that is wrong with it.
    pub(super) fn check(&self) -> Result<Good, Vec<Wrong>> {
        let mut wrong = Vec::new();
        let category = number(&self.category, 1, 5);
        if category.is_none() {
            wrong.push(Wrong { field: CATEGORY, message: "Choose a category from 1 to 5." });
        }
        let pain = number(&self.pain, 0, 10);
        if pain.is_none() {
            wrong.push(Wrong { field: PAIN, message: "Give the pain score as a whole number from 0 to 10." });
        }
        wrong.extend(check_text(&self.text, TRIAGE_TEXT));
        wrong.extend(check_reference(&self.client_ref, TRIAGE_REFERENCE));
        match (category, pain) {
            (Some(category), Some(pain)) if wrong.is_empty() => {
                Ok((Content::Triage { category, pain, text: self.text.clone() }, reference(&self.client_ref)))
            }
            _ => Err(wrong),
        }
    }
}

impl NoteForm {
    /// What was sent.
    pub(super) fn read(fields: &Fields) -> Self {
        Self { text: text(fields), client_ref: fields.get("client_ref").unwrap_or_default().to_owned() }
    }

    /// What it says, or everything that is wrong with it.
    pub(super) fn check(&self) -> Result<Good, Vec<Wrong>> {
        let mut wrong = Vec::new();
        if self.text.is_empty() {
            wrong.push(Wrong { field: NOTE_TEXT, message: "Write the note." });
        }
        wrong.extend(check_text(&self.text, NOTE_TEXT));
        wrong.extend(check_reference(&self.client_ref, NOTE_REFERENCE));
        if wrong.is_empty() {
            Ok((Content::Note { text: self.text.clone() }, reference(&self.client_ref)))
        } else {
            Err(wrong)
        }
    }
}

/// Browsers send line breaks as CR LF; they are kept as LF.
fn text(fields: &Fields) -> String {
    fields.get("text").unwrap_or_default().replace("\r\n", "\n")
}

/// Digits only: `+5` and ` 5` are nothing that our form sends.
fn number(text: &str, low: u8, high: u8) -> Option<u8> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && (low..=high).contains(number))
}

fn check_text(text: &str, field: &'static str) -> Option<Wrong> {
    if text.chars().count() > TEXT_CHARS_MAX {
        return Some(Wrong { field, message: "Shorten the text to 4000 characters." });
    }
    let control = |c: char| c.is_control() && c != '\n' && c != '\t';
    text.contains(control).then_some(Wrong { field, message: "Remove the control characters from the text." })
}

fn check_reference(text: &str, field: &'static str) -> Option<Wrong> {
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte));
    (!plain || text.len() > REFERENCE_CHARS_MAX).then_some(Wrong {
        field,
        message: "Give the reference as up to 200 letters, digits, dots, underscores, colons or hyphens.",
    })
}

fn reference(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}
