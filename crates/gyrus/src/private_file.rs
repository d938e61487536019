//! Files for the person alone, replaced as a whole.

use std::{
    fs::DirBuilder,
    io::{self, BufWriter, Write},
    os::unix::fs::DirBuilderExt,
    path::Path,
};

use tempfile::NamedTempFile;

use crate::failure::Failure;

pub(crate) type Draft = BufWriter<NamedTempFile>;

/// Writes a file that a person named, for this user alone; it appears under its name, by `keep`,
/// once it is complete. Returns its size in bytes, too.
pub(crate) fn write_whole<T>(
    path: &Path,
    write: impl FnOnce(&mut Draft) -> Result<T, Failure>,
    keep: impl FnOnce(NamedTempFile) -> io::Result<()>,
) -> Result<(T, u64), Failure> {
    let failed = |error: io::Error| {
        let failure =
            Failure::failed(format!("{} cannot be written", path.display())).because(&error);
        match error.kind() {
            io::ErrorKind::AlreadyExists => failure.hint("name a new file"),
            _ => failure,
        }
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut out = BufWriter::new(NamedTempFile::new_in(folder).map_err(failed)?);
    let written = write(&mut out)?;
    let kept = out.into_inner().map_err(io::IntoInnerError::into_error);
    let kept = kept.and_then(|file| {
        file.as_file().sync_all()?;
        let bytes = file.as_file().metadata()?.len();
        keep(file).map(|()| bytes)
    });
    Ok((written, kept.map_err(failed)?))
}

/// Writes a file that only this user may read, and its folder if there is none. Whoever reads it
/// meanwhile sees the old content or the new.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
