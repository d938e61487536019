//! The loopback interface of a network namespace, and gyrus's end of a proxy on it.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener},
    os::fd::OwnedFd,
};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink::SocketAddrNetlink, recv,
    sendto, socket_with,
};

/// Message types and flags of rtnetlink(7).
const NLMSG_ERROR: u16 = 2;
const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
/// The flag for an active interface, see netdevice(7).
const IFF_UP: u32 = 1;
/// The index of loopback, the first interface of every network namespace.
const LOOPBACK: i32 = 1;
/// Header and `struct ifinfomsg`.
const REQUEST_BYTES: u32 = 32;

/// Switches the loopback interface on.
pub(super) fn start_loopback() -> io::Result<()> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let mut request = Vec::new();
    request.extend(REQUEST_BYTES.to_ne_bytes());
    request.extend(RTM_NEWLINK.to_ne_bytes());
    request.extend((NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
    request.extend([0; 8]); // sequence number, port
    request.extend([0; 4]); // family, padding, device type
    request.extend(LOOPBACK.to_ne_bytes());
    request.extend(IFF_UP.to_ne_bytes()); // flags
    request.extend(IFF_UP.to_ne_bytes()); // which of them to change
    sendto(
        &socket,
        &request,
        SendFlags::empty(),
        &SocketAddrNetlink::new(0, 0),
    )?;
    let mut reply = [0; 128];
    let (count, _) = recv(&socket, &mut reply, RecvFlags::empty())?;
    let kind = reply.get(4..6).map(|kind| [kind[0], kind[1]]);
    let error = reply
        .get(16..20)
        .map(|error| i32::from_ne_bytes([error[0], error[1], error[2], error[3]]));
    match (kind.map(u16::from_ne_bytes), error) {
        (Some(NLMSG_ERROR), Some(0)) if count >= 20 => Ok(()),
        (Some(NLMSG_ERROR), Some(error)) if count >= 20 => {
            Err(io::Error::from_raw_os_error(-error))
        }
        _ => Err(io::Error::other("no answer about the loopback interface")),
    }
}

/// A socket inside that gyrus accepts on from outside, and its port.
pub(super) fn listen() -> io::Result<(OwnedFd, u16)> {
    let listener = TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    Ok((listener.into(), port))
}

/// Opens a socket inside the sandbox at the same address as the forwarded one outside. `None` where
/// the address cannot be had, such as without IPv6: the command finds nothing there, as before.
pub(super) fn forward(to: &SocketAddr) -> Option<OwnedFd> {
    TcpListener::bind(to).ok().map(OwnedFd::from)
}

/// Variables that make programs use the proxy. Loopback is left out: what the command itself serves
/// there is reached directly, and so is what is forwarded. Programs that know only their own names
/// for a proxy are told by these.
pub(super) fn proxy_environment(port: u16) -> Vec<(String, String)> {
    const OF_PROXY: &[&str] = &[
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "CARGO_HTTP_PROXY",
        "npm_config_proxy",
        "npm_config_https_proxy",
        "PIP_PROXY",
        "YARN_HTTP_PROXY",
        "YARN_HTTPS_PROXY",
    ];
    const OF_EXCEPTIONS: &[&str] = &["NO_PROXY", "no_proxy", "npm_config_noproxy"];
    let proxy = format!("http://127.0.0.1:{port}");
    let exceptions = "127.0.0.1,localhost,::1";
    let mut environment: Vec<_> = OF_PROXY
        .iter()
        .map(|name| ((*name).to_owned(), proxy.clone()))
        .collect();
    environment.extend(
        OF_EXCEPTIONS
            .iter()
            .map(|name| ((*name).to_owned(), exceptions.to_owned())),
    );
    // Only then does it look at the names above.
    environment.push(("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned()));
    // Not JAVA_TOOL_OPTIONS: every Java program would say that it has seen it.
    const OF_JAVA: &[&str] = &["JAVA_OPTS", "MAVEN_OPTS", "GRADLE_OPTS", "SBT_OPTS"];
    let java = format!(
        "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={port} \
         -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={port}"
    );
    environment.extend(
        OF_JAVA
            .iter()
            .map(|name| ((*name).to_owned(), java.clone())),
    );
    environment
}
