//! Where a call would send something, and whether the person named that place.

use gyrus_contract::{Grant, Judgement};

/// What package managers fetch from, by the managers' own documentation of 2026.
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

/// The host of an address, in lower case; `None` if it has none that could be compared.
pub(crate) fn host(address: &str) -> Option<String> {
    let rest = ["https://", "http://"].into_iter().find_map(|scheme| {
        let (head, rest) = address.split_at_checked(scheme.len())?;
        head.eq_ignore_ascii_case(scheme).then_some(rest)
    })?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    // Whatever stands before an `@` only pretends to be the host.
    let place = authority.rsplit('@').next()?;
    let host = match place.strip_prefix('[') {
        Some(v6) => v6.split(']').next()?,
        None => place.split(':').next()?,
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:_".contains(&byte);
    (!host.is_empty() && host.bytes().all(plain)).then_some(host)
}

/// Why a connection to `host` needs no question; `None` if it does.
pub(crate) fn vouched(host: &str, under: &Judgement<'_>, standing: &[Grant]) -> Option<String> {
    let granted = |grant: &Grant| match grant {
        Grant::Host { host: granted } => granted == host,
        Grant::PackageRegistries => PACKAGE_REGISTRIES.contains(&host),
        Grant::Command { .. }
        | Grant::Origin { .. }
        | Grant::Reads { .. }
        | Grant::Writes { .. }
        | Grant::Tool { .. }
        | Grant::Service { .. }
        | Grant::Servers { .. } => false,
    };
    if under.grants.iter().chain(standing).any(granted) {
        return Some(format!("you allowed connections to {host}"));
    }
    let named = under.trusted.iter().any(|text| names(text, host));
    named.then(|| format!("you named {host} yourself"))
}

/// Domains of the internet that are also ends of file names: `main.rs` in a goal is a file.
const ENDS_OF_FILES: [&str; 24] = [
    "ac", "am", "cc", "gd", "in", "la", "md", "mk", "ml", "mm", "mo", "mov", "pl", "pm", "ps",
    "pub", "py", "rs", "sc", "sh", "so", "tf", "tk", "zip",
];

/// Whether a host stands literally in a text: not as a part of another one, and not as what may be
/// a word, a number or the name of a file.
fn names(text: &str, host: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(byte);
    text.match_indices(host).any(|(start, _)| {
        let (before, rest) = (&text[..start], &text[start + host.len()..]);
        let mut after = rest.as_bytes().iter();
        let ends = match after.next() {
            // A full stop at the end of a sentence, not one within a longer name.
            Some(b'.') => !after
                .next()
                .is_some_and(|byte| byte.is_ascii_alphanumeric()),
            Some(byte) => !(byte.is_ascii_alphanumeric() || b"-_@".contains(byte)),
            None => true,
        };
        let whole = !before.as_bytes().last().is_some_and(inside) && ends;
        whole && (before.ends_with("://") || before.ends_with("://[") || is_only_a_host(host, rest))
    })
}

/// Whether a word that is followed by `rest` can mean nothing but a host.
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
        let cases = [
            ("look at https://example.com/docs", true),
            ("look at Example.com.", true),
            ("look at example.com, then stop", true),
            ("look at example.com.evil.example", false),
            ("look at www.example.com", false),
            ("look at my-example.com", false),
            ("mail joe@example.com", false),
            ("see example.community", false),
        ];
        for (text, expected) in cases {
            assert_eq!(names(text, "example.com"), expected, "{text}");
        }
        let cases = [
            ("fix src/main.rs", "main.rs", false),
            ("see https://main.rs/a", "main.rs", true),
            ("run the tests", "tests", false),
            ("look at localhost:3000", "localhost", true),
            ("at http://localhost/", "localhost", true),
            ("use 8080 threads", "8080", false),
            ("ping 192.168.1.1", "192.168.1.1", true),
        ];
        for (text, host, expected) in cases {
            assert_eq!(names(text, host), expected, "{text}");
        }
    }
}
