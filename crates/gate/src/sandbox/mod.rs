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
mod confined;
mod devices;
mod filter;
mod finding;
mod landlock;
mod linux;
mod mounts;
mod network;
mod places;
mod plan;
mod privileges;
mod probe;
mod prove;
pub mod proxy;
mod reach;
mod relayer;
mod supervisor;
mod trees;

use std::{io, path::Path};

use gyrus_contract::{Containment, Listeners, Network};
use rustix::{process::getpid, thread::UnshareFlags};

use calls::OtherConfinement;
use confined::{ProcessWalls, refused};
use relayer::LayerBase;
use supervisor::{Boundary, LetIn, Supervisor};

pub use confined::{ConfineError, ConfinedProcess, Gap, Promise};
pub use finding::{SandboxFinding, Wall};
pub use plan::{PlanError, SandboxSurroundings, plan};
pub use probe::probe_if_asked;
pub use prove::{ProbeCommand, ProofError, SandboxProof, prove};

/// Enforces `containment` on this process and all processes that it starts, for good. The process
/// must have a single thread. It should be the init process of a PID namespace, and have its own
/// user namespace if it is not root's; what cannot hold without is in [`ConfinedProcess::gaps`].
/// Without namespaces another process returns from this than the one that called it: a child, whose
/// parent lives as long and ends with the same code. Takes a few milliseconds. After an error the
/// process must end.
pub fn confine(containment: &Containment) -> Result<ConfinedProcess, ConfineError> {
    mounts::check(containment)?;
    let mut confined = ConfinedProcess::default();
    privileges::yield_memory();
    let walls = match enter(containment.network) {
        Ok(()) => within_namespaces(containment, &mut confined)?,
        Err(reason) => alone::build(containment, reason, &mut confined)?,
    };
    let outside = match walls.beside {
        OtherConfinement::Namespaces | OtherConfinement::NamespacesAlone => 0,
        // They count those of the same user outside, too.
        OtherConfinement::Landlock(..) | OtherConfinement::LandlockAlone => {
            privileges::tasks_of_machine()
        }
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
) -> Result<ProcessWalls<'a>, ConfineError> {
    match containment.network {
        Network::None | Network::Proxy => {
            network::start_loopback().map_err(refused("starting the loopback interface"))?;
        }
        Network::Open => {}
    }
    if containment.network == Network::Proxy {
        let (proxy, port) = network::listen().map_err(refused("listening for the proxy"))?;
        let forwarded = containment.forwarded.iter().chain(&containment.asked);
        confined.listeners = Some(Listeners {
            proxy,
            forwarded: forwarded.filter_map(network::forward).collect(),
            dialer: None,
        });
        confined
            .environment
            .extend(network::proxy_environment(port));
    }
    let let_in = LetIn::open(&containment.sockets);
    let mut base = LayerBase::hold(containment)?;
    mounts::arrange(containment, base.as_mut(), confined)?;
    if !getpid().is_init() {
        confined.gap(
            Promise::Processes,
            "the processes of the machine are visible: there is no PID namespace",
        );
    }
    let restricting = |error| refused("restricting writes")(io::Error::other(error));
    confined.relayer = base
        .map(|base| {
            let containment = containment.clone();
            base.serve(move || landlock::within_mounts(&containment))
        })
        .transpose()
        .map_err(refused("starting a thread"))?;
    // The supervisor is within this one: else it could not be ended with the command.
    landlock::part().map_err(restricting)?;
    let supervisor = supervisor(containment.network, let_in);
    confined.command_rules = landlock::within_mounts(containment).map_err(restricting)?;
    // What others serve on the machine's network changes; all else is the command's own.
    confined.may_stay =
        getpid().is_init() && confined.unlayered.is_empty() && containment.network != Network::Open;
    Ok(ProcessWalls {
        beside: OtherConfinement::Namespaces,
        unsupervised: OtherConfinement::NamespacesAlone,
        supervisor,
        temporary: Path::new("/tmp"),
    })
}

/// Starts the supervisor that connects on behalf of the command, if there can be one here.
fn supervisor(network: Network, let_in: LetIn) -> Option<Supervisor> {
    let own_processes = getpid().is_init();
    let boundary = match network {
        Network::None | Network::Proxy => Boundary::of_own_network(own_processes),
        Network::Open => Boundary::of_machine(own_processes).ok()?,
    };
    supervisor::start(boundary.letting_in(let_in)).ok()
}
