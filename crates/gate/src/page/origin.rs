//! Origins of pages, and which of them the person named.

use gyrus_contract::{Grant, Judgement};
use gyrus_net::AddressKind;
use url::{Host, Url};

use crate::destinations;

/// Scheme, host and port of a page, as browsers write them: `https://example.com`,
/// `http://localhost:3000`. Never one that has none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PageOrigin(String);

impl PageOrigin {
    pub(super) fn of(address: &Url) -> Option<Self> {
        matches!(address.scheme(), "http" | "https")
            .then(|| Self(address.origin().ascii_serialization()))
    }

    /// Returns the origin that a browser reports for the document at `address`; `None` if they do
    /// not match.
    pub(super) fn measured(origin: &str, address: &str) -> Option<Self> {
        let found = Self::of(&Url::parse(origin).ok()?)?;
        let document = Url::parse(address).ok()?;
        let fits = matches!(document.scheme(), "about" | "blob")
            || Self::of(&document).as_ref() == Some(&found);
        (found.0 == origin && fits).then_some(found)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }

    pub(super) fn grant(&self) -> Grant {
        Grant::Origin {
            origin: self.0.clone(),
        }
    }

    /// Returns the reason why typing into pages of the origin needs no question; `None` if it does.
    pub(super) fn listed(&self, under: &Judgement<'_>, standing: &[Grant]) -> Option<&'static str> {
        let wanted = self.grant();
        if under
            .grants
            .iter()
            .chain(standing)
            .any(|grant| *grant == wanted)
        {
            return Some("where you allowed typing and sending");
        }
        let mut texts = under.trusted.iter();
        let named = texts.any(|text| named_in(text).contains(self));
        named.then_some("which you named")
    }
}

/// Every origin where typing needs no question.
pub(super) fn all_listed(under: &Judgement<'_>, standing: &[Grant]) -> Vec<PageOrigin> {
    let granted = under.grants.iter().chain(standing);
    let granted = granted.filter_map(|grant| match grant {
        Grant::Origin { origin } => Some(PageOrigin(origin.clone())),
        _ => None,
    });
    let texts = under.trusted.iter();
    granted
        .chain(texts.flat_map(|text| named_in(text)))
        .collect()
}

pub(super) fn named_in(text: &str) -> Vec<PageOrigin> {
    let ends = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || "\"'`<>|“”„«»‘’，。、；：！？（）「」『』【】《》".contains(c)
    };
    let mut all = Vec::new();
    for chunk in text.split(ends) {
        if chunk.contains("://") {
            all.extend(by_address(chunk).into_iter().flatten())
        } else {
            let hosts = chunk.split(['(', ')', '[', ']', '{', '}', ',', ';']);
            all.extend(hosts.filter_map(by_host).flatten());
        }
    }
    all
}

/// Returns the origins named by a piece of text with an address in it: `(https://example.com/a),`.
fn by_address(chunk: &str) -> Option<Vec<PageOrigin>> {
    let lower = chunk.to_ascii_lowercase();
    let starts = ["https://", "http://"];
    let start = starts
        .iter()
        .filter_map(|scheme| lower.find(scheme))
        .min()?;
    let (before, address) = chunk.split_at(start);
    let within = |c: char| c.is_ascii_alphanumeric() || "/=&?#%@-_.+\\".contains(c);
    if before.ends_with(within) || address.contains('\\') {
        return None;
    }
    let closing = ['.', ',', ';', ':', '!', '?', ')', ']', '}', '*', '_'];
    let url = Url::parse(address.trim_end_matches(closing)).ok()?;
    let pretends = !url.username().is_empty() || url.password().is_some();
    if pretends {
        return None;
    }
    let mut all = vec![PageOrigin::of(&url)?];
    if url.scheme() == "http" && url.port().is_none() {
        // The same place, better guarded.
        all.extend(PageOrigin::of(
            &Url::parse(&format!("https://{}", url.host_str()?)).ok()?,
        ));
    }
    Some(all)
}

/// Returns the origins named by a word that is a host, perhaps with a port or a path. Only the
/// secure origin is meant, unless the host is near; a host of this machine alone needs its port.
fn by_host(word: &str) -> Option<Vec<PageOrigin>> {
    let word = word
        .trim_start_matches(['*', '_', '~'])
        .trim_end_matches(['.', ':', '!', '?', '*', '_', '~', '-']);
    let authority = word.split(['/', '?', '#']).next()?;
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let plain = |c: char| c.is_alphanumeric() || "-._".contains(c);
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let is_local = host.eq_ignore_ascii_case("localhost") && port.is_some();
    if !(is_local || host.contains('.')) || !host.chars().all(plain) || !port.is_none_or(is_port) {
        return None;
    }
    let host = host.to_lowercase();
    let rest = port.map(|port| format!(":{port}")).unwrap_or_default();
    let url = Url::parse(&format!("https://{authority}")).ok()?;
    let is_whole = match url.host()? {
        // `1.5` is a number, though browsers take it for an address.
        Host::Ipv4(address) => address.to_string() == host,
        Host::Domain(_) => {
            destinations::is_only_a_host(&host, &rest) && host.rsplit('.').next()?.len() > 1
        }
        Host::Ipv6(_) => false,
    };
    if !is_whole {
        return None;
    }
    let mut all = vec![PageOrigin::of(&url)?];
    if is_near(&url) {
        all.extend(PageOrigin::of(
            &Url::parse(&format!("http://{authority}")).ok()?,
        ));
    }
    Some(all)
}

/// Whether an address leads to this machine, or to its local network, where pages of others have no
/// business.
pub(super) fn is_near(address: &Url) -> bool {
    match address.host() {
        None => false,
        Some(Host::Domain(name)) => destinations::is_near(name),
        Some(Host::Ipv4(address)) => !AddressKind::of(address.into()).is_public(),
        Some(Host::Ipv6(address)) => !AddressKind::of(address.into()).is_public(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_names() {
        for (text, expected) in [
            ("book on example.com", &["https://example.com"][..]),
            ("book on Example.COM.", &["https://example.com"]),
            ("(see example.com/a?b=c), then", &["https://example.com"]),
            ("see example.com:8443", &["https://example.com:8443"]),
            ("see bücher.de", &["https://xn--bcher-kva.de"]),
            ("https://example.com/x.", &["https://example.com"]),
            ("[here](https://example.com/x)", &["https://example.com"]),
            ("HTTPS://EXAMPLE.COM:443/", &["https://example.com"]),
            (
                "http://example.com/",
                &["http://example.com", "https://example.com"],
            ),
            ("http://example.com:8080/", &["http://example.com:8080"]),
            ("http://127.0.0.1:5173", &["http://127.0.0.1:5173"]),
            ("http://[::1]:80/x", &["http://[::1]", "https://[::1]"]),
            (
                "localhost:3000",
                &["http://localhost:3000", "https://localhost:3000"],
            ),
            (
                "192.168.1.1",
                &["http://192.168.1.1", "https://192.168.1.1"],
            ),
            (
                "https://a.example/?next=https://b.example",
                &["https://a.example"],
            ),
            ("https://a.example/x,b.example", &["https://a.example"]),
            ("good.com/evil.com", &["https://good.com"]),
            ("good.com.evil.com", &["https://good.com.evil.com"]),
            // None of these names a place to type into.
            ("localhost", &[]),
            ("http://good.com@evil.com/", &[]),
            ("http://good.com:80@evil.com/", &[]),
            ("https://good.com\\@evil.com/", &[]),
            ("good.com@evil.com", &[]),
            ("?to=good.com", &[]),
            ("a/?u=https://good.com", &[]),
            ("mail joe@good.com", &[]),
            ("ftp://good.com", &[]),
            ("fix src/main.rs and lib.rs", &[]),
            ("version 1.5, or 1.2.3", &[]),
            ("at 10:30, e.g. here", &[]),
            ("0x7f.1", &[]),
            ("javascript:alert(1)", &[]),
        ] {
            let mut found: Vec<_> = named_in(text).into_iter().map(|origin| origin.0).collect();
            found.sort();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn what_a_browser_says_must_fit_together() {
        for (origin, address, fits) in [
            ("https://a.example", "https://a.example/x", true),
            ("https://a.example", "https://a.example:443/x", true),
            ("https://a.example", "about:srcdoc", true),
            ("https://a.example", "blob:https://a.example/1", true),
            ("https://a.example", "https://b.example/x", false),
            ("https://a.example", "http://a.example/x", false),
            ("https://a.example/", "https://a.example/x", false),
            ("https://A.example", "https://a.example/x", false),
            ("https://u@a.example", "https://a.example/x", false),
            ("https://a.example", "file:///x", false),
            ("null", "https://a.example/x", false),
            ("file://", "file:///x", false),
            ("", "", false),
        ] {
            let found = PageOrigin::measured(origin, address);
            assert_eq!(found.is_some(), fits, "{origin} {address}");
        }
    }

    #[test]
    fn what_is_near() {
        for (address, near) in [
            ("http://localhost/", true),
            ("http://LOCALHOST./", true),
            ("http://a.localhost:1/", true),
            ("http://router/", true),
            ("http://printer.local/", true),
            ("http://127.1/", true),
            ("http://2130706433/", true),
            ("http://0/", true),
            ("http://10.0.0.1/", true),
            ("http://172.31.0.1/", true),
            ("http://169.254.169.254/latest", true),
            ("http://100.100.0.1/", true),
            ("http://[::1]/", true),
            ("http://[::]/", true),
            ("http://[::ffff:192.168.0.1]/", true),
            ("http://[fd00::1]/", true),
            ("http://[fe80::1]/", true),
            ("http://172.32.0.1/", false),
            ("http://8.8.8.8/", false),
            ("http://[2606:4700::1]/", false),
            ("http://localhost.example.com/", false),
        ] {
            assert_eq!(is_near(&Url::parse(address).unwrap()), near, "{address}");
        }
    }
}
