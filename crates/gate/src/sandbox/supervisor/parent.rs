//! A supervisor that the command descends from, for where no PID namespace ends a command's
//! processes.
//!
//! It is the parent of the process that is confined: some systems let a process look only into
//! those that descend from it. What the command leaves behind becomes its child, and it ends when
//! nothing is left. Signals from within its Landlock domain reach only that domain, so it can kill
//! all of it with one call that nothing outruns. Without that wall the same call would kill every
//! process of the user; so it is made only by who has seen the wall.

use std::{
    fs::File,
    io,
    os::{fd::AsFd, unix::net::UnixStream},
    path::PathBuf,
    thread,
};

use rustix::{
    io::Errno,
    process::{
        DumpableBehavior, Pid, Signal, WaitOptions, getpid, getppid, kill_process_group,
        set_child_subreaper, set_dumpable_behavior, test_kill_process, wait,
    },
};

use super::{LetIn, Rules, STACK_BYTES, Supervisor, SupervisorState, linux, receive, serve};
use crate::sandbox::privileges;

/// Whether Landlock keeps signals of this process within its domain: seen by what happened to a
/// signal to its parent, which does not belong to the domain.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct SignalWall {
    parent: Pid,
}

impl SignalWall {
    /// Puts up the wall by `restrict`; `None` if there is none afterwards.
    pub(in super::super) fn raise<E>(
        restrict: impl FnOnce() -> Result<bool, E>,
    ) -> Result<Option<Self>, E> {
        let parent = getppid().filter(|parent| test_kill_process(*parent).is_ok());
        let is_raised = restrict()?;
        let wall = parent.filter(|_| is_raised).map(|parent| Self { parent });
        // The number is nobody else's as long as it is our parent's.
        let is_seen = |wall: &Self| !wall.reaches_parent() && getppid() == Some(wall.parent);
        Ok(wall.filter(is_seen))
    }

    fn reaches_parent(&self) -> bool {
        test_kill_process(self.parent) != Err(Errno::PERM)
    }

    /// Kills all processes within the wall but this one. Does nothing if the parent exists and
    /// could be reached after all; if it has ended, the earlier findings about the wall still
    /// apply.
    fn kill_all(&self) -> bool {
        let may_reach_others = getppid() == Some(self.parent) && self.reaches_parent();
        // A "process group 1" is `kill(-1)`: every process that may be signalled.
        !may_reach_others
            && !matches!(
                kill_process_group(Pid::INIT, Signal::KILL),
                Err(Errno::PERM)
            )
    }
}

/// Splits this process: the parent becomes the supervisor and ends with the code of the child,
/// which is the confined process, and may connect to these `sockets`. This process must have a single
/// thread.
pub(in super::super) fn start_above(
    rules: Rules,
    sockets: &[PathBuf],
    wall: SignalWall,
) -> io::Result<Supervisor> {
    let (channel, theirs) = UnixStream::pair()?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    set_child_subreaper(Some(getpid()))?;
    match linux::fork()? {
        None => {
            drop(theirs);
            // That is not inherited.
            set_child_subreaper(Some(getpid()))?;
            Ok(Supervisor { channel })
        }
        Some(child) => {
            drop(channel);
            let code = keep(child, || supervise(theirs, rules, sockets), wall);
            std::process::exit(code);
        }
    }
}

/// Supervises the calls of a child and its descendants until all have ended; returns its code.
fn keep(child: Pid, supervise: impl FnOnce() -> io::Result<()>, wall: SignalWall) -> i32 {
    // Without it calls fail, and the child has to be waited for all the same.
    let _ = supervise();
    let mut code = 255;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => {
                code = status.exit_status().unwrap_or(255);
                // Whatever is left must not stay. Whoever started us kills what cannot be killed
                // so, which is none of ours then.
                if !wall.kill_all() {
                    return code;
                }
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_no_child_left) => return code,
        }
    }
}

/// Starts the threads of this process that serve the calls, if any are supervised.
fn supervise(channel: UnixStream, mut rules: Rules, sockets: &[PathBuf]) -> io::Result<()> {
    part_from_keeper(channel)?;
    // What was opened before is closed by now, and its numbers will be those of other files.
    rules.boundary = rules.boundary.letting_in(LetIn::open(sockets));
    // Rights of new files are said by whoever makes them.
    rustix::process::umask(rustix::fs::Mode::empty());
    privileges::keep_for_supervising()?;
    privileges::keep_memory();
    if let Some(listener) = receive(io::stdin().as_fd())? {
        let desk = SupervisorState::new(listener, rules);
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        thread.spawn(move || serve(&desk))?;
    }
    Ok(())
}

/// Closes other open files, which belong to the keeper: locks, and a socket whose end others wait
/// for. The channel becomes the standard input.
fn part_from_keeper(channel: UnixStream) -> io::Result<()> {
    rustix::stdio::dup2_stdin(channel)?;
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    std::mem::forget(nothing);
    linux::close_from(3)
}
