//! A disk that breaks on purpose, for tests: it asks a hook before and after every operation that changes
//! something. The hook may count, fail the operation, or end the process.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{FileIdentity, FileSystem, Found, Mode, Vfs, VfsFile};

/// An operation that changes something, or reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Of file content.
    Read,
    /// Of file content.
    Write {
        /// Where, in bytes.
        offset: u64,
        /// How many bytes.
        bytes: u64,
    },
    /// Of file content, with or without metadata.
    Sync,
    /// Cutting or extending.
    SetLen,
    /// Making a file.
    Create,
    /// Renaming a file; the path is the new name.
    Rename,
    /// Removing a file.
    Remove,
    /// Syncing the names of a directory.
    SyncDir,
}

/// When the hook is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// An error keeps the operation from being done.
    Before,
    /// The operation was done and succeeded; an error makes it report failure all the same.
    After,
}

/// What the hook is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Before or after.
    pub when: When,
    /// What is done.
    pub operation: Operation,
    /// To what: the name it has, or, for an open file, the name it was opened by.
    pub path: &'a Path,
}

/// Asked before and after every operation.
pub type Hook = Arc<dyn Fn(&Event<'_>) -> io::Result<()> + Send + Sync>;

/// A file system that asks a [`Hook`].
#[derive(Clone)]
pub struct FaultVfs {
    inner: Arc<dyn Vfs>,
    hook: Hook,
    file_system: Option<FileSystem>,
}

struct FaultFile {
    inner: Box<dyn VfsFile>,
    hook: Hook,
    path: PathBuf,
}

impl FaultVfs {
    /// Wraps `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn Vfs>, hook: Hook) -> Self {
        Self { inner, hook, file_system: None }
    }

    /// Says that every directory is on `file_system`.
    #[must_use]
    pub const fn on_file_system(mut self, file_system: FileSystem) -> Self {
        self.file_system = Some(file_system);
        self
    }

    fn around<T>(
        &self,
        operation: Operation,
        path: &Path,
        act: impl FnOnce(&dyn Vfs) -> io::Result<T>,
    ) -> io::Result<T> {
        around(&self.hook, operation, path, || act(self.inner.as_ref()))
    }

    fn wrap(&self, path: &Path, inner: Box<dyn VfsFile>) -> Box<dyn VfsFile> {
        Box::new(FaultFile { inner, hook: Arc::clone(&self.hook), path: path.to_owned() })
    }
}

/// A hook that fails the `nth` operation (from 0) that `matches`, before it is done, with `errno`.
pub fn fail_nth(nth: u64, errno: i32, matches: impl Fn(&Event<'_>) -> bool + Send + Sync + 'static) -> Hook {
    let seen = AtomicU64::new(0);
    Arc::new(move |event| {
        let hit = event.when == When::Before && matches(event) && seen.fetch_add(1, Ordering::SeqCst) == nth;
        if hit { Err(io::Error::from_raw_os_error(errno)) } else { Ok(()) }
    })
}

fn around<T>(
    hook: &Hook,
    operation: Operation,
    path: &Path,
    act: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    hook(&Event { when: When::Before, operation, path })?;
    let done = act()?;
    hook(&Event { when: When::After, operation, path })?;
    Ok(done)
}

impl Vfs for FaultVfs {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn VfsFile>> {
        Ok(self.wrap(path, self.inner.open(path, mode)?))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        let file = self.around(Operation::Create, path, |inner| inner.create_new(path))?;
        Ok(self.wrap(path, file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.around(Operation::Rename, to, |inner| inner.rename(from, to))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.around(Operation::Rename, to, |inner| inner.link(from, to))
    }

    fn inspect(&self, path: &Path) -> io::Result<Found> {
        self.inner.inspect(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.around(Operation::Remove, path, |inner| inner.remove(path))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.inner.create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.around(Operation::SyncDir, dir, |inner| inner.sync_dir(dir))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }

    fn identity(&self, path: &Path) -> io::Result<FileIdentity> {
        self.inner.identity(path)
    }

    fn file_system(&self, dir: &Path) -> io::Result<FileSystem> {
        self.file_system.map_or_else(|| self.inner.file_system(dir), Ok)
    }
}

impl VfsFile for FaultFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        around(&self.hook, Operation::Read, &self.path, || self.inner.read_at(buf, offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let operation = Operation::Write { offset, bytes: buf.len() as u64 };
        around(&self.hook, operation, &self.path, || self.inner.write_at(buf, offset))
    }

    fn sync_data(&self) -> io::Result<()> {
        around(&self.hook, Operation::Sync, &self.path, || self.inner.sync_data())
    }

    fn sync_all(&self) -> io::Result<()> {
        around(&self.hook, Operation::Sync, &self.path, || self.inner.sync_all())
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        around(&self.hook, Operation::SetLen, &self.path, || self.inner.set_len(len))
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.inner.try_lock()
    }

    fn try_lock_shared(&self) -> io::Result<bool> {
        self.inner.try_lock_shared()
    }

    fn unlock(&self) -> io::Result<()> {
        self.inner.unlock()
    }

    fn drop_cache(&self) -> io::Result<()> {
        self.inner.drop_cache()
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        self.inner.identity()
    }
}
