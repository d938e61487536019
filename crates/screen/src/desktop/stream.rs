//! The stream to an X server, with a limit for waiting: a server that hangs must not hang a run.

use std::{
    io::{self, IoSlice},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use x11rb::rust_connection::{DefaultStream, PollMode, Stream};

/// Time limit for a server's answer.
pub(super) const SERVER_ANSWER: Duration = Duration::from_secs(10);

/// Limit of a connection that waits for events of a person: ten years.
pub(super) const FOR_EVENTS: Duration = Duration::from_hours(24 * 3_650);

/// A stream on which waiting fails after a time limit.
pub(super) struct TimedStream {
    stream: DefaultStream,
    limit: Duration,
}

impl TimedStream {
    /// Limits the waiting of a stream.
    pub(super) fn new(stream: DefaultStream, limit: Duration) -> Self {
        Self { stream, limit }
    }
}

impl AsFd for TimedStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        AsFd::as_fd(&self.stream)
    }
}

impl Stream for TimedStream {
    fn poll(&self, mode: PollMode) -> io::Result<()> {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, mode.readable());
        flags.set(PollFlags::OUT, mode.writable());
        let mut polled = [PollFd::new(&self.stream, flags)];
        let limit = Timespec::try_from(self.limit).map_err(io::Error::other)?;
        loop {
            match poll(&mut polled, Some(&limit)) {
                Ok(0) => {
                    let seconds = self.limit.as_secs();
                    let why = format!("the X server has not answered for {seconds} seconds");
                    return Err(io::Error::new(io::ErrorKind::TimedOut, why));
                }
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn read(&self, buffer: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> io::Result<usize> {
        self.stream.read(buffer, descriptors).map_err(in_words)
    }

    fn write(&self, buffer: &[u8], descriptors: &mut Vec<OwnedFd>) -> io::Result<usize> {
        self.stream.write(buffer, descriptors).map_err(in_words)
    }

    fn write_vectored(
        &self,
        buffers: &[IoSlice<'_>],
        descriptors: &mut Vec<OwnedFd>,
    ) -> io::Result<usize> {
        let written = self.stream.write_vectored(buffers, descriptors);
        written.map_err(in_words)
    }
}

/// Returns an error with the message that the server has ended, for errors that mean this.
fn in_words(error: io::Error) -> io::Error {
    match error.kind() {
        kind @ (io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
            io::Error::new(kind, "the X server has ended")
        }
        _ => error,
    }
}
