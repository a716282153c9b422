//! A clinic in a process of its own, as a browser and an auditor see it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use ureq::Agent;

const PROGRAM: &str = env!("CARGO_BIN_EXE_opjournal-under-test");
/// Catches a hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// A clinic that serves until it is dropped.
pub(crate) struct Clinic {
    pub(crate) address: String,
    greeting: Value,
    agent: Agent,
    child: Child,
    /// Ends the process when the test's own process is gone, however it went.
    _tie: ChildStdin,
}

impl Clinic {
    /// Starts one on an empty store.
    pub(crate) fn start(data: &Path) -> Self {
        let mut child = Command::new(PROGRAM)
            .args(["mockmed", "serve", "--port", "0", "--json", "--end-with-stdin", "--data"])
            .arg(data)
            .env_remove("OPJOURNAL_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the clinic starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a greeting");
        let greeting: Value = serde_json::from_str(&line).expect("a greeting in JSON");
        let address = greeting["address"].as_str().expect("an address").to_owned();
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(PATIENCE))
            .proxy(None)
            .build()
            .new_agent();
        let tie = child.stdin.take().expect("piped");
        Self { address, greeting, agent, child, _tie: tie }
    }

    fn said(&self, name: &str) -> &str {
        self.greeting[name].as_str().expect("a greeting with everything in it")
    }

    /// The deployment's configuration for it.
    pub(crate) fn config(&self) -> Value {
        json!({ "http": {
            "target": self.address,
            "sign_in": { "path": "/sign-in", "form": {
                "user": { "value": self.said("user") },
                "password": { "value": self.said("password") },
            } },
            "credentials": { "readback": {
                "header": "X-Api-Key",
                "value": { "value": self.said("readback_key") },
            } },
        } })
    }

    /// Signs in and sends a form, as a person does with a browser.
    pub(crate) fn fill(&self, path: &str, form: &[(&str, &str)]) {
        let credentials = [("user", self.said("user")), ("password", self.said("password"))];
        let signed_in =
            self.agent.post(format!("{}/sign-in", self.address)).send_form(credentials).expect("an answer");
        assert_eq!(signed_in.status(), 303, "signing in");
        let saved = self
            .agent
            .post(format!("{}{path}", self.address))
            .send_form(form.iter().copied())
            .expect("an answer to the form");
        assert_eq!(saved.status(), 303, "saving {path}");
    }

    /// From now on the clinic misbehaves so.
    pub(crate) fn arm(&self, fault: &Value) {
        let answer = self
            .agent
            .post(format!("{}/control/faults", self.address))
            .header("x-control-key", self.said("control_key"))
            .content_type("application/json")
            .send(fault.to_string())
            .expect("an answer to the fault");
        assert_eq!(answer.status(), 201, "arming {fault}");
    }

    /// From the access log: requests that wrote something, by the reference that they gave.
    pub(crate) fn actuations(&self) -> BTreeMap<String, usize> {
        let mut answer = self
            .agent
            .get(format!("{}/api/writes", self.address))
            .header("x-api-key", self.said("readback_key"))
            .call()
            .expect("the access log");
        let text = answer.body_mut().read_to_string().expect("a body");
        let log: Value = serde_json::from_str(&text).expect("JSON");
        let mut seen: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for write in log["writes"].as_array().expect("writes") {
            let reference = write["client_ref"].as_str().unwrap_or("(none)").to_owned();
            seen.entry(reference).or_default().push(write["actuation"].as_u64().expect("a number"));
        }
        seen.into_iter()
            .map(|(reference, mut requests)| {
                requests.dedup();
                (reference, requests.len())
            })
            .collect()
    }
}

impl Drop for Clinic {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
