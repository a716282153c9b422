//! Prints one table of figures beside their aims: `cargo run --release -p opjournal-benches -- [OPTIONS]`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement has nobody to report an error to")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use opjournal_benches::facts::Facts;
use opjournal_benches::measure::{append, command, decision, journal};
use opjournal_benches::{history, report};

const HELP: &str = "\
Measures opjournal beside raw writes to the same disk, and prints a table. Takes about a minute and a half.

  --events N        events of the journal that is replayed and opened (default 200000)
  --dir DIR         where to write: a temporary folder is made there (default: the current folder)
  --opjournal FILE  the command line to start (default: the one beside this program, if it was built)
  --json            JSON instead of the table
";

struct Args {
    events: u64,
    dir: PathBuf,
    opjournal: Option<PathBuf>,
    json: bool,
}

fn args() -> Result<Args, String> {
    let mut args = Args {
        events: 200_000,
        dir: PathBuf::from("."),
        opjournal: command::beside_this_program(),
        json: false,
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let mut value = || given.next().ok_or(format!("{name} takes a value"));
        match name.as_str() {
            "--events" => args.events = value()?.parse().map_err(|_| "--events takes a number")?,
            "--dir" => args.dir = value()?.into(),
            "--opjournal" => args.opjournal = Some(value()?.into()),
            "--json" => args.json = true,
            _ => return Err(HELP.to_owned()),
        }
    }
    Ok(args)
}

fn main() -> ExitCode {
    let args = match args() {
        Ok(args) => args,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(64);
        }
    };
    let temporary =
        tempfile::Builder::new().prefix("opjournal-bench-").tempdir_in(&args.dir).expect("a folder");
    let dir = temporary.path();
    let facts = Facts::gather(dir);
    let start = Instant::now();
    let said = |what: &str| eprintln!("{:>4} s  {what}", start.elapsed().as_secs());

    said("durable appends, 1 producer");
    let mut rows = append::lone(dir, Duration::from_secs(15));
    said("durable appends, 8 and 64 producers");
    rows.extend(append::crowds(dir, Duration::from_secs(15)));
    said("decisions");
    rows.extend(decision::decisions(dir, Duration::from_secs(20)));
    let home = dir.join("many");
    said(&format!("writing a journal of {} events", args.events));
    let written = history::write(&home, args.events);
    said(&format!("{} runs ended, {} wait; replay and opening", written.ended, written.open));
    rows.extend(journal::rows(&home));
    said("verify");
    rows.extend(journal::verification(&home));
    match &args.opjournal {
        Some(program) => {
            said("opjournal info");
            // The decisions were made there.
            let small = dir.join("home");
            match command::info(program, &[("a small home", &small), ("the large home", &home)]) {
                Ok(more) => rows.extend(more),
                Err(error) => eprintln!("opjournal info could not be measured: {error}"),
            }
        }
        None => eprintln!("opjournal info is not measured: build it first, or name it with --opjournal"),
    }
    said("done");
    if args.json {
        println!("{}", report::document(&facts, &rows));
    } else {
        print!("{}", report::table(&facts, &rows));
    }
    ExitCode::SUCCESS
}
