//! The clinic itself: which request leads to which page, and what a write goes through before it is stored.

use std::time::Duration;

use serde_json::json;

use super::api;
use super::faults::{self, FaultKind, Faults, Passing, RequestClass, Stage};
use super::forms::{NoteForm, TriageForm, Wrong};
use super::http::{Reply, Request, Response};
use super::pages::{self, PatientPage, SignInReason};
use super::patients::{self, Patient};
use super::session::{self, Session, Sessions};
use super::store::{Content, Entry, Store, Write};
use super::time;
use super::{PASSWORD, USER};

/// Header with which a request asks for a fault.
const FAULT_HEADER: &str = "x-mockmed-fault";
/// Header that says how long `timeout_after_save` is to hold.
const HOLD_HEADER: &str = "x-mockmed-hold-ms";

/// Everything that lasts longer than a request.
#[derive(Debug)]
pub(super) struct Clinic {
    /// What was written.
    pub(super) store: Store,
    /// Who is signed in.
    pub(super) sessions: Sessions,
    /// What is going to go wrong.
    pub(super) faults: Faults,
}

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route<'a> {
    Root,
    SignIn,
    SignOut,
    Session,
    Patients,
    Patient(&'a str),
    NewTriage(&'a str),
    NewNote(&'a str),
    ReadBack(&'a str),
    Control(&'a str),
    Nowhere,
}

impl<'a> Route<'a> {
    fn of(path: &'a str) -> Self {
        let mut parts = path.splitn(3, '/').skip(1);
        match (parts.next(), parts.next()) {
            (Some("api"), Some(rest)) => return Self::ReadBack(rest),
            (Some("control"), Some(rest)) => return Self::Control(rest),
            _ => {}
        }
        match path.split('/').skip(1).collect::<Vec<_>>()[..] {
            [""] => Self::Root,
            ["sign-in"] => Self::SignIn,
            ["sign-out"] => Self::SignOut,
            ["session"] => Self::Session,
            ["patients"] => Self::Patients,
            ["patients", id] => Self::Patient(id),
            ["patients", id, "triage"] => Self::NewTriage(id),
            ["patients", id, "notes"] => Self::NewNote(id),
            _ => Self::Nowhere,
        }
    }

    /// The methods that a page answers to; `None` where the handler decides.
    fn methods(self) -> Option<&'static str> {
        match self {
            Self::SignIn => Some("GET, HEAD, POST"),
            Self::SignOut | Self::NewTriage(_) | Self::NewNote(_) => Some("POST"),
            Self::Root | Self::Session | Self::Patients | Self::Patient(_) => Some("GET, HEAD"),
            Self::ReadBack(_) | Self::Control(_) | Self::Nowhere => None,
        }
    }

    /// The page of which patient it belongs to, if to any.
    fn patient(self) -> Option<&'static Patient> {
        match self {
            Self::Patient(id) | Self::NewTriage(id) | Self::NewNote(id) => patients::find(id),
            Self::Root
            | Self::SignIn
            | Self::SignOut
            | Self::Session
            | Self::Patients
            | Self::ReadBack(_)
            | Self::Control(_)
            | Self::Nowhere => None,
        }
    }

    fn class(self) -> Option<RequestClass> {
        match self {
            Self::NewTriage(_) | Self::NewNote(_) => Some(RequestClass::Write),
            Self::SignIn => Some(RequestClass::SignIn),
            Self::Root | Self::SignOut | Self::Session | Self::Patients | Self::Patient(_) => {
                Some(RequestClass::Page)
            }
            Self::ReadBack("health") | Self::Control(_) | Self::Nowhere => None,
            Self::ReadBack(_) => Some(RequestClass::ReadBack),
        }
    }
}

/// A form write that was found good.
struct Accepted<'a> {
    patient: &'a Patient,
    user: String,
    content: Content,
    client_ref: Option<String>,
}

impl Clinic {
    /// Answers one request. Whatever it says, this returns.
    pub(super) fn answer(&self, request: &Request) -> Reply {
        // A name that somebody pointed at this machine must not make a browser read from it.
        if !request.header("host").is_some_and(is_local_host) {
            return error_page(
                421,
                None,
                "Wrong host",
                "Use http://127.0.0.1 with the port that MockMed printed.",
            )
            .into();
        }
        let route = Route::of(&request.path);
        if let Some(allowed) = route.methods()
            && !allowed.split(", ").any(|method| method == request.method)
        {
            let page = error_page(405, None, "Wrong method", "This address does not take such a request.");
            return page.with_header("Allow", allowed).into();
        }
        if request.method == "POST" && !is_same_origin(request) {
            return error_page(
                403,
                None,
                "Not from here",
                "Forms are accepted from MockMed's own pages only.",
            )
            .into();
        }
        let asked = match asked_fault(request) {
            Ok(asked) => asked,
            Err(refusal) => return refusal.into(),
        };
        let passing = route.class().map(|class| Passing {
            class,
            method: &request.method,
            path: &request.path,
            asked,
            time_ms: time::now_ms(),
        });
        match passing.and_then(|passing| self.faults.strike(Stage::Arrival, passing)) {
            Some((FaultKind::AppOffline, _)) => return Reply::Close,
            Some((FaultKind::SessionExpired, _)) => {
                request.cookie(session::COOKIE).inspect(|token| self.sessions.end(token));
            }
            Some((
                FaultKind::DuplicateRecord | FaultKind::FalseSavedBanner | FaultKind::TimeoutAfterSave,
                _,
            ))
            | None => {}
        }
        let session = request.cookie(session::COOKIE).and_then(|token| self.sessions.find(token));
        match (route, session) {
            (Route::ReadBack(rest), _) => api::read_back(self, request, rest).into(),
            (Route::Control(rest), _) => api::control(self, request, rest).into(),
            (Route::SignIn, session) => self.sign_in(request, session.as_ref()).into(),
            (Route::SignOut, _) => self.sign_out(request).into(),
            (Route::Session, session) => session_state(session.as_ref()).into(),
            (Route::Nowhere, session) => {
                let user = session.as_ref().map(|session| session.user.as_str());
                error_page(404, user, "Page not found", "There is no page at this address.").into()
            }
            (
                Route::Root | Route::Patients | Route::Patient(_) | Route::NewTriage(_) | Route::NewNote(_),
                None,
            ) => to_sign_in(route).into(),
            (Route::Root, Some(_)) => Response::see_other("/patients").into(),
            (Route::Patients, Some(session)) => self.list(request, &session).into(),
            (Route::Patient(id), Some(session)) => self.show(request, &session, id).into(),
            (Route::NewTriage(id) | Route::NewNote(id), Some(session)) => {
                match self.check_write(request, route, session, id) {
                    Err(refusal) => refusal.into(),
                    Ok(accepted) => self.save(request, passing, accepted),
                }
            }
        }
    }

    fn sign_in(&self, request: &Request, session: Option<&Session>) -> Response {
        if request.method != "POST" {
            let query = request.query();
            let reason = match query.get("reason") {
                Some("session") => SignInReason::NeedsSession,
                Some("signed-out") => SignInReason::SignedOut,
                Some(_) | None => SignInReason::Plain,
            };
            let next = local_path(query.get("next"));
            return match session {
                Some(_) => Response::see_other(next),
                None => Response::html(200, pages::sign_in(reason, next)),
            };
        }
        let Some(form) = request.form() else { return not_a_form(None) };
        let next = local_path(form.get("next"));
        if form.get("user") != Some(USER) || form.get("password") != Some(PASSWORD) {
            return Response::html(401, pages::sign_in(SignInReason::WrongPassword, next));
        }
        match self.sessions.open(USER) {
            Some(token) => Response::see_other(next).with_header("Set-Cookie", &session::set_cookie(&token)),
            None => error_page(
                500,
                None,
                "Cannot sign in",
                "The system has no random numbers to give. Try again.",
            ),
        }
    }

    fn sign_out(&self, request: &Request) -> Response {
        request.cookie(session::COOKIE).inspect(|token| self.sessions.end(token));
        Response::see_other("/sign-in?reason=signed-out").with_header("Set-Cookie", &session::clear_cookie())
    }

    fn list(&self, request: &Request, session: &Session) -> Response {
        let query = request.query();
        let text = query.get("q");
        let found: Vec<_> = patients::search(text)
            .into_iter()
            .map(|patient| {
                let writes = self.writes_of(patient);
                let category = writes.iter().rev().find_map(|write| match write.content {
                    Content::Triage { category, .. } => Some(category),
                    Content::Note { .. } => None,
                });
                let notes =
                    writes.iter().filter(|write| matches!(write.content, Content::Note { .. })).count();
                (patient, category, notes)
            })
            .collect();
        Response::html(200, pages::patients(&session.user, text.unwrap_or_default(), &found))
    }

    fn show(&self, request: &Request, session: &Session, id: &str) -> Response {
        let Some(patient) = patients::find(id) else { return unknown_patient(session) };
        let saved = match request.query().get("saved") {
            Some("triage") => Some("triage"),
            Some("note") => Some("note"),
            Some(_) | None => None,
        };
        let shown = PatientPage { writes: &self.writes_of(patient), saved, ..PatientPage::default() };
        Response::html(200, pages::patient(&session.user, patient, &shown))
    }

    /// Reads the form of a write, or says why it cannot be stored.
    fn check_write(
        &self,
        request: &Request,
        route: Route<'_>,
        session: Session,
        id: &str,
    ) -> Result<Accepted<'static>, Response> {
        let user = session.user.as_str();
        let fields = request.form().ok_or_else(|| not_a_form(Some(user)))?;
        let patient = patients::find(id).ok_or_else(|| unknown_patient(&session))?;
        let checked = if matches!(route, Route::NewTriage(_)) {
            let triage = TriageForm::read(&fields);
            triage.check().map_err(|wrong| PatientPage { triage, wrong, ..PatientPage::default() })
        } else {
            let note = NoteForm::read(&fields);
            note.check().map_err(|wrong: Vec<Wrong>| PatientPage { note, wrong, ..PatientPage::default() })
        };
        match checked {
            Ok((content, client_ref)) => Ok(Accepted { patient, user: session.user, content, client_ref }),
            Err(page) => {
                let shown = PatientPage { writes: &self.writes_of(patient), ..page };
                Err(Response::html(422, pages::patient(user, patient, &shown)))
            }
        }
    }

    /// Stores what was accepted, unless a fault has other plans.
    fn save(&self, request: &Request, passing: Option<Passing<'_>>, accepted: Accepted<'_>) -> Reply {
        let fault = passing.and_then(|passing| self.faults.strike(Stage::Save, passing));
        let Accepted { patient, user, content, client_ref } = accepted;
        let saved = format!("/patients/{}?saved={}", patient.id, content.kind());
        let copies = match fault {
            Some((FaultKind::FalseSavedBanner, _)) => return Response::see_other(&saved).into(),
            Some((FaultKind::DuplicateRecord, _)) => 2,
            Some((FaultKind::TimeoutAfterSave | FaultKind::AppOffline | FaultKind::SessionExpired, _))
            | None => 1,
        };
        let entry = Entry {
            time_ms: time::now_ms(),
            method: request.method.clone(),
            path: request.path.clone(),
            patient: patient.id.to_owned(),
            author: user,
            client_ref,
            fault: fault.map(|(kind, _)| kind),
            content,
        };
        if let Err(why) = self.store.append(&entry, copies) {
            return error_page(500, Some(&entry.author), "Not saved", &why.to_string()).into();
        }
        match fault {
            Some((FaultKind::TimeoutAfterSave, hold)) => Reply::Hold(Response::see_other(&saved), hold),
            Some((
                FaultKind::DuplicateRecord
                | FaultKind::FalseSavedBanner
                | FaultKind::AppOffline
                | FaultKind::SessionExpired,
                _,
            ))
            | None => Response::see_other(&saved).into(),
        }
    }

    fn writes_of(&self, patient: &Patient) -> Vec<Write> {
        self.store.select(|write| write.patient == patient.id)
    }
}

/// An answer that says what is wrong, for people.
pub(super) fn error_page(status: u16, user: Option<&str>, title: &str, text: &str) -> Response {
    Response::html(status, pages::error(status, user, title, text))
}

fn unknown_patient(session: &Session) -> Response {
    error_page(404, Some(&session.user), "Unknown patient", "There is no patient at this address.")
}

fn not_a_form(user: Option<&str>) -> Response {
    error_page(415, user, "Not a form", "Send the fields as application/x-www-form-urlencoded.")
}

/// To the sign-in page, and from there to the page that belongs to `route`.
fn to_sign_in(route: Route<'_>) -> Response {
    let location = match route.patient() {
        Some(patient) => format!("/sign-in?reason=session&next=/patients/{}", patient.id),
        None => "/sign-in?reason=session".to_owned(),
    };
    Response::see_other(&location).with_header("Set-Cookie", &session::clear_cookie())
}

fn session_state(session: Option<&Session>) -> Response {
    match session {
        None => api::error(401, "not_signed_in", "Sign in with POST /sign-in."),
        Some(session) => {
            let expires_in_s = session.remaining().as_secs();
            Response::json(200, &json!({ "user": session.user, "expires_in_s": expires_in_s }))
        }
    }
}

/// The fault that the request asks for in its headers.
fn asked_fault(request: &Request) -> Result<Option<(FaultKind, Duration)>, Response> {
    let Some(name) = request.header(FAULT_HEADER) else { return Ok(None) };
    let kind = name.parse().map_err(|why| api::invalid_fault(&why))?;
    let hold_ms = match request.header(HOLD_HEADER) {
        None => faults::HOLD_MS_DEFAULT,
        Some(text) => text
            .parse()
            .ok()
            .filter(|ms| *ms <= faults::HOLD_MS_MAX)
            .ok_or_else(|| api::invalid_fault(&faults::InvalidFault::Hold))?,
    };
    Ok(Some((kind, Duration::from_millis(hold_ms))))
}

/// `127.0.0.1` or `localhost`, with any port: it may be forwarded.
fn is_local_host(host: &str) -> bool {
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    (name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost"))
        && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Browsers name the page's origin with every POST; programs that are not browsers may leave it out.
fn is_same_origin(request: &Request) -> bool {
    match (request.header("origin"), request.header("host")) {
        (None, _) => true,
        (Some(origin), Some(host)) => origin.strip_prefix("http://") == Some(host),
        (Some(_), None) => false,
    }
}

/// Where to go after signing in: only ever a path of plain characters on this server.
fn local_path(next: Option<&str>) -> &str {
    next.filter(|path| {
        path.starts_with("/patients")
            && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-".contains(&byte))
    })
    .unwrap_or("/patients")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_names_and_local_paths_pass() {
        for (host, want) in [
            ("127.0.0.1", true),
            ("127.0.0.1:8080", true),
            ("localhost:1", true),
            ("evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("127.0.0.1:x", false),
            ("", false),
        ] {
            assert_eq!(is_local_host(host), want, "{host}");
        }
        for (next, want) in [
            (None, "/patients"),
            (Some("/patients/p-003"), "/patients/p-003"),
            (Some("//evil.example"), "/patients"),
            (Some("/patients\\..\r\nX: y"), "/patients"),
            (Some("https://evil.example/patients"), "/patients"),
        ] {
            assert_eq!(local_path(next), want, "{next:?}");
        }
    }
}
