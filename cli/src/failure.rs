//! Why a command failed, as a person and a program are told: what happened, a stable code, what to do next, and how the
//! program ends. Texts name no value that the caller gave.

use std::io;

use engine::service::EngineError;
use engine::service::bundle::BundleError;
use journal::{AppendError, Damage, IoFailure, OpenError, ReadError};
use protocol::bundle::Problem;
use protocol::refusal::{Refusal, RefusalCode};
use serde_json::{Map, Value, json};

use crate::exit::Exit;

/// Stable code of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// One of the engine's own.
    Refused(RefusalCode),
    /// The command line cannot be understood.
    Usage,
    /// The home has no journal.
    NoJournal,
    /// The journal or something beside it is damaged.
    Damaged,
    /// The journal was written by a newer opjournal.
    NewerFormat,
    /// The home lies on a file system that is unfit for writing.
    NetworkFileSystem,
    /// The effective account has no name.
    NoOperator,
    /// The deployment's configuration cannot be used.
    InvalidConfig,
    /// The person did not confirm.
    NotConfirmed,
    /// Something that is needed is not there.
    NotFound,
    /// The system denies access.
    PermissionDenied,
    /// There is no room, or no place, to write.
    CannotWrite,
    /// The demonstration clinic does not serve.
    MockMed,
    /// A stage of the demonstration did not go as it must.
    Quickstart,
    /// The system, or opjournal itself, failed.
    Internal,
    /// Nobody reads the output any more.
    OutputClosed,
}

impl Code {
    /// The stable text.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Refused(code) => code.as_str(),
            Self::Usage => "usage",
            Self::NoJournal => "no_journal",
            Self::Damaged => "damaged",
            Self::NewerFormat => "newer_format",
            Self::NetworkFileSystem => "network_file_system",
            Self::NoOperator => "no_operator",
            Self::InvalidConfig => "invalid_config",
            Self::NotConfirmed => "not_confirmed",
            Self::NotFound => "not_found",
            Self::PermissionDenied => "permission_denied",
            Self::CannotWrite => "cannot_write",
            Self::MockMed => "mockmed",
            Self::Quickstart => "quickstart",
            Self::Internal => "internal",
            Self::OutputClosed => "output_closed",
        }
    }

    /// How the program ends.
    pub(crate) const fn exit(self) -> Exit {
        match self {
            Self::Refused(code) => Exit::of_refusal(code),
            Self::Usage | Self::InvalidConfig => Exit::Usage,
            Self::NoJournal | Self::NotFound | Self::MockMed => Exit::Unavailable,
            Self::Damaged | Self::NewerFormat => Exit::Damaged,
            Self::NoOperator | Self::PermissionDenied => Exit::Permission,
            Self::NotConfirmed => Exit::Refused,
            Self::NetworkFileSystem | Self::CannotWrite | Self::OutputClosed => Exit::CannotWrite,
            Self::Quickstart | Self::Internal => Exit::Internal,
        }
    }
}

/// Why a command failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    code: Code,
    message: String,
    next_step: String,
    details: Map<String, Value>,
}

impl Failure {
    /// A failure of the program's own.
    pub(crate) fn new(code: Code, message: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self { code, message: message.into(), next_step: next_step.into(), details: Map::new() }
    }

    /// A command line that cannot be understood.
    pub(crate) fn usage(message: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self::new(Code::Usage, message, next_step)
    }

    /// An error of the system in doing `what`, such as "reading the configuration".
    pub(crate) fn io(what: &str, error: &io::Error) -> Self {
        let (code, next_step) = of_kind(error.kind());
        // By kind: the system's own text may name a path that is protected.
        Self::new(code, format!("{what} failed: {}", error.kind()), next_step)
    }

    /// A failed write of the output: somebody went away, which is no news to anybody, or a real error.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::new(Code::OutputClosed, "nobody reads the output any more", "")
        } else {
            Self::io("writing the output", error)
        }
    }

    /// Adds a fact for programs; a person sees it on a line of its own.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// The stable code.
    pub(crate) const fn code(&self) -> Code {
        self.code
    }

    /// How the program ends.
    pub(crate) const fn exit(&self) -> Exit {
        self.code.exit()
    }

    /// What happened.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// What to do next.
    pub(crate) fn next_step(&self) -> &str {
        &self.next_step
    }

    /// Facts beside the message.
    pub(crate) const fn details(&self) -> &Map<String, Value> {
        &self.details
    }

    /// The one object that `--json` prints.
    pub(crate) fn to_json(&self) -> Value {
        let mut error = Map::new();
        error.insert("code".to_owned(), self.code.as_str().into());
        error.insert("message".to_owned(), self.message.as_str().into());
        error.insert("next_step".to_owned(), self.next_step.as_str().into());
        error.insert("exit".to_owned(), self.exit().code().into());
        error.extend(self.details.clone());
        json!({ "error": error })
    }

    fn problems(code: RefusalCode, problems: &[Problem]) -> Self {
        let listed: Vec<Value> = problems.iter().map(|problem| json!(problem)).collect();
        Self::new(Code::Refused(code), code.sentence(), code.next_step()).with("problems", listed)
    }

    fn damage(damage: &Damage) -> Self {
        let (code, next_step) = if damage.is_newer_format() {
            (Code::NewerFormat, "Use the newer opjournal that wrote it.")
        } else {
            (
                Code::Damaged,
                "Run `opjournal verify` to see what is lost; everything else can still be read with `opjournal replay`.",
            )
        };
        Self::new(code, damage.to_string(), next_step)
            .with("file", damage.file.as_str())
            .with("offset", damage.offset)
            .with("first_lost", damage.first_lost.0)
    }

    fn system(failure: &IoFailure) -> Self {
        let (code, next_step) = of_kind(failure.kind);
        Self::new(code, failure.to_string(), next_step)
    }
}

/// What an error of the system means, and what to do about it.
fn of_kind(kind: io::ErrorKind) -> (Code, &'static str) {
    match Exit::of_io(kind) {
        Exit::Permission => (Code::PermissionDenied, "Check who owns it and what this account may do."),
        Exit::CannotWrite => {
            (Code::CannotWrite, "Make room on the disk and try again; what is there is kept.")
        }
        Exit::Unavailable => (Code::NotFound, "Check the path."),
        Exit::Verified
        | Exit::Ended
        | Exit::Refused
        | Exit::Uncertain
        | Exit::Open
        | Exit::Usage
        | Exit::Damaged
        | Exit::CannotTell
        | Exit::TornTail
        | Exit::Internal
        | Exit::Busy => (Code::Internal, "Check the disk and try again."),
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let code = refusal.code();
        let failure = Self::new(Code::Refused(code), code.sentence(), code.next_step());
        match refusal {
            Refusal::DeliveryUncertain { retry_after: Some(span) } => failure.with("retry_after_ms", span.0),
            Refusal::PauseExpired { current: Some(digest) } => {
                failure.with("capability_digest", digest.to_string())
            }
            Refusal::InvalidRequest
            | Refusal::IdempotencyConflict
            | Refusal::Busy
            | Refusal::DeliveryUncertain { retry_after: None }
            | Refusal::UnknownAttention
            | Refusal::RunRejected
            | Refusal::StaleCapability
            | Refusal::CapabilityInvalid
            | Refusal::ActionNotAllowed
            | Refusal::PauseExpired { current: None }
            | Refusal::BundleMismatch
            | Refusal::StateDiverged
            | Refusal::ExecutorMissing
            | Refusal::NotVerified
            | Refusal::GuardHolds
            | Refusal::Fenced { .. }
            | Refusal::LeaseExpired
            | Refusal::StandDown
            | Refusal::UnknownRun
            | Refusal::RunFinished
            | Refusal::RunPaused
            | Refusal::WrongPhase
            | Refusal::RequestIdConflict
            | Refusal::DiskFull
            | Refusal::JournalBusy
            | Refusal::Poisoned
            | Refusal::KeyMissing
            | Refusal::InvalidParameters
            | Refusal::InvalidBundle
            | Refusal::NotAdmitted
            | Refusal::EvidenceMissing => failure,
        }
    }
}

impl From<RefusalCode> for Failure {
    fn from(code: RefusalCode) -> Self {
        Self::new(Code::Refused(code), code.sentence(), code.next_step())
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Refused(refusal) => refusal.into(),
            EngineError::Bundle(error) => error.into(),
            EngineError::Parameters(problems) => Self::problems(RefusalCode::InvalidParameters, &problems),
            EngineError::Open(error) => error.into(),
            EngineError::Append(error) => error.into(),
            EngineError::Read(error) => error.into(),
            EngineError::Codec(error) => Self::new(
                Code::NewerFormat,
                error.to_string(),
                "Use the newest opjournal to read this journal.",
            ),
            EngineError::Key(error) => {
                let code = RefusalCode::KeyMissing;
                Self::new(Code::Refused(code), format!("{} {error}", code.sentence()), code.next_step())
            }
            EngineError::JournalGone => Self::new(
                Code::Damaged,
                error.to_string(),
                "Bring the journal back from its backup. A new one would forget what was done, and could do it again.",
            ),
            EngineError::NoOperator => Self::new(
                Code::NoOperator,
                "the effective account has no name, so nobody could be held to what is asked",
                "Run opjournal under an account that the password database names.",
            ),
            EngineError::Home { what, source } => Self::io(&format!("using {what}"), &source),
        }
    }
}

impl From<BundleError> for Failure {
    fn from(error: BundleError) -> Self {
        match error {
            BundleError::Problems(problems) => Self::problems(RefusalCode::InvalidBundle, &problems),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Busy { .. } => RefusalCode::JournalBusy.into(),
            OpenError::Damaged(damage) => Self::damage(&damage),
            OpenError::NetworkFileSystem { name } => Self::new(
                Code::NetworkFileSystem,
                format!("the home is on a network file system ({name}), where writing is not safe"),
                "Move the home to a local disk; `verify`, `replay` and `export` work here as they are.",
            ),
            OpenError::DiskFull => RefusalCode::DiskFull.into(),
            OpenError::UnknownRecord(unknown) => {
                Self::new(Code::NewerFormat, unknown.to_string(), "Use the newer opjournal that wrote it.")
            }
            OpenError::Ahead { .. } => Self::new(
                Code::Damaged,
                "a snapshot is ahead of the journal: the journal was cut or restored from an older copy",
                "Run `opjournal verify`, and ask the home's authority before anything runs again.",
            ),
            OpenError::Io(failure) => Self::system(&failure),
        }
    }
}

impl From<AppendError> for Failure {
    fn from(error: AppendError) -> Self {
        let internal = |error: &AppendError| {
            Self::new(Code::Internal, error.to_string(), "Start opjournal again: opening runs recovery.")
        };
        match error {
            AppendError::Poisoned(failure) => {
                let code = RefusalCode::Poisoned;
                Self::new(
                    Code::Refused(code),
                    format!("{} {failure}. The last request may or may not be recorded.", code.sentence()),
                    code.next_step(),
                )
            }
            AppendError::Busy { .. } => RefusalCode::JournalBusy.into(),
            AppendError::DiskFull => RefusalCode::DiskFull.into(),
            AppendError::Damaged(damage) => Self::damage(&damage),
            AppendError::UnknownRecord(unknown) => {
                Self::new(Code::NewerFormat, unknown.to_string(), "Use the newer opjournal that wrote it.")
            }
            AppendError::Panicked
            | AppendError::Closed
            | AppendError::TooLarge { .. }
            | AppendError::TooManyKeys { .. }
            | AppendError::KindReserved { .. } => internal(&error),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NoJournal => Self::no_journal(),
            ReadError::NotFound { .. } => Self::new(
                Code::NotFound,
                error.to_string(),
                "See `opjournal info` for what the journal holds.",
            ),
            ReadError::Damaged(damage) => Self::damage(&damage),
            ReadError::Io(failure) => Self::system(&failure),
        }
    }
}

impl Failure {
    /// The home has no journal.
    pub(crate) fn no_journal() -> Self {
        Self::new(
            Code::NoJournal,
            "there is no journal in this home",
            "Start one with `opjournal run BUNDLE`, see one at work with `opjournal quickstart`, or name another home \
             with `--home DIR`.",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_says_what_to_do_next_and_has_an_exit_code() {
        for code in RefusalCode::ALL {
            let failure = Failure::from(*code);
            assert_eq!(failure.code().as_str(), code.as_str());
            assert!(!failure.next_step().is_empty(), "{code}");
            assert_eq!(failure.to_json()["error"]["exit"], json!(Exit::of_refusal(*code).code()));
        }
    }

    #[test]
    fn an_error_of_the_system_is_told_by_its_kind_and_never_by_its_text() {
        let secret = io::Error::new(io::ErrorKind::PermissionDenied, "CANARY-0815");
        let failure = Failure::io("reading the parameters", &secret);
        assert_eq!(failure.exit(), Exit::Permission);
        assert!(!failure.to_json().to_string().contains("CANARY"), "{failure:?}");
    }

    #[test]
    fn a_new_capability_and_a_waiting_time_are_given_as_facts() {
        let failure =
            Failure::from(Refusal::DeliveryUncertain { retry_after: Some(protocol::time::Millis(1500)) });
        assert_eq!(failure.exit(), Exit::Uncertain);
        assert_eq!(failure.to_json()["error"]["retry_after_ms"], json!(1500));
    }
}
