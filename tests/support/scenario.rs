//! What is run: a bundle, its parameters, what a person does at which step, and what must be there in the end. A bench
//! is one scenario with a home and a clinic of its own.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::clinic::Clinic;
use super::process::Call;

/// A person's step: its number, where the form is, and what is filled in.
pub(crate) struct Task {
    pub(crate) step: u64,
    pub(crate) path: &'static str,
    pub(crate) form: &'static [(&'static str, &'static str)],
}

/// What is run.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    bundle: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    pub(crate) tasks: &'static [Task],
    /// References that the clinic must know in the end, each from exactly one request.
    pub(crate) references: &'static [&'static str],
    /// The request's own name.
    pub(crate) request_id: &'static str,
}

/// The workflow of the demonstration: one person's step, then one write.
pub(crate) static TRIAGE: Scenario = Scenario {
    name: "triage",
    bundle: "cli/bundles/triage",
    parameters: &[
        ("patient", "p-001"),
        ("name", "Ada Sample"),
        ("dob", "1984-03-12"),
        ("note", "Seen and acknowledged."),
        ("reference", "triage-note"),
    ],
    tasks: &[Task {
        step: 2,
        path: "/patients/p-001/triage",
        form: &[("category", "2"), ("pain", "6"), ("text", "by hand"), ("client_ref", "triage-person")],
    }],
    references: &["triage-note", "triage-person"],
    request_id: "request-of-triage",
};

/// Three writes with a person's step between each two.
pub(crate) static THREE_STEPS: Scenario = Scenario {
    name: "three_steps",
    bundle: "tests/bundles/three_steps",
    parameters: &[
        ("patient", "p-004"),
        ("name", "Chen Example"),
        ("note", "Written by the engine."),
        ("ref_a", "first"),
        ("ref_b", "second"),
        ("ref_c", "third"),
    ],
    tasks: &[
        Task {
            step: 2,
            path: "/patients/p-004/notes",
            form: &[("text", "by hand"), ("client_ref", "first-person")],
        },
        Task {
            step: 4,
            path: "/patients/p-004/triage",
            form: &[("category", "4"), ("pain", "1"), ("client_ref", "second-person")],
        },
    ],
    references: &["first", "first-person", "second", "second-person", "third"],
    request_id: "request-of-three-steps",
};

/// The scenario of this name.
pub(crate) fn named(name: &str) -> &'static Scenario {
    [&TRIAGE, &THREE_STEPS]
        .into_iter()
        .find(|scenario| scenario.name == name)
        .unwrap_or_else(|| panic!("no scenario is named {name}"))
}

/// A scenario with a fresh home and a fresh clinic.
pub(crate) struct Bench {
    pub(crate) scenario: &'static Scenario,
    pub(crate) clinic: Clinic,
    pub(crate) home: PathBuf,
    pub(crate) bundle: PathBuf,
    folder: TempDir,
}

impl Bench {
    pub(crate) fn new(scenario: &'static Scenario) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        Self::with_bundle(scenario, root.join(scenario.bundle))
    }

    /// The scenario with another bundle that takes the same parameters.
    pub(crate) fn with_bundle(scenario: &'static Scenario, bundle: PathBuf) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let clinic = Clinic::start(&folder.path().join("clinic"));
        let home = folder.path().join("home");
        let bench = Self { scenario, clinic, home, bundle, folder };
        bench.write("config.json", &bench.clinic.config());
        let parameters: serde_json::Map<String, Value> =
            scenario.parameters.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        bench.write("params.json", &parameters.into());
        bench
    }

    /// A file of the test's own.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a JSON document beside the home and says where.
    pub(crate) fn write(&self, name: &str, document: &Value) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, document.to_string()).expect("a file");
        path
    }

    /// The run's parameters as they are in the file.
    pub(crate) fn parameters(&self) -> Value {
        let bytes = fs::read(self.file("params.json")).expect("the parameters");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    /// Arguments of the request that starts the run.
    pub(crate) fn run_arguments(&self) -> Vec<String> {
        self.run_arguments_as(self.scenario.request_id)
    }

    /// The same under another request id.
    pub(crate) fn run_arguments_as(&self, request_id: &str) -> Vec<String> {
        let words = [
            "run",
            &shown(&self.bundle),
            "--params",
            &shown(&self.file("params.json")),
            "--request-id",
            request_id,
            "--config",
            &shown(&self.file("config.json")),
        ];
        words.map(str::to_owned).to_vec()
    }

    /// Arguments that resume the run.
    pub(crate) fn resume_arguments(&self, run: &str) -> Vec<String> {
        ["resume", run, "--config", &shown(&self.file("config.json"))].map(str::to_owned).to_vec()
    }

    /// Arguments of a decision, without an executor.
    pub(crate) fn decide_arguments(&self, item: &Value, action: &str, key: &str) -> Vec<String> {
        let id = super::process::text(item, "/id");
        let capability = super::process::text(item, "/capability/digest");
        ["decide", &id, "--action", action, "--capability", &capability, "--key", key]
            .map(str::to_owned)
            .to_vec()
    }

    /// Arguments of a decision that needs the live state.
    pub(crate) fn decide_live_arguments(&self, item: &Value, action: &str, key: &str) -> Vec<String> {
        let mut words = self.decide_arguments(item, action, key);
        words.extend(["--config".to_owned(), shown(&self.file("config.json"))]);
        words
    }

    /// Does a person's step in the web application.
    pub(crate) fn do_task(&self, step: u64) {
        let task = self.scenario.tasks.iter().find(|task| task.step == step);
        let task = task.unwrap_or_else(|| panic!("step {step} is not a person's"));
        self.clinic.fill(task.path, task.form);
    }

    /// A call on this home with `--json`.
    pub(crate) fn call(&self, arguments: &[impl AsRef<std::ffi::OsStr>]) -> Call {
        Call::json(&self.home, arguments)
    }

    /// The open item of a run, if it waits.
    pub(crate) fn item(&self) -> Value {
        let listed = self.call(&["attention", "list"]).run().must_exit(0).document();
        let items = listed["items"].as_array().expect("items");
        assert_eq!(items.len(), 1, "{listed}");
        items[0].clone()
    }

    /// Keeps the folder and says where it is: for a look at a failure.
    pub(crate) fn keep(self) -> PathBuf {
        let Self { folder, .. } = self;
        folder.keep()
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
