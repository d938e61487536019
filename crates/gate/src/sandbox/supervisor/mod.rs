//! The process that makes some system calls on behalf of a confined command.
//!
//! A filter can judge numbers in registers, but not what a path or an address in memory leads to.
//! For such calls the kernel stops the thread and tells a listener; the supervisor holds it. It
//! copies what the call names once, judges the copy, and makes the call itself, so whatever other
//! threads change meanwhile counts for nothing. It never lets a call go on by itself: what was
//! judged could be another thing by then.
//!
//! It shares the command's mounts, processes and network, and stands outside of its Landlock
//! domain and its filters. It is not dumpable and has a right that the command lacks, so the
//! command can neither trace it nor write to its memory. Should it end, the calls fail.

mod caller;
mod connect;
mod diagnosis;
mod linux;
mod origin;

use std::{
    fs::File,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
    process::{
        DumpableBehavior, PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open,
        set_dumpable_behavior,
    },
};

use super::privileges;
use linux::Call;
pub(super) use origin::Boundary;

/// Calls that may be waiting for something at once, such as a server that accepts nobody. More
/// have to wait for one of these.
const THREADS: usize = 64;

/// Memory for the stack of each thread.
const STACK_BYTES: usize = 64 * 1024;

/// A supervisor that waits for its listener. Dropping this ends it.
#[derive(Debug)]
pub(super) struct Supervisor {
    channel: UnixStream,
}

/// Starts a supervisor within what this process has entered and mounted so far. This process must
/// have a single thread. Fails where the kernel or a filter around it lacks what is needed.
pub(super) fn start(boundary: Boundary) -> io::Result<Supervisor> {
    let (channel, theirs) = UnixStream::pair()?;
    // Asked of ourselves, which is allowed wherever the call as such is.
    let ourselves = pidfd_open(getpid(), PidfdFlags::empty())?;
    drop(pidfd_getfd(
        ourselves,
        channel.as_raw_fd(),
        PidfdGetfdFlags::empty(),
    )?);
    // The child is so from its start.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    if linux::fork()?.is_some() {
        return Ok(Supervisor { channel });
    }
    let code = i32::from(supervise(theirs, boundary).is_err());
    std::process::exit(code);
}

impl Supervisor {
    /// Hands over the calls that this listener gets.
    pub(super) fn serve(self, listener: &OwnedFd) -> io::Result<()> {
        send(&self.channel, listener)
    }
}

fn send(channel: &UnixStream, listener: &OwnedFd) -> io::Result<()> {
    let handles = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut attached = SendAncillaryBuffer::new(&mut space);
    attached.push(SendAncillaryMessage::ScmRights(&handles));
    let flags = SendFlags::NOSIGNAL;
    sendmsg(channel, &[IoSlice::new(&[0])], &mut attached, flags)?;
    Ok(())
}

/// The listener; `None` if whoever started us wants nothing supervised.
fn receive(channel: impl AsFd) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    let mut word = [0];
    let into = &mut [IoSliceMut::new(&mut word)];
    recvmsg(channel, into, &mut attached, RecvFlags::CMSG_CLOEXEC)?;
    Ok(attached.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut handles) => handles.next(),
        _ => None,
    }))
}

/// Becomes the supervisor. Returns when there is nothing left to supervise.
fn supervise(channel: UnixStream, boundary: Boundary) -> io::Result<()> {
    // What else was open is the keeper's: locks, and a socket whose end others wait for.
    rustix::stdio::dup2_stdin(channel)?;
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    std::mem::forget(nothing);
    linux::close_from(3)?;
    privileges::keep_for_supervising()?;
    let Some(listener) = receive(io::stdin())? else {
        return Ok(());
    };
    // Only makes it faster.
    let _ = linux::wake_in_turn(listener.as_fd());
    serve(&Arc::new(Desk {
        listener,
        boundary,
        waiting: AtomicUsize::new(0),
        threads: AtomicUsize::new(1),
    }));
    Ok(())
}

/// What the supervisor's threads share.
struct Desk {
    listener: OwnedFd,
    boundary: Boundary,
    /// Threads that wait for a call.
    waiting: AtomicUsize,
    threads: AtomicUsize,
}

impl Desk {
    /// Makes sure that another thread takes the next call, if there may be one more: this one may
    /// be about to wait for long.
    fn relieve(self: &Arc<Self>) {
        if self.waiting.load(Ordering::SeqCst) > 0
            || self.threads.fetch_add(1, Ordering::SeqCst) >= THREADS
        {
            return;
        }
        let desk = Arc::clone(self);
        let thread = thread::Builder::new().stack_size(STACK_BYTES);
        if thread.spawn(move || serve(&desk)).is_err() {
            // The next calls wait for this one.
            self.threads.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Serves calls until there is nobody left to make one.
fn serve(desk: &Arc<Desk>) {
    loop {
        desk.waiting.fetch_add(1, Ordering::SeqCst);
        let received = linux::receive(desk.listener.as_fd());
        desk.waiting.fetch_sub(1, Ordering::SeqCst);
        let call = match received {
            Ok(call) => call,
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => continue,
            // Its thread was killed, or there is none left.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) && !desk.is_over() => continue,
            Err(_) => return,
        };
        let result = desk.make(&call);
        // Nobody may be waiting any more.
        let _ = linux::answer(desk.listener.as_fd(), &call, result);
    }
}

impl Desk {
    fn make(self: &Arc<Self>, call: &Call) -> Result<(), Errno> {
        match call.number {
            libc::SYS_connect => self.connect(call),
            _ => Err(Errno::PERM),
        }
    }

    /// Whether every process with the filter has ended.
    fn is_over(&self) -> bool {
        let mut watched = [PollFd::new(&self.listener, PollFlags::IN)];
        poll(&mut watched, Some(&Timespec::default())).is_err()
            || watched[0].revents().contains(PollFlags::HUP)
    }
}
