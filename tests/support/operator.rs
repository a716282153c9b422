//! A polite operator: repeats a request that got no answer, unchanged; otherwise goes on by what the program says, and
//! by nothing else. Does each person's step once.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::process::{Call, Ended, HANG, text};
use super::scenario::Bench;

/// More requests than any run needs, also one that was killed twice.
const REQUESTS_MAX: u32 = 60;
/// Before a request is repeated that found somebody else at work.
const BUSY: Duration = Duration::from_millis(20);
/// Before another look at a delivery whose time the program did not give.
const UNCERTAIN: Duration = Duration::from_millis(100);

/// A decision as it was asked for.
pub(crate) struct Asked {
    pub(crate) key: String,
    pub(crate) action: String,
    /// The item as it was shown then.
    pub(crate) item: Value,
    /// The decision that was answered, if one was.
    pub(crate) answer: Option<Value>,
}

/// Looks at a process after it was killed and before anything else happens.
pub(crate) type AfterKill<'a> = Box<dyn Fn(&Bench) + 'a>;

/// The operator of one run.
pub(crate) struct Operator<'a> {
    bench: &'a Bench,
    /// Variables for each process.
    variables: Vec<(&'static str, String)>,
    after_kill: AfterKill<'a>,
    pub(crate) asked: Vec<Asked>,
    pub(crate) kills: u32,
    /// What was asked and answered, a line each.
    pub(crate) told: String,
    done: BTreeSet<u64>,
    requests: u32,
}

impl<'a> Operator<'a> {
    /// An operator to whom nothing happens.
    pub(crate) fn undisturbed(bench: &'a Bench) -> Self {
        Self::new(bench, Vec::new(), Box::new(|_| {}))
    }

    pub(crate) fn new(
        bench: &'a Bench,
        variables: Vec<(&'static str, String)>,
        after_kill: AfterKill<'a>,
    ) -> Self {
        let (asked, done) = (Vec::new(), BTreeSet::new());
        Self { bench, variables, after_kill, asked, kills: 0, told: String::new(), done, requests: 0 }
    }

    /// The person has done this step already.
    pub(crate) fn having_done(mut self, step: u64) -> Self {
        self.done.insert(step);
        self
    }

    /// Starts the run and leads it to its end. Gives the run as it is then.
    pub(crate) fn lead(&mut self) -> Value {
        let arguments = self.bench.run_arguments();
        let mut seen = self.request(&arguments).document();
        loop {
            let run = seen["run"].clone();
            assert!(run.is_object(), "no run in the answer: {seen}\n{}", self.told);
            if !run["execution_outcome"].is_null() {
                return run;
            }
            seen = self.next(&run);
        }
    }

    /// One step on, from the run as it was shown. Gives an answer with the run in it.
    fn next(&mut self, run: &Value) -> Value {
        let id = text(run, "/run_id");
        let attention = text(run, "/attention_id");
        if attention.is_empty() {
            return self.resume(&id);
        }
        let item = self.request(&words(&["attention", "show", &attention])).document()["item"].clone();
        if allows(&item, "reconcile") {
            return self.decide(&id, &item, "reconcile");
        }
        if text(&item, "/category") != "attended_step" {
            return self.resume(&id);
        }
        let step = item["step_number"].as_u64().expect("a step's number");
        if self.done.insert(step) {
            self.bench.do_task(step);
        }
        assert!(allows(&item, "continue"), "continue is not allowed on {item}\n{}", self.told);
        self.decide(&id, &item, "continue")
    }

    fn resume(&mut self, run: &str) -> Value {
        let arguments = self.bench.resume_arguments(run);
        let answer = self.request(&arguments).document();
        if answer["error"].is_object() { self.show(run) } else { answer }
    }

    fn show(&mut self, run: &str) -> Value {
        self.request(&words(&["runs", "show", run])).document()
    }

    fn decide(&mut self, run: &str, item: &Value, action: &str) -> Value {
        let key = format!("{action}-{}-{}", text(item, "/id"), self.asked.len());
        let arguments = self.bench.decide_live_arguments(item, action, &key);
        let place = self.asked.len();
        self.asked.push(Asked { key, action: action.to_owned(), item: item.clone(), answer: None });
        let answer = self.request(&arguments).document();
        if answer["decision"].is_object() {
            self.asked[place].answer = Some(answer["decision"].clone());
            if answer["decision"]["refusal"] == "delivery_uncertain" {
                thread::sleep(UNCERTAIN);
            }
            return answer;
        }
        match text(&answer, "/error/code").as_str() {
            "delivery_uncertain" => {
                let wait = answer["error"]["retry_after_ms"].as_u64().map(Duration::from_millis);
                // A continue that may have crossed is not helped by waiting, but by a reconcile.
                thread::sleep(wait.unwrap_or(if action == "reconcile" { UNCERTAIN } else { Duration::ZERO }));
            }
            "stale_capability" | "pause_expired" | "unknown_attention" => {}
            code => panic!("{action} was refused with {code}\n{}", self.told),
        }
        self.show(run)
    }

    /// Asks until there is an answer: the same request in the same words, after a kill and while somebody is busy.
    fn request(&mut self, arguments: &[String]) -> Ended {
        let begun = Instant::now();
        loop {
            self.requests += 1;
            let give_up = self.requests > REQUESTS_MAX || begun.elapsed() > HANG;
            assert!(!give_up, "the run does not come to its end\n{}", self.told);
            let ended = self.call(arguments).run();
            self.note(arguments, &ended);
            if ended.was_killed() {
                self.kills += 1;
                (self.after_kill)(self.bench);
                continue;
            }
            assert!(ended.exit.is_some(), "{ended}\n{}", self.told);
            if ended.exit == Some(75) {
                thread::sleep(BUSY);
                continue;
            }
            return ended;
        }
    }

    fn call(&self, arguments: &[String]) -> Call {
        let call = self.bench.call(arguments);
        self.variables.iter().fold(call, |call, (name, value)| call.env(name, value))
    }

    fn note(&mut self, arguments: &[String], ended: &Ended) {
        let document: Value = serde_json::from_slice(&ended.stdout).unwrap_or_default();
        let (state, code) = (text(&document, "/run/state"), text(&document, "/error/code"));
        let how = ended.exit.map_or_else(|| "killed".to_owned(), |exit| format!("exit {exit}"));
        let line = format!("  {}: {how} {state}{code}", arguments.join(" "));
        writeln!(self.told, "{line}").expect("text");
        if ended.exit == Some(70) {
            writeln!(self.told, "{ended}").expect("text");
        }
    }
}

fn allows(item: &Value, action: &str) -> bool {
    let allowed = item.pointer("/capability/allowed_actions").and_then(Value::as_array);
    allowed.is_some_and(|actions| actions.iter().any(|allowed| allowed == action))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
