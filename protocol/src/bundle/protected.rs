//! Text and values that no message, log or debug output may show.

use core::fmt;

/// Protected content. Reading it takes a call that can be searched for; its debug form is fixed.
#[derive(Clone, PartialEq, Eq)]
pub struct Protected<T>(T);

impl<T> Protected<T> {
    /// Protects `content`.
    pub const fn new(content: T) -> Self {
        Self(content)
    }

    /// The content, for an executor, the evidence store or a person's screen.
    pub const fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Protected<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<protected>")
    }
}
