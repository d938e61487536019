//! Addresses that a page from the internet may have: no private network, no machine's own
//! services, nothing that only looks public. Source: the IANA special-purpose address registries
//! for IPv4 and IPv6.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is that must not be reached; `None` if it is public.
pub(super) fn forbidden(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => forbidden_v4(address),
        IpAddr::V6(address) => forbidden_v6(address),
    }
}

fn forbidden_v4(address: Ipv4Addr) -> Option<&'static str> {
    Some(match address.octets() {
        [0, ..] => "unspecified",
        [127, ..] => "a loopback address",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "a private address",
        [100, 64..=127, ..] => "in a provider's shared range",
        // That of cloud machines' metadata among them.
        [169, 254, ..] => "a link-local address",
        // Public by its number, and yet the metadata service of a cloud's machines.
        [168, 63, 129, 16] => "a metadata address",
        [192, 0, 0, _] => "reserved for protocols",
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => "reserved for documentation",
        [192, 88, 99, _] => "a relay to IPv6",
        [198, 18..=19, ..] => "reserved for measurements",
        [224..=239, ..] => "a multicast address",
        [240..=255, ..] => "reserved",
        _ => return None,
    })
}

fn forbidden_v6(address: Ipv6Addr) -> Option<&'static str> {
    if address.is_unspecified() {
        return Some("unspecified");
    }
    Some(match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => "a loopback address",
        [0, 0, 0, 0, 0, 0xffff, ..] => "an IPv4 address in IPv6 clothes",
        [0x64, 0xff9b, ..] | [0x2002, ..] => "an IPv4 address translated to IPv6",
        [0xfc00..=0xfdff, ..] => "a unique local address",
        [0xfe80..=0xfebf, ..] => "a link-local address",
        [0xff00..=0xffff, ..] => "a multicast address",
        // Teredo and others that are no plain hosts.
        [0x2001, 0..=0x1ff, ..] => "reserved for protocols",
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => "reserved for documentation",
        [0x2000..=0x3fff, ..] => return None,
        _ => "reserved",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_allowed() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.169.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "2a00:1450::1",
        ] {
            assert_eq!(forbidden(address.parse().unwrap()), None, "{address}");
        }
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.19.0.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(forbidden(address.parse().unwrap()).is_some(), "{address}");
        }
    }
}
