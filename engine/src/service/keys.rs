//! The home's capability key: 32 random bytes that never leave the engine. Source: attended-contract §3, RULINGS 11.

use std::io;
use std::path::Path;

use journal::vfs::Vfs;
use protocol::capability::CapabilityKey;

use super::home::Home;
use super::ports::Ids;

const FILE: &str = "capability.key";

/// Why the key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// There is none.
    #[error("the capability key is missing; restore it from its backup")]
    Missing,
    /// It is a symbolic link or no regular file.
    #[error("the capability key is not a regular file; restore it from its backup")]
    NotAFile,
    /// Others may read it.
    #[error(
        "the capability key can be read by others; run `chmod 600` on it and consider who may have seen it"
    )]
    Exposed,
    /// It is not 32 bytes.
    #[error("the capability key has {length} bytes instead of 32; restore it from its backup")]
    Length {
        /// Bytes found.
        length: u64,
    },
    /// It is not the key that the journal registered.
    #[error(
        "the capability key is not the one that this home's journal registered; restore it from its backup"
    )]
    Foreign,
    /// The system refused.
    #[error("the capability key could not be used: {}", .0.kind())]
    Io(#[from] io::Error),
}

/// Whether anything stands in the key's place.
///
/// # Errors
/// As the system gives them.
pub(super) fn exists(home: &Home) -> io::Result<bool> {
    match home.vfs().inspect(&home.keys().join(FILE)) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Loads the key and refuses one that is missing, of another length, readable by others, or a symbolic link.
///
/// # Errors
/// [`KeyError`].
pub(super) fn load(home: &Home) -> Result<CapabilityKey, KeyError> {
    let path = home.keys().join(FILE);
    check(home.vfs().as_ref(), &path)?;
    let bytes = home.read(&home.keys(), FILE, CapabilityKey::BYTES)?;
    let length = bytes.len() as u64;
    bytes.try_into().map(CapabilityKey::new).map_err(|_| KeyError::Length { length })
}

fn check(vfs: &dyn Vfs, path: &Path) -> Result<(), KeyError> {
    let found = match vfs.inspect(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(KeyError::Missing),
        Err(error) => return Err(error.into()),
    };
    if !found.is_file {
        return Err(KeyError::NotAFile);
    }
    if found.mode & 0o077 != 0 {
        return Err(KeyError::Exposed);
    }
    if found.len != CapabilityKey::BYTES as u64 {
        return Err(KeyError::Length { length: found.len });
    }
    Ok(())
}

/// Makes the key, unless another process was first, and loads what is there: temporary file, sync, link into place
/// without replacing, directory sync. Call only while the journal says that no key was ever made.
///
/// # Errors
/// [`KeyError`].
pub(super) fn create(home: &Home, ids: &dyn Ids) -> Result<CapabilityKey, KeyError> {
    let (first, second) = (ids.fresh()?, ids.fresh()?);
    let mut bytes = [0_u8; CapabilityKey::BYTES];
    bytes[..16].copy_from_slice(&first);
    bytes[16..].copy_from_slice(&second);
    let folder = home.keys();
    let name: String = ids.fresh()?.iter().map(|byte| format!("{byte:02x}")).collect();
    let temporary = folder.join(format!("{name}.tmp"));
    let file = home.vfs().create_new(&temporary)?;
    journal::vfs::write_all(&*file, &bytes, 0)?;
    file.sync_all()?;
    drop(file);
    match home.vfs().link(&temporary, &folder.join(FILE)) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.into()),
    }
    home.vfs().remove(&temporary)?;
    home.vfs().sync_dir(&folder)?;
    load(home)
}
