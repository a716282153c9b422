//! What a bundle's version is made of. Source: RULINGS 28.

use alloc::collections::BTreeMap;
use alloc::string::String;

use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;

use crate::canonical_json;
use crate::digest::Sha256Digest;

/// Files at the root of a bundle that its version does not cover: they describe it and change without it.
pub const UNVERSIONED_FILES: [&str; 2] = ["README.md", "opjournal-card.json"];

/// Longest path in a bundle, in bytes.
const MAX_PATH_BYTES: usize = 1024;

/// The version of a bundle with these files: SHA-256 of canonical JSON `{path: digest}`.
///
/// Paths are those of [`bundle_path`]; they are brought into NFC, and [`UNVERSIONED_FILES`] are left out. The
/// digest of a file is over its bytes, that of `workflow.json` is [`workflow_digest`].
#[must_use]
pub fn bundle_version(files: &BTreeMap<String, Sha256Digest>) -> Sha256Digest {
    let covered: BTreeMap<String, Sha256Digest> = files
        .iter()
        .map(|(path, digest)| (path.nfc().collect::<String>(), *digest))
        .filter(|(path, _)| !UNVERSIONED_FILES.contains(&path.as_str()))
        .collect();
    canonical_json::digest_of(&covered)
}

/// Digest of `workflow.json`: SHA-256 over its canonical form, so layout and order of members do not count.
#[must_use]
pub fn workflow_digest(workflow: &Value) -> Sha256Digest {
    canonical_json::digest_of(workflow)
}

/// The one name of a file in its bundle: relative, parts divided by `/`, in NFC.
///
/// `None` for a path that could lead outside or be read differently elsewhere: empty or absolute, over 1,024
/// bytes, with a part that is empty, `.` or `..`, a backslash, a colon or a control character.
#[must_use]
pub fn bundle_path(relative: &str) -> Option<String> {
    let path: String = relative.nfc().collect();
    let acceptable = path.len() <= MAX_PATH_BYTES
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
        && !path.chars().any(|c| matches!(c, '\\' | ':') || c.is_control());
    acceptable.then_some(path)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use serde_json::json;

    use super::*;

    fn files(entries: &[(&str, &[u8])]) -> BTreeMap<String, Sha256Digest> {
        entries.iter().map(|(path, bytes)| ((*path).to_string(), Sha256Digest::of(bytes))).collect()
    }

    #[test]
    fn the_version_covers_paths_and_contents_but_no_card_readme_or_normalisation() {
        let base = bundle_version(&files(&[("a", b"1"), ("d/\u{e9}", b"2")]));
        for (case, other, same) in [
            (
                "card and readme",
                files(&[("a", b"1"), ("d/\u{e9}", b"2"), ("README.md", b"x"), ("opjournal-card.json", b"y")]),
                true,
            ),
            ("NFD name", files(&[("a", b"1"), ("d/e\u{301}", b"2")]), true),
            ("readme in a folder", files(&[("a", b"1"), ("d/\u{e9}", b"2"), ("d/README.md", b"x")]), false),
            ("content", files(&[("a", b"2"), ("d/\u{e9}", b"2")]), false),
            ("name", files(&[("b", b"1"), ("d/\u{e9}", b"2")]), false),
            ("one less", files(&[("a", b"1")]), false),
        ] {
            assert_eq!(bundle_version(&other) == base, same, "{case}");
        }
    }

    #[test]
    fn the_version_is_the_digest_that_anyone_can_recompute() {
        // printf '{"a":"sha256:%s"}' "$(printf 1 | sha256sum | cut -c1-64)" | sha256sum
        let text = json!({"a": Sha256Digest::of(b"1").to_string()}).to_string();
        assert_eq!(bundle_version(&files(&[("a", b"1")])), Sha256Digest::of(text.as_bytes()));
    }

    #[test]
    fn a_path_stays_inside_and_has_one_spelling() {
        for (path, want) in [
            ("workflow.json", Some("workflow.json")),
            ("d/e\u{301}", Some("d/\u{e9}")),
            ("..hidden", Some("..hidden")),
            ("", None),
            ("/etc/passwd", None),
            ("..", None),
            ("a/../b", None),
            ("./a", None),
            ("a//b", None),
            ("a/", None),
            ("a\\..\\b", None),
            ("C:x", None),
            ("a\nb", None),
        ] {
            assert_eq!(bundle_path(path).as_deref(), want, "{path:?}");
        }
        assert_eq!(bundle_path(&"a".repeat(1025)), None);
    }
}
