//! MockMed, the demonstration target: a small clinic web application with invented patients.
//!
//! It is a target and nothing else: it depends on no other part of opjournal, and no other part depends on it. It
//! has HTML forms that people and programs write with, a read-back API with a key of its own that only reads, its own
//! durable store, and faults on demand. One process serves one data directory, on 127.0.0.1 only.
//!
//! # Pages
//!
//! All pages but the sign-in page need the session cookie; without it they answer `303` to `/sign-in?reason=session…`.
//! Forms are `application/x-www-form-urlencoded`, at most 64 KiB.
//!
//! | request | answer |
//! |---|---|
//! | `POST /sign-in` with `user`, `password`, `next` (optional) | `303` and the cookie, or `401` |
//! | `POST /sign-out` | `303` |
//! | `GET /session` | `200` or `401`, JSON: is the cookie still good? |
//! | `GET /patients`, `?q=` | `200`: the list |
//! | `GET /patients/{id}` | `200`, or `404` |
//! | `POST /patients/{id}/triage` with `category`, `pain`, `text`, `client_ref` (the last two optional) | `303` to `/patients/{id}?saved=triage`, or `422` |
//! | `POST /patients/{id}/notes` with `text`, `client_ref` (optional) | `303` to `/patients/{id}?saved=note`, or `422` |
//!
//! Cross-site writes are kept out by the cookie (`SameSite=Lax`) and by the `Origin` header: where there is one, it
//! must name the host that was asked. A program that is not a browser need not send it.
//!
//! # Read-back
//!
//! `GET` only, with [`READBACK_KEY`] in `X-Api-Key` (health needs none): `/api/health`, `/api/patients` (`?q=`),
//! `/api/patients/{id}`, `/api/patients/{id}/triage`, `/api/patients/{id}/notes` (both `?client_ref=`), and
//! `/api/writes` (`?client_ref=`, `?patient=`), the access log.
//!
//! # Faults
//!
//! [`faults::FaultKind`] lists them. They are armed at the start ([`Config::faults`]), by `POST /control/faults` with
//! [`CONTROL_KEY`] in `X-Control-Key` and a [`Fault`] as JSON (`GET` lists, `DELETE` clears), or for one request by the
//! header `X-MockMed-Fault: NAME`, with `X-MockMed-Hold-Ms` for the time that `timeout_after_save` holds. They strike
//! form writes, and:
//!
//! - `app_offline` also pages, signing in and read-back, and `session_expired` also pages, where `path_contains`
//!   matches the path, or the request asked for it;
//! - none strikes `/control` or `/api/health`.
//!
//! `app_offline` reads the request and closes the connection without a byte of answer. `session_expired` ends the
//! session for good: the user must sign in again. Of several armed faults the first that fits strikes. A fault counts
//! as used only when it struck; `duplicate_record`, `false_saved_banner` and `timeout_after_save` strike only a form
//! that would have been stored.

mod api;
mod clinic;
mod faults;
mod forms;
mod http;
mod pages;
mod patients;
mod session;
mod store;
#[cfg(test)]
mod tests;
mod time;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clinic::Clinic;
pub(crate) use faults::{Fault, InvalidFault};
use http::{Reply, Response, Unreadable};

/// The only user.
pub(crate) const USER: &str = "nurse";
/// The user's password. It protects nothing: every patient is invented.
pub(crate) const PASSWORD: &str = "demo-only";
/// Key of the read-back API, in the header `X-Api-Key`.
pub(crate) const READBACK_KEY: &str = "readback-demo-only";
/// Key of the fault control, in the header `X-Control-Key`.
pub(crate) const CONTROL_KEY: &str = "control-demo-only";

/// Most connections at once; a hanging one takes up one of them.
const CONNECTIONS_MAX: usize = 256;
/// How long to wait before accepting again when the system refused (mostly: no free file handle).
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// What to serve, and where.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The directory of the store; made if it is not there.
    pub(crate) data: PathBuf,
    /// The port on 127.0.0.1; 0 lets the system choose.
    pub(crate) port: u16,
    /// The faults to arm at the start.
    pub(crate) faults: Vec<Fault>,
    /// Print nothing. Otherwise the address and the keys go to stdout, the address in the first line.
    pub(crate) quiet: bool,
}

/// Why MockMed does not serve. Nothing was changed, but that a torn last line may have been cut off the store.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MockMedError {
    /// The port is not to be had.
    #[error("cannot listen on 127.0.0.1:{port}: {source}. Choose another port, or 0 for any")]
    Listen {
        /// The port that was asked for.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// The store cannot be read or made.
    #[error("cannot open the store {}: {source}", path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process serves this directory.
    #[error("{} is in use by another MockMed. Stop it, or choose another data directory", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A line before the last one is not a record.
    #[error("{} is damaged at line {line}: {why}. Move the file away to start empty", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first bad line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A fault cannot be armed.
    #[error(transparent)]
    Fault(#[from] InvalidFault),
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// A MockMed that serves. Dropping it stops it.
#[derive(Debug)]
pub(crate) struct Running {
    addr: SocketAddr,
    connections: Arc<Connections>,
    acceptor: Option<JoinHandle<()>>,
}

impl Running {
    /// Where it listens.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Blocks for as long as it serves: until the process ends.
    pub(crate) fn wait(mut self) {
        self.join();
        self.stop();
    }

    /// Stops: open connections are closed, held answers are never sent, and the store is free on return.
    pub(crate) fn stop(self) {
        drop(self);
    }

    fn join(&mut self) {
        if let Some(acceptor) = self.acceptor.take() {
            // It panics only with a connection's thread, which has already said so.
            acceptor.join().ok();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.connections.stop();
        // Wakes the acceptor. If nobody accepts any more, there is nobody to wake.
        TcpStream::connect(self.addr).ok();
        self.join();
    }
}

/// Opens the store, binds 127.0.0.1, and serves until it is stopped, with one thread for each connection.
///
/// # Errors
/// See [`MockMedError`].
pub(crate) fn serve(config: Config) -> Result<Running, MockMedError> {
    let Config { data, port, faults, quiet } = config;
    let clinic = Clinic {
        store: store::Store::open(&data)?,
        sessions: session::Sessions::new(session::LIFETIME),
        faults: faults::Faults::default(),
    };
    for fault in faults {
        clinic.faults.arm(fault)?;
    }
    let listen_failed = |source| MockMedError::Listen { port, source };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(listen_failed)?;
    let addr = listener.local_addr().map_err(listen_failed)?;
    let connections = Arc::new(Connections::default());
    let acceptor = {
        let connections = Arc::clone(&connections);
        let accept = move || accept(&listener, &connections, &clinic);
        thread::Builder::new().name("mockmed".to_owned()).spawn(accept).map_err(MockMedError::Thread)?
    };
    let running = Running { addr, connections, acceptor: Some(acceptor) };
    if !quiet {
        // Nobody has to read it.
        let mut stdout = io::stdout();
        stdout.write_all(greeting(running.addr(), &data).as_bytes()).and_then(|()| stdout.flush()).ok();
    }
    Ok(running)
}

fn greeting(addr: SocketAddr, data: &Path) -> String {
    format!(
        "MockMed, a demonstration clinic with invented patients: http://{addr}/\n\
         Sign in as `{USER}` with the password `{PASSWORD}`.\n\
         Read-back API: http://{addr}/api/ with `X-Api-Key: {READBACK_KEY}`.\n\
         Faults: http://{addr}/control/faults with `X-Control-Key: {CONTROL_KEY}`.\n\
         Store: {}\n",
        data.join(store::FILE).display()
    )
}

/// The open connections, and whether it is time to end them.
#[derive(Debug, Default)]
struct Connections {
    state: Mutex<State>,
    stopped: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stopping: bool,
    next: u64,
    open: BTreeMap<u64, TcpStream>,
}

/// What becomes of a new connection.
enum Admitted {
    /// It is served, under this number.
    Open(u64),
    /// There are too many.
    Full,
    /// The server is stopping, or the connection is gone already.
    Closed,
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        let mut state = self.lock();
        state.stopping = true;
        for stream in state.open.values() {
            stream.shutdown(Shutdown::Both).ok();
        }
        self.stopped.notify_all();
    }

    fn is_stopping(&self) -> bool {
        self.lock().stopping
    }

    fn admit(&self, stream: &TcpStream) -> Admitted {
        let mut state = self.lock();
        if state.stopping {
            return Admitted::Closed;
        }
        if state.open.len() >= CONNECTIONS_MAX {
            return Admitted::Full;
        }
        let Ok(handle) = stream.try_clone() else { return Admitted::Closed };
        let number = state.next;
        state.next += 1;
        state.open.insert(number, handle);
        Admitted::Open(number)
    }

    /// Waits for `time`; says whether it passed without a stop.
    fn hold(&self, time: Duration) -> bool {
        let waited = self.stopped.wait_timeout_while(self.lock(), time, |state| !state.stopping);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.stopping
    }
}

/// Takes a connection's entry out when its thread ends, in whatever way.
struct Leave<'a>(&'a Connections, u64);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.lock().open.remove(&self.1);
    }
}

/// Accepts until stopped, and returns when the last connection has ended.
fn accept(listener: &TcpListener, connections: &Connections, clinic: &Clinic) {
    thread::scope(|scope| {
        while !connections.is_stopping() {
            let Ok((mut stream, _)) = listener.accept() else {
                connections.hold(ACCEPT_RETRY);
                continue;
            };
            match connections.admit(&stream) {
                Admitted::Closed => {}
                Admitted::Full => {
                    let busy = clinic::error_page(503, None, "Busy", "There are too many open connections.");
                    stream.set_nonblocking(true).and_then(|()| http::send(&mut stream, &busy, true)).ok();
                }
                Admitted::Open(number) => {
                    let leave = Leave(connections, number);
                    let talk = move || {
                        let _leave = leave;
                        converse(stream, connections, clinic);
                    };
                    // Without a thread the connection is dropped, and `leave` with it.
                    thread::Builder::new().name("mockmed-request".to_owned()).spawn_scoped(scope, talk).ok();
                }
            }
        }
    });
}

/// One connection: one request, one answer or none.
fn converse(mut stream: TcpStream, connections: &Connections, clinic: &Clinic) {
    let (reply, with_body) = match http::read_request(&mut stream) {
        Ok(request) => (clinic.answer(&request), request.method != "HEAD"),
        Err(Unreadable::Gone) => (Reply::Close, false),
        Err(Unreadable::Refused(status, why)) => {
            (clinic::error_page(status, None, "This request cannot be read", why).into(), true)
        }
    };
    let response: Option<Response> = match reply {
        Reply::Send(response) => Some(response),
        Reply::Hold(response, time) => connections.hold(time).then_some(response),
        Reply::Close => None,
    };
    // A client that went away does not mind.
    response.and_then(|response| http::send(&mut stream, &response, with_body).ok());
}
