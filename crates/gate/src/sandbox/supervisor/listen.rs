//! Binding and listening on behalf of a command whose network is the machine's.

use std::{os::fd::OwnedFd, sync::Arc};

use rustix::{
    fs::{FileType, Mode, OFlags, chmod, fstat, openat},
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, bind, listen, sockopt},
};

use super::{
    CallOutcome, SupervisorState,
    caller::{self, PathBase},
    connect::{ADDRESS_BYTES, FAMILY_BYTES},
    linux::SupervisedCall,
};
use crate::sandbox::places::WritablePlaces;

impl SupervisorState {
    /// Performs the call `bind(socket, address, length)` for the caller.
    pub(super) fn bind(self: &Arc<Self>, call: &SupervisedCall) -> Result<CallOutcome, Errno> {
        self.with_socket(call, |socket| self.bind_socket(call, socket))
    }

    fn bind_socket(&self, call: &SupervisedCall, socket: &OwnedFd) -> Result<CallOutcome, Errno> {
        let length = usize::try_from(caller::int(call.arguments[2])).map_err(|_| Errno::INVAL)?;
        if !(FAMILY_BYTES..=ADDRESS_BYTES).contains(&length) {
            return Err(Errno::INVAL);
        }
        let address = caller::memory(call, 1, length)?;
        if !is_internet(socket)? {
            return self.bind_file(call, socket, &address);
        }
        let Some(ports) = &self.ports else {
            return Ok(CallOutcome::Passed);
        };
        let place = ports.place(socket, &address)?;
        self.check_waiting(call)?;
        // It must not share a port that another process listens on.
        sockopt::set_socket_reuseport(socket, false)?;
        bind(socket, &place).map(|()| CallOutcome::Done)
    }

    /// Binds a Unix socket in a folder where only the supervisor can create files.
    fn bind_file(
        &self,
        call: &SupervisedCall,
        socket: &OwnedFd,
        address: &[u8],
    ) -> Result<CallOutcome, Errno> {
        let (family, path) = address.split_at(FAMILY_BYTES);
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        let is_mixed = self.places.as_ref().is_some_and(WritablePlaces::are_mixed);
        if !is_mixed || path.is_empty() || family != AddressFamily::UNIX.as_raw().to_ne_bytes() {
            return Ok(CallOutcome::Passed);
        }
        let Some(entry) = self.entry_of(call, PathBase::Current, path) else {
            return Ok(CallOutcome::Passed);
        };
        if self
            .places
            .as_ref()
            .is_some_and(|all| all.has_rule(&entry.path))
        {
            return Ok(CallOutcome::Passed);
        }
        // What the socket is called is seen by those who ask for it, and is of no use to them.
        let name = caller::own_path(&entry.folder).join(&entry.name);
        let mode = Mode::from_raw_mode(0o777) & !caller::mask(call)?;
        bind(socket, &SocketAddrUnix::new(&name)?)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(&entry.folder, &entry.name, flags, Mode::empty())?;
        // What stands there by now is the command's own in any case.
        if FileType::from_raw_mode(fstat(&made)?.st_mode) == FileType::Socket {
            chmod(caller::own_path(&made), mode)?;
        }
        Ok(CallOutcome::Done)
    }

    /// Performs the call `listen(socket, backlog)` for the caller. It is never left to the kernel,
    /// which would bind a socket to all interfaces that was not bound before.
    pub(super) fn listen(self: &Arc<Self>, call: &SupervisedCall) -> Result<CallOutcome, Errno> {
        self.with_socket(call, |socket| self.listen_on(call, socket))
    }

    fn listen_on(&self, call: &SupervisedCall, socket: &OwnedFd) -> Result<CallOutcome, Errno> {
        self.check_waiting(call)?;
        match (&self.ports, is_internet(socket)?) {
            (Some(ports), true) => ports.note(socket)?,
            (None, true) => {}
            (_, false) => self.boundary.note(socket)?,
        }
        listen(socket, caller::int(call.arguments[1])).map(|()| CallOutcome::Done)
    }
}

fn is_internet(socket: &OwnedFd) -> Result<bool, Errno> {
    let family = sockopt::socket_domain(socket)?;
    Ok([AddressFamily::INET, AddressFamily::INET6].contains(&family))
}
