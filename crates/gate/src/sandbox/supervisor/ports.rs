//! TCP of a command whose network is the machine's: only its own ports on the loopback interface,
//! and those addresses there that were opened to it.
//!
//! What it binds stands on loopback, whatever it asked for. What it connects to is known by the
//! socket that listens there, which the supervisor has seen being bound.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::OwnedFd,
};

use parking_lot::Mutex;
use rustix::{
    fs::fstat,
    io::Errno,
    net::{AddressFamily, getsockname, sockopt},
};

use gyrus_process::serving;

/// Maximum number of known sockets. Those that nobody listens on any more are forgotten first.
const SOCKETS: usize = 1_024;

/// Addresses to which connections are allowed.
#[derive(Debug, Default)]
pub(in super::super) struct Ports {
    /// Allowed addresses outside: the proxy's, and those that are forwarded.
    open: Vec<SocketAddr>,
    /// Numbers of the sockets on which the command listens.
    own: Mutex<BTreeSet<u64>>,
}

impl Ports {
    pub(in super::super) fn new(open: Vec<SocketAddr>) -> Self {
        Self {
            open,
            own: Mutex::default(),
        }
    }

    /// Returns the address that is meant, if connections to it are allowed.
    pub(super) fn target(&self, address: &[u8]) -> Result<SocketAddr, Errno> {
        let asked = on_loopback(parse(address)?).ok_or(Errno::ACCESS)?;
        if self.open.contains(&asked) || self.is_own(asked) {
            Ok(asked)
        } else {
            Err(Errno::CONNREFUSED)
        }
    }

    /// Whether the command itself, and nobody else, listens at an address.
    pub(super) fn is_own(&self, address: SocketAddr) -> bool {
        let own = self.own.lock();
        let mut there = serving::at(address).into_iter().peekable();
        there.peek().is_some() && there.all(|number| own.contains(&number))
    }

    /// Returns the address at which to bind a socket that asks for `address`.
    pub(super) fn place(&self, socket: &OwnedFd, address: &[u8]) -> Result<SocketAddr, Errno> {
        let asked = parse(address)?;
        let port = asked.port();
        let is_version_6 = sockopt::socket_domain(socket)? == AddressFamily::INET6;
        match (asked.ip(), is_version_6) {
            // Of version 6, the one that stands for all takes connections of both versions.
            (IpAddr::V6(Ipv6Addr::UNSPECIFIED), true) if !sockopt::ipv6_v6only(socket)? => {
                Ok((Ipv4Addr::LOCALHOST.to_ipv6_mapped(), port).into())
            }
            (ip, _) if ip.is_ipv6() != is_version_6 => Err(Errno::AFNOSUPPORT),
            (ip, _) if ip.to_canonical().is_loopback() => Ok(asked),
            _ => on_loopback(asked).ok_or(Errno::ADDRNOTAVAIL),
        }
    }

    /// Records that the command will listen on this socket; an error if others could connect to it.
    pub(super) fn note(&self, socket: &OwnedFd) -> Result<(), Errno> {
        let at = SocketAddr::try_from(getsockname(socket)?).map_err(|_| Errno::INVAL)?;
        if !at.ip().to_canonical().is_loopback() || at.port() == 0 {
            return Err(Errno::ACCESS);
        }
        let number = fstat(socket)?.st_ino;
        let mut own = self.own.lock();
        if own.len() >= SOCKETS {
            let living = serving::all();
            own.retain(|known| living.contains(known));
        }
        own.insert(number);
        Ok(())
    }
}

/// Returns the loopback address that is meant, since nothing else can be reached.
fn on_loopback(address: SocketAddr) -> Option<SocketAddr> {
    let ip = match address.ip().to_canonical() {
        ip if ip.is_loopback() => ip,
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, address.port()))
}

/// Reads `struct sockaddr_in` or `struct sockaddr_in6`.
fn parse(address: &[u8]) -> Result<SocketAddr, Errno> {
    let part = |from: usize, to: usize| address.get(from..to).ok_or(Errno::INVAL);
    let family = u16::from_ne_bytes(part(0, 2)?.try_into().map_err(|_| Errno::INVAL)?);
    let port = u16::from_be_bytes(part(2, 4)?.try_into().map_err(|_| Errno::INVAL)?);
    let ip = match i32::from(family) {
        libc::AF_INET => {
            part(0, size_of::<libc::sockaddr_in>())?;
            let octets: [u8; 4] = part(4, 8)?.try_into().map_err(|_| Errno::INVAL)?;
            IpAddr::from(octets)
        }
        libc::AF_INET6 => {
            let octets: [u8; 16] = part(8, 24)?.try_into().map_err(|_| Errno::INVAL)?;
            IpAddr::from(octets)
        }
        _ => return Err(Errno::AFNOSUPPORT),
    };
    Ok(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version_4(ip: [u8; 4], port: u16) -> Vec<u8> {
        let mut address = 2_u16.to_ne_bytes().to_vec();
        address.extend(port.to_be_bytes());
        address.extend(ip);
        address.extend([0; 8]);
        address
    }

    #[test]
    fn nothing_but_loopback_is_reached() {
        let open: SocketAddr = ([127, 0, 0, 1], 9).into();
        let ports = Ports::new(vec![open]);
        for (ip, port, expected) in [
            ([127, 0, 0, 1], 9, Ok(open)),
            ([0, 0, 0, 0], 9, Ok(open)),
            ([127, 0, 0, 1], 1, Err(Errno::CONNREFUSED)),
            ([192, 0, 2, 1], 9, Err(Errno::ACCESS)),
        ] {
            let address = version_4(ip, port);
            assert_eq!(ports.target(&address), expected, "{ip:?}");
            for cut in 0..address.len() {
                assert!(ports.target(&address[..cut]).is_err(), "{cut}");
            }
        }
        let mut mapped = 10_u16.to_ne_bytes().to_vec();
        mapped.extend(9_u16.to_be_bytes());
        mapped.extend([0; 4]);
        mapped.extend(Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped().octets());
        mapped.extend([0; 4]);
        assert_eq!(ports.target(&mapped), Err(Errno::ACCESS));
    }

    #[test]
    fn a_port_is_the_commands_while_nobody_else_listens() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let ports = Ports::default();
        assert!(!ports.is_own(at));
        let handle = OwnedFd::from(listener);
        ports.note(&handle).unwrap();
        assert!(ports.is_own(at));
        drop(handle);
        assert!(!ports.is_own(at));
        let exposed = OwnedFd::from(std::net::TcpListener::bind("0.0.0.0:0").unwrap());
        assert_eq!(ports.note(&exposed), Err(Errno::ACCESS));
    }
}
