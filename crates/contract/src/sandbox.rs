//! What the keeper asks of whoever builds sandboxes, and who decides what they connect to.

use std::{any::Any, fmt, os::fd::OwnedFd};

use serde::{Deserialize, Serialize};

use crate::{Boxed, Containment};

/// A process that was confined.
#[derive(Default)]
pub struct Confined {
    /// Where an [`Outlet`] is to serve, if the containment has one.
    pub listeners: Option<Listeners>,
    /// To be set in the command's environment.
    pub environment: Vec<(String, String)>,
    /// Whether signals of this process reach only itself and what it starts, as was tried.
    pub signals_contained: bool,
    /// Rules of Landlock that the command's process has to enter before its program starts, so that
    /// it cannot signal the keeper's.
    pub command_rules: Option<OwnedFd>,
    /// Whether another command with the same containment may be run here when nothing of this one
    /// is left.
    pub may_stay: bool,
    /// To be kept until everything that was started is gone.
    pub held: Option<Box<dyn Any>>,
}

/// Sockets that listen inside a sandbox. The command's programs connect to them; whoever holds
/// them accepts these connections, from outside too.
#[derive(Debug)]
pub struct Listeners {
    /// The proxy's.
    pub proxy: OwnedFd,
    /// One for each address of [`Containment::forwarded`] that could be bound. Its own address is
    /// the one that it leads to outside.
    pub forwarded: Vec<OwnedFd>,
}

/// Confines this process and all that it starts, for good; or says in words why it cannot. The
/// process is a keeper's, has a single thread, and ends after an error. It may return in a child of
/// the process instead, which then lives as long as the child.
pub type Confine = fn(&Containment) -> Result<Confined, String>;

/// Where a program in a sandbox wants to connect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Destination {
    /// A name in lower case without a dot at its end, or an address in its usual form, without
    /// brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// The name that the program used, where `host` is an address of this machine or of a private
    /// network that this name was found to lead to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl fmt::Display for Destination {
    /// `example.com:443`, `[::1]:80`, `10.0.0.1:443 (the address of example.com)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port)?,
            false => write!(f, "{}:{}", self.host, self.port)?,
        }
        match &self.name {
            Some(name) => write!(f, " (the address of {name})"),
            None => Ok(()),
        }
    }
}

/// Decides which connections leave a sandbox.
pub trait ConnectionPolicy: Send + Sync {
    /// Whether a connection may be made now; if not, why, in a few words for the program that
    /// wants it. The connection is held until this answers. Dropping the future means that the
    /// program gave up.
    fn decide<'a>(&'a self, destination: &'a Destination) -> Boxed<'a, Result<(), String>>;
}

/// What serves the way out of sandboxes, in gyrus's own process.
pub trait Outlet: Send + Sync {
    /// Serves a proxy and the forwarded addresses, and opens what `policy` allows and nothing
    /// else. Dropping the future ends it and closes all connections.
    fn serve<'a>(&'a self, listeners: Listeners, policy: &'a dyn ConnectionPolicy)
    -> Boxed<'a, ()>;
}
