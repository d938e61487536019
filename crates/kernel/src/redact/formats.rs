//! Secrets that give themselves away by their format.
//!
//! Every pattern begins with fixed letters, so that a search skips ordinary text quickly, and takes
//! all characters that a token could go on with, so that nothing of it is left behind.

use std::ops::Range;

use regex::Regex;

use super::{Hit, HitName, context};

/// Kind, how it begins, and its pattern.
const FORMATS: [(&str, &[&str], &str); 13] = [
    ("anthropic-key", &["sk-ant-"], r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
    ("openai-key", &["sk-"], r"\bsk-[A-Za-z0-9_-]{20,}"),
    ("stripe-key", &["sk_live_", "rk_live_"], r"\b[sr]k_live_[A-Za-z0-9]{16,}[A-Za-z0-9_-]*"),
    (
        "github-token",
        &["ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_"],
        r"\b(?:gh[posur]|github_pat)_[A-Za-z0-9]{20,}[A-Za-z0-9_-]*",
    ),
    ("slack-token", &["xox"], r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}[A-Za-z0-9_-]*"),
    ("aws-access-key", &["AKIA", "ASIA"], r"\bA[KS]IA[A-Z0-9]{16}[A-Za-z0-9_-]*"),
    ("google-key", &["AIza"], r"\bAIza[A-Za-z0-9_-]{35,}"),
    ("gitlab-token", &["glpat-"], r"\bglpat-[A-Za-z0-9_.-]{20,}"),
    ("npm-token", &["npm_"], r"\bnpm_[A-Za-z0-9]{36,}[A-Za-z0-9_-]*"),
    ("huggingface-token", &["hf_"], r"\bhf_[A-Za-z0-9]{30,}[A-Za-z0-9_-]*"),
    (
        "jwt",
        &["eyJ"],
        r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*",
    ),
    ("private-key", &["-----BEGIN"], r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"),
    // What stands before `://` is not looked at, so that the search can begin with fixed letters.
    ("url-password", &["://"], r#"://[^\s/?#:@"'`<>]*:[^\s/@"'`<>]+@"#),
];
/// Bytes of a private key that are looked through for its end.
const MAX_KEY_BLOCK_BYTES: usize = 16 << 10;

pub(super) struct Formats {
    any: Regex,
}

impl Formats {
    pub(super) fn new() -> Self {
        let patterns: Vec<_> = FORMATS.iter().map(|(_, _, pattern)| *pattern).collect();
        Self { any: Regex::new(&patterns.join("|")).expect("the patterns are valid") }
    }

    pub(super) fn find(&self, text: &str) -> Vec<Hit> {
        let mut hits = Vec::new();
        let mut start = 0;
        while let Some(found) = self.any.find_at(text, start) {
            start = found.end();
            let (kind, _, _) = FORMATS
                .iter()
                .find(|(_, begins, _)| begins.iter().any(|begin| found.as_str().starts_with(begin)))
                .expect("every pattern begins as its row says");
            let (kind, at) = match *kind {
                "private-key" => (*kind, found.start()..key_block_end(text, found.end())),
                // Named as any other value, so that one password has one name wherever it stands.
                "url-password" => match password_in_url(found.as_str()) {
                    Some(at) => (
                        context::KIND,
                        found.start() + at.start..found.start() + at.end,
                    ),
                    None => continue,
                },
                // Class names and the like begin with `sk-` too.
                "openai-key" if found.as_str().bytes().filter(u8::is_ascii_digit).count() < 2 => {
                    continue;
                }
                _ => (*kind, found.range()),
            };
            start = start.max(at.end);
            hits.push(Hit { at, name: HitName::Found(kind) });
        }
        hits
    }
}

/// The password in `://user:password@`.
fn password_in_url(found: &str) -> Option<Range<usize>> {
    let start = 3 + found[3..].find(':')? + 1;
    let at = start..found.len() - 1;
    (at.len() >= 3 && !context::is_placeholder(&found[at.clone()])).then_some(at)
}

/// Where a private key ends: at its last line, or where the text no longer looks like one (output
/// may have been cut).
fn key_block_end(text: &str, start: usize) -> usize {
    let rest = &text[start..];
    let window = &rest[..rest.floor_char_boundary(MAX_KEY_BLOCK_BYTES)];
    if let Some(end) = window.find("-----END") {
        let line = &rest[end + 8..];
        let close = line[..line.floor_char_boundary(64)].find("-----").map_or(0, |at| at + 5);
        return start + end + 8 + close;
    }
    let body = |c: char| c.is_ascii_alphanumeric() || "+/=\\ \t\r\n".contains(c);
    start + window.find(|c| !body(c)).unwrap_or(window.len())
}
