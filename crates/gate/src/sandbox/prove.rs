//! Whether a sandbox holds here, found out by trying to break one.
//!
//! What the operating system says it can do is not a proof: this lays out secrets and services,
//! has a process confined that tries to reach them, and looks from outside what has changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    io::{self, Read as _},
    iter,
    net::{Ipv4Addr, TcpListener},
    path::Path,
};

use gyrus_contract::{Containment, Network, ResourceLimits};
use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};

use super::{
    Promise,
    finding::{SandboxFinding, Wall},
    probe::{ARGUMENT, ProbeAnswer, ProbeTask, start_of, surroundings},
    reach::Services,
};

/// Resource limits of the probe, so small that they are soon reached.
const LIMITS: ResourceLimits = ResourceLimits {
    processes: 32,
    memory_bytes: 1 << 30,
    cpu_seconds: 5,
    file_bytes: 1 << 20,
};

/// Findings about the sandbox of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxProof {
    /// The sandbox that was tested.
    pub wall: Wall,
    /// The results of all attempts.
    pub findings: Vec<SandboxFinding>,
}

impl SandboxProof {
    /// Whether a promise was tested and nothing broke it.
    pub fn holds(&self, promise: Promise) -> bool {
        let mut tried = self
            .findings
            .iter()
            .filter(|found| found.promise == promise);
        tried.clone().next().is_some() && tried.all(|found| found.held)
    }

    /// Whether all promises are kept.
    pub fn is_whole(&self) -> bool {
        Promise::ALL.into_iter().all(|promise| self.holds(promise))
    }

    /// Findings that broke a promise.
    pub fn broken(&self) -> impl Iterator<Item = &SandboxFinding> {
        self.findings.iter().filter(|found| !found.held)
    }
}

/// The program to be run confined. Its `main` begins with
/// [`probe_if_asked`](super::probe_if_asked).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeCommand {
    /// The path of this program.
    pub program: String,
    /// Arguments that make the program be the probe.
    pub arguments: Vec<String>,
}

/// The error of a proof that could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// The files and services that the probe must not reach could not be prepared.
    #[error("the sandbox could not be tried: preparing it in `{folder}`: {source}")]
    Prepare {
        /// The folder in which the process works.
        folder: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// No confined process could be started.
    #[error("the sandbox could not be tried: {reason}")]
    Start {
        /// The reason, as reported by the function that starts commands.
        reason: String,
    },
    /// The probe's answer cannot be read.
    #[error("the sandbox could not be tried: the probe said `{said}`")]
    Answer {
        /// The beginning of the answer.
        said: String,
    },
}

/// Tries to break a sandbox. `folder` is an empty one of gyrus's own; what is left in it may be
/// deleted afterwards. `start` runs a command with a containment, as commands of runs are, and
/// returns its standard output. Takes as long as a command and some milliseconds.
pub fn prove<E: fmt::Display>(
    folder: &Path,
    network: Network,
    start: impl FnOnce(&Containment, &ProbeCommand) -> Result<String, E>,
) -> Result<SandboxProof, ProofError> {
    let prepared = ProbeLayout::make(folder, network).map_err(|source| ProofError::Prepare {
        folder: folder.display().to_string(),
        source,
    })?;
    let task = serde_json::to_string(&prepared.task).map_err(|error| ProofError::Start {
        reason: error.to_string(),
    })?;
    let command = ProbeCommand {
        // Works where the program's own folder is out of sight.
        program: "/proc/self/exe".to_owned(),
        arguments: vec![ARGUMENT.to_owned(), task],
    };
    let said = start(&prepared.containment, &command).map_err(|error| ProofError::Start {
        reason: error.to_string(),
    })?;
    let ProbeAnswer { mut findings, wall } =
        serde_json::from_str(&said).map_err(|_| ProofError::Answer {
            said: said.chars().take(200).collect(),
        })?;
    findings.extend(prepared.look());
    let tried: BTreeSet<Promise> = findings.iter().map(|found| found.promise).collect();
    debug_assert_eq!(tried.len(), Promise::ALL.len());
    Ok(SandboxProof { wall, findings })
}

/// Files and services that the probe must not reach.
struct ProbeLayout {
    containment: Containment,
    task: ProbeTask,
    /// A service on the machine's loopback interface.
    loopback: TcpListener,
    services: Services,
}

impl ProbeLayout {
    const UNCHANGED: &str = "unchanged";

    fn make(folder: &Path, network: Network) -> io::Result<Self> {
        let folder = fs::canonicalize(folder)?;
        let [workspace, temporary, hidden] =
            ["workspace", "temporary", "hidden"].map(|name| folder.join(name));
        for folder in [&workspace, &temporary, &hidden] {
            fs::create_dir(folder)?;
        }
        let (outside, secret) = (folder.join("outside"), hidden.join("secret"));
        for file in [&outside, &secret] {
            fs::write(file, Self::UNCHANGED)?;
        }
        let process = std::process::id();
        let loopback = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        loopback.set_nonblocking(true)?;
        let port = loopback.local_addr()?.port();
        let (services, names) = Services::make(&folder, &workspace)?;
        let start = start_of(process).ok_or_else(|| io::Error::other("no /proc of our own"))?;
        let core = getrlimit(Resource::Core);
        Ok(Self {
            containment: Containment {
                writable: vec![workspace.clone()],
                read_only: Vec::new(),
                temporary,
                hidden: vec![hidden],
                layered: Vec::new(),
                binds: Vec::new(),
                moved: BTreeMap::new(),
                network,
                forwarded: Vec::new(),
                asked: Vec::new(),
                serves: false,
                sockets: Vec::new(),
                limits: LIMITS,
            },
            task: ProbeTask {
                workspace,
                outside,
                secret,
                services: names,
                port,
                process: (process, start),
                core_bytes: (core.current, core.maximum),
                around: surroundings(),
                network,
                limits: LIMITS,
            },
            loopback,
            services,
        })
    }

    /// Whether the probe came to the service on the loopback interface: others may come to a port
    /// that was somebody else's before.
    fn is_greeted(&self) -> bool {
        let greeting = self.task.greeting();
        let mut came = iter::from_fn(|| self.loopback.accept().ok());
        came.any(|(mut stream, _)| {
            // The probe has ended: what it sent is here.
            let mut heard = vec![0; greeting.len()];
            stream.set_nonblocking(true).is_ok()
                && stream.read_exact(&mut heard).is_ok()
                && heard == greeting.as_bytes()
        })
    }

    /// Examines the files and services from outside, whatever the probe says.
    fn look(&self) -> Vec<SandboxFinding> {
        let text = fs::read_to_string(&self.task.outside);
        let secret = fs::read_to_string(&self.task.secret);
        let is_unchanged =
            |text: &io::Result<String>| text.as_ref().is_ok_and(|text| text == Self::UNCHANGED);
        let unchanged = is_unchanged(&text) && is_unchanged(&secret);
        let reached = self.services.were_reached();
        let mut findings = vec![
            SandboxFinding {
                promise: Promise::Writes,
                attempt: "change files outside, as seen from there".to_owned(),
                held: unchanged,
                detail: if unchanged {
                    Self::UNCHANGED
                } else {
                    "changed"
                }
                .to_owned(),
            },
            SandboxFinding {
                promise: Promise::Hidden,
                attempt: "reach services outside, as seen from there".to_owned(),
                held: !reached,
                detail: if reached { "reached" } else { "nobody came" }.to_owned(),
            },
        ];
        match self.task.network {
            Network::None | Network::Proxy => {
                let reached = self.is_greeted();
                findings.push(SandboxFinding {
                    promise: Promise::Network,
                    attempt: "connect to the machine's loopback, as seen from there".to_owned(),
                    held: !reached,
                    detail: if reached { "reached" } else { "nobody came" }.to_owned(),
                });
            }
            Network::Open => {}
        }
        findings
    }
}
