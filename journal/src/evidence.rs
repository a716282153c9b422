//! The evidence store: values that must not enter the journal, one file each, named by the caller (a salted digest
//! or a random name), so that the name says nothing about the content.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::vfs::{self, Mode, Vfs};

/// A directory of values.
#[derive(Clone)]
pub struct Store {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
}

const NAME_BYTES_MAX: usize = 200;

impl Store {
    /// A store in `dir`, which is made (durably) when absent.
    ///
    /// # Errors
    /// As the system gives them.
    pub fn open(vfs: Arc<dyn Vfs>, dir: &Path) -> io::Result<Self> {
        if !vfs.exists(dir)? {
            vfs.create_dir_all(dir)?;
            if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                vfs.sync_dir(parent)?;
            }
        }
        Ok(Self { vfs, dir: dir.to_owned() })
    }

    /// Stores `bytes` under `name`, replacing what was there. Durable on return.
    ///
    /// # Errors
    /// `InvalidInput` for a name that is not 1 to 200 of A-Z a-z 0-9 . _ : -, the first a letter or digit; else
    /// as the system gives them, and the value may or may not be there.
    pub fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(name)?;
        // `~` stands in no name, so a file in the making is never taken for a value.
        let making = self.dir.join(format!("{name}~{:016x}", nonce()?));
        let file = self.vfs.create_new(&making)?;
        let made = vfs::write_all(file.as_ref(), bytes, 0)
            .and_then(|()| file.sync_all())
            .and_then(|()| self.vfs.rename(&making, &path))
            .and_then(|()| self.vfs.sync_dir(&self.dir));
        if made.is_err() {
            let _ = self.vfs.remove(&making);
        }
        made
    }

    /// The value of that name, or `None`. Reads no more than `bytes_max`.
    ///
    /// # Errors
    /// `InvalidInput` as for [`Store::put`]; `FileTooLarge` beyond `bytes_max`; else as the system gives them.
    pub fn get(&self, name: &str, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
        let file = match self.vfs.open(&self.path(name)?, Mode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let len = file.len()?;
        if len > bytes_max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = vec![0; usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?];
        vfs::read_exact(file.as_ref(), &mut bytes, 0)?;
        Ok(Some(bytes))
    }

    /// Removes a value, durably; says whether there was one.
    ///
    /// # Errors
    /// `InvalidInput` as for [`Store::put`]; else as the system gives them.
    pub fn remove(&self, name: &str) -> io::Result<bool> {
        match self.vfs.remove(&self.path(name)?) {
            Ok(()) => self.vfs.sync_dir(&self.dir).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn path(&self, name: &str) -> io::Result<PathBuf> {
        let bytes = name.as_bytes();
        let valid = (1..=NAME_BYTES_MAX).contains(&bytes.len())
            && bytes[0].is_ascii_alphanumeric()
            && bytes
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-'));
        if valid { Ok(self.dir.join(name)) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }
}

fn nonce() -> io::Result<u64> {
    getrandom::u64().map_err(|_| io::ErrorKind::Other.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::vfs::fault::{FaultVfs, Operation, fail_nth};
    use crate::vfs::os::OsVfs;

    const MAX: u64 = 1 << 20;

    #[test]
    fn a_value_is_private_and_found_until_it_is_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::open(Arc::new(OsVfs), &dir.path().join("evidence")).expect("a store");
        assert_eq!(store.get("a:b", MAX).expect("a read"), None);
        store.put("a:b", b"value").expect("a write");
        store.put("a:b", b"newer").expect("a write");
        assert_eq!(store.get("a:b", MAX).expect("a read").as_deref(), Some(&b"newer"[..]));
        assert!(store.get("a:b", 4).is_err(), "beyond the limit");
        let mode = std::fs::metadata(dir.path().join("evidence/a:b")).expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!((store.remove("a:b").ok(), store.remove("a:b").ok()), (Some(true), Some(false)));
        assert_eq!(std::fs::read_dir(dir.path().join("evidence")).expect("names").count(), 0);
    }

    #[test]
    fn a_name_cannot_leave_the_store() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Store::open(Arc::new(OsVfs), dir.path()).expect("a store");
        for name in ["", ".", "..", "../x", "a/b", "/x", "a\0", ".hidden", "a~b", "é", &"a".repeat(201)] {
            assert_eq!(
                store.put(name, b"").map_err(|error| error.kind()),
                Err(io::ErrorKind::InvalidInput),
                "{name}"
            );
            assert!(store.get(name, MAX).is_err() && store.remove(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_failed_write_or_sync_leaves_no_value_of_that_name() {
        for nth in 0..2 {
            let dir = tempfile::tempdir().expect("a directory");
            let hook = fail_nth(nth, 5, |event| {
                matches!(event.operation, Operation::Write { .. } | Operation::Sync)
            });
            let store =
                Store::open(Arc::new(FaultVfs::new(Arc::new(OsVfs), hook)), dir.path()).expect("a store");
            assert!(store.put("name", b"value").is_err());
            assert_eq!(store.get("name", MAX).expect("a read"), None);
            assert_eq!(std::fs::read_dir(dir.path()).expect("names").count(), 0, "nothing is left over");
        }
    }
}
