//! Watching folders with inotify: one instance and one thread for the whole process, however many
//! runs are parked in it.
//!
//! A watch tells that something may have changed, never what: its user has to look. So lost or
//! merged events do no harm as long as one of them arrives. Where the system has no instance or no
//! watch left, a tick twice a second tells the same: later, but truly.

use std::{
    collections::HashMap,
    fmt, io,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::Path,
    sync::{Arc, OnceLock},
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags},
    io::Errno,
};
use tokio::sync::watch;

/// Size of the buffer for events in bytes.
const EVENT_BYTES: usize = 16 << 10;

/// Interval at which a folder is listed that cannot be watched, short enough for two listings
/// before a stop kills.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Errors of a system without further inotify instances or watches.
const USED_UP: [Errno; 5] = [
    Errno::MFILE,
    Errno::NFILE,
    Errno::NOSPC,
    Errno::NOMEM,
    Errno::NOSYS,
];

/// Reports when a folder may have changed.
pub struct FolderWatch {
    changes: watch::Receiver<u64>,
    /// The source of changes, which ends when it is dropped with the watch.
    _feed: Box<dyn Send + Sync>,
}

impl fmt::Debug for FolderWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl FolderWatch {
    /// Creates a watch for changes that the holder of the sender announces.
    pub fn new(changes: watch::Receiver<u64>, feed: impl Send + Sync + 'static) -> Self {
        Self {
            changes,
            _feed: Box::new(feed),
        }
    }

    /// Waits until the folder may have changed since the last call, or since the watch was created.
    /// Dropping the future loses nothing.
    pub async fn changed(&mut self) {
        if self.changes.changed().await.is_err() {
            // The folder no longer exists, so nothing will ever change in it.
            std::future::pending().await
        }
    }
}

/// The process's inotify instance.
struct InotifyInstance {
    inotify: OwnedFd,
    folders: Mutex<HashMap<i32, watch::Sender<u64>>>,
}

/// The watch of one folder.
struct Feed {
    watcher: Arc<InotifyInstance>,
    descriptor: i32,
    changes: watch::Sender<u64>,
}

impl Drop for Feed {
    fn drop(&mut self) {
        let mut folders = self.watcher.folders.lock();
        // The remaining ones are the table's sender and this one.
        let last = self.changes.receiver_count() == 0;
        let same = folders
            .get(&self.descriptor)
            .is_some_and(|changes| changes.same_channel(&self.changes));
        if last && same {
            folders.remove(&self.descriptor);
            // Fails if the folder no longer exists, and its inotify watch with it.
            let _ = inotify::remove_watch(&self.watcher.inotify, self.descriptor);
        }
    }
}

/// Watches a folder for changes of its names and of its files' contents. Where the system has no
/// watch left, changes may be told a second late.
///
/// # Errors
/// Returns an error if the folder does not exist or may not be read.
pub fn watch(folder: &Path) -> io::Result<FolderWatch> {
    match watch_by_inotify(folder) {
        Err(error)
            if Errno::from_io_error(&error).is_some_and(|errno| USED_UP.contains(&errno)) =>
        {
            // What a watch would have refused.
            std::fs::read_dir(folder)?;
            by_the_clock()
        }
        watched => watched,
    }
}

/// Tries whether folders can be watched; otherwise they are looked at twice a second.
///
/// # Errors
/// Returns the reason that the system gives.
pub fn probe() -> io::Result<()> {
    let inotify = inotify::init(CreateFlags::CLOEXEC)?;
    inotify::add_watch(&inotify, "/", WatchFlags::DELETE_SELF)?;
    Ok(())
}

/// Returns a watch that reports a possible change twice a second.
fn by_the_clock() -> io::Result<FolderWatch> {
    static TICKS: OnceLock<watch::Sender<u64>> = OnceLock::new();
    static TICKING: Mutex<bool> = Mutex::new(false);
    let ticks = TICKS.get_or_init(|| watch::Sender::new(0));
    let mut ticking = TICKING.lock();
    if !*ticking {
        let thread = thread::Builder::new().name("gyrus-watch-ticks".to_owned());
        thread.spawn(|| {
            loop {
                thread::sleep(LOOK_EVERY);
                ticks.send_modify(|count| *count += 1);
            }
        })?;
        *ticking = true;
    }
    Ok(FolderWatch::new(ticks.subscribe(), ()))
}

fn watch_by_inotify(folder: &Path) -> io::Result<FolderWatch> {
    static WATCHER: OnceLock<Arc<InotifyInstance>> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    let watcher = {
        let _one = STARTING.lock();
        match WATCHER.get() {
            Some(watcher) => Arc::clone(watcher),
            None => Arc::clone(WATCHER.get_or_init({
                let watcher = InotifyInstance::start()?;
                move || watcher
            })),
        }
    };
    let events = WatchFlags::MODIFY
        | WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::MOVED_TO
        | WatchFlags::MOVED_FROM
        | WatchFlags::MOVE_SELF
        | WatchFlags::DELETE_SELF
        | WatchFlags::ONLYDIR;
    // The table is locked first, so that an event cannot come before its entry.
    let mut folders = watcher.folders.lock();
    let descriptor = inotify::add_watch(&watcher.inotify, folder, events)?;
    let changes = folders
        .entry(descriptor)
        .or_insert_with(|| watch::Sender::new(0))
        .clone();
    let receiver = changes.subscribe();
    drop(folders);
    Ok(FolderWatch::new(
        receiver,
        Feed {
            watcher,
            descriptor,
            changes,
        },
    ))
}

impl InotifyInstance {
    fn start() -> io::Result<Arc<Self>> {
        let inotify = inotify::init(CreateFlags::CLOEXEC)?;
        let watcher = Arc::new(Self {
            inotify,
            folders: Mutex::default(),
        });
        let reading = Arc::clone(&watcher);
        thread::Builder::new()
            .name("gyrus-watch".to_owned())
            .spawn(move || reading.read())?;
        Ok(watcher)
    }

    fn read(&self) {
        let mut buffer = [MaybeUninit::uninit(); EVENT_BYTES];
        let mut events = inotify::Reader::new(&self.inotify, &mut buffer);
        loop {
            match events.next() {
                Ok(event) => self.dispatch(event.wd(), event.events()),
                Err(Errno::INTR) => {}
                // Nothing is known any more, so every watch must check.
                Err(_) => return self.dispatch(-1, ReadFlags::QUEUE_OVERFLOW),
            }
        }
    }

    fn dispatch(&self, descriptor: i32, events: ReadFlags) {
        let mut folders = self.folders.lock();
        if events.contains(ReadFlags::QUEUE_OVERFLOW) {
            for changes in folders.values() {
                changes.send_modify(|count| *count += 1);
            }
        } else if let Some(changes) = folders.get(&descriptor) {
            changes.send_modify(|count| *count += 1);
        }
        if events.contains(ReadFlags::IGNORED) {
            folders.remove(&descriptor);
        }
    }
}
