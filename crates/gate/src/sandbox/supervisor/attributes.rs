//! Changing rights, owners, times and attributes of files on behalf of a command that no mount
//! keeps from it: in its writable places, and nowhere else.
//!
//! What the call names is opened as a handle, the place of this very file is judged, and the
//! change is made through the handle.

use std::os::fd::OwnedFd;

use rustix::{
    fs::{
        AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags, chmod, chownat,
        removexattr, setxattr, utimensat,
    },
    io::Errno,
};

use super::{
    CallOutcome, SupervisorState,
    caller::{self, PathBase},
    linux::SupervisedCall,
};
use crate::sandbox::calls::SYS_FCHMODAT2;

/// Lengths of the longest name and the longest value of an attribute, as in `linux/limits.h`.
const NAME_BYTES: usize = 255;
const VALUE_BYTES: usize = 65_536;

/// Prefix of attributes without a meaning for the kernel, for which no right is needed.
const FREE: &[u8] = b"user.";

/// Whether a link at the end of a path is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastLink {
    Followed,
    Themselves,
}

enum AttributeChange {
    Mode(Mode),
    Owner(Option<Uid>, Option<Gid>),
    Times(Timestamps),
    Set {
        name: Vec<u8>,
        value: Vec<u8>,
        flags: XattrFlags,
    },
    Remove {
        name: Vec<u8>,
    },
}

impl SupervisorState {
    /// Makes a call of [`crate::sandbox::calls::ATTRIBUTES`] for the caller.
    pub(super) fn change(&self, call: &SupervisedCall) -> Result<CallOutcome, Errno> {
        let handle = subject(call)?;
        let change = change(call)?;
        self.check_waiting(call)?;
        let places = self.places.as_ref().ok_or(Errno::PERM)?;
        if !places.may_change(&caller::location(&handle)?) {
            return Err(Errno::PERM);
        }
        change.make(&handle).map(|()| CallOutcome::Done)
    }
}

/// Opens the file that a call concerns.
fn subject(call: &SupervisedCall) -> Result<OwnedFd, Errno> {
    use LastLink::{Followed, Themselves};
    let named = |base, path: Vec<u8>, links| {
        let flags = match links {
            Followed => OFlags::empty(),
            Themselves => OFlags::NOFOLLOW,
        };
        caller::pin_at(call, base, &path, flags)
    };
    let by_path = |links| {
        let path = caller::path(call, 0)?;
        if path.is_empty() {
            return Err(Errno::NOENT);
        }
        named(PathBase::Current, path, links)
    };
    let by_descriptor = || match PathBase::of(call, 0) {
        PathBase::Current => Err(Errno::BADF),
        base @ PathBase::Descriptor(_) => named(base, Vec::new(), Followed),
    };
    let at = |flags: i32| {
        let base = PathBase::of(call, 0);
        if call.number == libc::SYS_utimensat && call.arguments[1] == 0 {
            return by_descriptor();
        }
        let path = caller::path(call, 1)?;
        if path.is_empty() && flags & libc::AT_EMPTY_PATH == 0 {
            return Err(Errno::NOENT);
        }
        let links = match flags & libc::AT_SYMLINK_NOFOLLOW {
            0 => Followed,
            _ => Themselves,
        };
        named(base, path, links)
    };
    let flags = |argument: usize| caller::int(call.arguments[argument]);
    match call.number {
        libc::SYS_fchmod | libc::SYS_fchown | libc::SYS_fsetxattr | libc::SYS_fremovexattr => {
            by_descriptor()
        }
        libc::SYS_fchmodat => at(0),
        SYS_FCHMODAT2 | libc::SYS_utimensat => at(flags(3)),
        libc::SYS_fchownat => at(flags(4)),
        libc::SYS_setxattr | libc::SYS_removexattr => by_path(Followed),
        libc::SYS_lsetxattr | libc::SYS_lremovexattr => by_path(Themselves),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat if call.arguments[1] == 0 => by_descriptor(),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => at(0),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod | libc::SYS_chown | libc::SYS_utime | libc::SYS_utimes => by_path(Followed),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown => by_path(Themselves),
        _ => Err(Errno::NOSYS),
    }
}

fn change(call: &SupervisedCall) -> Result<AttributeChange, Errno> {
    let word = |argument: usize| caller::int(call.arguments[argument]).cast_unsigned();
    let mode = |argument| {
        Ok(AttributeChange::Mode(Mode::from_raw_mode(
            word(argument) & 0o7777,
        )))
    };
    let owner = |user, group| {
        // All bits set: as it was.
        let user = Some(word(user)).filter(|user| *user != u32::MAX);
        let group = Some(word(group)).filter(|group| *group != u32::MAX);
        Ok(AttributeChange::Owner(
            user.map(Uid::from_raw),
            group.map(Gid::from_raw),
        ))
    };
    match call.number {
        libc::SYS_fchmod => mode(1),
        libc::SYS_fchmodat | SYS_FCHMODAT2 => mode(2),
        libc::SYS_fchown => owner(1, 2),
        libc::SYS_fchownat => owner(2, 3),
        libc::SYS_setxattr | libc::SYS_lsetxattr | libc::SYS_fsetxattr => {
            let length = usize::try_from(call.arguments[3]).map_err(|_| Errno::TOOBIG)?;
            if length > VALUE_BYTES {
                return Err(Errno::TOOBIG);
            }
            Ok(AttributeChange::Set {
                name: attribute(call)?,
                value: match length {
                    0 => Vec::new(),
                    _ => caller::memory(call, 2, length)?,
                },
                flags: XattrFlags::from_bits(word(4)).ok_or(Errno::INVAL)?,
            })
        }
        libc::SYS_removexattr | libc::SYS_lremovexattr | libc::SYS_fremovexattr => {
            let name = attribute(call)?;
            Ok(AttributeChange::Remove { name })
        }
        libc::SYS_utimensat => times(call, 2, 1).map(AttributeChange::Times),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => mode(1),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown | libc::SYS_lchown => owner(1, 2),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utimes => times(call, 1, 1_000).map(AttributeChange::Times),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => times(call, 2, 1_000).map(AttributeChange::Times),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime => seconds(call).map(AttributeChange::Times),
        _ => Err(Errno::NOSYS),
    }
}

fn attribute(call: &SupervisedCall) -> Result<Vec<u8>, Errno> {
    let name = caller::text(call, 1, NAME_BYTES).map_err(|error| match error {
        Errno::NAMETOOLONG => Errno::RANGE,
        other => other,
    })?;
    if name.starts_with(FREE) {
        Ok(name)
    } else {
        Err(Errno::NOTSUP)
    }
}

/// Reads two times of two words each, the second of which counts units of this number of
/// nanoseconds.
fn times(call: &SupervisedCall, argument: usize, unit: i64) -> Result<Timestamps, Errno> {
    if call.arguments[argument] == 0 {
        return Ok(now());
    }
    let words = words::<4>(call, argument)?;
    let time = |seconds: i64, parts: i64| {
        // Two numbers stand for now and for as it was, among nanoseconds only.
        if unit > 1 && !(0..1_000_000).contains(&parts) {
            return Err(Errno::INVAL);
        }
        let tv_nsec = parts.checked_mul(unit).ok_or(Errno::INVAL)?;
        Ok(Timespec {
            tv_sec: seconds,
            tv_nsec,
        })
    };
    Ok(Timestamps {
        last_access: time(words[0], words[1])?,
        last_modification: time(words[2], words[3])?,
    })
}

/// Two times in seconds.
#[cfg(target_arch = "x86_64")]
fn seconds(call: &SupervisedCall) -> Result<Timestamps, Errno> {
    if call.arguments[1] == 0 {
        return Ok(now());
    }
    let words = words::<2>(call, 1)?;
    let [last_access, last_modification] = words.map(|tv_sec| Timespec { tv_sec, tv_nsec: 0 });
    Ok(Timestamps {
        last_access,
        last_modification,
    })
}

fn now() -> Timestamps {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: rustix::fs::UTIME_NOW,
    };
    Timestamps {
        last_access: now,
        last_modification: now,
    }
}

fn words<const COUNT: usize>(
    call: &SupervisedCall,
    argument: usize,
) -> Result<[i64; COUNT], Errno> {
    let bytes = caller::memory(call, argument, COUNT * size_of::<i64>())?;
    let mut words = [0; COUNT];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(size_of::<i64>())) {
        *word = i64::from_ne_bytes(bytes.try_into().map_err(|_| Errno::FAULT)?);
    }
    Ok(words)
}

impl AttributeChange {
    fn make(self, handle: &OwnedFd) -> Result<(), Errno> {
        // Through this the kernel finds the very file, whatever its name is by now.
        let path = caller::own_path(handle);
        match self {
            Self::Mode(mode) => chmod(&path, mode),
            Self::Owner(user, group) => chownat(handle, c"", user, group, AtFlags::EMPTY_PATH),
            Self::Times(times) => utimensat(handle, c"", &times, AtFlags::EMPTY_PATH),
            Self::Set { name, value, flags } => setxattr(&path, name, &value, flags),
            Self::Remove { name } => removexattr(&path, name),
        }
    }
}
