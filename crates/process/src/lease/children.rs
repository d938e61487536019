//! Starts the processes that must die with this one.
//!
//! The kernel signals the death of the *thread* that started a process, so one thread that never
//! ends starts all of them.

use std::{
    io,
    process::{Child, Command},
    sync::{
        Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    thread,
};

use super::error::LeaseError;

/// A command to start, and where to send the started process.
type Order = (Command, Sender<io::Result<Child>>);

/// Record of the leases of this process and of the processes that it started.
enum State {
    /// No lease was begun and no process started.
    Untouched,
    /// A process that does not die with this one was started.
    Unbound,
    /// A lease was begun. All processes are started by a thread, and die with this one.
    Bound {
        starter: Sender<Order>,
        is_held: bool,
    },
}

static STATE: Mutex<State> = Mutex::new(State::Untouched);

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The only lease of this process, until it is dropped.
#[derive(Debug)]
pub(super) struct Claim(());

impl Claim {
    pub(super) fn take() -> Result<Self, LeaseError> {
        let mut state = state();
        match &mut *state {
            State::Unbound => return Err(LeaseError::HasKeepers),
            State::Bound { is_held: true, .. } => return Err(LeaseError::Held),
            State::Bound { is_held, .. } => *is_held = true,
            State::Untouched => {
                let (starter, orders) = mpsc::channel();
                thread::Builder::new()
                    .name("lease".to_owned())
                    .spawn(move || start_all(&orders))
                    .map_err(LeaseError::Thread)?;
                *state = State::Bound {
                    starter,
                    is_held: true,
                };
            }
        }
        Ok(Self(()))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let State::Bound { is_held, .. } = &mut *state() {
            *is_held = false;
        }
    }
}

/// Never returns, because the other end of the channel is in [`STATE`].
fn start_all(orders: &Receiver<Order>) {
    for (mut command, started) in orders {
        // Whoever asked waits for it.
        let _ = started.send(command.spawn());
    }
}

/// Starts a process. Under a lease it gets `bound` as one more argument, and must then ask for
/// `SIGKILL` at the death of its parent.
pub(crate) fn start_child(mut command: Command, bound: &str) -> io::Result<Child> {
    let mut state = state();
    match &*state {
        State::Untouched | State::Unbound => {
            // Even a failed start counts: that only makes a later lease impossible.
            *state = State::Unbound;
            command.spawn()
        }
        State::Bound { starter, .. } => {
            command.arg(bound);
            let (started, child) = mpsc::channel();
            starter.send((command, started)).map_err(io::Error::other)?;
            child.recv().map_err(io::Error::other)?
        }
    }
}
