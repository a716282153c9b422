//! The pattern of a text parameter.
//!
//! The syntax is that of Rust's `regex` crates without whatever depends on Unicode tables or flags: literals,
//! classes (`[a-z]`, `[[:alpha:]]`), `.`, groups `(…)` and `(?:…)`, `|`, and `* + ? {m,n}`; after a backslash
//! comes punctuation or one of `n r t`. So `[0-9]` and never `\d`, whose meaning grows with Unicode. Matching
//! takes time linear in the text, whatever the pattern.

use alloc::string::String;
use core::fmt;

use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{Compiler, Config};
use regex_automata::{Anchored, Input};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, Look};

use crate::vocabulary::codes;

/// Longest pattern, in characters.
pub const MAX_PATTERN_CHARS: usize = 500;

/// Largest compiled pattern in bytes: bounds the time per character of a text.
const MAX_COMPILED_BYTES: usize = 128 << 10;

/// Deepest nesting of groups and repetitions.
const MAX_NESTING: u32 = 32;

codes!(
    /// Why a text is not a pattern.
    PatternFault {
        /// Empty or longer than [`MAX_PATTERN_CHARS`], or too large once compiled.
        TooLarge = "too_large",
        /// A backslash sequence or a flag outside the allowed syntax.
        Unsupported = "unsupported",
        /// Not a regular expression.
        Malformed = "malformed",
    }
);

impl PatternFault {
    /// What is wrong and what to do, in a fixed sentence.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::TooLarge => {
                "The pattern is empty, or too large; use 1 to 500 characters and small repetitions."
            }
            Self::Unsupported => {
                "The pattern uses a flag or a sequence such as \\d that is not available; \
                 write [0-9], [A-Za-z_] and the like."
            }
            Self::Malformed => "The pattern is not a regular expression; check its brackets and repetitions.",
        }
    }
}

/// A regular expression that a whole text matches or not.
#[derive(Clone)]
pub struct Pattern {
    source: String,
    machine: PikeVM,
}

impl Pattern {
    /// Compiles `source`.
    ///
    /// # Errors
    /// As [`PatternFault`] lists them.
    pub fn new(source: &str) -> Result<Self, PatternFault> {
        if source.is_empty() || source.chars().nth(MAX_PATTERN_CHARS).is_some() {
            return Err(PatternFault::TooLarge);
        }
        if !uses_allowed_syntax(source) {
            return Err(PatternFault::Unsupported);
        }
        let parsed = ParserBuilder::new().nest_limit(MAX_NESTING).build().parse(source);
        let parsed = parsed.map_err(|_| PatternFault::Malformed)?;
        // Anchored as a tree, not as text, so that no pattern can escape its anchors.
        let whole = Hir::concat([Hir::look(Look::Start), parsed, Hir::look(Look::End)].into());
        let config = Config::new().nfa_size_limit(Some(MAX_COMPILED_BYTES));
        let nfa =
            Compiler::new().configure(config).build_from_hir(&whole).map_err(|_| PatternFault::TooLarge)?;
        let machine = PikeVM::new_from_nfa(nfa).map_err(|_| PatternFault::Unsupported)?;
        Ok(Self { source: source.into(), machine })
    }

    /// The pattern as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Whether the whole of `text` matches.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.machine.is_match(&mut self.machine.create_cache(), Input::new(text).anchored(Anchored::Yes))
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.source, f)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Pattern {}

/// Whether every backslash and every `(?` keeps to the allowed syntax. What this lets pass means the same
/// whichever tables of Unicode the program was built with.
fn uses_allowed_syntax(source: &str) -> bool {
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                // `\<` and `\>` are word boundaries.
                Some('<' | '>') | None => return false,
                Some('n' | 'r' | 't') => {}
                Some(escaped) if escaped.is_ascii_punctuation() => {}
                Some(_) => return false,
            },
            '(' if chars.next_if_eq(&'?').is_some() && chars.next() != Some(':') => return false,
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn a_pattern_matches_whole_texts_only() {
        for (pattern, text, matches) in [
            ("[0-9]{3}", "123", true),
            ("[0-9]{3}", "1234", false),
            ("[0-9]{3}", "x123", false),
            ("a|ab", "ab", true),
            ("a|ab", "xa", false),
            ("a|b", "ab", false),
            (".*", "two\nlines", false),
            ("MRN-[0-9]+", "MRN-1\n", false),
            (r"[A-Z]\.[a-z]+", "A.b", true),
            ("\u{e9}+", "\u{e9}\u{e9}", true),
            (".", "\u{1f600}", true),
            ("(?:ab)+", "abab", true),
            ("^a$", "a", true),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().matches(text), matches, "{pattern} on {text:?}");
        }
    }

    #[test]
    fn what_depends_on_tables_flags_or_sheer_size_is_no_pattern() {
        for (pattern, fault) in [
            ("", PatternFault::TooLarge),
            (r"\d+", PatternFault::Unsupported),
            (r"\w", PatternFault::Unsupported),
            (r"\p{L}", PatternFault::Unsupported),
            (r"a\b", PatternFault::Unsupported),
            (r"\<a", PatternFault::Unsupported),
            ("(?i)a", PatternFault::Unsupported),
            ("(?x)a#", PatternFault::Unsupported),
            ("(?P<n>a)", PatternFault::Unsupported),
            ("a\\", PatternFault::Unsupported),
            ("(a", PatternFault::Malformed),
            ("a)(b", PatternFault::Malformed),
            ("[z-a]", PatternFault::Malformed),
            ("a{3,2}", PatternFault::Malformed),
            ("*", PatternFault::Malformed),
            ("((((a{99}){99}){99}){99})", PatternFault::TooLarge),
        ] {
            assert_eq!(Pattern::new(pattern), Err(fault), "{pattern}");
        }
        assert_eq!(Pattern::new(&"a".repeat(501)), Err(PatternFault::TooLarge));
        let nested = format!("{}a{}", "(".repeat(200), ")".repeat(200));
        assert_eq!(Pattern::new(&nested), Err(PatternFault::Malformed));
    }
}
