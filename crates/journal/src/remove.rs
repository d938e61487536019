//! Removing logs and blobs.
//!
//! A log disappears in one step, by losing its name; its files are removed afterwards, by the next
//! process that sweeps. See `blobs` for why sweeping is possible at any time.

use std::{
    io,
    path::{Path, PathBuf},
};

use gyrus_contract::BlobId;

use crate::{
    Disk, Error, LockMode, LockWait, LogName, Store, blobs, home::make_folder, lock, seal::Seal,
    segment::LogFiles,
};

impl Store {
    /// Removes a log that nobody holds, with its blobs and inbox. After a crash either all of it
    /// exists or nothing.
    pub fn remove(&self, name: &LogName) -> Result<(), Error> {
        let files = self.lockable(name)?;
        let _lock = lock::take(&files, LockWait::IfFree)?;
        let gone = self.set_aside(&files)?;
        self.discard(&gone);
        Ok(())
    }

    /// Removes the name of a log while its lock is held, and returns its folder, which the next
    /// sweep removes.
    pub(crate) fn set_aside(&self, files: &LogFiles) -> Result<PathBuf, Error> {
        let trash = self.home.root.join(".trash");
        make_folder(self.home.disk.as_ref(), &trash)?;
        let target = trash.join(gyrus_contract::time_ordered_uuid().to_string());
        let disk = &self.home.disk;
        disk.rename(&files.folder, &target)
            .map_err(Error::io("remove", &files.folder))?;
        let kind = self.home.root.join(files.name.kind());
        disk.sync_folder(&kind).map_err(Error::io("sync", kind))?;
        Ok(target)
    }

    /// Removes some of a log's blobs while nobody holds it, and returns their size in bytes.
    /// Entries that name them stay; reading the blobs then returns [`Error::BlobMissing`]. The disk
    /// space is free after [`Store::sweep`].
    pub fn drop_blobs(
        &self,
        name: &LogName,
        which: &dyn Fn(&BlobId) -> bool,
    ) -> Result<u64, Error> {
        let files = self.lockable(name)?;
        let _lock = lock::take(&files, LockWait::IfFree)?;
        // A blob that the seal lists is never missing, whenever the power goes.
        Seal::keep_blobs(&files, &|id| !which(id))?;
        let mut dropped = 0;
        for id in blobs::list(&files)?.into_iter().filter(which) {
            let path = files.blobs().join(id.to_string());
            dropped += files
                .disk
                .metadata(&path)
                .map_err(Error::io("look at", &path))?
                .len;
            files
                .disk
                .remove_file(&path)
                .map_err(Error::io("remove", path))?;
        }
        Ok(dropped)
    }

    /// Removes all private content of a log that nobody holds, and returns its size in bytes.
    pub fn drop_private(&self, name: &LogName) -> Result<u64, Error> {
        let files = self.lockable(name)?;
        let _lock = lock::take(&files, LockWait::IfFree)?;
        Ok(self.discard(&files.private()))
    }

    /// Removes blobs that no log has any more and the remains of interrupted removals and imports,
    /// and returns the number of bytes freed. Safe at any time, in parallel with everything else.
    pub fn sweep(&self) -> Result<u64, Error> {
        self.check_writable()?;
        let disk = self.home.disk.as_ref();
        let mut freed = 0;
        let trash = folders(disk, &self.home.root.join(".trash"))?;
        if !trash.is_empty() {
            // A removal that was not reported as successful may be undone by a power cut: the name
            // must be removed durably before the files that it led to.
            for kind in folders(disk, &self.home.root)? {
                let about = disk.metadata(&kind).map_err(Error::io("look at", &kind))?;
                if about.is_folder {
                    disk.sync_folder(&kind).map_err(Error::io("sync", kind))?;
                }
            }
        }
        for gone in trash {
            freed += self.discard(&gone);
        }
        for staged in folders(disk, &self.home.root.join(".incoming"))? {
            // A process that is still creating the log holds its lock.
            let abandoned = disk
                .open_lock(&staged.join("lock"))
                .and_then(|lock| Ok(lock.try_lock(LockMode::Exclusive)?.then_some(lock)));
            if let Ok(Some(_lock)) = abandoned {
                freed += self.discard(&staged);
            }
        }
        let shared = self.home.shared_blobs();
        make_folder(disk, &shared)?;
        Ok(freed + blobs::sweep(disk, &shared)?)
    }

    fn lockable(&self, name: &LogName) -> Result<LogFiles, Error> {
        self.check_writable()?;
        Ok(self.files(name))
    }

    /// Removes a folder that no name leads to, and returns the number of bytes freed. Files that
    /// cannot be removed stay for [`Store::sweep`].
    pub(crate) fn discard(&self, folder: &Path) -> u64 {
        let disk = self.home.disk.as_ref();
        let mut freed = 0;
        for name in disk.list(folder).unwrap_or_default() {
            let path = folder.join(name);
            match disk.metadata(&path) {
                Ok(metadata) if metadata.is_folder => freed += self.discard(&path),
                Ok(metadata) if disk.remove_file(&path).is_ok() && metadata.links == 1 => {
                    freed += metadata.len;
                }
                _ => {}
            }
        }
        let _ = disk.remove_folder(folder);
        freed
    }
}

fn folders(disk: &dyn Disk, folder: &Path) -> Result<Vec<PathBuf>, Error> {
    match disk.list(folder) {
        Ok(names) => Ok(names.iter().map(|name| folder.join(name)).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io("list", folder)(error)),
    }
}
