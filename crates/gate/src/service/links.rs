//! Links in written text: whoever gets the text is led there, and most programs fetch them.

use url::Url;

/// Ends of names that programs for mail and chat make into links without any other sign. A link
/// with a scheme, with `www.` or with a path is found whatever its end.
const ENDS: &[&str] = &[
    "app", "biz", "ch", "cn", "co", "com", "de", "dev", "edu", "eu", "fr", "gov", "info", "io",
    "live", "me", "net", "nl", "online", "org", "ru", "shop", "site", "store", "tech", "to", "top",
    "tv", "uk", "us", "xyz",
];

/// Characters around a link that are not a part of it.
const AROUND: &[char] = &[
    '(', ')', '[', ']', '{', '}', '<', '>', '"', '\'', '`', '“', '”', '„', '«', '»', '‘', '’', '.',
    ',', ';', ':', '!', '?', '*', '_', '|',
];

/// Returns the links of a text, as they are written.
pub(crate) fn links(text: &str) -> Vec<&str> {
    // Brackets and quotes end a link, as in markdown and HTML.
    let words = text.split(|c: char| c.is_whitespace() || "()[]<>\"'`|“”«»".contains(c));
    let words = words.map(|word| word.trim_matches(AROUND));
    words.filter(|word| is_link(word)).collect()
}

fn is_link(word: &str) -> bool {
    let lower = word.to_lowercase();
    if lower.contains("://") || lower.starts_with("www.") || lower.starts_with("//") {
        return true;
    }
    if lower.contains('@') {
        // An address of a person is no link, but one that pretends to be is.
        return lower.starts_with("mailto:") || lower.contains('/');
    }
    let host = lower.split(['/', '?', '#', ':']).next().unwrap_or_default();
    let Some((name, end)) = host.rsplit_once('.') else {
        return false;
    };
    let is_end = end.len() >= 2 && end.chars().all(char::is_alphabetic);
    let has_path = lower.len() > host.len() + 1;
    !name.is_empty() && is_end && (has_path || ENDS.contains(&end))
}

/// Returns the host that an address leads to, in any spelling that programs understand, with its
/// port if that is not the usual one; `None` if it leads nowhere that can be told.
pub(crate) fn host_of(address: &str) -> Option<String> {
    let address = address.trim();
    let whole = Url::parse(address).ok().filter(|url| url.host().is_some());
    let bare = || Url::parse(&format!("https://{}", address.trim_start_matches('/'))).ok();
    // `example.com:8080` reads as a scheme, and so does `localhost:80`.
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
    fn links_are_found_however_they_are_written() {
        let text = "See https://a.com/x, <b>http://b.net</b> [here](HTTPS://C.org/y?z=1) or \
                    www.d.com. Also evil.com and f.zip/q; not main.rs, v1.2, e.g. this, \
                    anna@x.com or end.Next";
        let expected = [
            "https://a.com/x",
            "http://b.net",
            "HTTPS://C.org/y?z=1",
            "www.d.com",
            "evil.com",
            "f.zip/q",
        ];
        assert_eq!(links(text), expected);
    }

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
        assert_eq!(host_of("not a host"), None);
    }
}
