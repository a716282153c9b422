//! Where the demonstration happens, and the files that it writes there.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::context::Cx;
use crate::failure::{Code, Failure};

/// The bundled workflow.
const WORKFLOW: &str = include_str!("../../bundles/triage/workflow.json");

/// The patient that it is about.
pub(super) const PATIENT: &str = "p-001";
/// What a program fills into the triage form.
pub(super) const TRIAGE: [(&str, &str); 3] =
    [("category", "2"), ("pain", "6"), ("text", "Filled in by the unattended demonstration.")];

/// A place for the demonstration.
pub(super) struct Place {
    home: PathBuf,
    folder: PathBuf,
    temporary: bool,
    keep: bool,
}

impl Place {
    /// The home that was named on the command line, or a new one in the system's folder for temporary files.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn choose(cx: &Cx, keep: bool) -> Result<Self, Failure> {
        let mark = random_mark()?;
        let (home, temporary) = match cx.home_option() {
            Some(home) => {
                (std::path::absolute(home).map_err(|error| Failure::io("finding the home", &error))?, false)
            }
            None => (std::env::temp_dir().join(format!("opjournal-quickstart-{mark}")), true),
        };
        let folder = home.join(format!("quickstart-{mark}"));
        let place = Self { home, folder, temporary, keep };
        cx.vfs()
            .create_dir_all(&place.folder.join(BUNDLE))
            .map_err(|error| Failure::io("making a folder for the demonstration", &error))?;
        Ok(place)
    }

    /// The home.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// The folder in which every command runs.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps it, whatever was asked for.
    pub(super) fn keep(&mut self) {
        self.keep = true;
    }

    /// Whether it stays.
    pub(super) const fn is_kept(&self) -> bool {
        self.keep || !self.temporary
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_kept() {
            // A leftover in the system's temporary folder is the system's to clear.
            let _ = std::fs::remove_dir_all(&self.home);
        }
    }
}

/// Names of the files that commands are given, in the demonstration's folder.
const BUNDLE: &str = "triage";
const PARAMETERS: &str = "params.json";
const CONFIG: &str = "clinic.json";

/// What commands are given.
pub(super) struct Files {
    mark: String,
}

impl Files {
    /// Writes them.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn write(place: &Place, config: &Value) -> Result<Self, Failure> {
        let files = Self { mark: random_mark()? };
        let parameters = json!({
            "patient": PATIENT,
            "name": "Ada Sample",
            "dob": "1984-03-12",
            "note": "Triage seen and acknowledged; the patient is in the queue.",
            "reference": files.reference(),
        });
        for (name, text) in [
            (format!("{BUNDLE}/workflow.json"), WORKFLOW.to_owned()),
            (PARAMETERS.to_owned(), format!("{parameters:#}\n")),
            (CONFIG.to_owned(), format!("{config:#}\n")),
        ] {
            std::fs::write(place.folder.join(name), text)
                .map_err(|error| Failure::io("writing a file of the demonstration", &error))?;
        }
        Ok(files)
    }

    /// The run's name for its note, by which the clinic tells it from all others.
    pub(super) fn reference(&self) -> String {
        format!("quickstart-{}", self.mark)
    }

    /// The run.
    pub(super) fn run_arguments(&self) -> Vec<String> {
        let request = self.reference();
        words(&["run", BUNDLE, "--params", PARAMETERS, "--config", CONFIG, "--request-id", &request])
    }

    /// Its next process.
    pub(super) fn resume_arguments(run: &str) -> Vec<String> {
        words(&["resume", run, "--config", CONFIG])
    }

    /// A decision, under a key of its own.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub(super) fn decide_arguments(
        item: &str,
        action: &str,
        capability: &str,
    ) -> Result<Vec<String>, Failure> {
        let key = format!("quickstart-{action}-{}", random_mark()?);
        let what = ["decide", item, "--action", action, "--capability", capability, "--key", &key];
        Ok([words(&what), words(&["--config", CONFIG])].concat())
    }
}

/// Words of a command line.
pub(super) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn random_mark() -> Result<String, Failure> {
    let mut bytes = [0_u8; 4];
    getrandom::fill(&mut bytes)
        .map_err(|_| Failure::new(Code::Internal, "the system has no randomness to give", "Try again."))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
