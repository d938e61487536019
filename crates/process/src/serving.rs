//! Sockets that listen on this machine's loopback, by proc_net_tcp(5).

use std::{
    collections::BTreeSet,
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// The state of a socket that listens.
const LISTENS: &str = "0A";

/// The default of the first port that the system picks, if it does not report it.
const PICKED: u16 = 32_768;

/// Fields between a socket's state and its number.
const NUMBER_FIELD: usize = 5;

/// Returns the addresses of `localhost` at which something listens on one of these ports now. A
/// port that nothing listens on is left to the command.
pub fn on_loopback(ports: &[u16]) -> Vec<SocketAddr> {
    if ports.is_empty() {
        return Vec::new();
    }
    let listening = tables();
    let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let addresses = ports
        .iter()
        .flat_map(|port| loopback.map(|ip| SocketAddr::new(ip, *port)));
    addresses
        .filter(|at| listening.iter().any(|on| on.takes(at)))
        .collect()
}

/// Returns the ports of `localhost` on which something listens now and that the system did not
/// pick, in order.
pub fn fixed_ports() -> Vec<u16> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_ascii_whitespace().next();
    let first = first.and_then(|first| first.parse().ok()).unwrap_or(PICKED);
    let listening = tables().into_iter();
    let ports: BTreeSet<u16> = listening.map(|on| on.address.port()).collect();
    ports.range(1..first).copied().collect()
}

/// Numbers of the sockets that take connections to an address.
pub fn at(address: SocketAddr) -> Vec<u64> {
    let there = tables().into_iter().filter(|on| on.takes(&address));
    there.map(|on| on.number).collect()
}

/// Returns the inode numbers of all listening sockets.
pub fn all() -> BTreeSet<u64> {
    tables().into_iter().map(|on| on.number).collect()
}

/// A listening socket.
#[derive(Debug, PartialEq, Eq)]
struct ServingSocket {
    address: SocketAddr,
    /// Inode number of the socket, unique while it is open.
    number: u64,
}

impl ServingSocket {
    fn takes(&self, at: &SocketAddr) -> bool {
        let ip = self.address.ip().to_canonical();
        // Of version 6, the one that stands for all takes connections of both versions.
        let any = ip.is_unspecified() && (ip.is_ipv6() || at.is_ipv4());
        self.address.port() == at.port() && (ip == at.ip() || any)
    }
}

fn tables() -> Vec<ServingSocket> {
    let read = |table| fs::read_to_string(table).unwrap_or_default();
    let mut listening = listening(&read("/proc/self/net/tcp"));
    listening.extend(self::listening(&read("/proc/self/net/tcp6")));
    listening
}

fn listening(table: &str) -> Vec<ServingSocket> {
    let lines = table.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, _remote, state) = (fields.next()?, fields.next()?, fields.next()?);
        if state != LISTENS {
            return None;
        }
        let number = fields.nth(NUMBER_FIELD)?.parse().ok()?;
        let address = address(local)?;
        Some(ServingSocket { address, number })
    });
    lines.collect()
}

/// Parses `0100007F:0BB8`: each word of 32 bits as this machine would print it, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words: Option<Vec<[u8; 4]>> = ip
        .as_bytes()
        .chunks(8)
        .map(|word| {
            let word = std::str::from_utf8(word)
                .ok()
                .filter(|word| word.len() == 8)?;
            Some(u32::from_str_radix(word, 16).ok()?.to_ne_bytes())
        })
        .collect();
    let bytes = words?.concat();
    let ip = match <[u8; 4]>::try_from(&bytes[..]) {
        Ok(bytes) => IpAddr::from(bytes),
        Err(_) => IpAddr::from(<[u8; 16]>::try_from(&bytes[..]).ok()?),
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn sees_what_listens_and_nothing_else() {
        let any = TcpListener::bind("0.0.0.0:0").unwrap();
        let own = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = TcpListener::bind("127.0.0.2:0").unwrap();
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
        let ports = [&any, &own, &other].map(port);
        let seen = on_loopback(&ports);
        let expected = [ports[0], ports[1]].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        assert_eq!(seen, expected);
        assert_eq!(on_loopback(&[]), []);
    }

    #[test]
    fn broken_tables_name_nothing() {
        for line in [
            "",
            "sl local",
            "0: 0100007F 0:0 0A",
            "0: XX00007F:0BB8 0:0 0A",
            "0: 0100:0BB8 0:0 0A",
            "0: é100007F:0BB8 0:0 0A",
            "0: 0100007F:0BB8 0:0 01",
            "0: 0100007F:0BB8 0:0 0A 0:0 0:0 0 0 0",
            "0: 0100007F:0BB8 0:0 0A 0:0 0:0 0 0 0 x",
        ] {
            assert_eq!(listening(line), [], "{line}");
        }
    }
}
