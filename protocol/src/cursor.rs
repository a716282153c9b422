//! Where a run stands in its program. General from the start: a stack of frames, of which linear workflows use one.

use alloc::vec;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::canonical_json;
use crate::digest::Sha256Digest;
use crate::vocabulary::record;

record!(
    /// One level of the program.
    Frame {
        /// Which list of steps: 0 is the workflow's own.
        block: u32,
        /// Index of the step within the list, from 0; the length of the list means its end.
        step: u32,
        /// Row of the work list that this frame loops over; 0 outside of loops.
        row: u64,
    }
);

/// An exact place in a program: the outermost frame first; never empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(Vec<Frame>);

impl PartialOrd for Frame {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Frame {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.block, self.row, self.step).cmp(&(other.block, other.row, other.step))
    }
}

impl Cursor {
    /// The first step of a workflow.
    #[must_use]
    pub fn start() -> Self {
        Self(vec![Frame { block: 0, step: 0, row: 0 }])
    }

    /// Index of the step within the innermost list.
    #[must_use]
    pub fn step(&self) -> u32 {
        self.0.last().map_or(0, |frame| frame.step)
    }

    /// The place after this one in the innermost list.
    #[must_use]
    pub fn next(&self) -> Self {
        let mut frames = self.0.clone();
        if let Some(frame) = frames.last_mut() {
            frame.step = frame.step.saturating_add(1);
        }
        Self(frames)
    }

    /// Digest of the canonical form.
    #[must_use]
    pub fn digest(&self) -> Sha256Digest {
        canonical_json::digest_of(self)
    }
}
