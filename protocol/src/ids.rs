//! Identifiers: parse, print, order. Two ids that could be swapped have two types.
//!
//! In text forms (JSON, command line) a random id is a prefix and 32 lower-case hex digits; in record
//! payloads it is its 16 bytes. Ids are minted by the service and arrive in `Context`; nothing here is random.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a text is not an identifier of the wanted kind. Never carries the offending text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {what}: expected {form}")]
pub struct InvalidId {
    /// The kind of identifier that was expected.
    pub what: &'static str,
    /// The form that a valid one has.
    pub form: &'static str,
}

/// Decodes exactly `N` bytes from lower-case hex; anything else is `None`.
pub(crate) fn from_lower_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    fn nibble(byte: u8) -> Option<u8> {
        match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        }
    }
    let digits = text.as_bytes();
    if digits.len() != N * 2 {
        return None;
    }
    let mut bytes = [0_u8; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(bytes)
}

/// Writes bytes as lower-case hex.
pub(crate) fn write_lower_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; 16]);

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
                    .ok_or(InvalidId { what: $what, form: concat!("`", $prefix, "` and 32 lower-case hex digits") })
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
                    <[u8; 16]>::deserialize(deserializer).map(Self)
                }
            }
        }
    };
}

random_id!(
    /// Names one journal for ever; random, minted when the journal is created.
    JournalId, "journal_", "journal id"
);
random_id!(
    /// Names one engine process (one opening of the service); random, minted at start.
    InstanceId, "instance_", "instance id"
);
random_id!(
    /// Names one execution of one bundle version.
    RunId, "run_", "run id"
);
random_id!(
    /// Names one durable stop. 128 random bits; never leaves the engine except inside a capability's digest.
    PauseId, "pause_", "pause id"
);
random_id!(
    /// Names one admitted decision.
    DecisionId, "decision_", "decision id"
);
random_id!(
    /// Names one crossing of the delivery boundary; an executor may send it along as its own idempotency key.
    DeliveryId, "delivery_", "delivery id"
);
random_id!(
    /// Names one boot of the machine, as the kernel gives it.
    BootId, "boot_", "boot id"
);
random_id!(
    /// Names a capability key (the first 16 bytes of a hash of the key; says nothing about it).
    KeyId, "key_", "key id"
);

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

counter!(
    /// Position of a record in the journal: 0 is the first, gapless, never reused.
    Seq
);
counter!(
    /// Writer epoch: 1 at creation, raised by every recovery. A block of an older epoch cannot follow a newer one.
    Epoch
);

impl Seq {
    /// The position after this one. Saturates, which no journal reaches.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Fencing token of a lease: the [`Seq`] of its grant, so the larger token is the newer lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeaseToken(pub Seq);

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $form:literal, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The identifier as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let valid: fn(&[u8]) -> bool = $valid;
                if valid(text.as_bytes()) {
                    Ok(Self(text.into()))
                } else {
                    Err(InvalidId { what: $what, form: $form })
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Cow::<str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }
    };
}

fn is_key_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-')
}

text_id!(
    /// The caller's stable name for one decision request. Source: DESIGN §4.4.
    IdempotencyKey, "idempotency key", "16 to 200 of A-Z a-z 0-9 . _ : -",
    |text| (16..=200).contains(&text.len()) && text.iter().all(is_key_byte)
);
text_id!(
    /// The caller's stable name for one request to start a run. Source: attended-contract §7.
    RequestId, "request id", "4 to 128 of A-Z a-z 0-9 . _ : -, the first a letter or digit",
    |text| (4..=128).contains(&text.len()) && text[0].is_ascii_alphanumeric() && text.iter().all(is_key_byte)
);
text_id!(
    /// Name of a step, unique in its bundle.
    StepId, "step id", "1 to 64 of a-z 0-9 _ -, the first a letter",
    |text| (1..=64).contains(&text.len())
        && text[0].is_ascii_lowercase()
        && text.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-'))
);
text_id!(
    /// Opaque, stable name of a workflow towards agents: `wf_` and 24 hex digits of its name's digest.
    WorkflowId, "workflow id", "`wf_` and 24 lower-case hex digits",
    |text| text.len() == 27
        && text.starts_with(b"wf_")
        && text[3..].iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
);
text_id!(
    /// Opaque, stable name of one pause towards agents: 24 hex digits. Source: attended-contract §6.
    AttentionId, "attention id", "24 lower-case hex digits",
    |text| text.len() == 24 && text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
);

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_random_id_survives_its_text_form_and_nothing_else_parses() {
        let id = RunId([0xab; 16]);
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in
            ["", "run_", "run_ABABABABABABABABABABABABABABABAB", "pause_abababababababababababababababab"]
        {
            assert!(wrong.parse::<RunId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn keys_keep_to_their_alphabet_and_length() {
        for (text, valid) in [
            ("abcdefghijklmnop", true),
            ("abcdefghijklmno", false),
            ("abcdefghijklmno p", false),
            ("abcdefghijklmno\u{e9}", false),
        ] {
            assert_eq!(text.parse::<IdempotencyKey>().is_ok(), valid, "{text}");
        }
        assert!("a".repeat(200).parse::<IdempotencyKey>().is_ok());
        assert!("a".repeat(201).parse::<IdempotencyKey>().is_err());
        assert!("-abc".parse::<RequestId>().is_err());
        assert!("r1:x".parse::<RequestId>().is_ok());
    }
}
