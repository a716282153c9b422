//! `attention`: what waits for a person. Only looks.

use std::collections::BTreeMap;

use protocol::decision::Action;
use protocol::ids::{AttentionId, IdempotencyKey};
use protocol::projection::AttentionItem;
use serde::Serialize;

use super::{page, render};
use crate::context::Cx;
use crate::exit::Exit;
use crate::failure::{Code, Failure};

/// What waits for a person. Takes no lock and writes nothing.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  opjournal attention list
  opjournal attention show 0123456789abcdef01234567"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List open items, oldest first
    List {
        #[command(flatten)]
        page: page::PageArgs,
    },
    /// Show one item, with a ready-made command for each allowed action
    Show {
        /// The item
        #[arg(value_name = "ID")]
        id: AttentionId,
    },
}

#[derive(Serialize)]
struct List {
    items: Vec<AttentionItem>,
    next_cursor: Option<String>,
}

#[derive(Serialize)]
struct Shown {
    item: AttentionItem,
    /// Arguments of a command for each allowed action.
    commands: BTreeMap<Action, Vec<String>>,
}

/// Does it.
pub(crate) fn run(args: &Args, cx: &Cx) -> Result<Exit, Failure> {
    match &args.command {
        Command::List { page } => list(page, cx),
        Command::Show { id } => show(id, cx),
    }
}

fn list(page: &page::PageArgs, cx: &Cx) -> Result<Exit, Failure> {
    let items = cx.view()?.attention();
    let (items, next_cursor) = page.cut(items, |item| (item.created_at, item.id.clone()))?;
    cx.out.result(&List { items, next_cursor }, |list, paint| {
        let mut text = render::items(&list.items, paint);
        if let Some(cursor) = &list.next_cursor {
            text.push_str(&format!("more: `--cursor {cursor}`\n"));
        }
        text
    })?;
    Ok(Exit::Verified)
}

fn show(id: &AttentionId, cx: &Cx) -> Result<Exit, Failure> {
    let item = cx.view()?.attention_item(id)?;
    let actions = item.capability.allowed_actions.clone();
    let commands = actions
        .into_iter()
        .map(|action| Ok((action, command(&item, action, cx)?)))
        .collect::<Result<BTreeMap<_, _>, Failure>>()?;
    let shown = Shown { item, commands };
    cx.out.result(&shown, |shown, paint| {
        let mut text = render::item(&shown.item, paint);
        text.push_str("decide with one of these; the same key twice is one decision\n");
        for (action, command) in &shown.commands {
            text.push_str(&format!("\n  # {}\n  {}\n", meaning(*action), paint.cyan(&shell(command))));
        }
        text
    })?;
    Ok(Exit::Verified)
}

/// What an action says, for the person who chooses.
pub(super) const fn meaning(action: Action) -> &'static str {
    match action {
        Action::Continue => {
            "continue: you did the step in the application; it is verified, and the run goes on"
        }
        Action::Skip => "skip: the step does not apply; the run goes on without it",
        Action::Reject => "reject: end this run for ever; what was done stays done",
        Action::Teach => "teach: ask for a corrective demonstration; the item stays open",
        Action::Escalate => "escalate: ask for qualified help; the item stays open",
        Action::Reconcile => {
            "reconcile: read the application to settle whether the delivery happened; never acts"
        }
    }
}

fn command(item: &AttentionItem, action: Action, cx: &Cx) -> Result<Vec<String>, Failure> {
    let mut words = vec!["opjournal".to_owned()];
    if let Some(home) = cx.home_option() {
        words.extend(["--home".to_owned(), home.display().to_string()]);
    }
    words.extend([
        "decide".to_owned(),
        item.id.to_string(),
        "--action".to_owned(),
        action.to_string(),
        "--capability".to_owned(),
        item.capability.digest.to_string(),
        "--key".to_owned(),
        fresh_key(action)?.to_string(),
    ]);
    if action.needs_executor() {
        words.extend(["--config".to_owned(), "FILE".to_owned()]);
    }
    Ok(words)
}

/// A key that nobody has used before.
///
/// # Errors
/// When the system has no randomness to give.
pub(super) fn fresh_key(action: Action) -> Result<IdempotencyKey, Failure> {
    let failed = || Failure::new(Code::Internal, "the system has no randomness to give", "Try again.");
    let mut bytes = [0_u8; 12];
    getrandom::fill(&mut bytes).map_err(|_| failed())?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{action}-{digits}").parse().map_err(|_| failed())
}

/// Words as a POSIX shell reads them.
fn shell(words: &[String]) -> String {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| {
            let plain = !word.is_empty()
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte));
            if plain { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) }
        })
        .collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_key_has_the_form_of_a_key_for_every_action() {
        for action in Action::ALL {
            assert!(fresh_key(*action).is_ok(), "{action}");
        }
    }

    #[test]
    fn words_with_anything_but_plain_characters_are_quoted() {
        let words = ["a", "b c", "it's", ""].map(str::to_owned);
        assert_eq!(shell(&words), r"a 'b c' 'it'\''s' ''");
    }
}
