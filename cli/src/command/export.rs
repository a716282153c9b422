//! `export`: every record as a line of JSON, in the schema that EVENTS.md describes. The file is there whole or not at
//! all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use engine::service::story::Chapter;
use journal::Reader;
use protocol::ids::{RunId, Seq};
use protocol::refusal::RefusalCode;
use serde::Serialize;

use super::replay::{codec, json_line};
use crate::context::Cx;
use crate::exit::Exit;
use crate::failure::{Code, Failure};

/// Writes the journal out as JSON lines, one record a line (EVENTS.md, "JSON lines"). Nothing protected is in it.
///
/// A file is written beside its place, synced and only then given its name; one that is there stays, unless `--force`
/// says otherwise. Takes no lock and changes nothing in the home.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opjournal export --jsonl                          to stdout
  opjournal export --jsonl --out journal.jsonl
  opjournal export --jsonl --run run_… | jq .name")]
pub(crate) struct Args {
    /// As JSON lines; so far the only form
    #[arg(long, required = true)]
    jsonl: bool,

    /// Records about this run only
    #[arg(long, value_name = "RUN")]
    run: Option<RunId>,

    /// Where to; `-` is stdout
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,

    /// Replace a file that is there
    #[arg(long)]
    force: bool,
}

/// What `--json` says after a file was written.
#[derive(Serialize)]
struct Exported {
    file: String,
    lines: u64,
    next_seq: Seq,
}

/// Exports.
pub(crate) fn run(args: &Args, cx: &Cx) -> Result<Exit, Failure> {
    let reader = cx.reader()?;
    if args.out.as_os_str() == "-" {
        let mut stream = cx.out.stream();
        let written = each(&reader, args.run, &mut |line| stream.line(line));
        // What was readable is told, also before damage.
        stream.finish()?;
        written?;
        return Ok(Exit::Verified);
    }
    let target = Target::new(&args.out, args.force)?;
    let mut writer = BufWriter::with_capacity(64 * 1024, target.create()?);
    let written = each(&reader, args.run, &mut |line| {
        writeln!(writer, "{line}").map_err(|error| Failure::io("writing the export", &error))
    });
    let published = written.and_then(|counted| {
        let file = writer.into_inner().map_err(|error| Failure::io("writing the export", error.error()))?;
        target.publish(&file).map(|()| counted)
    });
    let (lines, next_seq) = published.inspect_err(|_| target.discard())?;
    let exported = Exported { file: args.out.display().to_string(), lines, next_seq };
    cx.out
        .result(&exported, |exported, _| format!("{} records are in {}\n", exported.lines, exported.file))?;
    Ok(Exit::Verified)
}

/// Hands each line to `write`; says how many there were, and the position after the last record read.
fn each(
    reader: &Reader,
    run: Option<RunId>,
    write: &mut dyn FnMut(&str) -> Result<(), Failure>,
) -> Result<(u64, Seq), Failure> {
    let (mut lines, mut next) = (0, Seq(0));
    for record in reader.from(Seq(0))? {
        let chapter = Chapter::of(record?).map_err(|error| codec(&error))?;
        next = chapter.seq().next();
        if run.is_none() || run == chapter.run() {
            write(&json_line(&chapter)?)?;
            lines += 1;
        }
    }
    if run.is_some() && lines == 0 { Err(RefusalCode::UnknownRun.into()) } else { Ok((lines, next)) }
}

/// A file in the making, and its place.
struct Target {
    making: PathBuf,
    place: PathBuf,
    folder: PathBuf,
    force: bool,
}

impl Target {
    fn new(place: &Path, force: bool) -> Result<Self, Failure> {
        let Some(name) = place.file_name() else {
            return Err(Failure::usage(
                "the place to export to names no file",
                "Name one with `--out FILE`.",
            ));
        };
        if !force && fs::symlink_metadata(place).is_ok() {
            return Err(exists());
        }
        let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = parent.unwrap_or_else(|| Path::new(".")).to_owned();
        let mut making = std::ffi::OsString::from(".");
        making.push(name);
        making.push(format!(".{}.tmp", std::process::id()));
        Ok(Self { making: folder.join(making), place: place.to_owned(), folder, force })
    }

    fn create(&self) -> Result<File, Failure> {
        File::options()
            .write(true)
            .create_new(true)
            .open(&self.making)
            .map_err(|error| Failure::io("making the export", &error))
    }

    /// Durably: the bytes, then the name, then the folder that holds it.
    fn publish(&self, file: &File) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::io("giving the export its name", &error);
        file.sync_all().map_err(|error| Failure::io("syncing the export", &error))?;
        if self.force {
            fs::rename(&self.making, &self.place).map_err(failed)?;
        } else {
            // A link never replaces a file that came to be in the meantime.
            match fs::hard_link(&self.making, &self.place) {
                Ok(()) => self.discard(),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(exists()),
                // A file system without links: look once more, and take the name.
                Err(_) if fs::symlink_metadata(&self.place).is_err() => {
                    fs::rename(&self.making, &self.place).map_err(failed)?;
                }
                Err(_) => return Err(exists()),
            }
        }
        File::open(&self.folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|error| Failure::io("syncing the export's folder", &error))
    }

    /// Takes the unfinished file away. Best effort: a leftover costs space only.
    fn discard(&self) {
        let _ = fs::remove_file(&self.making);
    }
}

fn exists() -> Failure {
    Failure::new(
        Code::CannotWrite,
        "the file to export to is there already",
        "Name another with `--out FILE`, or replace it with `--force`.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_there_stays_unless_it_is_forced() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("out.jsonl");
        for (case, there, force, want) in [
            ("nothing there", None, false, Some("new")),
            ("something there", Some("old"), false, None),
            ("something there, forced", Some("old"), true, Some("new")),
        ] {
            let _ = fs::remove_file(&place);
            if let Some(old) = there {
                fs::write(&place, old).expect("a file");
            }
            let published = Target::new(&place, force).and_then(|target| {
                let mut file = target.create()?;
                file.write_all(b"new").expect("a write");
                target.publish(&file)
            });
            assert_eq!(published.is_ok(), want.is_some(), "{case}");
            assert_eq!(fs::read_to_string(&place).expect("a file"), want.unwrap_or("old"), "{case}");
            assert_eq!(
                fs::read_dir(folder.path()).expect("names").count(),
                1,
                "{case}: nothing is left over"
            );
        }
    }

    #[test]
    fn a_file_that_came_to_be_in_the_meantime_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("out.jsonl");
        let target = Target::new(&place, false).expect("a target");
        let file = target.create().expect("a file");
        fs::write(&place, "theirs").expect("a file");
        assert_eq!(target.publish(&file).map_err(|failure| failure.code()), Err(Code::CannotWrite));
        assert_eq!(fs::read_to_string(&place).expect("a file"), "theirs");
    }

    #[test]
    fn a_place_without_a_file_name_is_a_usage_error() {
        for place in ["/", "..", "a/.."] {
            assert!(Target::new(Path::new(place), false).is_err(), "{place}");
        }
    }
}
