//! `info`: what this program is, where its home is, and how the journal stands. Cheap: nothing is folded without
//! `--counts`.

use protocol::ids::{Epoch, JournalId, Seq};
use serde::Serialize;

use super::exit_codes;
use crate::context::Cx;
use crate::exit::{Exit, Row as ExitRow, TABLE};
use crate::failure::{Code, Failure};
use crate::limits::{self, Amount};
use crate::output::Paint;

/// Version, formats, home, positions and limits. Takes no lock and writes nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opjournal info
  opjournal info --counts          also how many runs and items are open (reads the journal)
  opjournal info --json")]
pub(crate) struct Args {
    /// Also count open runs and items; reads the journal from its newest snapshot on
    #[arg(long)]
    counts: bool,
}

#[derive(Serialize)]
struct Info {
    version: &'static str,
    formats: Formats,
    home: Option<String>,
    journal: Option<JournalInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<Counts>,
    limits: Vec<LimitInfo>,
    exit_codes: [ExitRow; 14],
}

/// Versions of what is written and read.
#[derive(Serialize)]
struct Formats {
    journal: String,
    event_payload: u8,
    workflow: u64,
}

#[derive(Serialize)]
struct JournalInfo {
    id: JournalId,
    next_seq: Seq,
    epoch: Epoch,
    head: String,
    segments: usize,
    bytes: u64,
    /// Whether everything before `next_seq` is known to be synced.
    confirmed: bool,
}

#[derive(Serialize)]
struct Counts {
    open_runs: usize,
    waiting: usize,
    ended_runs: u64,
}

#[derive(Serialize)]
struct LimitInfo {
    #[serde(flatten)]
    row: limits::Row,
    value: u64,
}

/// Does it.
pub(crate) fn run(args: &Args, cx: &Cx) -> Result<Exit, Failure> {
    let journal = match journal_info(cx) {
        Ok(info) => Some(info),
        Err(failure) if failure.code() == Code::NoJournal => None,
        Err(failure) => return Err(failure),
    };
    let counts = match (&journal, args.counts) {
        (Some(_), true) => {
            let view = cx.view()?;
            let (open_runs, waiting) = (view.open_runs().len(), view.attention().len());
            Some(Counts { open_runs, waiting, ended_runs: view.state().retired.runs })
        }
        (Some(_), false) | (None, _) => None,
    };
    let info = Info {
        version: env!("CARGO_PKG_VERSION"),
        formats: Formats {
            journal: format!(
                "{}.{}",
                journal::format::segment_header::MAJOR,
                journal::format::segment_header::MINOR
            ),
            event_payload: protocol::event::PAYLOAD_VERSION,
            workflow: protocol::bundle::WORKFLOW_FORMAT,
        },
        home: cx.home().ok().map(|home| home.display().to_string()),
        journal,
        counts,
        limits: limits::table()
            .into_iter()
            .map(|row| LimitInfo { value: cx.limits().value(&row), row })
            .collect(),
        exit_codes: TABLE,
    };
    cx.out.result(&info, text)?;
    Ok(Exit::Verified)
}

fn journal_info(cx: &Cx) -> Result<JournalInfo, Failure> {
    let info = cx.reader()?.info()?;
    Ok(JournalInfo {
        id: info.journal_id,
        next_seq: info.next_seq,
        epoch: info.epoch,
        head: info.chain.to_string(),
        segments: info.segments.len(),
        bytes: info.segments.iter().map(|segment| segment.bytes).sum(),
        confirmed: info.confirmed,
    })
}

fn text(info: &Info, paint: Paint) -> String {
    let mut text = format!("opjournal {}\n", info.version);
    let mut line = |name: &str, value: &str| text.push_str(&format!("  {name:<16}{value}\n"));
    line(
        "formats",
        &format!(
            "journal {}, event payload {}, workflow {}",
            info.formats.journal, info.formats.event_payload, info.formats.workflow
        ),
    );
    line("home", info.home.as_deref().unwrap_or("none: give --home DIR"));
    match &info.journal {
        None => line("journal", "none yet; `opjournal run` makes one, `opjournal quickstart` shows one"),
        Some(journal) => {
            line("journal", &journal.id.to_string());
            line("records", &format!("{} in epoch {}", journal.next_seq, journal.epoch));
            line(
                "segments",
                &format!("{}, {}", journal.segments, Amount(journal.bytes, limits::Unit::Bytes)),
            );
            line("head", &journal.head);
            let synced = "everything is known to be synced";
            line(
                "synced",
                if journal.confirmed { synced } else { "the last block may not be; see `opjournal verify`" },
            );
        }
    }
    if let Some(counts) = &info.counts {
        line("open runs", &format!("{}, of which {} wait for a person", counts.open_runs, counts.waiting));
        line("ended runs", &counts.ended_runs.to_string());
    }
    text.push_str(&format!("\n{}\n", paint.bold("limits (--set-limit NAME=VALUE where a range is given)")));
    for LimitInfo { row, value } in &info.limits {
        let range = row.range.map_or_else(String::new, |(least, greatest)| {
            format!("   {} to {}", Amount(least, row.unit), Amount(greatest, row.unit))
        });
        text.push_str(&format!(
            "  {:<14}{:<10}{}{range}\n",
            row.name,
            Amount(*value, row.unit).to_string(),
            row.what
        ));
    }
    text.push_str(&format!("\n{}\n{}", paint.bold("exit codes"), exit_codes::text()));
    text
}
