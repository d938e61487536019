//! The access of a command, as the gate plans it and the keeper enforces it.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use serde::{Deserialize, Serialize};

/// The access of a command to files, network and resources. Everything else in the file system can
/// be read but not changed, except sockets and devices of the machine, which are never visible.
/// Paths are absolute and, except for hidden ones, free of links.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Containment {
    /// Paths that the command may change, with everything below.
    pub writable: Vec<PathBuf>,
    /// Paths that the command can read but not change, even where a rule about a folder above would
    /// hide them or make them writable.
    pub read_only: Vec<PathBuf>,
    /// The folder that the command sees as `/tmp`, `/var/tmp` and `/dev/shm`. It belongs to the
    /// run.
    pub temporary: PathBuf,
    /// Paths that cannot be read: an empty file or folder stands in their place. Paths that do not
    /// exist are skipped. In a writable folder this holds only until a command moves the folder
    /// around it.
    pub hidden: Vec<PathBuf>,
    /// Folders that look writable while their changes are stored elsewhere.
    pub layered: Vec<Layer>,
    /// Files and folders that are mounted over others, in this order, after all other paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub binds: Vec<Bind>,
    /// Variables that name a program's folder below the temporary folder, because the usual folder
    /// is not visible and cannot be created.
    pub moved: BTreeMap<String, String>,
    /// The access to the network.
    pub network: Network,
    /// Addresses of this machine's loopback that are also served on the command's own loopback if
    /// its network is [`Network::Proxy`]. They lead outside when the process that serves the proxy
    /// allows the connection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forwarded: Vec<SocketAddr>,
    /// Further addresses of loopback, for which a person may first be asked. Without namespaces the
    /// command finds nothing there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<SocketAddr>,
    /// Whether other commands of the run reach ports on which this one listens, if its network is
    /// separate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub serves: bool,
    /// Sockets of the machine that the command may connect to all the same: by this path, even if
    /// the command sees nothing there, and by any other that leads to the same file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets: Vec<PathBuf>,
    pub limits: ResourceLimits,
}

/// A file or folder that a command sees in the place of another one, which the command can neither
/// reach nor uncover. Both exist, are of the same kind, and have no links in their paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bind {
    /// The path that is covered. It may lie in what an earlier bind mounted.
    pub place: PathBuf,
    /// The file or folder mounted there, with everything below. It may lie in a hidden folder.
    pub source: PathBuf,
    /// Whether the command may change the mounted file or folder.
    pub writable: bool,
}

/// A shared folder whose changes stay private to the run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Layer {
    /// The shared folder, which is never changed. If it does not exist, there is no layer.
    pub lower: PathBuf,
    /// The folder that receives the changes, on a file system that supports overlays; created if it
    /// does not exist. It lies outside of `lower`, and only one command at a time uses it.
    pub upper: PathBuf,
    /// An empty folder beside `upper`, for the operating system; created if it does not exist.
    pub work: PathBuf,
    /// Whether the command must not run without the layer. Otherwise the folder is read-only where
    /// layers are not supported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

/// The network access of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Only a separate loopback interface.
    None,
    /// A separate loopback interface with a proxy of gyrus, which decides about each connection.
    Proxy,
    /// The machine's own network.
    Open,
}

/// Limits on the resources of a command. The most it can use in all is the number of processes
/// times the limit of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Number of processes and threads at once, including everything that it starts.
    pub processes: u64,
    /// Bytes of memory that each process may write to.
    pub memory_bytes: u64,
    /// Seconds of CPU time of each process.
    pub cpu_seconds: u64,
    /// Bytes of each file that the command writes.
    pub file_bytes: u64,
}
