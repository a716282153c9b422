//! The two JSON interfaces: the read-back API, which only reads and has its own key, and the control of faults.

use serde_json::{Value, json};

use super::clinic::Clinic;
use super::faults::{Fault, InvalidFault};
use super::http::{Fields, Request, Response};
use super::patients::{self, Patient};
use super::store::{Content, Write};
use super::time;
use super::{CONTROL_KEY, READBACK_KEY};

/// Header of the read-back key.
const READBACK_HEADER: &str = "x-api-key";
/// Header of the control key.
const CONTROL_HEADER: &str = "x-control-key";

/// Answers `/api/…`; `path` is what comes after that.
pub(super) fn read_back(clinic: &Clinic, request: &Request, path: &str) -> Response {
    if request.method != "GET" && request.method != "HEAD" {
        return error(405, "method_not_allowed", "The read-back API only reads.")
            .with_header("Allow", "GET, HEAD");
    }
    if path == "health" {
        return Response::json(200, &json!({ "status": "ok" }));
    }
    if request.header(READBACK_HEADER) != Some(READBACK_KEY) {
        return error(401, "key_needed", "Send the read-back key in the header X-Api-Key.");
    }
    let query = request.query();
    match path.split('/').collect::<Vec<_>>()[..] {
        ["patients"] => {
            let found = patients::search(query.get("q"));
            Response::json(200, &json!({ "count": found.len(), "patients": found }))
        }
        ["patients", id] => of_patient(id, |patient| json!(patient)),
        ["patients", id, "triage"] => of_patient(id, |patient| {
            let triage = records(clinic, patient, &query, "triage");
            json!({ "patient": patient.id, "count": triage.len(), "latest": triage.last(), "triage": triage })
        }),
        ["patients", id, "notes"] => of_patient(id, |patient| {
            let notes = records(clinic, patient, &query, "note");
            json!({ "patient": patient.id, "count": notes.len(), "notes": notes })
        }),
        ["writes"] => Response::json(200, &writes(clinic, &query)),
        _ => not_found(),
    }
}

/// Answers `/control/…`; `path` is what comes after that.
pub(super) fn control(clinic: &Clinic, request: &Request, path: &str) -> Response {
    if request.header(CONTROL_HEADER) != Some(CONTROL_KEY) {
        return error(401, "key_needed", "Send the control key in the header X-Control-Key.");
    }
    if path != "faults" {
        return not_found();
    }
    match request.method.as_str() {
        "GET" | "HEAD" => {
            let (armed, fired) = clinic.faults.list();
            Response::json(200, &json!({ "armed": armed, "fired": fired }))
        }
        "POST" => match serde_json::from_slice::<Fault>(request.body()) {
            Err(why) => error(400, "invalid_fault", &why.to_string()),
            Ok(fault) => match clinic.faults.arm(fault) {
                Err(why) => invalid_fault(&why),
                Ok(()) => Response::json(201, &json!({ "armed": clinic.faults.list().0 })),
            },
        },
        "DELETE" => Response::json(200, &json!({ "disarmed": clinic.faults.clear() })),
        _ => error(405, "method_not_allowed", "Use GET, POST or DELETE.")
            .with_header("Allow", "GET, HEAD, POST, DELETE"),
    }
}

/// An answer that says what is wrong, for programs.
pub(super) fn error(status: u16, code: &str, message: &str) -> Response {
    Response::json(status, &json!({ "error": { "code": code, "message": message } }))
}

/// The answer to a fault that cannot be.
pub(super) fn invalid_fault(why: &InvalidFault) -> Response {
    error(400, "invalid_fault", &why.to_string())
}

fn not_found() -> Response {
    error(404, "not_found", "There is nothing here.")
}

fn of_patient(id: &str, body: impl FnOnce(&Patient) -> Value) -> Response {
    match patients::find(id) {
        None => error(404, "unknown_patient", "There is no patient with this id."),
        Some(patient) => Response::json(200, &body(patient)),
    }
}

/// The records of one kind and patient, oldest first; with `client_ref` in the query, only that delivery's.
fn records(clinic: &Clinic, patient: &Patient, query: &Fields, kind: &str) -> Vec<Value> {
    let wanted = query.get("client_ref");
    let picked = clinic.store.select(|write| {
        write.patient == patient.id && write.content.kind() == kind && has_reference(write, wanted)
    });
    picked.iter().map(record).collect()
}

fn record(write: &Write) -> Value {
    let (created_at, id) = (time::rfc3339(write.time_ms), write.record);
    match &write.content {
        Content::Triage { category, pain, text } => json!({
            "id": format!("triage-{id}"),
            "category": category,
            "pain": pain,
            "text": text,
            "author": write.author,
            "created_at": created_at,
            "client_ref": write.client_ref,
        }),
        Content::Note { text } => json!({
            "id": format!("note-{id}"),
            "text": text,
            "author": write.author,
            "created_at": created_at,
            "client_ref": write.client_ref,
        }),
    }
}

/// The access log, without what was written.
fn writes(clinic: &Clinic, query: &Fields) -> Value {
    let (reference, patient) = (query.get("client_ref"), query.get("patient"));
    let writes = clinic.store.select(|write| {
        has_reference(write, reference) && patient.is_none_or(|patient| write.patient == patient)
    });
    // Records of one actuation stand together.
    let mut actuations: Vec<u64> = writes.iter().map(|write| write.actuation).collect();
    actuations.dedup();
    let lines: Vec<Value> = writes
        .iter()
        .map(|write| {
            json!({
                "record": write.record,
                "actuation": write.actuation,
                "time_ms": write.time_ms,
                "method": write.method,
                "path": write.path,
                "patient": write.patient,
                "kind": write.content.kind(),
                "author": write.author,
                "client_ref": write.client_ref,
                "fault": write.fault,
            })
        })
        .collect();
    json!({ "count": lines.len(), "actuations": actuations.len(), "writes": lines })
}

fn has_reference(write: &Write, wanted: Option<&str>) -> bool {
    wanted.is_none_or(|wanted| write.client_ref.as_deref() == Some(wanted))
}
