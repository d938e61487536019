//! The file system of a confined process.
//!
//! First everything that will be changed or laid elsewhere is taken as a detached tree, as it is
//! outside; then the whole file system becomes read-only; then the trees are put in their places,
//! outer ones first, and binds over all of it. A place that a command could have replaced by a
//! link is never followed.

use std::{
    fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::symlink,
    },
    path::{Component, Path, PathBuf},
};

use gyrus_contract::{Containment, ResourceLimits};
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat},
    io::Errno,
    mount::{OpenTreeFlags, open_tree},
    process::{geteuid, getpid},
};

use super::{
    ConfineError, ConfinedProcess, Promise,
    confined::{is_absent, refused},
    devices,
    linux::{Attributes, MountReach, set_attributes},
    relayer::LayerBase,
    trees::{
        FollowLinks, at, attach, new_file_system, open_plain, overlay, read_only, take, take_with,
    },
};

/// Shared temporary folders replaced by the run's own. `/dev/shm` is one more, see [`devices`].
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// Folders in which services listen.
const SERVICES: [&str; 2] = ["/run", "/var/run"];

/// Files below [`SERVICES`] that `/etc/resolv.conf` may be a link to.
pub(super) const RESOLVERS: [&str; 4] = [
    "/run/systemd/resolve/stub-resolv.conf",
    "/run/systemd/resolve/resolv.conf",
    "/run/resolvconf/resolv.conf",
    "/run/NetworkManager/resolv.conf",
];

/// Files of `/proc` that describe the machine rather than processes, hidden from root.
const MACHINE: [&str; 4] = [
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
    "/proc/timer_list",
];

/// Process numbers below this one are used only once, see pid_namespaces(7).
const RESERVED_NUMBERS: u64 = 300;

/// Maximum number of times that a place may be replaced while something is mounted there.
const TRIES: usize = 8;

/// The thing to be put in a place.
enum Stand {
    Tree(OwnedFd),
    /// An empty folder or file.
    Nothing,
}

/// Tests whether this process can mount anything, in a place that nobody sees.
pub(super) fn try_one() -> io::Result<()> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = open_tree(CWD, c"/dev/null", flags)?;
    set_attributes(tree.as_fd(), c"", MountReach::One, Attributes::default())
}

/// Whether the paths can be used.
pub(super) fn check(containment: &Containment) -> Result<(), ConfineError> {
    let layers = containment
        .layered
        .iter()
        .flat_map(|layer| [&layer.lower, &layer.upper, &layer.work]);
    let binds = containment
        .binds
        .iter()
        .flat_map(|bind| [&bind.place, &bind.source]);
    let seen = containment.writable.iter().chain(&containment.read_only);
    let seen = seen.chain([&containment.temporary]).chain(binds);
    for path in seen.chain(&containment.hidden).chain(layers) {
        let plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
        let reason = if !path.is_absolute() {
            "it is not absolute"
        } else if !path.components().all(plain) {
            "it holds `..`"
        } else if path.parent().is_none() {
            "it is all there is"
        } else {
            continue;
        };
        let path = path.clone();
        return Err(ConfineError::Path { path, reason });
    }
    Ok(())
}

/// Arranges this process's mount namespace, which must be its own.
pub(super) fn arrange(
    containment: &Containment,
    base: Option<&mut LayerBase>,
    confined: &mut ConfinedProcess,
) -> Result<(), ConfineError> {
    let mut stands = trees(containment, confined)?;
    stands.extend(hidden(containment));
    let binds = bound(containment)?;
    let devices = devices::take(&containment.temporary)?;
    let proc = fresh_proc(&containment.limits, confined)?;
    let everything = Attributes {
        read_only: true,
        private: true,
        devices: false,
    };
    set_attributes(CWD, c"/", MountReach::Below, everything)
        .map_err(refused("making the file system read-only"))?;
    let empty = Empty::mount_over(base.as_deref())?;
    if let Some(proc) = proc {
        attach(&proc, Path::new("/proc"), FollowLinks::Followed)?;
    }
    // Outer before inner, and what hides after what it stands on.
    stands.sort_by(|(one, one_stand), (other, other_stand)| {
        let hides = |stand: &Stand| matches!(stand, Stand::Nothing);
        (one, hides(one_stand)).cmp(&(other, hides(other_stand)))
    });
    // The empty folder and file have to be taken before the devices cover them.
    let mut ready = Vec::with_capacity(stands.len());
    for (index, (place, stand)) in stands.iter().enumerate() {
        ready.push(match stand {
            Stand::Tree(_) => None,
            Stand::Nothing => {
                empty.like(place, hiding(place, &stands[index + 1..], containment))?
            }
        });
    }
    devices.attach()?;
    let mut own = Vec::new();
    for ((place, stand), ready) in stands.iter().zip(ready) {
        match (stand, ready) {
            (Stand::Tree(tree), _) => put(tree, place)?,
            (Stand::Nothing, Some(Void::Shared(tree))) => attach_hiding(&tree, place)?,
            (Stand::Nothing, Some(Void::Own(tree))) => {
                attach_hiding(&tree, place)?;
                own.push(tree);
            }
            // It is not there, or hidden with its folder.
            (Stand::Nothing, None) => {}
        }
    }
    for tree in own {
        read_only(&tree)?;
    }
    let places = stands.iter().map(|(place, _)| place.as_path());
    LayerBase::record(base, places.chain(binds.iter().map(|(place, _)| *place)));
    for (place, tree) in binds {
        let is_own = TEMPORARY.iter().any(|folder| place.starts_with(folder))
            && !containment
                .writable
                .iter()
                .any(|folder| place.starts_with(folder));
        if is_own {
            put(&tree, place)?
        } else {
            attach(&tree, place, FollowLinks::Refused)?
        }
    }
    Ok(())
}

/// Way in which a place is hidden that these stand behind.
fn hiding(place: &Path, behind: &[(PathBuf, Stand)], containment: &Containment) -> HideMethod {
    let holds_more = behind
        .iter()
        .any(|(inner, stand)| inner.starts_with(place) && matches!(stand, Stand::Tree(_)));
    let layers = containment.layered.iter().filter(|layer| layer.required);
    let seen = containment.writable.iter().chain(&containment.read_only);
    let mut seen = seen.chain(layers.map(|layer| &layer.lower));
    if holds_more || SERVICES.iter().any(|folder| place == Path::new(folder)) {
        HideMethod::Around
    } else if seen.any(|folder| place.starts_with(folder)) {
        HideMethod::Locked
    } else {
        HideMethod::Empty
    }
}

/// Returns trees that are mounted over others in the end, each with its place.
fn bound(containment: &Containment) -> Result<Vec<(&Path, OwnedFd)>, ConfineError> {
    let bound = containment.binds.iter().map(|bind| {
        let attributes = Attributes {
            read_only: !bind.writable,
            ..Attributes::default()
        };
        Ok((bind.place.as_path(), take_with(&bind.source, attributes)?))
    });
    bound.collect()
}

/// Returns all writable trees, as they are outside, with their places.
fn trees(
    containment: &Containment,
    confined: &mut ConfinedProcess,
) -> Result<Vec<(PathBuf, Stand)>, ConfineError> {
    let mut trees = Vec::new();
    for place in TEMPORARY
        .iter()
        .filter_map(|place| fs::canonicalize(place).ok())
    {
        trees.push((place, Stand::Tree(take(&containment.temporary)?)));
    }
    trees.dedup_by(|one, other| one.0 == other.0);
    for folder in &containment.writable {
        trees.push((folder.clone(), Stand::Tree(take(folder)?)));
    }
    for folder in &containment.read_only {
        let attributes = Attributes {
            read_only: true,
            ..Attributes::default()
        };
        let tree = take_with(folder, attributes)?;
        trees.push((folder.clone(), Stand::Tree(tree)));
    }
    for layer in &containment.layered {
        if !layer.lower.is_dir() {
            continue;
        }
        match overlay(layer) {
            Ok((tree, lock)) => {
                trees.push((layer.lower.clone(), Stand::Tree(tree)));
                confined.locks.push(lock);
            }
            Err(error) if layer.required => return Err(at("layering", &layer.lower)(error)),
            // Read-only then, as everything else.
            Err(_) => confined.unlayered.push(layer.lower.clone()),
        }
    }
    Ok(trees)
}

/// Returns the paths to hide, each with its real place.
fn hidden(containment: &Containment) -> Vec<(PathBuf, Stand)> {
    let machine = MACHINE.iter().filter(|_| geteuid().is_root());
    let fixed = SERVICES.iter().chain(machine).map(Path::new);
    let paths = fixed.chain(containment.hidden.iter().map(PathBuf::as_path));
    let mut paths: Vec<PathBuf> = paths
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect();
    let writable = |path: &Path, within: &Path| {
        let layers = containment.layered.iter().map(|layer| &layer.lower);
        let folders = containment.writable.iter().chain(&containment.read_only);
        let mut folders = folders.chain(layers);
        folders.any(|folder| path.starts_with(folder) && folder.starts_with(within))
    };
    let mut replaced: Vec<PathBuf> = TEMPORARY
        .iter()
        .chain(&["/dev", "/proc"])
        .filter_map(|place| fs::canonicalize(place).ok())
        .collect();
    if geteuid().is_root() {
        replaced.retain(|place| place != Path::new("/proc"));
    }
    paths.retain(|path| {
        let mut replaced = replaced.iter();
        !replaced.any(|place| path.starts_with(place) && !writable(path, place))
    });
    paths.sort();
    // What is in a hidden folder is hidden with it, unless a writable one stands there again.
    paths.dedup_by(|inner, outer| inner.starts_with(&*outer) && !writable(inner, outer));
    paths
        .into_iter()
        .map(|path| (path, Stand::Nothing))
        .collect()
}

/// Mounts a `/proc` of this PID namespace alone, read-only but for the limit on processes.
fn fresh_proc(
    limits: &ResourceLimits,
    confined: &mut ConfinedProcess,
) -> Result<Option<OwnedFd>, ConfineError> {
    if !getpid().is_init() {
        return Ok(None);
    }
    let proc = match new_file_system(c"proc", &[]) {
        Ok(proc) => proc,
        Err(error) => {
            confined.gap(
                Promise::Processes,
                format!("the machine's processes can be listed: a new /proc is refused ({error})"),
            );
            return Ok(None);
        }
    };
    let highest = limits.processes.saturating_add(RESERVED_NUMBERS + 1);
    let set = openat(
        &proc,
        c"sys/kernel/pid_max",
        OFlags::WRONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .and_then(|file| rustix::io::write(&file, highest.to_string().as_bytes()));
    // Too many for this machine is not an error; and other users than root have a limit of their own.
    if matches!(set, Err(error) if error != Errno::INVAL) && geteuid().is_root() {
        confined.gap(
            Promise::Limits,
            "the number of root's processes is not limited: that takes Linux 6.14",
        );
    }
    read_only(&proc)?;
    Ok(Some(proc))
}

/// Attaches a tree; its place is created if the folder around it was replaced.
fn put(tree: &OwnedFd, place: &Path) -> Result<(), ConfineError> {
    if matches!(open_plain(place), Err(Errno::NOENT)) {
        fs::create_dir_all(place).map_err(at("making a place for", place))?;
    }
    attach(tree, place, FollowLinks::Refused)
}

/// Attaches an empty thing, unless the path to hide was covered by earlier mounts or is gone:
/// services come and go.
fn attach_hiding(empty: &OwnedFd, place: &Path) -> Result<(), ConfineError> {
    let is_folder = |data: Stat| FileType::from_raw_mode(data.st_mode) == FileType::Directory;
    for _ in 0..TRIES {
        match open_plain(place).and_then(fstat).map(is_folder) {
            Err(error) if is_absent(error) => return Ok(()),
            // Of another kind than it was: a command has put it there, into what is its own.
            Ok(kind) if kind != is_folder(fstat(empty).map_err(at("hiding", place))?) => {
                return Ok(());
            }
            _ => {}
        }
        match attach(empty, place, FollowLinks::Refused) {
            // Removed in between; another may stand there by now.
            Err(ConfineError::At { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            attached => return attached,
        }
    }
    attach(empty, place, FollowLinks::Refused)
}

/// An empty thing that hides a path.
enum Void {
    /// A read-only part of the shared empty file system.
    Shared(OwnedFd),
    /// A separate file system, in which places can be created.
    Own(OwnedFd),
}

/// Method by which a path is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HideMethod {
    /// An empty file or folder, which programs take for a person's without keys.
    Empty,
    /// An unreadable file or folder: a program that records a folder, as git does, must not record
    /// that its files are empty or gone.
    Locked,
    /// A folder of its own, in which trees can still be mounted and services be reached.
    Around,
}

/// A file system with folders and files that are empty, or locked. Pieces can be taken of it while it is
/// attached, so it stands at `/dev` until the devices do.
struct Empty;

impl Empty {
    const PLACE: &str = "/dev";

    /// Mounts an empty file system over the folder in which layers are made, if there is one.
    fn mount_over(base: Option<&LayerBase>) -> Result<Self, ConfineError> {
        if let Some(base) = base {
            base.attach_at(Path::new(Self::PLACE))?;
        }
        let system = (|| {
            let options = [("size", "4k"), ("nr_inodes", "8"), ("mode", "0555")];
            let system = new_file_system(c"tmpfs", &options)?;
            let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
            for (folder, file, mode) in [
                (c"folder", c"file", 0o555),
                (c"locked-folder", c"locked-file", 0),
            ] {
                mkdirat(&system, folder, Mode::from_raw_mode(mode))?;
                openat(&system, file, flags, Mode::from_raw_mode(mode & 0o444))?;
            }
            rustix::io::Result::Ok(system)
        })()
        .map_err(refused("making an empty file system"))?;
        read_only(&system)?;
        attach(&system, Path::new(Self::PLACE), FollowLinks::Followed)?;
        Ok(Self)
    }

    /// Returns an empty thing of the kind that stands at `place`; `None` if the place is empty.
    fn like(&self, place: &Path, hiding: HideMethod) -> Result<Option<Void>, ConfineError> {
        let kind = open_plain(place)
            .and_then(fstat)
            .map(|data| FileType::from_raw_mode(data.st_mode));
        let name = match kind {
            Ok(FileType::Directory) if hiding == HideMethod::Around => {
                return Ok(Some(Void::Own(services(place)?)));
            }
            Ok(FileType::Directory) if hiding == HideMethod::Locked => "locked-folder",
            Ok(_) if hiding == HideMethod::Locked => "locked-file",
            Ok(FileType::Directory) => "folder",
            Ok(_) => "file",
            Err(error) if is_absent(error) => return Ok(None),
            Err(error) => return Err(at("hiding", place)(error)),
        };
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        open_tree(CWD, Path::new(Self::PLACE).join(name), flags)
            .map(|tree| Some(Void::Shared(tree)))
            .map_err(at("hiding", place))
    }
}

/// Returns an empty folder, but for the links in `folder` (some systems keep the way to their
/// programs there) and the addresses of name servers.
fn services(folder: &Path) -> Result<OwnedFd, ConfineError> {
    let copied = (|| {
        let options = [("size", "1m"), ("nr_inodes", "4096"), ("mode", "0755")];
        let system = new_file_system(c"tmpfs", &options)?;
        let root = PathBuf::from(format!(
            "/proc/self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(&system)
        ));
        for entry in fs::read_dir(folder)?.filter_map(Result::ok).take(1024) {
            if let Ok(target) = fs::read_link(entry.path()) {
                symlink(target, root.join(entry.file_name()))?;
            }
        }
        for file in RESOLVERS.map(Path::new) {
            let (Ok(inner), Ok(text)) = (file.strip_prefix(folder), fs::read(file)) else {
                continue;
            };
            let copy = root.join(inner);
            fs::create_dir_all(copy.parent().unwrap_or(&root))?;
            fs::write(copy, text)?;
        }
        io::Result::Ok(system)
    })();
    copied.map_err(at("emptying", folder))
}
