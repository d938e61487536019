//! What a supervised call names, taken from the process that makes it.
//!
//! Everything here is found by a thread's number, so it counts only if the thread still waits in
//! the call afterwards.

use std::{
    ffi::OsStr,
    fs,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::PathBuf,
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, open, openat2},
    io::Errno,
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};

use super::linux::{Call, read_memory};

/// `PIDFD_THREAD` of Linux 6.9: a handle of a thread, not of its process.
const PIDFD_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(OFlags::EXCL.bits());

/// Duplicates a descriptor of the caller: both stand for the same open file then.
pub(super) fn descriptor(call: &Call, argument: usize) -> Result<OwnedFd, Errno> {
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
pub(super) fn memory(call: &Call, argument: usize, length: usize) -> Result<Vec<u8>, Errno> {
    let mut copy = vec![0; length];
    read_memory(call.thread, call.arguments[argument], &mut copy)?;
    Ok(copy)
}

/// Whether a descriptor of the caller is closed when it starts another program.
pub(super) fn is_closed_on_exec(call: &Call, argument: usize) -> Result<bool, Errno> {
    let number = int(call.arguments[argument]);
    let path = format!("/proc/{}/fdinfo/{number}", call.thread);
    let text = fs::read_to_string(path).map_err(|_| Errno::BADF)?;
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    Ok(OFlags::from_bits_retain(flags.ok_or(Errno::BADF)?).contains(OFlags::CLOEXEC))
}

/// Opens what a path of the caller leads to, as a handle that can neither be read nor written. The
/// caller's root folder is ours: it lacks the right to change it.
pub(super) fn pin(call: &Call, path: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let open = |link: &str| {
        let link = format!("/proc/{}/{link}", call.thread);
        open(link, flags, Mode::empty())
    };
    let (base, path) = match own_link(path) {
        Some((link, rest)) => (Some(open(&link)?), rest),
        None if path.starts_with(b"/") => (None, path),
        None => (Some(open("cwd")?), path),
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
fn process(call: &Call) -> Result<u32, Errno> {
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

/// An argument that the kernel reads as `int`.
pub(super) fn int(argument: u64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "the kernel cuts it, too")]
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
