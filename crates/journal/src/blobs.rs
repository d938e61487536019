//! Content too large for a line, stored by its hash.
//!
//! A log has a file of its own for every blob it names; the store shared by all logs holds a second
//! name for the same file, only so that equal content is stored once. A log never relies on the
//! shared name: it links first and looks afterwards, so the shared name may be removed at any
//! moment. Hence sweeping needs no lock and no waiting period: once no log links to a file, none
//! can come to rely on it through the removed name, and a log that linked before keeps the file.

use std::{
    io,
    path::{Path, PathBuf},
};

use gyrus_contract::BlobId;

use crate::{
    Disk, DiskFile, Error,
    home::make_folder,
    segment::{LogFiles, TEMPORARY_PREFIX, write_all},
};

/// Largest blob, in bytes.
pub(crate) const BLOB_LIMIT: usize = 256 << 20;

/// Returns the path of a blob in the shared store.
pub(crate) fn shared_path(shared: &Path, id: &BlobId) -> PathBuf {
    let name = id.to_string();
    shared.join(&name[..2]).join(name)
}

pub(crate) fn read(files: &LogFiles, id: &BlobId) -> Result<Vec<u8>, Error> {
    let path = files.blobs().join(id.to_string());
    // A blob may get its own name between two looks.
    let file = files
        .disk
        .open(&path)
        .or_else(|_| files.disk.open(&unsynced_path(files, id)))
        .or_else(|_| files.disk.open(&path));
    read_opened(files, id, &path, file)
}

/// Whether a log contains a blob, intact or damaged.
pub(crate) fn has(files: &LogFiles, id: &BlobId) -> bool {
    let path = files.blobs().join(id.to_string());
    [path, unsynced_path(files, id)]
        .iter()
        .any(|path| files.disk.metadata(path).is_ok())
}

/// Checks the hash of a blob. A blob that was dropped meanwhile passes.
pub(crate) fn check(files: &LogFiles, id: &BlobId) -> Result<(), Error> {
    match read(files, id) {
        Err(Error::BlobMissing { .. }) => Ok(()),
        read => read.map(drop),
    }
}

pub(crate) fn read_private(files: &LogFiles, id: &BlobId) -> Result<Vec<u8>, Error> {
    let path = files.private().join(id.to_string());
    read_opened(files, id, &path, files.disk.open(&path))
}

fn read_opened(
    files: &LogFiles,
    id: &BlobId,
    path: &Path,
    file: io::Result<Box<dyn DiskFile>>,
) -> Result<Vec<u8>, Error> {
    let file = file.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::BlobMissing {
            name: files.name.clone(),
            id: *id,
        },
        _ => Error::io("open", path)(error),
    })?;
    let bytes = read_whole(file.as_ref()).map_err(Error::io("read", path))?;
    if bytes.as_deref().map(BlobId::of) != Some(*id) {
        return Err(Error::BlobDamaged {
            name: files.name.clone(),
            id: *id,
        });
    }
    Ok(bytes.unwrap_or_default())
}

/// Reads a whole file; returns `None` if it is longer than any blob.
pub(crate) fn read_whole(file: &dyn DiskFile) -> io::Result<Option<Vec<u8>>> {
    let length = usize::try_from(file.metadata()?.len).unwrap_or(usize::MAX);
    if length > BLOB_LIMIT {
        return Ok(None);
    }
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut bytes[filled..], filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(Some(bytes))
}

/// A blob that is not on disk yet. A sync is the most expensive step, so that of many blobs is left
/// to [`finish`].
#[derive(Debug)]
pub(crate) struct UnsyncedBlob {
    id: BlobId,
    /// The open file: only the handle that wrote a file reliably reports that a sync failed.
    file: Box<dyn DiskFile>,
}

/// Returns the temporary name of a blob that is not on disk yet. A leftover is removed when the log
/// is taken next, so a blob was on disk before it got its final name.
fn unsynced_path(files: &LogFiles, id: &BlobId) -> PathBuf {
    files.blobs().join(format!("{TEMPORARY_PREFIX}{id}"))
}

/// Adds a blob to a log. It is on disk after [`finish`], and once the log's folder of blobs is
/// synced. It can be read at once.
pub(crate) fn put(
    files: &LogFiles,
    shared: &Path,
    unsynced: &mut Vec<UnsyncedBlob>,
    bytes: &[u8],
) -> Result<BlobId, Error> {
    check_size(bytes)?;
    let id = BlobId::of(bytes);
    if unsynced.iter().any(|blob| blob.id == id) {
        return Ok(id);
    }
    let path = files.blobs().join(id.to_string());
    let common = shared_path(shared, &id);
    // An existing blob is read again: a damaged copy must not be relied on.
    let linked = match files.disk.hard_link(&common, &path) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::AlreadyExists,
    };
    if linked {
        match read(files, &id) {
            Ok(_) => return Ok(id),
            // Nothing is lost with the damaged copy, which would otherwise be found before the new
            // one.
            Err(Error::BlobDamaged { .. }) => drop(files.disk.remove_file(&path)),
            Err(_) => {}
        }
        let _ = files.disk.remove_file(&common);
    }
    let temporary = unsynced_path(files, &id);
    // Removes what a failed attempt left behind.
    let _ = files.disk.remove_file(&temporary);
    let file = files
        .disk
        .create_new(&temporary)
        .map_err(Error::io("create", &temporary))?;
    if let Err(source) = write_all(file.as_ref(), bytes) {
        let _ = files.disk.remove_file(&temporary);
        return Err(Error::Io {
            what: "write the blob",
            path,
            source,
        });
    }
    unsynced.push(UnsyncedBlob { id, file });
    Ok(id)
}

/// Adds private content to a log. It is on disk on return, under no name that another log shares.
pub(crate) fn put_private(files: &LogFiles, bytes: &[u8]) -> Result<BlobId, Error> {
    check_size(bytes)?;
    let id = BlobId::of(bytes);
    if read_private(files, &id).is_ok() {
        return Ok(id);
    }
    let (disk, folder) = (files.disk.as_ref(), files.private());
    make_folder(disk, &folder)?;
    let path = folder.join(id.to_string());
    let temporary = folder.join(format!("{TEMPORARY_PREFIX}{id}"));
    // Removes what a failed attempt left behind.
    let _ = disk.remove_file(&temporary);
    let file = disk
        .create_new(&temporary)
        .map_err(Error::io("create", &temporary))?;
    if let Err(source) = write_all(file.as_ref(), bytes).and_then(|()| file.sync()) {
        let _ = disk.remove_file(&temporary);
        return Err(Error::io("write", path)(source));
    }
    disk.rename(&temporary, &path)
        .map_err(Error::io("put in place", &path))?;
    for folder in [&folder, &files.folder] {
        disk.sync_folder(folder)
            .map_err(Error::io("sync", folder))?;
    }
    Ok(id)
}

fn check_size(bytes: &[u8]) -> Result<(), Error> {
    if bytes.len() > BLOB_LIMIT {
        return Err(Error::TooLarge {
            what: "the blob",
            bytes: bytes.len() as u64,
            limit: BLOB_LIMIT as u64,
        });
    }
    Ok(())
}

/// Syncs blobs and names them; the names are on disk once the log's folder of blobs is synced.
pub(crate) fn finish(
    files: &LogFiles,
    shared: &Path,
    unsynced: &mut Vec<UnsyncedBlob>,
) -> Result<(), Error> {
    let blobs = std::mem::take(unsynced);
    let open: Vec<&dyn DiskFile> = blobs.iter().map(|blob| blob.file.as_ref()).collect();
    files
        .disk
        .sync_files(&open)
        .map_err(Error::io("sync a blob in", files.blobs()))?;
    for UnsyncedBlob { id, .. } in &blobs {
        let path = files.blobs().join(id.to_string());
        files
            .disk
            .rename(&unsynced_path(files, id), &path)
            .map_err(Error::io("put in place", path))?;
        share(files, shared, id);
    }
    Ok(())
}

/// Gives a log's blob its shared name. A failure only means that the content may be stored twice.
pub(crate) fn share(files: &LogFiles, shared: &Path, id: &BlobId) {
    let path = files.blobs().join(id.to_string());
    let common = shared_path(shared, id);
    for folder in [Some(shared), common.parent()].into_iter().flatten() {
        let _ = files.disk.create_folder(folder);
    }
    let _ = files.disk.hard_link(&path, &common);
}

/// Returns the ids of a log's blobs, sorted.
pub(crate) fn list(files: &LogFiles) -> Result<Vec<BlobId>, Error> {
    let folder = files.blobs();
    let names = files
        .disk
        .list(&folder)
        .map_err(Error::io("list", folder))?;
    let mut ids: Vec<BlobId> = names.iter().filter_map(|name| name.parse().ok()).collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Removes shared names of blobs that no log contains, and returns the bytes freed.
pub(crate) fn sweep(disk: &dyn Disk, shared: &Path) -> Result<u64, Error> {
    let mut freed = 0;
    for group in disk.list(shared).map_err(Error::io("list", shared))? {
        let group = shared.join(group);
        for name in disk.list(&group).map_err(Error::io("list", &group))? {
            let path = group.join(name);
            let Ok(metadata) = disk.metadata(&path) else {
                continue;
            };
            if metadata.links == 1 && !metadata.is_folder && disk.remove_file(&path).is_ok() {
                freed += metadata.len;
            }
        }
    }
    Ok(freed)
}
