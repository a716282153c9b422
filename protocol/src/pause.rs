//! Words about pauses: categories, closed reasons, identity. A category never authorises anything.

use crate::vocabulary::codes;

codes!(
    /// Why a run waits. Where several fit, the first of this order is given. Source: attended-contract §2.
    Category {
        /// A person must decide about the business.
        BusinessDecision = "business_decision",
        /// A delivery may have happened; nothing acts until it is reconciled.
        DeliveryUncertain = "delivery_uncertain",
        /// The application demands a person.
        HumanRequired = "human_required",
        /// An effect that only a person can attest.
        EffectUnverifiable = "effect_unverifiable",
        /// An effect could not be read.
        EffectIndeterminate = "effect_indeterminate",
        /// An effect reads otherwise than declared.
        EffectRefuted = "effect_refuted",
        /// The step's guard does not hold.
        UnmetGuard = "unmet_guard",
        /// More than one target fits.
        Disambiguation = "disambiguation",
        /// The source record's identity is not proven.
        Identity = "identity",
        /// A postcondition does not hold.
        Postcondition = "postcondition",
        /// The target was not found or could not be reached.
        Resolution = "resolution",
        /// The step is a person's by declaration.
        AttendedStep = "attended_step",
        /// Anything else.
        Halt = "halt",
    }
);

codes!(
    /// The closed reason behind a pause or the end of a run.
    Reason {
        /// The bundle declares the step as a person's.
        StepIsAttended = "step_is_attended",
        /// The guard's check does not hold.
        GuardUnmet = "guard_unmet",
        /// A check could not be read.
        Unreadable = "unreadable",
        /// The record is another one than expected.
        IdentityMismatch = "identity_mismatch",
        /// The record's identity could not be read.
        IdentityUnverified = "identity_unverified",
        /// Nothing left this process: the target refused the connection or the request could not be built.
        NotSent = "not_sent",
        /// The target's answer did not tell whether it acted.
        AnswerUnclear = "answer_unclear",
        /// The executor was lost while it acted.
        ExecutorLost = "executor_lost",
        /// The process died after the delivery boundary and before the receipt.
        HolderDied = "holder_died",
        /// The lease ran out after the delivery boundary and before the receipt.
        LeaseExpired = "lease_expired",
        /// A postcondition does not hold.
        PostconditionFailed = "postcondition_failed",
        /// A declared effect is not there.
        EffectMissing = "effect_missing",
        /// A declared effect differs.
        EffectDiffers = "effect_differs",
        /// A declared effect could not be read.
        EffectUnreadable = "effect_unreadable",
        /// A declared effect needs a person's word.
        EffectNeedsAttestation = "effect_needs_attestation",
        /// Something that was confirmed earlier does not read so any more.
        EarlierEffectLost = "earlier_effect_lost",
        /// The delivery is proven not to have happened.
        ProvenAbsent = "proven_absent",
        /// The run reached its end.
        EndReached = "end_reached",
        /// An operator rejected it.
        Rejected = "rejected",
        /// An operator canceled it.
        Canceled = "canceled",
    }
);

codes!(
    /// Whether the source record's identity is proven.
    IdentityStatus {
        /// The step demands none.
        NotRequired = "not_required",
        /// Read and equal.
        Verified = "verified",
        /// Read and different.
        Mismatch = "mismatch",
        /// Not read.
        Unverified = "unverified",
    }
);

codes!(
    /// How a pause ended.
    Resolution {
        /// A continue was verified.
        Continued = "continued",
        /// A skip was verified.
        Skipped = "skipped",
        /// A reconcile proved that the step's effects are there.
        Reconciled = "reconciled",
        /// The run was rejected.
        Rejected = "rejected",
        /// The run was canceled.
        Canceled = "canceled",
        /// `resume RUN` checks the step again.
        Rechecked = "rechecked",
    }
);
