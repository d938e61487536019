//! Secrets that give themselves away by their format.
//!
//! Every pattern begins with fixed letters, so that a search skips ordinary text quickly, and takes
//! all characters that a token could go on with, so that nothing of it is left behind. What stands
//! before it does not matter: in JSON within JSON a line begins with the letter of `\\n`.

use regex::Regex;

use super::{Hit, HitName, context, plausible::is_placeholder};

/// Kind, how it begins, and its pattern.
const FORMATS: [(&str, &[&str], &str); 11] = [
    ("sk-ant-key", &["sk-ant-"], r"sk-ant-[A-Za-z0-9_-]{16,}"),
    (
        "stripe-key",
        &["sk_live_", "rk_live_"],
        r"[sr]k_live_[A-Za-z0-9]{16,}[A-Za-z0-9_-]*",
    ),
    (
        "github-token",
        &["ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_"],
        r"(?:gh[posur]|github_pat)_[A-Za-z0-9]{20,}[A-Za-z0-9_-]*",
    ),
    (
        "slack-token",
        &["xox"],
        r"xox[abeoprs]-[A-Za-z0-9-]{10,}[A-Za-z0-9_-]*",
    ),
    (
        "aws-access-key",
        &["AKIA", "ASIA"],
        r"A[KS]IA[A-Z0-9]{16}[A-Za-z0-9_-]*",
    ),
    ("google-key", &["AIza"], r"AIza[A-Za-z0-9_-]{35,}"),
    ("gitlab-token", &["glpat-"], r"glpat-[A-Za-z0-9_.-]{20,}"),
    (
        "npm-token",
        &["npm_"],
        r"npm_[A-Za-z0-9]{36,}[A-Za-z0-9_-]*",
    ),
    (
        "huggingface-token",
        &["hf_"],
        r"hf_[A-Za-z0-9]{30,}[A-Za-z0-9_-]*",
    ),
    (
        "jwt",
        &["eyJ"],
        r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*",
    ),
    (
        "private-key",
        &["-----BEGIN"],
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
    ),
];
/// Other words hold `sk-` too (`risk-…`), so what stands before it counts.
const SK_KEY: &str = r"(?:^|[^A-Za-z0-9_-]|\\[nrt])(sk-[A-Za-z0-9_-]{20,})";
/// Names of classes begin with `sk-` as well, but have fewer digits.
const MIN_SK_DIGITS: usize = 2;
/// A user and a password in an address. What stands before `://` is not looked at, so that the
/// search can begin with fixed letters.
const ADDRESS: &str = r#"://[^\s/?#:@"'`<>]*:([^\s/@"'`<>]+)@"#;
/// A shorter password in an address is not taken for one.
const MIN_ADDRESS_PASSWORD_BYTES: usize = 3;
/// Bytes of a private key that are looked through for its end.
const MAX_KEY_BLOCK_BYTES: usize = 16 << 10;
/// A block without so much base64 in a row is talk about keys.
const MIN_KEY_LINE_BYTES: usize = 16;

pub(super) struct Formats {
    any: Regex,
    sk_key: Regex,
    address: Regex,
}

impl Formats {
    pub(super) fn new() -> Self {
        let patterns: Vec<_> = FORMATS.iter().map(|(_, _, pattern)| *pattern).collect();
        Self {
            any: Regex::new(&patterns.join("|")).expect("the patterns are valid"),
            sk_key: Regex::new(SK_KEY).expect("the pattern is valid"),
            address: Regex::new(ADDRESS).expect("the pattern is valid"),
        }
    }

    pub(super) fn find(&self, text: &str) -> Vec<Hit> {
        let mut hits = Vec::new();
        let mut start = 0;
        while let Some(found) = self.any.find_at(text, start) {
            start = found.end();
            let &(kind, _, _) = FORMATS
                .iter()
                .find(|(_, begins, _)| begins.iter().any(|begin| found.as_str().starts_with(begin)))
                .expect("every pattern begins as its row says");
            let at = match kind {
                "private-key" => match key_block_end(text, found.end()) {
                    Some(end) => found.start()..end,
                    None => continue,
                },
                _ => found.range(),
            };
            start = start.max(at.end);
            hits.push(Hit {
                at,
                name: HitName::Found(kind),
            });
        }
        hits
    }

    /// Keys that only look like keys where a word begins.
    pub(super) fn find_sk_keys(&self, text: &str) -> Vec<Hit> {
        self.sk_key
            .captures_iter(text)
            .filter_map(|captures| captures.get(1))
            .filter(|key| {
                let digits = key.as_str().bytes().filter(u8::is_ascii_digit);
                digits.count() >= MIN_SK_DIGITS
            })
            .map(|key| Hit {
                at: key.range(),
                name: HitName::Found("sk-key"),
            })
            .collect()
    }

    /// Passwords in `scheme://user:password@host`. Named as any other value, so that one password
    /// has one name wherever it stands.
    pub(super) fn find_in_addresses(&self, text: &str) -> Vec<Hit> {
        self.address
            .captures_iter(text)
            .filter_map(|captures| captures.get(1))
            .filter(|password| {
                password.len() >= MIN_ADDRESS_PASSWORD_BYTES && !is_placeholder(password.as_str())
            })
            .map(|password| Hit {
                at: password.range(),
                name: HitName::Found(context::KIND),
            })
            .collect()
    }
}

/// Where a private key ends whose first line ends at `start`: with its last line, or where the text
/// no longer looks like one (output may have been cut). None if nothing like a key follows.
fn key_block_end(text: &str, start: usize) -> Option<usize> {
    let rest = &text[start..];
    let window = &rest[..rest.floor_char_boundary(MAX_KEY_BLOCK_BYTES)];
    let digit = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    let (body, last_line) = match window.find("-----END") {
        Some(end) => {
            let line = &rest[end + 8..];
            let close = line[..line.floor_char_boundary(64)]
                .find("-----")
                .map_or(0, |at| at + 5);
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
