//! Problems of a bundle or of parameters: place, code, and what to do. Never a protected value.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::canonical_json::{JsonFault, JsonProblem, push_token};
use crate::vocabulary::codes;

/// Most problems that one answer lists; a last one says that there are more.
pub const MAX_PROBLEMS: usize = 1000;

codes!(
    /// What is wrong. The texts are stable.
    ProblemCode {
        /// [`JsonFault::TooLarge`], or a text, file, bundle or set of parameters beyond its limit.
        TooLarge = "too_large",
        /// [`JsonFault::ByteOrderMark`].
        ByteOrderMark = "byte_order_mark",
        /// [`JsonFault::NotUtf8`].
        NotUtf8 = "not_utf8",
        /// [`JsonFault::Empty`].
        Empty = "empty",
        /// [`JsonFault::Syntax`].
        Syntax = "json_syntax",
        /// [`JsonFault::TrailingData`].
        TrailingData = "trailing_data",
        /// [`JsonFault::DuplicateKey`].
        DuplicateKey = "duplicate_key",
        /// [`JsonFault::TooDeep`].
        TooDeep = "too_deep",
        /// [`JsonFault::NumberRange`].
        NumberRange = "number_range",
        /// A member that the format does not know.
        UnknownField = "unknown_field",
        /// A member that must be there is not.
        MissingField = "missing_field",
        /// Another JSON type than the format says.
        WrongType = "wrong_type",
        /// A format version that this program does not read.
        UnsupportedFormat = "unsupported_format",
        /// A text of another form than the format says, or none of a closed list.
        InvalidValue = "invalid_value",
        /// A number outside its range.
        OutOfRange = "out_of_range",
        /// Too few or too many items.
        WrongCount = "wrong_count",
        /// A name that something else in the workflow bears already.
        DuplicateName = "duplicate_name",
        /// A name that the engine keeps for itself.
        ReservedName = "reserved_name",
        /// A pattern that is no regular expression of the allowed kind.
        InvalidPattern = "invalid_pattern",
        /// A member that makes no sense beside its neighbours.
        NotAllowedHere = "not_allowed_here",
        /// A `$` that begins neither a reference nor `$$`.
        MalformedReference = "malformed_reference",
        /// A reference to a parameter that the workflow does not declare.
        UnknownReference = "unknown_reference",
        /// A reference that cannot stand in this place.
        ReferenceNotAllowed = "reference_not_allowed",
        /// A step that a person always does has an action.
        AttendedWithAction = "attended_with_action",
        /// Nothing in the step can be checked.
        NothingToVerify = "nothing_to_verify",
        /// A write has no effect that an independent read verifies.
        NoVerifier = "no_verifier",
        /// A consequential step may not be skipped.
        ConsequentialSkip = "consequential_skip",
        /// A read is called consequential.
        ConsequentialRead = "consequential_read",
        /// A read declares effects.
        ReadWithEffects = "read_with_effects",
        /// A check that cannot be repeated later stands where it must be.
        RelativeNotAllowed = "relative_not_allowed",
        /// A parameter that the workflow does not declare was given.
        UnknownParameter = "unknown_parameter",
        /// A required parameter was not given.
        MissingParameter = "missing_parameter",
        /// A parameter's value does not match its pattern.
        PatternMismatch = "pattern_mismatch",
        /// `workflow.json` is not there.
        MissingFile = "missing_file",
        /// A file or folder could not be read.
        Unreadable = "unreadable",
        /// A symbolic link.
        SymbolicLink = "symbolic_link",
        /// Neither a regular file nor a folder.
        NotRegular = "not_regular",
        /// A path that cannot be named the same way everywhere.
        PathNotAllowed = "path_not_allowed",
        /// Two paths that differ only in Unicode normalisation.
        PathNotUnique = "path_not_unique",
        /// More files than the limit.
        TooManyFiles = "too_many_files",
        /// More problems than an answer lists.
        TooManyProblems = "too_many_problems",
    }
);

impl From<JsonFault> for ProblemCode {
    fn from(fault: JsonFault) -> Self {
        match fault {
            JsonFault::TooLarge => Self::TooLarge,
            JsonFault::ByteOrderMark => Self::ByteOrderMark,
            JsonFault::NotUtf8 => Self::NotUtf8,
            JsonFault::Empty => Self::Empty,
            JsonFault::Syntax => Self::Syntax,
            JsonFault::TrailingData => Self::TrailingData,
            JsonFault::DuplicateKey => Self::DuplicateKey,
            JsonFault::TooDeep => Self::TooDeep,
            JsonFault::NumberRange => Self::NumberRange,
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}: {message}", if pointer.is_empty() { "(root)" } else { pointer })]
pub struct Problem {
    /// JSON pointer (RFC 6901) to the place; for something missing, to where it belongs. A name of more than
    /// 128 characters is cut and ends in `…`. Empty for the whole document and for problems of files.
    pub pointer: String,
    /// What is wrong.
    pub code: ProblemCode,
    /// What is wrong and what to do, in a sentence.
    pub message: String,
}

impl From<JsonProblem> for Problem {
    fn from(problem: JsonProblem) -> Self {
        Self {
            pointer: problem.pointer,
            code: problem.fault.into(),
            message: problem.fault.sentence().into(),
        }
    }
}

/// A place in a JSON document: a list that grows on the stack, printed only when there is a problem.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    parent: Option<&'a At<'a>>,
    token: Token<'a>,
}

#[derive(Clone, Copy)]
enum Token<'a> {
    Root,
    Name(&'a str),
    Index(usize),
}

impl<'a> At<'a> {
    pub(super) const ROOT: Self = Self { parent: None, token: Token::Root };

    pub(super) const fn name(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), token: Token::Name(name) }
    }

    pub(super) const fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), token: Token::Index(index) }
    }

    pub(super) fn pointer(&self) -> String {
        let mut pointer = String::new();
        self.print(&mut pointer);
        pointer
    }

    fn print(&self, into: &mut String) {
        if let Some(parent) = self.parent {
            parent.print(into);
        }
        match self.token {
            Token::Root => {}
            Token::Name(name) => push_token(into, name),
            // Writing to a `String` cannot fail.
            Token::Index(index) => drop(write!(into, "/{index}")),
        }
    }
}

/// The problems found so far.
#[derive(Default)]
pub(super) struct Problems {
    found: Vec<Problem>,
}

impl Problems {
    /// Adds a problem and answers `None`, so that a reader can end with it.
    pub(super) fn add<T>(&mut self, at: &At<'_>, code: ProblemCode, message: impl Into<String>) -> Option<T> {
        if self.found.len() < MAX_PROBLEMS {
            self.found.push(Problem { pointer: at.pointer(), code, message: message.into() });
        } else if self.found.len() == MAX_PROBLEMS {
            self.found.push(Problem {
                pointer: String::new(),
                code: ProblemCode::TooManyProblems,
                message: "There are more problems; correct these first.".into(),
            });
        }
        None
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The result of a reading: a value, if nothing was found.
    pub(super) fn finish<T>(self, value: Option<T>) -> Result<T, Vec<Problem>> {
        match value {
            Some(value) if self.found.is_empty() => Ok(value),
            Some(_) | None => Err(self.found),
        }
    }
}
