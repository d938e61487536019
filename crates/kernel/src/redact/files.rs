//! Recognition of files that hold a secret. Their content is not changed, and nothing about it is
//! remembered.

use super::{
    Redactor,
    formats::Formats,
    known::KnownSecrets,
    pass::{FreeText, TextBefore},
};

/// Minimum length in bytes of a run of text within other bytes.
const MIN_RUN_BYTES: usize = 12;

impl Redactor {
    /// Whether a file with this content contains a known or recognisable secret: in text, in UTF-16
    /// with its mark, and in runs of text within other bytes. Nothing is remembered.
    pub fn recognises(&self, content: &[u8]) -> bool {
        if let Ok(text) = std::str::from_utf8(content) {
            return self.recognises_text(text);
        }
        let wide = match content {
            [0xff, 0xfe, rest @ ..] => Some(decode_wide(rest, u16::from_le_bytes)),
            [0xfe, 0xff, rest @ ..] => Some(decode_wide(rest, u16::from_be_bytes)),
            _ => None,
        };
        if let Some(text) = wide {
            return self.recognises_text(&text);
        }
        let typed = self.typed();
        let is_known = |known: &KnownSecrets| known.is_in(content);
        is_known(&self.known)
            || typed.as_deref().is_some_and(is_known)
            || content.utf8_chunks().any(|chunk| {
                let runs = chunk
                    .valid()
                    .split(|c: char| c.is_control() && !c.is_whitespace());
                runs.filter(|run| run.len() >= MIN_RUN_BYTES)
                    .any(|run| self.recognises_text(run))
            })
    }

    fn recognises_text(&self, text: &str) -> bool {
        let piece = FreeText {
            text,
            before: TextBefore::Nothing,
            ends_text: true,
        };
        let typed = self.typed();
        let is_known = |known: &KnownSecrets| known.is_in(text.as_bytes());
        is_known(&self.known)
            || typed.as_deref().is_some_and(is_known)
            || !self.formats.find(text).is_empty()
            || !self.formats.find_others(text).is_empty()
            || !Formats::find_in_addresses(text).is_empty()
            || !self.pairs.find(&piece).is_empty()
            || !self.context.find(&piece).is_empty()
            || !self.commands.find(&piece).is_empty()
    }
}

/// Decodes text of two bytes per unit; half a unit at its end is left out.
fn decode_wide(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).map(|two| unit([two[0], two[1]]));
    char::decode_utf16(units)
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}
