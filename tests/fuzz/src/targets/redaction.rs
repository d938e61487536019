//! Text with secrets in it.

use fastrand::Rng;
use gyrus_kernel::{
    redact::{Redactor, Secret},
    shown,
};
use serde_json::Value;

use crate::Target;

/// Secrets that make trouble: with quotes, with ends of lines and of sentences, beyond ASCII,
/// overlapping themselves and each other, and made of what markers are made of.
const SETS: [&[&str]; 4] = [
    &[
        "hunter2hunter2",
        "correct-horse",
        "naïve-🔑-key",
        "aaaaaaaa",
    ],
    &["pa\"ss\\wo/rd+&", "abcabcabc", "abcabc", "bcabcab%20"],
    &[
        "first line\nsecond line",
        "it ends. or not",
        "hunter2hunter2",
    ],
    &["secret:KEY", "⟦secret:", "KEY-0⟧", "password = x"],
];

/// Texts near to secrets, in several writings, and what formats of secrets are made of.
const WORDS: [&str; 40] = [
    "hunter2hunter2",
    "hunter2",
    "correct-horse",
    "naïve-🔑-key",
    "aaaaaaaaaaaa",
    "pa\"ss\\wo/rd+&",
    "pa\\\"ss\\\\wo/rd+&",
    "pa%22ss%5Cwo%2Frd%2B%26",
    "pa%22ss%5cwo%2frd%2b%26",
    "abcabcabcabc",
    "first line\nsecond line",
    "first line\\nsecond line",
    "it ends. or not",
    "⟦secret:KEY-0⟧",
    "⟦secret:",
    "⟧",
    "secret:KEY",
    "KEY-0",
    "aHVudGVyMmh1bnRlcjI=",
    "password = ",
    "api_key: ",
    "token=",
    "Authorization: Bearer ",
    "\"secret\": \"",
    "-----BEGIN PRIVATE KEY-----\n",
    "-----END PRIVATE KEY-----\n",
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n",
    "sk-proj-",
    "ghp_",
    "AKIA",
    "https://user:pass@host/",
    "eyJhbGciOiJIUzI1NiJ9.",
    ". ",
    "\n",
    " ",
    "Xk29fLq0Zr8TnV4mPw7B",
    "The quick brown fox jumps over the lazy dog. ",
    "${TOKEN}",
    "<your-key>",
    "example",
];

/// Words without any secret; whatever is made of them stays as it is.
const INNOCENT: [&str; 16] = [
    "the ",
    "file ",
    "src/main.rs:12 ",
    "has ",
    "42 ",
    "lines, ",
    "of which ",
    "some. ",
    "cargo ",
    "test\n",
    "error[E0308] ",
    "– ",
    "(see https://example.org/a?b=c) ",
    "0x7ffd ",
    "ok ",
    "\n",
];

/// `redaction`: no known secret is left, in a text or in any chunking of a stream; all else stays
/// byte for byte; and a text can be had again.
pub struct Redaction {
    redactors: Vec<Redactor>,
}

impl Redaction {
    /// With all sets of known secrets.
    pub fn new() -> Self {
        let secrets = |set: &[&str]| {
            let named = set.iter().enumerate().map(|(number, value)| Secret {
                name: format!("KEY-{number}"),
                value: (*value).to_owned(),
            });
            Redactor::new([7; 32], named.collect())
        };
        Self {
            redactors: SETS.iter().map(|set| secrets(set)).collect(),
        }
    }
}

impl Default for Redaction {
    fn default() -> Self {
        Self::new()
    }
}

impl Target for Redaction {
    const NAME: &'static str = "redaction";

    fn seeds(&self) -> Vec<Vec<u8>> {
        let with = |set: usize| {
            WORDS.iter().map(move |word| {
                let text = format!("before {word} after. And then {word}{word}\nnext {word}");
                [
                    &[u8::try_from(set).unwrap_or_default(), 3][..],
                    text.as_bytes(),
                ]
                .concat()
            })
        };
        (0..SETS.len()).flat_map(with).collect()
    }

    fn words(&self) -> Vec<Vec<u8>> {
        WORDS.map(|word| word.as_bytes().to_vec()).to_vec()
    }

    fn longest(&self) -> usize {
        2048
    }

    /// The first byte chooses the secrets, the second the chunks.
    fn check(&self, input: &[u8]) -> Result<(), String> {
        let [set, chunks, text @ ..] = input else {
            return Ok(());
        };
        let set = usize::from(*set) % SETS.len();
        let (redactor, secrets) = (&self.redactors[set], SETS[set]);
        let text = &*String::from_utf8_lossy(text);
        let redacted = redactor.redact(text);
        is_clean(&redacted, secrets, "the text")?;
        stays_but_for_markers(text, &redacted)?;
        if redactor.redact(&redacted) != redacted {
            return Err(format!("twice is not once: {redacted:?}"));
        }
        let marked = text.contains("⟦secret:");
        if let Ok(revealed) = redactor.reveal(&redacted)
            && !marked
            && revealed != text
        {
            return Err(format!("it is revealed as {revealed:?}"));
        }
        let mut value = Value::Array(vec![Value::String(text.to_owned())]);
        redactor.redact_json(&mut value);
        if value[0].as_str() != Some(&*redacted) {
            return Err("a value is not redacted as the text is".to_owned());
        }
        let mut random = Rng::with_seed(u64::from(*chunks));
        let pieces = pieces(text, &mut random);
        let streamed = shown(redactor, &pieces);
        is_clean(&streamed, secrets, "the stream")?;
        stays_but_for_markers(text, &streamed)?;
        innocent(redactor, input)
    }
}

/// The text without markers, which stand as blanks nobody types.
fn without_markers(text: &str) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("⟦secret:") {
        let (before, from) = rest.split_at(at);
        left.push_str(before);
        let name = &from["⟦secret:".len()..];
        let end = name.find('⟧').filter(|end| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
            (1..=128).contains(end) && name[..*end].chars().all(plain)
        });
        rest = match end {
            Some(end) => {
                left.push('\0');
                &name[end + '⟧'.len_utf8()..]
            }
            None => {
                left.push_str("⟦secret:");
                name
            }
        };
    }
    left + rest
}

fn is_clean(text: &str, secrets: &[&str], what: &str) -> Result<(), String> {
    let left = without_markers(text);
    match secrets.iter().find(|secret| left.contains(**secret)) {
        Some(secret) => Err(format!("{secret:?} is left in {what}: {text:?}")),
        None => Ok(()),
    }
}

/// Checks that the parts between markers stood in the text, in that order, from its beginning to
/// its end.
fn stays_but_for_markers(text: &str, redacted: &str) -> Result<(), String> {
    let wrong = || format!("something else was changed: {redacted:?}");
    let (text, redacted) = (text.replace('\0', " "), redacted.replace('\0', " "));
    let kept = without_markers(&redacted);
    let mut pieces = kept.split('\0');
    let mut rest = text
        .strip_prefix(pieces.next().unwrap_or_default())
        .ok_or_else(wrong)?;
    let mut last = "";
    for piece in pieces {
        let at = rest.find(piece).ok_or_else(wrong)?;
        rest = &rest[at + piece.len()..];
        last = piece;
    }
    if text.ends_with(last) && (kept.contains('\0') || rest.is_empty()) {
        Ok(())
    } else {
        Err(wrong())
    }
}

fn pieces<'a>(text: &'a str, random: &mut Rng) -> Vec<&'a str> {
    let most = 1 + random.usize(..40);
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut at = (1 + random.usize(..most)).min(rest.len());
        while !rest.is_char_boundary(at) {
            at += 1;
        }
        let (piece, left) = rest.split_at(at);
        pieces.push(piece);
        rest = left;
    }
    pieces
}

/// A text of innocent words that follows from the input is left alone.
fn innocent(redactor: &Redactor, input: &[u8]) -> Result<(), String> {
    let words = input
        .iter()
        .take(64)
        .map(|byte| INNOCENT[usize::from(byte % 16)]);
    let text: String = words.collect();
    let redacted = redactor.redact(&text);
    if redacted == text {
        Ok(())
    } else {
        Err(format!("{text:?} has no secret and becomes {redacted:?}"))
    }
}
