//! The chain: BLAKE3 over stored bytes. FORMAT.md, "Checksums and chain".

use std::sync::LazyLock;

use blake3::Hasher;
use blake3::hazmat::{ContextKey, HasherExt as _, hash_derive_key_context};
use protocol::ids::JournalId;

/// A value of the chain: it binds every byte before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Chain(pub [u8; 32]);

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::fmt::Display for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

// A context is hashed once per process, not once per block.
static ROOT: LazyLock<ContextKey> =
    LazyLock::new(|| hash_derive_key_context("opjournal 2026 v1 journal root"));
static HEADER: LazyLock<ContextKey> =
    LazyLock::new(|| hash_derive_key_context("opjournal 2026 v1 segment header"));
static BLOCK: LazyLock<ContextKey> = LazyLock::new(|| hash_derive_key_context("opjournal 2026 v1 block"));
static KEY: LazyLock<ContextKey> = LazyLock::new(|| hash_derive_key_context("opjournal 2026 v1 lookup key"));

fn hash(context: &ContextKey, parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Hasher::new_from_context_key(context);
    for part in parts {
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

impl Chain {
    /// At entry of segment 0.
    pub(crate) fn root(journal_id: JournalId) -> Self {
        Self(hash(&ROOT, &[&journal_id.0]))
    }

    /// After a segment header.
    pub(crate) fn after_header(header: &[u8]) -> Self {
        Self(hash(&HEADER, &[header]))
    }

    /// After a block or table block, given all its stored bytes.
    pub(crate) fn after_block(block: &[u8]) -> Self {
        Self(hash(&BLOCK, &[block]))
    }
}

/// FORMAT.md, "Record", `key`, before it is cut to its length.
pub(crate) fn lookup_key(class: u8, text: &[u8]) -> [u8; 32] {
    hash(&KEY, &[&[class], text])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_is_blake3_in_key_derivation_mode() {
        assert_eq!(Chain::after_block(b"abc").0, blake3::derive_key("opjournal 2026 v1 block", b"abc"));
        assert_eq!(lookup_key(5, b"ab"), blake3::derive_key("opjournal 2026 v1 lookup key", b"\x05ab"));
        assert_ne!(Chain::after_header(b"abc"), Chain::after_block(b"abc"));
    }
}
