//! The signed, expiring authority that the engine issues for one exact pause. Source: attended-contract §3.

use alloc::vec::Vec;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::canonical_json;
use crate::decision::Action;
use crate::delivery::DeliveryState;
use crate::digest::{MacDigest, Sha256Digest};
use crate::ids::{JournalId, KeyId, PauseId, RunId, StepId, WorkflowId};
use crate::pause::IdentityStatus;
use crate::time::Deadline;
use crate::time::UnixMillis;
use crate::vocabulary::{codes, record};

/// Version of the capability's fields.
pub const CAPABILITY_FORMAT: u16 = 1;

codes!(
    /// What the run will do after the pause's step is settled.
    Transition {
        /// Begin the next step.
        NextStep = "next_step",
        /// End: the pause's step is the last.
        Finish = "finish",
    }
);

record!(
    /// Everything that a capability binds, in the order it is stored.
    CapabilityClaims {
        /// [`CAPABILITY_FORMAT`].
        format: u16,
        /// Grows with every capability of the run, from 1.
        sequence: u64,
        /// The journal it belongs to.
        journal: JournalId,
        /// The pause.
        pause: PauseId,
        /// The run.
        run: RunId,
        /// The workflow.
        workflow: WorkflowId,
        /// Bundle version of the run.
        bundle: Sha256Digest,
        /// Index of the step, from 0.
        step_index: u32,
        /// Name of the step.
        step_id: StepId,
        /// Digest of the exact cursor.
        cursor: Sha256Digest,
        /// Index of the step that the run resumes from after a continue.
        resume_from: u32,
        /// Digest of what the pause found.
        pause_digest: Sha256Digest,
        /// Digest of the last checkpoint, if there is one.
        lineage_head: Option<Sha256Digest>,
        /// Salted digest of the bound parameters.
        parameters: MacDigest,
        /// Digest of the policy and deployment in force.
        policy: Sha256Digest,
        /// What comes after the step.
        transition: Transition,
        /// Digest of the transition with the cursor it leads to.
        transition_digest: Sha256Digest,
        /// Whether the step's delivery may have happened.
        delivery: DeliveryState,
        /// Whether the step demands a proven identity.
        identity_required: bool,
        /// Whether it is proven.
        identity_status: IdentityStatus,
        /// When it was issued.
        issued_at: UnixMillis,
        /// When it expires.
        expires: Deadline,
        /// What this pause allows, in the order of [`Action::ALL`].
        allowed: Vec<Action>,
    }
);

record!(
    /// Claims and their signature. The signature never leaves the engine.
    Capability {
        /// What is signed.
        claims: CapabilityClaims,
        /// The key it was signed with.
        key: KeyId,
        /// HMAC-SHA256 over the purpose and the canonical form of the claims.
        signature: MacDigest,
    }
);

impl CapabilityClaims {
    /// The public digest: over everything but the signature.
    #[must_use]
    pub fn digest(&self) -> Sha256Digest {
        canonical_json::digest_of(self)
    }

    /// Signs the claims.
    #[must_use]
    pub fn sign(self, key: &CapabilityKey) -> Capability {
        let signature = key.mac(Purpose::Capability, &canonical_json::bytes_of(&self));
        Capability { claims: self, key: key.id(), signature }
    }
}

impl Capability {
    /// Whether the signature is this key's, in constant time.
    #[must_use]
    pub fn verifies(&self, key: &CapabilityKey) -> bool {
        self.key == key.id()
            && self.signature == key.mac(Purpose::Capability, &canonical_json::bytes_of(&self.claims))
    }

    /// The public digest.
    #[must_use]
    pub fn digest(&self) -> Sha256Digest {
        self.claims.digest()
    }
}

codes!(
    /// What a MAC is for; part of what is signed, so that a MAC of one kind never passes for another.
    Purpose {
        /// A capability.
        Capability = "opjournal/v1/capability",
        /// A salted digest of a protected value.
        ProtectedDigest = "opjournal/v1/protected-digest",
    }
);

/// A 32-byte secret for HMAC-SHA256: the home's capability key, or a run's salt.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityKey([u8; 32]);

impl CapabilityKey {
    /// Length in bytes.
    pub const BYTES: usize = 32;

    /// Takes key material; where it comes from is the service's concern.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The raw bytes, for the one place that stores them.
    #[must_use]
    pub const fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    /// Name of the key: the first 16 bytes of SHA-256 over a label and the key.
    #[must_use]
    pub fn id(&self) -> KeyId {
        let mut labelled = Vec::from(*b"opjournal/v1/key-id\0");
        labelled.extend_from_slice(&self.0);
        let digest = Sha256Digest::of(&labelled).0;
        let mut id = [0_u8; 16];
        id.copy_from_slice(&digest[..16]);
        KeyId(id)
    }

    /// HMAC-SHA256 over the purpose, a zero byte and `message`.
    #[must_use]
    pub fn mac(&self, purpose: Purpose, message: &[u8]) -> MacDigest {
        // HMAC pads a key shorter than SHA-256's 64-byte block with zeros (RFC 2104); doing it here keeps this infallible.
        let mut block = [0_u8; 64];
        block[..Self::BYTES].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(purpose.as_str().as_bytes());
        mac.update(&[0]);
        mac.update(message);
        MacDigest(mac.finalize().into_bytes().into())
    }
}

impl core::fmt::Debug for CapabilityKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "CapabilityKey({})", self.id())
    }
}
