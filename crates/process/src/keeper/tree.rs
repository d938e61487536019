//! Kills a process tree completely.

use std::{collections::HashMap, fs, io, time::Duration};

use rustix::{
    io::Errno,
    process::{
        Pid, Signal, WaitOptions, getpid, getppid, kill_process_group, test_kill_process, wait,
    },
};

use super::KeeperLevel;
use crate::ProcessIdentity;

/// Time to wait for one killed process before the whole tree is scanned again.
const TIMEOUT: Duration = Duration::from_millis(100);

/// The processes that signals of this process reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum SignalReach {
    /// All processes that its user may signal.
    #[default]
    Machine,
    /// This process and its descendants; its parent is outside of that.
    Contained { parent: Pid },
}

impl SignalReach {
    /// Returns the reach of a confined process, tested by the function that confined it.
    /// [`Self::is_contained`] tests it again.
    pub(super) fn of_contained() -> Self {
        getppid().map_or(Self::Machine, |parent| Self::Contained { parent })
    }

    /// Whether the claim is true, tested with a process of the same user that must be out of reach.
    fn is_contained(self) -> bool {
        match self {
            Self::Machine => false,
            Self::Contained { parent } => {
                test_kill_process(parent) == Err(Errno::PERM) && getppid() == Some(parent)
            }
        }
    }
}

/// Kills all descendants of this process. Killed processes may still be dying on return; only
/// reaping proves their end.
pub(super) fn kill_tree(level: KeeperLevel, reach: SignalReach) -> io::Result<()> {
    match level {
        // A sandbox may have put another process in that place.
        KeeperLevel::Namespace if getpid().is_init() => kill_namespace(),
        KeeperLevel::Namespace | KeeperLevel::Subreaper if reach.is_contained() => kill_all(),
        KeeperLevel::Namespace | KeeperLevel::Subreaper => kill_descendants(),
    }
}

/// Kills the whole namespace at once: the kernel excludes forking during this signal, so no process
/// escapes.
fn kill_namespace() -> io::Result<()> {
    // Elsewhere the call below would kill every process of the user.
    assert!(
        getpid().is_init(),
        "only the init process of a namespace may kill all of it"
    );
    kill_all()
}

/// Kills every process that this one may signal, except itself. Must only be called where these are
/// known to be its descendants.
fn kill_all() -> io::Result<()> {
    // A "process group 1" is `kill(-1)`, which means every process that we can see but ourselves.
    match kill_process_group(Pid::INIT, Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Kills and reaps all descendants of this process, which has a single thread. That no child is
/// left is the proof: orphans become children of a subreaper.
pub(super) fn kill_children() -> io::Result<()> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Err(Errno::CHILD) => return Ok(()),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => kill_descendants()?,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Kills the descendants of this process repeatedly until a scan finds none alive, because a dying
/// process may still fork. Fails if a survivor may not be killed because it has another user's
/// rights.
fn kill_descendants() -> io::Result<()> {
    let boot_id = ProcessIdentity::current()?.boot_id;
    loop {
        let alive = living_descendants(&boot_id)?;
        let mut refused = None;
        let mut killed = Vec::new();
        for process in &alive {
            match process.kill() {
                Ok(()) => killed.push(process),
                Err(error) => refused = Some((process.pid, error)),
            }
        }
        if killed.is_empty() {
            return match refused {
                None => Ok(()),
                Some((pid, error)) => Err(io::Error::new(
                    error.kind(),
                    format!("process {pid} of the command could not be killed: {error}"),
                )),
            };
        }
        for process in killed {
            // The next look decides; this only keeps us from looking too often.
            let _ = process.wait_gone(TIMEOUT);
        }
    }
}

fn living_descendants(boot_id: &str) -> io::Result<Vec<ProcessIdentity>> {
    let mut processes = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // A process that has ended since is not a descendant.
        let Ok(stat) = fs::read(format!("/proc/{pid}/stat")) else {
            continue;
        };
        if let Some(stat) = Stat::parse(&stat) {
            processes.insert(pid, stat);
        }
    }
    let root = std::process::id();
    let descends = |mut pid: u32| {
        // Bounded: two looks at different times could show a circle.
        for _ in 0..processes.len() {
            match processes.get(&pid) {
                Some(stat) if stat.parent == root => return true,
                Some(stat) => pid = stat.parent,
                None => return false,
            }
        }
        false
    };
    let alive = processes
        .iter()
        .filter(|(pid, stat)| !stat.is_dead && descends(**pid));
    Ok(alive
        .map(|(pid, stat)| ProcessIdentity {
            pid: *pid,
            start_time: stat.start_time,
            boot_id: boot_id.to_owned(),
        })
        .collect())
}

/// The needed fields of `/proc/<pid>/stat`, see proc(5).
struct Stat {
    is_dead: bool,
    parent: u32,
    start_time: u64,
}

impl Stat {
    fn parse(stat: &[u8]) -> Option<Self> {
        // The name before it may hold anything, so count from the last parenthesis.
        let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let fields = std::str::from_utf8(&stat[after_name..]).ok()?;
        let mut fields = fields.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let start_time = fields.nth(22 - 5)?.parse().ok()?;
        Some(Self {
            is_dead: matches!(state, "Z" | "X" | "x"),
            parent,
            start_time,
        })
    }
}
