//! The macros that define closed vocabularies and journalled structures.
//!
//! Both keep a description of themselves beside the type, so that `EVENTS.md` is compared with the code and an
//! independent reader can decode a payload from the document alone.

/// A closed enumeration with one stable text per variant: the text in JSON, the variant's number in a payload.
/// Variants are only ever added at the end.
macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $( $(#[$vdoc:meta])* $variant:ident = $text:literal ),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $( $(#[$vdoc])* #[serde(rename = $text)] $variant ),+
        }

        impl $name {
            /// Every value, in the order of its number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// Every text, in the same order.
            pub const TEXTS: &'static [&'static str] = &[$($text),+];

            /// The stable text of this value.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $text ),+ }
            }

            /// The value of this text, if it is one.
            #[must_use]
            pub fn from_text(text: &str) -> Option<Self> {
                match text { $( $text => Some(Self::$variant), )+ _ => None }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::vocabulary::Described for $name {
            fn describe(into: &mut alloc::collections::BTreeMap<&'static str, $crate::vocabulary::Description>) {
                into.insert(stringify!($name), $crate::vocabulary::Description::Enumeration(Self::TEXTS));
            }
        }
    };
}

/// A structure that stands in record payloads: public fields in their stored order.
macro_rules! record {
    ($(#[$doc:meta])* $name:ident { $( $(#[$fdoc:meta])* $field:ident : $ty:ty ),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub struct $name { $( $(#[$fdoc])* pub $field: $ty ),* }

        impl $crate::vocabulary::Described for $name {
            fn describe(into: &mut alloc::collections::BTreeMap<&'static str, $crate::vocabulary::Description>) {
                into.insert(
                    stringify!($name),
                    $crate::vocabulary::Description::Structure(&[$((stringify!($field), stringify!($ty))),*]),
                );
            }
        }
    };
}

pub(crate) use {codes, record};

/// What a journalled type looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Description {
    /// Variant texts in the order of their numbers.
    Enumeration(&'static [&'static str]),
    /// Field names and Rust types in their stored order.
    Structure(&'static [(&'static str, &'static str)]),
}

/// A type that can say what it looks like in a payload.
pub trait Described {
    /// Adds the description of this type.
    fn describe(into: &mut alloc::collections::BTreeMap<&'static str, Description>);
}
