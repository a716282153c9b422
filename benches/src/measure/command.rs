//! The command line as a whole process: started, answered, ended.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::report::{Aim, Row, Unit};
use crate::stats::{median, seconds};

const TIMES: usize = 21;

/// The binary beside this program, if it was built.
#[must_use]
pub fn beside_this_program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.with_file_name("opjournal");
    program.exists().then_some(program)
}

/// `opjournal info` on each of `homes`: a name for it, and where it is.
///
/// # Errors
/// What the command said when it failed.
pub fn info(program: &Path, homes: &[(&str, &Path)]) -> Result<Vec<Row>, String> {
    homes.iter().map(|(name, home)| one(program, name, home)).collect()
}

fn one(program: &Path, name: &str, home: &Path) -> Result<Row, String> {
    let run = || -> Result<Duration, String> {
        let start = Instant::now();
        let output = Command::new(program)
            .args(["info", "--json", "--home"])
            .arg(home)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let took = start.elapsed();
        if output.status.success() {
            Ok(took)
        } else {
            Err(String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr))
        }
    };
    // The first finds the binary on the disk.
    run()?;
    let times: Vec<Duration> = (0..TIMES).map(|_| run()).collect::<Result<_, _>>()?;
    let p50 = median(&mut seconds(&times));
    Ok(Row::new(format!("`opjournal info`, a new process, {name}"), p50, Unit::Seconds)
        .aim(Aim::AtMost(0.01)))
}
