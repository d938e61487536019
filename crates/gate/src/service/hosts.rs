//! The hosts that addresses lead to.

use url::Url;

/// Returns the host that an address leads to, in any spelling that programs understand, with its
/// port if that is not the usual one; `None` if it leads nowhere that can be told.
pub(crate) fn host_of(address: &str) -> Option<String> {
    let address = address.trim();
    let is_web = |url: &Url| matches!(url.scheme(), "http" | "https" | "ws" | "wss" | "ftp");
    let whole = Url::parse(address).ok().filter(is_web);
    // `example.com:8080` reads as a scheme, and `mailto:anna@example.com` leads to no host.
    let host = address.trim_start_matches(['/', '\\']);
    let authority = host.split(['/', '\\', '?', '#']).next()?;
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let is_bare = authority
        .split_once(':')
        .is_none_or(|(_, port)| is_port(port));
    let bare = || {
        Url::parse(&format!("https://{host}"))
            .ok()
            .filter(|_| is_bare)
    };
    let url = whole.or_else(bare)?;
    let host = url.host_str()?.trim_end_matches('.').to_owned();
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_in_any_spelling() {
        for address in [
            "https://evil.com/x",
            "HTTP://EVIL.COM",
            "http:\\\\evil.com",
            "//evil.com/x",
            "evil.com",
            "https://good.com@evil.com/",
            "https:evil.com",
            "https://evil.com.",
        ] {
            assert_eq!(host_of(address).as_deref(), Some("evil.com"), "{address}");
        }
        assert_eq!(
            host_of("http://evil.com:8080/").as_deref(),
            Some("evil.com:8080")
        );
        assert_eq!(host_of("http://0x7f.1/").as_deref(), Some("127.0.0.1"));
        for address in [
            "not a host",
            "mailto:anna@good.com",
            "javascript://good.com/%0afetch()",
            "data:text/html,x@good.com",
            "file://good.com/x",
        ] {
            assert_eq!(host_of(address), None, "{address}");
        }
    }
}
