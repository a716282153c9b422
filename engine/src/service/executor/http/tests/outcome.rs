//! What an action's outcome is.

use super::server::{Always, Say, answer, bytes, head};
use super::*;

#[test]
fn an_action_is_done_only_if_the_answer_is_as_declared() {
    let accept = |accept: Value| {
        let mut args = note();
        args["accept"] = accept;
        args
    };
    let found = |location: &'static str| move || head(303, &[("Location", location)], "");
    let cases: Vec<(&str, Value, Always, ReceiptOutcome)> = vec![
        ("the status", note(), Box::new(|| answer(201, "")), ReceiptOutcome::Acted),
        ("another status", note(), Box::new(|| answer(200, "")), ReceiptOutcome::Unclear),
        ("refused", note(), Box::new(|| answer(422, "")), ReceiptOutcome::Unclear),
        ("failed", note(), Box::new(|| answer(500, "")), ReceiptOutcome::Unclear),
        (
            "the text",
            accept(json!({ "status": [200], "body_contains": ["saved", 17] })),
            Box::new(|| answer(200, "saved as 17")),
            ReceiptOutcome::Acted,
        ),
        (
            "not the text",
            accept(json!({ "status": [200], "body_contains": ["saved", 17] })),
            Box::new(|| answer(200, "saved as 18")),
            ReceiptOutcome::Unclear,
        ),
        (
            "the text, but compressed, as it says",
            accept(json!({ "status": [200], "body_contains": ["saved"] })),
            Box::new(|| head(200, &[("Content-Encoding", "gzip")], "saved")),
            ReceiptOutcome::Unclear,
        ),
        (
            "the redirect",
            accept(json!({ "status": [303], "location_prefix": "/patients/p-001?saved=note" })),
            Box::new(found("/patients/p-001?saved=note#top")),
            ReceiptOutcome::Acted,
        ),
        (
            "a redirect elsewhere on the target",
            accept(json!({ "status": [303], "location_prefix": "/patients/p-001?saved=note" })),
            Box::new(found("/patients/p-001")),
            ReceiptOutcome::Unclear,
        ),
        (
            "a redirect to another host",
            accept(json!({ "status": [303] })),
            Box::new(found("http://127.0.0.1:1/patients/p-001")),
            ReceiptOutcome::Unclear,
        ),
        (
            "a redirect to another host without a scheme",
            accept(json!({ "status": [303], "location_prefix": "/" })),
            Box::new(found("//elsewhere.example/patients")),
            ReceiptOutcome::Unclear,
        ),
        (
            "a redirect to nowhere",
            accept(json!({ "status": [303] })),
            Box::new(|| answer(303, "")),
            ReceiptOutcome::Unclear,
        ),
        (
            "two goals at once",
            accept(json!({ "status": [303] })),
            Box::new(|| head(303, &[("Location", "/a"), ("Location", "/b")], "")),
            ReceiptOutcome::Unclear,
        ),
    ];
    for (case, args, say, want) in cases {
        let server = Server::start(move |_, _| say());
        assert_eq!(write(&plain(&server.target), args, AMPLE), want, "{case}");
        assert_eq!(server.lines(), ["POST /notes"], "{case}: sent once, and no redirect followed");
    }
}

#[test]
fn a_request_arrives_as_declared() {
    let server = Server::start(|_, _| answer(201, ""));
    let factory = plain(&server.target);
    write(&factory, note(), AMPLE);
    let args = json!({
        "method": "PUT", "path": ["patients", "p 1/2", 3], "query": { "a&b": "c=d" }, "json": { "n": 1 },
        "headers": { "X-Trace": "t" }, "credential": "readback", "accept": { "status": [201] },
    });
    write(&factory, args, AMPLE);
    write(&factory, json!({ "method": "DELETE", "path": [], "accept": { "status": [201] } }), AMPLE);
    let requests = server.requests();
    assert!(requests[0].starts_with("POST /notes HTTP/1.1\r\n"));
    assert!(requests[0].to_lowercase().contains("content-type: application/x-www-form-urlencoded\r\n"));
    assert!(requests[0].ends_with("\r\n\r\ntext=a%20b%26c%3D%C3%BC"));
    assert!(!requests[0].contains(CANARY), "no credential was asked for");
    assert!(requests[1].starts_with("PUT /patients/p%201%2F2/3?a%26b=c%3Dd HTTP/1.1\r\n"));
    assert!(requests[1].to_lowercase().contains("x-trace: t\r\n"));
    assert!(requests[1].to_lowercase().contains(&format!("x-api-key: {CANARY}\r\n")));
    assert!(requests[1].ends_with("\r\n\r\n{\"n\":1}"));
    assert!(requests[2].starts_with("DELETE / HTTP/1.1\r\n"));
}

#[test]
fn what_was_not_given_is_left_out_of_a_form_only() {
    let server = Server::start(|_, _| answer(201, ""));
    let factory = plain(&server.target);
    let mut args = note();
    args["form"] = json!({ "text": "a", "client_ref": null });
    assert_eq!(write(&factory, args.clone(), AMPLE), ReceiptOutcome::Acted);
    assert!(server.requests()[0].ends_with("\r\n\r\ntext=a"));
    for member in ["query", "headers"] {
        let mut args = note();
        args[member] = json!({ "client_ref": null });
        assert_eq!(write(&factory, args, AMPLE), ReceiptOutcome::NotSent, "{member}");
    }
    args["path"] = json!(["notes", null]);
    assert_eq!(write(&factory, args, AMPLE), ReceiptOutcome::NotSent, "path");
    assert_eq!(server.lines().len(), 1);
}

#[test]
fn nothing_sent_is_said_only_when_it_is_proven() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    assert_eq!(write(&plain(&closed), note(), AMPLE), ReceiptOutcome::NotSent, "nobody listens");
    assert_eq!(
        write(&plain("http://nowhere.invalid"), note(), SHORT),
        ReceiptOutcome::NotSent,
        "no such name"
    );

    // Its answer to the handshake is not one.
    let server = Server::start(|_, _| answer(201, ""));
    let encrypted = server.target.replace("http:", "https:");
    assert_eq!(write(&plain(&encrypted), note(), SHORT), ReceiptOutcome::NotSent, "no handshake");

    let server = Server::start(|_, _| answer(201, ""));
    let factory = plain(&server.target);
    for (case, args, time_limit) in [
        ("no time", note(), Duration::ZERO),
        ("no path", json!({ "method": "POST", "accept": { "status": [201] } }), AMPLE),
        ("a way out", json!({ "method": "POST", "path": ["a", ".."], "accept": { "status": [201] } }), AMPLE),
        ("only a read", json!({ "path": "/notes" }), AMPLE),
    ] {
        assert_eq!(write(&factory, args, time_limit), ReceiptOutcome::NotSent, "{case}");
    }
    assert!(server.lines().is_empty());
}

#[test]
fn a_request_that_was_sent_is_unclear_unless_it_was_answered() {
    let cases: Vec<(&str, Always)> = vec![
        ("silence", Box::new(|| Say::Hang(vec![]))),
        ("half a head", Box::new(|| Say::Hang(b"HTTP/1.1 201 X\r\nContent-Le".to_vec()))),
        ("half a body", Box::new(|| Say::Hang(b"HTTP/1.1 201 X\r\nContent-Length: 9\r\n\r\nab".to_vec()))),
        ("closed", Box::new(|| Say::Bytes(vec![]))),
        ("closed in the head", Box::new(|| Say::Bytes(b"HTTP/1.1 201 X\r\n".to_vec()))),
        (
            "closed in the body",
            Box::new(|| Say::Bytes(b"HTTP/1.1 201 X\r\nContent-Length: 9\r\n\r\nab".to_vec())),
        ),
        ("not the protocol", Box::new(|| Say::Bytes(b"hello\r\n\r\n".to_vec()))),
        ("an endless head", Box::new(|| Say::Drip(b"HTTP/1.1 201 X\r\nX-Long: ".to_vec()))),
        (
            "an endless body",
            Box::new(|| Say::Drip(b"HTTP/1.1 201 X\r\nContent-Length: 4000\r\n\r\n".to_vec())),
        ),
        ("too long a body", Box::new(|| answer(201, &"x".repeat(4097)))),
        (
            "too long a body, unannounced",
            Box::new(|| Say::Bytes(format!("HTTP/1.1 201 X\r\n\r\n{}", "x".repeat(9000)).into_bytes())),
        ),
    ];
    for (case, say) in cases {
        let server = Server::start(move |_, _| say());
        assert_eq!(write(&plain(&server.target), note(), SHORT), ReceiptOutcome::Unclear, "{case}");
        assert_eq!(server.lines(), ["POST /notes"], "{case}: never again");
    }
    let server = Server::start(|_, _| answer(201, &"x".repeat(4096)));
    assert_eq!(write(&plain(&server.target), note(), AMPLE), ReceiptOutcome::Acted, "just short enough");
}

#[test]
fn a_reset_after_the_request_is_unclear() {
    for said in [&b""[..], b"HTTP/1.1 201 X\r\nContent-Length: 9\r\n\r\nab"] {
        let server = Server::start(|_, _| Say::Reset(said.to_vec()));
        let args = json!({
            "method": "POST", "path": "/notes", "form": { "text": "UNREAD-" }, "accept": { "status": [201] },
        });
        assert_eq!(write(&plain(&server.target), args, AMPLE), ReceiptOutcome::Unclear);
        assert_eq!(server.lines(), ["POST /notes"]);
    }
}

#[test]
fn a_connection_is_never_used_twice() {
    let keep = [("Connection", "keep-alive"), ("Keep-Alive", "timeout=60")];
    let server = Server::start(move |_, _| Say::Linger(bytes(201, &keep, "")));
    let factory = plain(&server.target);
    let mut executor = factory.build().unwrap();
    for _ in 0..3 {
        assert_eq!(executor.act(&bound(note(), SHORT)).outcome, ReceiptOutcome::Acted);
    }
    assert_eq!(server.lines(), ["POST /notes"; 3]);

    // Now the old connection is a trap: it is closed as soon as it was kept.
    let server = Server::start(|_, _| Say::Bytes(bytes(201, &[("Connection", "keep-alive")], "")));
    let factory = plain(&server.target);
    let mut executor = factory.build().unwrap();
    for _ in 0..20 {
        assert_eq!(executor.act(&bound(note(), AMPLE)).outcome, ReceiptOutcome::Acted);
    }
    assert_eq!(server.lines().len(), 20);
}

/// Signs in by `303` and a cookie; then what `then` says.
fn signing_in(then: impl Fn(usize, &str) -> Say + Send + Sync + 'static) -> Server {
    Server::start(move |number, request| {
        if request.starts_with("POST /sign-in ") {
            let right = request.ends_with(&format!("password={CANARY}&user=nurse"));
            assert!(right, "the form of the deployment");
            head(303, &[("Location", "/patients"), ("Set-Cookie", "session=open; Path=/; HttpOnly")], "")
        } else {
            then(number, request)
        }
    })
}

#[test]
fn the_session_is_opened_before_the_act_and_kept() {
    let server = signing_in(|_, request| {
        answer(if request.to_lowercase().contains("cookie: session=open\r\n") { 201 } else { 403 }, "")
    });
    let factory = with_sign_in(&server.target);
    let mut executor = factory.build().unwrap();
    for _ in 0..2 {
        assert_eq!(executor.act(&bound(note(), AMPLE)).outcome, ReceiptOutcome::Acted);
    }
    let mut apart = note();
    apart["credential"] = json!("readback");
    assert_eq!(
        executor.act(&bound(apart, AMPLE)).outcome,
        ReceiptOutcome::Unclear,
        "no session beside a credential"
    );
    assert_eq!(server.lines(), ["POST /sign-in", "POST /notes", "POST /notes", "POST /notes"]);
}

#[test]
fn without_a_session_nothing_is_sent() {
    let cookie = ("Set-Cookie", "session=open; Path=/");
    let cases: Vec<(&str, Always)> = vec![
        ("wrong password", Box::new(|| answer(401, ""))),
        ("no cookie", Box::new(|| answer(200, ""))),
        ("back to the form", Box::new(move || head(303, &[("Location", "/sign-in?failed"), cookie], ""))),
        ("to another host", Box::new(move || head(303, &[("Location", "https://sso.example/"), cookie], ""))),
        ("broken", Box::new(move || head(500, &[cookie], ""))),
        ("silence", Box::new(|| Say::Hang(vec![]))),
    ];
    for (case, say) in cases {
        let server = Server::start(move |_, _| say());
        let factory = with_sign_in(&server.target);
        let mut executor = factory.build().unwrap();
        for _ in 0..2 {
            assert_eq!(executor.act(&bound(note(), SHORT)).outcome, ReceiptOutcome::NotSent, "{case}");
        }
        assert_eq!(server.lines(), ["POST /sign-in", "POST /sign-in"], "{case}");
    }
}

#[test]
fn a_session_lost_during_an_act_is_not_opened_again_for_it() {
    for (case, say) in [("redirect", 303), ("refusal", 401)] {
        let server = signing_in(move |number, _| match number {
            1 => head(say, &[("Location", "/sign-in?reason=session")], ""),
            _ => answer(201, ""),
        });
        let factory = with_sign_in(&server.target);
        let mut executor = factory.build().unwrap();
        let mut args = note();
        args["accept"] = json!({ "status": [201, 303] });
        assert_eq!(executor.act(&bound(args.clone(), AMPLE)).outcome, ReceiptOutcome::Unclear, "{case}");
        assert_eq!(server.lines(), ["POST /sign-in", "POST /notes"], "{case}: not again");
        assert_eq!(executor.act(&bound(args, AMPLE)).outcome, ReceiptOutcome::Acted, "{case}: the next act");
        assert_eq!(server.lines()[2..], ["POST /sign-in", "POST /notes"], "{case}: has a new session");
    }
}

#[test]
fn an_action_of_class_read_is_judged_alike() {
    let server = Server::start(|_, request| answer(if request.starts_with("HEAD") { 200 } else { 201 }, ""));
    let factory = plain(&server.target);
    let mut executor = factory.build().unwrap();
    let mut read =
        |args: Value| executor.act(&BoundAction { args, time_limit: AMPLE, delivery: None }).outcome;
    assert_eq!(read(json!({ "path": "/a", "method": "HEAD" })), ReceiptOutcome::Acted);
    assert_eq!(read(json!({ "path": "/a" })), ReceiptOutcome::Unclear, "201 is not 200");
    assert_eq!(read(json!({ "path": "/a", "accept": { "status": [201] } })), ReceiptOutcome::Acted);
    assert_eq!(read(note()), ReceiptOutcome::NotSent, "a write needs a delivery");
    assert_eq!(server.lines(), ["HEAD /a", "GET /a", "GET /a"]);
}

#[test]
fn the_record_of_an_action_is_what_the_target_said() {
    let server = Server::start(|_, _| head(303, &[("Location", "/saved")], "done"));
    let report = plain(&server.target).build().unwrap().act(&bound(note(), AMPLE));
    assert_eq!(report.seen.unwrap(), b"303\n/saved\ndone");
}
