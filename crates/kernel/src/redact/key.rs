//! The key from which secrets that are found in text get their names: the same in all runs of one
//! person, and useless to others.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

const FILE: &str = "redaction.key";

/// The error of a key that cannot be read or created.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file does not hold a key.
    #[error("{} is damaged: it must have 32 bytes", file.display())]
    Damaged { file: PathBuf },
    #[error("{} cannot be read", file.display())]
    Read { file: PathBuf, source: io::Error },
    /// No file can be created in the folder.
    #[error("the folder of the key cannot be used")]
    Unusable(#[source] io::Error),
}

/// Returns the key in a folder, creating it if it does not exist.
pub fn key_in(folder: &Path) -> Result<[u8; 32], KeyError> {
    let file = folder.join(FILE);
    if let Some(key) = read_key(&file)? {
        return Ok(key);
    }
    write_key(&file).map_err(KeyError::Unusable)?;
    // Another process may have created one first: the key on disk counts.
    read_key(&file)?.ok_or_else(|| KeyError::Unusable(io::ErrorKind::NotFound.into()))
}

fn read_key(file: &Path) -> Result<Option<[u8; 32]>, KeyError> {
    let (file, read) = (file.to_owned(), gyrus_process::read_regular(file));
    match read {
        Ok(bytes) => match bytes.try_into() {
            Ok(key) => Ok(Some(key)),
            Err(_) => Err(KeyError::Damaged { file }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(KeyError::Read { file, source }),
    }
}

/// Writes a new key atomically, unless a key exists. The file is created with mode 0600.
fn write_key(path: &Path) -> io::Result<()> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&key)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn the_key_is_made_once_and_for_the_person_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("redaction.key");
        write_key(&path).unwrap();
        let key = read_key(&path).unwrap().unwrap();
        write_key(&path).unwrap();
        assert_eq!(read_key(&path).unwrap(), Some(key));
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        fs::write(&path, "short").unwrap();
        assert!(read_key(&path).is_err());
    }
}
