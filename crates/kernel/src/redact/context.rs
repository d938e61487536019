//! Values that are secret because of the name beside them: `password = …`, `API_KEY: "…"`,
//! `Authorization: Bearer …`, `--token …`, in the shapes of shells, `.env`, JSON, YAML, XML, code.
//!
//! One regex finds a name with what separates it from its value; the rest is plain code that looks
//! at either side: the name ([`super::names`]), then the value ([`super::plausible`]).

use std::ops::Range;

use regex::Regex;

use super::{
    Hit, HitName, Piece,
    names::class_of,
    plausible::{Shape, has_mixed_case, is_placeholder, plausible},
};

/// What names of values found by their context begin with. The same for all of them, so that a
/// value has one name wherever it stands.
pub(super) const KIND: &str = "found";

/// Bytes of a name, before and after the word that gives it away.
const MAX_NAME_BYTES: usize = 64;
/// Bytes of a quoted value. Like the next, it bounds what a text of nothing but names can cost.
const MAX_QUOTED_BYTES: usize = 2048;
/// Bytes of a bare value that are looked at to decide; one that goes on is taken to its end.
const MAX_BARE_BYTES: usize = 256;

const NAME_AND_SEPARATOR: &str = r#"(?ix-u)
    (?: passw(?:or)?d | passphrase | passcode | pass | pwd | secret | token | key
      | authorization | bearer )
    [a-z0-9_-]{0,32}
    \\? ["'\]]{0,2}
    (?: : [\ \t]* [a-z_&] [a-z0-9_<>&'\[\]]{0,30} [\ \t]+ = [\ \t]+     # typed: `password: str = `
      | [\ \t]* (?: := | => | == | [=:>] ) [\ \t]*
      | [\ \t]+ )"#;

pub(super) struct Context {
    names: Regex,
}

impl Context {
    pub(super) fn new() -> Self {
        Self {
            names: Regex::new(NAME_AND_SEPARATOR).expect("the pattern is valid"),
        }
    }

    pub(super) fn find(&self, piece: &Piece<'_>) -> Vec<Hit> {
        let mut hits = Vec::new();
        let mut start = 0;
        while let Some(found) = self.names.find_at(piece.text, start) {
            start = found.end();
            if let Some(at) = secret_at(piece, found.range()) {
                start = start.max(at.end);
                hits.push(Hit {
                    at,
                    name: HitName::Found(KIND),
                });
            }
        }
        hits
    }
}

/// The part of a string under `key` that is secret because of the key.
pub(super) fn value_under(key: &str, value: &str) -> Option<Range<usize>> {
    let class = class_of(key)?;
    let start = scheme_bytes(value);
    let secret = &value[start..];
    let marked = secret.contains(super::MARKER_START);
    (!marked && plausible(secret, class, Shape::Quoted)).then_some(start..value.len())
}

/// The value beside a name, if both are what they seem. `found` covers the name from its telling
/// word on, and the separator.
fn secret_at(piece: &Piece<'_>, found: Range<usize>) -> Option<Range<usize>> {
    let text = piece.text;
    let matched = &text[found.clone()];
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let word_end = found.start + matched.find(|c| !is_name(c)).unwrap_or(matched.len());
    let before = text[..found.start].bytes().rev().take(MAX_NAME_BYTES);
    let mut start = found.start - before.take_while(|byte| is_name(char::from(*byte))).count();
    // In JSON within JSON a line begins with the letter of `\n`.
    let escape = text[..start].ends_with('\\') && text[start..].starts_with(['n', 'r', 't']);
    if escape && start < found.start {
        start += 1;
    }
    let name = &text[start..word_end];
    let class = class_of(name)?;
    let closers = ['\\', '"', '\'', ']'];
    let separator = text[word_end..found.end].trim_start_matches(closers).trim();
    let bearer = name.eq_ignore_ascii_case("bearer");
    let previous = if escape {
        Some('\n')
    } else {
        text[..start].chars().next_back()
    };
    match separator {
        "" if !(name.starts_with("--") || bearer) => return None,
        ">" if previous != Some('<') => return None,
        _ => {}
    }
    let alone = match previous {
        None => piece.starts_text,
        Some(c) => c.is_whitespace() || c == '"' || c == '\'',
    };
    let shouted = !name.bytes().any(|byte| byte.is_ascii_lowercase());
    let environment = alone && shouted && &text[word_end..found.end] == "=";

    let (value, shape) = value_at(piece, found.end, environment)?;
    let scheme = scheme_bytes(&text[value.clone()]);
    let value = value.start + scheme..value.end;
    let secret = &text[value.clone()];
    // In help texts a word in capitals says what to put there: `--token TOKEN`.
    let stands_for =
        separator.is_empty() && secret.bytes().all(|b| b == b'_' || b.is_ascii_uppercase());
    let basic = scheme > 0 && secret.len() >= 8 && has_mixed_case(secret);
    let accepted = plausible(secret, class, shape) || (basic && !is_placeholder(secret));
    if !accepted || stands_for || secret.starts_with("--") {
        return None;
    }
    let goes_on = value.end >= found.end + MAX_BARE_BYTES - 3;
    let rest = if goes_on { &text[value.end..] } else { "" };
    let more = rest
        .find(|c| ends_bare(c, environment))
        .unwrap_or(rest.len());
    Some(value.start..value.end + more)
}

/// Where the value after a separator lies. None if a marker cuts it off: it was seen to already.
fn value_at(piece: &Piece<'_>, start: usize, environment: bool) -> Option<(Range<usize>, Shape)> {
    let rest = &piece.text[start..];
    let window = &rest[..rest.floor_char_boundary(MAX_QUOTED_BYTES)];
    let line = &window[..window.find(['\n', '\r']).unwrap_or(window.len())];
    let cut_by_marker = |end: usize| end == rest.len() && !piece.ends_text;

    let prefix = line.len() - line.trim_start_matches(['r', 'b', 'f', 'u', '\\']).len();
    if let Some(quote @ ('"' | '\'' | '`')) = line[prefix..].chars().next()
        && prefix <= 2
    {
        let inside = prefix + 1;
        let escaped = line[..prefix].ends_with('\\');
        if let Some(length) = quoted_bytes(&line[inside..], quote, escaped) {
            let shape = if environment {
                Shape::Environment
            } else {
                Shape::Quoted
            };
            return Some((start + inside..start + inside + length, shape));
        }
        if cut_by_marker(line.len()) {
            return None;
        }
    }
    // `Bearer` and the like may stand between the separator and a bare value.
    let scheme = scheme_bytes(line);
    let bare = &line[scheme..line.floor_char_boundary(scheme + MAX_BARE_BYTES)];
    let end = scheme
        + bare
            .find(|c| ends_bare(c, environment))
            .unwrap_or(bare.len());
    if cut_by_marker(end) {
        return None;
    }
    if environment {
        return Some((start..start + end, Shape::Environment));
    }
    let after = &line[end..];
    let line_is_over = after.trim().is_empty() && !cut_by_marker(line.len());
    let ends_line = line_is_over || after.starts_with('<') || after.starts_with("\\n");
    let end = line[..end].trim_end_matches('.').len();
    Some((start..start + end, Shape::Bare { ends_line }))
}

fn ends_bare(c: char, environment: bool) -> bool {
    c.is_whitespace()
        || matches!(c, '"' | '\'' | '`' | '\\')
        || (!environment && matches!(c, ',' | ';' | '&' | '<' | '|' | ')' | ']' | '}'))
}

/// Bytes up to the closing quote. Inside a string that is itself quoted, quotes come as `\"`.
fn quoted_bytes(text: &str, quote: char, escaped: bool) -> Option<usize> {
    let mut backslash = false;
    for (at, c) in text.char_indices() {
        if c == quote && backslash == escaped {
            return Some(if escaped { at - 1 } else { at });
        }
        backslash = c == '\\' && !backslash;
    }
    None
}

/// Bytes of an authentication scheme and the blank after it.
fn scheme_bytes(value: &str) -> usize {
    ["bearer ", "basic ", "token ", "apikey ", "digest "]
        .iter()
        .find(|scheme| {
            value
                .get(..scheme.len())
                .is_some_and(|v| v.eq_ignore_ascii_case(scheme))
        })
        .map_or(0, |scheme| scheme.len())
}
