//! On what the figures were taken.

use std::fs;
use std::path::Path;
use std::process::Command;

/// What a reader of the figures must know of the machine.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Model of the processor.
    pub cpu: String,
    /// How many threads run at once.
    pub cores: usize,
    /// Kernel and its version.
    pub kernel: String,
    /// Type of the file system that was measured.
    pub file_system: String,
    /// Version of opjournal.
    pub opjournal: &'static str,
    /// The compiler on the path.
    pub rustc: String,
    /// Load of the last minute, at the start: figures of a busy machine are worth little.
    pub load: String,
}

const UNKNOWN: &str = "unknown";

impl Facts {
    /// Asks the system. `dir` is where the benchmark writes.
    #[must_use]
    pub fn gather(dir: &Path) -> Self {
        let cpu = text("/proc/cpuinfo").and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        });
        let kernel = text("/proc/sys/kernel/osrelease").map(|release| format!("Linux {}", release.trim()));
        let load = text("/proc/loadavg").and_then(|text| Some(text.split_whitespace().next()?.to_owned()));
        Self {
            cpu: or_unknown(cpu),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: or_unknown(kernel.or_else(|| output("uname", &["-sr"]))),
            file_system: or_unknown(file_system(dir)),
            opjournal: env!("CARGO_PKG_VERSION"),
            rustc: or_unknown(output("rustc", &["--version"])),
            load: or_unknown(load),
        }
    }

    /// As pairs, to print.
    #[must_use]
    pub fn pairs(&self) -> [(&'static str, String); 7] {
        [
            ("cpu", self.cpu.clone()),
            ("cores", self.cores.to_string()),
            ("kernel", self.kernel.clone()),
            ("file system", self.file_system.clone()),
            ("opjournal", self.opjournal.to_owned()),
            ("rustc", self.rustc.clone()),
            ("load at start", self.load.clone()),
        ]
    }
}

fn or_unknown(found: Option<String>) -> String {
    found.unwrap_or_else(|| UNKNOWN.to_owned())
}

fn text(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn output(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// Type of the mount that holds `dir`: the last of those with the longest path.
fn file_system(dir: &Path) -> Option<String> {
    let dir = dir.canonicalize().ok()?;
    let mounts = text("/proc/self/mountinfo")?;
    let mut found: Option<(usize, &str)> = None;
    for line in mounts.lines() {
        let (Some(point), Some((_, rest))) = (line.split(' ').nth(4), line.split_once(" - ")) else {
            continue;
        };
        let Some(kind) = rest.split(' ').next() else { continue };
        if dir.starts_with(point) && found.is_none_or(|(len, _)| point.len() >= len) {
            found = Some((point.len(), kind));
        }
    }
    found.map(|(_, kind)| kind.to_owned())
}
