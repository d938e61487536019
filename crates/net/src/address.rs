//! Kinds of addresses, by the registries of special-purpose addresses that IANA keeps (RFC 6890).

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Purpose of an IP address. An IPv6 address that stands for one of IPv4 (mapped, by NAT64 or by
/// 6to4) is what that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressKind {
    /// A host on the internet.
    Public,
    /// `0.0.0.0` or `::`, which connects to this machine.
    Unspecified,
    /// This machine's loopback.
    Loopback,
    /// A private network (RFC 1918), or a unique local address of IPv6.
    Private,
    /// The network between a provider and its customers (RFC 6598).
    Shared,
    /// One network link. Clouds keep the keys of their machines at such addresses.
    LinkLocal,
    /// The metadata service of a cloud outside of the link-local range, which hands out the keys of
    /// its machines.
    Metadata,
    /// A group of hosts, or all of them.
    Multicast,
    /// Used in documentation only.
    Documentation,
    /// Used to measure networks.
    Benchmarking,
    /// Used by protocols, among them relays between IPv4 and IPv6.
    Protocol,
    /// Not assigned to anybody.
    Reserved,
}

/// Network that an address leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressScope {
    /// An address on the internet.
    Public,
    Machine,
    /// An address in a network around this machine, or one without a route.
    Private,
    /// An address at which machines of a cloud get their keys, or one on a single network link.
    Metadata,
}

/// Metadata services outside of the link-local range: Alibaba's, and Microsoft's, whose address is
/// otherwise a public one.
const METADATA_V4: [Ipv4Addr; 2] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
];

/// Amazon's metadata service by IPv6.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

impl AddressKind {
    /// Returns the kind of an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => embedded_v4(address).map_or_else(|| of_v6(address), of_v4),
        }
    }

    /// Whether addresses of this kind belong to hosts on the internet.
    pub fn is_public(self) -> bool {
        self == AddressKind::Public
    }

    /// Returns where such an address leads.
    pub fn scope(self) -> AddressScope {
        match self {
            AddressKind::Public => AddressScope::Public,
            AddressKind::Unspecified | AddressKind::Loopback => AddressScope::Machine,
            AddressKind::LinkLocal | AddressKind::Metadata => AddressScope::Metadata,
            AddressKind::Private
            | AddressKind::Shared
            | AddressKind::Multicast
            | AddressKind::Documentation
            | AddressKind::Benchmarking
            | AddressKind::Protocol
            | AddressKind::Reserved => AddressScope::Private,
        }
    }
}

impl fmt::Display for AddressKind {
    /// Writes the words after "its address is".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AddressKind::Public => "public",
            AddressKind::Unspecified => "unspecified",
            AddressKind::Loopback => "a loopback address",
            AddressKind::Private => "a private address",
            AddressKind::Shared => "in a provider's shared range",
            AddressKind::LinkLocal => "a link-local address",
            AddressKind::Metadata => "a metadata address",
            AddressKind::Multicast => "a multicast address",
            AddressKind::Documentation => "reserved for documentation",
            AddressKind::Benchmarking => "reserved for measurements",
            AddressKind::Protocol => "reserved for protocols",
            AddressKind::Reserved => "reserved",
        })
    }
}

/// Whether the host of an address is this machine by its form alone: `localhost`, or an address of
/// loopback, with or without the brackets of a URL. No name is looked up.
pub fn is_loopback_host(host: &str) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    match bare.parse::<IpAddr>() {
        Ok(address) => AddressKind::of(address) == AddressKind::Loopback,
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

fn of_v4(address: Ipv4Addr) -> AddressKind {
    if METADATA_V4.contains(&address) {
        return AddressKind::Metadata;
    }
    match address.octets() {
        [0, 0, 0, 0] => AddressKind::Unspecified,
        [127, ..] => AddressKind::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressKind::Private,
        [100, 64..=127, ..] => AddressKind::Shared,
        [169, 254, ..] => AddressKind::LinkLocal,
        [192, 0, 0, _] | [192, 88, 99, _] => AddressKind::Protocol,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => AddressKind::Documentation,
        [198, 18 | 19, ..] => AddressKind::Benchmarking,
        [224..=239, ..] | [255, 255, 255, 255] => AddressKind::Multicast,
        [0 | 240..=255, ..] => AddressKind::Reserved,
        _ => AddressKind::Public,
    }
}

/// Returns the kind of an IPv6 address that embeds no IPv4 address.
fn of_v6(address: Ipv6Addr) -> AddressKind {
    if address == METADATA_V6 {
        return AddressKind::Metadata;
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressKind::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressKind::Loopback,
        [0xfc00..=0xfdff, ..] => AddressKind::Private,
        [0xfe80..=0xfebf, ..] => AddressKind::LinkLocal,
        [0xff00..=0xffff, ..] => AddressKind::Multicast,
        // Teredo and other protocols.
        [0x2001, 0..=0x1ff, ..] => AddressKind::Protocol,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => AddressKind::Documentation,
        [0x2000..=0x3fff, ..] => AddressKind::Public,
        _ => AddressKind::Reserved,
    }
}

/// Returns the IPv4 address inside of an IPv6 address: mapped, by NAT64 or by 6to4.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let (high, low) = match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => (high, low),
        _ => return None,
    };
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Some(Ipv4Addr::new(a, b, c, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_address_is() {
        use AddressKind::*;
        for (address, kind) in [
            ("93.184.215.14", Public),
            ("1.1.1.1", Public),
            ("100.63.255.255", Public),
            ("100.128.0.1", Public),
            ("172.15.0.1", Public),
            ("172.32.0.1", Public),
            ("192.169.0.1", Public),
            ("198.20.0.1", Public),
            ("223.255.255.255", Public),
            ("0.0.0.0", Unspecified),
            ("0.1.2.3", Reserved),
            ("127.0.0.1", Loopback),
            ("127.255.255.254", Loopback),
            ("10.1.2.3", Private),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("192.168.0.1", Private),
            ("100.64.0.1", Shared),
            ("100.100.100.200", Metadata),
            ("168.63.129.16", Metadata),
            ("169.254.169.254", LinkLocal),
            ("192.0.0.192", Protocol),
            ("192.0.2.1", Documentation),
            ("198.51.100.1", Documentation),
            ("203.0.113.1", Documentation),
            ("192.88.99.1", Protocol),
            ("198.18.0.1", Benchmarking),
            ("198.19.0.1", Benchmarking),
            ("224.0.0.1", Multicast),
            ("239.255.255.255", Multicast),
            ("240.0.0.1", Reserved),
            ("255.255.255.255", Multicast),
            ("2606:2800:21f:cb07::1", Public),
            ("2001:4860:4860::8888", Public),
            ("::", Unspecified),
            ("::1", Loopback),
            ("fc00::1", Private),
            ("fd00::1", Private),
            ("fd00:ec2::254", Metadata),
            ("fe80::1", LinkLocal),
            ("fec0::1", Reserved),
            ("ff02::1", Multicast),
            ("2001::1", Protocol),
            ("2001:db8::1", Documentation),
            ("3fff::1", Documentation),
            ("100::1", Reserved),
            ("5f00::1", Reserved),
            ("::127.0.0.1", Reserved),
            // What embeds an address of IPv4.
            ("::ffff:127.0.0.1", Loopback),
            ("::ffff:0.0.0.0", Unspecified),
            ("::ffff:93.184.215.14", Public),
            ("::ffff:169.254.169.254", LinkLocal),
            ("::ffff:168.63.129.16", Metadata),
            ("64:ff9b::7f00:1", Loopback),
            ("64:ff9b::10.0.0.1", Private),
            ("64:ff9b::5db8:d70e", Public),
            ("64:ff9b:1::1", Reserved),
            ("2002:7f00:1::", Loopback),
            ("2002:a9fe:a9fe::", LinkLocal),
        ] {
            assert_eq!(AddressKind::of(address.parse().unwrap()), kind, "{address}");
            assert_eq!(kind.is_public(), kind.scope() == AddressScope::Public);
        }
    }

    #[test]
    fn where_an_address_leads() {
        for (address, scope) in [
            ("1.1.1.1", AddressScope::Public),
            ("0.0.0.0", AddressScope::Machine),
            ("::1", AddressScope::Machine),
            ("10.0.0.1", AddressScope::Private),
            ("100.64.0.1", AddressScope::Private),
            ("224.0.0.1", AddressScope::Private),
            ("169.254.1.1", AddressScope::Metadata),
            ("fe80::1", AddressScope::Metadata),
            ("168.63.129.16", AddressScope::Metadata),
        ] {
            let kind = AddressKind::of(address.parse().unwrap());
            assert_eq!(kind.scope(), scope, "{address}");
        }
    }

    #[test]
    fn hosts_of_this_machine() {
        for (host, is_it) in [
            ("localhost", true),
            ("LocalHost", true),
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("[::1]", true),
            ("::1", true),
            ("[::ffff:127.0.0.1]", true),
            ("0.0.0.0", false),
            ("10.0.0.1", false),
            ("localhost.example.com", false),
            ("a.localhost", false),
            ("[localhost]", false),
            ("", false),
        ] {
            assert_eq!(is_loopback_host(host), is_it, "{host}");
        }
    }
}
