//! What the keeper asks of whoever builds sandboxes.

use std::{any::Any, os::fd::OwnedFd};

use crate::{Boxed, Containment};

/// A process that was confined.
#[derive(Default)]
pub struct Confined {
    /// Where a proxy is to be served, if the containment has one: the command's programs connect
    /// to it, and whoever holds it accepts their connections, from outside too.
    pub listener: Option<OwnedFd>,
    /// To be set in the command's environment.
    pub environment: Vec<(String, String)>,
    /// To be kept until everything that was started is gone.
    pub held: Option<Box<dyn Any>>,
}

/// Confines this process and all that it starts, for good; or says in words why it cannot. The
/// process is a keeper's, has a single thread, and ends after an error.
pub type Confine = fn(&Containment) -> Result<Confined, String>;

/// What serves the way out of sandboxes, in gyrus's own process.
pub trait Outlet: Send + Sync {
    /// Serves a proxy on `listener` that opens `hosts` (`*` is any) and nothing else. Dropping
    /// the future ends it. Hosts that were asked for and refused are told to `refused`.
    fn serve<'a>(
        &'a self,
        listener: OwnedFd,
        hosts: &'a [String],
        refused: &'a (dyn Fn(&str) + Send + Sync),
    ) -> Boxed<'a, ()>;
}
