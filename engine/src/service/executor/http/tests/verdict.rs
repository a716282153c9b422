//! What a check's verdict is.

use super::server::{Always, Say, answer, head};
use super::*;

/// Expects one note; none is an absence.
fn one_note() -> Value {
    json!({
        "path": "/notes", "credential": "readback",
        "expect": { "json": [{ "pointer": "/count", "equals": 1 }] },
        "absent": { "json": [{ "pointer": "/count", "equals": 0 }] },
    })
}

/// Expects a page; a missing one is an absence.
fn page() -> Value {
    json!({
        "path": "/page",
        "expect": { "status": [200], "body_contains": ["Ada"], "body_excludes": ["error"] },
        "absent": { "status": [404] },
    })
}

#[test]
fn a_verdict_follows_from_the_answer() {
    let value = |tests: Value| json!({ "path": "/v", "expect": { "json": tests } });
    let is = |pointer: &str, name: &str, wanted: Value| json!([{ "pointer": pointer, name: wanted }]);
    let ada = r#"{"name":"Ada","pain":7,"half":0.5,"none":null,"list":[1,{"a":2.0}],"a/b":{"~":1}}"#;
    for (case, args, status, body, want) in [
        ("as declared", one_note(), 200, r#"{"count":1}"#, Verdict::Holds),
        ("two of them", one_note(), 200, r#"{"count":2}"#, Verdict::Fails),
        ("none", one_note(), 200, r#"{"count":0}"#, Verdict::Absent),
        ("another shape", one_note(), 200, r#"{"number":0}"#, Verdict::Fails),
        ("another type", one_note(), 200, r#"{"count":"1"}"#, Verdict::Fails),
        ("not JSON", one_note(), 200, "<html>", Verdict::Unreadable),
        ("no body", one_note(), 200, "", Verdict::Unreadable),
        ("cut", one_note(), 200, r#"{"count":1"#, Verdict::Unreadable),
        ("more behind it", one_note(), 200, r#"{"count":1}}"#, Verdict::Unreadable),
        ("not found is no absence unless declared", one_note(), 404, r#"{"count":0}"#, Verdict::Fails),
        ("key refused", one_note(), 401, r#"{"count":0}"#, Verdict::Unreadable),
        ("forbidden", one_note(), 403, r#"{"count":0}"#, Verdict::Unreadable),
        ("overload", one_note(), 429, r#"{"count":0}"#, Verdict::Unreadable),
        ("server error", one_note(), 500, r#"{"count":0}"#, Verdict::Unreadable),
        ("no gateway", one_note(), 502, r#"{"count":1}"#, Verdict::Unreadable),
        ("page", page(), 200, "Ada Sample", Verdict::Holds),
        ("page of another", page(), 200, "Bruno", Verdict::Fails),
        ("page with an excluded text", page(), 200, "Ada: error", Verdict::Fails),
        ("no page", page(), 404, "error", Verdict::Absent),
        ("page gone is another status", page(), 410, "", Verdict::Fails),
        ("server error on a page", page(), 503, "Ada", Verdict::Unreadable),
        ("equals text", value(is("/name", "equals", json!("Ada"))), 200, ada, Verdict::Holds),
        ("equals is exact", value(is("/name", "equals", json!("ada"))), 200, ada, Verdict::Fails),
        ("one number, two spellings", value(is("/pain", "equals", json!(7.0))), 200, ada, Verdict::Holds),
        ("deep", value(is("/list", "equals", json!([1.0, { "a": 2 }]))), 200, ada, Verdict::Holds),
        ("deep, differing", value(is("/list", "equals", json!([1, { "a": 3 }]))), 200, ada, Verdict::Fails),
        ("null equals null", value(is("/none", "equals", Value::Null)), 200, ada, Verdict::Holds),
        ("missing is not null", value(is("/nothing", "equals", Value::Null)), 200, ada, Verdict::Fails),
        ("escaped pointer", value(is("/a~1b/~0", "equals", json!(1))), 200, ada, Verdict::Holds),
        ("at least", value(is("/pain", "at_least", json!(7))), 200, ada, Verdict::Holds),
        ("less", value(is("/pain", "at_least", json!(7.5))), 200, ada, Verdict::Fails),
        ("fraction", value(is("/half", "at_least", json!(0.5))), 200, ada, Verdict::Holds),
        ("text is not at least", value(is("/name", "at_least", json!(0))), 200, ada, Verdict::Fails),
        ("one of", value(is("/pain", "one_of", json!([6, 7]))), 200, ada, Verdict::Holds),
        ("none of", value(is("/pain", "one_of", json!([6, "7"]))), 200, ada, Verdict::Fails),
        ("exists", value(is("/list/1/a", "exists", json!(true))), 200, ada, Verdict::Holds),
        ("null does not exist", value(is("/none", "exists", json!(true))), 200, ada, Verdict::Fails),
        ("exists not", value(is("/none/deeper", "exists", json!(false))), 200, ada, Verdict::Holds),
        ("exists after all", value(is("/pain", "exists", json!(false))), 200, ada, Verdict::Fails),
    ] {
        let server = Server::start(move |_, _| answer(status, body));
        assert_eq!(check(&plain(&server.target), args,), want, "{case}");
        assert_eq!(server.lines().len(), 1, "{case}");
    }
}

#[test]
fn a_read_that_did_not_work_is_unreadable() {
    let cases: Vec<(&str, Always)> = vec![
        ("silence", Box::new(|| Say::Hang(vec![]))),
        ("closed", Box::new(|| Say::Bytes(vec![]))),
        ("cut", Box::new(|| Say::Bytes(b"HTTP/1.1 200 X\r\nContent-Length: 90\r\n\r\nAda".to_vec()))),
        ("drip", Box::new(|| Say::Drip(b"HTTP/1.1 200 X\r\nContent-Length: 4000\r\n\r\nAda".to_vec()))),
        ("too long", Box::new(|| answer(200, &"Ada".repeat(2000)))),
        ("compressed", Box::new(|| head(200, &[("Content-Encoding", "br")], "Ada"))),
        ("perhaps cut", Box::new(|| Say::Bytes(b"HTTP/1.1 200 X\r\n\r\nAda".to_vec()))),
        ("to another host", Box::new(|| head(302, &[("Location", "http://127.0.0.1:1/page")], "Ada"))),
        ("to another scheme", Box::new(|| head(302, &[("Location", "https://127.0.0.1/page")], "Ada"))),
        ("to nowhere", Box::new(|| answer(302, "Ada"))),
        ("for ever", Box::new(|| head(302, &[("Location", "/page")], "Ada"))),
        ("not modified", Box::new(|| answer(304, ""))),
    ];
    for (case, say) in cases {
        let server = Server::start(move |_, _| say());
        let reading = plain(&server.target).build().unwrap().check(&BoundCheck {
            time_limit: if case == "for ever" { AMPLE } else { SHORT },
            ..absolute(page())
        });
        assert_eq!(reading.verdict, Verdict::Unreadable, "{case}");
        assert_eq!(reading.seen, None, "{case}");
        let want = if case == "for ever" { 1 + REDIRECTS_MAX } else { 1 };
        assert_eq!(server.lines().len(), want, "{case}");
    }
    assert_eq!(check(&plain("http://127.0.0.1:1"), page()), Verdict::Unreadable, "nobody listens");
}

#[test]
fn a_read_follows_redirects_on_the_target_unless_it_has_a_credential() {
    let server = Server::start(|number, request| match number {
        0 => head(302, &[("Location", "/moved?to=here")], ""),
        1 => {
            let host = request
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("host: ").map(str::to_owned));
            head(308, &[("Location", &format!("HTTP://{}/final", host.unwrap()))], "")
        }
        _ => answer(200, "Ada"),
    });
    assert_eq!(check(&plain(&server.target), page()), Verdict::Holds);
    assert_eq!(server.lines(), ["GET /page", "GET /moved?to=here", "GET /final"]);

    let server = Server::start(|_, _| head(302, &[("Location", "/moved")], r#"{"count":0}"#));
    assert_eq!(check(&plain(&server.target), one_note()), Verdict::Unreadable);
    assert_eq!(server.lines(), ["GET /notes"]);

    let mut judged = page();
    judged["expect"] = json!({ "status": [302] });
    assert_eq!(check(&plain(&server.target), judged), Verdict::Holds, "a redirect that was expected");
}

#[test]
fn a_read_opens_the_session_again_once() {
    let sign_in = || head(303, &[("Location", "/"), ("Set-Cookie", "session=open; Path=/")], "");
    let lost = || head(303, &[("Location", "/sign-in?next=/page")], "Ada");
    let server = Server::start(move |number, request| match number {
        _ if request.starts_with("POST /sign-in ") => sign_in(),
        1 => lost(),
        _ => answer(200, "Ada"),
    });
    let factory = with_sign_in(&server.target);
    let mut executor = factory.build().unwrap();
    assert_eq!(executor.check(&absolute(page())).verdict, Verdict::Holds);
    assert_eq!(server.lines(), ["POST /sign-in", "GET /page", "POST /sign-in", "GET /page"]);
    assert_eq!(executor.check(&absolute(page())).verdict, Verdict::Holds);
    assert_eq!(server.lines()[4..], ["GET /page"], "the session is kept");

    let server = Server::start(
        move |_, request| {
            if request.starts_with("POST /sign-in ") { sign_in() } else { lost() }
        },
    );
    assert_eq!(check(&with_sign_in(&server.target), page()), Verdict::Unreadable, "lost for good");
    assert_eq!(server.lines(), ["POST /sign-in", "GET /page", "POST /sign-in", "GET /page"]);

    let server = Server::start(move |_, _| answer(401, ""));
    assert_eq!(check(&with_sign_in(&server.target), page()), Verdict::Unreadable, "no session at all");
    assert_eq!(server.lines(), ["POST /sign-in"]);

    let server = Server::start(move |_, _| answer(200, r#"{"count":1}"#));
    assert_eq!(
        check(&with_sign_in(&server.target), one_note()),
        Verdict::Holds,
        "a credential needs no session"
    );
    assert_eq!(server.lines(), ["GET /notes"]);
}

#[test]
fn what_was_seen_is_what_was_judged_and_nothing_else() {
    let server = Server::start(|number, _| answer(200, &format!(r#"{{"count":1,"time":{number}}}"#)));
    let factory = plain(&server.target);
    let mut executor = factory.build().unwrap();
    let seen: Vec<_> = (0..2).map(|_| executor.check(&absolute(one_note())).seen.unwrap()).collect();
    assert_eq!(seen[0], seen[1]);
    let text = String::from_utf8(seen[0].clone()).unwrap();
    assert_eq!(text, r#"{"absent":[1],"contains":[],"excludes":[],"json":[1],"status":200}"#);
}

#[test]
fn a_relative_check_compares_with_the_baseline() {
    let args = || json!({ "path": "/page", "expect": { "status": [200] } });
    let relative = |executor: &mut Box<dyn Executor>, baseline: Option<&str>| {
        executor.check(&BoundCheck {
            baseline: baseline.map(|text| text.as_bytes().to_vec()),
            relative: true,
            ..absolute(args())
        })
    };
    let server = Server::start(|number, _| match number {
        0..3 => answer(200, "after"),
        3 => answer(404, "other"),
        4 => answer(500, "other"),
        _ => Say::Bytes(b"HTTP/1.1 200 X\r\n\r\nafter".to_vec()),
    });
    let factory = plain(&server.target);
    let mut executor = factory.build().unwrap();
    let first = relative(&mut executor, None);
    assert_eq!(
        (first.verdict, first.seen.as_deref()),
        (Verdict::Unreadable, Some(&b"after"[..])),
        "a baseline"
    );
    assert_eq!(relative(&mut executor, Some("before")).verdict, Verdict::Holds, "it changed");
    assert_eq!(relative(&mut executor, Some("after")).verdict, Verdict::Fails, "it did not");
    assert_eq!(relative(&mut executor, Some("before")).verdict, Verdict::Fails, "it changed into an error");
    assert_eq!(relative(&mut executor, Some("before")).verdict, Verdict::Unreadable, "a server error");
    assert_eq!(relative(&mut executor, Some("before")).verdict, Verdict::Unreadable, "perhaps cut");
}

#[test]
fn arguments_that_are_none_read_nothing() {
    let server = Server::start(|_, _| answer(200, "Ada"));
    let mut args = page();
    args["path"] = json!(["page", ".."]);
    assert_eq!(check(&plain(&server.target), args), Verdict::Unreadable);
    assert!(server.lines().is_empty());
}
