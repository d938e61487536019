//! The interface between the keeper and the builders of sandboxes, and the policy for connections.

use std::{any::Any, fmt, os::fd::OwnedFd};

use serde::{Deserialize, Serialize};

use crate::{BoxedFuture, Containment, Layer};

/// A confined process, with what must be kept for it.
#[derive(Default)]
pub struct ConfinementRecord {
    /// Sockets for an [`Outlet`] to serve, if the containment has any.
    pub listeners: Option<Listeners>,
    /// Variables to set in the command's environment.
    pub environment: Vec<(String, String)>,
    /// Whether a test showed that signals of this process reach only itself and the processes it
    /// starts.
    pub signals_contained: bool,
    /// Rules of Landlock that the command's process has to enter before its program starts.
    pub command_rules: Option<OwnedFd>,
    /// Replaces the layer that the containment requires, if it requires one.
    pub relayer: Option<Box<dyn Relayer>>,
    /// Whether another command with the same containment may run here after all processes of this
    /// one have ended.
    pub may_stay: bool,
    /// A resource to hold until every process of the sandbox has ended.
    pub held: Option<Box<dyn Any>>,
}

/// Replaces the layer of a sandbox between two commands that run in it.
pub trait Relayer: fmt::Debug {
    /// Replaces the layer over the folder by a new one. Returns the rules of Landlock for the next
    /// command's process, if it is to enter any.
    ///
    /// # Errors
    /// A message with the reason, after which no command may run in the sandbox.
    fn replace(&self, layer: &Layer) -> Result<Option<OwnedFd>, String>;

    /// Makes changes of files by others visible to a running command.
    fn refresh(&self);
}

/// Sockets that listen inside a sandbox. The command's programs connect to them; the process that
/// holds them accepts these connections, even from outside the sandbox.
#[derive(Debug)]
pub struct Listeners {
    /// The socket of the proxy.
    pub proxy: OwnedFd,
    /// One socket for each address of [`Containment::forwarded`] that could be bound. The address
    /// of a socket is its destination outside.
    pub forwarded: Vec<OwnedFd>,
    /// The channel by which the servers of the command are reached, if [`Containment::serves`].
    pub dialer: Option<OwnedFd>,
}

/// Confines this process and all that it starts, permanently, or returns the reason why that is
/// impossible. The process is a keeper's, has a single thread, and ends after an error. The
/// function may return in a child of the process instead, which then lives as long as the child.
pub type Confine = fn(&Containment) -> Result<ConfinementRecord, String>;

/// The target of a connection from a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Destination {
    /// A name in lower case without a trailing dot, or an address in its usual form without
    /// brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// The name that the program used, if it resolved to `host`, an address of this machine or of a
    /// private network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl fmt::Display for Destination {
    /// Formats the destination: `example.com:443`, `[::1]:80`, `10.0.0.1:443 (the address of
    /// example.com)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)?
        } else {
            write!(f, "{}:{}", self.host, self.port)?
        }
        match &self.name {
            Some(name) => write!(f, " (the address of {name})"),
            None => Ok(()),
        }
    }
}

/// Decides which connections leave a sandbox.
pub trait ConnectionPolicy: Send + Sync {
    /// Decides whether a connection may be made now. The error is the reason, in a few words for
    /// the program. The connection is held until this returns; the future is dropped when the
    /// program gives up.
    fn decide<'a>(&'a self, destination: &'a Destination) -> BoxedFuture<'a, Result<(), String>>;

    /// Returns a socket, not blocking and not connected, for a destination in another sandbox of the
    /// run; `None` if it is none.
    fn socket(&self, _destination: &Destination) -> Option<OwnedFd> {
        None
    }
}

/// Serves the connections of sandboxes, in gyrus's own process.
pub trait Outlet: Send + Sync {
    /// Serves a proxy and the forwarded addresses, and opens only the connections that `policy`
    /// allows. Dropping the future ends it and closes all connections.
    fn serve<'a>(
        &'a self,
        listeners: Listeners,
        policy: &'a dyn ConnectionPolicy,
    ) -> BoxedFuture<'a, ()>;
}
