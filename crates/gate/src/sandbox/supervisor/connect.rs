//! Connecting on behalf of a command: to sockets that were made inside, and to no others.
//!
//! A read-only mount keeps nobody from connecting to a socket, and a socket can be reached under
//! any name that its file gets. So its file is looked at, whatever name led there.

use std::{
    net::IpAddr,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::Path,
    sync::Arc,
};

use rustix::{
    fs::{OFlags, fcntl_getfl},
    io::Errno,
    net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
        sockopt::{self, Timeout},
    },
};

use super::{
    SupervisorState, caller,
    linux::{self, SupervisedCall},
    origin::SocketOrigin,
};

/// Length of the longest address of any family, `struct sockaddr_storage`.
pub(super) const ADDRESS_BYTES: usize = 128;

/// Length of the longest address of a Unix socket, `struct sockaddr_un`.
const UNIX_ADDRESS_BYTES: usize = 110;

/// Length of the family, with which every address begins.
pub(super) const FAMILY_BYTES: usize = 2;

/// An address of no family, which parts a socket from its peer.
const NOBODY: [u8; 16] = [0; 16];

/// Destination of a Unix socket.
enum SocketTarget {
    /// Copied, as a network names sockets.
    Name(Vec<u8>),
    /// The file, whatever its name has become.
    File(OwnedFd),
}

impl SupervisorState {
    /// Performs the call `connect(socket, address, length)` for the caller.
    pub(super) fn connect(self: &Arc<Self>, call: &SupervisedCall) -> Result<(), Errno> {
        self.with_socket(call, |socket| self.connect_socket(call, socket))
    }

    fn connect_socket(
        self: &Arc<Self>,
        call: &SupervisedCall,
        socket: &OwnedFd,
    ) -> Result<(), Errno> {
        // What the number stands for may change, but not what it stood for: this very socket is
        // the one that will be connected.
        let family = sockopt::socket_domain(socket)?;
        let length = usize::try_from(caller::int(call.arguments[2])).map_err(|_| Errno::INVAL)?;
        if !(FAMILY_BYTES..=ADDRESS_BYTES).contains(&length) {
            return Err(Errno::INVAL);
        }
        let address = caller::memory(call, 1, length)?;
        if family != AddressFamily::UNIX {
            return self.connect_internet(call, socket, &address);
        }
        match sockopt::socket_type(socket)? {
            SocketType::STREAM | SocketType::SEQPACKET => {}
            // It could send to others without connecting.
            _ => return Err(Errno::ACCESS),
        }
        let target = self.target(call, &address)?;
        self.check_waiting(call)?;
        let origin = match &target {
            SocketTarget::Name(name) => self.boundary.of_name(name),
            SocketTarget::File(file) => self.boundary.of_file(file)?,
        };
        match origin {
            SocketOrigin::Inside => {
                self.expect_waiting(socket)?;
                target.connect(socket)
            }
            SocketOrigin::Unknown => self.connect_another(call, socket, &target),
            // As if nobody listened.
            SocketOrigin::Outside => Err(Errno::CONNREFUSED),
        }
    }

    fn connect_internet(
        self: &Arc<Self>,
        call: &SupervisedCall,
        socket: &OwnedFd,
        address: &[u8],
    ) -> Result<(), Errno> {
        let breaks_up = address.starts_with(&AddressFamily::UNSPEC.as_raw().to_ne_bytes());
        let target = match &self.ports {
            Some(ports) if !breaks_up => Some((ports, ports.target(address)?)),
            // Their addresses mean what the network namespace makes of them.
            _ => None,
        };
        self.check_waiting(call)?;
        self.expect_waiting(socket)?;
        let Some((ports, to)) = target else {
            return linux::connect(socket.as_fd(), address);
        };
        let is_version_6 = sockopt::socket_domain(socket)? == AddressFamily::INET6;
        let to = match to.ip() {
            IpAddr::V4(ip) if is_version_6 => (ip.to_ipv6_mapped(), to.port()).into(),
            _ => to,
        };
        let connected = connect(socket, &to);
        let still = ports.target(address);
        if still.is_err() {
            // Another one has taken the port meanwhile.
            let _ = linux::connect(socket.as_fd(), &NOBODY);
            return Err(Errno::CONNREFUSED);
        }
        connected
    }

    /// Replaces a socket of the caller by `socket`.
    fn put(&self, call: &SupervisedCall, socket: &OwnedFd, flags: OFlags) -> Result<(), Errno> {
        let number = caller::int(call.arguments[0]).unsigned_abs();
        let flags = (flags & OFlags::CLOEXEC).bits();
        linux::replace(self.listener.as_fd(), call, socket.as_fd(), number, flags)
    }

    /// Connects a new socket, and replaces the caller's socket by it only if the listener is inside
    /// the sandbox. Nothing can be sent to anybody else. Of what was set on the caller's socket,
    /// the usual settings are kept.
    fn connect_another(
        self: &Arc<Self>,
        call: &SupervisedCall,
        socket: &OwnedFd,
        target: &SocketTarget,
    ) -> Result<(), Errno> {
        let mut flags = SocketFlags::CLOEXEC;
        if fcntl_getfl(socket)?.contains(OFlags::NONBLOCK) {
            flags |= SocketFlags::NONBLOCK;
        }
        let kind = sockopt::socket_type(socket)?;
        let other = socket_with(AddressFamily::UNIX, kind, flags, None)?;
        sockopt::set_socket_passcred(&other, sockopt::socket_passcred(socket)?)?;
        for timeout in [Timeout::Recv, Timeout::Send] {
            sockopt::set_socket_timeout(
                &other,
                timeout,
                sockopt::socket_timeout(socket, timeout)?,
            )?;
        }
        let flags_of_caller = caller::flags(call, 0)?;
        self.check_waiting(call)?;
        self.expect_waiting(&other)?;
        target.connect(&other)?;
        if linux::listener_of(other.as_fd())? == 0 {
            return Err(Errno::CONNREFUSED);
        }
        self.put(call, &other, flags_of_caller)
    }

    /// Checks that the calling thread still waits: only then are the objects found by its number
    /// the caller's.
    pub(super) fn check_waiting(&self, call: &SupervisedCall) -> Result<(), Errno> {
        if linux::is_waiting(self.listener.as_fd(), call) {
            Ok(())
        } else {
            Err(Errno::SRCH)
        }
    }

    /// Returns the destination of a copied address.
    fn target(&self, call: &SupervisedCall, address: &[u8]) -> Result<SocketTarget, Errno> {
        let (family, path) = address.split_at(FAMILY_BYTES);
        if family != AddressFamily::UNIX.as_raw().to_ne_bytes()
            || path.is_empty()
            || address.len() > UNIX_ADDRESS_BYTES
        {
            return Err(Errno::INVAL);
        }
        if path[0] == 0 {
            return Ok(SocketTarget::Name(path.to_vec()));
        }
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        let file = match self.boundary.let_in_at(path) {
            Some(socket) => socket,
            None => caller::pin(call, path)?,
        };
        Ok(SocketTarget::File(file))
    }

    /// Starts another thread, since connecting a socket may block.
    fn expect_waiting(self: &Arc<Self>, socket: &OwnedFd) -> Result<(), Errno> {
        if !fcntl_getfl(socket)?.contains(OFlags::NONBLOCK) {
            self.relieve();
        }
        Ok(())
    }
}

impl SocketTarget {
    fn connect(&self, socket: &OwnedFd) -> Result<(), Errno> {
        let address = match self {
            Self::Name(name) => {
                let name = name.get(1..).unwrap_or_default();
                SocketAddrUnix::new_abstract_name(name)?
            }
            Self::File(file) => {
                let link = format!("/proc/self/fd/{}", file.as_raw_fd());
                SocketAddrUnix::new(Path::new(&link))?
            }
        };
        connect(socket, &address)
    }
}
