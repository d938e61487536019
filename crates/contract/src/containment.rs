//! What a command may reach, as the gate plans it and the keeper enforces it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a command may reach. Everything else in the file system can be read and not be changed.
/// Paths are absolute and free of links.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Containment {
    /// May be changed, with all below.
    pub writable: Vec<PathBuf>,
    /// Stands at `/tmp`, `/var/tmp` and `/dev/shm` for the command. It belongs to the run.
    pub temporary: PathBuf,
    /// Cannot be looked into: an empty file or folder stands there.
    pub hidden: Vec<PathBuf>,
    /// Folders that look writable, while the changes go elsewhere.
    pub layered: Vec<Layer>,
    /// What of the network it has.
    pub network: Network,
    /// How much it may use.
    pub limits: ResourceLimits,
}

/// A folder shared by all, with changes that stay private.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Layer {
    /// Never changed.
    pub lower: PathBuf,
    /// An empty or earlier used folder that takes the changes, on a file system that can.
    pub upper: PathBuf,
    /// An empty folder beside `upper`, for the operating system.
    pub work: PathBuf,
}

/// What a command has of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// A loopback interface of its own, and nothing behind it.
    None,
    /// As `None`, with a proxy of gyrus's on it that opens what was granted.
    Proxy,
    /// The machine's own.
    Open,
}

/// How much a command may use, with everything it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Processes and threads at once.
    pub processes: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Seconds of CPU time of each process.
    pub cpu_seconds: u64,
    /// Bytes of each file it writes.
    pub file_bytes: u64,
}
