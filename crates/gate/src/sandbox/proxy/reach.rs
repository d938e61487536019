//! Resolution of a program's request to the addresses that are connected to.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use gyrus_contract::Destination;
use gyrus_net::AddressKind;
use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};

use crate::destinations::is_this_machine;

/// Time limit for looking up a name, and for connecting to each address.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Maximum number of addresses of a name that are tried.
const ADDRESSES: usize = 4;

/// The reason why a request goes nowhere.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProxyRefusal {
    /// The policy denies the request.
    Denied { to: Destination, reason: String },
    /// The connection failed; a line for the client.
    Failed(String),
    /// The asker no longer waits for an answer.
    Gone,
}

/// Returns the addresses to connect to for `to`, after `decide` allowed it. A name is looked up
/// once, and only then. Where all that it leads to is this machine or a private network, `decide`
/// is asked about the first such address, too, and that one alone is returned.
pub(super) async fn addresses<D, L>(
    to: &Destination,
    decide: impl Fn(Destination) -> D,
    look_up: impl FnOnce(String) -> L,
) -> Result<Vec<SocketAddr>, ProxyRefusal>
where
    D: Future<Output = Result<(), ProxyRefusal>>,
    L: Future<Output = Result<Vec<IpAddr>, String>>,
{
    decide(to.clone()).await?;
    let at = |ip: &IpAddr| SocketAddr::new(*ip, to.port);
    if let Ok(ip) = to.host.parse::<IpAddr>() {
        return Ok(vec![at(&ip)]);
    }
    if is_this_machine(&to.host) {
        // Whatever a resolver says: these names have no other meaning (RFC 6761).
        return Ok(vec![
            at(&Ipv4Addr::LOCALHOST.into()),
            at(&Ipv6Addr::LOCALHOST.into()),
        ]);
    }
    let failed =
        |reason| ProxyRefusal::Failed(format!("{} cannot be looked up: {reason}", to.host));
    let found = look_up(to.host.clone()).await.map_err(failed)?;
    let found: Vec<IpAddr> = found.iter().map(IpAddr::to_canonical).collect();
    let public = found
        .iter()
        .filter(|ip| AddressKind::of(**ip).is_public())
        .take(ADDRESSES);
    let public: Vec<_> = public.map(at).collect();
    match (&public[..], found.first()) {
        ([_, ..], _) => Ok(public),
        ([], None) => Err(failed("it has no address".to_owned())),
        ([], Some(near)) => {
            decide(Destination {
                host: near.to_string(),
                port: to.port,
                name: Some(to.host.clone()),
            })
            .await?;
            Ok(vec![at(near)])
        }
    }
}

/// Looks up a host with the system's resolver.
pub(super) async fn look_up(host: String) -> Result<Vec<IpAddr>, String> {
    match timeout(CONNECT_LIMIT, lookup_host((host, 0))).await {
        Ok(Ok(found)) => Ok(found.map(|found| found.ip()).collect()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_late) => Err("no answer in time".to_owned()),
    }
}

/// Connects to the first of these addresses that accepts.
pub(super) async fn connect(
    to: &Destination,
    addresses: &[SocketAddr],
) -> Result<TcpStream, ProxyRefusal> {
    let mut reason = "no answer in time".to_owned();
    for address in addresses {
        match timeout(CONNECT_LIMIT, TcpStream::connect(address)).await {
            Ok(Ok(server)) => return Ok(server),
            Ok(Err(error)) => reason = error.to_string(),
            Err(_late) => {}
        }
    }
    Err(ProxyRefusal::Failed(format!(
        "{to} cannot be reached: {reason}"
    )))
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, future::ready};

    use super::*;

    /// Checks which destinations are asked about and which are connected to, if a name leads to
    /// `found` and the policy denies names with `denied` in them.
    fn check(host: &str, found: &[&str], denied: &str, expected: (&[&str], Result<&[&str], &str>)) {
        let asked = RefCell::new(Vec::new());
        let to = Destination {
            host: host.to_owned(),
            port: 443,
            name: None,
        };
        let decide = |to: Destination| {
            let text = to.to_string();
            let denies = text.contains(denied);
            asked.borrow_mut().push(text);
            let reason = "no".to_owned();
            ready(if denies {
                Err(ProxyRefusal::Denied { to, reason })
            } else {
                Ok(())
            })
        };
        let look_up = |name: String| {
            asked.borrow_mut().push(format!("look up {name}"));
            ready(Ok(found.iter().map(|ip| ip.parse().unwrap()).collect()))
        };
        let mut reaching = Box::pin(addresses(&to, decide, look_up));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let std::task::Poll::Ready(reached) = reaching.as_mut().poll(&mut context) else {
            panic!("nothing waits here");
        };
        drop(reaching);
        let reached = reached.map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>());
        let reached = reached.map_err(|refusal| match refusal {
            ProxyRefusal::Denied { to, .. } => format!("denied {to}"),
            ProxyRefusal::Failed(line) => line,
            ProxyRefusal::Gone => "gone".to_owned(),
        });
        let (asks, leads) = expected;
        assert_eq!(asked.into_inner(), asks, "{host} {found:?}");
        let leads = leads.map(|all| all.iter().map(|at| (*at).to_owned()).collect());
        assert_eq!(reached, leads.map_err(str::to_owned), "{host} {found:?}");
    }

    #[test]
    fn the_address_that_is_judged_is_the_one_that_is_connected_to() {
        let name = "a.example:443";
        let looked = "look up a.example";
        let public = ["93.184.215.14:443"];
        check(
            "a.example",
            &["93.184.215.14"],
            "!",
            (&[name, looked], Ok(&public)),
        );
        // What the name's owner mixes in is left out.
        check(
            "a.example",
            &["127.0.0.1", "93.184.215.14", "::1"],
            "!",
            (&[name, looked], Ok(&public)),
        );
        // Nothing is looked up that is not allowed: that alone would tell its owner.
        check(
            "a.example",
            &["93.184.215.14"],
            "a.example:",
            (&[name], Err("denied a.example:443")),
        );
        for near in [
            "127.0.0.1",
            "10.0.0.1",
            "169.254.169.254",
            "::1",
            "fd00::1",
            "::ffff:169.254.169.254",
        ] {
            let ip: IpAddr = near.parse().unwrap();
            let at = SocketAddr::new(ip.to_canonical(), 443).to_string();
            let as_such = format!("{at} (the address of a.example)");
            let denied = format!("denied {as_such}");
            let asked = [name, looked, as_such.as_str()];
            check(
                "a.example",
                &[near],
                "(the address",
                (&asked, Err(denied.as_str())),
            );
            check(
                "a.example",
                &[near, "10.9.9.9"],
                "!",
                (&asked, Ok(&[at.as_str()])),
            );
        }
        check(
            "a.example",
            &[],
            "!",
            (
                &[name, looked],
                Err("a.example cannot be looked up: it has no address"),
            ),
        );
        check(
            "192.168.0.1",
            &[],
            "!",
            (&["192.168.0.1:443"], Ok(&["192.168.0.1:443"])),
        );
        check(
            "x.localhost",
            &["93.184.215.14"],
            "!",
            (&["x.localhost:443"], Ok(&["127.0.0.1:443", "[::1]:443"])),
        );
    }
}
