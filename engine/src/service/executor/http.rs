//! The built-in HTTP executor: requests to one target, answers judged by declared predicates.
//!
//! Every request goes to the deployment's target and nowhere else, on a connection of its own, within the time limit
//! of its call, body included. An answer that is longer than the deployment allows counts as no answer.
//!
//! # Arguments of an action
//!
//! | member | value |
//! |---|---|
//! | `method` | `POST`, `PUT`, `PATCH` or `DELETE`; for a step of class `read`: `GET` (default) or `HEAD` |
//! | `path` | an array of segments, each percent-encoded by itself; or a text without parameters |
//! | `query`, `headers`, `form` | objects: name → text, number or truth value; a field of a form whose optional parameter was not given is left out |
//! | `json` | a value to send instead of `form` |
//! | `credential` | the name of one of the deployment's; the request then carries no session |
//! | `accept` | `status` (needed), `location_prefix`, `body_contains`: all must be fulfilled. A step of class `read` may leave it out and then needs `200` |
//!
//! # Arguments of a check
//!
//! `path`, `query`, `headers` and `credential` as above; `method` may only be `GET`.
//!
//! | member | value |
//! |---|---|
//! | `expect` | `status` (default `[200]`), `json`, `body_contains`, `body_excludes`: at least one of them; all must be fulfilled |
//! | `absent` | `status`, `json`: what the answer looks like when there is nothing at all |
//!
//! `json` is an array of `{"pointer": …}` with one of `equals`, `at_least`, `one_of`, `exists`; a null does not exist.
//!
//! # What comes of it
//!
//! An action is *acted* if its `accept` is fulfilled, *not sent* if no byte of its request was handed to a connection,
//! and otherwise *unclear*: a time-out, a broken connection, another status, a redirect to elsewhere or to the sign-in
//! page. It is sent once and its redirects are not followed. The session it needs is opened before it, by a request of
//! its own; if that fails, the action was not sent.
//!
//! A check *holds* if `expect` is fulfilled, is *absent* if `absent` is, and *fails* if the answer is another one. It is
//! *unreadable* if there is no whole answer, if the answer is a server error, refused access or overload, if it should
//! be JSON and is not, or if it leads to another host. In a session a check follows up to five redirects on the target
//! and signs in once more if it is sent to the sign-in page.
//!
//! # Secrecy
//!
//! No value, address or header, and no text of the HTTP library, enters an error or a `Debug` output here. The library
//! itself writes addresses and bytes to the `log` crate at level `trace`: a host program that installs a logger must
//! keep `ureq` and `ureq_proto` above that level.

mod config;
mod exchange;
mod fault;
mod predicate;
mod request;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use protocol::delivery::ReceiptOutcome;
use serde_json::Value;
use ureq::http::Method;

pub use config::{ConfigError, Credential, HttpConfig, Secret, SignIn};

use crate::service::ports::{
    ActReport, ArgsFault, ArgsPurpose, BoundAction, BoundCheck, Executor, ExecutorError, ExecutorFactory,
    Reading, Verdict,
};
use config::Deployed;
use exchange::{Answer, Client, Deadline, Failed};
use fault::{At, Faults, Stage};
use predicate::{Accept, Expectation};
use request::{Body, Request};

/// Most redirects that a check follows.
const REDIRECTS_MAX: usize = 5;

/// Makes HTTP executors for one deployment.
pub struct HttpFactory {
    deployed: Arc<Deployed>,
}

struct HttpExecutor {
    deployed: Arc<Deployed>,
    /// Holds the session's cookies.
    in_session: Client,
    /// For requests with a credential: an independent read must not depend on the session.
    apart: Client,
}

/// Arguments of an action.
struct ActionArgs {
    request: Request,
    accept: Accept,
}

/// Arguments of a check.
struct CheckArgs {
    request: Request,
    expectation: Expectation,
}

/// There is no session, and none could be opened.
struct NoSession;

impl HttpFactory {
    /// A factory for this deployment. Reads the secrets that come from the environment; asks nothing of the target.
    ///
    /// # Errors
    /// [`ConfigError`]: what to change.
    pub fn new(config: HttpConfig) -> Result<Self, ConfigError> {
        Ok(Self { deployed: Arc::new(Deployed::new(config)?) })
    }
}

impl ExecutorFactory for HttpFactory {
    fn build(&self) -> Result<Box<dyn Executor>, ExecutorError> {
        let client = || Client::new(self.deployed.body_bytes_max);
        Ok(Box::new(HttpExecutor {
            deployed: Arc::clone(&self.deployed),
            in_session: client(),
            apart: client(),
        }))
    }

    fn check_args(&self, purpose: ArgsPurpose, args: &Value) -> Result<(), Vec<ArgsFault>> {
        match purpose {
            ArgsPurpose::Check => CheckArgs::read(args, Stage::Template, &self.deployed).map(|_| ()),
            ArgsPurpose::Write | ArgsPurpose::Read => {
                ActionArgs::read(args, purpose, Stage::Template, &self.deployed).map(|_| ())
            }
        }
    }

    fn fingerprint(&self) -> Vec<u8> {
        self.deployed.fingerprint()
    }
}

impl fmt::Debug for HttpFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpFactory(protected)")
    }
}

impl Executor for HttpExecutor {
    fn check(&mut self, check: &BoundCheck) -> Reading {
        let deadline = Deadline::after(check.time_limit);
        let unreadable = Reading { verdict: Verdict::Unreadable, seen: None };
        let Ok(args) = CheckArgs::read(&check.args, Stage::Bound, &self.deployed) else { return unreadable };
        let Some(answer) = self.look(&args, deadline) else { return unreadable };
        if check.relative {
            args.expectation.compare(&answer, check.baseline.as_deref())
        } else {
            args.expectation.judge(&answer)
        }
    }

    fn act(&mut self, action: &BoundAction) -> ActReport {
        let deadline = Deadline::after(action.time_limit);
        let not_sent = ActReport { outcome: ReceiptOutcome::NotSent, seen: None };
        let purpose = if action.delivery.is_some() { ArgsPurpose::Write } else { ArgsPurpose::Read };
        let Ok(ActionArgs { request, accept }) =
            ActionArgs::read(&action.args, purpose, Stage::Bound, &self.deployed)
        else {
            return not_sent;
        };
        let needs_session = self.needs_session(&request);
        if needs_session && !self.in_session.has_cookies() && self.sign_in(deadline).is_err() {
            return not_sent;
        }
        let answer = match self.send(&request, deadline) {
            Ok(answer) => answer,
            Err(Failed { sent: false }) => return not_sent,
            Err(Failed { sent: true }) => return ActReport { outcome: ReceiptOutcome::Unclear, seen: None },
        };
        let lost = needs_session && self.is_session_lost(&answer);
        if lost {
            // The next request opens a new one. This one is not sent again, whatever the answer says.
            self.in_session.forget_cookies();
        }
        let outcome = if !lost && accept.is_fulfilled(&answer) {
            ReceiptOutcome::Acted
        } else {
            ReceiptOutcome::Unclear
        };
        ActReport { outcome, seen: Some(answer.whole()) }
    }
}

impl HttpExecutor {
    /// Reads once more if the session was lost on the way.
    fn look(&self, args: &CheckArgs, deadline: Deadline) -> Option<Answer> {
        let CheckArgs { request, expectation } = args;
        let in_session = self.needs_session(request);
        if in_session && !self.in_session.has_cookies() {
            self.sign_in(deadline).ok()?;
        }
        let answer = self.follow(request, expectation, deadline)?;
        if !in_session || !self.is_session_lost(&answer) {
            return Some(answer);
        }
        self.in_session.forget_cookies();
        self.sign_in(deadline).ok()?;
        let answer = self.follow(request, expectation, deadline)?;
        if self.is_session_lost(&answer) {
            self.in_session.forget_cookies();
            return None;
        }
        Some(answer)
    }

    /// Reads, following redirects on the target: the answer is one to be judged, or leads to the sign-in page.
    fn follow(&self, request: &Request, expectation: &Expectation, deadline: Deadline) -> Option<Answer> {
        let in_session = self.needs_session(request);
        let mut answer = self.send(request, deadline).ok()?;
        let mut followed = 0;
        loop {
            let lost = in_session && self.is_session_lost(&answer);
            if lost
                || !answer.is_redirect()
                || (expectation.names(answer.status) && answer.location.is_some())
            {
                return Some(answer);
            }
            // With a credential nothing is followed: it was meant for that one address.
            if request.credential.is_some() || followed == REDIRECTS_MAX {
                return None;
            }
            followed += 1;
            let goal = answer.location?;
            answer = self
                .in_session
                .exchange(&self.deployed.origin, &Method::GET, &goal, &request.headers, None, deadline)
                .ok()?;
        }
    }

    fn send(&self, request: &Request, deadline: Deadline) -> Result<Answer, Failed> {
        let Request { method, path_and_query, headers, credential, body } = request;
        let key = match credential {
            Some(name) => Some(self.deployed.credentials.get(name).ok_or(Failed { sent: false })?),
            None => None,
        };
        let mut headers = headers.clone();
        headers.extend(key.map(|key| (key.header.clone(), key.value.clone())));
        let client = if key.is_some() { &self.apart } else { &self.in_session };
        client.exchange(&self.deployed.origin, method, path_and_query, &headers, body.as_ref(), deadline)
    }

    fn sign_in(&self, deadline: Deadline) -> Result<(), NoSession> {
        let form = self.deployed.sign_in.as_ref().ok_or(NoSession)?;
        let fields = form.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let answer = self
            .in_session
            .exchange(
                &self.deployed.origin,
                &Method::POST,
                &form.path,
                &[],
                Some(&Body::form(fields)),
                deadline,
            )
            .map_err(|Failed { .. }| NoSession)?;
        if form.accept.is_fulfilled(&answer)
            && !self.is_session_lost(&answer)
            && self.in_session.has_cookies()
        {
            Ok(())
        } else {
            self.in_session.forget_cookies();
            Err(NoSession)
        }
    }

    fn needs_session(&self, request: &Request) -> bool {
        self.deployed.sign_in.is_some() && request.credential.is_none()
    }

    /// Whether an answer says that the session is over: `401`, or a redirect to the sign-in page.
    fn is_session_lost(&self, answer: &Answer) -> bool {
        let to_sign_in = self
            .deployed
            .sign_in
            .as_ref()
            .zip(answer.location.as_ref())
            .is_some_and(|(form, location)| location.split('?').next() == Some(form.path.as_str()));
        answer.status == 401 || (answer.is_redirect() && to_sign_in)
    }
}

impl ActionArgs {
    fn read(
        args: &Value,
        purpose: ArgsPurpose,
        stage: Stage,
        deployed: &Deployed,
    ) -> Result<Self, Vec<ArgsFault>> {
        let mut faults = Faults::new(stage);
        let action = Self::parse(args, purpose, deployed, &mut faults);
        faults.finish(action)
    }

    fn parse(args: &Value, purpose: ArgsPurpose, deployed: &Deployed, faults: &mut Faults) -> Option<Self> {
        let root = At::default();
        let mut members = request::MEMBERS.to_vec();
        members.push("accept");
        let writes = match purpose {
            ArgsPurpose::Write => true,
            ArgsPurpose::Read | ArgsPurpose::Check => false,
        };
        if writes {
            members.extend(["form", "json"]);
        }
        let args = faults.object(args, &root, &members)?;
        let request = request::read(args, purpose, &known_credentials(deployed), faults);
        if writes && !args.contains_key("accept") {
            faults.add::<()>(&root, "needs `accept`: which answer says that it was done");
        }
        let accept = Accept::read(args.get("accept"), faults);
        let (request, accept) = (request?, accept?);
        if request.method == Method::HEAD && accept.needs_body() {
            return faults
                .add(&root.member("accept").member("body_contains"), "an answer to HEAD has no body");
        }
        Some(Self { request, accept })
    }
}

impl CheckArgs {
    fn read(args: &Value, stage: Stage, deployed: &Deployed) -> Result<Self, Vec<ArgsFault>> {
        let mut faults = Faults::new(stage);
        let check = Self::parse(args, deployed, &mut faults);
        faults.finish(check)
    }

    fn parse(args: &Value, deployed: &Deployed, faults: &mut Faults) -> Option<Self> {
        let mut members = request::MEMBERS.to_vec();
        members.extend(["expect", "absent"]);
        let args = faults.object(args, &At::default(), &members)?;
        let request = request::read(args, ArgsPurpose::Check, &known_credentials(deployed), faults);
        let expectation = Expectation::read(args.get("expect"), args.get("absent"), faults);
        Some(Self { request: request?, expectation: expectation? })
    }
}

fn known_credentials(deployed: &Deployed) -> BTreeSet<&str> {
    deployed.credentials.keys().map(String::as_str).collect()
}
