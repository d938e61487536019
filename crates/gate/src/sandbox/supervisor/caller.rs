//! The files and addresses that a supervised call names, taken from the process that makes it.
//!
//! Everything here is found by a thread's number, so it counts only if the thread still waits in
//! the call afterwards.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::PathBuf,
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, open, openat2},
    io::Errno,
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};

use super::linux::{SupervisedCall, read_memory};

/// Length of the longest path, as in `linux/limits.h`.
const PATH_BYTES: usize = 4_096;

/// Size of the pages of memory, which are present as a whole or not at all.
const PAGE_BYTES: usize = 4_096;

/// `PIDFD_THREAD` of Linux 6.9: a handle of a thread, not of its process.
const PIDFD_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(OFlags::EXCL.bits());

/// Duplicates a descriptor of the caller: both stand for the same open file then.
pub(super) fn descriptor(call: &SupervisedCall, argument: usize) -> Result<OwnedFd, Errno> {
    let number = int(call.arguments[argument]);
    if number < 0 {
        return Err(Errno::BADF);
    }
    let handle = match pidfd_open(pid(call.thread)?, PIDFD_THREAD) {
        Err(Errno::INVAL) => pidfd_open(pid(process(call)?)?, PidfdFlags::empty())?,
        handle => handle?,
    };
    pidfd_getfd(handle, number, PidfdGetfdFlags::empty())
}

/// Copies memory of the caller once.
pub(super) fn memory(
    call: &SupervisedCall,
    argument: usize,
    length: usize,
) -> Result<Vec<u8>, Errno> {
    let mut copy = vec![0; length];
    read_memory(call.thread, call.arguments[argument], &mut copy)?;
    Ok(copy)
}

/// Returns the flags of a descriptor of the caller and of its open file.
pub(super) fn flags(call: &SupervisedCall, argument: usize) -> Result<OFlags, Errno> {
    let number = int(call.arguments[argument]);
    let text = read_proc(call, &format!("fdinfo/{number}")).map_err(|_| Errno::BADF)?;
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    Ok(OFlags::from_bits_retain(flags.ok_or(Errno::BADF)?))
}

/// Number of the file behind a socket of the caller, where the socket itself is out of reach.
pub(super) fn socket_number(call: &SupervisedCall, argument: usize) -> Option<u64> {
    let number = int(call.arguments[argument]);
    let link = fs::read_link(format!("/proc/{}/fd/{number}", call.thread)).ok()?;
    let number = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
    number.parse().ok()
}

/// Returns the caller's umask.
pub(super) fn mask(call: &SupervisedCall) -> Result<Mode, Errno> {
    let text = read_proc(call, "status")?;
    let mask = text.lines().find_map(|line| line.strip_prefix("Umask:"));
    let mask = mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok());
    Ok(Mode::from_raw_mode(mask.ok_or(Errno::SRCH)?))
}

fn read_proc(call: &SupervisedCall, name: &str) -> Result<String, Errno> {
    fs::read_to_string(format!("/proc/{}/{name}", call.thread)).map_err(|_| Errno::SRCH)
}

/// Copies text of the caller once, up to the zero that ends it.
pub(super) fn text(call: &SupervisedCall, argument: usize, limit: usize) -> Result<Vec<u8>, Errno> {
    let mut text = Vec::new();
    let mut address = call.arguments[argument];
    while text.len() <= limit {
        // The next page may not be there.
        let page = PAGE_BYTES - usize::try_from(address % PAGE_BYTES as u64).unwrap_or(0);
        let mut part = vec![0; page];
        read_memory(call.thread, address, &mut part)?;
        if let Some(end) = part.iter().position(|byte| *byte == 0) {
            text.extend(&part[..end]);
            return if text.len() <= limit {
                Ok(text)
            } else {
                Err(Errno::NAMETOOLONG)
            };
        }
        text.extend(part);
        address = address.checked_add(page as u64).ok_or(Errno::FAULT)?;
    }
    Err(Errno::NAMETOOLONG)
}

/// Copies a path of the caller.
pub(super) fn path(call: &SupervisedCall, argument: usize) -> Result<Vec<u8>, Errno> {
    text(call, argument, PATH_BYTES)
}

/// Folder at which a relative path of the caller begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathBase {
    /// The caller's current folder.
    Current,
    /// The folder that one of the caller's descriptors stands for.
    Descriptor(i32),
}

impl PathBase {
    /// Reads the base from an argument.
    pub(super) fn of(call: &SupervisedCall, argument: usize) -> Self {
        match int(call.arguments[argument]) {
            libc::AT_FDCWD => Self::Current,
            number => Self::Descriptor(number),
        }
    }

    fn link(self) -> Result<String, Errno> {
        match self {
            Self::Current => Ok("cwd".to_owned()),
            Self::Descriptor(number @ 0..) => Ok(format!("fd/{number}")),
            Self::Descriptor(_) => Err(Errno::BADF),
        }
    }
}

/// An entry of a folder, which need not be there.
#[derive(Debug)]
pub(super) struct FolderEntry {
    pub(super) folder: OwnedFd,
    pub(super) name: OsString,
    /// The file's place, without links.
    pub(super) path: PathBuf,
}

/// Finds the folder in which the last part of a path is an entry. Links on the way are followed.
pub(super) fn entry(
    call: &SupervisedCall,
    base: PathBase,
    path: &[u8],
) -> Result<FolderEntry, Errno> {
    let end = path.iter().rposition(|byte| *byte != b'/');
    let path = &path[..end.ok_or(Errno::INVAL)? + 1];
    let start = path.iter().rposition(|byte| *byte == b'/');
    let (folder, name) = path.split_at(start.map_or(0, |slash| slash + 1));
    if matches!(name, b"." | b"..") {
        return Err(Errno::INVAL);
    }
    let folder = pin_at(call, base, folder, OFlags::DIRECTORY)?;
    let name = OsString::from_vec(name.to_owned());
    let path = location(&folder)?.join(&name);
    Ok(FolderEntry { folder, name, path })
}

/// Returns the place of a file, without links.
pub(super) fn location(handle: &OwnedFd) -> Result<PathBuf, Errno> {
    let link = rustix::fs::readlink(own_path(handle), Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(link.into_bytes())))
}

/// Returns a path by which this process alone reaches the file of a handle.
pub(super) fn own_path(handle: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

/// Opens the target of a caller's path, as a handle that can neither be read nor written. The
/// caller's root folder is ours: it lacks the right to change it.
pub(super) fn pin(call: &SupervisedCall, path: &[u8]) -> Result<OwnedFd, Errno> {
    pin_at(call, PathBase::Current, path, OFlags::empty())
}

/// Like [`pin`], from a base, with more flags. An empty path is the base itself.
pub(super) fn pin_at(
    call: &SupervisedCall,
    base: PathBase,
    path: &[u8],
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | flags;
    let open = |link: &str| {
        let link = format!("/proc/{}/{link}", call.thread);
        open(link, flags & !OFlags::NOFOLLOW, Mode::empty())
    };
    let (base, path) = match own_link(path) {
        // The link itself is nobody's to change.
        Some((_, b"")) if flags.contains(OFlags::NOFOLLOW) => return Err(Errno::PERM),
        Some((link, rest)) => (Some(open(&link)?), rest),
        None if path.starts_with(b"/") => (None, path),
        None => (Some(open(&base.link()?)?), path),
    };
    let path = OsStr::from_bytes(path);
    // Links of `/proc` would lead to what is ours.
    let resolve = ResolveFlags::NO_MAGICLINKS;
    match base {
        Some(base) if path.is_empty() => Ok(base),
        Some(base) => openat2(base, path, flags, Mode::empty(), resolve),
        None => openat2(CWD, path, flags, Mode::empty(), resolve),
    }
}

/// Splits a path through a link of `/proc` that means another thing to each process: the link,
/// below the process's folder, and the path from there.
fn own_link(path: &[u8]) -> Option<(String, &[u8])> {
    let path = [&b"/proc/self/"[..], b"/proc/thread-self/"]
        .into_iter()
        .find_map(|own| path.strip_prefix(own))?;
    let parts = match path {
        [b'f', b'd', b'/', ..] => 2,
        _ => 1,
    };
    let end = path
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
        .nth(parts - 1)
        .map_or(path.len(), |(at, _)| at);
    let (link, rest) = path.split_at(end);
    let link = std::str::from_utf8(link).ok()?;
    let is_known = match link.strip_prefix("fd/") {
        Some(number) => !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()),
        None => matches!(link, "cwd" | "root"),
    };
    // Else it would be absolute.
    let start = rest.iter().position(|byte| *byte != b'/');
    let rest = &rest[start.unwrap_or(rest.len())..];
    is_known.then(|| (link.to_owned(), rest))
}

/// The number of the process of a thread, for kernels that cannot open threads.
fn process(call: &SupervisedCall) -> Result<u32, Errno> {
    let path = PathBuf::from(format!("/proc/{}/status", call.thread));
    let text = fs::read_to_string(path).map_err(|_| Errno::SRCH)?;
    let number = text.lines().find_map(|line| line.strip_prefix("Tgid:"));
    let number = number.and_then(|number| number.trim().parse().ok());
    number.ok_or(Errno::SRCH)
}

fn pid(number: u32) -> Result<Pid, Errno> {
    let number = i32::try_from(number).map_err(|_| Errno::SRCH)?;
    Pid::from_raw(number).ok_or(Errno::SRCH)
}

/// Returns an argument that the kernel reads as `int`.
pub(super) fn int(argument: u64) -> i32 {
    // The kernel cuts it, too.
    let cut = argument as u32;
    cut.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::own_link;

    #[track_caller]
    fn check(path: &str, expected: Option<(&str, &str)>) {
        let found = own_link(path.as_bytes());
        let expected = expected.map(|(link, rest)| (link.to_owned(), rest.as_bytes()));
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn links_of_a_process_are_told_apart() {
        check("/proc/self/cwd/a/b", Some(("cwd", "a/b")));
        check("/proc/self/root//run/a", Some(("root", "run/a")));
        check("/proc/thread-self/fd/12/a", Some(("fd/12", "a")));
        check("/proc/self/fd/12", Some(("fd/12", "")));
        check("/proc/self/fd//12", None);
        check("/proc/self/fd/../cwd/a", None);
        check("/proc/self/fd/", None);
        check("/proc/self/exe", None);
        check("/proc/1/cwd/a", None);
        check("proc/self/cwd/a", None);
    }
}
