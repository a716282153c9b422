//! Bytes as a sequence of choices. At their end every choice is 0, so that each input means something.

/// What is left of an input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    pub(super) fn number(&mut self) -> usize {
        usize::from(self.byte()) << 8 | usize::from(self.byte())
    }

    /// A number below `of`, or 0 if there is none.
    pub(super) fn below(&mut self, of: usize) -> usize {
        self.number().checked_rem(of).unwrap_or(0)
    }

    /// The next `len` bytes, or as many as are left.
    pub(super) fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }
}
