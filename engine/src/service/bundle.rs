//! A bundle on disk: a folder with `workflow.json`, loaded whole, checked, and kept in the home.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use protocol::bundle::{Problem, ProblemCode, Workflow, bundle_path, bundle_version, workflow_digest};
use protocol::canonical_json::parse_strict;
use protocol::digest::Sha256Digest;

/// A bundle that passed every check.
pub struct Bundle {
    /// Its workflow.
    pub workflow: Workflow,
    /// Its version.
    pub version: Sha256Digest,
    /// Every file, by its name in the bundle.
    files: BTreeMap<String, Vec<u8>>,
}

/// Why a folder is not a usable bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// It has these problems.
    #[error("the bundle has {} problem(s), the first: {}", .0.len(), .0.first().map_or_else(String::new, ToString::to_string))]
    Problems(Vec<Problem>),
}

impl Bundle {
    /// Loads a folder.
    ///
    /// # Errors
    /// [`BundleError::Problems`] with every problem found.
    pub fn load(dir: &Path) -> Result<Self, BundleError> {
        let mut files = BTreeMap::new();
        walk(dir, "", &mut files).map_err(|problem| BundleError::Problems(vec![problem]))?;
        let Some(text) = files.get("workflow.json") else {
            return Err(BundleError::Problems(vec![problem(
                ProblemCode::MissingFile,
                "workflow.json is missing.",
            )]));
        };
        let value =
            parse_strict(text, 16 << 20).map_err(|found| BundleError::Problems(vec![found.into()]))?;
        let workflow = Workflow::from_value(&value).map_err(BundleError::Problems)?;
        let digests = files
            .iter()
            .map(|(name, bytes)| {
                let digest =
                    if name == "workflow.json" { workflow_digest(&value) } else { Sha256Digest::of(bytes) };
                (name.clone(), digest)
            })
            .collect();
        Ok(Self { workflow, version: bundle_version(&digests), files })
    }

    /// Writes a copy.
    ///
    /// # Errors
    /// As the system gives them.
    pub fn copy_to(&self, dir: &Path) -> io::Result<()> {
        if dir.exists() {
            return Ok(());
        }
        let making = PathBuf::from(format!("{}.tmp{}", dir.display(), std::process::id()));
        for (name, bytes) in &self.files {
            let path = making.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, bytes)?;
        }
        fs::rename(making, dir)
    }
}

fn problem(code: ProblemCode, message: &str) -> Problem {
    Problem { pointer: String::new(), code, message: message.into() }
}

fn walk(dir: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) -> Result<(), Problem> {
    let unreadable = |_: io::Error| problem(ProblemCode::Unreadable, "The folder could not be read.");
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let name =
            name.to_str().ok_or_else(|| problem(ProblemCode::PathNotAllowed, "A name is not UTF-8."))?;
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_symlink() {
            return Err(problem(ProblemCode::SymbolicLink, "A symbolic link."));
        }
        if kind.is_dir() {
            walk(&entry.path(), &format!("{path}/"), files)?;
        } else {
            let path = bundle_path(&path).ok_or_else(|| problem(ProblemCode::PathNotAllowed, "A name."))?;
            files.insert(path, fs::read(entry.path()).map_err(unreadable)?);
        }
    }
    Ok(())
}
