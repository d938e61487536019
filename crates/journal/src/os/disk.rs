//! The real disk.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt},
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use gyrus_process::{ProcessIdentity, open_regular};

use crate::{Disk, DiskFile, FileMetadata, Holder, LockMode, TimeReading, os::watch::FolderWatch};

/// Maximum number of files synced at the same time.
const SYNCS_AT_ONCE: usize = 8;

/// The machine's own file system.
#[derive(Debug)]
pub struct OsDisk;

impl Disk for OsDisk {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        open(
            OpenOptions::new()
                .read(true)
                .append(true)
                .create_new(true)
                .mode(0o600),
            path,
        )
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        // One that is missing its other end would block for ever.
        Ok(Box::new(OsFile(open_regular(path)?)))
    }

    fn open_lock(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        open(
            OpenOptions::new()
                .read(true)
                .append(true)
                .create(true)
                .mode(0o600),
            path,
        )
    }

    /// Syncs the files in parallel: the file system then commits its own journal once for many of
    /// them, and waits for one flush of the device instead of one after the other.
    fn sync_files(&self, files: &[&dyn DiskFile]) -> io::Result<()> {
        let next = AtomicUsize::new(0);
        let sync = || -> io::Result<()> {
            while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                file.sync()?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            // Without another thread the sync takes longer but is still done.
            let others: Vec<_> = (1..files.len().min(SYNCS_AT_ONCE))
                .filter_map(|_| thread::Builder::new().spawn_scoped(scope, sync).ok())
                .collect();
            let mut synced = sync();
            for other in others {
                let lost = || Err(io::Error::other("a thread that synced files panicked"));
                synced = synced.and(other.join().unwrap_or_else(|_| lost()));
            }
            synced
        })
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            // Names that are not text do not belong to a log.
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn metadata(&self, path: &Path) -> io::Result<FileMetadata> {
        fs::symlink_metadata(path).map(|metadata| from_os(&metadata))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn watch(&self, folder: &Path) -> io::Result<FolderWatch> {
        super::watch::watch(folder)
    }

    fn now(&self) -> TimeReading {
        static START: OnceLock<Instant> = OnceLock::new();
        let unix_ms = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
        };
        let mono = START.get_or_init(Instant::now).elapsed();
        TimeReading {
            unix_ms,
            mono_us: u64::try_from(mono.as_micros()).unwrap_or(u64::MAX),
        }
    }

    fn holder(&self) -> io::Result<Holder> {
        Ok(Holder {
            process: ProcessIdentity::current()?,
            since_ms: self.now().unix_ms,
            host: host()?,
        })
    }

    fn lives(&self, holder: &Holder) -> bool {
        host().is_ok_and(|host| host == holder.host) && holder.process.is_alive().unwrap_or(false)
    }
}

fn host() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/hostname")?
        .trim_end()
        .to_owned())
}

fn open(options: &OpenOptions, path: &Path) -> io::Result<Box<dyn DiskFile>> {
    Ok(Box::new(OsFile(options.open(path)?)))
}

fn from_os(metadata: &fs::Metadata) -> FileMetadata {
    let created = metadata.created().ok();
    let created = created.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    FileMetadata {
        created_ns: created
            .and_then(|since| i64::try_from(since.as_nanos()).ok())
            .filter(|ns| *ns > 0),
        inode: metadata.ino(),
        len: metadata.len(),
        links: metadata.nlink(),
        is_folder: metadata.is_dir(),
    }
}

#[derive(Debug)]
struct OsFile(File);

impl DiskFile for OsFile {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn metadata(&self) -> io::Result<FileMetadata> {
        self.0.metadata().map(|metadata| from_os(&metadata))
    }

    fn clear(&self) -> io::Result<()> {
        self.0.set_len(0)
    }

    fn try_lock(&self, mode: LockMode) -> io::Result<bool> {
        let locked = match mode {
            LockMode::Shared => self.0.try_lock_shared(),
            LockMode::Exclusive => self.0.try_lock(),
        };
        match locked {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}
