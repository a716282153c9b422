//! A disk in memory that keeps apart what was written and what was synced. A power cut forgets, in a way that a number
//! chooses, what was not synced. Locks are as on the real disk.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use opjournal_journal::vfs::{FileIdentity, FileSystem, Found, Mode, Vfs, VfsFile};

const SECTOR_BYTES: usize = 512;

#[derive(Clone, Default)]
struct Content {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Handles that hold the exclusive lock, or share it.
    exclusive: Option<u64>,
    shared: Vec<u64>,
}

#[derive(Clone, Default)]
struct State {
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    files: BTreeMap<u64, Content>,
    directories: Vec<PathBuf>,
    last: u64,
}

/// Cheap to clone; clones are the same disk.
#[derive(Clone, Default)]
pub(crate) struct Disk(Arc<Mutex<State>>);

struct Handle {
    disk: Disk,
    inode: u64,
    number: u64,
}

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics inside the disk")
    }

    /// Another disk with the same content, all of it synced.
    pub(crate) fn copy(&self) -> Self {
        let mut state = self.state().clone();
        for content in state.files.values_mut() {
            content.durable.clone_from(&content.live);
            (content.exclusive, content.shared) = (None, Vec::new());
        }
        state.durable_names = state.names.clone();
        Self(Arc::new(Mutex::new(state)))
    }

    /// The disk after a power cut. `choice` says what of the unsynced bytes and names came through.
    pub(crate) fn after_power_cut(&self, mut choice: u64) -> Self {
        let disk = self.copy();
        let mut choose = |of: u64| {
            choice = choice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (choice >> 33) % of
        };
        let (old, mut state) = (self.state(), disk.state());
        if choose(2) == 0 {
            state.names = old.durable_names.clone();
        }
        for (inode, content) in &old.files {
            let mut kept = content.durable.clone();
            if choose(2) == 0 {
                kept.resize(content.live.len(), 0);
            }
            let sectors = content.live.len().div_ceil(SECTOR_BYTES);
            for sector in (0..sectors).filter(|_| choose(2) == 0) {
                let start = sector * SECTOR_BYTES;
                let end = (start + SECTOR_BYTES).min(content.live.len()).min(kept.len());
                if start < end {
                    kept[start..end].copy_from_slice(&content.live[start..end]);
                }
            }
            let new = Content { durable: kept.clone(), live: kept, ..Content::default() };
            state.files.insert(*inode, new);
        }
        state.durable_names = state.names.clone();
        drop(state);
        disk
    }

    pub(crate) fn names(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }

    pub(crate) fn bytes(&self, path: &Path) -> Vec<u8> {
        let state = self.state();
        state.files[&state.names[path]].live.clone()
    }

    pub(crate) fn set_bytes(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        let inode = state.names[path];
        state.files.entry(inode).or_default().live = bytes.to_vec();
    }

    pub(crate) fn flip(&self, path: &Path, bit: usize) {
        let mut bytes = self.bytes(path);
        bytes[bit / 8] ^= 1 << (bit % 8);
        self.set_bytes(path, &bytes);
    }

    fn handle(&self, state: &mut State, inode: u64) -> Box<dyn VfsFile> {
        state.last += 1;
        Box::new(Handle { disk: self.clone(), inode, number: state.last })
    }
}

impl Vfs for Disk {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn VfsFile>> {
        let mut state = self.state();
        let inode = match (state.names.get(path), mode) {
            (Some(inode), _) => *inode,
            (None, Mode::ReadWriteCreate) => {
                drop(state);
                return self.create_new(path);
            }
            (None, Mode::Read | Mode::ReadWrite) => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(self.handle(&mut state, inode))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        let mut state = self.state();
        if state.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.last += 1;
        let inode = state.last;
        state.names.insert(path.to_owned(), inode);
        state.files.insert(inode, Content::default());
        Ok(self.handle(&mut state, inode))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let inode = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), inode);
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        if state.names.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = *state.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), inode);
        Ok(())
    }

    fn inspect(&self, path: &Path) -> io::Result<Found> {
        let state = self.state();
        let inode = state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        let len = state.files.get(inode).map_or(0, |content| content.live.len() as u64);
        Ok(Found { is_file: true, mode: 0o600, len })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.state().names.remove(path).map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.state().directories.extend(path.ancestors().map(Path::to_owned));
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        if !state.directories.iter().any(|known| known == dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let names = state.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(names.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.durable_names.retain(|path, _| path.parent() != Some(dir));
        let names: Vec<_> = state
            .names
            .iter()
            .filter(|(path, _)| path.parent() == Some(dir))
            .map(|(path, inode)| (path.clone(), *inode))
            .collect();
        state.durable_names.extend(names);
        Ok(())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let state = self.state();
        Ok(state.names.contains_key(path) || state.directories.iter().any(|known| known == path))
    }

    fn identity(&self, path: &Path) -> io::Result<FileIdentity> {
        let inode = *self.state().names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(FileIdentity { device: 0, inode })
    }

    fn file_system(&self, _dir: &Path) -> io::Result<FileSystem> {
        Ok(FileSystem::Local)
    }
}

impl Handle {
    fn with<T>(&self, act: impl FnOnce(&mut Content) -> T) -> T {
        let mut state = self.disk.state();
        act(state.files.entry(self.inode).or_default())
    }
}

impl VfsFile for Handle {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|content| {
            let offset = (offset as usize).min(content.live.len());
            let bytes = buf.len().min(content.live.len() - offset);
            buf[..bytes].copy_from_slice(&content.live[offset..offset + bytes]);
            Ok(bytes)
        })
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.with(|content| {
            let end = offset as usize + buf.len();
            if content.live.len() < end {
                content.live.resize(end, 0);
            }
            content.live[offset as usize..end].copy_from_slice(buf);
            Ok(buf.len())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.with(|content| content.durable.clone_from(&content.live));
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.with(|content| content.live.len() as u64))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.with(|content| content.live.resize(len as usize, 0));
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        let number = self.number;
        Ok(self.with(|content| {
            let free = content.exclusive.is_none_or(|holder| holder == number)
                && content.shared.iter().all(|holder| *holder == number);
            if free {
                content.exclusive = Some(number);
            }
            free
        }))
    }

    fn try_lock_shared(&self) -> io::Result<bool> {
        let number = self.number;
        Ok(self.with(|content| {
            let free = content.exclusive.is_none_or(|holder| holder == number);
            if free {
                content.shared.push(number);
            }
            free
        }))
    }

    fn unlock(&self) -> io::Result<()> {
        let number = self.number;
        self.with(|content| {
            content.exclusive = content.exclusive.filter(|holder| *holder != number);
            content.shared.retain(|holder| *holder != number);
        });
        Ok(())
    }

    fn drop_cache(&self) -> io::Result<()> {
        Ok(())
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        Ok(FileIdentity { device: 0, inode: self.inode })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _ = self.unlock();
    }
}
