//! Sockets that the supervisor makes for a command, and calls on them.

use std::os::fd::OwnedFd;

use rustix::{
    fs::OFlags,
    io::Errno,
    net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with},
};

use super::{CallOutcome, SupervisorState, caller, linux::SupervisedCall};

/// The bits of a socket's type without the flags.
const TYPE: u32 = 0xf;

impl SupervisorState {
    /// Performs the call `socket(family, type, protocol)` for the caller. What may be made at all
    /// is for the filter.
    pub(super) fn socket(&self, call: &SupervisedCall) -> Result<CallOutcome, Errno> {
        let word = |argument: usize| caller::int(call.arguments[argument]).cast_unsigned();
        let family = u16::try_from(word(0)).map_err(|_| Errno::AFNOSUPPORT)?;
        let family = AddressFamily::from_raw(family);
        if family == AddressFamily::NETLINK {
            return Ok(CallOutcome::Passed);
        }
        let kind = SocketType::from_raw(word(1) & TYPE);
        let flags = SocketFlags::from_bits_retain(word(1) & !TYPE);
        let protocol = word(2).try_into().ok().map(Protocol::from_raw);
        let socket = socket_with(family, kind, flags | SocketFlags::CLOEXEC, protocol)?;
        self.twins
            .keep(socket.try_clone().map_err(|_| Errno::MFILE)?)?;
        let closed_on_exec = if flags.contains(SocketFlags::CLOEXEC) {
            OFlags::CLOEXEC
        } else {
            OFlags::empty()
        };
        Ok(CallOutcome::Opened(socket, closed_on_exec))
    }

    /// Passes the caller's socket to `act`, for one call on it.
    pub(super) fn with_socket<T>(
        &self,
        call: &SupervisedCall,
        act: impl FnOnce(&OwnedFd) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let socket = match caller::descriptor(call, 0) {
            Err(Errno::PERM | Errno::NOSYS) => {
                let number = caller::socket_number(call, 0).ok_or(Errno::NOTSOCK)?;
                // Else it was connected, or listens.
                self.twins.take(number).ok_or(Errno::ISCONN)?
            }
            socket => return act(&socket?),
        };
        let result = act(&socket);
        let is_done = result.is_ok() && call.number != libc::SYS_bind;
        if !is_done && !matches!(result, Err(Errno::INPROGRESS)) {
            self.twins.keep(socket)?;
        }
        result
    }
}
