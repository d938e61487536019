//! What a command may reach, as the gate plans it and the keeper enforces it.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use serde::{Deserialize, Serialize};

/// What a command may reach. Everything else in the file system can be read and not be changed,
/// but for sockets and devices of the machine, which are never there. Paths are absolute and, but
/// for hidden ones, free of links.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Containment {
    /// May be changed, with all below.
    pub writable: Vec<PathBuf>,
    /// Can be seen and not be changed, even where something else would stand in its way.
    pub read_only: Vec<PathBuf>,
    /// Stands at `/tmp`, `/var/tmp` and `/dev/shm` for the command. It belongs to the run.
    pub temporary: PathBuf,
    /// Cannot be looked into: an empty file or folder stands there. What is not there is skipped.
    /// In a writable folder that holds only until a command moves the folder around it.
    pub hidden: Vec<PathBuf>,
    /// Folders that look writable, while the changes go elsewhere.
    pub layered: Vec<Layer>,
    /// Files and folders that stand over others, put there in this order after all of the above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub binds: Vec<Bind>,
    /// Variables that make programs keep a folder of theirs below the temporary one, under the
    /// name given here, because its usual place is neither there nor can be made.
    pub moved: BTreeMap<String, String>,
    /// What of the network it has.
    pub network: Network,
    /// Addresses of this machine's loopback that stand on the command's own loopback too, if its
    /// network is [`Network::Proxy`], and lead outside when whoever serves the proxy lets them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forwarded: Vec<SocketAddr>,
    /// How much it may use.
    pub limits: ResourceLimits,
}

/// A file or folder that a command meets in the place of another one, which it can neither reach
/// there nor bring back. Both exist, are of the same kind, and have no links in their paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bind {
    /// Where it stands. May lie in what an earlier bind put there.
    pub place: PathBuf,
    /// Stands there, with all below. May lie in a hidden folder.
    pub source: PathBuf,
    /// Whether the command may change it.
    pub writable: bool,
}

/// A folder shared by all, with changes that stay private.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Layer {
    /// Never changed. If it is not there, there is no layer.
    pub lower: PathBuf,
    /// Takes the changes, on a file system that can; made if it is not there. It lies outside of
    /// `lower`, and only one command at a time uses it.
    pub upper: PathBuf,
    /// An empty folder beside `upper`, for the operating system; made if it is not there.
    pub work: PathBuf,
    /// Whether the command may not run without it. Else the folder is read-only where there can be
    /// no layer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

/// What a command has of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// A loopback interface of its own, and nothing behind it.
    None,
    /// As `None`, with a proxy of gyrus's on it that decides about each connection.
    Proxy,
    /// The machine's own.
    Open,
}

/// How much a command may use. What it uses in all is at most the number of processes times the
/// limit of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Processes and threads at once, of all that it starts.
    pub processes: u64,
    /// Bytes of memory that each process may write to.
    pub memory_bytes: u64,
    /// Seconds of CPU time of each process.
    pub cpu_seconds: u64,
    /// Bytes of each file it writes.
    pub file_bytes: u64,
}
