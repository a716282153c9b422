//! Which arguments and which configurations are refused, and that nothing protected is printed.

use super::server::answer;
use super::*;

/// Where arguments are wrong.
fn faults(purpose: ArgsPurpose, args: &Value) -> Vec<String> {
    let judged = plain("http://clinic.example").check_args(purpose, args);
    judged.err().unwrap_or_default().into_iter().map(|fault| fault.pointer).collect()
}

#[test]
fn every_fault_is_named_by_its_place() {
    let write = |change: Value| {
        merged(json!({ "method": "POST", "path": "/a", "accept": { "status": [201] } }), change)
    };
    let check = |change: Value| merged(json!({ "path": "/a", "expect": { "status": [200] } }), change);
    let test = |test: Value| check(json!({ "expect": { "json": [test] } }));
    let cases: Vec<(&str, ArgsPurpose, Value, &[&str])> = vec![
        ("no object", ArgsPurpose::Write, json!([]), &[""]),
        ("nothing", ArgsPurpose::Write, json!({}), &["/method", "", ""]),
        ("nothing to check", ArgsPurpose::Check, json!({}), &["", ""]),
        ("unknown members", ArgsPurpose::Write, write(json!({ "retry": 1, "a/b": 1 })), &["/a~1b", "/retry"]),
        ("GET as a write", ArgsPurpose::Write, write(json!({ "method": "GET" })), &["/method"]),
        ("POST as a read", ArgsPurpose::Read, json!({ "path": "/a", "method": "POST" }), &["/method"]),
        ("HEAD as a check", ArgsPurpose::Check, check(json!({ "method": "HEAD" })), &["/method"]),
        ("lower case", ArgsPurpose::Write, write(json!({ "method": "post" })), &["/method"]),
        ("parameter as a method", ArgsPurpose::Write, write(json!({ "method": "${m}" })), &["/method"]),
        ("body of a read", ArgsPurpose::Read, json!({ "path": "/a", "form": {} }), &["/form"]),
        ("body of a check", ArgsPurpose::Check, check(json!({ "json": 1 })), &["/json"]),
        ("two bodies", ArgsPurpose::Write, write(json!({ "json": 1, "form": {} })), &[""]),
        (
            "form of lists",
            ArgsPurpose::Write,
            write(json!({ "form": { "a": [1], "b": null } })),
            &["/form/a", "/form/b"],
        ),
        ("unknown credential", ArgsPurpose::Check, check(json!({ "credential": "root" })), &["/credential"]),
        (
            "secret header",
            ArgsPurpose::Write,
            write(json!({ "headers": { "Authorization": "x" } })),
            &["/headers/Authorization"],
        ),
        (
            "header of the protocol",
            ArgsPurpose::Write,
            write(json!({ "headers": { "Host": "x" } })),
            &["/headers/Host"],
        ),
        ("header name", ArgsPurpose::Write, write(json!({ "headers": { "a b": "x" } })), &["/headers/a b"]),
        (
            "header value",
            ArgsPurpose::Write,
            write(json!({ "headers": { "A": "x\r\nB: y" } })),
            &["/headers/A"],
        ),
        (
            "no status",
            ArgsPurpose::Write,
            write(json!({ "accept": { "body_contains": ["x"] } })),
            &["/accept"],
        ),
        (
            "an error accepted",
            ArgsPurpose::Write,
            write(json!({ "accept": { "status": [201, 500, "2"] } })),
            &["/accept/status/1", "/accept/status/2"],
        ),
        (
            "accept nothing",
            ArgsPurpose::Write,
            write(json!({ "accept": { "status": [] } })),
            &["/accept/status"],
        ),
        (
            "a goal elsewhere",
            ArgsPurpose::Write,
            write(json!({ "accept": { "status": [303], "location_prefix": "//b" } })),
            &["/accept/location_prefix"],
        ),
        (
            "empty text",
            ArgsPurpose::Write,
            write(json!({ "accept": { "status": [200], "body_contains": [""] } })),
            &["/accept/body_contains/0"],
        ),
        (
            "body of a HEAD",
            ArgsPurpose::Read,
            json!({ "path": "/a", "method": "HEAD", "accept": { "status": [200], "body_contains": ["x"] } }),
            &["/accept/body_contains"],
        ),
        ("expect nothing", ArgsPurpose::Check, check(json!({ "expect": {} })), &["/expect"]),
        (
            "expect a server error",
            ArgsPurpose::Check,
            check(json!({ "expect": { "status": [503] } })),
            &["/expect/status/0"],
        ),
        ("absent means nothing", ArgsPurpose::Check, check(json!({ "absent": {} })), &["/absent"]),
        (
            "absent by any success",
            ArgsPurpose::Check,
            check(json!({ "absent": { "status": [200] } })),
            &["/absent"],
        ),
        (
            "absent by refusal",
            ArgsPurpose::Check,
            check(json!({ "absent": { "status": [403] } })),
            &["/absent/status/0"],
        ),
        ("no pointer", ArgsPurpose::Check, test(json!({ "equals": 1 })), &["/expect/json/0"]),
        ("no test", ArgsPurpose::Check, test(json!({ "pointer": "/a" })), &["/expect/json/0"]),
        (
            "two tests",
            ArgsPurpose::Check,
            test(json!({ "pointer": "/a", "equals": 1, "exists": true })),
            &["/expect/json/0"],
        ),
        (
            "unknown test",
            ArgsPurpose::Check,
            test(json!({ "pointer": "/a", "is": 1 })),
            &["/expect/json/0/is"],
        ),
        (
            "bad pointer",
            ArgsPurpose::Check,
            test(json!({ "pointer": "a", "equals": 1 })),
            &["/expect/json/0/pointer"],
        ),
        (
            "bad escape",
            ArgsPurpose::Check,
            test(json!({ "pointer": "/~2", "equals": 1 })),
            &["/expect/json/0/pointer"],
        ),
        (
            "parameter in a pointer",
            ArgsPurpose::Check,
            test(json!({ "pointer": "/${p}", "equals": 1 })),
            &["/expect/json/0/pointer"],
        ),
        (
            "at least a text",
            ArgsPurpose::Check,
            test(json!({ "pointer": "/a", "at_least": "1" })),
            &["/expect/json/0/at_least"],
        ),
        (
            "exists perhaps",
            ArgsPurpose::Check,
            test(json!({ "pointer": "/a", "exists": "yes" })),
            &["/expect/json/0/exists"],
        ),
        (
            "one of none",
            ArgsPurpose::Check,
            test(json!({ "pointer": "/a", "one_of": [] })),
            &["/expect/json/0/one_of"],
        ),
    ];
    for (case, purpose, args, want) in cases {
        assert_eq!(faults(purpose, &args), want, "{case}");
    }
}

#[test]
fn good_arguments_are_accepted_with_their_parameters_open() {
    let write = json!({
        "method": "PATCH", "path": ["patients", "${patient}", "n-${number}"], "query": { "q": "${q}", "n": 1 },
        "headers": { "X-Trace": "${delivery.id}" }, "credential": "readback",
        "json": { "text": "${note}", "list": ["${list}"], "price": "$${5}" },
        "accept": { "status": [200, 303], "location_prefix": "/patients/${patient}", "body_contains": ["${note}"] },
    });
    let check = json!({
        "path": ["api", "${patient}"], "method": "GET",
        "expect": { "json": [
            { "pointer": "", "exists": true }, { "pointer": "/a", "equals": "${a}" },
            { "pointer": "/a~1b", "at_least": "${least}" }, { "pointer": "/b", "one_of": ["${a}", 2] },
        ], "body_contains": ["${a}"], "body_excludes": ["${b}"] },
        "absent": { "status": [404] },
    });
    for (purpose, args) in
        [(ArgsPurpose::Write, write), (ArgsPurpose::Check, check), (ArgsPurpose::Read, json!({ "path": [] }))]
    {
        assert_eq!(plain("http://clinic.example").check_args(purpose, &args), Ok(()));
    }
}

#[test]
fn no_path_leaves_the_target() {
    for path in [
        json!(""),
        json!("a"),
        json!("//elsewhere.example/a"),
        json!("http://elsewhere.example/a"),
        json!("/a/../b"),
        json!("/a/.."),
        json!("/./a"),
        json!("/a/%2e%2E/b"),
        json!("/a/.%2e"),
        json!("/a b"),
        json!("/a\tb"),
        json!("/a\r\nHost: elsewhere.example"),
        json!("/a\\b"),
        json!("/a#b"),
        json!("/a?b"),
        json!("/ü"),
        json!("/a%2"),
        json!("/a%zz"),
        json!("/a/${patient}"),
        json!(["a/b"]),
        json!(["a", "${patient}/b"]),
        json!(["a", ""]),
        json!(["a", "."]),
        json!(["a", ".."]),
        json!(["a", "b\n"]),
        json!(["a", null]),
        json!(["a", ["b"]]),
        json!(7),
    ] {
        let args = json!({ "path": path, "expect": { "status": [200] } });
        let found = faults(ArgsPurpose::Check, &args);
        assert!(!found.is_empty() && found.iter().all(|at| at.starts_with("/path")), "{path}");
    }
}

#[test]
fn no_parameter_leaves_its_place() {
    let server = Server::start(|_, _| answer(200, ""));
    let factory = plain(&server.target);
    for (value, want) in [
        ("../../admin", Some("/patients/..%2F..%2Fadmin/notes?q=..%2F..%2Fadmin")),
        ("/admin", Some("/patients/%2Fadmin/notes?q=%2Fadmin")),
        ("a?b=c&d#e", Some("/patients/a%3Fb%3Dc%26d%23e/notes?q=a%3Fb%3Dc%26d%23e")),
        ("%2e%2e", Some("/patients/%252e%252e/notes?q=%252e%252e")),
        ("a\\..\\b", Some("/patients/a%5C..%5Cb/notes?q=a%5C..%5Cb")),
        ("@elsewhere.example", Some("/patients/%40elsewhere.example/notes?q=%40elsewhere.example")),
        ("${patient}", Some("/patients/%24%7Bpatient%7D/notes?q=%24%7Bpatient%7D")),
        ("ü +", Some("/patients/%C3%BC%20%2B/notes?q=%C3%BC%20%2B")),
        ("..", None),
        (".", None),
        ("", None),
        ("a\0", None),
        ("a\r\nX: y", None),
    ] {
        let before = server.lines().len();
        let args = json!({
            "path": ["patients", value, "notes"], "query": { "q": value }, "expect": { "status": [200] },
        });
        let verdict = check(&factory, args);
        let lines = server.lines();
        match want {
            Some(path) => assert_eq!(lines[before..], [format!("GET {path}")], "{value:?}"),
            None => assert_eq!((verdict, lines.len()), (Verdict::Unreadable, before), "{value:?}"),
        }
    }
}

#[test]
fn a_configuration_is_judged_when_it_is_read() {
    let new = |config: Value| HttpFactory::new(serde_json::from_value(config).unwrap()).map(|_| ());
    for target in [
        "",
        "clinic.example",
        "ftp://clinic.example",
        "http://",
        "http:///a",
        "http://:80",
        "http://[::1",
        "http://clinic.example/a",
        "http://clinic.example?a",
        "http://clinic.example/#a",
        "http://nurse:secret@clinic.example",
        "http://clinic.example:0",
        "http://clinic.example:99999",
        "http://clinic example",
        "//clinic.example",
    ] {
        assert_eq!(new(json!({ "target": target })), Err(ConfigError::Target), "{target}");
    }
    let with = |member: &str, value: Value| new(json!({ "target": "https://clinic.example", member: value }));
    let name = || "k".to_owned();
    let form = json!({ "user": { "value": "nurse" } });
    for (case, got, want) in [
        ("origin", with("credentials", json!({})), Ok(())),
        (
            "sign-in path",
            with("sign_in", json!({ "path": "https://b/", "form": form })),
            Err(ConfigError::SignInPath),
        ),
        ("sign-in form", with("sign_in", json!({ "path": "/in", "form": {} })), Err(ConfigError::SignInForm)),
        (
            "header",
            with("credentials", json!({ "k": { "header": "Host", "value": { "value": "x" } } })),
            Err(ConfigError::CredentialHeader { name: name() }),
        ),
        (
            "authorization",
            with(
                "credentials",
                json!({ "k": { "header": "Authorization", "value": { "value": "Bearer x" } } }),
            ),
            Ok(()),
        ),
        (
            "value",
            with("credentials", json!({ "k": { "header": "X-Key", "value": { "value": "a\nb" } } })),
            Err(ConfigError::CredentialValue { name: name() }),
        ),
        (
            "environment",
            with(
                "credentials",
                json!({ "k": { "header": "X-Key", "value": { "env": "OPJOURNAL_NO_SUCH" } } }),
            ),
            Err(ConfigError::SecretMissing {
                variable: "OPJOURNAL_NO_SUCH".to_owned(),
                purpose: "credential `k`".to_owned(),
            }),
        ),
        ("limit", with("max_body_bytes", json!(0)), Err(ConfigError::BodyLimit)),
    ] {
        assert_eq!(got, want, "{case}");
    }
    for config in [
        json!({}),
        json!({ "target": "http://a", "proxy": "b" }),
        json!({ "target": "http://a", "credentials": { "k": { "header": "X", "value": "plain" } } }),
        json!({ "target": "http://a", "credentials": { "k": { "header": "X", "value": { "env": "A", "value": "b" } } } }),
    ] {
        assert!(serde_json::from_value::<HttpConfig>(config).is_err());
    }
}

#[test]
fn the_fingerprint_is_the_target_and_the_names_of_its_doors() {
    let config = |target: &str, path: &str, key: &str, secret: &str| {
        factory(json!({
            "target": target,
            "sign_in": { "path": path, "form": { "password": { "value": secret } } },
            "credentials": { key: { "header": "X-Key", "value": { "value": secret } } },
        }))
        .fingerprint()
    };
    let one = config("http://Clinic.example:80/", "/in", "k", "a");
    assert_eq!(one, config("http://clinic.example", "/in", "k", "b"), "spelling and secrets do not count");
    for other in [
        config("https://clinic.example", "/in", "k", "a"),
        config("http://clinic.example:8080", "/in", "k", "a"),
        config("http://clinic.example.", "/in", "k", "a"),
        config("http://clinic.example", "/on", "k", "a"),
        config("http://clinic.example", "/in", "l", "a"),
    ] {
        assert_ne!(one, other);
    }
    assert_eq!(
        String::from_utf8(one).unwrap(),
        r#"{"credentials":[["k","x-key"]],"sign_in":"/in","target":"http://clinic.example"}"#
    );
}

#[test]
fn nothing_protected_is_printed() {
    let config: HttpConfig = serde_json::from_value(json!({
        "target": "http://clinic.example",
        "sign_in": { "path": "/in", "form": { "password": { "value": CANARY } } },
        "credentials": { "k": { "header": "X-Key", "value": { "value": CANARY } } },
    }))
    .unwrap();
    assert!(!format!("{config:?}").contains(CANARY));
    assert!(!format!("{:?}", HttpFactory::new(config).unwrap()).contains(CANARY));
    let bad = json!({ "target": format!("http://{CANARY}@clinic.example") });
    let why = HttpFactory::new(serde_json::from_value(bad).unwrap()).unwrap_err();
    assert!(!format!("{why} {why:?}").contains(CANARY));
    let args = json!({ "method": CANARY, "path": format!("http://{CANARY}"), "credential": CANARY, "accept": CANARY });
    let found = plain("http://clinic.example").check_args(ArgsPurpose::Write, &args).unwrap_err();
    assert!(!format!("{found:?}").contains(CANARY));
    assert!(!format!("{:?}", bound(json!(CANARY), AMPLE)).contains(CANARY));
}

/// `base` with the members of `change`.
fn merged(mut base: Value, change: Value) -> Value {
    let Value::Object(change) = change else { panic!("an object") };
    base.as_object_mut().unwrap().extend(change);
    base
}
