//! Destinations of a call, and whether the person named them.

use gyrus_contract::{Grant, Judgement};
use gyrus_net::{AddressKind, AddressScope};

/// Hosts that package managers fetch from, by the managers' own documentation of 2026.
pub(crate) const PACKAGE_REGISTRIES: [&str; 14] = [
    "crates.io",
    "index.crates.io",
    "static.crates.io",
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "pypi.org",
    "files.pythonhosted.org",
    "proxy.golang.org",
    "sum.golang.org",
    "rubygems.org",
    "repo.maven.apache.org",
    "repo1.maven.org",
    "plugins.gradle.org",
    "repo.packagist.org",
];

/// The ports of a host that is named without a port.
pub(crate) const USUAL_PORTS: [u16; 2] = [443, 80];

/// The host of an address, in lower case; `None` if it has none that could be compared.
pub(crate) fn host(address: &str) -> Option<String> {
    place(address).map(|(host, _)| host)
}

/// The host of an address, in lower case, and its port; `None` if they cannot be compared.
pub(crate) fn place(address: &str) -> Option<(String, u16)> {
    let schemes = [("https://", 443), ("http://", 80)];
    let (rest, usual) = schemes.into_iter().find_map(|(scheme, port)| {
        let (head, rest) = address.split_at_checked(scheme.len())?;
        head.eq_ignore_ascii_case(scheme).then_some((rest, port))
    })?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    // Whatever stands before an `@` only pretends to be the host.
    let place = authority.rsplit('@').next()?;
    let (host, after) = match place.strip_prefix('[') {
        Some(v6) => v6.split_once(']')?,
        None => place.split_at(place.find(':').unwrap_or(place.len())),
    };
    let port = match after.strip_prefix(':') {
        None if !after.is_empty() => return None,
        None | Some("") => usual,
        Some(port) => port.parse().ok()?,
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:_".contains(&byte);
    (!host.is_empty() && host.bytes().all(plain)).then_some((host, port))
}

/// Returns the port that a grant stores for this port.
pub(crate) fn port_of_grant(port: u16) -> Option<u16> {
    (!USUAL_PORTS.contains(&port)).then_some(port)
}

/// Whether a host name always means this machine.
pub(crate) fn is_this_machine(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether a name belongs to this machine or its own network, not to the internet.
pub(crate) fn is_near(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    let ends = [".localhost", ".local", ".internal", ".lan", ".home.arpa"];
    !name.contains('.') || ends.iter().any(|end| name.ends_with(end))
}

/// Spellings of a host: this machine's loopback has three, which programs take for each other.
pub(crate) fn spellings(host: &str) -> Vec<&str> {
    if LOOPBACK.contains(&host) {
        LOOPBACK.to_vec()
    } else {
        vec![host]
    }
}

/// The usual spellings of this machine.
pub(crate) const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "::1"];

/// Returns the reason why a connection to `host` at `port` needs no question; `None` if it does.
/// Where the port is not known, it could be any of the usual ones.
pub(crate) fn why_trusted(
    host: &str,
    port: Option<u16>,
    under: &Judgement<'_>,
    standing: &[Grant],
) -> Option<String> {
    let ports = port.map_or(USUAL_PORTS.to_vec(), |port| vec![port]);
    let shown = match port {
        Some(port) if !USUAL_PORTS.contains(&port) => format!("{host}:{port}"),
        _ => host.to_owned(),
    };
    let grants = || under.grants.iter().chain(standing);
    let granted = |port: &u16| grants().any(|grant| grants_connection(grant, host, *port));
    if ports.iter().all(granted) {
        return Some(format!("you allowed connections to {shown}"));
    }
    let named = |port: &u16| {
        let mut texts = under.trusted.iter();
        texts.any(|text| {
            let mut spellings = spellings(host).into_iter();
            spellings.any(|host| ports_named(text, host).contains(port))
        })
    };
    let all = ports.iter().all(named);
    all.then(|| format!("you named {shown} yourself"))
}

pub(crate) fn grants_connection(grant: &Grant, host: &str, port: u16) -> bool {
    match grant {
        Grant::Host {
            host: granted,
            port: at,
        } => {
            let at_port = at.map_or(USUAL_PORTS.contains(&port), |at| at == port);
            at_port && spellings(host).contains(&granted.as_str())
        }
        Grant::PackageRegistries => is_registry(host, port),
        Grant::Command { .. }
        | Grant::Origin { .. }
        | Grant::Reads { .. }
        | Grant::Writes { .. }
        | Grant::Tool { .. }
        | Grant::Service { .. }
        | Grant::Recipient { .. }
        | Grant::Program { .. }
        | Grant::Guidelines { .. }
        | Grant::Skill { .. }
        | Grant::Servers { .. }
        | Grant::Sandbox { .. }
        | Grant::Hooks { .. } => false,
    }
}

pub(crate) fn is_registry(host: &str, port: u16) -> bool {
    USUAL_PORTS.contains(&port) && PACKAGE_REGISTRIES.contains(&host)
}

/// Domains of the internet that are also file extensions: `main.rs` in a goal is a file.
const ENDS_OF_FILES: [&str; 24] = [
    "ac", "am", "cc", "gd", "in", "la", "md", "mk", "ml", "mm", "mo", "mov", "pl", "pm", "ps",
    "pub", "py", "rs", "sc", "sh", "so", "tf", "tk", "zip",
];

/// Returns the ports at which a text names a host literally: not as a part of another one, and not
/// as what may be a word, a number or the name of a file. Without a port the usual ones are meant;
/// of this machine, only that of the address's scheme.
pub(crate) fn ports_named(text: &str, host: &str) -> Vec<u16> {
    let text = text.to_ascii_lowercase();
    let occurrences = text.match_indices(host);
    let ports = occurrences.filter_map(|(start, _)| {
        let (before, rest) = (&text[..start], &text[start + host.len()..]);
        ports_of(before, host, rest)
    });
    ports.flatten().collect()
}

/// Returns the ports meant by a host between these words; `None` if the host is not named there.
fn ports_of(before: &str, host: &str, rest: &str) -> Option<Vec<u16>> {
    // An address of version 6 stands in brackets.
    let (before, rest, is_address) = if host.contains(':') {
        (before.strip_suffix('[')?, rest.strip_prefix(']')?, true)
    } else {
        (before, rest, before.ends_with("://"))
    };
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(byte);
    let within = before.as_bytes().last().is_some_and(inside);
    if within || !(is_address || is_only_a_host(host, rest)) {
        return None;
    }
    let after = rest.strip_prefix(':').unwrap_or_default();
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let (port, end) = match after.split_at(digits) {
        ("", _) => (None, rest),
        (port, end) => (Some(port), end),
    };
    let mut end = end.bytes();
    let ends = match end.next() {
        // A full stop at the end of a sentence, not one within a longer name.
        Some(b'.') => !end.next().is_some_and(|byte| byte.is_ascii_alphanumeric()),
        Some(byte) => !(byte.is_ascii_alphanumeric() || b"-_@".contains(&byte)),
        None => true,
    };
    if !ends {
        return None;
    }
    Some(match port {
        Some(port) => port.parse().ok().into_iter().collect(),
        None if !is_loopback(host) => USUAL_PORTS.to_vec(),
        None if before.ends_with("https://") => vec![443],
        None if before.ends_with("http://") => vec![80],
        None => Vec::new(),
    })
}

fn is_loopback(host: &str) -> bool {
    let ip = host.parse::<std::net::IpAddr>();
    is_this_machine(host) || ip.is_ok_and(|ip| AddressKind::of(ip).scope() == AddressScope::Machine)
}

/// Whether a word before `rest` can mean nothing but a host.
pub(crate) fn is_only_a_host(host: &str, rest: &str) -> bool {
    let has_port = rest
        .strip_prefix(':')
        .is_some_and(|port| port.starts_with(|digit: char| digit.is_ascii_digit()));
    let is_file = |end: &str| ENDS_OF_FILES.contains(&end);
    match host.rsplit_once('.') {
        Some((_, end)) => !is_file(end),
        None => has_port && host.starts_with(|first: char| first.is_ascii_alphabetic()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_what_is_connected_to() {
        let cases = [
            ("https://Example.com/a?b", Some("example.com")),
            ("http://example.com.:8080", Some("example.com")),
            ("https://user:pw@evil.example/x", Some("evil.example")),
            ("http://127.0.0.1:80@evil.example/", Some("evil.example")),
            ("https://example.com\\@evil.example/", Some("example.com")),
            ("http://[::1]:8080/", Some("::1")),
            ("https://exämple.com/", None),
            ("javascript:alert(1)", None),
            ("https://", None),
        ];
        for (address, expected) in cases {
            assert_eq!(host(address).as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn a_host_is_named_only_as_a_whole() {
        let usual: &[u16] = &[443, 80];
        let cases: [(&str, &str, &[u16]); 44] = [
            ("look at https://example.com/docs", "example.com", usual),
            ("look at Example.com.", "example.com", usual),
            ("look at example.com, then stop", "example.com", usual),
            ("look at example.com.evil.example", "example.com", &[]),
            ("look at www.example.com", "example.com", &[]),
            ("look at my-example.com", "example.com", &[]),
            ("mail joe@example.com", "example.com", &[]),
            ("see example.community", "example.com", &[]),
            ("see example.com:8443", "example.com", &[8443]),
            ("see example.com:8443.", "example.com", &[8443]),
            (
                "see example.com:8443/a and example.com",
                "example.com",
                &[8443, 443, 80],
            ),
            ("see example.com:", "example.com", usual),
            ("see example.com:x", "example.com", usual),
            ("see example.com:80x", "example.com", &[]),
            ("see example.com:99999", "example.com", &[]),
            ("http://example.com:80@evil.example/", "example.com", &[]),
            ("http://example.com@evil.example/", "example.com", &[]),
            ("see example.com:8443.5", "example.com", &[]),
            ("fix src/main.rs", "main.rs", &[]),
            ("see https://main.rs/a", "main.rs", usual),
            ("run the tests", "tests", &[]),
            ("ask http://tests/", "tests", usual),
            ("ask tests:99", "tests", &[99]),
            ("use 8080 threads", "8080", &[]),
            ("ping 192.168.1.1", "192.168.1.1", usual),
            ("at 192.168.1.1:81", "192.168.1.1", &[81]),
            ("at 192.168.1.11", "192.168.1.1", &[]),
            // Of this machine a port is meant, never the whole.
            ("look at localhost:3000", "localhost", &[3000]),
            ("at http://localhost/", "localhost", &[80]),
            ("at https://localhost", "localhost", &[443]),
            ("at localhost", "localhost", &[]),
            ("at 127.0.0.1", "127.0.0.1", &[]),
            ("at 127.0.0.1:3000,", "127.0.0.1", &[3000]),
            ("at http://127.0.0.1:3000/x", "127.0.0.1", &[3000]),
            ("at 127.0.0.10:3000", "127.0.0.1", &[]),
            ("at 127.0.0.2:3000", "127.0.0.1", &[]),
            ("at http://0.0.0.0:3000", "0.0.0.0", &[3000]),
            ("at http://app.localhost:3000", "app.localhost", &[3000]),
            ("at http://app.localhost:3000", "localhost", &[]),
            ("at http://[::1]:3000/", "::1", &[3000]),
            ("at http://[::1]/", "::1", &[80]),
            ("at [::1]:3000", "::1", &[3000]),
            ("at ::1:3000", "::1", &[]),
            ("at http://[2001:db8::1]:80/", "::1", &[]),
        ];
        for (text, host, expected) in cases {
            assert_eq!(ports_named(text, host), expected, "{text}");
        }
    }

    #[test]
    fn an_address_has_a_port() {
        for (address, expected) in [
            ("https://example.com/", Some(443)),
            ("http://example.com", Some(80)),
            ("http://example.com:/", Some(80)),
            ("http://example.com:8080/", Some(8080)),
            ("http://[::1]:8080/", Some(8080)),
            ("http://[::1]x/", None),
            ("http://example.com:65536/", None),
            ("http://example.com:-1/", None),
        ] {
            assert_eq!(place(address).map(|(_, port)| port), expected, "{address}");
        }
    }
}
