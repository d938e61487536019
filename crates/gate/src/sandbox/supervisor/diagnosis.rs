//! The Unix sockets that somebody listens on, as the kernel lists them for a network namespace.
//!
//! See sock_diag(7). Names and numbers in a listing are the kernel's own: whoever made a socket
//! cannot change them by renaming or linking its file.

use std::{io, os::fd::OwnedFd};

use rustix::{
    fs::fstat,
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType,
        netlink::{self, SocketAddrNetlink},
        recv, sendto, socket_with, sockopt,
    },
};

/// Message types and flags of netlink(7) and sock_diag(7).
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const AF_UNIX: u8 = 1;
const TCP_LISTEN: u32 = 10;
const UDIAG_SHOW_NAME: u32 = 1;
const UDIAG_SHOW_VFS: u32 = 2;
const UNIX_DIAG_NAME: u16 = 0;
const UNIX_DIAG_VFS: u16 = 1;

/// Length of the header of a message, and of an attribute in it.
const HEADER_BYTES: usize = 16;
const ATTRIBUTE_BYTES: usize = 4;
/// Length of the fields that precede the attributes.
const SOCKET_BYTES: usize = 16;
/// Length of the request with its header, in bytes.
const REQUEST_BYTES: u32 = 40;

/// Number of bytes read at once. The kernel fits its messages to it, if it is two pages at least.
const CHUNK_BYTES: usize = 16 * 1024;

/// Maximum number of listed sockets.
const LIMIT: usize = 65_536;

/// Names a socket for as long as the machine runs.
pub(in super::super) type SocketIdentity = [u8; 12];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListeningSocket {
    pub(super) identity: SocketIdentity,
    /// Device and inode number of the socket's file, if it has one.
    pub(super) file: Option<(u32, u32)>,
    /// The name to which the socket was bound.
    pub(super) name: Option<Vec<u8>>,
}

/// Netlink socket by which the kernel reports on sockets.
#[derive(Debug)]
pub(super) struct Diagnosis(OwnedFd);

impl Diagnosis {
    /// Opens a connection for queries in this process's network namespace.
    pub(super) fn open() -> io::Result<Self> {
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        let socket = socket_with(family, SocketType::RAW, flags, Some(netlink::SOCK_DIAG))?;
        Ok(Self(socket))
    }

    /// Lists the listening sockets. After an error, answers to this question may be left over, so
    /// nothing more can be asked.
    pub(super) fn listening(&self) -> io::Result<Vec<ListeningSocket>> {
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&self.0, &request(), SendFlags::empty(), &kernel)?;
        let mut listed = Vec::new();
        let mut chunk = [0; CHUNK_BYTES];
        while listed.len() < LIMIT {
            let (count, _) = match recv(&self.0, &mut chunk, RecvFlags::empty()) {
                Err(Errno::INTR) => continue,
                received => received?,
            };
            if read(&chunk[..count], &mut listed)? {
                return Ok(listed);
            }
        }
        Err(io::Error::other("too many sockets"))
    }
}

pub(super) fn identity(socket: &OwnedFd) -> Result<SocketIdentity, Errno> {
    let number = fstat(socket)?.st_ino;
    let cookie = sockopt::socket_cookie(socket)?;
    // The kernel lists 32 bits of the number, and the cookie in halves.
    let words = [number as u32, cookie as u32, (cookie >> 32) as u32];
    let mut identity = SocketIdentity::default();
    for (bytes, word) in identity.chunks_exact_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_ne_bytes());
    }
    Ok(identity)
}

fn request() -> Vec<u8> {
    let mut request = Vec::new();
    request.extend(REQUEST_BYTES.to_ne_bytes());
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    request.extend([0; 8]); // sequence number, port
    request.extend([AF_UNIX, 0, 0, 0]);
    request.extend((1_u32 << TCP_LISTEN).to_ne_bytes());
    request.extend([0; 4]); // any inode
    request.extend((UDIAG_SHOW_NAME | UDIAG_SHOW_VFS).to_ne_bytes());
    request.extend([0; 8]); // cookie
    request
}

/// Reads some messages; returns whether the last one is among them.
fn read(mut chunk: &[u8], listed: &mut Vec<ListeningSocket>) -> io::Result<bool> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    while !chunk.is_empty() {
        let length = number(chunk, 0).ok_or_else(invalid)?;
        let length = usize::try_from(length).map_err(|_| invalid())?;
        let kind = half(chunk, 4).ok_or_else(invalid)?;
        let message = chunk.get(HEADER_BYTES..length).ok_or_else(invalid)?;
        match kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let error = number(message, 0).ok_or_else(invalid)?.cast_signed();
                return Err(io::Error::from_raw_os_error(error.saturating_neg()));
            }
            SOCK_DIAG_BY_FAMILY => listed.push(socket(message).ok_or_else(invalid)?),
            _ => {}
        }
        chunk = chunk.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// Parses `struct unix_diag_msg` and its attributes.
fn socket(message: &[u8]) -> Option<ListeningSocket> {
    let mut listening = ListeningSocket {
        identity: message.get(4..SOCKET_BYTES)?.try_into().ok()?,
        file: None,
        name: None,
    };
    let mut attributes = &message[SOCKET_BYTES..];
    while !attributes.is_empty() {
        let length = usize::from(half(attributes, 0)?);
        let value = attributes.get(ATTRIBUTE_BYTES..length)?;
        match half(attributes, 2)? {
            UNIX_DIAG_NAME => listening.name = Some(value.to_vec()),
            UNIX_DIAG_VFS => listening.file = Some((number(value, 4)?, number(value, 0)?)),
            _ => {}
        }
        attributes = attributes
            .get(length.next_multiple_of(4)..)
            .unwrap_or_default();
    }
    Some(listening)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::MetadataExt,
            net::{SocketAddr, UnixListener},
        },
    };

    use super::*;

    #[test]
    fn lists_files_and_names() {
        let folder = tempfile::tempdir().unwrap();
        let (first, renamed) = (folder.path().join("a"), folder.path().join("b"));
        let named = UnixListener::bind(&first).unwrap();
        std::fs::rename(&first, &renamed).unwrap();
        let name = format!("gyrus-test-{}", folder.path().display());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let _abstract = UnixListener::bind_addr(&address).unwrap();
        let listed = Diagnosis::open().unwrap().listening().unwrap();
        let number = std::fs::metadata(&renamed).unwrap().ino() as u32;
        let has_file = |socket: &&ListeningSocket| socket.file.is_some_and(|file| file.1 == number);
        let identity = identity(&OwnedFd::from(named)).unwrap();
        let named = listed.iter().find(has_file).unwrap();
        assert_eq!(named.identity, identity);
        assert!(
            named
                .name
                .as_ref()
                .is_some_and(|name| name.starts_with(b"/"))
        );
        let name = [b"\0", name.as_bytes()].concat();
        let called = |socket: &&ListeningSocket| socket.name.as_ref() == Some(&name);
        assert_eq!(listed.iter().find(called).unwrap().file, None);
    }

    #[test]
    fn what_is_cut_is_an_error() {
        let mut message = vec![0; 40];
        message[0] = 41;
        message[4] = 20;
        for bytes in [&message[..], &message[..7], &[1, 0, 0, 0, 20, 0]] {
            assert!(read(bytes, &mut Vec::new()).is_err());
        }
        // An attribute of no length must not be read for ever.
        message[0] = 40;
        assert!(read(&message, &mut Vec::new()).is_err());
        // Nor a message of none.
        assert!(read(&[0; 16], &mut Vec::new()).is_err());
    }
}
