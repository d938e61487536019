//! The terminal at which a person sits, if one does.

use std::io::{self, BufRead, IsTerminal};

use gyrus_contract::Principal;
use rustix::termios::QueueSelector;
use tokio::sync::mpsc::Sender;

use crate::env::Environment;

/// Whether a person at this process's terminal can be asked: it reads and shows there, and is not
/// in the background, where reading would stop it.
pub(crate) fn can_ask() -> bool {
    let stdin = io::stdin();
    let in_front = || {
        rustix::termios::tcgetpgrp(&stdin).is_ok_and(|front| front == rustix::process::getpgrp())
    };
    stdin.is_terminal() && io::stderr().is_terminal() && in_front()
}

/// Who sits here, as far as the system says.
pub(crate) fn person(environment: &Environment, surface: &str) -> Principal {
    let id = environment
        .user
        .clone()
        .unwrap_or_else(|| format!("user {}", rustix::process::getuid().as_raw()));
    Principal {
        surface: surface.to_owned(),
        id,
    }
}

/// Drops what was typed before a question was shown: it cannot be meant as its answer.
pub(crate) fn forget_what_was_typed() {
    // Without a terminal there is nothing to forget.
    let _ = rustix::termios::tcflush(io::stdin(), QueueSelector::IFlush);
}

/// What came from the terminal.
#[derive(Debug)]
pub(crate) enum Typed {
    /// A line.
    Line(String),
    /// Its end: nothing will come any more.
    End,
}

/// Sends every line that is typed. The thread cannot be stopped; it ends with the process.
pub(crate) fn read_lines<T: Send + 'static>(
    sender: Sender<T>,
    as_event: impl Fn(Typed) -> T + Send + 'static,
) -> io::Result<()> {
    let read = move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if sender.blocking_send(as_event(Typed::Line(line))).is_err() {
                return;
            }
        }
        // If nobody listens any more, nobody needs to know.
        let _ = sender.blocking_send(as_event(Typed::End));
    };
    std::thread::Builder::new()
        .name("terminal".to_owned())
        .spawn(read)?;
    Ok(())
}
