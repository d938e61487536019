//! A sandbox where namespaces are forbidden, as in most containers and for ordinary users of some
//! systems: Landlock twice, a filter, and a supervisor.
//!
//! An outer Landlock domain keeps signals and abstract sockets of a supervisor and of all below it
//! to themselves. In an inner one, with the rules for files and for TCP, are the caller and what
//! it starts. Of what Landlock does not guard, the supervisor makes what may be made, and the
//! filter refuses the rest.
//!
//! Not possible so: another `/tmp`, layers over shared caches, a view without the machine's
//! processes, and anything in the place of something else.

use std::{
    io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

use gyrus_contract::{Bind, Containment, Listeners, Network};

use super::{
    ConfineError, ConfinedProcess, Promise,
    calls::{Folders, OtherConfinement, SocketMethod},
    confined::{ProcessWalls, refused},
    landlock, network,
    places::WritablePlaces,
    supervisor::{self, Boundary, Ports, Rules, SignalWall},
    trees,
};

/// Promises that Landlock alone never keeps, each with the gap.
const GAPS: &[(Promise, &str)] = &[
    (
        Promise::Sight,
        "the machine's processes can be listed, with their arguments",
    ),
    (
        Promise::Limits,
        "the number of processes is limited only together with those outside, and root's is not",
    ),
];

/// Promises that Landlock alone does not keep without a supervisor.
const GAPS_UNSUPERVISED: &[(Promise, &str)] = &[(
    Promise::Processes,
    "processes of the same user can be signalled, for which Landlock has to be of Linux 6.12",
)];

/// Caches that programs move on request: a variable, and a folder's name.
const CACHES: [(&str, &str); 3] = [
    ("XDG_CACHE_HOME", "cache"),
    ("npm_config_cache", "npm"),
    ("GOCACHE", "go-build"),
];

/// Restricts this process by Landlock, and forks off a supervisor. `reason` is why there are no
/// namespaces.
pub(super) fn build<'a>(
    containment: &'a Containment,
    reason: io::Error,
    confined: &mut ConfinedProcess,
) -> Result<ProcessWalls<'a>, ConfineError> {
    let restricting = |error| refused("restricting files")(io::Error::other(error));
    let reason = check(containment, reason)?;
    let places = WritablePlaces::of(containment);
    let sources = containment.binds.iter().map(|bind| bind.source.as_path());
    for place in places.folders().chain(sources) {
        // A command may have put a link there.
        trees::open_plain(place).map_err(trees::at("allowing", place))?;
    }
    let folders = if places.are_mixed() {
        Folders::Mixed
    } else {
        Folders::Whole
    };
    let sockets = match supervisor::takes_descriptors(io::stderr()) {
        Ok(true) => SocketMethod::Taken,
        _ => SocketMethod::Made,
    };
    let ports = ports(containment, confined)?;
    let is_whole = |walls| walls == landlock::Walls::Whole;
    let wall = SignalWall::raise(|| landlock::part().map(is_whole)).map_err(restricting)?;
    let rules = Rules {
        boundary: Boundary::of_noted(),
        ports,
        places: Some(places.clone()),
    };
    let supervisor = match wall {
        Some(wall) => supervisor::start_above(rules, &containment.sockets, wall).ok(),
        None => None,
    };
    let mut restricted = Ok(landlock::Walls::NoScopes);
    let inner = SignalWall::raise(|| {
        restricted = landlock::alone(containment, &places);
        Ok::<_, ConfineError>(matches!(restricted, Ok(landlock::Walls::Whole)))
    })?;
    match restricted {
        Ok(_) => {}
        Err(landlock::RestrictError::Missing) => return Err(ConfineError::Nothing { reason }),
        Err(landlock::RestrictError::Rules(error)) => return Err(restricting(error)),
    }
    // If the wall is not there, the supervisor could be killed.
    let supervisor = supervisor.filter(|_| inner.is_some());
    confined.signals_contained = inner.is_some();
    confined.command_rules = landlock::apart();
    say_gaps(containment, &reason, supervisor.is_some(), confined);
    settle(containment, confined);
    Ok(ProcessWalls {
        beside: OtherConfinement::Landlock(folders, sockets),
        unsupervised: OtherConfinement::LandlockAlone,
        supervisor,
        temporary: &containment.temporary,
    })
}

/// Checks whether a sandbox by Landlock alone is possible at all; gives the reason back.
fn check(containment: &Containment, reason: io::Error) -> Result<io::Error, ConfineError> {
    if let Some(layer) = containment.layered.iter().find(|layer| layer.required) {
        return Err(trees::at("layering", &layer.lower)(reason));
    }
    for hidden in containment
        .hidden
        .iter()
        .filter_map(|path| path.canonicalize().ok())
    {
        if containment
            .writable
            .iter()
            .any(|folder| hidden.starts_with(folder))
        {
            // Nothing can be taken out of what Landlock allows.
            return Err(ConfineError::Path {
                path: hidden,
                reason: "it is to be hidden in a folder that is writable, which takes namespaces",
            });
        }
    }
    Ok(reason)
}

/// Returns the TCP ports that the command may use. The proxy listens on the machine's loopback
/// interface: others there reach it, too, and through it nothing that they do not reach anyway.
fn ports(
    containment: &Containment,
    confined: &mut ConfinedProcess,
) -> Result<Option<Ports>, ConfineError> {
    let mut open = Vec::new();
    match containment.network {
        Network::Open => return Ok(None),
        Network::None => {}
        Network::Proxy => {
            let (proxy, port) = network::listen().map_err(refused("listening for the proxy"))?;
            open.push((Ipv4Addr::LOCALHOST, port).into());
            // What listens there is reached without a way in between.
            open.extend(&containment.forwarded);
            confined.listeners = Some(Listeners {
                proxy,
                forwarded: Vec::new(),
                dialer: None,
            });
            let environment = network::proxy_environment(port);
            confined.environment.extend(environment);
        }
    }
    Ok(Some(Ports::new(open)))
}

fn say_gaps(
    containment: &Containment,
    reason: &io::Error,
    is_supervised: bool,
    confined: &mut ConfinedProcess,
) {
    let unsupervised = GAPS_UNSUPERVISED.iter().filter(|_| !is_supervised);
    for (promise, gap) in GAPS.iter().chain(unsupervised) {
        let gap = format!("{gap}: namespaces are forbidden here ({reason})");
        confined.gap(*promise, gap);
    }
    if !is_supervised && containment.network == Network::Proxy {
        confined.gap(
            Promise::Network,
            "there is no way out: nothing can supervise connections here",
        );
    }
    let pointed_to = repository(containment);
    // What only belongs to a repository lies in it.
    let is_met = |bind: &&Bind| pointed_to.is_some_and(|top| bind.place.starts_with(&top.place));
    for bind in containment.binds.iter().filter(|bind| !is_met(bind)) {
        let place = bind.place.display();
        let gap = format!("nothing can stand over `{place}`: namespaces are forbidden here");
        confined.gap(Promise::Writes, format!("{gap} ({reason})"));
    }
}

/// Sets the variables by which programs find folders that were moved.
fn settle(containment: &Containment, confined: &mut ConfinedProcess) {
    let layers = containment.layered.iter();
    confined
        .unlayered
        .extend(layers.map(|layer| layer.lower.clone()));
    for (variable, name) in CACHES {
        if !containment.moved.contains_key(variable) {
            confined.set(variable, &containment.temporary.join(name));
        }
    }
    if let Some(bind) = repository(containment) {
        confined.set("GIT_DIR", &bind.source);
        confined.set(
            "GIT_WORK_TREE",
            bind.place.parent().unwrap_or(Path::new("/")),
        );
    }
}

/// The copy of a repository that git can be pointed to: that of a writable folder itself. In
/// others, commands meet the real one, which stays as it is.
fn repository(containment: &Containment) -> Option<&Bind> {
    let mut copies = containment.binds.iter().filter(|bind| bind.writable);
    copies.find(|bind| {
        let is_of = |folder: &PathBuf| bind.place == folder.join(".git");
        containment.writable.iter().any(is_of)
    })
}
