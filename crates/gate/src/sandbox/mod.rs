//! Containment of commands: what a command may change, see, reach and use up, made true by the
//! operating system and found out by trying.
//!
//! [`plan`](plan()) says what shall hold, [`confine`] makes it hold for a process and all that it
//! starts, [`prove`](prove()) tries to break it, and [`proxy`] is the one way out, which
//! decides about each connection when it is made. Several walls stand behind each other: namespaces (what is not
//! there cannot be touched), Landlock (what may be written), seccomp (what may be asked of the
//! kernel), a supervisor (what may be connected to), capabilities and limits. Where namespaces are forbidden, [`ConfinedProcess::gaps`] says what
//! the other walls cannot do alone.
//!
//! Not here: what may be run at all, and who asks.

mod alone;
mod calls;
mod devices;
mod filter;
mod landlock;
mod linux;
mod mounts;
mod network;
mod overlay;
mod places;
mod plan;
mod privileges;
mod probe;
mod prove;
pub mod proxy;
mod reach;
pub(crate) mod serving;
mod supervisor;

use std::{
    fs::File,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use gyrus_contract::{Containment, Listeners, Network};
use rustix::{io::Errno, process::getpid, thread::UnshareFlags};
use serde::{Deserialize, Serialize};

use calls::Beside;
use supervisor::{Boundary, Supervisor};

pub use plan::{PlanError, Surroundings, plan};
pub use probe::probe_if_asked;
pub use prove::{Finding, ProbeCommand, Proof, ProofError, Wall, prove};

/// A promise of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Promise {
    /// Nothing outside the writable, temporary and layered folders changes.
    Writes,
    /// Hidden files and the machine's services cannot be reached.
    Hidden,
    /// The network is as limited as it was said.
    Network,
    /// Other processes cannot be touched, and of their memory and environment nothing is seen.
    Processes,
    /// Other processes cannot be seen, nor the arguments with which they were started.
    Sight,
    /// No privileges can be gained.
    Privileges,
    /// Processes, memory, CPU time and sizes of files are limited.
    Limits,
}

impl Promise {
    /// All of them.
    pub const ALL: [Promise; 7] = [
        Promise::Writes,
        Promise::Hidden,
        Promise::Network,
        Promise::Processes,
        Promise::Sight,
        Promise::Privileges,
        Promise::Limits,
    ];
}

/// Something that was asked for and does not hold, or not wholly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The promise that is not kept.
    pub promise: Promise,
    /// The part that is missing, and why.
    pub reason: String,
}

/// A process that is confined. To be kept until what it starts has ended.
#[derive(Debug, Default)]
pub struct ConfinedProcess {
    /// Sockets on which gyrus serves its proxy, if that is the network.
    pub listeners: Option<Listeners>,
    /// Variables to be set in the command's environment.
    pub environment: Vec<(String, String)>,
    /// Promises that are not kept.
    pub gaps: Vec<Gap>,
    /// Layered folders that are read-only instead: the file system cannot do better, or another
    /// command has them.
    pub unlayered: Vec<PathBuf>,
    /// Whether signals of this process reach only itself and what it starts.
    pub signals_contained: bool,
    /// Rules of Landlock that the command's process has to enter before its program starts, so that
    /// it cannot signal this one.
    pub command_rules: Option<OwnedFd>,
    /// Whether another command may be run here when nothing of this one is left.
    pub may_stay: bool,
    /// Locks on the folders of the layers' changes.
    locks: Vec<File>,
}

impl ConfinedProcess {
    fn gap(&mut self, promise: Promise, reason: impl Into<String>) {
        let reason = reason.into();
        self.gaps.push(Gap { promise, reason });
    }

    fn set(&mut self, name: &str, folder: &Path) {
        let folder = folder.to_string_lossy().into_owned();
        self.environment.push((name.to_owned(), folder));
    }
}

/// Error: a process could not be confined. It may be confined partly, so it has to end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfineError {
    /// A path cannot be used.
    #[error("`{}` cannot be part of a sandbox: {reason}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The reason.
        reason: &'static str,
    },
    /// The operating system refused something for a path.
    #[error("the sandbox could not be built: {doing} `{}`: {source}", path.display())]
    At {
        /// The step that failed.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The operating system refused something.
    #[error("the sandbox could not be built: {doing}: {source}")]
    Refused {
        /// The step that failed.
        doing: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
    /// Nothing here can confine a process.
    #[error("nothing can confine a command here: no namespaces ({reason}) and no landlock")]
    Nothing {
        /// The reason why there are no namespaces.
        reason: io::Error,
    },
}

fn refused<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> ConfineError {
    move |source| ConfineError::Refused {
        doing,
        source: source.into(),
    }
}

/// The walls around a process before its filter is installed.
struct Built<'a> {
    beside: Beside,
    /// The same, where no supervisor can be had after all.
    unsupervised: Beside,
    supervisor: Option<Supervisor>,
    /// Folder for temporary files.
    temporary: &'a Path,
}

/// Makes everything that `containment` says hold for this process and all that it starts, for
/// good. The process must have a single thread. It should be the init process of a PID namespace,
/// and have its own user namespace if it is not root's; what cannot hold without is in
/// [`ConfinedProcess::gaps`]. Without namespaces another process returns from this than the one that
/// called it: a child, whose parent lives as long and ends with the same code. Takes a few
/// milliseconds. After an error the process must end.
pub fn confine(containment: &Containment) -> Result<ConfinedProcess, ConfineError> {
    mounts::check(containment)?;
    let mut confined = ConfinedProcess::default();
    privileges::yield_memory();
    let walls = match enter(containment.network) {
        Ok(()) => within_namespaces(containment, &mut confined)?,
        Err(reason) => alone::build(containment, reason, &mut confined)?,
    };
    let outside = match walls.beside {
        Beside::Namespaces | Beside::NamespacesAlone => 0,
        // They count those of the same user outside, too.
        Beside::Landlock(..) | Beside::LandlockAlone => privileges::tasks_of_machine(),
    };
    privileges::limit(&containment.limits, outside).map_err(refused("setting limits"))?;
    confined.set("TMPDIR", walls.temporary);
    for (variable, name) in &containment.moved {
        confined.set(variable, &walls.temporary.join(name));
    }
    privileges::give_up().map_err(refused("giving up privileges"))?;
    let filtering = refused("filtering system calls");
    let Some(supervisor) = walls.supervisor else {
        calls::refuse(containment.network, walls.unsupervised).map_err(filtering)?;
        return Ok(confined);
    };
    match calls::refuse(containment.network, walls.beside) {
        Ok(Some(listener)) => supervisor.serve(&listener).map_err(filtering)?,
        // Whoever runs us supervises us, and no process can have two supervisors.
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            calls::refuse(containment.network, walls.unsupervised).map_err(filtering)?;
        }
        refused => refused.map(drop).map_err(filtering)?,
    }
    Ok(confined)
}

/// Enters new namespaces. Root enters no user namespace: what it keeps of its rights is harmless
/// in the machine's own, and archives may hold files of any user.
fn enter(network: Network) -> io::Result<()> {
    linux::unshare(UnshareFlags::NEWNS)?;
    // Some systems let everybody have namespaces, and nobody mount anything in them.
    mounts::try_one()?;
    let mut flags = UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    match network {
        Network::None | Network::Proxy => flags |= UnshareFlags::NEWNET,
        Network::Open => {}
    }
    linux::unshare(flags)
}

fn within_namespaces<'a>(
    containment: &'a Containment,
    confined: &mut ConfinedProcess,
) -> Result<Built<'a>, ConfineError> {
    match containment.network {
        Network::None | Network::Proxy => {
            network::start_loopback().map_err(refused("starting the loopback interface"))?;
        }
        Network::Open => {}
    }
    if containment.network == Network::Proxy {
        let (proxy, port) = network::listen().map_err(refused("listening for the proxy"))?;
        let forwarded = containment.forwarded.iter();
        confined.listeners = Some(Listeners {
            proxy,
            forwarded: forwarded.filter_map(network::forward).collect(),
        });
        confined
            .environment
            .extend(network::proxy_environment(port));
    }
    mounts::arrange(containment, confined)?;
    if !getpid().is_init() {
        confined.gap(
            Promise::Processes,
            "the processes of the machine are visible: there is no PID namespace",
        );
    }
    let restricting = |error| refused("restricting writes")(io::Error::other(error));
    // The supervisor is within this one: else it could not be ended with the command.
    landlock::part().map_err(restricting)?;
    let supervisor = supervisor(containment.network);
    landlock::within_mounts(containment).map_err(restricting)?;
    // What others serve on the machine's network changes; all else is the command's own.
    confined.may_stay =
        getpid().is_init() && confined.unlayered.is_empty() && containment.network != Network::Open;
    Ok(Built {
        beside: Beside::Namespaces,
        unsupervised: Beside::NamespacesAlone,
        supervisor,
        temporary: Path::new("/tmp"),
    })
}

/// Starts the supervisor that connects on behalf of the command, if there can be one here.
fn supervisor(network: Network) -> Option<Supervisor> {
    let own_processes = getpid().is_init();
    let boundary = match network {
        Network::None | Network::Proxy => Boundary::of_own_network(own_processes),
        Network::Open => Boundary::of_machine(own_processes).ok()?,
    };
    supervisor::start(boundary).ok()
}

/// Whether an error says that a thing is not there or cannot be seen.
fn is_absent(error: Errno) -> bool {
    matches!(
        error,
        Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::NAMETOOLONG
    )
}
