//! The first of a keeper's two processes: prepares the level, starts the server, says hello,
//! waits for the server to end and, without a namespace, kills what it left behind.

use std::{
    fs,
    io::{self, Write},
    os::unix::net::UnixStream,
};

use gyrus_contract::Confine;
use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, getegid, geteuid, getpid, pidfd_open,
        set_child_subreaper, waitpid,
    },
    thread::UnshareFlags,
};

use super::{Hello, KeeperLevel, binding::KeeperTie, linux, server, tree};
use crate::ProcessIdentity;

/// Serves one command over `control`, in a separate process with one thread.
pub(super) fn guard(
    level: KeeperLevel,
    mut control: UnixStream,
    binding: KeeperTie,
    confine: Confine,
) -> io::Result<()> {
    if let Err(error) = prepare(level, &binding) {
        return say(&mut control, &Err(error.to_string()));
    }
    // The server detects our end by this handle; pids differ across namespaces.
    let our_end = pidfd_open(getpid(), PidfdFlags::empty())?;
    let Some(child) = linux::fork()? else {
        let bound = binding.bind_server(death_signal(level));
        drop(binding);
        let served = bound.and_then(|()| server::serve(level, &our_end, control, confine));
        let code = i32::from(served.is_err());
        std::process::exit(code);
    };
    let identity = match level {
        KeeperLevel::Namespace => ProcessIdentity::of(child.as_raw_pid().unsigned_abs())?
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?,
        KeeperLevel::Subreaper => ProcessIdentity::current()?,
    };
    // If the run's process is gone already, the server notices it too, and we still have to wait.
    let _ = say(&mut control, &Ok(identity));
    match level {
        KeeperLevel::Namespace => wait_for(child),
        KeeperLevel::Subreaper => {
            match binding {
                KeeperTie::None => wait_for(child)?,
                KeeperTie::Nursery(_) => binding.wait_with(child)?,
            }
            tree::kill_children()
        }
    }
}

fn say(control: &mut UnixStream, hello: &Hello) -> io::Result<()> {
    let mut line = serde_json::to_vec(hello)?;
    line.push(b'\n');
    control.write_all(&line)
}

fn prepare(level: KeeperLevel, binding: &KeeperTie) -> io::Result<()> {
    enter(level)?;
    binding.bind_guard(death_signal(level))
}

/// Returns the signal that a bound process gets when its parent dies.
fn death_signal(level: KeeperLevel) -> Signal {
    match level {
        KeeperLevel::Namespace => Signal::KILL,
        // Only a running guard or server can end its tree, so it must not stay stopped.
        KeeperLevel::Subreaper => Signal::CONT,
    }
}

fn enter(level: KeeperLevel) -> io::Result<()> {
    match level {
        KeeperLevel::Subreaper => Ok(set_child_subreaper(Some(getpid()))?),
        // Root keeps all its users. A user namespace would take them away (package managers change
        // users), so only others get one.
        KeeperLevel::Namespace if geteuid().is_root() => linux::unshare(UnshareFlags::NEWPID),
        KeeperLevel::Namespace => {
            let (user, group) = (geteuid().as_raw(), getegid().as_raw());
            linux::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWPID)?;
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
            fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
        }
    }
}

fn wait_for(child: Pid) -> io::Result<()> {
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
