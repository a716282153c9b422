//! What can go wrong in a call on the engine: what happened, where, and what to do next. No protected value in it.

use journal::{AppendError, OpenError, ReadError};
use protocol::bundle::Problem;
use protocol::refusal::{Refusal, RefusalCode};

use super::bundle::BundleError;
use super::codec::CodecError;
use super::keys::KeyError;

/// Why a call on the engine failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The rules refuse it.
    #[error("{0}")]
    Refused(Refusal),
    /// The bundle cannot be used.
    #[error("{0}")]
    Bundle(#[from] BundleError),
    /// The parameters do not fit the bundle's declaration.
    #[error("the parameters do not fit: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Parameters(Vec<Problem>),
    /// The home has a key, so it had a journal, and the journal is not there.
    #[error("this home has a key and no journal: its journal was lost or taken away")]
    JournalGone,
    /// The journal did not open.
    #[error("{0}")]
    Open(#[from] OpenError),
    /// The journal did not take a record.
    #[error("{0}")]
    Append(#[from] AppendError),
    /// The journal could not be read.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// A record is of a newer opjournal, or does not decode.
    #[error("{0}")]
    Codec(#[from] CodecError),
    /// The capability key cannot be used.
    #[error("{0}")]
    Key(#[from] KeyError),
    /// The password database names nobody for the effective user id, so nobody can be held to the decision.
    #[error("the effective account has no name; run opjournal under a named account")]
    NoOperator,
    /// A file of the home could not be used.
    #[error("{what} could not be used ({kind}); check the home's disk and permissions", kind = .source.kind())]
    Home {
        /// Which part of the home.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

impl From<Refusal> for EngineError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl EngineError {
    /// The stable code, where the failure is one of the engine's refusals.
    #[must_use]
    pub fn code(&self) -> Option<RefusalCode> {
        match self {
            Self::Refused(refusal) => Some(refusal.code()),
            Self::Bundle(_) => Some(RefusalCode::InvalidBundle),
            Self::Parameters(_) => Some(RefusalCode::InvalidParameters),
            Self::Key(_) => Some(RefusalCode::KeyMissing),
            Self::Append(AppendError::Busy { .. }) | Self::Open(OpenError::Busy { .. }) => {
                Some(RefusalCode::JournalBusy)
            }
            Self::Append(AppendError::Poisoned(_)) => Some(RefusalCode::Poisoned),
            Self::Append(AppendError::DiskFull) => Some(RefusalCode::DiskFull),
            Self::Append(_)
            | Self::JournalGone
            | Self::Open(_)
            | Self::Read(_)
            | Self::Codec(_)
            | Self::NoOperator
            | Self::Home { .. } => None,
        }
    }
}
