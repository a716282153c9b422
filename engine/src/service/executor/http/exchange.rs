//! One request and its answer, on a connection of its own, within a deadline, with proof of whether anything was sent.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ureq::Agent;
use ureq::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, TRANSFER_ENCODING};
use ureq::http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, DefaultConnector, NextTimeout, Transport,
};

use super::config::Origin;
use super::request::Body;

/// What came back.
pub(super) struct Answer {
    pub(super) status: u16,
    /// Path and query of a redirect's goal, if that is on the target.
    pub(super) location: Option<String>,
    pub(super) body: Vec<u8>,
    /// Whether the answer said where its body ends.
    pub(super) framed: bool,
    /// Whether the body is compressed or otherwise unlike what it stands for.
    pub(super) encoded: bool,
}

/// There is no whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    /// Whether any byte of the request was given to the connection.
    pub(super) sent: bool,
}

/// A moment after which nothing is waited for any more.
#[derive(Clone, Copy)]
pub(super) struct Deadline {
    begun: Instant,
    limit: Duration,
}

impl Deadline {
    /// `limit` from now.
    pub(super) fn after(limit: Duration) -> Self {
        Self { begun: Instant::now(), limit }
    }

    fn remaining(&self) -> Duration {
        self.limit.saturating_sub(self.begun.elapsed())
    }
}

impl Answer {
    pub(super) const fn is_redirect(&self) -> bool {
        matches!(self.status, 301 | 302 | 303 | 307 | 308)
    }

    /// Whether the body has `text` in it; `text` is not empty.
    pub(super) fn contains(&self, text: &str) -> bool {
        self.body.windows(text.len()).any(|window| window == text.as_bytes())
    }

    /// Everything that the target said, for the record of an action.
    pub(super) fn whole(&self) -> Vec<u8> {
        let head = format!("{}\n{}\n", self.status, self.location.as_deref().unwrap_or_default());
        [head.as_bytes(), &self.body].concat()
    }
}

/// A client with cookies of its own, or none.
pub(super) struct Client {
    agent: Agent,
    sent: Arc<AtomicBool>,
    body_bytes_max: u64,
}

impl Client {
    pub(super) fn new(body_bytes_max: u64) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            // A connection that was used before may be dead without our knowing: then nobody could say what was sent.
            .max_idle_connections(0)
            .max_idle_connections_per_host(0)
            // The deployment names the target; the environment must not put something in between.
            .proxy(None)
            .user_agent(concat!("opjournal/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .build();
        let sent = Arc::new(AtomicBool::new(false));
        let connector = DefaultConnector::new().chain(Witness(Arc::clone(&sent)));
        let agent = Agent::with_parts(config, connector, DefaultResolver::default());
        Self { agent, sent, body_bytes_max }
    }

    /// Whether there is a cookie that has not expired.
    pub(super) fn has_cookies(&self) -> bool {
        self.agent.cookie_jar_lock().iter().next().is_some()
    }

    pub(super) fn forget_cookies(&self) {
        self.agent.cookie_jar_lock().clear();
    }

    /// Sends one request and reads the whole answer. Never sends it again, never follows a redirect.
    pub(super) fn exchange(
        &self,
        origin: &Origin,
        method: &Method,
        path_and_query: &str,
        headers: &[(HeaderName, HeaderValue)],
        body: Option<&Body>,
        deadline: Deadline,
    ) -> Result<Answer, Failed> {
        const NOTHING_SENT: Failed = Failed { sent: false };
        self.sent.store(false, Ordering::Release);
        let remaining = deadline.remaining();
        if remaining.is_zero() {
            return Err(NOTHING_SENT);
        }
        let mut request =
            ureq::http::Request::builder().method(method.clone()).uri(origin.address(path_and_query));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, body.content_type);
        }
        let sends_body = matches!(*method, Method::POST | Method::PUT | Method::PATCH);
        let response = match body.map(|body| body.bytes.as_slice()).or(sends_body.then_some(&[])) {
            Some(bytes) => self.run(request.body(bytes), remaining),
            None => self.run(request.body(()), remaining),
        };
        let answer = response.and_then(|response| self.read(response, origin));
        answer.ok_or_else(|| Failed { sent: self.sent.load(Ordering::Acquire) })
    }

    /// The library's errors are dropped here: their texts hold addresses and values.
    fn run<S: ureq::AsSendBody>(
        &self,
        request: Result<ureq::http::Request<S>, ureq::http::Error>,
        remaining: Duration,
    ) -> Option<Response<ureq::Body>> {
        let request = self.agent.configure_request(request.ok()?).timeout_global(Some(remaining)).build();
        self.agent.run(request).ok()
    }

    fn read(&self, response: Response<ureq::Body>, origin: &Origin) -> Option<Answer> {
        let (head, body) = response.into_parts();
        let mut locations = head.headers.get_all(LOCATION).iter();
        let location = match (locations.next(), locations.next()) {
            (Some(location), None) => location.to_str().ok().and_then(|location| origin.locate(location)),
            _ => None,
        };
        let body = body.into_with_config().limit(self.body_bytes_max).read_to_vec().ok()?;
        Some(Answer {
            status: head.status.as_u16(),
            location,
            body,
            framed: [CONTENT_LENGTH, TRANSFER_ENCODING].iter().any(|name| head.headers.contains_key(name)),
            encoded: is_encoded(&head.headers),
        })
    }
}

fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Stands between the HTTP library and each of its connections, encryption included, and notes when the first byte of
/// a request is handed over. While the note is not there, nothing of a request has left the process: looking up a
/// name, connecting and shaking hands send none of it.
#[derive(Debug)]
struct Witness(Arc<AtomicBool>);

struct Watched<T> {
    inner: T,
    sent: Arc<AtomicBool>,
}

impl<T: Transport> Connector<T> for Witness {
    type Out = Watched<T>;

    fn connect(
        &self,
        _: &ConnectionDetails<'_>,
        chained: Option<T>,
    ) -> Result<Option<Watched<T>>, ureq::Error> {
        Ok(chained.map(|inner| Watched { inner, sent: Arc::clone(&self.0) }))
    }
}

impl<T: Transport> Transport for Watched<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        if amount > 0 {
            self.sent.store(true, Ordering::Release);
        }
        self.inner.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.inner.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        self.inner.is_open()
    }

    fn is_tls(&self) -> bool {
        self.inner.is_tls()
    }
}

impl<T> fmt::Debug for Watched<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}
