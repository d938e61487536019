//! The links in a text: whoever reads it is led there, and most programs fetch them.
//!
//! Programs for mail, chat and pages make links of far more than `https://…`: of attributes and
//! styles, of any name with a [registered ending](ENDINGS), and of what is either only after
//! entities, escapes or tags are gone. Each of these readings is searched, and what any of them
//! makes a link of is one. Finding too much costs a question; finding too little costs the data.

use std::{borrow::Cow, collections::HashSet, sync::LazyLock};

use icu_normalizer::ComposingNormalizerBorrowed;

use crate::{
    markup::{ANY_LETTER, decoded, unescaped, with_whole_attributes, without_tags},
    without_unseen,
};

/// The registered endings of names.
const ENDINGS: &str = include_str!("endings.txt");

/// The endings of names that files have, too. In a path, such a name is a file's.
const FILE_ENDINGS: &[&str] = &[
    "ac", "ai", "am", "app", "as", "cab", "cat", "cc", "cr", "data", "dot", "in", "la", "map",
    "md", "mk", "ml", "mm", "mo", "mov", "pid", "pl", "pm", "ps", "pt", "pub", "py", "rs", "sc",
    "sh", "so", "st", "tf", "vi", "zip",
];

/// Schemes of addresses that lead somewhere without two slashes.
const SCHEMES: &str = "\
     http https ws wss ftp file mailto tel sms callto facetime skype sip sips xmpp javascript \
     vbscript data blob intent view-source magnet feed whatsapp geo maps webcal news jar";

/// Characters that end a link, besides white space.
const DELIMITERS: &str = "()[]<>\"'`|“”„«»‘’";

/// Punctuation of the sentence around a link.
const AROUND: &[char] = &['{', '}', '.', ',', ';', ':', '!', '?', '*', '_'];

/// Maximum length of an address of IPv6 in its brackets.
const MAX_LITERAL: usize = 64;

static REGISTERED: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lines = ENDINGS.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).collect()
});

/// Returns the links of a text, each once, as programs read them: entities are decoded, backslashes
/// are slashes, and characters that are not seen are left out. An address of a person
/// (`anna@example.com`) is not a link.
pub fn links(text: &str) -> Vec<String> {
    let readings = readings(text);
    let mut known = HashSet::new();
    let all = readings
        .iter()
        .flat_map(|text| LinkScanner::new(text).links());
    let new = all.filter(|link| known.insert(*link));
    new.map(str::to_owned).collect()
}

/// Whether a link is a bare name that a file could have as well (`notes.md`).
pub fn may_be_file(link: &str) -> bool {
    let ending = link
        .rsplit_once('.')
        .map(|(_, ending)| ending.to_lowercase());
    ending.is_some_and(|ending| FILE_ENDINGS.contains(&&*ending)) && link.chars().all(is_of_name)
}

/// Returns the addresses in a text that are written in full: from `http://` or `https://` to the
/// first character that an address cannot hold, without the punctuation of the sentence around.
pub fn full_addresses(text: &str) -> impl Iterator<Item = &str> {
    let starts = ["http://", "https://"]
        .into_iter()
        .flat_map(|scheme| text.match_indices(scheme).map(|(start, _)| start));
    starts.map(|start| {
        let rest = &text[start..];
        let outside = |c: char| c.is_whitespace() || c.is_control() || "\"'<>`|\\^{}".contains(c);
        let end = rest.find(outside).unwrap_or(rest.len());
        rest[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '*'])
    })
}

/// Returns the texts that programs may read instead of this one.
fn readings(text: &str) -> Vec<String> {
    let mut all = vec![Cow::Borrowed(text)];
    if text.contains('<') {
        all.push(without_tags(text).into());
        all.push(with_whole_attributes(&decoded(text)).into());
    }
    if text.contains('\\') {
        let escaped: Vec<_> = all.iter().map(|text| unescaped(text).into()).collect();
        all.extend(escaped);
    }
    let mut all: Vec<_> = all.iter().map(|text| plain(text)).collect();
    all.dedup();
    all
}

/// Returns a text in the form in which programs read addresses in it.
fn plain(text: &str) -> String {
    let mut text = decoded(text);
    if !text.is_ascii() {
        // Full-width letters and dots, ligatures and the like, as names of hosts are mapped.
        let nfkc = ComposingNormalizerBorrowed::new_nfkc();
        text = nfkc.normalize(&text).replace('。', ".");
    }
    without_unseen(&text).replace('\\', "/")
}

pub(crate) fn is_registered(word: &str) -> bool {
    REGISTERED.contains(&*word.to_lowercase())
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ANY_LETTER)
}

fn is_of_scheme(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-')
}

fn ends_link(c: char) -> bool {
    c.is_whitespace() || DELIMITERS.contains(c)
}

struct LinkScanner<'t> {
    text: &'t str,
    /// The text with its ASCII letters in lower case.
    lower: String,
}

impl<'t> LinkScanner<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            lower: text.to_ascii_lowercase(),
        }
    }

    fn links(&self) -> Vec<&'t str> {
        let mut starts: Vec<usize> = self.after_slashes().collect();
        starts.extend(self.after_colons());
        starts.extend(self.names());
        starts.sort_unstable();
        let mut links = Vec::new();
        let mut covered = 0;
        for start in starts {
            if start < covered {
                continue;
            }
            let link = self.extent(start);
            covered = start + link.len();
            let link = link.trim_matches(AROUND);
            if !link.is_empty() {
                links.push(link);
            }
        }
        links
    }

    /// Returns the text from a start to the end of the link. Brackets stand around an address of
    /// IPv6, after the slashes.
    fn extent(&self, start: usize) -> &'t str {
        let end_from = |at: usize| {
            self.text[at..]
                .find(ends_link)
                .map_or(self.text.len(), |end| at + end)
        };
        let end = end_from(start);
        let is_literal = self.text[start..end].ends_with("//") && self.text[end..].starts_with('[');
        let literal = self.text[end..].char_indices().take(MAX_LITERAL);
        let end = match literal.filter(|(_, c)| *c == ']').map(|(at, _)| at).next() {
            Some(length) if is_literal => end_from(end + length + 1),
            _ => end,
        };
        &self.text[start..end]
    }

    fn before(&self, at: usize) -> Option<char> {
        self.text[..at].chars().next_back()
    }

    /// Returns the start of the scheme before a colon.
    fn scheme(&self, colon: usize) -> usize {
        self.text[..colon].trim_end_matches(is_of_scheme).len()
    }

    /// Returns the starts of links with two slashes, with or without a scheme.
    fn after_slashes(&self) -> impl Iterator<Item = usize> {
        self.text.match_indices("//").filter_map(|(at, _)| {
            let before = self.before(at);
            if before == Some('/') {
                return None;
            }
            let next = self.text[at..].trim_start_matches('/').chars().next()?;
            let leads = next.is_alphanumeric() || "[%@:_".contains(next) || next == ANY_LETTER;
            match before {
                Some(':') => (!next.is_whitespace()).then(|| self.scheme(at - 1)),
                Some(c) if is_of_name(c) || "~%)]}".contains(c) => None,
                _ => leads.then_some(at),
            }
        })
    }

    /// Returns the starts of links whose scheme needs no slashes, which is any at the beginning of
    /// an attribute or a link of markdown.
    fn after_colons(&self) -> impl Iterator<Item = usize> {
        self.text.match_indices(':').filter_map(|(colon, _)| {
            let start = self.scheme(colon);
            let scheme = &self.lower[start..colon];
            let next = self.text[colon + 1..].chars().next();
            let leads = next.is_some_and(|c| !ends_link(c));
            let is_known = SCHEMES.split(' ').any(|known| known == scheme);
            let before = self.text[..start].trim_end().trim_end_matches(['"', '\'']);
            let is_value = self.text.contains('<') && before.trim_end().ends_with('=')
                || before.ends_with("](");
            let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
            let is_any = is_value && is_scheme && scheme != "cid";
            (leads && (is_known || is_any)).then_some(start)
        })
    }

    fn names(&self) -> impl Iterator<Item = usize> {
        let mut at = 0;
        let runs = std::iter::from_fn(move || {
            let start = at + self.text[at..].find(is_of_name)?;
            let length = self.text[start..].find(|c| !is_of_name(c));
            at = length.map_or(self.text.len(), |length| start + length);
            Some((start, at))
        });
        runs.filter_map(|(start, end)| self.name(start, end))
    }

    fn name(&self, start: usize, end: usize) -> Option<usize> {
        let run = &self.text[start..end];
        let name = run.trim_start_matches(['.', '-', '_']);
        let start = end - name.len();
        let name = name.trim_end_matches(['.', '-', '_']).to_lowercase();
        let (host, ending) = name.rsplit_once('.')?;
        if host.is_empty() || host.ends_with('.') {
            return None;
        }
        let mut after = self.text[end..].chars();
        let next = after.next();
        let is_port = next == Some(':') && after.next().is_some_and(|c| c.is_ascii_digit());
        let goes_on = matches!(next, Some('/' | '?' | '#'));
        let before = self.before(start);
        // A person's address, unless it pretends to be one.
        if next == Some('@') || (before == Some('@') && !goes_on) {
            return None;
        }
        if before == Some('/') && FILE_ENDINGS.contains(&ending) {
            return None;
        }
        let is_word = ending.chars().count() >= 2 && ending.chars().all(char::is_alphabetic);
        let is_host = (is_word && (goes_on || is_port))
            || name.starts_with("www.")
            || ending.contains(ANY_LETTER)
            || is_registered(ending)
            || is_ipv4(&name);
        is_host.then_some(start)
    }
}

fn is_ipv4(name: &str) -> bool {
    name.parse::<std::net::Ipv4Addr>().is_ok()
}

#[cfg(test)]
mod tests;
