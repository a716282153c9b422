//! The clinic from outside, over HTTP.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;
use ureq::http::Response;
use ureq::{Agent, Body};

use super::*;

/// A MockMed in a directory of its own, and a client that remembers its cookies and follows no redirect.
struct Visit {
    running: Option<Running>,
    base: String,
    agent: Agent,
    data: TempDir,
}

impl Visit {
    fn new(faults: &[&str]) -> Self {
        Self::at(tempfile::tempdir().unwrap(), faults)
    }

    fn at(data: TempDir, faults: &[&str]) -> Self {
        let running = start(data.path(), faults).unwrap();
        let base = format!("http://{}", running.addr());
        Self { running: Some(running), base, agent: client(), data }
    }

    fn signed_in(faults: &[&str]) -> Self {
        let visit = Self::new(faults);
        visit.sign_in();
        visit
    }

    /// Stops, and starts again on the same data.
    fn restart(mut self) -> Self {
        self.running.take().unwrap().stop();
        Self::at(self.data, &[])
    }

    fn sign_in(&self) {
        let answer = self.post("/sign-in", &[("user", USER), ("password", PASSWORD)]);
        assert_eq!(answer, (303, "/patients".to_owned()));
    }

    fn get(&self, path: &str) -> (u16, String) {
        let mut answer = self.agent.get(format!("{}{path}", self.base)).call().unwrap();
        (answer.status().as_u16(), text(&mut answer))
    }

    /// Posts a form and returns the status, with the redirect's target or the page.
    fn post(&self, path: &str, fields: &[(&str, &str)]) -> (u16, String) {
        self.try_post(path, fields, &[]).unwrap()
    }

    fn post_with(&self, path: &str, fields: &[(&str, &str)], headers: &[(&str, &str)]) -> (u16, String) {
        self.try_post(path, fields, headers).unwrap()
    }

    fn try_post(
        &self,
        path: &str,
        fields: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Result<(u16, String), ureq::Error> {
        let mut request = self.agent.post(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut answer = request.send_form(fields.iter().copied())?;
        let target = answer.headers().get("location").map(|value| value.to_str().unwrap().to_owned());
        Ok((answer.status().as_u16(), target.unwrap_or_else(|| text(&mut answer))))
    }

    fn note(&self, words: &str) -> (u16, String) {
        self.post("/patients/p-001/notes", &[("text", words)])
    }

    fn api(&self, path: &str) -> Value {
        let url = format!("{}/api/{path}", self.base);
        let mut answer = self.agent.get(url).header("X-Api-Key", READBACK_KEY).call().unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        serde_json::from_str(&text(&mut answer)).unwrap()
    }

    /// The number of records, and of the requests that made them.
    fn written(&self) -> (u64, u64) {
        let writes = self.api("writes");
        (writes["count"].as_u64().unwrap(), writes["actuations"].as_u64().unwrap())
    }

    fn arm(&self, fault: &Value) -> u16 {
        let request = self.agent.post(format!("{}/control/faults", self.base));
        let answer = request.header("X-Control-Key", CONTROL_KEY).send(fault.to_string()).unwrap();
        answer.status().as_u16()
    }

    fn faults(&self) -> Value {
        let request = self.agent.get(format!("{}/control/faults", self.base));
        serde_json::from_str(&text(&mut request.header("X-Control-Key", CONTROL_KEY).call().unwrap()))
            .unwrap()
    }

    /// Sends bytes as they are, and returns all that comes back.
    fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.running.as_ref().unwrap().addr()).unwrap();
        // The server may answer and close before it has read everything.
        stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write)).ok();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok();
        String::from_utf8(answer).unwrap()
    }
}

fn start(data: &Path, faults: &[&str]) -> Result<Running, MockMedError> {
    let faults = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    serve(Config { data: data.to_owned(), port: 0, faults, quiet: true })
}

fn client() -> Agent {
    Agent::config_builder().http_status_as_error(false).max_redirects(0).build().into()
}

fn text(answer: &mut Response<Body>) -> String {
    answer.body_mut().read_to_string().unwrap()
}

const TRIAGE: [(&str, &str); 3] = [("category", "2"), ("pain", "7"), ("text", "sweating")];
const SAVED_NOTE: &str = "/patients/p-001?saved=note";
const TO_SIGN_IN: &str = "/sign-in?reason=session&next=/patients/p-001";

#[test]
fn every_page_and_every_write_needs_a_session() {
    let visit = Visit::new(&[]);
    for path in ["/", "/patients", "/patients/p-001", "/patients/nobody"] {
        assert_eq!(visit.get(path).0, 303, "{path}");
    }
    assert_eq!(visit.get("/session").0, 401);
    assert_eq!(visit.note("x"), (303, TO_SIGN_IN.to_owned()));
    assert_eq!(visit.post("/patients/p-001/triage", &TRIAGE), (303, TO_SIGN_IN.to_owned()));
    for (user, password) in [(USER, "wrong"), ("doctor", PASSWORD), ("", "")] {
        let (status, page) = visit.post("/sign-in", &[("user", user), ("password", password)]);
        assert_eq!((status, page.contains("is wrong")), (401, true));
    }
    assert_eq!(visit.written(), (0, 0));

    visit.sign_in();
    assert!(visit.get("/patients").1.contains("Ada Sampleton"));
    assert!(visit.get("/session").1.contains("nurse"));
    assert_eq!(visit.post("/sign-out", &[]).0, 303);
    assert_eq!(visit.get("/patients").0, 303);
}

#[test]
fn the_session_cookie_is_kept_from_scripts_and_other_sites() {
    let visit = Visit::new(&[]);
    let url = format!("{}/sign-in", visit.base);
    let answer = visit.agent.post(url).send_form([("user", USER), ("password", PASSWORD)]).unwrap();
    let cookie = answer.headers()["set-cookie"].to_str().unwrap();
    for part in ["mockmed_session=", "HttpOnly", "SameSite=Lax", "Max-Age=28800", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
}

#[test]
fn a_write_is_stored_and_logged_once_and_confirmed() {
    let visit = Visit::signed_in(&[]);
    let triage = visit.post("/patients/p-001/triage", &TRIAGE);
    assert_eq!(triage, (303, "/patients/p-001?saved=triage".to_owned()));
    let note = visit.post("/patients/p-001/notes", &[("text", "a\r\nb"), ("client_ref", "delivery:1")]);
    assert_eq!(note, (303, SAVED_NOTE.to_owned()));
    assert!(visit.get("/patients/p-001?saved=triage").1.contains("Triage saved"));
    assert!(visit.get(SAVED_NOTE).1.contains("Note saved"));
    assert!(!visit.get("/patients/p-001").1.contains(" saved</p>"));

    let triage = visit.api("patients/p-001/triage");
    assert_eq!((&triage["count"], &triage["latest"]["category"]), (&json!(1), &json!(2)));
    let notes = visit.api("patients/p-001/notes?client_ref=delivery:1");
    assert_eq!(notes["count"], 1);
    let note = &notes["notes"][0];
    assert_eq!((&note["text"], &note["author"]), (&json!("a\nb"), &json!("nurse")));
    assert_eq!(visit.api("patients/p-001/notes?client_ref=delivery:2")["count"], 0);
    assert_eq!(visit.api("patients/p-002/notes")["count"], 0);
    assert_eq!(visit.written(), (2, 2));
    let write = &visit.api("writes?client_ref=delivery:1")["writes"][0];
    assert_eq!(
        (&write["actuation"], &write["kind"], &write["fault"]),
        (&json!(2), &json!("note"), &Value::Null)
    );
    assert!(write.get("text").is_none(), "the log names writes and does not repeat them");
}

#[test]
fn a_wrong_form_is_shown_again_and_stores_nothing() {
    let visit = Visit::signed_in(&[]);
    let long = "x".repeat(forms::TEXT_CHARS_MAX + 1);
    let shorten = format!("to {} characters", forms::TEXT_CHARS_MAX);
    let reference = format!("up to {} letters", forms::REFERENCE_CHARS_MAX);
    let triage = |category, pain| vec![("category", category), ("pain", pain), ("text", "typed text")];
    for (path, fields, want) in [
        ("triage", triage("", "1"), "Choose a category"),
        ("triage", triage("6", "1"), "Choose a category"),
        ("triage", triage("+1", "1"), "Choose a category"),
        ("triage", triage("1", "11"), "pain score"),
        ("triage", triage("1", "-1"), "pain score"),
        ("triage", triage("1", "1e1"), "pain score"),
        ("notes", vec![("text", "  \r\n ")], "Write the note"),
        ("notes", vec![("text", &long)], shorten.as_str()),
        ("notes", vec![("text", "a\0b")], "control characters"),
        ("notes", vec![("text", "typed text"), ("client_ref", "a b")], &reference),
    ] {
        let (status, page) = visit.post(&format!("/patients/p-001/{path}"), &fields);
        assert_eq!((status, page.contains(want)), (422, true), "{fields:?}");
        if fields.iter().any(|(_, value)| *value == "typed text") {
            assert!(page.contains("typed text"), "what was typed is not lost: {fields:?}");
        }
    }
    assert_eq!(visit.post("/patients/nobody/notes", &[("text", "x")]).0, 404);
    assert_eq!(visit.get("/patients/nobody").0, 404);
    assert_eq!(visit.get("/nowhere").0, 404);
    assert_eq!(visit.get("/patients/p-001/notes").0, 405);
    assert_eq!(visit.written(), (0, 0));
}

#[test]
fn hostile_text_is_shown_as_text() {
    let visit = Visit::signed_in(&[]);
    let hostile = r#"</textarea><script>alert("1")</script><b a='"#;
    assert_eq!(visit.note(hostile), (303, SAVED_NOTE.to_owned()));
    visit.post("/patients/p-001/triage", &[("category", "1"), ("pain", "1"), ("text", hostile)]);
    let again =
        visit.post("/patients/p-001/triage", &[("category", hostile), ("pain", hostile), ("text", hostile)]);
    let search =
        format!("/patients?q={}", form_urlencoded::byte_serialize(hostile.as_bytes()).collect::<String>());
    let next = search.replace("/patients?q", "/sign-in?next");
    let stranger = Visit {
        agent: client(),
        running: None,
        base: visit.base.clone(),
        data: tempfile::tempdir().unwrap(),
    };
    for page in [visit.get("/patients/p-001").1, again.1, visit.get(&search).1, stranger.get(&next).1] {
        assert!(page.contains("</html>"));
        assert!(!page.contains("<script") && !page.contains("<b a"), "{page}");
    }
    assert_eq!(visit.api("patients/p-001/notes")["notes"][0]["text"], hostile);
}

#[test]
fn only_our_own_pages_and_programs_may_post() {
    let visit = Visit::signed_in(&[]);
    for (headers, want) in [
        (vec![], 303),
        (vec![("Origin", visit.base.as_str())], 303),
        (vec![("Origin", "http://evil.example")], 403),
        (vec![("Origin", "null")], 403),
        (vec![("Host", "evil.example"), ("Origin", "http://evil.example")], 421),
        (vec![("Content-Type", "text/plain")], 415),
    ] {
        let (status, _) = visit.post_with("/patients/p-001/notes", &[("text", "x")], &headers);
        assert_eq!(status, want, "{headers:?}");
    }
    assert_eq!(visit.written(), (2, 2));
}

#[test]
fn read_back_and_control_need_their_own_keys_and_read_back_only_reads() {
    let visit = Visit::signed_in(&[]);
    let url = |path: &str| format!("{}{path}", visit.base);
    let status = |answer: Result<Response<Body>, ureq::Error>| answer.unwrap().status().as_u16();
    for path in ["/api/patients", "/api/patients/p-001", "/api/patients/p-001/notes", "/api/writes", "/api/x"]
    {
        assert_eq!(visit.get(path).0, 401, "the session is no key: {path}");
        assert_eq!(status(visit.agent.get(url(path)).header("X-Api-Key", CONTROL_KEY).call()), 401, "{path}");
        assert_eq!(
            status(visit.agent.post(url(path)).header("X-Api-Key", READBACK_KEY).send("{}")),
            405,
            "{path}"
        );
    }
    for path in ["/api/patients/nobody", "/api/patients/nobody/notes", "/api/x", "/api/patients/p-001/x"] {
        let mut answer = visit.agent.get(url(path)).header("X-Api-Key", READBACK_KEY).call().unwrap();
        assert_eq!(answer.status(), 404, "{path}");
        let body: Value = serde_json::from_str(&text(&mut answer)).unwrap();
        assert!(body["error"]["code"].is_string(), "{path}");
    }
    assert_eq!(visit.get("/api/health").0, 200);
    assert_eq!(status(visit.agent.head(url("/api/health")).call()), 200);
    assert_eq!(visit.get("/control/faults").0, 401);
    assert_eq!(visit.api("patients")["count"], 10);
    assert_eq!(visit.api("patients?q=sampleton")["count"], 1);
    assert_eq!(visit.api("patients/p-001")["mrn"], "MRN-900001");
}

#[test]
fn duplicate_record_stores_two_records_of_one_request() {
    let visit = Visit::signed_in(&["duplicate_record:1"]);
    assert_eq!(visit.note("once"), (303, SAVED_NOTE.to_owned()));
    assert_eq!(visit.written(), (2, 1));
    assert_eq!(visit.api("patients/p-001/notes")["count"], 2);
    assert_eq!(visit.api("writes")["writes"][1]["fault"], "duplicate_record");
    assert_eq!(visit.note("again"), (303, SAVED_NOTE.to_owned()));
    assert_eq!(visit.written(), (3, 2), "the fault was armed for one request");
}

#[test]
fn false_saved_banner_says_saved_and_stores_nothing() {
    let visit = Visit::signed_in(&["false_saved_banner"]);
    for _ in 0..2 {
        assert_eq!(visit.note("lost"), (303, SAVED_NOTE.to_owned()));
    }
    assert!(visit.get(SAVED_NOTE).1.contains("Note saved"));
    assert_eq!(visit.written(), (0, 0));
    assert_eq!(visit.faults()["fired"].as_array().unwrap().len(), 2);
}

#[test]
fn timeout_after_save_stores_and_then_holds_its_answer_without_holding_others() {
    let mut visit = Visit::signed_in(&[]);
    let held = [("X-MockMed-Fault", "timeout_after_save"), ("X-MockMed-Hold-Ms", "600000")];
    thread::scope(|scope| {
        let hanging: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| visit.try_post("/patients/p-001/notes", &[("text", "late")], &held)))
            .collect();
        while visit.written() != (8, 8) {
            assert!(hanging.iter().all(|request| !request.is_finished()));
        }
        assert_eq!(visit.note("meanwhile"), (303, SAVED_NOTE.to_owned()));
        assert!(hanging.iter().all(|request| !request.is_finished()));
        // The stop ends them without an answer.
        visit.running.as_ref().unwrap().connections.stop();
        for request in hanging {
            assert!(request.join().unwrap().is_err());
        }
    });
    visit.running.take().unwrap().stop();
    let visit = Visit::at(visit.data, &[]);
    assert_eq!(visit.written(), (9, 9));

    visit.sign_in();
    let short = [("X-MockMed-Fault", "timeout_after_save"), ("X-MockMed-Hold-Ms", "1")];
    let answer = visit.post_with("/patients/p-001/notes", &[("text", "late")], &short);
    assert_eq!(answer, (303, SAVED_NOTE.to_owned()), "after the time the answer comes");
}

#[test]
fn app_offline_closes_without_an_answer_and_stores_nothing() {
    let visit = Visit::signed_in(&["app_offline:1"]);
    assert_eq!(visit.get("/patients").0, 200, "pages are not hit unless named");
    assert!(visit.try_post("/patients/p-001/notes", &[("text", "x")], &[]).is_err());
    assert_eq!(visit.written(), (0, 0));
    assert_eq!(visit.note("back online"), (303, SAVED_NOTE.to_owned()));

    assert_eq!(visit.arm(&json!({ "fault": "app_offline", "path_contains": "p-002" })), 201);
    let request = "GET /patients/p-002 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    assert_eq!(visit.raw(request.as_bytes()), "", "not one byte");
    let read_back = format!("{}/api/patients/p-002", visit.base);
    assert!(visit.agent.get(read_back).header("X-Api-Key", READBACK_KEY).call().is_err());
    assert_eq!(visit.get("/patients/p-001").0, 200);
    assert_eq!(visit.arm(&json!({ "fault": "app_offline", "path_contains": "/" })), 201);
    assert_eq!(visit.get("/api/health").0, 200, "never health");
    assert_eq!(visit.faults()["armed"].as_array().unwrap().len(), 2, "never control");
}

#[test]
fn session_expired_ends_the_session_and_stores_nothing() {
    let visit = Visit::signed_in(&["session_expired:1"]);
    assert_eq!(visit.get("/patients").0, 200, "pages are not hit unless named");
    assert_eq!(visit.note("x"), (303, TO_SIGN_IN.to_owned()));
    assert_eq!(visit.note("x"), (303, TO_SIGN_IN.to_owned()), "for good");
    assert_eq!(visit.written(), (0, 0));
    visit.sign_in();
    assert_eq!(visit.note("x"), (303, SAVED_NOTE.to_owned()));
    assert_eq!(visit.arm(&json!({ "fault": "session_expired", "times": 1, "path_contains": "p-002" })), 201);
    assert_eq!(visit.get("/patients/p-002").0, 303);
    assert_eq!(visit.get("/patients/p-001").0, 303);
}

#[test]
fn faults_are_armed_listed_and_cleared_and_count_only_when_they_strike() {
    let visit = Visit::signed_in(&[]);
    for bad in [
        json!({}),
        json!([]),
        json!({ "fault": "unknown" }),
        json!({ "fault": "app_offline", "times": 0 }),
        json!({ "fault": "app_offline", "times": -1 }),
        json!({ "fault": "app_offline", "hold_ms": faults::HOLD_MS_MAX + 1 }),
        json!({ "fault": "app_offline", "unknown": 1 }),
    ] {
        assert_eq!(visit.arm(&bad), 400, "{bad}");
    }
    assert_eq!(
        visit.arm(&json!({ "fault": "false_saved_banner", "times": 1, "path_contains": "triage" })),
        201
    );
    assert_eq!(visit.note("not there"), (303, SAVED_NOTE.to_owned()));
    assert_eq!(visit.post("/patients/p-001/triage", &[]).0, 422);
    assert_eq!(visit.written(), (1, 1));
    let left = json!([
        { "fault": "false_saved_banner", "times": 1, "path_contains": "triage", "hold_ms": faults::HOLD_MS_DEFAULT }
    ]);
    assert_eq!(visit.faults()["armed"], left, "a form that would not have been stored uses nothing up");
    assert_eq!(visit.post("/patients/p-001/triage", &TRIAGE).0, 303);
    assert_eq!(visit.written(), (1, 1));
    let faults = visit.faults();
    assert_eq!(faults["armed"], json!([]));
    assert_eq!(faults["fired"][0]["path"], "/patients/p-001/triage");

    assert_eq!(visit.arm(&json!({ "fault": "app_offline" })), 201);
    let clear = visit.agent.delete(format!("{}/control/faults", visit.base));
    assert_eq!(clear.header("X-Control-Key", CONTROL_KEY).call().unwrap().status(), 200);
    assert_eq!(visit.note("works"), (303, SAVED_NOTE.to_owned()));
    let unknown =
        visit.post_with("/patients/p-001/notes", &[("text", "x")], &[("X-MockMed-Fault", "unknown")]);
    assert_eq!(unknown.0, 400);
    assert_eq!(visit.written(), (2, 2));
}

#[test]
fn a_fault_is_a_name_and_a_count() {
    for (text, want) in [
        ("app_offline", Some(None)),
        ("duplicate_record:3", Some(Some(3))),
        ("duplicate_record:0", None),
        ("duplicate_record:", None),
        ("duplicate_record:-1", None),
        ("duplicate_record:99999999999", None),
        ("", None),
        (":1", None),
        ("App_Offline", None),
    ] {
        assert_eq!(text.parse::<Fault>().ok().map(|fault| fault.times), want, "{text}");
    }
    for kind in faults::FaultKind::ALL {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name(), "one name everywhere");
    }
}

#[test]
fn a_restart_keeps_the_records_and_goes_on_counting() {
    let visit = Visit::signed_in(&["duplicate_record:1"]);
    visit.note("one");
    let before = visit.api("patients/p-001/notes");
    let visit = visit.restart();
    assert_eq!(visit.api("patients/p-001/notes"), before);
    assert_eq!(visit.get("/patients").0, 303, "sessions do not outlive the process");
    visit.sign_in();
    visit.note("two");
    assert_eq!(visit.written(), (3, 2));
    assert_eq!(visit.restart().api("writes")["writes"][2]["actuation"], 2);
}

#[test]
fn a_torn_last_line_is_cut_off_wherever_it_is_torn() {
    let visit = Visit::signed_in(&[]);
    visit.note("whole");
    visit.note("torn");
    let mut visit = visit.restart();
    visit.running.take().unwrap().stop();
    let path = visit.data.path().join(store::FILE);
    let bytes = std::fs::read(&path).unwrap();
    let first_len = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for torn in first_len..bytes.len() {
        std::fs::write(&path, &bytes[..torn]).unwrap();
        let store = store::Store::open(visit.data.path()).unwrap();
        assert_eq!(store.select(|_| true).len(), 1, "torn at {torn}");
        drop(store);
        assert_eq!(std::fs::read(&path).unwrap(), &bytes[..first_len], "torn at {torn}");
    }
    let mut zeroed = bytes[..first_len].to_vec();
    zeroed.extend([0; 100]);
    std::fs::write(&path, zeroed).unwrap();
    let visit = Visit::at(visit.data, &[]);
    visit.sign_in();
    visit.note("next");
    assert_eq!(visit.restart().written(), (2, 2), "what is appended after a cut is found again");
}

#[test]
fn a_damaged_store_and_one_in_use_are_refused_and_left_alone() {
    let visit = Visit::signed_in(&[]);
    assert!(matches!(start(visit.data.path(), &[]), Err(MockMedError::InUse { .. })));
    visit.note("one");
    visit.note("two");
    let mut visit = visit.restart();
    visit.running.take().unwrap().stop();
    let path = visit.data.path().join(store::FILE);
    let good = std::fs::read_to_string(&path).unwrap();
    let (first, second) = good.split_once('\n').unwrap();
    for (case, bad, line) in [
        ("not JSON", format!("rubbish\n{second}"), 1),
        ("a line is missing", second.to_owned(), 1),
        ("a line twice", format!("{first}\n{first}\n"), 2),
    ] {
        std::fs::write(&path, &bad).unwrap();
        match start(visit.data.path(), &[]) {
            Err(MockMedError::Damaged { line: at, .. }) => assert_eq!(at, line, "{case}"),
            other => panic!("{case}: {other:?}"),
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), bad, "{case}");
    }
}

#[test]
fn garbage_and_giants_get_an_error_and_the_server_lives_on() {
    let visit = Visit::new(&[]);
    let host = "Host: 127.0.0.1\r\n";
    let many = "A: b\r\n".repeat(1000);
    let long = "a".repeat(100_000);
    for (case, request, want) in [
        ("binary", "\u{0}\u{1}\u{2}\r\n\r\n".to_owned(), "400"),
        ("TLS", "\u{16}\u{3}\u{1}\u{2}".to_owned(), "400"),
        ("no version", "GET /\r\n\r\n".to_owned(), "400"),
        ("no path", format!("GET http://127.0.0.1/ HTTP/1.1\r\n{host}\r\n"), "400"),
        ("no host", "GET / HTTP/1.1\r\n\r\n".to_owned(), "421"),
        ("long path", format!("GET /{long} HTTP/1.1\r\n{host}\r\n"), "431"),
        ("long header", format!("GET / HTTP/1.1\r\n{host}A: {long}\r\n\r\n"), "431"),
        ("many headers", format!("GET / HTTP/1.1\r\n{host}{many}\r\n"), "431"),
        (
            "giant body",
            format!("POST /sign-in HTTP/1.1\r\n{host}Content-Length: 100000\r\n\r\n{long}"),
            "413",
        ),
        (
            "giant number",
            format!("POST / HTTP/1.1\r\n{host}Content-Length: 9000000000000000000\r\n\r\n"),
            "413",
        ),
        (
            "overflow",
            format!("POST / HTTP/1.1\r\n{host}Content-Length: 99999999999999999999999\r\n\r\n"),
            "413",
        ),
        ("no number", format!("POST / HTTP/1.1\r\n{host}Content-Length: -1\r\n\r\n"), "400"),
        (
            "two lengths",
            format!("POST / HTTP/1.1\r\n{host}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
            "400",
        ),
        ("chunked", format!("POST / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "411"),
        ("short body", format!("POST /sign-in HTTP/1.1\r\n{host}Content-Length: 10\r\n\r\nab"), "400"),
        ("no form", format!("POST /sign-in HTTP/1.1\r\n{host}Content-Length: 2\r\n\r\n\u{1}\u{2}"), "415"),
        ("odd method", format!("BREW /patients HTTP/1.1\r\n{host}\r\n"), "405"),
        ("odd path", format!("GET /%2e%2e/%00/..//?&&=&%zz HTTP/1.1\r\n{host}\r\n"), "404"),
    ] {
        let answer = visit.raw(request.as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {want} ")), "{case}: {answer:.60}");
    }
    assert_eq!(visit.raw(b""), "", "who says nothing is told nothing");
    let broken = "user=%ff%fe%zz&&&=&user=%00&password";
    let head = format!("POST /sign-in HTTP/1.1\r\n{host}Content-Type: application/x-www-form-urlencoded\r\n");
    let answer = visit.raw(format!("{head}Content-Length: {}\r\n\r\n{broken}", broken.len()).as_bytes());
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer:.60}");
    assert_eq!(visit.get("/api/health").0, 200);
}
