//! Runs, items and decisions as a person reads them. Everything shown here may leave the engine (DESIGN §6).

use protocol::ids::RunId;
use protocol::outcome::{AgentOutcome, RunOutcome, RunState};
use protocol::projection::{AttentionItem, AttentionStatus, DecisionView, RunView};
use serde::Serialize;

use crate::output::Paint;
use crate::time;

/// The answer of a command about one run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunAnswer {
    /// The run as it stands.
    pub(crate) run: RunView,
    /// Whether the same request had started it before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replayed: Option<bool>,
}

/// What became of a run, or where it stands, in a word.
pub(crate) fn status(run: &RunView, paint: Paint) -> String {
    match (run.execution_outcome, run.outcome) {
        (Some(RunOutcome::Verified), _) => paint.green(RunOutcome::Verified.as_str()),
        (Some(outcome), _) => paint.red(outcome.as_str()),
        (None, AgentOutcome::NotSureIfSaved) => paint.red(&format!("{}, delivery uncertain", run.state)),
        (
            None,
            AgentOutcome::Done | AgentOutcome::NeedsReview | AgentOutcome::DidNotRun | AgentOutcome::Running,
        ) => match run.state {
            RunState::Paused => paint.yellow(run.state.as_str()),
            RunState::Admitted
            | RunState::Running
            | RunState::Completed
            | RunState::Halted
            | RunState::Rejected
            | RunState::Failed => run.state.as_str().to_owned(),
        },
    }
}

/// One run, in full.
pub(crate) fn run(run: &RunView, paint: Paint) -> String {
    let mut text = format!("{}  {}\n", paint.bold(&run.run_id.to_string()), status(run, paint));
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<16}{value}\n"));
    if let Some(reason) = run.reason {
        line("reason", reason.to_string());
    }
    line("step", step(run));
    line("verified steps", run.checkpoints.to_string());
    line("effects", format!("{} of {} confirmed", run.effects_confirmed, run.effects_declared));
    line("record changed", run.record_changed.to_string());
    if run.execution_outcome.is_some() {
        let again = if run.safe_to_retry { "safe: nothing was written" } else { "not safe without a look" };
        line("starting again", again.to_owned());
    }
    line("started", format!("{} UTC", time::short(run.started_at)));
    line("workflow", run.workflow.to_string());
    if let Some(next) = next_step(run) {
        text.push_str(&format!("{} {next}\n", paint.bold("next:")));
    }
    text
}

fn step(run: &RunView) -> String {
    if run.step_number > run.step_count {
        format!("all {} done", run.step_count)
    } else {
        format!("{} of {}", run.step_number, run.step_count)
    }
}

/// What a person can do about a run as it stands.
fn next_step(run: &RunView) -> Option<String> {
    if let Some(id) = &run.attention_id {
        return Some(format!("it waits for a person: `opjournal attention show {id}`"));
    }
    match run.state {
        RunState::Admitted | RunState::Running => {
            Some(format!("if no process works on it: `opjournal resume {} --config FILE`", run.run_id))
        }
        RunState::Paused => Some("its item has no capability; see `opjournal info`".to_owned()),
        RunState::Completed | RunState::Halted | RunState::Rejected | RunState::Failed => None,
    }
}

/// Several runs, one a line.
pub(crate) fn runs(runs: &[RunView], paint: Paint) -> String {
    if runs.is_empty() {
        return "no runs\n".to_owned();
    }
    runs.iter()
        .map(|run| {
            format!(
                "{}  {}  step {:<9} {}{}\n",
                time::short(run.started_at),
                run.run_id,
                step(run),
                status(run, paint),
                run.attention_id.as_ref().map_or_else(String::new, |id| format!("  item {id}")),
            )
        })
        .collect()
}

/// Several items, one a line.
pub(crate) fn items(items: &[AttentionItem], paint: Paint) -> String {
    if items.is_empty() {
        return "nothing waits for a person\n".to_owned();
    }
    items
        .iter()
        .map(|item| {
            format!(
                "{}  {}  {:<18} step {} of {}  {}\n",
                time::short(item.created_at),
                paint.bold(&item.id.to_string()),
                item.category.as_str(),
                item.step_number,
                item.step_count,
                attention_status(item.status, paint),
            )
        })
        .collect()
}

fn attention_status(status: AttentionStatus, paint: Paint) -> String {
    match status {
        AttentionStatus::Open => paint.yellow(status.as_str()),
        AttentionStatus::NeedsDemonstration | AttentionStatus::Escalated => paint.cyan(status.as_str()),
        AttentionStatus::Expired => paint.red(status.as_str()),
    }
}

/// One item, in full, without what to do about it.
pub(crate) fn item(item: &AttentionItem, paint: Paint) -> String {
    let mut text =
        format!("item {}  {}\n", paint.bold(&item.id.to_string()), attention_status(item.status, paint));
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<16}{value}\n"));
    line("run", item.run.to_string());
    line("why", format!("{} ({})", item.category, item.reason));
    line("step", format!("{} of {}", item.step_number, item.step_count));
    let counts = item.counts;
    line(
        "declared",
        format!("{}, {}", count(counts.postconditions, "postcondition"), count(counts.effects, "effect")),
    );
    line("verified steps", counts.checkpoints.to_string());
    line("delivery", item.capability.delivery_state.to_string());
    line("identity", item.capability.identity_status.to_string());
    let actions: Vec<&str> = item.capability.allowed_actions.iter().map(|action| action.as_str()).collect();
    line("allowed", actions.join(", "));
    line("capability", item.capability.digest.to_string());
    line("waits since", format!("{} UTC", time::short(item.created_at)));
    line("expires", format!("{} UTC", time::short(item.expires_at)));
    text
}

/// A number of things in words.
pub(crate) fn count(number: u32, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// A decision as recorded.
pub(crate) fn decision(decision: &DecisionView, replayed: bool, paint: Paint) -> String {
    let mut text = format!(
        "{} {} on item {}: {}{}\n",
        paint.bold(decision.action.as_str()),
        if replayed { "was decided before" } else { "is recorded" },
        decision.attention_id,
        decision.outcome,
        decision.refusal.map_or_else(String::new, |code| format!(" ({code})")),
    );
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<16}{value}\n"));
    line("decision", decision.decision.to_string());
    line("decided via", decision.decided_via.to_string());
    line("decided at", format!("{} UTC", time::short(decision.decided_at)));
    if let Some(code) = decision.refusal {
        text.push_str(&format!(
            "{} {}\n{} {}\n",
            paint.red("refused:"),
            code.sentence(),
            paint.bold("next:"),
            code.next_step()
        ));
    }
    text
}

/// How a run is named in talk.
pub(crate) fn admitted(run: RunId, replayed: bool) -> String {
    if replayed {
        format!("this request started {run} before; going on with it")
    } else {
        format!("admitted {run}")
    }
}
