//! The terminal at which a person sits, if one does.

use std::{
    io::{self, BufRead as _, IsTerminal, Read as _, Write as _},
    os::fd::OwnedFd,
};

use gyrus_contract::Principal;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    pipe::{PipeFlags, pipe_with},
    termios::QueueSelector,
};
use tokio::sync::mpsc::Sender;

use crate::output;

/// Whether a person at this process's terminal can be asked: it reads and shows there, and is not
/// in the background, where reading would stop it.
pub fn can_ask() -> bool {
    let stdin = io::stdin();
    let in_front = || {
        rustix::termios::tcgetpgrp(&stdin).is_ok_and(|front| front == rustix::process::getpgrp())
    };
    stdin.is_terminal() && io::stderr().is_terminal() && in_front()
}

/// Returns the person at this terminal: `user` is the name that the environment gives.
pub fn person(user: Option<&str>, surface: &str) -> Principal {
    let id = user.map(str::to_owned).unwrap_or_else(name_of_this_user);
    Principal {
        surface: surface.to_owned(),
        id,
    }
}

/// Asks the person at this terminal for approval; nothing but a plain yes is one.
pub fn says_yes(question: &str) -> io::Result<bool> {
    Ok(matches!(
        answer(question)?.to_lowercase().as_str(),
        "y" | "yes"
    ))
}

/// Asks the person at this terminal for a line of text, which may be empty.
pub fn answer(question: &str) -> io::Result<String> {
    forget_what_was_typed();
    let mut asking = io::stderr().lock();
    let question = output::wrapped(question, output::columns_of(&asking));
    asking.write_all(output::fit(&question).as_bytes())?;
    asking.flush()?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

/// Maximum number of bytes searched of the list of users.
const MAX_USERS: u64 = 1 << 20;

/// Returns the name of this process's user, or the user id if there is no name.
fn name_of_this_user() -> String {
    let id = rustix::process::getuid().as_raw();
    let mut users = String::new();
    let read = std::fs::File::open("/etc/passwd")
        .and_then(|file| file.take(MAX_USERS).read_to_string(&mut users));
    let named = users.lines().filter(|_| read.is_ok()).find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number == id.to_string()).then(|| name.to_owned())
    });
    named
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| format!("user {id}"))
}

/// Discards input typed before a question was shown: it cannot be meant as its answer.
pub fn forget_what_was_typed() {
    // Without a terminal there is nothing to forget.
    let _ = rustix::termios::tcflush(io::stdin(), QueueSelector::IFlush);
}

/// An event of the terminal.
#[derive(Debug)]
pub enum TerminalEvent {
    Line(String),
    /// The input has ended.
    End,
}

/// Reads lines of the terminal. Dropping it leaves further input to the next reader.
pub struct TerminalReader {
    /// A pipe that wakes the thread when it is closed.
    _stop: OwnedFd,
}

/// Sends every line that is typed.
pub fn read_lines(sender: Sender<TerminalEvent>) -> io::Result<TerminalReader> {
    let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC)?;
    let read = move || {
        let mut lines = LineBuffer::default();
        while let Ok(Some(typed)) = lines.next(&stopped) {
            let is_end = matches!(typed, TerminalEvent::End);
            // If nobody listens any more, nobody needs to know.
            if sender.blocking_send(typed).is_err() || is_end {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("terminal".to_owned())
        .spawn(read)?;
    Ok(TerminalReader { _stop: stop })
}

/// Bytes of an incomplete line. Read from the descriptor itself: what a buffer of this process held
/// could not be left to the next reader.
#[derive(Default)]
struct LineBuffer {
    held: Vec<u8>,
}

impl LineBuffer {
    /// Returns the next line; `None` when nobody wants one any more.
    fn next(&mut self, stopped: &OwnedFd) -> io::Result<Option<TerminalEvent>> {
        let stdin = io::stdin();
        loop {
            if let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.held.drain(..=end).collect();
                return Ok(Some(TerminalEvent::Line(
                    String::from_utf8_lossy(&line).into_owned(),
                )));
            }
            let mut waiting = [
                PollFd::new(stopped, PollFlags::IN),
                PollFd::new(&stdin, PollFlags::IN),
            ];
            match poll(&mut waiting, None) {
                Err(Errno::INTR) => continue,
                polled => polled?,
            };
            if !waiting[0].revents().is_empty() {
                return Ok(None);
            }
            let mut bytes = [0; 4096];
            match rustix::io::read(&stdin, &mut bytes) {
                Err(Errno::INTR) => {}
                Ok(0) | Err(_) => return Ok(Some(TerminalEvent::End)),
                Ok(count) => self.held.extend_from_slice(&bytes[..count]),
            }
        }
    }
}
