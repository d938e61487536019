//! The table of what a system refuses: each of its errors in words, and what a person can do. Every
//! error that a command ends with asks it, so one cause is told in one way wherever it is met.

use std::{error::Error, io, sync::Arc};

use rustix::io::Errno;

/// Number of the first errors, which may be over later.
const WANTS: usize = 7;

/// Errors of the system with a description, and advice where there is any.
const CAUSES: [(Errno, &str, &str); 16] = [
    (
        Errno::NOSPC,
        "the disk is full",
        "make room on the disk, then try again",
    ),
    (
        Errno::DQUOT,
        "your quota on this disk is used up",
        "make room on the disk, then try again",
    ),
    (
        Errno::FBIG,
        "the file would be larger than is allowed",
        "raise the limit: ulimit -f",
    ),
    (
        Errno::MFILE,
        "this process has too many files open",
        "raise the limit: ulimit -n",
    ),
    (
        Errno::NFILE,
        "this machine has too many files open",
        "end what holds them, then try again",
    ),
    (
        Errno::NOMEM,
        "there is not enough memory",
        "end what uses it, then try again",
    ),
    (
        Errno::AGAIN,
        "no thread or process more may begin here",
        "raise the limits: ulimit -u, ulimit -v",
    ),
    (
        Errno::ROFS,
        "the disk is mounted read-only",
        "name a place on another disk",
    ),
    (
        Errno::ACCESS,
        "permission is denied",
        "look whose it is: ls -ld",
    ),
    (
        Errno::PERM,
        "permission is denied",
        "look whose it is and how it is mounted: ls -ld, findmnt",
    ),
    (
        Errno::EXIST,
        "there is something of this name already",
        "name another one, or remove it first",
    ),
    (Errno::NOENT, "it does not exist", ""),
    (Errno::NOTDIR, "a part of the path is a file", ""),
    (Errno::ISDIR, "it is a folder", ""),
    (Errno::NAMETOOLONG, "the name is too long", ""),
    (Errno::LOOP, "its links lead in a circle", ""),
];

pub(crate) struct SystemCause {
    pub(crate) words: &'static str,
    pub(crate) next: Option<&'static str>,
    /// Whether something is wanting, which may be there later: whoever tries again needs no other
    /// words.
    pub(crate) is_want: bool,
}

/// Returns an error of the system in words; `None` for one that is none of the table.
pub(crate) fn of(error: &(dyn Error + 'static)) -> Option<SystemCause> {
    let shared = || error.downcast_ref::<Arc<io::Error>>().map(|error| &**error);
    let error = match error.downcast_ref::<Errno>() {
        Some(errno) => &io::Error::from(*errno),
        None => error.downcast_ref::<io::Error>().or_else(shared)?,
    };
    let is = |errno: Errno| match error.raw_os_error() {
        Some(code) => code == errno.raw_os_error(),
        // What a library says more of hides the number.
        None => error.kind() == io::Error::from(errno).kind(),
    };
    let known = CAUSES.iter().position(|(errno, ..)| is(*errno))?;
    let (_, words, next) = CAUSES[known];
    Some(SystemCause {
        words,
        next: Some(next).filter(|next| !next.is_empty()),
        is_want: known < WANTS,
    })
}
