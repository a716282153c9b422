//! The door to the disk. Every byte the journal reads or writes goes through [`Vfs`] and [`VfsFile`].
//!
//! What an implementation must keep apart: data that was written and data that was synced; a file's content
//! (synced by the file) and its name (synced by the directory). [`os`] is the real disk, [`fault`] breaks
//! another one on purpose.

pub mod fault;
pub mod os;

use std::io;
use std::path::Path;

/// How [`Vfs::open`] opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// For reading; the file must exist.
    Read,
    /// For reading and writing; the file must exist.
    ReadWrite,
    /// For reading and writing; made with mode 0600 when absent.
    ReadWriteCreate,
}

/// Tells two files apart, whatever their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// Device.
    pub device: u64,
    /// Number of the file on the device.
    pub inode: u64,
}

/// What kind of file system a directory is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// On this machine, as far as can be told.
    Local,
    /// In user space: locks and syncs are as good as the program behind it.
    UserSpace,
    /// On another machine; refused for writing. RULINGS 39.
    Network(&'static str),
}

/// What stands at a path, links not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Whether it is a regular file; a symbolic link is none.
    pub is_file: bool,
    /// Permission bits.
    pub mode: u32,
    /// Bytes in it.
    pub len: u64,
}

/// A file system.
pub trait Vfs: Send + Sync {
    /// Opens a file.
    ///
    /// # Errors
    /// As the system gives them; `NotFound` when the file is absent and not to be made.
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn VfsFile>>;

    /// Makes a new file, mode 0600, open for reading and writing.
    ///
    /// # Errors
    /// `AlreadyExists` when there is a file of that name; else as the system gives them.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VfsFile>>;

    /// Renames a file, replacing another. Durable only after [`Vfs::sync_dir`].
    ///
    /// # Errors
    /// As the system gives them.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file a second name, and fails rather than replace another. Durable only after [`Vfs::sync_dir`].
    ///
    /// # Errors
    /// `AlreadyExists` when the new name is taken; else as the system gives them.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// What stands at `path`, links not followed.
    ///
    /// # Errors
    /// As the system gives them.
    fn inspect(&self, path: &Path) -> io::Result<Found>;

    /// Removes a file. Durable only after [`Vfs::sync_dir`].
    ///
    /// # Errors
    /// As the system gives them.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes a directory, mode 0700, and those above it.
    ///
    /// # Errors
    /// As the system gives them.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Names in a directory, in no order. Names that are not UTF-8 are left out: none of ours is such.
    ///
    /// # Errors
    /// As the system gives them.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Syncs the names in a directory.
    ///
    /// # Errors
    /// As the system gives them; the names may then be lost.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Whether there is a file or directory of that name.
    ///
    /// # Errors
    /// As the system gives them.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// The identity of the file that has this name now.
    ///
    /// # Errors
    /// As the system gives them.
    fn identity(&self, path: &Path) -> io::Result<FileIdentity>;

    /// What a directory is on.
    ///
    /// # Errors
    /// As the system gives them.
    fn file_system(&self, dir: &Path) -> io::Result<FileSystem>;
}

/// An open file. Reads and writes name their offset, so one value serves many threads.
pub trait VfsFile: Send + Sync {
    /// Reads up to `buf.len()` bytes; 0 only at the end of the file.
    ///
    /// # Errors
    /// As the system gives them.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes up to `buf.len()` bytes, and says how many.
    ///
    /// # Errors
    /// As the system gives them.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize>;

    /// Syncs the content, and what is needed to read it.
    ///
    /// # Errors
    /// As the system gives them; nothing is known about the content then, and a second call that succeeds proves
    /// nothing.
    fn sync_data(&self) -> io::Result<()>;

    /// Syncs content and metadata.
    ///
    /// # Errors
    /// As for [`VfsFile::sync_data`].
    fn sync_all(&self) -> io::Result<()>;

    /// Bytes in the file.
    ///
    /// # Errors
    /// As the system gives them.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes.
    ///
    /// # Errors
    /// As for [`VfsFile::len`].
    fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }

    /// Cuts the file, or extends it with zeros.
    ///
    /// # Errors
    /// As the system gives them.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Takes the file's exclusive lock unless another open file has it. The lock ends with this value at the latest.
    ///
    /// # Errors
    /// As the system gives them; a lock held elsewhere is `Ok(false)`.
    fn try_lock(&self) -> io::Result<bool>;

    /// Takes a shared lock unless another open file has the exclusive one.
    ///
    /// # Errors
    /// As the system gives them; a lock held elsewhere is `Ok(false)`.
    fn try_lock_shared(&self) -> io::Result<bool>;

    /// Gives the lock back.
    ///
    /// # Errors
    /// As the system gives them.
    fn unlock(&self) -> io::Result<()>;

    /// Asks the system to forget its cached pages of this file, so that the next read comes from the disk.
    ///
    /// # Errors
    /// As the system gives them.
    fn drop_cache(&self) -> io::Result<()>;

    /// Which file this is.
    ///
    /// # Errors
    /// As the system gives them.
    fn identity(&self) -> io::Result<FileIdentity>;
}

/// Reads until `buf` is full or the file ends; says how many bytes were read.
pub(crate) fn read_up_to(file: &dyn VfsFile, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        match file.read_at(&mut buf[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Fills `buf`, or fails.
///
/// # Errors
/// `UnexpectedEof` when the file ends before; else as the system gives them.
pub fn read_exact(file: &dyn VfsFile, buf: &mut [u8], offset: u64) -> io::Result<()> {
    if read_up_to(file, buf, offset)? == buf.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Writes all of `buf`, or fails.
///
/// # Errors
/// `WriteZero` when the file takes no more; else as the system gives them. A part may have been written.
pub fn write_all(file: &dyn VfsFile, buf: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < buf.len() {
        match file.write_at(&buf[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => done += written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether an error says that the disk, the quota or the file may not grow.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
