//! Values that are secret because of the name beside them: `password = …`, `API_KEY: "…"`,
//! `Authorization: Bearer …`, `--token …`, in the shapes of shells, `.env`, JSON, YAML, XML, code.
//!
//! One regex finds a name with what separates it from its value; the rest is plain code that looks
//! at either side. Quoted values and `.env` lines are believed; a bare word must look like a secret,
//! because code and prose put ordinary words in the same places.

use std::ops::Range;

use regex::Regex;

use super::{Hit, HitName, MIN_VALUE_BYTES, Piece};

/// What names of values found by their context begin with. The same for all of them, so that a
/// value has one name wherever it stands.
pub(super) const KIND: &str = "found";

/// Bytes of a name, before and after the word that gives it away.
const MAX_NAME_BYTES: usize = 64;
/// A value longer than this is no placeholder and no name of a variable.
const MAX_WORD_BYTES: usize = 64;

const NAME_AND_SEPARATOR: &str = r#"(?ix-u)
    (?: passw(?:or)?d | passphrase | passcode | pass | pwd | secret | token | key
      | authorization | bearer )
    [a-z0-9_-]{0,32}
    \\? ["'\]]{0,2}
    (?: : [\ \t]* [a-z_&] [a-z0-9_<>&'\[\]]{0,30} [\ \t]+ = [\ \t]+     # typed: `password: str = `
      | [\ \t]* (?: := | => | == | [=:>] ) [\ \t]*
      | [\ \t]+ )"#;

/// Ends of the last word of a name for something that a person chose.
const PASSWORD_ENDS: [&str; 5] = ["password", "passwd", "passphrase", "passcode", "pwd"];
/// Last words of a name for something that a program made.
const TOKEN_WORDS: [&str; 4] = ["token", "secret", "authorization", "bearer"];
/// Ends of such last words when they are written together.
const TOKEN_ENDS: [&str; 8] = [
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "authkey",
    "accountkey",
    "authtoken",
    "accesstoken",
];
/// Words that make a secret of `key` after them.
const KEY_WORDS: [&str; 9] = [
    "api",
    "access",
    "secret",
    "private",
    "auth",
    "account",
    "encryption",
    "signing",
    "master",
];
/// Words that may follow and change nothing.
const TRAILING_WORDS: [&str; 18] = [
    "prod",
    "production",
    "dev",
    "staging",
    "stage",
    "test",
    "live",
    "local",
    "ci",
    "value",
    "main",
    "old",
    "new",
    "default",
    "primary",
    "secondary",
    "base",
    "env",
];
/// What stands where a secret would and is none.
const PLACEHOLDERS: [&str; 45] = [
    "string",
    "str",
    "number",
    "integer",
    "boolean",
    "object",
    "optional",
    "required",
    "option",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "hidden",
    "redacted",
    "masked",
    "invalid",
    "incorrect",
    "missing",
    "expired",
    "unknown",
    "default",
    "undefined",
    "changeme",
    "changeit",
    "placeholder",
    "example",
    "sample",
    "dummy",
    "enabled",
    "disabled",
    "false",
    "bearer",
    "basic",
    "credentials",
    "notset",
    "nullptr",
    "uint64",
    "uint32",
    "int64",
    "float64",
    "varchar",
    "username",
];

pub(super) struct Context {
    names: Regex,
}

/// How much a name says about a bare word beside it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// People choose these: any word will do.
    Password,
    /// Programs make these: they look random.
    Token,
}

/// How a value stands beside its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `NAME=value`, which shells and `.env` files read.
    Environment,
    Quoted,
    Bare {
        ends_line: bool,
    },
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
    let separator = text[word_end..found.end].trim_matches([' ', '\t']);
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
    let shouted = name
        .bytes()
        .all(|byte| byte.is_ascii_uppercase() || !byte.is_ascii_lowercase());
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
    (accepted && !stands_for && !secret.starts_with("--")).then_some(value)
}

/// Where the value after a separator lies. None if a marker cuts it off: it was seen to already.
fn value_at(piece: &Piece<'_>, start: usize, environment: bool) -> Option<(Range<usize>, Shape)> {
    let rest = &piece.text[start..];
    let line = &rest[..rest.find(['\n', '\r']).unwrap_or(rest.len())];
    let cut_by_marker = |end: usize| start + end == piece.text.len() && !piece.ends_text;

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
    let ends = |c: char| {
        c.is_whitespace()
            || matches!(c, '"' | '\'' | '`' | '\\')
            || (!environment && matches!(c, ',' | ';' | '&' | '<' | '|' | ')' | ']' | '}'))
    };
    let end = line[scheme..]
        .find(ends)
        .map_or(line.len(), |at| scheme + at);
    if cut_by_marker(end) {
        return None;
    }
    let after = &line[end..];
    let ends_line = after.trim().is_empty() || after.starts_with('<') || after.starts_with("\\n");
    let end = if environment {
        end
    } else {
        line[..end].trim_end_matches('.').len()
    };
    let shape = if environment {
        Shape::Environment
    } else {
        Shape::Bare { ends_line }
    };
    Some((start..start + end, shape))
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

/// What a name says of its value; none if it does not name a secret. Words are told apart by `_`,
/// `-`, `.` and capitals.
fn class_of(name: &str) -> Option<Class> {
    let mut words = Vec::<String>::new();
    let mut previous = '_';
    for c in name.chars().take(2 * MAX_NAME_BYTES) {
        if !c.is_ascii_alphanumeric() {
            previous = '_';
            continue;
        }
        if previous == '_' || (c.is_ascii_uppercase() && previous.is_ascii_lowercase()) {
            words.push(String::new());
        }
        words.last_mut()?.push(c.to_ascii_lowercase());
        previous = c;
    }
    let trailing = |word: &String| {
        TRAILING_WORDS.contains(&word.as_str()) || word.bytes().all(|byte| byte.is_ascii_digit())
    };
    while words.len() > 1 && words.last().is_some_and(trailing) {
        words.pop();
    }
    let last = words.pop()?;
    let last = last.trim_end_matches(|c: char| c.is_ascii_digit());
    let ends_with = |ends: &[&str]| ends.iter().any(|end| last.ends_with(end));
    let key_of = words.last().map_or("", String::as_str);
    if ends_with(&PASSWORD_ENDS) || (last == "pass" && !words.is_empty()) {
        Some(Class::Password)
    } else if TOKEN_WORDS.contains(&last)
        || ends_with(&TOKEN_ENDS)
        || (last == "key" && KEY_WORDS.contains(&key_of))
    {
        Some(Class::Token)
    } else {
        None
    }
}

fn plausible(value: &str, class: Class, shape: Shape) -> bool {
    if value.len() < MIN_VALUE_BYTES || is_placeholder(value) {
        return false;
    }
    let digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let letter = value.bytes().any(|byte| byte.is_ascii_alphabetic());
    match shape {
        Shape::Environment => true,
        // A sentence in quotes is a label or a message.
        Shape::Quoted => !value.contains(char::is_whitespace),
        Shape::Bare { .. } if is_code(value) => false,
        Shape::Bare { ends_line } => match class {
            Class::Password => {
                let lower = value.starts_with(|c: char| c.is_ascii_lowercase());
                digit || value.contains(['!', '@', '#', '%', '^', '*']) || (ends_line && lower)
            }
            Class::Token => value.len() >= 8 && digit && letter && !is_numbered_word(value),
        },
    }
}

/// Calls, indexing, generics, paths and members: an expression whose value is not written here.
fn is_code(value: &str) -> bool {
    let member = value.split_once('.').is_some_and(|(first, rest)| {
        let word = |c: char| c.is_ascii_alphabetic() || c == '_';
        first.len() <= 10 && first.chars().all(word) && rest.starts_with(word)
    });
    member
        || value.contains(['(', ')', '[', ']', '{', '}', '<', '>', '$', '\\'])
        || value.contains("::")
        || value.contains("->")
}

/// `base64_url2`: letters, then a small number.
fn is_numbered_word(value: &str) -> bool {
    let word = value.trim_end_matches(|c: char| c.is_ascii_digit());
    value.len() - word.len() <= 3 && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

fn has_mixed_case(value: &str) -> bool {
    let upper_inside = value.bytes().skip(1).any(|byte| byte.is_ascii_uppercase());
    upper_inside && value.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// Whether a value only marks the place of a secret: a variable, a template, a word for it.
pub(super) fn is_placeholder(value: &str) -> bool {
    if value.len() > MAX_WORD_BYTES {
        return false;
    }
    let first = value.chars().next().unwrap_or('x');
    let surrounded = |open: char, close: char| value.starts_with(open) && value.ends_with(close);
    let lower = value.to_ascii_lowercase();
    let plain: String = lower.chars().filter(char::is_ascii_alphanumeric).collect();
    let words = value
        .bytes()
        .all(|b| b.is_ascii_alphabetic() || b"_-. ".contains(&b));
    let separated = words && value.contains(['_', '-']) && !has_mixed_case(value);
    value.chars().all(|c| c == first)
        || surrounded('<', '>')
        || surrounded('[', ']')
        || surrounded('%', '%')
        || (value.starts_with('$')
            && value[1..].starts_with(|c: char| c.is_ascii_alphabetic() || "_{(".contains(c)))
        || value.starts_with('{')
        || value.contains("${")
        || value.contains("{{")
        || value.ends_with("...")
        || value.ends_with('…')
        || lower.starts_with("xxx")
        || value.starts_with("***")
        || PLACEHOLDERS.contains(&plain.as_str())
        || lower.starts_with("your")
        || separated
            && [
                "your",
                "example",
                "placeholder",
                "change",
                "password",
                "secret",
                "token",
                "key",
            ]
            .iter()
            .any(|word| lower.contains(word))
}
