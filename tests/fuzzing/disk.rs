//! Files in memory, for one process and without crashes: what is written is there. It keeps the size of the largest read,
//! which says what a reader allocates for bytes that it does not trust.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journal::vfs::{FileIdentity, FileSystem, Found, Mode, Vfs, VfsFile};

/// More than any journal of a fuzz run needs.
const FILE_BYTES_MAX: u64 = 16 << 20;

#[derive(Clone, Default)]
struct Content {
    names: BTreeMap<PathBuf, u64>,
    files: BTreeMap<u64, Vec<u8>>,
    directories: Vec<PathBuf>,
    last: u64,
    largest_read: usize,
}

/// Cheap to clone; clones are the same disk.
#[derive(Clone, Default)]
pub(super) struct Disk(Arc<Mutex<Content>>);

struct File {
    disk: Disk,
    inode: u64,
}

impl Disk {
    fn content(&self) -> MutexGuard<'_, Content> {
        // Nothing is half done when a holder panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another disk with the same files.
    pub(super) fn copy(&self) -> Self {
        let content = Content { largest_read: 0, ..self.content().clone() };
        Self(Arc::new(Mutex::new(content)))
    }

    /// Every file in order of names.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.content().names.keys().cloned().collect()
    }

    pub(super) fn bytes(&self, path: &Path) -> Vec<u8> {
        let content = self.content();
        let inode = content.names.get(path);
        inode.and_then(|inode| content.files.get(inode)).cloned().unwrap_or_default()
    }

    /// Writes a whole file, making it when absent.
    pub(super) fn put(&self, path: &Path, bytes: Vec<u8>) {
        let mut content = self.content();
        let inode = content.names.get(path).copied().unwrap_or_else(|| content.add(path));
        content.files.insert(inode, bytes);
    }

    pub(super) fn largest_read(&self) -> usize {
        self.content().largest_read
    }
}

impl Content {
    fn add(&mut self, path: &Path) -> u64 {
        self.last += 1;
        self.names.insert(path.to_owned(), self.last);
        self.files.insert(self.last, Vec::new());
        self.last
    }
}

impl Vfs for Disk {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn VfsFile>> {
        let mut content = self.content();
        let inode = match (content.names.get(path), mode) {
            (Some(inode), _) => *inode,
            (None, Mode::ReadWriteCreate) => content.add(path),
            (None, Mode::Read | Mode::ReadWrite) => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Box::new(File { disk: self.clone(), inode }))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        let mut content = self.content();
        if content.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = content.add(path);
        Ok(Box::new(File { disk: self.clone(), inode }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut content = self.content();
        let inode = content.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        content.names.insert(to.to_owned(), inode);
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut content = self.content();
        if content.names.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = *content.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        content.names.insert(to.to_owned(), inode);
        Ok(())
    }

    fn inspect(&self, path: &Path) -> io::Result<Found> {
        let content = self.content();
        let inode = content.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        let len = content.files.get(inode).map_or(0, |bytes| bytes.len() as u64);
        Ok(Found { is_file: true, mode: 0o600, len })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.content().names.remove(path).map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.content().directories.extend(path.ancestors().map(Path::to_owned));
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let content = self.content();
        if !content.directories.iter().any(|known| known == dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let names = content.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(names.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let content = self.content();
        Ok(content.names.contains_key(path) || content.directories.iter().any(|known| known == path))
    }

    fn identity(&self, path: &Path) -> io::Result<FileIdentity> {
        let inode = *self.content().names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(FileIdentity { device: 0, inode })
    }

    fn file_system(&self, _dir: &Path) -> io::Result<FileSystem> {
        Ok(FileSystem::Local)
    }
}

impl File {
    fn with<T>(&self, act: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        act(self.disk.content().files.entry(self.inode).or_default())
    }
}

impl VfsFile for File {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut content = self.disk.content();
        content.largest_read = content.largest_read.max(buf.len());
        let bytes = content.files.get(&self.inode).map_or(&[][..], Vec::as_slice);
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let read = buf.len().min(bytes.len() - from);
        buf[..read].copy_from_slice(&bytes[from..from + read]);
        Ok(read)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let end = offset.saturating_add(buf.len() as u64);
        if end > FILE_BYTES_MAX {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.with(|bytes| {
            let (from, to) = (offset as usize, end as usize);
            if bytes.len() < to {
                bytes.resize(to, 0);
            }
            bytes[from..to].copy_from_slice(buf);
        });
        Ok(buf.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.with(|bytes| bytes.len() as u64))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if len > FILE_BYTES_MAX {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.with(|bytes| bytes.resize(len as usize, 0));
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn try_lock_shared(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn unlock(&self) -> io::Result<()> {
        Ok(())
    }

    fn drop_cache(&self) -> io::Result<()> {
        Ok(())
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        Ok(FileIdentity { device: 0, inode: self.inode })
    }
}
