//! A bundle on disk: a folder that is read whole, checked, and copied into the home.
//!
//! What was checked and what the version covers are the same bytes: they are read once and kept, so a file
//! that changes meanwhile changes nothing. The rules about `workflow.json` itself stand in
//! `protocol::bundle`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use protocol::bundle::{
    MAX_BUNDLE_BYTES, MAX_BUNDLE_FILES, Problem, ProblemCode, UNVERSIONED_FILES, WORKFLOW_FILE, Workflow,
    bundle_path, bundle_version, workflow_digest,
};
use protocol::canonical_json::parse_strict;
use protocol::digest::Sha256Digest;

/// A bundle that passed every check, with its content in memory.
pub struct Bundle {
    /// Its workflow.
    pub workflow: Workflow,
    /// Its version.
    pub version: Sha256Digest,
    files: BTreeMap<String, Content>,
}

/// A file that the version covers.
struct Content {
    digest: Sha256Digest,
    bytes: Vec<u8>,
}

/// Why a folder is not a usable bundle. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// It has these problems, at least one: those of its files, which name the file, then those of
    /// `workflow.json`, which have a JSON pointer.
    #[error("the bundle has {} problem(s), the first: {}", .0.len(), first(.0))]
    Problems(Vec<Problem>),
}

impl Bundle {
    /// Reads the bundle in `dir`, which may itself be reached through a link; nothing in it may be one.
    ///
    /// Reads up to [`MAX_BUNDLE_BYTES`] and [`MAX_BUNDLE_FILES`], and opens nothing but regular files and
    /// folders.
    /// # Errors
    /// [`BundleError::Problems`] with every problem that could be found.
    pub fn load(dir: &Path) -> Result<Self, BundleError> {
        let mut walk = Walk::default();
        walk.run(dir);
        let Walk { files, seen, stopped, mut problems, .. } = walk;
        let workflow = match files.get(WORKFLOW_FILE) {
            None => {
                // Where it was seen, or the walk ended before it, another problem says why it is not here.
                if problems.is_empty() || !(stopped || seen.contains(WORKFLOW_FILE)) {
                    let message = format!("{WORKFLOW_FILE} is missing; give the folder that holds it.");
                    problems.push(problem(ProblemCode::MissingFile, message));
                }
                None
            }
            Some(bytes) => match read_workflow(bytes) {
                Ok(read) => Some(read),
                Err(found) => {
                    problems.extend(found);
                    None
                }
            },
        };
        let Some((workflow, workflow_digest)) = workflow.filter(|_| problems.is_empty()) else {
            return Err(BundleError::Problems(problems));
        };
        let files: BTreeMap<_, _> = files
            .into_iter()
            .map(|(path, bytes)| {
                let digest = if path == WORKFLOW_FILE { workflow_digest } else { Sha256Digest::of(&bytes) };
                (path, Content { digest, bytes })
            })
            .collect();
        let digests = files.iter().map(|(path, content)| (path.clone(), content.digest)).collect();
        Ok(Self { workflow, version: bundle_version(&digests), files })
    }

    /// The files that the version covers, with their digests, in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, Sha256Digest)> {
        self.files.iter().map(|(path, content)| (path.as_str(), content.digest))
    }

    /// Makes `dir` a copy of what the version covers: durable on return, whole or not there at all, for the
    /// owner only (0600, folders 0700). A copy that is there already is checked and left alone. The parent
    /// must exist.
    ///
    /// A crash on the way leaves a hidden folder `.<name>.tmp-…` beside `dir` that nothing reads.
    /// # Errors
    /// As the system gives them; `AlreadyExists` if `dir` is there and holds anything else.
    pub fn copy_to(&self, dir: &Path) -> io::Result<()> {
        let (Some(parent), Some(name)) = (dir.parent(), dir.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        // `Path::parent` of a bare name is the empty path, which cannot be opened.
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        if fs::symlink_metadata(dir).is_err() {
            let making = private::make_temporary_folder(parent, &name.to_string_lossy())?;
            let made = self.write_into(&making).and_then(|()| fs::rename(&making, dir));
            if let Err(error) = made {
                // Best effort: what is left is hidden and read by nobody.
                let _ = fs::remove_dir_all(&making);
                // Another process may have put its copy there first.
                if fs::symlink_metadata(dir).is_err() {
                    return Err(error);
                }
            }
        }
        if !self.is_copied_to(dir) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the folder holds something else"));
        }
        // Also for a copy that was there: its maker may have died between the rename and this sync.
        private::sync_folder(parent)
    }

    fn is_copied_to(&self, dir: &Path) -> bool {
        fs::symlink_metadata(dir).is_ok_and(|found| found.is_dir())
            && Self::load(dir).is_ok_and(|copy| copy.version == self.version)
    }

    /// Writes every file into the new folder `dir` and syncs files and folders. The folder is renamed as a
    /// whole, so the files need no rename of their own.
    fn write_into(&self, dir: &Path) -> io::Result<()> {
        let mut folders = BTreeSet::from([dir.to_path_buf()]);
        for (path, content) in &self.files {
            // `bundle_path` admitted the path, so it is relative and stays inside.
            let place = dir.join(path);
            let inner: Vec<_> = place.ancestors().skip(1).take_while(|folder| *folder != dir).collect();
            for folder in inner.into_iter().rev() {
                if folders.insert(folder.to_path_buf()) {
                    private::make_folder(folder)?;
                }
            }
            let mut file = private::create_file(&place)?;
            file.write_all(&content.bytes)?;
            file.sync_all()?;
        }
        // A folder sorts before what it holds; inner folders go first.
        folders.iter().rev().try_for_each(|folder| private::sync_folder(folder))
    }
}

impl std::fmt::Debug for Bundle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bundle").field("version", &self.version).field("files", &self.files.len()).finish()
    }
}

fn read_workflow(bytes: &[u8]) -> Result<(Workflow, Sha256Digest), Vec<Problem>> {
    let value = parse_strict(bytes, bytes.len()).map_err(|problem| vec![problem.into()])?;
    Workflow::from_value(&value).map(|workflow| (workflow, workflow_digest(&value)))
}

/// The first of the problems, for a message of one line.
fn first(problems: &[Problem]) -> String {
    problems.first().map_or_else(String::new, ToString::to_string)
}

fn problem(code: ProblemCode, message: String) -> Problem {
    Problem { pointer: String::new(), code, message }
}

/// What a walk through a bundle has found.
#[derive(Default)]
struct Walk {
    /// Contents by path in the bundle, but for files that the version does not cover.
    files: BTreeMap<String, Vec<u8>>,
    /// Paths of files and folders, readable or not.
    seen: BTreeSet<String>,
    problems: Vec<Problem>,
    /// Whether the walk ended before it had seen everything.
    stopped: bool,
    file_count: usize,
    folder_count: usize,
    /// Bytes read; past the limit nothing more is read, but the walk goes on.
    read: u64,
}

/// A folder that is still to be read: where it is, and its path in the bundle with a `/` at the end.
struct Folder {
    place: PathBuf,
    prefix: String,
}

impl Walk {
    fn run(&mut self, root: &Path) {
        let mut folders = vec![Folder { place: root.into(), prefix: String::new() }];
        while let Some(folder) = folders.pop() {
            let mut inner = Vec::new();
            for name in self.names(&folder) {
                inner.extend(self.entry(&folder, &name));
                if self.file_count > MAX_BUNDLE_FILES || self.folder_count > MAX_BUNDLE_FILES {
                    self.refuse_count();
                }
                if self.stopped {
                    return;
                }
            }
            // The stack gives the last first, so folders are read in the order of their names.
            folders.extend(inner.into_iter().rev());
        }
    }

    /// The names in a folder, sorted; none when there are more than any bundle may have.
    fn names(&mut self, folder: &Folder) -> Vec<OsString> {
        let mut names = Vec::new();
        match fs::read_dir(&folder.place) {
            Ok(listing) => {
                for entry in listing {
                    match entry {
                        Ok(entry) => names.push(entry.file_name()),
                        Err(error) => self.refuse_folder(folder, &error),
                    }
                    if names.len() > 2 * MAX_BUNDLE_FILES {
                        self.refuse_count();
                        return Vec::new();
                    }
                }
            }
            Err(error) => self.refuse_folder(folder, &error),
        }
        names.sort();
        names
    }

    fn refuse_folder(&mut self, folder: &Folder, error: &io::Error) {
        let inner = !folder.prefix.is_empty();
        let path = if inner { shown(&folder.prefix) } else { "The folder".into() };
        self.stopped |= !inner;
        let rule = format!("cannot be read ({}); a bundle is a folder of readable files", error.kind());
        self.refuse::<()>(ProblemCode::Unreadable, &path, &rule);
    }

    fn refuse_count(&mut self) {
        self.stopped = true;
        let message =
            format!("There are more than {MAX_BUNDLE_FILES} files or folders; make the bundle smaller.");
        self.problems.push(problem(ProblemCode::TooManyFiles, message));
    }

    /// Takes one entry in; answers with the folder to go on with, if it is one.
    fn entry(&mut self, folder: &Folder, name: &OsStr) -> Option<Folder> {
        let place = folder.place.join(name);
        let relative = name.to_str().map(|name| format!("{}{name}", folder.prefix));
        let Some((relative, path)) = relative.and_then(|relative| Some((bundle_path(&relative)?, relative)))
        else {
            let path = shown(&format!("{}{}", folder.prefix, name.to_string_lossy()));
            let rule = "has a name that is too long, not UTF-8, or holds a backslash, a colon or a control \
                        character";
            return self.refuse(ProblemCode::PathNotAllowed, &path, &format!("{rule}; rename it"));
        };
        let display = shown(&path);
        if !self.seen.insert(relative.clone()) {
            let rule =
                "has a name that differs from another one only in its Unicode form; rename one of the two";
            return self.refuse(ProblemCode::PathNotUnique, &display, rule);
        }
        let kind = match fs::symlink_metadata(&place) {
            Ok(found) => found.file_type(),
            Err(error) => return self.refuse_unreadable(&display, &error),
        };
        if kind.is_symlink() {
            let rule = "is a symbolic link; put the file itself there";
            return self.refuse(ProblemCode::SymbolicLink, &display, rule);
        }
        if kind.is_dir() {
            self.folder_count += 1;
            return Some(Folder { place, prefix: format!("{path}/") });
        }
        if !kind.is_file() {
            let rule = "is neither a regular file nor a folder; remove it";
            return self.refuse(ProblemCode::NotRegular, &display, rule);
        }
        self.file_count += 1;
        match self.read_file(&place) {
            Ok(Some(bytes)) => {
                if !UNVERSIONED_FILES.contains(&relative.as_str()) {
                    self.files.insert(relative, bytes);
                }
                None
            }
            Ok(None) => None,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                let rule = "takes the bundle over 16 MiB; make it smaller";
                self.refuse(ProblemCode::TooLarge, &display, rule)
            }
            Err(error) => self.refuse_unreadable(&display, &error),
        }
    }

    /// The content of a file; `None` when the limit was passed before.
    fn read_file(&mut self, place: &Path) -> io::Result<Option<Vec<u8>>> {
        let Some(room) = MAX_BUNDLE_BYTES.checked_sub(self.read) else { return Ok(None) };
        let file = private::open_file(place)?;
        let mut bytes = Vec::new();
        // The length is not believed, but a file that admits to be too long is not read at all.
        if file.metadata()?.len() <= room {
            file.take(room + 1).read_to_end(&mut bytes)?;
        } else {
            self.read = u64::MAX;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.read += bytes.len() as u64;
        if self.read > MAX_BUNDLE_BYTES { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(Some(bytes)) }
    }

    fn refuse<T>(&mut self, code: ProblemCode, path: &str, rule: &str) -> Option<T> {
        self.problems.push(problem(code, format!("{path} {rule}.")));
        None
    }

    fn refuse_unreadable<T>(&mut self, path: &str, error: &io::Error) -> Option<T> {
        self.refuse(ProblemCode::Unreadable, path, &format!("cannot be read ({})", error.kind()))
    }
}

/// A path for a message: a name cannot smuggle in a line or a terminal sequence.
fn shown(path: &str) -> String {
    path.escape_debug().to_string()
}

/// Files and folders for the owner only. What is Unix-only in this file stands here.
mod private {
    use super::{AtomicU64, File, Ordering, Path, PathBuf, fs, io};
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};

    /// Opens a file for reading: never through a link, never waiting for a pipe's writer.
    pub(super) fn open_file(place: &Path) -> io::Result<File> {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).map_err(|_| io::ErrorKind::Unsupported)?;
        let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(place)?;
        // It may have become something else since its kind was looked at.
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    pub(super) fn create_file(place: &Path) -> io::Result<File> {
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(place)
    }

    pub(super) fn make_folder(place: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(0o700).create(place)
    }

    /// Makes a folder of its own beside the one that is to be made. Its name is new in this process; one that
    /// a dead process of the same id left is passed over.
    pub(super) fn make_temporary_folder(parent: &Path, name: &str) -> io::Result<PathBuf> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let place = parent.join(format!(".{name}.tmp-{}-{number}", std::process::id()));
            match make_folder(&place) {
                Ok(()) => return Ok(place),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn sync_folder(place: &Path) -> io::Result<()> {
        File::open(place)?.sync_all()
    }
}

#[cfg(test)]
mod tests;
