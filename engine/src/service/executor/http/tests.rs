//! The executor against a server that says what a test wants it to say.

mod arguments;
mod outcome;
mod server;
mod verdict;

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use protocol::ids::DeliveryId;
use server::Server;

/// Long enough never to pass in a test that does not wait for it.
const AMPLE: Duration = Duration::from_secs(20);
/// Short, for tests that wait until it has passed.
const SHORT: Duration = Duration::from_millis(200);
/// A value that must never be printed.
const CANARY: &str = "canary-7391";

/// A deployment without a sign-in, with one credential.
fn plain(target: &str) -> HttpFactory {
    factory(json!({
        "target": target,
        "credentials": { "readback": { "header": "X-Api-Key", "value": { "value": CANARY } } },
        "max_body_bytes": 4096,
    }))
}

/// A deployment with a sign-in.
fn with_sign_in(target: &str) -> HttpFactory {
    factory(json!({
        "target": target,
        "sign_in": { "path": "/sign-in", "form": { "user": { "value": "nurse" }, "password": { "value": CANARY } } },
        "credentials": { "readback": { "header": "X-Api-Key", "value": { "value": CANARY } } },
    }))
}

fn factory(config: Value) -> HttpFactory {
    HttpFactory::new(serde_json::from_value(config).unwrap()).unwrap()
}

/// A write with these arguments, by a new executor.
fn write(factory: &HttpFactory, args: Value, time_limit: Duration) -> ReceiptOutcome {
    factory.build().unwrap().act(&bound(args, time_limit)).outcome
}

fn bound(args: Value, time_limit: Duration) -> BoundAction {
    BoundAction { args, time_limit, delivery: Some(DeliveryId([7; 16])) }
}

/// The arguments of a write that any `201` satisfies.
fn note() -> Value {
    json!({ "method": "POST", "path": "/notes", "form": { "text": "a b&c=ü" }, "accept": { "status": [201] } })
}

fn absolute(args: Value) -> BoundCheck {
    BoundCheck { args, time_limit: AMPLE, baseline: None, relative: false }
}

/// A check with these arguments, by a new executor.
fn check(factory: &HttpFactory, args: Value) -> Verdict {
    factory.build().unwrap().check(&absolute(args)).verdict
}
