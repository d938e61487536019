//! Patterns of hosts: `example.com`, `*.example.com`, `*`, each with a port or without.
//!
//! One machine has many spellings. Names are compared in lower case and without the root's dot,
//! addresses as numbers. What is not a plain host — or not known, which is an empty text — may be
//! any host: a deny or ask rule takes it for one of its own, an allow rule does not.
//!
//! A pattern without a port is about every port in a deny or ask rule, and about 443 and 80 in an
//! allow rule.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::subject::PatternReading;
use crate::destinations::USUAL_PORTS;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostPattern {
    name: HostName,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostName {
    Any,
    Exactly(String),
    /// All names with this ending, which begins with a dot.
    Below(String),
}

/// A host to which a call connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Host {
    Known {
        name: String,
        port: Option<u16>,
    },
    /// An unknown host, or a text that is not for a resolver.
    Unknown,
}

impl HostPattern {
    /// Parses a pattern of hosts; the error is a phrase.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        if text.contains("://") || text.contains('/') {
            return Err("is an address; write the host alone, such as `example.com`".into());
        }
        if !text.is_ascii() {
            return Err("has letters outside of ASCII; write its `xn--` form".into());
        }
        let (any, plain) = match text.strip_prefix('*') {
            None => (false, text),
            Some("") => {
                return Ok(Self {
                    name: HostName::Any,
                    port: None,
                });
            }
            // A digit that stands for the star keeps the port's place.
            Some(rest) if rest.starts_with(':') => {
                return match Host::parse(&format!("x{rest}")) {
                    Host::Known { port, .. } => Ok(Self {
                        name: HostName::Any,
                        port,
                    }),
                    Host::Unknown => Err("is not a host with a port".into()),
                };
            }
            Some(rest) => match rest.strip_prefix('.') {
                Some(suffix) => (true, suffix),
                None => return Err("may have a star only alone or as `*.`".into()),
            },
        };
        match Host::parse(plain) {
            Host::Unknown => Err("is not a host; a star stands only alone or as `*.`".into()),
            Host::Known { name, port } => Ok(Self {
                name: if any {
                    HostName::Below(format!(".{name}"))
                } else {
                    HostName::Exactly(name)
                },
                port,
            }),
        }
    }

    pub(super) fn matches(&self, host: &Host, reach: PatternReading) -> bool {
        let wide = reach == PatternReading::Wide;
        let Host::Known { name, port } = host else {
            return wide || (self.name == HostName::Any && self.port.is_none());
        };
        let same_name = match &self.name {
            HostName::Any => true,
            HostName::Exactly(own) => own == name,
            HostName::Below(suffix) => name.len() > suffix.len() && name.ends_with(suffix),
        };
        let same_port = match (self.port, port) {
            (None, None) => true,
            (None, Some(port)) => wide || USUAL_PORTS.contains(port),
            (Some(_), None) => wide,
            (Some(own), Some(port)) => own == *port,
        };
        same_name && same_port
    }

    /// Returns the ports that an allow rule names, if it matches one of these hosts.
    pub(super) fn ports_of(&self, hosts: &[&str]) -> Vec<u16> {
        match (&self.name, self.port) {
            (HostName::Exactly(name), port) if hosts.contains(&name.as_str()) => {
                port.map_or(USUAL_PORTS.to_vec(), |port| vec![port])
            }
            (HostName::Exactly(_) | HostName::Any | HostName::Below(_), _) => Vec::new(),
        }
    }
}

impl Host {
    pub(crate) fn parse(text: &str) -> Self {
        Self::read(text).unwrap_or(Self::Unknown)
    }

    fn read(text: &str) -> Option<Self> {
        let (name, port) = if let Some(rest) = text.strip_prefix('[') {
            let (name, after) = rest.split_once(']')?;
            let port = match after {
                "" => None,
                _ => Some(after.strip_prefix(':')?),
            };
            (name.parse::<Ipv6Addr>().ok().map(address)?, port)
        } else if let Ok(found) = text.parse::<Ipv6Addr>() {
            (address(found), None)
        } else {
            match text.split_once(':') {
                Some((name, port)) => (plain_name(name)?, Some(port)),
                None => (plain_name(text)?, None),
            }
        };
        let port = match port {
            None => None,
            Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => Some(port.parse().ok()?),
            Some(_) => return None,
        };
        Some(Self::Known { name, port })
    }
}

fn address(found: Ipv6Addr) -> String {
    match found.to_ipv4_mapped() {
        Some(found) => found.to_string(),
        None => found.to_string(),
    }
}

/// A name in lower case, or an address of four numbers in its usual form.
fn plain_name(text: &str) -> Option<String> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_label = |label: &str| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        !label.is_empty() && label.bytes().all(plain)
    };
    if !name.split('.').all(is_label) {
        return None;
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x");
    if is_number {
        Some(numbers(&name)?.to_string())
    } else {
        Some(name)
    }
}

/// Parses an IPv4 address as resolvers do: up to four numbers, decimal, octal or hexadecimal, the
/// last of which fills what is left.
fn numbers(name: &str) -> Option<Ipv4Addr> {
    let numbers: Option<Vec<u64>> = name
        .split('.')
        .map(|part| match part.strip_prefix("0x") {
            Some("") => Some(0),
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None if part.len() > 1 && part.starts_with('0') => u64::from_str_radix(part, 8).ok(),
            None => part.parse().ok(),
        })
        .collect();
    let numbers = numbers?;
    let (last, first) = numbers.split_last()?;
    if first.len() > 3 || first.iter().any(|number| *number > 255) {
        return None;
    }
    let left = 4 - first.len();
    if *last >= 1 << (8 * left) {
        return None;
    }
    let high = first.iter().fold(0, |all, number| all << 8 | number);
    u32::try_from(high << (8 * left) | last)
        .ok()
        .map(Ipv4Addr::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_machine_has_many_spellings() {
        let check = |pattern: &str, host: &str, narrow: bool, wide: bool| {
            let pattern = HostPattern::new(pattern).unwrap();
            let host = Host::parse(host);
            assert_eq!(
                pattern.matches(&host, PatternReading::Narrow),
                narrow,
                "{host:?}"
            );
            assert_eq!(
                pattern.matches(&host, PatternReading::Wide),
                wide,
                "{host:?}"
            );
        };
        check("example.com", "EXAMPLE.com.", true, true);
        check("example.com", "a.example.com", false, false);
        check("*.Example.com", "a.b.example.com:8443", false, true);
        check("*.Example.com", "a.b.example.com:80", true, true);
        check("*.Example.com:8443", "a.b.example.com:8443", true, true);
        check("*", "127.0.0.1:5432", false, true);
        check("*.example.com", "example.com", false, false);
        check("*.example.com", "evil-example.com", false, false);
        check("*.example.com", "example.com.evil.net", false, false);
        check("example.com:443", "example.com", false, true);
        check("example.com:443", "example.com:80", false, false);
        check("*:22", "anything:22", true, true);
        check("127.0.0.1", "2130706433", true, true);
        check("127.0.0.1", "0x7f.1", true, true);
        check("127.0.0.1", "[::ffff:127.0.0.1]:80", true, true);
        check("[::1]:80", "[0:0::1]:80", true, true);
        check("::1", "[::1]:99999", false, true); // No port, so no known host.
        check("example.com", "example.com@evil.net", false, true);
        check("example.com", "ｅxample.com", false, true);
        check("example.com", "", false, true);
        check("*", "", true, true);
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "https://example.com",
            "example.com/x",
            "bücher.de",
            "a.*.com",
            "*example.com",
            "",
            "*.",
            "exa mple.com",
            "example.com:http",
            "1.2.3.4.5",
        ] {
            assert!(HostPattern::new(text).is_err(), "{text}");
        }
    }
}
