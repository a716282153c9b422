//! `verify`: the verdict on the journal's bytes, in three parts: intact, complete, and where the first damage lies.

use std::cmp::Ordering;
use std::fmt::Write as _;

use engine::service::platform::SystemClock;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use journal::verify::{Completeness, Finding, FindingKind, Integrity, Verdict};
use protocol::ids::Seq;
use serde::Serialize;
use serde_json::{Value, json};

use super::render::count;
use crate::context::Cx;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Paint;

/// Reads every byte of the journal: header and block checksums, the hash chain over all segments, their key tables, and
/// the zero space behind the last block.
///
/// Takes no lock and writes nothing, so it works on a read-only copy. Ends with 0 when the journal is intact, 65 when it
/// is damaged, 66 when nothing can tell whether the last block was acknowledged, 67 when it ends in a write that did not
/// end. Whether records are missing at the end only a witness outside the journal can say: without one it is "unknown".
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opjournal verify
  opjournal --home /mnt/copy verify --json")]
pub(crate) struct Args {}

/// Verifies.
pub(crate) fn run(_: &Args, cx: &Cx) -> Result<Exit, Failure> {
    let bar = (!cx.out.json()).then(bar);
    let mut went = |done: u64, total: u64| {
        if let Some(bar) = &bar {
            bar.set_length(total);
            bar.set_position(done);
        }
    };
    let verdict = journal::verify::verify(
        cx.vfs().as_ref(),
        &cx.journal_folder()?,
        SystemClock::new().boot_id(),
        &mut went,
    );
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    let report = Report::of(&verdict?);
    cx.out.result(&report, text)?;
    Ok(report.exit)
}

/// A bar on stderr if that is a terminal; else nothing.
fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("verifying {bar:40} {bytes} of {total_bytes}, {eta} left");
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// The verdict for a person and a program.
#[derive(Serialize)]
struct Report {
    verdict: &'static str,
    intact: bool,
    complete: &'static str,
    /// The first thing that makes the journal not intact.
    first: Option<Value>,
    /// All that is not as it should be.
    findings: Vec<Value>,
    journal_id: Option<String>,
    segments: usize,
    records: u64,
    next_seq: Seq,
    /// Writer epoch and chain value after the last record; none where the last segment cannot be read to its end.
    epoch: Option<u64>,
    head: Option<String>,
    #[serde(serialize_with = "code")]
    exit: Exit,
    #[serde(skip)]
    integrity: Integrity,
}

fn code<S: serde::Serializer>(exit: &Exit, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u8(exit.code())
}

impl Report {
    fn of(verdict: &Verdict) -> Self {
        let (word, exit) = match verdict.integrity {
            Integrity::Intact => ("intact", Exit::Verified),
            Integrity::Damaged => ("damaged", Exit::Damaged),
            Integrity::CannotTell => ("cannot_tell", Exit::CannotTell),
            Integrity::TornTail => ("torn_tail", Exit::TornTail),
        };
        let mut findings: Vec<&Finding> = verdict.findings.iter().collect();
        findings.sort_by(|a, b| in_order(a, b));
        // Epochs count from 1.
        let end_known = verdict.epoch.0 > 0;
        let first = findings.iter().find(|finding| costs(finding.kind)).map(|finding| json(finding));
        Self {
            verdict: word,
            intact: verdict.integrity == Integrity::Intact,
            complete: match verdict.complete {
                Completeness::Unknown => "unknown",
            },
            first,
            findings: findings.into_iter().map(json).collect(),
            journal_id: verdict.journal_id.map(|id| id.to_string()),
            segments: verdict.segments,
            records: verdict.records,
            next_seq: verdict.next_seq,
            epoch: end_known.then_some(verdict.epoch.0),
            head: end_known.then(|| verdict.head.to_string()),
            exit,
            integrity: verdict.integrity,
        }
    }
}

/// By place in the journal; what lies in no segment comes last.
fn in_order(a: &Finding, b: &Finding) -> Ordering {
    let key = |finding: &Finding| (finding.segment.is_none(), finding.segment, finding.offset);
    key(a).cmp(&key(b))
}

/// Whether a finding makes the journal not intact. A lost or stale mark costs no record.
const fn costs(kind: FindingKind) -> bool {
    match kind {
        FindingKind::Damage(_) | FindingKind::Tail(_) => true,
        FindingKind::MarkUnreadable | FindingKind::MarkElsewhere => false,
    }
}

const fn class(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Damage(_) => "damage",
        FindingKind::Tail(journal::own::CutFinding::Torn) => "torn",
        FindingKind::Tail(journal::own::CutFinding::Unprovable) => "unprovable",
        FindingKind::Tail(journal::own::CutFinding::Stray) => "stray",
        FindingKind::MarkUnreadable => "mark_unreadable",
        FindingKind::MarkElsewhere => "mark_elsewhere",
    }
}

const fn next_step(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Damage(_) => {
            "Stop writing to this home, copy it as it is, and restore it from a backup; `opjournal replay` tells what \
             can be read before the damage."
        }
        FindingKind::Tail(journal::own::CutFinding::Unprovable) => {
            "Compare the last block with a copy if there is one. The next opening for writing copies it aside, cuts it, \
             and records that it was unprovable."
        }
        FindingKind::Tail(journal::own::CutFinding::Torn | journal::own::CutFinding::Stray) => {
            "Nothing acknowledged is lost. The next opening for writing copies it aside and cuts it."
        }
        FindingKind::MarkUnreadable | FindingKind::MarkElsewhere => {
            "No record is lost. The next opening for writing checks the end of the journal and makes a new mark."
        }
    }
}

fn json(finding: &Finding) -> Value {
    json!({
        "kind": class(finding.kind),
        "file": finding.file,
        "segment": finding.segment,
        "offset": finding.offset,
        "first_lost": finding.first_lost,
        "message": finding.message,
        "next_step": next_step(finding.kind),
    })
}

fn text(report: &Report, paint: Paint) -> String {
    let intact = match report.integrity {
        Integrity::Intact => paint.green("yes: checksums, hash chain, key tables and zero space all fit"),
        Integrity::Damaged => paint.red("NO"),
        Integrity::CannotTell => {
            paint.yellow("cannot tell: nothing says whether the last block was ever acknowledged")
        }
        Integrity::TornTail => paint.yellow("up to a write that did not end, after everything acknowledged"),
    };
    let mut page = format!("intact:    {intact}\n");
    let _ = writeln!(
        page,
        "complete:  {} (no anchor was asked; records cut off the end would not show)",
        report.complete
    );
    let shown = |finding: &Value, name: &str| {
        let value = &finding[name];
        value.as_str().map_or_else(|| value.to_string(), str::to_owned)
    };
    match &report.first {
        None => page.push_str("damage:    none\n"),
        Some(first) => {
            let _ = writeln!(page, "damage:    {}", shown(first, "message"));
            let _ = writeln!(
                page,
                "           first in {} at byte {}",
                shown(first, "file"),
                shown(first, "offset")
            );
            if !first["first_lost"].is_null() {
                let _ = writeln!(page, "           first record lost: {}", shown(first, "first_lost"));
            }
            let _ = writeln!(page, "{}      {}", paint.bold("next:"), shown(first, "next_step"));
        }
    }
    let more: Vec<&Value> =
        report.findings.iter().filter(|finding| Some(*finding) != report.first.as_ref()).collect();
    for finding in more {
        let _ = writeln!(
            page,
            "also:      {}\n           {}",
            shown(finding, "message"),
            shown(finding, "next_step")
        );
    }
    let journal = report.journal_id.as_deref().unwrap_or("(no segment header is whole)");
    let segments = count(u32::try_from(report.segments).unwrap_or(u32::MAX), "segment");
    let _ = writeln!(
        page,
        "journal:   {journal}\n           {} records can be read, in {segments}",
        report.records
    );
    if let (Some(epoch), Some(head)) = (report.epoch, &report.head) {
        let _ = writeln!(page, "           next {}, epoch {epoch}, chain {head}", report.next_seq);
    }
    page
}

#[cfg(test)]
mod tests {
    use journal::Chain;
    use journal::own::CutFinding;
    use journal::verify::Finding;
    use protocol::ids::Epoch;

    use super::*;

    fn finding(segment: Option<u32>, offset: u64, kind: FindingKind) -> Finding {
        let file = segment.map_or_else(|| "lock".to_owned(), |segment| format!("{segment}.seg"));
        let message = format!("{file} is wrong at byte {offset}");
        Finding {
            file,
            segment,
            offset,
            kind,
            first_lost: segment.map(|segment| Seq(u64::from(segment))),
            message,
        }
    }

    fn verdict(integrity: Integrity, findings: Vec<Finding>) -> Verdict {
        Verdict {
            journal_id: None,
            segments: 2,
            records: 7,
            next_seq: Seq(7),
            head: Chain([0xab; 32]),
            epoch: Epoch(3),
            findings,
            integrity,
            complete: Completeness::Unknown,
        }
    }

    const DAMAGE: FindingKind = FindingKind::Damage(journal::Fault::SegmentMissing);

    #[test]
    fn each_verdict_has_its_word_its_exit_code_and_what_to_do_next() {
        let tail = |finding_kind| finding(Some(1), 80, FindingKind::Tail(finding_kind));
        for (integrity, findings, word, exit, next) in [
            (Integrity::Intact, vec![], "intact", 0, None),
            (
                Integrity::Damaged,
                vec![finding(Some(1), 80, DAMAGE)],
                "damaged",
                65,
                Some("restore it from a backup"),
            ),
            (
                Integrity::CannotTell,
                vec![tail(CutFinding::Unprovable)],
                "cannot_tell",
                66,
                Some("was unprovable"),
            ),
            (
                Integrity::TornTail,
                vec![tail(CutFinding::Torn)],
                "torn_tail",
                67,
                Some("Nothing acknowledged is lost"),
            ),
            (
                Integrity::TornTail,
                vec![tail(CutFinding::Stray)],
                "torn_tail",
                67,
                Some("Nothing acknowledged is lost"),
            ),
        ] {
            let report = Report::of(&verdict(integrity, findings));
            assert_eq!((report.verdict, report.exit.code(), report.complete), (word, exit, "unknown"));
            assert_eq!(report.intact, integrity == Integrity::Intact);
            let page = text(&report, Paint::default());
            match next {
                None => {
                    assert!(page.contains("damage:    none") && page.contains("complete:  unknown"), "{page}")
                }
                Some(next) => {
                    assert!(page.contains(next) && page.contains("first in 1.seg at byte 80"), "{page}")
                }
            }
            let printed = serde_json::to_value(&report).expect("JSON");
            assert_eq!((&printed["verdict"], &printed["exit"]), (&json!(word), &json!(exit)));
        }
    }

    #[test]
    fn the_first_damage_is_the_first_in_the_journal_whatever_was_found_first() {
        let findings = vec![
            finding(None, 0, FindingKind::MarkUnreadable),
            finding(Some(1), 0, DAMAGE),
            finding(Some(0), 900, DAMAGE),
            finding(Some(0), 200, DAMAGE),
        ];
        let report = Report::of(&verdict(Integrity::Damaged, findings));
        let first = report.first.expect("a first");
        assert_eq!((&first["file"], &first["offset"]), (&json!("0.seg"), &json!(200)));
        assert_eq!(report.findings.len(), 4);
        assert_eq!(report.findings[3]["kind"], "mark_unreadable");
    }

    #[test]
    fn a_lost_mark_is_told_and_costs_nothing() {
        let report =
            Report::of(&verdict(Integrity::Intact, vec![finding(None, 0, FindingKind::MarkUnreadable)]));
        assert_eq!((report.exit, &report.first), (Exit::Verified, &None));
        let page = text(&report, Paint::default());
        assert!(
            page.contains("damage:    none") && page.contains("also:      lock is wrong at byte 0"),
            "{page}"
        );
    }
}
