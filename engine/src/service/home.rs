//! The home directory: where things lie, and how they are written so that a crash leaves either all or nothing.
//!
//! ```text
//! journal/                     segments and the commit lock
//! live/<instance>.live         liveness locks
//! keys/capability.key          32 bytes, mode 0600
//! bundles/<version>/           bundles of admitted runs
//! evidence/<run>/              salt and parameters of a run: protected, deletable
//! snapshots/<sequence>.json    states, derived
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use journal::evidence::Store;
use journal::vfs::Vfs;
use protocol::capability::{CapabilityKey, Purpose};
use protocol::digest::{MacDigest, Sha256Digest};
use protocol::ids::RunId;

/// Largest parameter document, in bytes. Source: RULINGS 40.
pub(super) const MAX_PARAMETERS_BYTES: usize = 256 * 1024;

/// Largest state kept for a relative postcondition, in bytes.
pub(super) const MAX_BASELINE_BYTES: usize = 1024 * 1024;

/// The home's folders.
#[derive(Clone)]
pub struct Home {
    root: PathBuf,
    vfs: Arc<dyn Vfs>,
}

impl Home {
    /// A home at `root`, reached through `vfs`. Nothing is touched.
    #[must_use]
    pub fn new(root: &Path, vfs: Arc<dyn Vfs>) -> Self {
        Self { root: root.to_owned(), vfs }
    }

    /// The file system behind it.
    #[must_use]
    pub const fn vfs(&self) -> &Arc<dyn Vfs> {
        &self.vfs
    }

    /// The home itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The journal's folder.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }

    /// Liveness locks.
    #[must_use]
    pub fn live(&self) -> PathBuf {
        self.root.join("live")
    }

    /// Keys.
    #[must_use]
    pub fn keys(&self) -> PathBuf {
        self.root.join("keys")
    }

    /// Snapshots.
    #[must_use]
    pub fn snapshots(&self) -> PathBuf {
        self.root.join("snapshots")
    }

    /// Folder of all bundles.
    #[must_use]
    pub fn bundles(&self) -> PathBuf {
        self.root.join("bundles")
    }

    /// Folder of one bundle version.
    #[must_use]
    pub fn bundle(&self, version: Sha256Digest) -> PathBuf {
        self.bundles().join(version.to_string().replace(':', "-"))
    }

    fn evidence(&self, run: RunId) -> PathBuf {
        self.root.join("evidence").join(run.to_string())
    }

    /// Makes the folders, mode 0700.
    ///
    /// # Errors
    /// As the system gives them, with the folder in words.
    pub fn create(&self) -> Result<(), (&'static str, io::Error)> {
        for (what, folder) in [
            ("the home folder", self.root.clone()),
            ("the home's `live` folder", self.live()),
            ("the home's `keys` folder", self.keys()),
            ("the home's `snapshots` folder", self.snapshots()),
            ("the home's `bundles` folder", self.bundles()),
            ("the home's `evidence` folder", self.root.join("evidence")),
        ] {
            self.vfs.create_dir_all(&folder).map_err(|error| (what, error))?;
        }
        self.vfs.sync_dir(&self.root).map_err(|error| ("the home folder", error))
    }

    /// Writes a file durably, whole or not at all. Mode 0600.
    ///
    /// # Errors
    /// As the system gives them.
    pub fn write_durably(&self, folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
        Store::open(Arc::clone(&self.vfs), folder)?.put(name, bytes)
    }

    /// Reads a whole file of at most `limit` bytes.
    ///
    /// # Errors
    /// As the system gives them; `FileTooLarge` for a larger file, `NotFound` for none.
    pub fn read(&self, folder: &Path, name: &str, limit: usize) -> io::Result<Vec<u8>> {
        // Opening a store makes its folder, which a reader must not.
        if !self.vfs.exists(folder)? {
            return Err(io::ErrorKind::NotFound.into());
        }
        let found = Store::open(Arc::clone(&self.vfs), folder)?.get(name, limit as u64)?;
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Stores a run's salt and parameters, synced, before the event that binds them. Source: RULINGS 22 and 23.
    ///
    /// # Errors
    /// As the system gives them.
    pub fn store_inputs(&self, run: RunId, salt: &CapabilityKey, parameters: &[u8]) -> io::Result<()> {
        let store = Store::open(Arc::clone(&self.vfs), &self.evidence(run))?;
        store.put("salt", salt.expose())?;
        store.put("parameters.json", parameters)
    }

    /// Removes the inputs of a run that was never admitted. Best effort: a leftover is protected and harmless.
    pub fn discard_inputs(&self, run: RunId) {
        let folder = self.evidence(run);
        for name in ["salt", "parameters.json"] {
            // A leftover file is protected by its mode and bound to no event.
            let _ = self.vfs.remove(&folder.join(name));
        }
    }

    /// A run's salt.
    ///
    /// # Errors
    /// As the system gives them; `NotFound` once it was purged.
    pub fn salt(&self, run: RunId) -> io::Result<CapabilityKey> {
        let bytes = self.read(&self.evidence(run), "salt", CapabilityKey::BYTES)?;
        let bytes: [u8; CapabilityKey::BYTES] =
            bytes.try_into().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a salt is 32 bytes"))?;
        Ok(CapabilityKey::new(bytes))
    }

    /// A run's parameters, in canonical form.
    ///
    /// # Errors
    /// As the system gives them; `NotFound` once they were purged.
    pub fn parameters(&self, run: RunId) -> io::Result<Vec<u8>> {
        self.read(&self.evidence(run), "parameters.json", MAX_PARAMETERS_BYTES)
    }

    /// Keeps the state before a step, for one of its relative postconditions. Synced.
    ///
    /// # Errors
    /// As the system gives them.
    pub fn store_baseline(&self, run: RunId, step: u32, check: usize, bytes: &[u8]) -> io::Result<()> {
        self.write_durably(&self.evidence(run), &format!("baseline-{step}-{check}"), bytes)
    }

    /// The state before a step, as it was kept.
    ///
    /// # Errors
    /// As the system gives them; `NotFound` once it was purged.
    pub fn baseline(&self, run: RunId, step: u32, check: usize) -> io::Result<Vec<u8>> {
        self.read(&self.evidence(run), &format!("baseline-{step}-{check}"), MAX_BASELINE_BYTES)
    }
}

/// Salted digest of a protected value. Source: RULINGS 22.
#[must_use]
pub(super) fn protected_digest(salt: &CapabilityKey, bytes: &[u8]) -> MacDigest {
    salt.mac(Purpose::ProtectedDigest, bytes)
}
