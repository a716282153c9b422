//! What every command gets: the home, the hooks, the output; and the one way to open each thing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::service::platform::SystemClock;
use engine::service::{Deployment, Engine, EngineOptions, View};
use journal::Reader;
use journal::vfs::Vfs;
use protocol::decision::DecidedVia;
use protocol::event::Author;

use crate::Hooks;
use crate::failure::{Code, Failure};
use crate::limits::Limits;
use crate::output::Output;

/// What every command gets.
pub(crate) struct Cx {
    /// How to talk.
    pub(crate) out: Output,
    home: Option<PathBuf>,
    home_is_given: bool,
    limits: Limits,
    hooks: Hooks,
}

impl Cx {
    /// A context for a home, or for the platform's own place when there is none. `home_is_given`: on the command line,
    /// not by the environment.
    pub(crate) fn new(
        out: Output,
        home: Option<PathBuf>,
        home_is_given: bool,
        limits: Limits,
        hooks: Hooks,
    ) -> Self {
        Self { out, home: home.or_else(default_home), home_is_given, limits, hooks }
    }

    /// The home directory.
    ///
    /// # Errors
    /// When none was given and the account has no place of its own.
    pub(crate) fn home(&self) -> Result<&Path, Failure> {
        self.home.as_deref().ok_or_else(|| {
            Failure::usage(
                "there is no home directory: the environment names no place for it",
                "Name one with `--home DIR` or in OPJOURNAL_HOME.",
            )
        })
    }

    /// The home as it was named on the command line; none where the environment or the default decides.
    pub(crate) fn home_option(&self) -> Option<&Path> {
        self.home.as_deref().filter(|_| self.home_is_given)
    }

    /// The file system of the home.
    pub(crate) fn vfs(&self) -> Arc<dyn Vfs> {
        Arc::clone(&self.hooks.vfs)
    }

    /// The limits in force.
    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The home as it stands, for a command that only looks. No lock is taken and nothing is written.
    ///
    /// # Errors
    /// `no_journal`, or why the journal cannot be read.
    pub(crate) fn view(&self) -> Result<View, Failure> {
        self.must_exist()?;
        Ok(View::open(self.home()?, self.vfs())?)
    }

    /// The records of the home, for a command that only looks and needs no state.
    ///
    /// # Errors
    /// `no_journal`, or why the journal cannot be read.
    pub(crate) fn reader(&self) -> Result<Reader, Failure> {
        self.must_exist()?;
        Ok(Reader::open(self.vfs(), &self.journal_folder()?, SystemClock::new().boot_id())?)
    }

    /// The folder of the journal, whether it exists or not.
    ///
    /// # Errors
    /// As [`Cx::home`].
    pub(crate) fn journal_folder(&self) -> Result<PathBuf, Failure> {
        Ok(engine::service::Home::new(self.home()?, self.vfs()).journal())
    }

    /// An engine on a home that exists.
    ///
    /// # Errors
    /// `no_journal`, or why the journal does not open.
    pub(crate) fn engine(&self, deployment: Deployment) -> Result<Engine, Failure> {
        self.must_exist()?;
        self.open(deployment)
    }

    /// An engine on a home that is made when it is not there.
    ///
    /// # Errors
    /// Why the journal does not open.
    pub(crate) fn engine_in_new_home(&self, deployment: Deployment) -> Result<Engine, Failure> {
        self.open(deployment)
    }

    /// The author of a request through `via`.
    ///
    /// # Errors
    /// `no_operator`.
    pub(crate) fn author(via: DecidedVia) -> Result<Author, Failure> {
        Ok(Engine::author(via)?)
    }

    fn must_exist(&self) -> Result<(), Failure> {
        match self.hooks.vfs.exists(&self.journal_folder()?) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::no_journal().with("home", self.home()?.display().to_string())),
            Err(error) => Err(Failure::io("looking for the journal", &error)),
        }
    }

    fn open(&self, deployment: Deployment) -> Result<Engine, Failure> {
        let mut options = EngineOptions::new(self.home()?);
        options.deployment = deployment;
        options.vfs = self.vfs();
        options.hook = Arc::clone(&self.hooks.boundary);
        self.limits.apply(&mut options);
        let engine = Engine::open(options)?;
        for cut in &engine.report().cuts {
            self.out.note(&format!(
                "recovered: an unfinished write was cut off the journal; a copy is kept as {}",
                cut.copy
            ));
        }
        Ok(engine)
    }
}

/// Closes an engine after its command is done. What was acknowledged is durable already, so a failure here is told and
/// changes nothing else.
pub(crate) fn close(engine: Engine, out: &Output) {
    if let Err(error) = engine.close() {
        let failure = Failure::from(error);
        if failure.code() != Code::Internal {
            out.note(&format!("the journal was closed without its last mark: {}", failure.message()));
        }
    }
}

/// Where a home is when nobody says: the platform's place for state.
fn default_home() -> Option<PathBuf> {
    home_from(|name| std::env::var_os(name).map(PathBuf::from), cfg!(target_os = "macos"))
}

fn home_from(variable: impl Fn(&str) -> Option<PathBuf>, macos: bool) -> Option<PathBuf> {
    // A relative path here would be another place in every folder, so it counts as absent (XDG base directories).
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    if macos {
        return absolute("HOME").map(|home| home.join("Library/Application Support/opjournal"));
    }
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|state| state.join("opjournal"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_home_is_the_platforms_place_for_state() {
        for (case, xdg, home, macos, want) in [
            ("linux", None, Some("/home/a"), false, Some("/home/a/.local/state/opjournal")),
            ("xdg", Some("/s"), Some("/home/a"), false, Some("/s/opjournal")),
            ("xdg is relative", Some("s"), Some("/home/a"), false, Some("/home/a/.local/state/opjournal")),
            (
                "macos",
                Some("/s"),
                Some("/Users/a"),
                true,
                Some("/Users/a/Library/Application Support/opjournal"),
            ),
            ("nothing", None, None, false, None),
        ] {
            let variable = |name: &str| match name {
                "XDG_STATE_HOME" => xdg.map(PathBuf::from),
                "HOME" => home.map(PathBuf::from),
                _ => None,
            };
            assert_eq!(home_from(variable, macos), want.map(PathBuf::from), "{case}");
        }
    }
}
