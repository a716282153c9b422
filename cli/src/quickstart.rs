//! The demonstration: run, pause, crash between delivery and receipt, restart, reconcile, finish, replay, verify. It uses
//! the same commands as anybody, in processes of their own, and asks the clinic itself what happened.

mod child;
mod clinic;
mod files;
mod story;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::context::Cx;
use crate::exit::Exit;
use crate::failure::{Code, Failure};
use child::{Ended, Running, Stdin};
use clinic::Clinic;
use files::{Files, Place};
use story::{Stage, Story};

/// Who does the person's step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    /// A person, with a browser.
    Person,
    /// This program; recorded as such.
    Program,
}

/// Between two looks at the clinic.
const LOOK: Duration = Duration::from_millis(10);
/// How long a program's decision may take until the note must be there.
const NOTE_DUE: Duration = Duration::from_secs(20);

/// What the demonstration came to.
#[derive(Serialize)]
struct Outcome<'a> {
    ok: bool,
    home: String,
    kept: bool,
    operator: &'static str,
    elapsed_ms: u64,
    notes: u64,
    note_actuations: u64,
    stages: &'a [Stage],
}

/// Tells and does it.
///
/// # Errors
/// The first stage that did not go as it must. The home is then kept.
pub(crate) fn run(operator: Operator, keep: bool, cx: &Cx) -> Result<Exit, Failure> {
    let mut place = Place::choose(cx, keep)?;
    let (home, folder) = (place.home().to_owned(), place.folder().to_owned());
    let mut demo = Demo { operator, story: Story::new(cx.out), home, folder };
    match demo.all(&mut place, cx) {
        Ok(()) => Ok(Exit::Verified),
        Err(failure) => {
            // A person who stops it has no use for what is left; anything else is worth a look.
            if failure.code() != Code::NotConfirmed {
                place.keep();
            }
            let failure = failure.with("stage", demo.story.current());
            let home = place.home().display().to_string();
            Err(if place.is_kept() { failure.with("home", home) } else { failure })
        }
    }
}

struct Demo {
    operator: Operator,
    story: Story,
    home: PathBuf,
    folder: PathBuf,
}

/// An item as `attention show` gave it.
struct Item {
    id: String,
    capability: String,
    shown: Ended,
}

/// Where `attention show` lists what is allowed.
const ALLOWED: &str = "/item/capability/allowed_actions";

impl Demo {
    fn all(&mut self, place: &mut Place, cx: &Cx) -> Result<(), Failure> {
        self.hello(place);
        let (clinic, files) = self.open_clinic(place)?;
        let run = self.start_run(&files)?;
        let item = self.show_pause(&run)?;
        self.arm(&clinic)?;
        self.fill_form(&clinic)?;
        self.decide_and_kill(&clinic, &files, item)?;
        let item = self.start_again(&run)?;
        self.reconcile(&item)?;
        let (notes, note_actuations) = self.ask_clinic(&clinic, &files.reference())?;
        self.replay_and_verify()?;
        let kept = place.is_kept();
        self.goodbye(kept);
        if cx.out.json() {
            let outcome = Outcome {
                ok: true,
                home: self.home.display().to_string(),
                kept,
                operator: match self.operator {
                    Operator::Person => "person",
                    Operator::Program => "automation",
                },
                elapsed_ms: self.story.elapsed_ms(),
                notes,
                note_actuations,
                stages: self.story.stages(),
            };
            cx.out.result(&outcome, |_, _| String::new())?;
        }
        Ok(())
    }

    fn hello(&self, place: &Place) {
        let paint = self.story.paint();
        let automation = match self.operator {
            Operator::Person => "",
            Operator::Program => {
                "Unattended: a program does the person's step, and the journal says so. It is nobody's decision.\n"
            }
        };
        self.story.write(&format!(
            "{}\nEverything is in {}; the patients are invented.\n{automation}",
            paint.bold("opjournal quickstart: attended work that survives a crash"),
            place.home().display(),
        ));
    }

    fn open_clinic(&mut self, place: &Place) -> Result<(Clinic, Files), Failure> {
        self.story.begin("clinic", "A clinic to work on");
        let clinic = Clinic::start(&self.home, &self.folder)?;
        let files = Files::write(place, &clinic.config())?;
        self.story.tell(&format!(
            "MockMed, a small web application, is at {} in a process of its own.\n\
             To the engine it is any web application: it gets an address, a sign-in and a key, nothing else.",
            clinic.address
        ));
        Ok((clinic, files))
    }

    fn start_run(&mut self, files: &Files) -> Result<String, Failure> {
        self.story.begin("run", "Start the workflow");
        let arguments = files.run_arguments();
        let ended = self.command(&arguments, Stdin::Tied)?;
        let run = ended.text("/run/run_id")?;
        self.must_exit(&ended, Exit::Open)?;
        let (step, steps) = (ended.number("/run/step_number"), ended.number("/run/step_count"));
        self.story.tell(&format!(
            "It found the patient, proved that the record is the right one, and stopped at step {step} of {steps}:\n\
             that one is a person's. Its process has ended; the pause is in the journal, synced to disk.",
        ));
        Ok(run)
    }

    fn show_pause(&mut self, run: &str) -> Result<Item, Failure> {
        self.story.begin("pause", "What waits for a person");
        let shown = self.quietly(&["runs", "show", run])?;
        let id = shown.text("/run/attention_id")?;
        let item = self.show_item(&id)?;
        self.story.write(&format!("{}\n", self.item_text(&item)));
        self.story.tell(
            "An agent or a queue sees this and no more: no name, no text, no value. The capability is signed\n\
             authority for exactly this pause; a decision has to present its digest.",
        );
        Ok(item)
    }

    fn arm(&mut self, clinic: &Clinic) -> Result<(), Failure> {
        self.story.begin("fault", "Prepare an accident");
        clinic.hold_next_note()?;
        self.story.tell(
            "MockMed will store the next note and then hold back its answer: the moment in which nobody can know,\n\
             from outside, whether the note was written.",
        );
        Ok(())
    }

    fn fill_form(&mut self, clinic: &Clinic) -> Result<(), Failure> {
        match self.operator {
            Operator::Person => {
                self.story.begin("form", "Your step: fill in the triage form");
                let paint = self.story.paint();
                self.story.ask(&format!(
                    "1. Open     {}\n2. Sign in  {} / {}\n3. Fill in the triage form with anything you like, and save it.\n\
                     Then confirm below. The engine will read the record itself before it believes you.",
                    paint.cyan(&clinic.page(files::PATIENT)),
                    crate::mockmed::USER,
                    crate::mockmed::PASSWORD,
                ));
            }
            Operator::Program => {
                self.story.begin("form", "The person's step, done by a program");
                clinic.fill_triage(files::PATIENT, &files::TRIAGE)?;
                self.story.tell(
                    "The triage form was sent over HTTP, as a browser would. The engine had no part in it.",
                );
            }
        }
        Ok(())
    }

    fn decide_and_kill(&mut self, clinic: &Clinic, files: &Files, mut item: Item) -> Result<(), Failure> {
        self.story.begin("kill", "Decide `continue`, and kill the engine in mid-flight");
        loop {
            let arguments = Files::decide_arguments(&item.id, "continue", &item.capability)?;
            self.story.command(&arguments);
            let decide = child::start(&self.home, &self.folder, &arguments, self.stdin())?;
            match self.until_note(clinic, &files.reference(), decide)? {
                Watched::Stored(decide) => {
                    let process = decide.id();
                    let ended = decide.kill()?;
                    self.story.ended(&ended);
                    self.story.fact("killed_process", process);
                    if ended.exit.is_some() {
                        return Err(wrong("the engine ended by itself before it could be killed"));
                    }
                    self.story.tell(&format!(
                        "The engine verified the form by reading it back, committed the person's step, journalled its\n\
                         intent, and sent the note. The clinic stored it; process {process} was killed with SIGKILL before\n\
                         any answer arrived.",
                    ));
                    return Ok(());
                }
                Watched::Ended(ended) => {
                    let code = ended.text("/error/code").unwrap_or_default();
                    let refused = ended.text("/decision/refusal").unwrap_or_default();
                    if self.operator == Operator::Program || (code.is_empty() && refused.is_empty()) {
                        self.story.ended(&ended);
                        return Err(ended.failure("the decision did not lead to the next step"));
                    }
                    if code == Code::NotConfirmed.as_str() {
                        return Err(Failure::new(
                            Code::NotConfirmed,
                            "stopped by you",
                            "Start again when you like.",
                        ));
                    }
                    let hint = if clinic.has_triage(files::PATIENT)? {
                        "The engine did not accept it."
                    } else {
                        "The clinic has no triage record for this patient yet: save the form first."
                    };
                    self.story.ask(&format!("{hint} Then confirm again."));
                    item = self.show_item(&item.id)?;
                }
            }
        }
    }

    /// Waits until the clinic has stored the note, or the engine has ended.
    fn until_note(&self, clinic: &Clinic, reference: &str, mut decide: Running) -> Result<Watched, Failure> {
        let begun = Instant::now();
        loop {
            if clinic.notes(files::PATIENT, reference)? > 0 {
                return Ok(Watched::Stored(decide));
            }
            if !decide.is_running() {
                return Ok(Watched::Ended(decide.wait()?));
            }
            if self.operator == Operator::Program && begun.elapsed() > NOTE_DUE {
                return Err(wrong("the engine did not send the note in time"));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn start_again(&mut self, run: &str) -> Result<Item, Failure> {
        self.story.begin("resume", "Start the engine again");
        let ended = self.command(&Files::resume_arguments(run), Stdin::Tied)?;
        self.must_exit(&ended, Exit::Uncertain)?;
        let id = ended.text("/run/attention_id")?;
        let item = self.show_item(&id)?;
        self.story.write(&format!("{}\n", self.item_text(&item)));
        self.story.tell(
            "The journal has an intent without a receipt. Sending again could write the note twice; going on could lose\n\
             it. So the engine does neither: the delivery is uncertain, and only a read may settle it.",
        );
        Ok(item)
    }

    fn reconcile(&mut self, item: &Item) -> Result<(), Failure> {
        self.story.begin("reconcile", "Settle it by reading");
        let arguments = Files::decide_arguments(&item.id, "reconcile", &item.capability)?;
        let ended = self.command(&arguments, self.stdin())?;
        if ended.text("/error/code").is_ok_and(|code| code == Code::NotConfirmed.as_str()) {
            return Err(Failure::new(Code::NotConfirmed, "stopped by you", "Start again when you like."));
        }
        self.must_exit(&ended, Exit::Verified)?;
        let outcome = ended.text("/run/execution_outcome")?;
        let (confirmed, declared) =
            (ended.number("/run/effects_confirmed"), ended.number("/run/effects_declared"));
        self.story.tell(&format!(
            "The note is there, so its step is committed without being done again, and the run reached its end:\n\
             {outcome}, {confirmed} of {declared} declared effects confirmed by independent reads.",
        ));
        Ok(())
    }

    fn ask_clinic(&mut self, clinic: &Clinic, reference: &str) -> Result<(u64, u64), Failure> {
        self.story.begin("proof", "Ask the clinic itself");
        let (notes, actuations) = (clinic.notes(files::PATIENT, reference)?, clinic.actuations(reference)?);
        self.story.fact("notes", notes);
        self.story.fact("note_actuations", actuations);
        if (notes, actuations) != (1, 1) {
            return Err(wrong("the clinic does not have exactly one note from exactly one request"));
        }
        self.story.good("its read-back API has exactly one note");
        self.story.good("its access log has exactly one request that wrote one");
        Ok((notes, actuations))
    }

    fn replay_and_verify(&mut self) -> Result<(), Failure> {
        self.story.begin("replay", "Replay the journal");
        let ended = self.command(&files::words(&["replay"]), Stdin::Tied)?;
        self.must_exit(&ended, Exit::Verified)?;
        self.story
            .good("every event was folded again from the first, and gives every state that was recorded");
        self.story.begin("verify", "Verify every byte");
        let ended = self.command(&files::words(&["verify"]), Stdin::Tied)?;
        self.must_exit(&ended, Exit::Verified)?;
        self.story.good("every checksum and the whole hash chain hold");
        self.story.tell(
            "Whether records are missing at the end only a witness outside the journal can say, so that it answers\n\
             \"complete: unknown\". It never claims more than it can prove.",
        );
        Ok(())
    }

    fn goodbye(&self, kept: bool) {
        let paint = self.story.paint();
        let seconds = Duration::from_millis(self.story.elapsed_ms()).as_secs_f32();
        let home = self.home.display();
        let mut text = format!(
            "\n{} One note, sent once, across a crash at the worst moment. {}\n\n",
            paint.green(&paint.bold("It held.")),
            paint.dim(&format!("({seconds:.1} s)")),
        );
        if kept {
            text.push_str(&format!(
                "The home is {home}. Try next:\n\
                 {}\n",
                [
                    ("replay", "the whole story, event by event"),
                    ("runs list --all", "every run and what became of it"),
                    ("info --counts", "how the journal stands"),
                ]
                .map(|(command, what)| format!("  opjournal --home {home} {command:<18}{}", paint.dim(what)))
                .join("\n")
            ));
        } else {
            text.push_str("The temporary home is removed. Try next:\n");
            text.push_str("  opjournal quickstart --keep         keep it, to replay and look around\n");
        }
        match self.operator {
            Operator::Program => {
                text.push_str("  opjournal quickstart                be the person yourself\n")
            }
            Operator::Person => {
                text.push_str("  opjournal run --help                run a workflow of your own\n")
            }
        }
        self.story.write(&text);
    }

    fn show_item(&self, id: &str) -> Result<Item, Failure> {
        let shown = self.quietly(&["attention", "show", id])?;
        Ok(Item { id: id.to_owned(), capability: shown.text("/item/capability/digest")?, shown })
    }

    /// What an item says, on a few lines.
    fn item_text(&self, item: &Item) -> String {
        let paint = self.story.paint();
        let text = |pointer: &str| item.shown.text(pointer).unwrap_or_default();
        let actions = item.shown.document.as_ref().and_then(|document| document.pointer(ALLOWED)?.as_array());
        let actions: Vec<&str> =
            actions.into_iter().flatten().filter_map(serde_json::Value::as_str).collect();
        [
            ("item", item.id.clone()),
            (
                "why",
                format!("{}, delivery {}", text("/item/category"), text("/item/capability/delivery_state")),
            ),
            ("allowed", actions.join(", ")),
            ("capability", item.capability.clone()),
        ]
        .map(|(name, value)| format!("     {} {value}", paint.dim(&format!("{name:<11}"))))
        .join("\n")
    }

    /// Runs a command and makes it part of the story.
    fn command(&mut self, arguments: &[String], stdin: Stdin) -> Result<Ended, Failure> {
        self.story.command(arguments);
        let ended = child::start(&self.home, &self.folder, arguments, stdin)?.wait()?;
        self.story.ended(&ended);
        Ok(ended)
    }

    /// Runs a command that only looks.
    fn quietly(&self, arguments: &[&str]) -> Result<Ended, Failure> {
        let arguments = files::words(arguments);
        child::start(&self.home, &self.folder, &arguments, Stdin::Tied)?.wait()
    }

    fn must_exit(&self, ended: &Ended, want: Exit) -> Result<(), Failure> {
        if ended.exit == Some(i32::from(want.code())) {
            return Ok(());
        }
        let got = ended.exit.map_or_else(|| "was killed".to_owned(), |code| format!("exited {code}"));
        Err(ended.failure(&format!("the command {got} instead of {}", want.code())))
    }

    const fn stdin(&self) -> Stdin {
        match self.operator {
            Operator::Person => Stdin::Person,
            Operator::Program => Stdin::Tied,
        }
    }
}

/// What came first.
enum Watched {
    Stored(Running),
    Ended(Ended),
}

fn wrong(message: &str) -> Failure {
    Failure::new(
        Code::Quickstart,
        message,
        "Look at the home with `opjournal --home DIR replay`, and report this.",
    )
}

impl Ended {
    fn number(&self, pointer: &str) -> u64 {
        let document = self.document.as_ref();
        document.and_then(|document| document.pointer(pointer)?.as_u64()).unwrap_or_default()
    }

    /// Why it is not what it must be: in its own words, if it has any.
    fn failure(&self, message: &str) -> Failure {
        match self.text("/error/message") {
            Ok(error) => wrong(&format!("{message}: {error}")),
            Err(_) => wrong(message),
        }
    }
}
