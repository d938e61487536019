//! Threads that make some system calls on behalf of a confined command.
//!
//! A filter can judge numbers in registers, but not what a path or an address in memory leads to.
//! For such calls the kernel stops the thread and tells a listener; the supervisor holds it. It
//! copies what the call names once, judges the copy, and makes the call itself, so whatever other
//! threads change meanwhile counts for nothing. It lets a call go on by itself only where the
//! kernel has a wall of its own behind it: what was judged could be another thing by then.
//!
//! It shares the command's mounts, processes and network, and stands outside of its Landlock
//! domain and its filters. Its process is one that the command descends from: not dumpable, and the
//! first of the command's PID namespace or outside of its Landlock domain. So the command can
//! neither trace it nor write to its memory nor end it.

mod attributes;
mod caller;
mod connect;
mod diagnosis;
mod entries;
mod linux;
mod listen;
mod moves;
mod origin;
mod parent;
mod ports;
mod sockets;
mod twins;

use std::{
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
    fs::OFlags,
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

use super::{calls, places::WritablePlaces, privileges};
use linux::SupervisedCall;
use twins::Twins;

pub(super) use origin::{Boundary, LetIn};
pub(super) use parent::{SignalWall, start_above};
pub(super) use ports::Ports;

/// Maximum number of calls that may block at the same time, for example on a server that accepts
/// nobody. More have to wait for one of these.
const THREADS: usize = 64;

/// Size of the stack of each thread, in bytes.
const STACK_BYTES: usize = 64 * 1024;

/// A supervisor that waits for its listener; dropping it ends it.
#[derive(Debug)]
pub(super) struct Supervisor {
    channel: UnixStream,
}

/// Starts a supervisor within what this process has entered and mounted so far: a thread of this
/// process, which stays outside of what the calling thread enters and gives up from here on, and
/// which no signal to all other processes ends. Fails where the kernel or a filter around it lacks
/// what is needed.
pub(super) fn start(boundary: Boundary) -> io::Result<Supervisor> {
    let (channel, theirs) = UnixStream::pair()?;
    if !takes_descriptors(&channel)? {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let rules = Rules {
        boundary,
        ports: None,
        places: None,
    };
    let supervise = move || {
        privileges::keep_for_supervising()?;
        if let Some(listener) = receive(theirs)? {
            serve(&SupervisorState::new(listener, rules));
        }
        io::Result::Ok(())
    };
    let thread = thread::Builder::new().stack_size(STACK_BYTES);
    // Where it fails, calls do.
    thread.spawn(move || drop(supervise()))?;
    Ok(Supervisor { channel })
}

/// Whether descriptors of other processes can be taken here, tried on this process itself, which is
/// allowed wherever the call is.
pub(super) fn takes_descriptors(any: impl AsFd) -> io::Result<bool> {
    let ourselves = pidfd_open(getpid(), PidfdFlags::empty())?;
    let taken = pidfd_getfd(ourselves, any.as_fd().as_raw_fd(), PidfdGetfdFlags::empty());
    Ok(taken.is_ok())
}

/// Rules by which a supervisor judges.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) boundary: Boundary,
    /// Ports for binding and connecting sockets, if the network is the machine's and not open.
    pub(super) ports: Option<Ports>,
    /// Files that may be changed, unless the mounts decide that.
    pub(super) places: Option<WritablePlaces>,
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

/// Receives the listener; `None` if the process that started this one wants nothing supervised.
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

struct SupervisorState {
    listener: OwnedFd,
    boundary: Boundary,
    ports: Option<Ports>,
    places: Option<WritablePlaces>,
    twins: Twins,
    /// Threads that wait for a call.
    waiting: AtomicUsize,
    threads: AtomicUsize,
}

/// Outcome of a call that was not refused.
enum CallOutcome {
    Done,
    /// The kernel makes the call, and judges it by itself.
    Passed,
    /// This file was opened for the caller, with these flags of the descriptor.
    Opened(OwnedFd, OFlags),
}

impl SupervisorState {
    fn new(listener: OwnedFd, rules: Rules) -> Arc<Self> {
        // Only makes it faster.
        let _ = linux::wake_in_turn(listener.as_fd());
        let Rules {
            boundary,
            ports,
            places,
        } = rules;
        Arc::new(Self {
            listener,
            boundary,
            ports,
            places,
            twins: Twins::default(),
            waiting: AtomicUsize::new(0),
            threads: AtomicUsize::new(1),
        })
    }

    /// Ensures that another thread takes the next call, if there may be one: this one may be about
    /// to wait for long.
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

/// Serves calls until no process is left that could make one.
fn serve(desk: &Arc<SupervisorState>) {
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
        // Nobody may be waiting any more.
        let _ = desk.answer(&call);
    }
}

impl SupervisorState {
    fn answer(self: &Arc<Self>, call: &SupervisedCall) -> io::Result<()> {
        let listener = self.listener.as_fd();
        let result = match self.make(call) {
            Ok(CallOutcome::Passed) => return linux::pass(listener, call),
            Ok(CallOutcome::Opened(file, flags)) => {
                match linux::answer_with(listener, call, file.as_fd(), flags.bits()) {
                    Ok(()) => return Ok(()),
                    // The caller has too many open.
                    Err(error) => Err(error),
                }
            }
            Ok(CallOutcome::Done) => Ok(()),
            Err(error) => Err(error),
        };
        linux::answer(listener, call, result)
    }

    fn make(self: &Arc<Self>, call: &SupervisedCall) -> Result<CallOutcome, Errno> {
        match call.number {
            libc::SYS_connect => self.connect(call).map(|()| CallOutcome::Done),
            libc::SYS_socket => self.socket(call),
            libc::SYS_bind => self.bind(call),
            libc::SYS_listen => self.listen(call),
            number if calls::ATTRIBUTES.contains(&number) => self.change(call),
            // With mounts of its own, the command's folders are layers.
            number if self.places.is_none() && calls::MOVES.contains(&number) => {
                self.move_folder(call)
            }
            _ => self.change_entry(call),
        }
    }

    /// Whether every process with the filter has ended.
    fn is_over(&self) -> bool {
        let mut watched = [PollFd::new(&self.listener, PollFlags::IN)];
        poll(&mut watched, Some(&Timespec::default())).is_err()
            || watched[0].revents().contains(PollFlags::HUP)
    }
}
