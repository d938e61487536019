//! Which values are secrets, once a name says that they could be.
//!
//! Quoted values and `.env` lines are believed; a bare word must look like a secret, because code
//! and prose put ordinary words in the same places.

use super::{
    MIN_VALUE_BYTES,
    names::{Class, class_of},
};

/// A value longer than this is no placeholder and no name of a variable.
const MAX_WORD_BYTES: usize = 64;
/// What stands where a secret would and is none.
const PLACEHOLDERS: &str = "\
    string str number integer boolean object optional required option hidden redacted masked \
    invalid incorrect missing expired unknown default undefined changeme changeit placeholder \
    example sample dummy enabled disabled false bearer basic credentials notset nullptr uint64 \
    uint32 int64 float64 varchar username pass";

/// How a value stands beside its name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// `NAME=value`, which shells and `.env` files read.
    Environment,
    Quoted,
    Bare {
        ends_line: bool,
    },
}

/// Whether a value of this shape, beside a name of this class, is a secret.
pub(super) fn plausible(value: &str, class: Class, shape: Shape) -> bool {
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
                digit
                    || value.contains(['!', '@', '#', '%', '^', '*'])
                    || (ends_line && lower && !value.contains('_'))
            }
            Class::Token => value.len() >= 8 && digit && letter && !is_numbered_word(value),
        },
    }
}

/// Calls, indexing, generics, paths, members, numbers with a type: code, not a value that someone
/// chose.
fn is_code(value: &str) -> bool {
    let member = value.split_once('.').is_some_and(|(first, rest)| {
        let word = |c: char| c.is_ascii_alphabetic() || c == '_';
        first.len() <= 10 && first.chars().all(word) && rest.starts_with(word)
    });
    let number = value.trim_start_matches(|c: char| c.is_ascii_digit() || "_-".contains(c));
    let sized = number.len() < value.len()
        && [
            "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "isize", "usize",
        ]
        .contains(&number);
    member
        || sized
        || value.starts_with("0x")
        || value.contains(['(', ')', '[', ']', '{', '}', '<', '>', '$', '\\'])
        || value.contains("::")
        || value.contains("->")
        || value.contains("://")
        || value.starts_with(['*', '&'])
}

/// `base64_url2`: letters, then a small number.
fn is_numbered_word(value: &str) -> bool {
    let word = value.trim_end_matches(|c: char| c.is_ascii_digit());
    value.len() - word.len() <= 3 && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

pub(super) fn has_mixed_case(value: &str) -> bool {
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
    // `next_page_token`, `challengePassword`: itself a name for a secret.
    let words = value
        .bytes()
        .all(|b| b.is_ascii_alphabetic() || b"_-. ".contains(&b));
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
        || PLACEHOLDERS.split(' ').any(|word| word == plain)
        || lower.starts_with("your")
        || words
            && ["example", "placeholder", "change"]
                .iter()
                .any(|word| lower.contains(word))
        || words && class_of(value).is_some()
}
