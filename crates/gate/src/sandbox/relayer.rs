//! New layers for a sandbox that is used again.
//!
//! The layer over a workspace takes the changes of one command, so the next one needs another.
//! Whatever mounts something must be outside of Landlock's domains and have its privileges: a thread
//! of the keeper's process that was started before these were given up, and which no command can
//! reach. It holds the real folder below the layer and the folder in which layers are made; both are
//! covered for everybody else.

use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    sync::mpsc::{self, Receiver, Sender},
    thread,
};

use gyrus_contract::{Containment, Layer, Relayer};
use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat2},
    io::Errno,
    mount::{
        FsPickFlags, OpenTreeFlags, UnmountFlags, fsconfig_reconfigure, fspick, open_tree, unmount,
    },
};

use super::{
    ConfineError,
    trees::{FollowLinks, attach, open_plain, overlay, take},
};

/// Memory for the thread's stack.
const STACK_BYTES: usize = 128 * 1024;

/// Depth of a layer's changes below the folder of the layers.
const BELOW_POOL: usize = 2;

/// Open folders from which layers are made, as their paths become covered.
pub(super) struct LayerBase {
    layer: Layer,
    lower: OwnedFd,
    /// The folder of the layers, not attached yet.
    pool: OwnedFd,
    pool_path: PathBuf,
    /// Outermost places within the layered folder at which another file system is mounted.
    inner: Vec<PathBuf>,
}

impl LayerBase {
    /// Opens the folders of the layer that a containment requires; `None` if there is no layer.
    pub(super) fn hold(containment: &Containment) -> Result<Option<Self>, ConfineError> {
        let Some(layer) = containment.layered.iter().find(|layer| layer.required) else {
            return Ok(None);
        };
        let Some(pool) = layer.upper.ancestors().nth(BELOW_POOL) else {
            return Ok(None);
        };
        let lower = open_plain(&layer.lower).map_err(super::trees::at("opening", &layer.lower))?;
        Ok(Some(Self {
            pool: take(pool)?,
            pool_path: pool.to_owned(),
            layer: layer.clone(),
            lower,
            inner: Vec::new(),
        }))
    }

    /// Attaches the folder of the layers at a place that is about to be covered.
    pub(super) fn attach_at(&self, place: &Path) -> Result<(), ConfineError> {
        attach(&self.pool, place, FollowLinks::Followed)
    }

    /// Records the mount points within the layered folder, outer ones first.
    pub(super) fn record<'a>(base: Option<&mut Self>, places: impl Iterator<Item = &'a Path>) {
        let Some(Self { layer, inner, .. }) = base else {
            return;
        };
        for place in places {
            let is_inner = place.starts_with(&layer.lower) && place != layer.lower;
            if is_inner && !inner.iter().any(|outer| place.starts_with(outer)) {
                inner.push(place.to_owned());
            }
        }
    }

    /// Starts the thread that replaces layers. `rules` returns those of Landlock for a command.
    pub(super) fn serve<E: std::error::Error + Send + Sync + 'static>(
        self,
        rules: impl Fn() -> Result<Option<OwnedFd>, E> + Send + 'static,
    ) -> io::Result<Box<dyn Relayer>> {
        let (orders, incoming) = mpsc::channel();
        let (outgoing, replies) = mpsc::channel();
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        thread.spawn(move || {
            let mut current = None;
            for order in incoming {
                let reply = match order {
                    LayerOrder::Replace(layer) => self.replace(&layer).map(|lock| {
                        current = Some(lock);
                        rules()
                    }),
                    LayerOrder::Refresh => self.refresh().map(|()| Ok(None)),
                };
                let reply = reply.and_then(|rules| rules.map_err(io::Error::other));
                if outgoing.send(reply).is_err() {
                    break;
                }
            }
            drop(current);
        })?;
        Ok(Box::new(LayerThread { orders, replies }))
    }

    /// Replaces the present layer by a new one. Returns the lock on it.
    fn replace(&self, layer: &Layer) -> io::Result<File> {
        if layer.lower != self.layer.lower {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (upper, work) = (self.in_pool(&layer.upper)?, self.in_pool(&layer.work)?);
        let (tree, lock) = overlay(&Layer {
            lower: by_number(&self.lower),
            upper: by_number(&upper),
            work: by_number(&work),
            required: true,
        })?;
        let mut inner = Vec::with_capacity(self.inner.len());
        for place in &self.inner {
            match clone_of(place) {
                Ok(clone) => inner.push((place, clone)),
                // A hidden file that is no longer there.
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        unmount(&layer.lower, UnmountFlags::DETACH)?;
        attach(&tree, &layer.lower, FollowLinks::Refused).map_err(io::Error::other)?;
        for (place, clone) in inner {
            attach(&clone, place, FollowLinks::Refused).map_err(io::Error::other)?;
        }
        Ok(lock)
    }

    /// Makes the layer look up missing files of the folder below again: somebody outside may have
    /// made one.
    fn refresh(&self) -> io::Result<()> {
        let system = fspick(CWD, &self.layer.lower, FsPickFlags::FSPICK_CLOEXEC)?;
        Ok(fsconfig_reconfigure(&system)?)
    }

    fn in_pool(&self, path: &Path) -> io::Result<OwnedFd> {
        let below = path.strip_prefix(&self.pool_path);
        let below = below.map_err(|_| io::ErrorKind::InvalidInput)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        Ok(openat2(&self.pool, below, flags, Mode::empty(), resolve)?)
    }
}

/// Returns a detached copy of the mounts at a place, with all below.
fn clone_of(place: &Path) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(open_plain(place)?, c"", flags)
}

fn by_number(opened: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", opened.as_raw_fd()).into()
}

enum LayerOrder {
    Replace(Layer),
    Refresh,
}

/// The handle to the thread that replaces layers.
#[derive(Debug)]
struct LayerThread {
    orders: Sender<LayerOrder>,
    replies: Receiver<io::Result<Option<OwnedFd>>>,
}

impl LayerThread {
    fn order(&self, order: LayerOrder) -> io::Result<Option<OwnedFd>> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        self.orders.send(order).map_err(|_| gone())?;
        self.replies.recv().map_err(|_| gone())?
    }
}

impl Relayer for LayerThread {
    fn replace(&self, layer: &Layer) -> Result<Option<OwnedFd>, String> {
        self.order(LayerOrder::Replace(layer.clone()))
            .map_err(|error| format!("the layer over `{}`: {error}", layer.lower.display()))
    }

    fn refresh(&self) {
        // Without it a command does not see some files that others make meanwhile.
        let _ = self.order(LayerOrder::Refresh);
    }
}
