//! A server on 127.0.0.1 that answers by a script and remembers what it was asked.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// What to do with one request.
pub(super) enum Say {
    /// Write these bytes and end the connection.
    Bytes(Vec<u8>),
    /// Write these bytes and keep the connection. A second request on it is noted as `REUSED` and gets no answer.
    Linger(Vec<u8>),
    /// Write these bytes, then no more, until the client goes away.
    Hang(Vec<u8>),
    /// Write these bytes, then one more at a time for ever.
    Drip(Vec<u8>),
    /// Write these bytes and break the connection, leaving the request half read.
    Reset(Vec<u8>),
}

/// An answer with a body.
pub(super) fn answer(status: u16, body: &str) -> Say {
    head(status, &[], body)
}

/// An answer with more headers.
pub(super) fn head(status: u16, headers: &[(&str, &str)], body: &str) -> Say {
    Say::Bytes(bytes(status, headers, body))
}

/// The bytes of an answer.
pub(super) fn bytes(status: u16, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Says the same to every request.
pub(super) type Always = Box<dyn Fn() -> Say + Send + Sync>;

type Script = dyn Fn(usize, &str) -> Say + Send + Sync;

/// Runs until it is dropped.
pub(super) struct Server {
    pub(super) target: String,
    requests: Arc<Mutex<Vec<String>>>,
    stop: Option<mpsc::Sender<()>>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers request number `n`, from 0, as `script(n, request)` says.
    pub(super) fn start(script: impl Fn(usize, &str) -> Say + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (stop, stopped) = mpsc::channel();
        let script: Arc<Script> = Arc::new(script);
        let log = Arc::clone(&requests);
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.try_recv() != Err(mpsc::TryRecvError::Empty) {
                    break;
                }
                let (script, log) = (Arc::clone(&script), Arc::clone(&log));
                // A connection's thread ends when its client goes away.
                std::thread::spawn(move || converse(stream.unwrap(), &*script, &log));
            }
        });
        Self { target, requests, stop: Some(stop), acceptor: Some(acceptor) }
    }

    /// Every request so far, as it was sent.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// The request lines so far, without the version.
    pub(super) fn lines(&self) -> Vec<String> {
        self.requests().iter().map(|request| request.split(" HTTP/").next().unwrap().to_owned()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        TcpStream::connect(self.target.trim_start_matches("http://")).ok();
        self.acceptor.take().map(JoinHandle::join);
    }
}

fn converse(mut stream: TcpStream, script: &Script, log: &Mutex<Vec<String>>) {
    let Some(request) = read(&mut stream) else { return };
    let number = {
        let mut log = log.lock().unwrap();
        log.push(request.clone());
        log.len() - 1
    };
    match script(number, &request) {
        Say::Bytes(bytes) => {
            stream.write_all(&bytes).ok();
        }
        Say::Linger(bytes) => {
            stream.write_all(&bytes).ok();
            if read(&mut stream).is_some() {
                log.lock().unwrap().push("REUSED".to_owned());
            }
        }
        Say::Hang(bytes) => {
            stream.write_all(&bytes).ok();
            stream.read_exact(&mut [0; 1]).ok();
        }
        Say::Drip(bytes) => {
            stream.write_all(&bytes).ok();
            stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
            // Each round waits for the client to go away, for as long as the read may take.
            while stream.write_all(b"x").is_ok() && !matches!(stream.read(&mut [0; 1]), Ok(0)) {}
        }
        Say::Reset(bytes) => {
            stream.write_all(&bytes).ok();
            reset(stream);
        }
    }
}

/// Ends a connection by a reset: the kernel sends one when something that was received is left unread.
fn reset(stream: TcpStream) {
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.peek(&mut [0; 1]).ok();
}

/// One request, head and body; none if the client went away.
fn read(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .map_or(0, |(_, length)| length.trim().parse().unwrap());
            // A body marked so stays unread, one byte of it, for a reset.
            let leave = usize::from(body.ends_with("UNREAD") && length > body.len());
            if body.len() + leave >= length {
                return Some(text);
            }
        }
        let mut byte = [0; 1];
        match stream.read(&mut byte) {
            Ok(1) => bytes.push(byte[0]),
            Ok(_) | Err(_) => return None,
        }
    }
}
