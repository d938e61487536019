//! Reaches the servers of a command from outside its network: a thread of the keeper makes sockets
//! there, which the run's process connects.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::SocketAddr,
    os::{fd::OwnedFd, unix::net::UnixStream},
    thread,
    time::Duration,
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::attached;
use crate::serving;

/// The request for the addresses at which the command listens.
const LIST: u8 = b'L';

/// Request for a socket of version 4 of the internet protocol.
const VERSION_4: u8 = b'4';
const VERSION_6: u8 = b'6';

/// Time limit for an answer of the thread, which waits for nothing.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// Memory for the thread's stack.
const STACK_BYTES: usize = 128 * 1024;

/// Starts the thread in this process's network. What is served there already is not the command's.
pub(super) fn start() -> io::Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    let others = serving::on_loopback(&serving::fixed_ports());
    thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || serve(&ours, &others))?;
    Ok(theirs.into())
}

/// Answers requests until the channel closes or an answer fails.
fn serve(mut channel: &UnixStream, others: &[SocketAddr]) -> Option<()> {
    loop {
        let mut word = [0];
        channel.read_exact(&mut word).ok()?;
        let family = match word[0] {
            LIST => {
                let mut served = serving::on_loopback(&serving::fixed_ports());
                served.retain(|at| !others.contains(at));
                let mut line = serde_json::to_vec(&served).ok()?;
                line.push(b'\n');
                channel.write_all(&line).ok()?;
                continue;
            }
            VERSION_4 => AddressFamily::INET,
            VERSION_6 => AddressFamily::INET6,
            _ => return None,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None).ok()?;
        attached::send(channel, word[0], socket).ok()?;
    }
}

/// The way to the servers of a command.
#[derive(Debug)]
pub struct Dialer(UnixStream);

impl Dialer {
    /// Creates a dialer from the other end of a thread's channel.
    ///
    /// # Errors
    /// The channel cannot be used.
    pub fn new(channel: OwnedFd) -> io::Result<Self> {
        let channel = UnixStream::from(channel);
        channel.set_read_timeout(Some(ANSWER_LIMIT))?;
        Ok(Self(channel))
    }

    /// Returns the loopback addresses at which the command serves now, except ports picked by the
    /// system.
    ///
    /// # Errors
    /// The command has ended.
    pub fn served(&mut self) -> io::Result<Vec<SocketAddr>> {
        self.0.write_all(&[LIST])?;
        let mut line = String::new();
        BufReader::new(&self.0).read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    /// Returns a socket in the command's network that can be connected to this address there.
    ///
    /// # Errors
    /// The command has ended.
    pub fn socket(&mut self, to: SocketAddr) -> io::Result<OwnedFd> {
        let version = if to.is_ipv4() { VERSION_4 } else { VERSION_6 };
        self.0.write_all(&[version])?;
        let received = attached::receive(&self.0)?;
        let socket = received.and_then(|(_, socket)| socket);
        socket.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}
