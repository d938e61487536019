//! Keys that are none, and how they are found again.

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use memchr::memmem::Finder;

/// Beginning of every decoy. No redaction knows it: what is seen was read.
pub(crate) const CORE: &str = "qzDecoyVmkWbXtr7";

/// The decoy of a place that is not a file.
pub(crate) fn token(place: &str) -> String {
    format!("{CORE}-{place}")
}

/// Finds decoys, also in the few encodings that lines use.
pub(crate) struct Decoys {
    needles: Vec<Finder<'static>>,
}

impl Decoys {
    pub(crate) fn new() -> Self {
        let reversed: String = CORE.chars().rev().collect();
        let hex: String = CORE.bytes().map(|byte| format!("{byte:02x}")).collect();
        let spaced: Vec<String> = CORE.bytes().map(|byte| format!("{byte:02x}")).collect();
        let rotated: String = CORE.chars().map(rotate).collect();
        let mut needles: Vec<Vec<u8>> = [
            CORE.to_owned(),
            CORE.to_uppercase(),
            CORE.to_lowercase(),
            reversed,
            hex.to_uppercase(),
            hex,
            spaced.join(" "),
            rotated,
        ]
        .into_iter()
        .map(String::into_bytes)
        .collect();
        // Whatever stands before it shifts the letters of base64; those at the ends depend on it.
        for shift in 0..3 {
            let shifted = [&b"   "[..shift], CORE.as_bytes()].concat();
            let text = STANDARD_NO_PAD.encode(shifted);
            needles.push(text.as_bytes()[4..text.len() - 4].to_vec());
        }
        let needles = needles
            .iter()
            .map(|needle| Finder::new(needle).into_owned());
        Self {
            needles: needles.collect(),
        }
    }

    /// Whether a decoy stands in `bytes`.
    pub(crate) fn are_in(&self, bytes: &[u8]) -> bool {
        self.needles
            .iter()
            .any(|needle| needle.find(bytes).is_some())
    }
}

fn rotate(letter: char) -> char {
    let turn = |first: u8| char::from((letter as u8 - first + 13) % 26 + first);
    match letter {
        'a'..='z' => turn(b'a'),
        'A'..='Z' => turn(b'A'),
        _ => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoy_is_found_however_it_is_written() {
        let decoys = Decoys::new();
        for text in [
            format!("# {CORE}-netrc\n"),
            STANDARD_NO_PAD.encode(format!("# {CORE}-x")),
            STANDARD_NO_PAD.encode(format!("a# {CORE}-x")),
            STANDARD_NO_PAD.encode(format!("ab# {CORE}-x")),
            CORE.chars().rev().collect(),
        ] {
            assert!(decoys.are_in(text.as_bytes()), "{text}");
        }
        assert!(!decoys.are_in(b"nothing of that kind"));
    }
}
