//! HTTP/1.1, as much of it as the clinic needs: one request per connection, every size and time bounded.
//!
//! The listener is our own because two things must be possible here that the small server crates do not offer:
//! closing a connection without any answer ([`Reply::Close`]), and bodies of any announced length without an
//! allocation of that length.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Largest request line with its headers.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Largest request body.
pub(super) const BODY_BYTES_MAX: usize = 64 * 1024;
/// Most header lines of one request.
const HEADERS_MAX: usize = 64;
/// Most fields of one form or query; what comes after them is ignored.
const FIELDS_MAX: usize = 64;
/// A whole request must have arrived within this time.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);
/// A client that does not read its answer is given up after this time.
const WRITE_TIME_MAX: Duration = Duration::from_secs(10);
/// How much of a refused body is read and thrown away, so that the refusal reaches a client that is still sending.
const LINGER_BYTES_MAX: usize = 4 * 1024 * 1024;
const LINGER_TIME_MAX: Duration = Duration::from_secs(1);

/// One request, complete and within the limits.
#[derive(Debug)]
pub(super) struct Request {
    /// `GET`, `POST`, …: as sent.
    pub(super) method: String,
    /// What stands before the `?`; begins with `/`. Not percent-decoded: no route of ours needs it.
    pub(super) path: String,
    query: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// The first header called `name`, in any case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The cookie called `name`.
    pub(super) fn cookie(&self, name: &str) -> Option<&str> {
        self.header("cookie")?.split(';').filter_map(|pair| pair.trim().split_once('=')).find_map(
            |(known, value)| {
                if known == name { Some(value) } else { None }
            },
        )
    }

    /// The decoded fields of the query.
    pub(super) fn query(&self) -> Fields {
        Fields::parse(self.query.as_bytes())
    }

    /// The decoded fields of the body, if it is a form.
    pub(super) fn form(&self) -> Option<Fields> {
        let media_type = self.header("content-type")?.split(';').next()?.trim();
        media_type
            .eq_ignore_ascii_case("application/x-www-form-urlencoded")
            .then(|| Fields::parse(&self.body))
    }

    /// The body as it was sent.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }
}

/// Fields of a form or a query. Invalid UTF-8 has become U+FFFD.
#[derive(Debug)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    fn parse(bytes: &[u8]) -> Self {
        Self(form_urlencoded::parse(bytes).into_owned().take(FIELDS_MAX).collect())
    }

    /// The first field called `name`; `None` also when it is empty or all white space.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(known, _)| known == name)?;
        Some(value.trim()).filter(|value| !value.is_empty())
    }
}

/// Why there is no request to answer.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// The client went away, or never said a word.
    Gone,
    /// The client is to be told this status and reason, and then disconnected.
    Refused(u16, &'static str),
}

impl From<io::Error> for Unreadable {
    fn from(why: io::Error) -> Self {
        if matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
            Self::Refused(408, "The request did not arrive in time.")
        } else {
            Self::Gone
        }
    }
}

/// What to do with a connection once its request was handled.
#[derive(Debug)]
pub(super) enum Reply {
    /// Answer.
    Send(Response),
    /// Answer after this time, unless the server is stopped before.
    Hold(Response, Duration),
    /// Close without a word, as a dead application would.
    Close,
}

impl From<Response> for Reply {
    fn from(response: Response) -> Self {
        Self::Send(response)
    }
}

/// One answer.
#[derive(Debug)]
pub(super) struct Response {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Response {
    /// A page.
    pub(super) fn html(status: u16, body: String) -> Self {
        Self { status, headers: vec![("Content-Type", "text/html; charset=utf-8".to_owned())], body }
    }

    /// A JSON value.
    pub(super) fn json(status: u16, value: &serde_json::Value) -> Self {
        let body = format!("{value}\n");
        Self { status, headers: vec![("Content-Type", "application/json".to_owned())], body }
    }

    /// `303 See Other`: the browser goes on with a GET of `location`, a path on this server.
    pub(super) fn see_other(location: &str) -> Self {
        Self { status: 303, headers: vec![("Location", location.to_owned())], body: String::new() }
    }

    /// This answer with one more header.
    pub(super) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    fn encode(&self, with_body: bool) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            // A control character in a value could end the header early.
            let value: String = value.chars().filter(|c| !c.is_control()).collect();
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        head.push_str(concat!(
            "Connection: close\r\n",
            "Cache-Control: no-store\r\n",
            "X-Content-Type-Options: nosniff\r\n",
            "Referrer-Policy: same-origin\r\n",
            "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; img-src data:; ",
            "form-action 'self'; base-uri 'none'; frame-ancestors 'none'\r\n\r\n",
        ));
        let mut bytes = head.into_bytes();
        if with_body {
            bytes.extend_from_slice(self.body.as_bytes());
        }
        bytes
    }
}

/// Reads one request, or says why there is none. Allocates no more than the limits, whatever the client announces.
pub(super) fn read_request(stream: &mut TcpStream) -> Result<Request, Unreadable> {
    let deadline = Instant::now() + REQUEST_TIME_MAX;
    let mut bytes = Vec::new();
    let (mut request, head_len) = loop {
        if let Some(parsed) = parse_head(&bytes)? {
            break parsed;
        }
        if bytes.len() >= HEAD_BYTES_MAX {
            return Err(Unreadable::Refused(431, "The request line and headers are too large."));
        }
        let limit = HEAD_BYTES_MAX - bytes.len();
        match read_some(stream, &mut bytes, limit, deadline) {
            Ok(0) => return Err(Unreadable::Gone),
            Ok(_) => {}
            // A browser may open a connection ahead of its need: that one has asked for no answer.
            Err(_) if bytes.is_empty() => return Err(Unreadable::Gone),
            Err(why) => return Err(why.into()),
        }
    };
    let body_len = body_len(&request)?;
    request.body = bytes.split_off(head_len);
    if request.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    while request.body.len() < body_len {
        let missing = body_len - request.body.len();
        if read_some(stream, &mut request.body, missing, deadline)? == 0 {
            return Err(Unreadable::Refused(400, "The body is shorter than announced."));
        }
    }
    request.body.truncate(body_len);
    Ok(request)
}

/// Sends `response` and closes the connection in order, so that the client sees all of it.
pub(super) fn send(stream: &mut TcpStream, response: &Response, with_body: bool) -> io::Result<()> {
    stream.set_write_timeout(Some(WRITE_TIME_MAX))?;
    stream.write_all(&response.encode(with_body))?;
    stream.shutdown(Shutdown::Write)?;
    // Closing with unread input resets the connection and may take the answer with it.
    let deadline = Instant::now() + LINGER_TIME_MAX;
    let mut thrown_away = 0;
    while thrown_away < LINGER_BYTES_MAX {
        let mut rest = Vec::new();
        match read_some(stream, &mut rest, LINGER_BYTES_MAX, deadline) {
            Ok(0) | Err(_) => break,
            Ok(len) => thrown_away += len,
        }
    }
    Ok(())
}

/// The request without its body, and the length of its head; `None` while the head is incomplete.
fn parse_head(bytes: &[u8]) -> Result<Option<(Request, usize)>, Unreadable> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let head_len = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(len)) => len,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(Unreadable::Refused(431, "The request has too many headers."));
        }
        Err(_) => return Err(Unreadable::Refused(400, "This is not an HTTP/1.1 request.")),
    };
    let target = parsed.path.unwrap_or_default();
    if !target.starts_with('/') {
        return Err(Unreadable::Refused(400, "The request target must be a path."));
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: parsed
            .headers
            .iter()
            .map(|header| (header.name.to_owned(), String::from_utf8_lossy(header.value).trim().to_owned()))
            .collect(),
        body: Vec::new(),
    };
    Ok(Some((request, head_len)))
}

/// How long the body is. Two different answers to that are a way to smuggle requests, so they are refused.
fn body_len(request: &Request) -> Result<usize, Unreadable> {
    if request.header("transfer-encoding").is_some() {
        return Err(Unreadable::Refused(411, "Send the body with a Content-Length."));
    }
    let mut announced = None;
    for (name, value) in &request.headers {
        if !name.eq_ignore_ascii_case("content-length") {
            continue;
        }
        if announced.is_some_and(|earlier| earlier != value) || !value.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Unreadable::Refused(400, "The Content-Length is not one number."));
        }
        announced = Some(value);
    }
    let Some(announced) = announced else { return Ok(0) };
    // Digits that overflow are too large as well.
    match announced.parse() {
        Ok(len) if len <= BODY_BYTES_MAX => Ok(len),
        Ok(_) | Err(_) => Err(Unreadable::Refused(413, "The body is too large.")),
    }
}

/// Reads at most `limit` bytes to the end of `bytes`; 0 means that the client has finished.
fn read_some(
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
    limit: usize,
    deadline: Instant,
) -> io::Result<usize> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    stream.set_read_timeout(Some(left))?;
    let mut chunk = [0; 4096];
    let room = limit.min(chunk.len());
    loop {
        match stream.read(&mut chunk[..room]) {
            Ok(len) => {
                bytes.extend_from_slice(&chunk[..len]);
                return Ok(len);
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        303 => "See Other",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Other",
    }
}
