//! Secrets that are recognisable by their format.
//!
//! Nearly all begin with fixed letters, so one search for all beginnings skips ordinary text
//! quickly; the rest of a pattern is tried only behind one. It takes all characters that a token
//! could continue with, so that nothing of it is left behind.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind, StartKind};
use gyrus_text::first_bytes;
use memchr::memmem;
use regex::Regex;

use super::{
    context,
    pass::{HitName, SecretHit},
    plausible::is_placeholder,
};

/// The table of formats; its head describes the format.
const FORMATS: &str = include_str!("formats.txt");

/// A format that is recognisable only by a part in its middle. The token must not continue before
/// or behind it.
struct Other {
    kind: &'static str,
    /// The text in the middle of each token.
    inside: &'static str,
    /// Minimum and maximum number of bytes before that, and the bytes that are allowed there.
    before: (usize, usize, fn(u8) -> bool),
    /// The pattern of the whole token.
    pattern: &'static str,
}

const OTHERS: [Other; 6] = [
    Other {
        kind: "telegram-token",
        inside: ":",
        before: (8, 10, |b| b.is_ascii_digit()),
        pattern: r"^[0-9]{8,10}:[A-Za-z0-9_-]{35}",
    },
    Other {
        kind: "discord-token",
        inside: ".",
        before: (24, 28, is_token_byte),
        pattern: r"^[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}",
    },
    Other {
        kind: "azure-secret",
        inside: "Q~",
        before: (4, 4, |b| is_token_byte(b) || b"~.".contains(&b)),
        pattern: r"^[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",
    },
    Other {
        kind: "terraform-token",
        inside: ".atlasv1.",
        before: (14, 14, is_token_byte),
        pattern: r"^[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}",
    },
    Other {
        kind: "firebase-key",
        inside: ":APA91b",
        before: (11, 11, is_token_byte),
        pattern: r"^AAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{130,}",
    },
    Other {
        kind: "mailchimp-key",
        inside: "-us",
        before: (32, 32, |b| b.is_ascii_hexdigit()),
        pattern: r"^[0-9a-f]{32}-us[0-9]{1,2}",
    },
];

/// Minimum number of digits behind `sk-`: names of CSS classes begin with that as well, but have
/// fewer.
const MIN_SK_DIGITS: usize = 2;
/// Minimum length in bytes of a password in an address.
const MIN_ADDRESS_PASSWORD_BYTES: usize = 3;
/// Maximum number of bytes of a private key that are searched for its end.
const MAX_KEY_BLOCK_BYTES: usize = 16 << 10;
/// Minimum number of base64 characters in a row of a key block; a block with fewer is text about
/// keys.
const MIN_KEY_LINE_BYTES: usize = 16;

/// Maximum number of bytes behind a beginning that decide whether a token is a secret.
const MAX_DECIDING_BYTES: usize = 1024;

struct SecretFormat {
    kind: &'static str,
    /// Whether the format only counts at the beginning of a word.
    alone: bool,
    /// Whether the beginning of the format only marks the place and is not a part of the secret.
    after: bool,
    /// The pattern that follows the beginning.
    rest: Regex,
}

pub(super) struct Formats {
    beginnings: AhoCorasick,
    /// The formats by the pattern's number in `beginnings`.
    formats: Vec<SecretFormat>,
    /// The patterns of [`OTHERS`].
    others: Vec<Regex>,
}

impl Formats {
    pub(super) fn new() -> Self {
        let mut beginnings = Vec::new();
        let mut formats = Vec::new();
        for line in FORMATS.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(kind), Some(rest)) = (words.next(), words.next_back()) else {
                continue;
            };
            if kind == "#" {
                continue;
            }
            let rest = Regex::new(&format!("^(?:{rest})")).expect("the patterns are valid");
            for word in words {
                let beginning = word.trim_start_matches('|');
                beginnings.push(beginning);
                formats.push(SecretFormat {
                    kind,
                    alone: word.starts_with('|'),
                    after: beginning.ends_with(['/', '=']),
                    rest: rest.clone(),
                });
            }
        }
        let others = OTHERS.map(|other| Regex::new(other.pattern).expect("the pattern is valid"));
        Self {
            beginnings: AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                // It reads all text, so it is worth a quarter of a megabyte.
                .kind(Some(AhoCorasickKind::DFA))
                .start_kind(StartKind::Unanchored)
                .build(beginnings)
                .expect("the table is small"),
            formats,
            others: others.into(),
        }
    }

    pub(super) fn find(&self, text: &str) -> Vec<SecretHit> {
        let mut hits = Vec::new();
        let mut start = 0;
        while let Some(found) = self.beginnings.find(Input::new(text).range(start..)) {
            start = found.start() + 1;
            let format = &self.formats[found.pattern().as_usize()];
            if let Some(at) = format.whole(text, found.range()) {
                start = at.end;
                hits.push(SecretHit {
                    at,
                    name: HitName::Found(format.kind),
                });
            }
        }
        hits
    }

    /// Finds formats that are recognisable only by a part in their middle.
    pub(super) fn find_others(&self, text: &str) -> Vec<SecretHit> {
        let mut hits: Vec<SecretHit> = Vec::new();
        for (other, pattern) in OTHERS.iter().zip(&self.others) {
            for at in memmem::find_iter(text.as_bytes(), other.inside) {
                let (least, most, is_part) = other.before;
                let before = text.as_bytes()[..at].iter().rev().take(most);
                let before = before.take_while(|byte| is_part(**byte)).count();
                let start = at - before;
                if before < least {
                    continue;
                }
                let Some(found) = pattern.find(&text[start..]) else {
                    continue;
                };
                let range = start + found.start()..start + found.end();
                let ends = !text[range.end..].starts_with(goes_on);
                if ends && begins_token(text, range.start) && is_mixed(found.as_str()) {
                    hits.push(SecretHit {
                        at: range,
                        name: HitName::Found(other.kind),
                    });
                }
            }
        }
        hits.sort_by_key(|hit| hit.at.start);
        hits.dedup_by(|next, kept| next.at.start < kept.at.end);
        hits
    }

    /// Finds passwords in `scheme://user:password@host`. They are named like other values, so that
    /// a password has one name everywhere.
    pub(super) fn find_in_addresses(text: &str) -> Vec<SecretHit> {
        let mut begins = memmem::find_iter(text.as_bytes(), "://").peekable();
        let mut hits = Vec::new();
        while let Some(begin) = begins.next() {
            let end = begins.peek().map_or(text.len(), |next| *next);
            let Some(at) = password_in_address(&text[begin + 3..end]) else {
                continue;
            };
            let at = begin + 3 + at.start..begin + 3 + at.end;
            if at.len() >= MIN_ADDRESS_PASSWORD_BYTES && !is_placeholder(&text[at.clone()]) {
                hits.push(SecretHit {
                    at,
                    name: HitName::Found(context::KIND),
                });
            }
        }
        hits
    }
}

impl SecretFormat {
    /// Returns the range of a secret of this format that begins at `beginning`, if it is one.
    fn whole(&self, text: &str, beginning: Range<usize>) -> Option<Range<usize>> {
        if self.alone && !begins_word(text, beginning.start) {
            return None;
        }
        let rest = &text[beginning.end..];
        let window = first_bytes(rest, MAX_DECIDING_BYTES);
        let found = self.rest.find(window)?;
        // A token that continues behind the window is taken to its end.
        let rest = if found.end() == window.len() {
            self.rest.find(rest)?
        } else {
            found
        };
        let end = beginning.end + rest.end();
        let start = if self.after {
            beginning.end
        } else {
            beginning.start
        };
        match self.kind {
            "private-key" => Some(start..key_block_end(text, end)?),
            "sk-key" => {
                let digits = rest.as_str().bytes().filter(u8::is_ascii_digit);
                (digits.count() >= MIN_SK_DIGITS).then_some(start..end)
            }
            _ => Some(start..end),
        }
    }
}

/// Whether a token can continue with this character.
fn goes_on(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn is_token_byte(byte: u8) -> bool {
    goes_on(char::from(byte))
}

/// Whether `at` is not inside a longer word. In JSON within JSON a line begins with the letter of
/// `\\n`.
fn begins_word(text: &str, at: usize) -> bool {
    let before = &text[..at];
    !before.ends_with(goes_on)
        || ["\\n", "\\r", "\\t"]
            .iter()
            .any(|end| before.ends_with(end))
}

/// Whether a token can begin at `at`: the beginning of a word, or behind `bot` in an address, where
/// the number of a bot stands.
fn begins_token(text: &str, at: usize) -> bool {
    begins_word(text, at) || text[..at].ends_with("/bot")
}

/// Whether a text has both digits and letters, since a number or a repeated word is not a token.
fn is_mixed(token: &str) -> bool {
    let has = |is: fn(&u8) -> bool| token.bytes().any(|byte| is(&byte));
    has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
}

/// Returns the password in the text that follows `://`, up to the next `://`. It may contain
/// characters that should have been encoded, so it extends to the last `@` before a host.
fn password_in_address(text: &str) -> Option<Range<usize>> {
    let ends = |c: char| c.is_whitespace() || "\"'`<>".contains(c);
    let user = text.find(|c| ends(c) || "/?#:@[".contains(c))?;
    let value = text[user..].strip_prefix(':')?;
    let value = &value[..value.find(ends).unwrap_or(value.len())];
    let is_before_host = |at: &usize| {
        let host = |c: char| c.is_ascii_alphanumeric() || c == '[';
        value[at + 1..].starts_with(host)
    };
    let signs = || value.match_indices('@').map(|(at, _)| at);
    let last = signs().rev().find(is_before_host)?;
    let own = &value[..last];
    let digits = own.bytes().take_while(u8::is_ascii_digit).count();
    let is_port = own[digits..].starts_with(['/', '?', '#']);
    if is_port {
        return None;
    }
    // In `user:word@host/path@more` the password ends at the first `@`, because a host follows it.
    let first = own.find('@');
    let length = match (first, own.find('/')) {
        (Some(at), Some(slash)) if at < slash && looks_like_host(&own[at + 1..slash]) => at,
        _ => own.len(),
    };
    Some(user + 1..user + 1 + length)
}

fn looks_like_host(text: &str) -> bool {
    let host = |c: char| c.is_ascii_alphanumeric() || "-.:[],_".contains(c);
    !text.is_empty() && text.chars().all(host)
}

/// Returns the end of a private key whose first line ends at `start`: its last line, or the place
/// where the text no longer looks like a key (output may have been cut). Returns `None` if nothing
/// like a key follows.
fn key_block_end(text: &str, start: usize) -> Option<usize> {
    let rest = &text[start..];
    let window = first_bytes(rest, MAX_KEY_BLOCK_BYTES);
    let digit = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    let (body, last_line) = match window.find("-----END") {
        Some(end) => {
            let line = &rest[end + 8..];
            let close = first_bytes(line, 64).find("-----").map_or(0, |at| at + 5);
            (&window[..end], 8 + close)
        }
        None => {
            let part = |c: char| digit(c) || "\\ \t\r\n".contains(c);
            (
                &window[..window.find(|c| !part(c)).unwrap_or(window.len())],
                0,
            )
        }
    };
    let longest = body.split(|c| !digit(c)).map(str::len).max().unwrap_or(0);
    (longest >= MIN_KEY_LINE_BYTES).then_some(start + body.len() + last_line)
}
