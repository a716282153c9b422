//! The clinic from outside, as a browser and a program with its keys see it. Nothing here is of the engine: what it
//! says is independent of what the engine believes.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use ureq::Agent;

use super::child::{self, Running, Stdin};
use crate::failure::{Code, Failure};
use crate::mockmed::{CONTROL_KEY, PASSWORD, READBACK_KEY, USER};

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the armed fault holds an answer back: longer than the demonstration needs to kill.
const HOLD_MS: u64 = 60_000;

/// A clinic in a process of its own.
pub(super) struct Clinic {
    /// Its origin.
    pub(super) address: String,
    /// Ended when dropped.
    _process: Running,
    agent: Agent,
}

impl Clinic {
    /// Starts one with an empty store of its own in `folder`.
    ///
    /// # Errors
    /// When it does not come up.
    pub(super) fn start(home: &Path, folder: &Path) -> Result<Self, Failure> {
        let arguments = ["mockmed", "serve", "--port", "0", "--data", "clinic"].map(str::to_owned);
        let mut process = child::start(home, folder, &arguments, Stdin::Tied)?;
        let greeting: Value = serde_json::from_str(&process.first_line()?).unwrap_or_default();
        let address =
            greeting["address"].as_str().ok_or_else(|| failed("the clinic did not say where it is"))?;
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(PATIENCE))
            .proxy(None)
            .build()
            .new_agent();
        Ok(Self { address: address.to_owned(), _process: process, agent })
    }

    /// The deployment's configuration for it.
    pub(super) fn config(&self) -> Value {
        json!({ "http": {
            "target": self.address,
            "sign_in": { "path": "/sign-in", "form": { "user": { "value": USER }, "password": { "value": PASSWORD } } },
            "credentials": { "readback": { "header": "X-Api-Key", "value": { "value": READBACK_KEY } } },
        } })
    }

    /// The page of a patient, for a browser.
    pub(super) fn page(&self, patient: &str) -> String {
        format!("{}/patients/{patient}", self.address)
    }

    /// Signs in and sends the triage form, as a person would with the browser.
    ///
    /// # Errors
    /// When the clinic does not store it.
    pub(super) fn fill_triage(&self, patient: &str, form: &[(&str, &str)]) -> Result<(), Failure> {
        let sign_in = format!("{}/sign-in", self.address);
        let credentials = [("user", USER), ("password", PASSWORD)];
        // The agent keeps the session's cookie, as a browser does.
        let answer =
            self.agent.post(&sign_in).send_form(credentials).map_err(|error| unreachable_clinic(&error))?;
        if answer.status() != 303 {
            return Err(failed("signing in at the clinic failed"));
        }
        let answer = self
            .agent
            .post(&format!("{}/triage", self.page(patient)))
            .send_form(form.iter().copied())
            .map_err(|error| unreachable_clinic(&error))?;
        if answer.status() == 303 { Ok(()) } else { Err(failed("the clinic did not take the triage form")) }
    }

    /// From now on one note is stored and its answer held back.
    ///
    /// # Errors
    /// When the clinic does not take the fault.
    pub(super) fn hold_next_note(&self) -> Result<(), Failure> {
        let fault = json!({ "fault": "timeout_after_save", "times": 1, "path_contains": "/notes", "hold_ms": HOLD_MS });
        let answer = self
            .agent
            .post(&format!("{}/control/faults", self.address))
            .header("x-control-key", CONTROL_KEY)
            .content_type("application/json")
            .send(fault.to_string())
            .map_err(|error| unreachable_clinic(&error))?;
        if answer.status() == 201 { Ok(()) } else { Err(failed("the clinic did not take the fault")) }
    }

    /// Whether triage was stored for the patient.
    ///
    /// # Errors
    /// When the clinic does not answer.
    pub(super) fn has_triage(&self, patient: &str) -> Result<bool, Failure> {
        Ok(self.read(&format!("patients/{patient}/triage"))?["count"].as_u64() > Some(0))
    }

    /// Notes stored under the reference.
    ///
    /// # Errors
    /// When the clinic does not answer.
    pub(super) fn notes(&self, patient: &str, reference: &str) -> Result<u64, Failure> {
        let answer = self.read(&format!("patients/{patient}/notes?client_ref={reference}"))?;
        answer["count"].as_u64().ok_or_else(|| failed("the clinic's read-back has no count"))
    }

    /// From the access log: how many requests wrote something under the reference.
    ///
    /// # Errors
    /// When the clinic does not answer.
    pub(super) fn actuations(&self, reference: &str) -> Result<u64, Failure> {
        let answer = self.read(&format!("writes?client_ref={reference}"))?;
        answer["actuations"].as_u64().ok_or_else(|| failed("the clinic's access log has no count"))
    }

    fn read(&self, path: &str) -> Result<Value, Failure> {
        let mut answer = self
            .agent
            .get(&format!("{}/api/{path}", self.address))
            .header("x-api-key", READBACK_KEY)
            .call()
            .map_err(|error| unreachable_clinic(&error))?;
        let text = answer.body_mut().read_to_string().map_err(|error| unreachable_clinic(&error))?;
        if answer.status() != 200 {
            return Err(failed("the clinic's read-back did not work"));
        }
        serde_json::from_str(&text).map_err(|_| failed("the clinic's read-back is not JSON"))
    }
}

fn failed(message: &str) -> Failure {
    Failure::new(
        Code::MockMed,
        message,
        "Run `opjournal mockmed serve --data DIR --port 0` by itself to see why.",
    )
}

/// By kind alone: the library's text may name an address.
fn unreachable_clinic(error: &ureq::Error) -> Failure {
    let timed_out = matches!(error, ureq::Error::Timeout(_));
    failed(if timed_out { "the clinic did not answer in time" } else { "the clinic cannot be reached" })
}
