//! Known values, in the forms in which other programs write them.
//!
//! Each form has a name of its own (`NAME.base64`), so that revealing restores exactly the text
//! that was replaced.

use std::collections::{HashMap, HashSet};

use aho_corasick::{AhoCorasick, MatchKind};
use gyrus_text::percent_encoded;

use super::pass::{HitName, MIN_VALUE_BYTES, Secret, SecretHit};

/// Minimum length in bytes of a piece of base64 that is searched for.
const MIN_BASE64_BYTES: usize = 8;
/// Maximum length in bytes of a name in a marker, before the suffix for a form.
const MAX_NAME_BYTES: usize = 64;

pub(super) struct KnownSecrets {
    automaton: AhoCorasick,
    /// The names by the automaton's pattern number.
    names: Vec<String>,
    values: HashMap<String, String>,
    /// Whether a value extends beyond the end of a line or of a sentence.
    pub(super) spans_lines: bool,
    /// Whether a value extends beyond the end of a word.
    pub(super) spans_words: bool,
}

impl KnownSecrets {
    pub(super) fn new(secrets: Vec<Secret>, fingerprint: impl Fn(&str) -> String) -> Self {
        let mut values = HashMap::<String, String>::new();
        let mut names = Vec::new();
        let mut patterns = Vec::<String>::new();
        let mut seen = HashSet::new();
        for secret in secrets {
            if secret.value.len() < MIN_VALUE_BYTES {
                continue;
            }
            let base = plain_name(&secret.name);
            for (suffix, form) in forms(&secret.value) {
                let mut name = format!("{base}{suffix}");
                if values.get(&name).is_some_and(|other| *other != form) {
                    name = format!("{name}-{}", &fingerprint(&form)[..12]);
                }
                if seen.insert(form.clone()) {
                    names.push(name.clone());
                    patterns.push(form.clone());
                }
                values.insert(name, form);
            }
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns)
            .expect("configured secrets are far below the automaton's limit of two billion states");
        let spans = |value: &String| value.contains('\n') || value.contains(". ");
        Self {
            automaton,
            names,
            spans_lines: values.values().any(spans),
            spans_words: values.values().any(|value| value.contains(' ')),
            values,
        }
    }

    pub(super) fn find(&self, text: &str) -> Vec<SecretHit> {
        if self.names.is_empty() {
            return Vec::new();
        }
        self.automaton
            .find_iter(text)
            .map(|found| SecretHit {
                at: found.range(),
                name: HitName::Known(self.names[found.pattern().as_usize()].clone()),
            })
            .collect()
    }

    /// Whether a known value occurs in a text or in other bytes.
    pub(super) fn is_in(&self, content: &[u8]) -> bool {
        !self.names.is_empty() && self.automaton.is_match(content)
    }

    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }
}

fn plain_name(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "_.-".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = name.chars().map(plain).take(MAX_NAME_BYTES).collect();
    if name.is_empty() {
        "unnamed".to_owned()
    } else {
        name
    }
}

/// Returns the value and its forms in URLs, JSON and base64, each with the suffix of its name.
fn forms(value: &str) -> Vec<(String, String)> {
    let mut forms = vec![(String::new(), value.to_owned())];
    let mut add = |suffix: &str, form: String| {
        if forms.iter().all(|(_, other)| *other != form) {
            forms.push((suffix.to_owned(), form));
        }
    };
    let json = serde_json::to_string(value).expect("a string is valid JSON");
    add(".json", json[1..json.len() - 1].to_owned());
    let url = percent_encoded(value);
    add(".url", url.clone());
    add(".url-lower", lower_escapes(&url));
    add(".form", url.replace("%20", "+"));
    for shift in 0..3 {
        let standard = base64_inside(value.as_bytes(), shift);
        if standard.len() < MIN_BASE64_BYTES {
            continue;
        }
        let for_urls = standard.replace('+', "-").replace('/', "_");
        add(&format!(".base64-{shift}"), standard);
        add(&format!(".base64url-{shift}"), for_urls);
    }
    forms
}

/// Converts escapes like `%2F` to lower case: `%2f`.
fn lower_escapes(encoded: &str) -> String {
    let mut left = 0;
    let lower = |c: char| {
        if c == '%' {
            left = 2;
        } else if left > 0 {
            left -= 1;
            return c.to_ascii_lowercase();
        }
        c
    };
    encoded.chars().map(lower).collect()
}

/// Returns the base64 digits that are certain for `value` at `shift` bytes (modulo 3) into a longer
/// text, as for a password in `user:password`. Digits shared with the text around it are left out.
fn base64_inside(value: &[u8], shift: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bit = |at: usize| {
        let byte = at / 8;
        byte.checked_sub(shift)
            .and_then(|byte| value.get(byte))
            .map(|v| v >> (7 - at % 8) & 1)
    };
    let total = (shift + value.len()) * 8;
    (0..total / 6)
        .filter_map(|digit| (0..6).try_fold(0_u8, |sum, i| Some(sum << 1 | bit(digit * 6 + i)?)))
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}
