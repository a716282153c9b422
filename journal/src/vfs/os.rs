//! The real disk.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use protocol::ids::BootId;

use super::{FileIdentity, FileSystem, Found, Mode, Vfs, VfsFile};
use crate::lock;

/// The files of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsVfs;

struct OsFile(File);

const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_DIR: u32 = 0o700;

impl Vfs for OsVfs {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn VfsFile>> {
        let mut options = OpenOptions::new();
        options.read(true);
        match mode {
            Mode::Read => &mut options,
            Mode::ReadWrite => options.write(true),
            Mode::ReadWriteCreate => options.write(true).create(true).mode(PRIVATE_FILE),
        };
        // A pipe or a device in a file's place must not make anybody wait; for a regular file the flag means nothing.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        let file = options.open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(Box::new(OsFile(file)))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn VfsFile>> {
        let file =
            OpenOptions::new().read(true).write(true).create_new(true).mode(PRIVATE_FILE).open(path)?;
        Ok(Box::new(OsFile(file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    fn inspect(&self, path: &Path) -> io::Result<Found> {
        let metadata = std::fs::symlink_metadata(path)?;
        Ok(Found { is_file: metadata.is_file(), mode: metadata.mode() & 0o7777, len: metadata.len() })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn identity(&self, path: &Path) -> io::Result<FileIdentity> {
        identity(rustix::fs::CWD, path)
    }

    fn file_system(&self, dir: &Path) -> io::Result<FileSystem> {
        file_system(dir)
    }
}

impl VfsFile for OsFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(buf, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn len(&self) -> io::Result<u64> {
        self.0.metadata().map(|metadata| metadata.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn try_lock(&self) -> io::Result<bool> {
        lock::try_lock_file(&self.0)
    }

    fn try_lock_shared(&self) -> io::Result<bool> {
        lock::try_lock_file_shared(&self.0)
    }

    fn unlock(&self) -> io::Result<()> {
        lock::unlock_file(&self.0)
    }

    fn drop_cache(&self) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        rustix::fs::fadvise(&self.0, 0, None, rustix::fs::Advice::DontNeed)?;
        Ok(())
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        identity(&self.0, Path::new(""))
    }
}

/// Asks for nothing but the inode: since Linux 6.13, to ask a file for its times makes the next write to it change the
/// inode on disk, and the lock file is asked before and written in every commit.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn identity(dir: impl std::os::fd::AsFd, path: &Path) -> io::Result<FileIdentity> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let found = statx(dir, path, AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::INO)?;
    let device = u64::from(found.stx_dev_major) << 32 | u64::from(found.stx_dev_minor);
    Ok(FileIdentity { device, inode: found.stx_ino })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn identity(dir: impl std::os::fd::AsFd, path: &Path) -> io::Result<FileIdentity> {
    let found = if path.as_os_str().is_empty() { rustix::fs::fstat(dir)? } else { rustix::fs::stat(path)? };
    Ok(FileIdentity { device: found.st_dev as u64, inode: found.st_ino as u64 })
}

/// Judged by the type that `statfs` gives. RULINGS 39.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn file_system(dir: &Path) -> io::Result<FileSystem> {
    // The numbers of statfs(2); the kernel's type differs in width from machine to machine.
    let kind = rustix::fs::statfs(dir)?.f_type as u64 & 0xffff_ffff;
    Ok(match kind {
        0x6969 => FileSystem::Network("NFS"),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => FileSystem::Network("SMB"),
        0x0102_1997 => FileSystem::Network("9p"),
        0x00c3_6400 => FileSystem::Network("Ceph"),
        0x5346_414f | 0x6b41_4653 => FileSystem::Network("AFS"),
        0x6573_5546 => FileSystem::UserSpace,
        _ => FileSystem::Local,
    })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn file_system(_dir: &Path) -> io::Result<FileSystem> {
    Ok(FileSystem::Local)
}

/// The boot of this machine, as the kernel names it.
///
/// # Errors
/// As the system gives them; `InvalidData` if the kernel's text is not a boot id.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn boot_id() -> io::Result<BootId> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let digits: String = text.trim().chars().filter(|digit| *digit != '-').collect();
    format!("boot_{digits}").parse().map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_directory_is_not_on_the_network_and_the_boot_has_a_name() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(!matches!(OsVfs.file_system(dir.path()), Ok(FileSystem::Network(_)) | Err(_)));
        assert_eq!(boot_id().expect("a boot id"), boot_id().expect("a boot id"));
    }

    #[test]
    fn files_and_directories_are_private() {
        let dir = tempfile::tempdir().expect("a directory");
        let inner = dir.path().join("a/b");
        OsVfs.create_dir_all(&inner).expect("directories");
        OsVfs.create_new(&inner.join("f")).expect("a file");
        OsVfs.open(&inner.join("g"), Mode::ReadWriteCreate).expect("a file");
        let mode = |path: &Path| std::fs::metadata(path).expect("metadata").mode() & 0o777;
        assert_eq!((mode(&inner), mode(&inner.join("f")), mode(&inner.join("g"))), (0o700, 0o600, 0o600));
    }
}
