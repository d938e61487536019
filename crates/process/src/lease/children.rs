//! Starts the processes that must die with this one.
//!
//! The kernel signals the death of the *thread* that started a process, so one thread that never
//! ends starts all of them.

use std::{
    io,
    process::{Child, Command},
    sync::mpsc::{self, Receiver, Sender},
    thread,
};

use parking_lot::{Mutex, MutexGuard};

use super::error::LeaseError;

/// A command to start, and where to send the started process.
type StartOrder = (Command, Sender<io::Result<Child>>);

/// Record of the leases of this process and its child processes.
enum LeaseState {
    /// No lease was begun and no process started.
    Untouched,
    /// A process was started that does not die with this one.
    Unbound,
    /// A lease was begun. All processes are started by a thread, and die with this one.
    Bound {
        starter: Sender<StartOrder>,
        is_held: bool,
    },
}

static STATE: Mutex<LeaseState> = Mutex::new(LeaseState::Untouched);

fn state() -> MutexGuard<'static, LeaseState> {
    STATE.lock()
}

/// The only lease of this process, until it is dropped.
#[derive(Debug)]
pub(super) struct SoleLease(());

impl SoleLease {
    pub(super) fn take() -> Result<Self, LeaseError> {
        let mut state = state();
        match &mut *state {
            LeaseState::Unbound => return Err(LeaseError::HasKeepers),
            LeaseState::Bound { is_held: true, .. } => return Err(LeaseError::Held),
            LeaseState::Bound { is_held, .. } => *is_held = true,
            LeaseState::Untouched => {
                let (starter, orders) = mpsc::channel();
                thread::Builder::new()
                    .name("lease".to_owned())
                    .spawn(move || start_all(&orders))
                    .map_err(LeaseError::Thread)?;
                *state = LeaseState::Bound {
                    starter,
                    is_held: true,
                };
            }
        }
        Ok(Self(()))
    }
}

impl Drop for SoleLease {
    fn drop(&mut self) {
        if let LeaseState::Bound { is_held, .. } = &mut *state() {
            *is_held = false;
        }
    }
}

/// Starts the ordered processes. Never returns, because the other end of the channel is in
/// [`STATE`].
fn start_all(orders: &Receiver<StartOrder>) {
    for (mut command, started) in orders {
        // Whoever asked waits for it.
        let _ = started.send(command.spawn());
    }
}

/// Starts a process. Under a lease, it gets `bound` as an additional argument, and must then ask
/// for `SIGKILL` at the death of its parent.
pub(crate) fn start_child(mut command: Command, bound: &str) -> io::Result<Child> {
    let mut state = state();
    match &*state {
        LeaseState::Untouched | LeaseState::Unbound => {
            // Even a failed start counts: that only makes a later lease impossible.
            *state = LeaseState::Unbound;
            command.spawn()
        }
        LeaseState::Bound { starter, .. } => {
            command.arg(bound);
            let (started, child) = mpsc::channel();
            starter.send((command, started)).map_err(io::Error::other)?;
            child.recv().map_err(io::Error::other)?
        }
    }
}
