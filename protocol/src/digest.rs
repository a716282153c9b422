//! Digests and MACs in their text forms, with constant-time equality.

use alloc::borrow::Cow;
use core::fmt;
use core::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Digest as _;
use subtle::ConstantTimeEq as _;

use crate::ids::{InvalidId, from_lower_hex, write_lower_hex};

macro_rules! digest_type {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialOrd, Ord)]
        pub struct $name(pub [u8; 32]);

        impl PartialEq for $name {
            /// Constant time, whatever the contents.
            fn eq(&self, other: &Self) -> bool {
                self.0.ct_eq(&other.0).into()
            }
        }

        impl Eq for $name {}

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($prefix)?;
                write_lower_hex(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                text.strip_prefix($prefix)
                    .and_then(from_lower_hex)
                    .map(Self)
                    .ok_or(InvalidId { what: $what, form: concat!("`", $prefix, "` and 64 lower-case hex digits") })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() { serializer.collect_str(self) } else { self.0.serialize(serializer) }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                if deserializer.is_human_readable() {
                    Cow::<str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
                } else {
                    <[u8; 32]>::deserialize(deserializer).map(Self)
                }
            }
        }
    };
}

digest_type!(
    /// SHA-256 of public content, mostly canonical JSON.
    Sha256Digest, "sha256:", "SHA-256 digest"
);
digest_type!(
    /// HMAC-SHA256: an authority's signature, or the salted digest of a protected value.
    MacDigest, "hmac-sha256:", "HMAC-SHA256"
);
digest_type!(
    /// BLAKE3 of the machine's state, as RULINGS 27 defines it.
    StateDigest, "blake3:", "state digest"
);

impl Sha256Digest {
    /// SHA-256 of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn the_published_sha256_vector_holds() {
        // FIPS 180-4 example: "abc".
        assert_eq!(
            Sha256Digest::of(b"abc").to_string(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_digest_parses_only_in_its_own_form() {
        let text = Sha256Digest::of(b"").to_string();
        assert!(text.parse::<Sha256Digest>().is_ok());
        assert!(text.parse::<MacDigest>().is_err());
        assert!(text.to_uppercase().parse::<Sha256Digest>().is_err());
    }
}
