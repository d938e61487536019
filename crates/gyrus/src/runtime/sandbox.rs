//! The sandbox of this process: how it is built, whether it holds on this machine, and the proxy out
//! of it.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    thread,
};

use gyrus_contract::{
    BoxedFuture, CommandSpec, ConfinementRecord, ConnectionPolicy, Containment, Destination,
    Listeners, Network, Outlet, ResourceLimits, RunId,
};
use gyrus_gate::{
    Contain,
    sandbox::{self, ProbeCommand, Promise, SandboxProof, SandboxSurroundings},
};
use gyrus_process::{
    ProcessIdentity,
    keeper::{Keeper, KeeperSandbox},
};
use gyrus_screen::RunCommand;
use serde::{Deserialize, Serialize};

use super::{
    Home,
    sandbox_folders::{RunFolders, below},
};

/// Resource limits for the commands of a run. Builds of large projects stay below.
const LIMITS: ResourceLimits = ResourceLimits {
    processes: 4_096,
    memory_bytes: 16 << 30,
    cpu_seconds: 3_600,
    file_bytes: 16 << 30,
};

/// Timeout of the probe, in milliseconds; it takes tens.
const PROBE_LIMIT_MS: u64 = 20_000;

/// Maximum length of a probe's output, in bytes.
const PROBE_BYTES: usize = 256 * 1024;

/// Promises that every command needs for being called contained. Limits may be missing: then a
/// command can make the machine slow, and that is all.
const NEEDED: [Promise; 5] = [
    Promise::Writes,
    Promise::Hidden,
    Promise::Network,
    Promise::Processes,
    Promise::Privileges,
];

/// Confines a keeper's process.
///
/// # Errors
/// A message with the reason.
pub(crate) fn confine(containment: &Containment) -> Result<ConfinementRecord, String> {
    let mut confined = sandbox::confine(containment).map_err(|error| error.to_string())?;
    Ok(ConfinementRecord {
        listeners: confined.listeners.take(),
        environment: std::mem::take(&mut confined.environment),
        signals_contained: confined.signals_contained,
        command_rules: confined.command_rules.take(),
        relayer: confined.relayer.take(),
        may_stay: confined.may_stay,
        held: Some(Box::new(confined)),
    })
}

/// The proxy through which commands connect.
pub struct Proxy;

impl Outlet for Proxy {
    fn serve<'a>(
        &'a self,
        listeners: Listeners,
        policy: &'a dyn ConnectionPolicy,
    ) -> BoxedFuture<'a, ()> {
        Box::pin(async move {
            // A proxy that fails lets nobody out, which is for the command to say.
            let _ = sandbox::proxy::serve(listeners, policy).await;
        })
    }
}

/// Allows connections to hosts that were named beforehand, at every port, and to nothing else; `*`
/// is any. An address of this machine or of a private network that a name leads to must be named
/// itself.
#[derive(Debug)]
pub struct FixedHosts(pub Vec<String>);

impl ConnectionPolicy for FixedHosts {
    fn decide<'a>(&'a self, to: &'a Destination) -> BoxedFuture<'a, Result<(), String>> {
        let named = |host: &str| self.0.iter().any(|open| open == host);
        let opens = named(&to.host) || (to.name.is_none() && named("*"));
        let decided = if opens {
            Ok(())
        } else {
            Err("nobody named it".to_owned())
        };
        Box::pin(std::future::ready(decided))
    }
}

/// Returns the function that confines the commands of a run; it is found out when the first is
/// judged.
pub fn contain(home: &Home) -> Arc<Contain> {
    let home = home.clone();
    let proven = OnceLock::new();
    let folders = RunFolders::default();
    Arc::new(move |run: RunId, workspace: &Path| {
        let held = proven.get_or_init(|| holds(&home)).clone();
        held.and_then(|()| {
            let folder = folders.folder(&home, run).map_err(|error| {
                format!("the run's folder for its sandbox cannot be made: {error}")
            })?;
            let mut containment = plan(&home, &folder, workspace)?;
            containment.sockets.clone_from(&home.sockets);
            Ok(containment)
        })
    })
}

/// Checks that the sandbox works on this machine.
///
/// # Errors
/// A message with the reason why the sandbox does not work.
pub fn holds(home: &Home) -> Result<(), String> {
    suffices(&proof(home)?)
}

/// Whether the sandbox holds on this machine and shows separate folders and processes inside, which
/// needs namespaces.
pub fn has_own_folders(home: &Home) -> bool {
    proof(home).is_ok_and(|proof| suffices(&proof).is_ok() && proof.holds(Promise::Sight))
}

/// Checks that a tried sandbox offers what commands need.
///
/// # Errors
/// A message with the promises that the sandbox does not keep.
pub fn suffices(proof: &SandboxProof) -> Result<(), String> {
    let broken: Vec<_> = proof
        .broken()
        .filter(|found| NEEDED.contains(&found.promise))
        .map(|found| format!("{} ({})", found.attempt, found.detail))
        .collect();
    if broken.is_empty() && NEEDED.into_iter().all(|promise| proof.holds(promise)) {
        return Ok(());
    }
    Err(format!(
        "it does not hold here: {}; `gyrus doctor` tells more",
        broken.join("; ")
    ))
}

/// Plans the containment of a command that uses `folder`, one of gyrus's own, for its temporary
/// files and its changes of shared caches.
///
/// # Errors
/// A message with the reason.
pub fn plan(home: &Home, folder: &Path, workspace: &Path) -> Result<Containment, String> {
    let (temporary, changes) = (folder.join("tmp"), folder.join("caches"));
    for made in [&temporary, &changes] {
        fs::create_dir_all(made)
            .map_err(|error| format!("{} cannot be made: {error}", made.display()))?;
    }
    let person = home
        .person
        .clone()
        .unwrap_or_else(|| PathBuf::from("/nonexistent"));
    let environment: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    sandbox::plan(&SandboxSurroundings {
        home: &person,
        own: &home.own(),
        workspace,
        temporary: &temporary,
        changes: &changes,
        environment: &environment,
        network: Network::None,
        limits: LIMITS,
    })
    .map_err(|error| error.to_string())
}

/// Checks that commands may see a folder.
///
/// # Errors
/// A message: the folder lies in a hidden place, or contains one.
pub fn check_visible(home: &Home, folder: &Path) -> Result<(), String> {
    let own = tempfile::tempdir().map_err(|error| error.to_string())?;
    plan(home, own.path(), folder).map(drop).map_err(|_| {
        let folder = folder.display();
        format!("{folder} is inside a folder that commands must not see, or contains one")
    })
}

/// Runs commands in a sandbox without a network, each below a keeper of its own.
pub fn run_in(containment: Containment) -> RunCommand {
    run_connected(containment, Arc::new(FixedHosts(Vec::new())))
}

/// Runs commands in a sandbox, each below a keeper of its own. Where it has a proxy, `policy` decides
/// about connections.
pub fn run_connected(containment: Containment, policy: Arc<dyn ConnectionPolicy>) -> RunCommand {
    let containment = Arc::new(containment);
    Arc::new(move |command: CommandSpec| {
        let (containment, policy) = (Arc::clone(&containment), Arc::clone(&policy));
        Box::pin(async move {
            let keeper = Keeper::start_beside().await?;
            let sandbox = KeeperSandbox {
                containment: &containment,
                outlet: &Proxy,
                policy: &*policy,
                ended: None,
            };
            let (outcome, _keeper) = keeper.run_in(command, Some(sandbox)).await?;
            Ok(outcome)
        })
    })
}

#[derive(Serialize, Deserialize)]
struct StoredProof {
    about: ProofSubject,
    proof: SandboxProof,
}

#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct ProofSubject {
    boot: String,
    program: (u64, i64, u64),
    user: u32,
    /// The namespaces that this process is in, how it is filtered, and its profile.
    around: Vec<String>,
}

impl ProofSubject {
    fn here() -> Result<Self, String> {
        let current = ProcessIdentity::current().map_err(|error| error.to_string())?;
        let namespaces = ["user", "mnt", "pid"].map(|kind| {
            let link = fs::read_link(Path::new("/proc/self/ns").join(kind));
            link.unwrap_or_default().display().to_string()
        });
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let filters = status.lines().filter(|line| line.starts_with("Seccomp"));
        let profile = fs::read_to_string("/proc/self/attr/current").unwrap_or_default();
        Ok(Self {
            boot: current.boot_id,
            program: this_program().map_err(|error| error.to_string())?,
            user: rustix::process::geteuid().as_raw(),
            around: namespaces
                .into_iter()
                .chain(filters.map(str::to_owned))
                .chain([profile.trim().to_owned()])
                .collect(),
        })
    }
}

/// Returns the findings about the sandbox since the machine was booted; it is tried now, if it was
/// not before.
///
/// # Errors
/// A message with the reason why the sandbox cannot be tried.
pub fn proof(home: &Home) -> Result<SandboxProof, String> {
    let path = below(home).join("proof.json");
    let about = ProofSubject::here()?;
    let kept: Option<StoredProof> = fs::read(&path)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    if let Some(kept) = kept
        && kept.about == about
    {
        return Ok(kept.proof);
    }
    let proof = try_now(home)?;
    let kept = StoredProof { about, proof };
    // Without it the next process tries again, as it does where it failed: that may have passed.
    if suffices(&kept.proof).is_ok()
        && let Ok(json) = serde_json::to_vec(&kept)
    {
        let _ = fs::write(&path, json);
    }
    Ok(kept.proof)
}

fn this_program() -> io::Result<(u64, i64, u64)> {
    let found = fs::metadata("/proc/self/exe")?;
    Ok((found.ino(), found.mtime(), found.size()))
}

/// Tries to break the sandbox.
///
/// # Errors
/// A message with the reason why the sandbox cannot be tried.
pub fn try_now(home: &Home) -> Result<SandboxProof, String> {
    let below = below(home);
    fs::create_dir_all(&below).map_err(|error| format!("{}: {error}", below.display()))?;
    let folder = tempfile::Builder::new()
        .prefix(&format!("probe-{}-", std::process::id()))
        .tempdir_in(&below)
        .map_err(|error| format!("{}: {error}", below.display()))?;
    sandbox::prove(folder.path(), Network::Proxy, start).map_err(|error| error.to_string())
}

fn start(containment: &Containment, command: &ProbeCommand) -> Result<String, String> {
    let spec = CommandSpec {
        program: command.program.clone(),
        arguments: command.arguments.clone(),
        folder: PathBuf::from("/"),
        environment: BTreeMap::new(),
        stdin: String::new(),
        time_limit_ms: PROBE_LIMIT_MS,
        head_bytes: PROBE_BYTES,
        tail_bytes: 0,
    };
    let containment = containment.clone();
    // A thread of its own: whoever judges a call may stand in a runtime already.
    let outcome = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let keeper = Keeper::start().map_err(|error| error.to_string())?;
        let sandbox = KeeperSandbox {
            containment: &containment,
            outlet: &Proxy,
            policy: &FixedHosts(Vec::new()),
            ended: None,
        };
        runtime
            .block_on(keeper.run_in(spec, Some(sandbox)))
            .map(|(outcome, _keeper)| outcome)
            .map_err(|error| error.to_string())
    });
    let outcome = outcome
        .join()
        .map_err(|_| "the probe's thread failed".to_owned())??;
    Ok(outcome.output.head)
}
