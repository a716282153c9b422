//! File locks: the commit lock with its synced mark, and the liveness of a process. The only file that names fs2.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::ids::InstanceId;
use protocol::time::Millis;

use crate::format::mark::{MARK_BYTES, Mark};
use crate::vfs::{self, FileIdentity, Mode, Vfs, VfsFile};

/// Name of the file with the commit lock and the synced mark.
pub const LOCK_FILE: &str = "lock";

const LIVE_SUFFIX: &str = ".live";

// Full paths: since Rust 1.89 `File` has methods of the same names, which would shadow the trait's.
pub(crate) fn try_lock_file(file: &File) -> io::Result<bool> {
    free(fs2::FileExt::try_lock_exclusive(file))
}

pub(crate) fn try_lock_file_shared(file: &File) -> io::Result<bool> {
    free(fs2::FileExt::try_lock_shared(file))
}

pub(crate) fn unlock_file(file: &File) -> io::Result<()> {
    fs2::FileExt::unlock(file)
}

fn free(tried: io::Result<()>) -> io::Result<bool> {
    match tried {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == fs2::lock_contended_error().raw_os_error() => Ok(false),
        Err(error) => Err(error),
    }
}

/// What stands where the synced mark belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Nothing: no file, or an empty one.
    Missing,
    /// Bytes that are not a mark.
    Unreadable,
    /// A mark.
    Mark(Mark),
}

/// Why the commit lock was not taken.
pub(crate) enum LockFailure {
    /// Held elsewhere all the time.
    Busy,
    /// The system failed.
    Io(io::Error),
}

impl From<io::Error> for LockFailure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The commit lock of a journal: who holds it may write. It ends with the process, however that ends.
pub(crate) struct CommitLock {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    file: Box<dyn VfsFile>,
    identity: FileIdentity,
}

impl CommitLock {
    pub(crate) fn open(vfs: Arc<dyn Vfs>, dir: &Path) -> io::Result<Self> {
        let path = dir.join(LOCK_FILE);
        let file = vfs.open(&path, Mode::ReadWriteCreate)?;
        let identity = file.identity()?;
        Ok(Self { vfs, path, file, identity })
    }

    /// Takes the lock, waiting for `wait` at most.
    pub(crate) fn acquire(&mut self, wait: Millis) -> Result<(), LockFailure> {
        let (mut since, mut pause) = (None, Duration::from_micros(20));
        loop {
            if self.file.try_lock()? {
                match self.vfs.identity(&self.path) {
                    Ok(current) if current == self.identity => return Ok(()),
                    // The file was removed or replaced; a lock on it keeps nobody away.
                    Ok(_) => self.reopen()?,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => self.reopen()?,
                    Err(error) => return Err(error.into()),
                }
                continue;
            }
            let since = since.get_or_insert_with(Instant::now);
            if since.elapsed() >= Duration::from_millis(wait.0) {
                return Err(LockFailure::Busy);
            }
            // A file lock has no wait with a limit, so this polls; a commit lasts about one sync.
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(1));
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        self.file = self.vfs.open(&self.path, Mode::ReadWriteCreate)?;
        self.identity = self.file.identity()?;
        Ok(())
    }

    pub(crate) fn release(&self) -> io::Result<()> {
        self.file.unlock()
    }

    pub(crate) fn read_mark(&self) -> io::Result<Stored> {
        read_mark(self.file.as_ref())
    }

    /// Reads the mark without the lock, in the file that has the name now.
    pub(crate) fn peek_mark(&mut self) -> io::Result<Stored> {
        match self.vfs.identity(&self.path) {
            Ok(current) if current == self.identity => {}
            Ok(_) => self.reopen()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Stored::Missing),
            Err(error) => return Err(error),
        }
        patiently(self.file.as_ref())
    }

    /// Only under the lock.
    pub(crate) fn write_mark(&self, mark: &Mark) -> io::Result<()> {
        vfs::write_all(self.file.as_ref(), &mark.encode(), 0)
    }

    /// Makes the file exactly as long as a mark. Only under the lock.
    pub(crate) fn trim(&self) -> io::Result<()> {
        if self.file.len()? > MARK_BYTES as u64 { self.file.set_len(MARK_BYTES as u64) } else { Ok(()) }
    }
}

fn read_mark(file: &dyn VfsFile) -> io::Result<Stored> {
    // One byte more than a mark: a longer file is not one. A mark is written in one piece, so one read sees what there
    // is; if it does not, the mark is unreadable and recovery looks at the blocks.
    let mut bytes = [0; MARK_BYTES + 1];
    let read = file.read_at(&mut bytes, 0)?;
    Ok(match (read, Mark::decode(&bytes[..read])) {
        (0, _) => Stored::Missing,
        (_, Some(mark)) => Stored::Mark(mark),
        (_, None) => Stored::Unreadable,
    })
}

/// Reads the mark without the lock. A writer may be at it, so an unreadable one is read again a few times.
pub(crate) fn peek_mark(vfs: &dyn Vfs, dir: &Path) -> io::Result<Stored> {
    let file = match vfs.open(&dir.join(LOCK_FILE), Mode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Stored::Missing),
        Err(error) => return Err(error),
    };
    patiently(file.as_ref())
}

fn patiently(file: &dyn VfsFile) -> io::Result<Stored> {
    for _ in 0..16 {
        match read_mark(file)? {
            Stored::Unreadable => std::thread::yield_now(),
            found @ (Stored::Missing | Stored::Mark(_)) => return Ok(found),
        }
    }
    Ok(Stored::Unreadable)
}

/// Whether a process is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alive {
    /// It holds its file.
    Alive,
    /// It does not, or there is no such file.
    Dead,
}

/// Says that this process lives: an exclusive lock on a file named after its instance id, held until this value is
/// dropped or the process ends, however it ends. RULINGS 10.
pub struct Liveness {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    // Held for its lock.
    _file: Box<dyn VfsFile>,
}

impl Liveness {
    /// Makes and locks the file of `instance` in `dir`, which is made when absent.
    ///
    /// # Errors
    /// As the system gives them; `AlreadyExists` for an id that was used before.
    pub fn create(vfs: Arc<dyn Vfs>, dir: &Path, instance: InstanceId) -> io::Result<Self> {
        vfs.create_dir_all(dir)?;
        let path = dir.join(live_name(instance));
        if vfs.exists(&path)? {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        // Locked before it has its name, so that nobody can find it unlocked and reap it.
        let making = dir.join(format!("{instance}{LIVE_SUFFIX}.tmp"));
        let file = vfs.create_new(&making)?;
        if !file.try_lock()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        vfs.rename(&making, &path)?;
        Ok(Self { vfs, path, _file: file })
    }

    /// Whether the process of `instance` lives.
    ///
    /// # Errors
    /// As the system gives them; nothing is known then.
    pub fn probe(vfs: &dyn Vfs, dir: &Path, instance: InstanceId) -> io::Result<Alive> {
        probe(vfs, &dir.join(live_name(instance)))
    }

    /// Removes the files of the dead; says how many. Only under the commit lock (from [`crate::Machine::decide`]).
    ///
    /// # Errors
    /// As the system gives them.
    pub fn reap(vfs: &dyn Vfs, dir: &Path) -> io::Result<usize> {
        let mut removed = 0;
        for name in vfs.list(dir)?.iter().filter(|name| name.ends_with(LIVE_SUFFIX)) {
            let path = dir.join(name);
            match probe(vfs, &path)? {
                Alive::Alive => {}
                Alive::Dead => match vfs.remove(&path) {
                    Ok(()) => removed += 1,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                },
            }
        }
        Ok(removed)
    }
}

impl Drop for Liveness {
    fn drop(&mut self) {
        // A file that stays is found dead and reaped.
        let _ = self.vfs.remove(&self.path);
    }
}

fn live_name(instance: InstanceId) -> String {
    format!("{instance}{LIVE_SUFFIX}")
}

fn probe(vfs: &dyn Vfs, path: &Path) -> io::Result<Alive> {
    let file = match vfs.open(path, Mode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Alive::Dead),
        Err(error) => return Err(error),
    };
    // Shared, so that two who ask at once do not take each other for the living.
    Ok(if file.try_lock_shared()? { Alive::Dead } else { Alive::Alive })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::os::OsVfs;

    const ONE: InstanceId = InstanceId([1; 16]);
    const TWO: InstanceId = InstanceId([2; 16]);

    #[test]
    fn a_process_is_alive_while_it_holds_its_file_and_only_the_dead_are_reaped() {
        let dir = tempfile::tempdir().expect("a directory");
        let vfs: Arc<dyn Vfs> = Arc::new(OsVfs);
        let probe = |instance| Liveness::probe(&OsVfs, dir.path(), instance).expect("a probe");
        assert_eq!(probe(ONE), Alive::Dead);
        let live = Liveness::create(Arc::clone(&vfs), dir.path(), ONE).expect("a file");
        // As a killed process leaves it.
        OsVfs.create_new(&dir.path().join(live_name(TWO))).expect("a file");
        assert_eq!((probe(ONE), probe(TWO)), (Alive::Alive, Alive::Dead));
        assert!(Liveness::create(vfs, dir.path(), ONE).is_err(), "an id is used once");
        assert_eq!(Liveness::reap(&OsVfs, dir.path()).expect("a reap"), 1);
        assert_eq!(probe(ONE), Alive::Alive);
        drop(live);
        assert_eq!(probe(ONE), Alive::Dead);
        assert_eq!(OsVfs.list(dir.path()).expect("names"), Vec::<String>::new());
    }

    #[test]
    fn a_lock_file_that_was_replaced_is_opened_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let vfs: Arc<dyn Vfs> = Arc::new(OsVfs);
        let mut one = CommitLock::open(Arc::clone(&vfs), dir.path()).expect("a lock");
        std::fs::remove_file(dir.path().join(LOCK_FILE)).expect("removal");
        let mut two = CommitLock::open(vfs, dir.path()).expect("a lock");
        assert!(two.acquire(Millis(0)).is_ok());
        assert!(matches!(one.acquire(Millis(0)), Err(LockFailure::Busy)), "both lock the same file again");
        two.release().expect("release");
        assert!(one.acquire(Millis(0)).is_ok());
    }
}
