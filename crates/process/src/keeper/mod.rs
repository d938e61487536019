//! Keepers: the processes that run a command and kill its whole tree when the run's process ends.
//!
//! A keeper is forked from this program started again (the *nursery*). It runs one command, holds
//! the other end of a socket, and kills the command's whole process tree when the socket closes
//! (which the death of the run's process does, however it dies), at the time limit, and once the
//! command itself has ended, so that nothing daemonised stays behind. Two processes share the work
//! and watch each other: the *guard*, which the nursery forks, and below it the *server*, which
//! runs the command. Where the system allows it ([`KeeperLevel::Namespace`]) the server is the init
//! process of a PID namespace, and its death is the death of the tree, by the operating system's
//! own rule.
//!
//! The socket carries one JSON line per message: from the guard a [`Hello`], from the run's process
//! an [`Order`], from the server a [`Reply`], before which single bytes may come, each with a
//! listening socket of the sandbox attached: forwarded ones first, the proxy's last. The socket
//! closes when both have ended.
//!
//! Not here: which commands may run, and how they are contained: the program gives
//! [`serve_if_asked`] the function that confines a process.

mod attached;
mod binding;
mod capture;
mod client;
mod dialer;
mod fifo;
mod guard;
mod linux;
mod nursery;
mod ancestors;
mod server;
mod spares;
mod standing;
mod tree;

use std::{fs, io, path::PathBuf, time::Duration};

use gyrus_contract::{CommandOutcome, CommandSpec, Containment, KeeperError, Layer};
use serde::{Deserialize, Serialize};

use crate::ProcessIdentity;

pub use ancestors::is_below_a_keeper;
pub use capture::Capture;
pub use client::{Keeper, KeeperSandbox};
pub use dialer::Dialer;
pub use fifo::make_fifo;
pub use linux::share_arenas;
pub use nursery::{ARGUMENT, serve_if_asked};
pub use spares::Spares;

/// Means by which a keeper ensures that a command's whole tree ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeeperLevel {
    /// A PID namespace: killing its init process kills everything in it at once.
    Namespace,
    /// A subreaper: orphans stay in the tree, and the keeper kills until none is left. If guard and
    /// server are killed in the same instant, the tree survives.
    Subreaper,
}

impl KeeperLevel {
    /// Returns the byte for the level in an order to the nursery.
    fn word(self) -> u8 {
        match self {
            KeeperLevel::Namespace => b'n',
            KeeperLevel::Subreaper => b's',
        }
    }

    fn of(word: u8) -> Option<Self> {
        [KeeperLevel::Namespace, KeeperLevel::Subreaper]
            .into_iter()
            .find(|level| level.word() == word)
    }
}

/// First message of a guard: the process whose end proves that the tree is gone, or the reason why
/// the level is not available.
type Hello = Result<ProcessIdentity, String>;

/// The order to the server to run one command.
#[derive(Debug, Serialize, Deserialize)]
struct KeeperOrder {
    command: CommandSpec,
    place: CommandSite,
    /// Milliseconds that the command gets to end by itself, after a `SIGINT`, once nobody waits for
    /// it any more.
    grace_ms: u64,
    /// A file that is written when the command's process tree has ended, even if nobody waits for
    /// that.
    ended: Option<PathBuf>,
}

/// The place where a command runs.
#[derive(Debug, Serialize, Deserialize)]
enum CommandSite {
    /// The server's own environment, without a sandbox.
    Bare,
    /// A new sandbox, which the server then stays in.
    Sandbox(Box<Containment>),
    /// The sandbox of the previous command, with a new layer where it has one.
    AsBefore(Option<Layer>),
}

/// The byte that the proxy's listening socket is attached to.
const PROXY: u8 = b'P';

/// The byte that the listening socket of a forwarded address is attached to.
const FORWARDED: u8 = b'F';

/// The byte that the channel to the command's servers is attached to.
const DIALER: u8 = b'D';

/// Message of a server when the tree is gone, in one line.
type TreeReply = Result<CommandOutcome, KeeperError>;

/// The byte after a reply of a server that waits for another order. Without it, the socket closes.
const STAYS: u8 = b'S';

/// Returns the level that this system allows, by starting a keeper.
pub fn probe() -> Result<KeeperLevel, KeeperError> {
    Ok(Keeper::start()?.level())
}

/// Time limit for the init process of a namespace to die after it was killed.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Waits until the tree of a recorded keeper, whose run process is dead, is gone. A keeper in a
/// namespace that outlives `limit` is killed, and its tree with it; one without a namespace is left
/// to finish, because only it knows its tree. Returns whether the tree is gone; if not, the
/// command's effects are not final yet.
pub async fn wait_until_gone(identity: &ProcessIdentity, limit: Duration) -> bool {
    let identity = identity.clone();
    let waiting = tokio::task::spawn_blocking(move || {
        identity.wait_gone(limit).unwrap_or(false)
            || (is_namespace_init(&identity)
                && identity.kill().is_ok()
                && identity.wait_gone(KILL_LIMIT).unwrap_or(false))
    });
    waiting.await.unwrap_or(false)
}

/// Kills a recorded keeper with its process tree, if it is in a namespace. Another one is left to
/// end its own tree, which only it knows. Does not wait.
pub fn kill_init(identity: &ProcessIdentity) -> io::Result<()> {
    if is_namespace_init(identity) {
        identity.kill()
    } else {
        Ok(())
    }
}

/// Whether a process is number 1 in a PID namespace below ours.
fn is_namespace_init(identity: &ProcessIdentity) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{}/status", identity.pid)) else {
        return false;
    };
    let Some(numbers) = status.lines().find_map(|line| line.strip_prefix("NSpid:")) else {
        return false;
    };
    let numbers: Vec<&str> = numbers.split_ascii_whitespace().collect();
    numbers.len() > 1 && numbers.last() == Some(&"1")
}
