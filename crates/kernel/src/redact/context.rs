//! Values that are secret because of the name beside them: `password = …`, `API_KEY: "…"`,
//! `Authorization: Bearer …`, `--token …`, in the syntax of shells, `.env`, JSON, YAML, XML, code,
//! and of sentences that tell a password.
//!
//! One regex finds a name with what separates it from its value; the rest is plain code that looks
//! at either side: the name ([`super::names`]), where the value goes to ([`super::value`]), and
//! whether it is one ([`super::plausible`]).

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind, StartKind};
use regex::Regex;

use super::{
    names::{NameClass, class_of},
    pass::{FreeText, HitName, MARKER_START, SecretHit, TextBefore},
    plausible::{ValueSyntax, has_mixed_case, is_placeholder, plausible},
    value::{LineBefore, MAX_BARE_BYTES, ValuePlace, scheme_bytes},
};

/// The prefix of the names of values found by their context. It is the same for all of them, so
/// that a value has one name everywhere.
pub(super) const KIND: &str = "found";

/// Maximum length of a name in bytes, before and after the telltale word.
const MAX_NAME_BYTES: usize = 64;
/// Minimum length in bytes of a value beside a name of a login.
const MIN_LOGIN_BYTES: usize = 4;

/// Telltale words. A name for a secret has one of them, in any letter case.
const TELLING_WORDS: &str = "\
    password passwd passwort passphrase passcode pass pwd pswd pw kennwort wachtwoord contrasena \
    contraseña contraseÑa senha пароль Пароль ПАРОЛЬ 密码 密碼 パスワード 비밀번호 mnemonic phrase \
    secret token key auth bearer";
/// Matches the rest of a name behind its telltale word, and the separator before its value.
const REST_AND_SEPARATOR: &str = r#"(?ix-u) ^
    [a-z0-9_-]{0,32}
    \\? ["'\]]{0,2}
    (?: : [\ \t]* [a-z_&] [a-z0-9_<>&'\[\]]{0,30} [\ \t]+ = [\ \t]+     # typed: `password: str = `
      | [\ \t]* (?: => | == | [:?+|]?= | :- | [:>,] | ： ) [\ \t]*
      | [\ \t]+ (?: (?:is|was) [\ \t]* :? [\ \t]+ )? )"#;

pub(super) struct SecretContext {
    words: AhoCorasick,
    rest: Regex,
}

impl SecretContext {
    pub(super) fn new() -> Self {
        Self {
            words: AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .match_kind(MatchKind::LeftmostLongest)
                .kind(Some(AhoCorasickKind::DFA))
                .start_kind(StartKind::Unanchored)
                .build(TELLING_WORDS.split_ascii_whitespace())
                .expect("the words are few"),
            rest: Regex::new(REST_AND_SEPARATOR).expect("the pattern is valid"),
        }
    }

    pub(super) fn find(&self, piece: &FreeText<'_>) -> Vec<SecretHit> {
        let mut hits = Vec::new();
        let (mut start, mut after) = (0, 0);
        let mut before = LineBefore::default();
        while let Some(found) = self.words.find(Input::new(piece.text).range(start..)) {
            start = found.end();
            let Some(rest) = self.rest.find(&piece.text[found.end()..]) else {
                continue;
            };
            let name = found.start()..found.end() + rest.end();
            start = name.end;
            if let Some(at) = secret_at(piece, name, after, &mut before) {
                start = start.max(at.end);
                after = at.end;
                hits.push(SecretHit {
                    at,
                    name: HitName::Found(KIND),
                });
            }
        }
        hits
    }

    /// Whether a text contains a word that could be part of a name for a secret.
    pub(super) fn names_one(&self, text: &str) -> bool {
        self.words.is_match(text)
    }
}

/// Returns the part of a string under `key` that is secret because of the key.
pub(super) fn value_under(key: &str, value: &str) -> Option<Range<usize>> {
    value_of(class_of(key)?, value)
}

/// Returns the part of a string that is secret because of the class of its name.
pub(super) fn value_of(class: NameClass, value: &str) -> Option<Range<usize>> {
    let start = scheme_bytes(value);
    let secret = &value[start..];
    let marked = secret.contains(MARKER_START);
    (!marked && plausible(secret, class, ValueSyntax::Quoted)).then_some(start..value.len())
}

/// A name for a secret, with the separator before its value.
struct SecretName<'a> {
    text: &'a str,
    class: NameClass,
    at: Range<usize>,
    /// The separator, without white space and the end of the name.
    separator: &'a str,
    /// Whether the name is an option of a command, whose value is the next word.
    option: bool,
    /// Whether the name is `pass` alone, which is a result more often than a password.
    only_pass: bool,
    /// Whether the name is followed by `=` alone, as in shells and `.env` files.
    environment: bool,
}

/// Returns the value beside a name, if both are plausible. `found` covers the name from its
/// telltale word on, and the separator; everything before `after` is settled.
fn secret_at(
    piece: &FreeText<'_>,
    found: Range<usize>,
    after: usize,
    before: &mut LineBefore,
) -> Option<Range<usize>> {
    let text = piece.text;
    let name = name_at(piece, &found, after)?;
    before.advance(text, after, found.end);
    let place = ValuePlace {
        piece,
        name: name.at.start,
        start: found.end,
        settled: after,
        before: *before,
        separator: name.separator,
        environment: name.environment,
    };
    let login = name.separator.is_empty() && follows_login(&text[after..name.at.start]);
    let values = place.values().into_iter();
    let accepted = values
        .filter_map(|(value, shape)| accepted(text, &name, value, shape, login))
        .next()?;
    let goes_on = accepted.len() + 3 >= MAX_BARE_BYTES && accepted.end < text.len();
    if goes_on && !text[accepted.clone()].contains(char::is_whitespace) {
        Some(accepted.start..place.end_of_long(accepted.end))
    } else {
        Some(accepted)
    }
}

fn name_at<'a>(piece: &FreeText<'a>, found: &Range<usize>, after: usize) -> Option<SecretName<'a>> {
    let text = piece.text;
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let matched = &text[found.clone()];
    let end = found.start + matched.find(|c| !is_name(c)).unwrap_or(matched.len());
    let mut start = found.start;
    for (at, c) in text[after..found.start].char_indices().rev() {
        if !is_name(c) || found.start - after - at > MAX_NAME_BYTES {
            break;
        }
        start = after + at;
    }
    // In JSON within JSON a line begins with the letter of `\n`.
    let escape = text[..start].ends_with('\\') && text[start..].starts_with(['n', 'r', 't']);
    if escape && start < found.start {
        start += 1;
    }
    let name = &text[start..end];
    let only_pass = name.eq_ignore_ascii_case("pass");
    let class = if only_pass {
        NameClass::Token
    } else {
        class_of(name)?
    };
    let closed = text[end..found.end].trim_start_matches(['\\', '"', '\'', ']']);
    let is_closed = closed.len() < found.end - end;
    let separator = match closed.trim() {
        is if is
            .get(..2)
            .is_some_and(|is| matches!(&*is.to_ascii_lowercase(), "is" | "wa")) =>
        {
            "is"
        }
        "：" => ":",
        other => other,
    };
    let option = name.starts_with('-') || name.eq_ignore_ascii_case("bearer");
    let previous = if escape {
        Some('\n')
    } else {
        text[..start].chars().next_back()
    };
    let says_nothing = match separator {
        ">" => previous != Some('<'),
        // Handles `"--password", "…"`: an argument after an option.
        "," => !option,
        "" | "is" => is_closed,
        _ => false,
    };
    let alone = match previous {
        None => piece.before != TextBefore::Text,
        Some(c) => c.is_whitespace() || c == '"' || c == '\'',
    };
    let shouted = !name.bytes().any(|byte| byte.is_ascii_lowercase());
    (!says_nothing).then_some(SecretName {
        text: name,
        class,
        at: start..end,
        separator,
        option,
        only_pass,
        environment: alone && shouted && &text[end..found.end] == "=",
    })
}

/// Returns the secret part of a value, if there is one.
fn accepted(
    text: &str,
    name: &SecretName<'_>,
    value: Range<usize>,
    shape: ValueSyntax,
    login: bool,
) -> Option<Range<usize>> {
    let separator = name.separator;
    let scheme = scheme_bytes(&text[value.clone()]);
    let value = value.start + scheme..value.end;
    let secret = &text[value.clone()];
    let shape = match shape {
        ValueSyntax::Said if name.option => ValueSyntax::Bare { ends_line: false },
        // Quoted words beside a word for passwords.
        ValueSyntax::Quoted if matches!(separator, "" | "is") && !name.option => ValueSyntax::Said,
        other => other,
    };
    // In help texts a word in capitals is a placeholder: `--token TOKEN`.
    let stands_for =
        separator.is_empty() && secret.bytes().all(|b| b == b'_' || b.is_ascii_uppercase());
    let basic = scheme > 0 && !separator.is_empty() && secret.len() >= 8 && has_mixed_case(secret);
    let login = login && secret.len() >= MIN_LOGIN_BYTES;
    let is_one =
        plausible(secret, name.class, shape) || ((basic || login) && !is_placeholder(secret));
    let is_typed = separator.starts_with(':') && separator.ends_with('=') && separator != ":=";
    let letter = secret.contains(|c: char| c.is_ascii_alphabetic());
    let told = match separator {
        _ if name.only_pass => letter && secret.contains(|c: char| !c.is_ascii_alphabetic()),
        // A comparison, most likely in a parser.
        "==" => secret.contains(|c: char| c.is_ascii_digit()),
        // Handles `two-pass compilers2`.
        "" if !name.option && name.text.to_ascii_lowercase().ends_with("pass") => false,
        // An expression in code that has types.
        _ if is_typed => matches!(shape, ValueSyntax::Quoted | ValueSyntax::Environment),
        _ => true,
    };
    (is_one && told && !stands_for && !secret.starts_with("--")).then_some(value)
}

/// Whether a text ends with `login NAME `, as lines of `.netrc` do.
fn follows_login(text: &str) -> bool {
    let mut words = text.rsplit([' ', '\t']).filter(|word| !word.is_empty());
    text.ends_with([' ', '\t']) && words.nth(1) == Some("login")
}
