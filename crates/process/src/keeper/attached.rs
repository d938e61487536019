//! Sending a descriptor to another process, attached to one byte.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::{
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
};

pub(super) fn send(socket: &UnixStream, word: u8, handle: impl AsFd) -> Result<(), Errno> {
    let handles = [handle.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut attached = SendAncillaryBuffer::new(&mut space);
    attached.push(SendAncillaryMessage::ScmRights(&handles));
    let word = [word];
    loop {
        let flags = SendFlags::NOSIGNAL;
        match sendmsg(socket, &[IoSlice::new(&word)], &mut attached, flags) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Receives one byte and the descriptor attached to it; `None` at the end.
pub(super) fn receive(socket: impl AsFd) -> io::Result<Option<(u8, Option<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    let mut word = [0];
    let received = loop {
        let into = &mut [IoSliceMut::new(&mut word)];
        match recvmsg(socket.as_fd(), into, &mut attached, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            received => break received?,
        }
    };
    if received.bytes == 0 {
        return Ok(None);
    }
    let handle = attached.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut handles) => handles.next(),
        _ => None,
    });
    Ok(Some((word[0], handle)))
}
