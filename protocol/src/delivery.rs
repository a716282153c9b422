//! Whether an effect on the outside world may have happened.

use crate::vocabulary::codes;

codes!(
    /// What the journal knows of the current step's delivery.
    DeliveryState {
        /// Proven: nothing was delivered.
        NotDelivered = "not_delivered",
        /// The executor says that it acted; nothing is proven by that.
        Delivered = "delivered",
        /// The delivery boundary was crossed and no receipt tells what came of it.
        Unknown = "unknown",
    }
);

impl DeliveryState {
    /// Whether an effect may exist.
    #[must_use]
    pub const fn may_have_happened(self) -> bool {
        match self {
            Self::NotDelivered => false,
            Self::Delivered | Self::Unknown => true,
        }
    }
}

codes!(
    /// What an executor reports of one act. Its word alone never makes a step verified.
    ReceiptOutcome {
        /// The target answered as the action's `accept` demands.
        Acted = "acted",
        /// Nothing left this process; the executor can prove it.
        NotSent = "not_sent",
        /// Anything else: a time-out, a broken connection, an unexpected answer.
        Unclear = "unclear",
    }
);

codes!(
    /// What an independent read says of one effect.
    EffectStatus {
        /// The effect exists exactly as declared.
        Confirmed = "confirmed",
        /// The read worked, and the effect is not there at all.
        Absent = "absent",
        /// Something is there that differs from what was declared.
        Refuted = "refuted",
        /// The read did not work.
        Indeterminate = "indeterminate",
        /// Only a person can attest it.
        Unverifiable = "unverifiable",
    }
);

codes!(
    /// How an uncertain delivery was settled.
    Settlement {
        /// Every declared effect was read as there.
        Confirmed = "confirmed",
        /// Proven absence (RULINGS 1).
        Absent = "absent",
    }
);
