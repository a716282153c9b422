//! Faults on demand: what they are, how they are armed, and which request sets one off.

use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long `timeout_after_save` holds its answer unless told otherwise.
pub(crate) const HOLD_MS_DEFAULT: u64 = 60_000;
/// The longest time that it may be told.
pub(crate) const HOLD_MS_MAX: u64 = 600_000;
/// Most faults that can be armed at once.
const ARMED_MAX: usize = 100;
/// How many of the latest faults that fired are kept to be read.
const FIRED_MAX: usize = 1000;

/// A way for the clinic to misbehave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FaultKind {
    /// One request stores two records.
    DuplicateRecord,
    /// The page says "saved", and nothing is stored.
    FalseSavedBanner,
    /// The record is stored, and the answer is held back.
    TimeoutAfterSave,
    /// The connection is closed without an answer, and nothing is stored.
    AppOffline,
    /// The session ends: a redirect to the sign-in page, and nothing is stored.
    SessionExpired,
}

impl FaultKind {
    /// Every fault.
    pub(crate) const ALL: [Self; 5] = [
        Self::DuplicateRecord,
        Self::FalseSavedBanner,
        Self::TimeoutAfterSave,
        Self::AppOffline,
        Self::SessionExpired,
    ];

    /// Its name on the command line, in headers and in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::DuplicateRecord => "duplicate_record",
            Self::FalseSavedBanner => "false_saved_banner",
            Self::TimeoutAfterSave => "timeout_after_save",
            Self::AppOffline => "app_offline",
            Self::SessionExpired => "session_expired",
        }
    }

    /// The moment at which this fault strikes.
    fn stage(self) -> Stage {
        match self {
            Self::AppOffline | Self::SessionExpired => Stage::Arrival,
            Self::DuplicateRecord | Self::FalseSavedBanner | Self::TimeoutAfterSave => Stage::Save,
        }
    }

    /// Whether this fault can strike requests of this class, and whether only those whose path was named.
    fn reach(self, class: RequestClass) -> Reach {
        match (class, self) {
            (RequestClass::Write, Self::DuplicateRecord)
            | (RequestClass::Write, Self::FalseSavedBanner)
            | (RequestClass::Write, Self::TimeoutAfterSave)
            | (RequestClass::Write, Self::AppOffline)
            | (RequestClass::Write, Self::SessionExpired) => Reach::Any,
            (RequestClass::SignIn | RequestClass::Page | RequestClass::ReadBack, Self::AppOffline)
            | (RequestClass::Page, Self::SessionExpired) => Reach::Named,
            (RequestClass::SignIn | RequestClass::ReadBack, Self::SessionExpired)
            | (
                RequestClass::SignIn | RequestClass::Page | RequestClass::ReadBack,
                Self::DuplicateRecord | Self::FalseSavedBanner | Self::TimeoutAfterSave,
            ) => Reach::None,
        }
    }
}

impl FromStr for FaultKind {
    type Err = InvalidFault;

    fn from_str(text: &str) -> Result<Self, InvalidFault> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| InvalidFault::Unknown { name: text.chars().take(64).collect() })
    }
}

/// Why a fault cannot be armed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidFault {
    /// No fault has this name.
    #[error(
        "there is no fault `{name}`; choose duplicate_record, false_saved_banner, timeout_after_save, \
         app_offline or session_expired"
    )]
    Unknown {
        /// What was asked for, cut to 64 characters.
        name: String,
    },
    /// The count of a fault is not a number from 1.
    #[error("the count of a fault must be a whole number from 1; leave it out to strike every time")]
    Count,
    /// The time to hold is out of range.
    #[error("hold_ms must be from 0 to {HOLD_MS_MAX}")]
    Hold,
    /// There is no room for one more.
    #[error("{ARMED_MAX} faults are armed already; send DELETE /control/faults first")]
    Full,
}

/// A fault to arm. As text: `NAME` or `NAME:COUNT`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    /// What happens.
    #[serde(rename = "fault")]
    pub(crate) kind: FaultKind,
    /// How often; `None` is every time, until the faults are cleared.
    #[serde(default)]
    pub(crate) times: Option<u32>,
    /// Only on paths with this text in them; `None` is every form write, and nothing else.
    #[serde(default)]
    pub(crate) path_contains: Option<String>,
    /// How long [`FaultKind::TimeoutAfterSave`] holds its answer, up to [`HOLD_MS_MAX`].
    #[serde(default = "hold_ms_default")]
    pub(crate) hold_ms: u64,
}

impl FromStr for Fault {
    type Err = InvalidFault;

    fn from_str(text: &str) -> Result<Self, InvalidFault> {
        let (name, times) = match text.split_once(':') {
            None => (text, None),
            Some((name, count)) => (name, Some(count.parse().map_err(|_| InvalidFault::Count)?)),
        };
        let fault = Self { kind: name.parse()?, times, path_contains: None, hold_ms: HOLD_MS_DEFAULT };
        fault.check()?;
        Ok(fault)
    }
}

impl Fault {
    fn check(&self) -> Result<(), InvalidFault> {
        if self.times == Some(0) {
            return Err(InvalidFault::Count);
        }
        if self.hold_ms > HOLD_MS_MAX {
            return Err(InvalidFault::Hold);
        }
        Ok(())
    }
}

/// A fault that has struck.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Fired {
    /// When, in milliseconds of Unix time.
    pub(super) time_ms: u64,
    /// Which.
    pub(super) fault: FaultKind,
    /// The request that set it off.
    pub(super) method: String,
    /// Its path.
    pub(super) path: String,
}

/// What a request is, as far as faults care. `/control` and `/api/health` have no class: no fault reaches them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestClass {
    /// A form write: triage or a note.
    Write,
    /// Signing in.
    SignIn,
    /// Any other page.
    Page,
    /// The read-back API.
    ReadBack,
}

/// The two moments at which a fault can strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Before anything about the request was looked at.
    Arrival,
    /// When the form was found good and is about to be stored.
    Save,
}

/// One request, as the faults see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passing<'a> {
    /// Its class.
    pub(super) class: RequestClass,
    /// Its method.
    pub(super) method: &'a str,
    /// Its path.
    pub(super) path: &'a str,
    /// The fault that the request itself asks for.
    pub(super) asked: Option<(FaultKind, Duration)>,
    /// Now, in milliseconds of Unix time.
    pub(super) time_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Every request of the class.
    Any,
    /// Only where the path, or the request itself, was named.
    Named,
    /// Never.
    None,
}

/// The armed faults, and the ones that have fired since the start.
#[derive(Debug, Default)]
pub(super) struct Faults(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    armed: Vec<Fault>,
    fired: Vec<Fired>,
}

impl Faults {
    /// Arms one more.
    pub(super) fn arm(&self, fault: Fault) -> Result<(), InvalidFault> {
        fault.check()?;
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.armed.len() >= ARMED_MAX {
            return Err(InvalidFault::Full);
        }
        state.armed.push(fault);
        Ok(())
    }

    /// Disarms all of them and says how many there were.
    pub(super) fn clear(&self) -> usize {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.armed.drain(..).count()
    }

    /// The armed faults, in the order in which they are tried, and the latest that fired.
    pub(super) fn list(&self) -> (Vec<Fault>, Vec<Fired>) {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (state.armed.clone(), state.fired.clone())
    }

    /// The fault that strikes this request at this stage, if any; it counts as fired.
    ///
    /// What the request itself asks for comes before what is armed; among those, the first armed comes first.
    pub(super) fn strike(&self, stage: Stage, request: Passing<'_>) -> Option<(FaultKind, Duration)> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let struck = match request.asked {
            Some((kind, hold)) if kind.stage() == stage && kind.reach(request.class) != Reach::None => {
                Some((kind, hold))
            }
            Some(_) | None => state.take_armed(stage, request),
        };
        if let Some((fault, _)) = struck {
            if state.fired.len() >= FIRED_MAX {
                state.fired.remove(0);
            }
            let (method, path) = (request.method.to_owned(), request.path.to_owned());
            state.fired.push(Fired { time_ms: request.time_ms, fault, method, path });
        }
        struck
    }
}

impl State {
    fn take_armed(&mut self, stage: Stage, request: Passing<'_>) -> Option<(FaultKind, Duration)> {
        let at = self.armed.iter().position(|fault| {
            let named = fault.path_contains.as_deref().map(|text| request.path.contains(text));
            let reached = match fault.kind.reach(request.class) {
                Reach::Any => named.unwrap_or(true),
                Reach::Named => named.unwrap_or(false),
                Reach::None => false,
            };
            fault.kind.stage() == stage && reached
        })?;
        let fault = self.armed.get_mut(at)?;
        let struck = (fault.kind, Duration::from_millis(fault.hold_ms));
        if let Some(times) = &mut fault.times {
            *times = times.saturating_sub(1);
            if *times == 0 {
                self.armed.remove(at);
            }
        }
        Some(struck)
    }
}

fn hold_ms_default() -> u64 {
    HOLD_MS_DEFAULT
}
