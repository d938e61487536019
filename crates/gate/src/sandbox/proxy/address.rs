//! Which addresses belong to the internet, and which to this machine or a network around it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Kind of network that an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The internet.
    Public,
    /// This machine.
    Machine,
    /// A network around it, or nowhere.
    Private,
    /// Addresses where machines of a cloud are given their keys, or that a network card uses alone.
    Metadata,
}

/// Returns the kind of network that an address belongs to. An address of version 6 that stands for
/// one of version 4 belongs where that does.
pub(crate) fn place(address: IpAddr) -> Place {
    /// Amazon's by version 6, Alibaba's, and Microsoft's, which is a public one.
    const METADATA: [IpAddr; 3] = [
        IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
        IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
        IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    ];
    let within = match address.to_canonical() {
        IpAddr::V6(address) => embedded(address).map_or(IpAddr::V6(address), IpAddr::V4),
        address @ IpAddr::V4(_) => address,
    };
    let link_local = match within {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    if link_local || METADATA.contains(&within) {
        Place::Metadata
    } else if within.is_loopback() || within.is_unspecified() {
        Place::Machine
    } else if is_public(address) {
        Place::Public
    } else {
        Place::Private
    }
}

/// Whether an address is anybody's on the internet, by the registries of special addresses that
/// IANA keeps (RFC 6890).
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = matches!(
        address.octets(),
        [0 | 10 | 127 | 224..=255, ..]
            | [100, 64..=127, ..]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [192, 168, ..]
            | [198, 18 | 19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
    );
    !special
}

/// The address of version 4 that this one leads to: mapped, by NAT64 or by 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let (high, low) = match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => (high, low),
        _ => return None,
    };
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Some(Ipv4Addr::new(a, b, c, d))
}

/// Whether an address of version 6 is public; an address of version 4 within it is looked into.
fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(address) = embedded(address) {
        return is_public_v4(address);
    }
    match address.segments() {
        // Teredo and other protocols, documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] => false,
        [0x3fff, 0..=0xfff, ..] => false,
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_is_public() {
        for (address, public) in [
            ("93.184.215.14", true),
            ("172.32.0.1", true),
            ("100.128.0.1", true),
            ("127.8.9.1", false),
            ("0.0.0.0", false),
            ("10.1.2.3", false),
            ("172.31.255.255", false),
            ("192.168.0.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("255.255.255.255", false),
            ("224.0.0.1", false),
            ("2606:2800:21f:cb07::1", true),
            ("::", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:93.184.215.14", true),
            ("::127.0.0.1", false),
            ("64:ff9b::10.0.0.1", false),
            ("64:ff9b::5db8:d70e", true),
            ("64:ff9b:1::1", false),
            ("2002:7f00:1::", false),
            ("2001::1", false),
            ("2001:db8::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("fd00::1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        }
    }

    #[test]
    fn knows_whose_an_address_is() {
        for (address, expected) in [
            ("93.184.215.14", Place::Public),
            ("127.0.0.1", Place::Machine),
            ("127.9.9.9", Place::Machine),
            ("0.0.0.0", Place::Machine),
            ("::", Place::Machine),
            ("::1", Place::Machine),
            ("::ffff:127.0.0.1", Place::Machine),
            ("64:ff9b::7f00:1", Place::Machine),
            ("10.0.0.1", Place::Private),
            ("100.64.0.1", Place::Private),
            ("fd00::1", Place::Private),
            ("224.0.0.1", Place::Private),
            ("169.254.169.254", Place::Metadata),
            ("::ffff:169.254.169.254", Place::Metadata),
            ("2002:a9fe:a9fe::", Place::Metadata),
            ("fe80::1", Place::Metadata),
            ("fd00:ec2::254", Place::Metadata),
            ("100.100.100.200", Place::Metadata),
            ("168.63.129.16", Place::Metadata),
        ] {
            assert_eq!(place(address.parse().unwrap()), expected, "{address}");
        }
    }
}
