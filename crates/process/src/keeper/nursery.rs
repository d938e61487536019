//! The process that keepers are forked from.
//!
//! Starting a program costs milliseconds: mapping it, linking it, asking the processor what it can
//! do. So this program is started again only once, as a process with one thread and no state, and
//! each keeper is a fork of it. The nursery keeps no record of its keepers; each is bound to the
//! run's process by its own socket. It ends when the run's process does.

use std::{
    collections::BTreeMap,
    fs::File,
    io, iter,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use gyrus_contract::Confine;
use parking_lot::Mutex;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid},
};

use super::{KeeperLevel, attached, binding, binding::KeeperTie, guard, linux};
use crate::lease;

/// Argument that makes a program become a nursery. Keepers, being its forks, have it too. No
/// command line parser or test harness uses it for something else.
pub const ARGUMENT: &str = "--gyrus-keepers";

/// The nurseries by program, which live as long as this process.
static NURSERIES: Mutex<BTreeMap<PathBuf, UnixStream>> = Mutex::new(BTreeMap::new());

/// Whether this program begins with [`serve_if_asked`]. One that does not would run its own `main`
/// where a keeper is asked for.
static SERVES: AtomicBool = AtomicBool::new(false);

pub(super) fn serves() -> bool {
    SERVES.load(Ordering::Acquire)
}

/// Starts a keeper of `level` from `program`'s nursery; the keeper talks over the other end of
/// `theirs`.
pub(super) fn bear(program: &Path, level: KeeperLevel, theirs: &OwnedFd) -> io::Result<()> {
    let mut nurseries = NURSERIES.lock();
    if let Some(nursery) = nurseries.get(program) {
        match order(nursery, level, theirs) {
            // The nursery was killed; its keepers are not affected.
            Err(Errno::PIPE | Errno::CONNRESET) => {}
            ordered => return Ok(ordered?),
        }
    }
    let nursery = start(program)?;
    order(&nursery, level, theirs)?;
    nurseries.insert(program.to_owned(), nursery);
    Ok(())
}

fn start(program: &Path) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(program);
    command
        .arg0("gyrus")
        .arg(ARGUMENT)
        // Commands must not see keys in our environment.
        .env_clear()
        .current_dir("/")
        // Out of reach of a terminal's Ctrl-C, which is for us to handle.
        .process_group(0)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = lease::start_child(command, binding::ARGUMENT)?;
    // The nursery lives as long as we do. If it ends earlier, a zombie does no harm.
    let _ = child.try_wait();
    Ok(ours)
}

fn order(nursery: &UnixStream, level: KeeperLevel, theirs: &OwnedFd) -> Result<(), Errno> {
    attached::send(nursery, level.word(), theirs)
}

/// Becomes a nursery and never returns, if this process was started as one; any other one outlives a
/// limit on the size of files. To be called as the first statement of `main`, before
/// any thread, file or output. `confine` builds sandboxes.
pub fn serve_if_asked(confine: Confine) {
    SERVES.store(true, Ordering::Release);
    if std::env::args_os()
        .nth(1)
        .is_some_and(|asked| asked == ARGUMENT)
    {
        // The output is not read; the run's process notices that the socket closes.
        let code = i32::from(serve(confine).is_err());
        std::process::exit(code);
    }
    linux::outlive_size_limit();
}

fn serve(confine: Confine) -> io::Result<()> {
    linux::close_inherited()?;
    linux::default_signals();
    let binding = KeeperTie::of_nursery()?;
    let orders = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // A keeper that still held the socket would hide that the nursery has ended.
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    let mut keepers = Vec::new();
    loop {
        bury(&orders, &mut keepers)?;
        let Some((level, control)) = next_order(&orders)? else {
            return Ok(());
        };
        match linux::fork() {
            Ok(Some(keeper)) => keepers.push(pidfd_open(keeper, PidfdFlags::empty())?),
            Ok(None) => {
                drop((orders, keepers));
                let code = i32::from(guard::guard(level, control, binding, confine).is_err());
                std::process::exit(code);
            }
            // The run's process sees its socket close. Other keepers may have to die with this
            // process, so it goes on.
            Err(_too_many_processes) => {}
        }
    }
}

/// Reaps ended keepers, until there is an order.
fn bury(orders: &UnixStream, keepers: &mut Vec<OwnedFd>) -> io::Result<()> {
    loop {
        let mut watched: Vec<_> = iter::once(orders.as_fd())
            .chain(keepers.iter().map(AsFd::as_fd))
            .map(|handle| PollFd::from_borrowed_fd(handle, PollFlags::IN))
            .collect();
        match poll(&mut watched, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = watched.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut ended = ready[1..].iter();
        keepers.retain(|keeper| {
            let ended = ended.next() == Some(&true);
            if ended {
                // The keeper has ended, so this cannot block; its status is not needed.
                let _ = waitid(WaitId::PidFd(keeper.as_fd()), WaitIdOptions::EXITED);
            }
            !ended
        });
        if ready[0] {
            return Ok(());
        }
    }
}

/// Returns the next order; `None` when the run's process has ended.
fn next_order(orders: &UnixStream) -> io::Result<Option<(KeeperLevel, UnixStream)>> {
    let Some((word, control)) = attached::receive(orders)? else {
        return Ok(None);
    };
    match (KeeperLevel::of(word), control) {
        (Some(level), Some(control)) => Ok(Some((level, UnixStream::from(control)))),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
