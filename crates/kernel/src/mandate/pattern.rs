//! The values that a mandate lets an argument have: a text, with holes for what earlier calls
//! return.

use gyrus_text::folded_name;

const MAX_HOLES: usize = 3;

/// Maximum length in bytes of a value that is compared with a text with several holes.
const MAX_FILLED: usize = 1_000;

/// The text that stands for any value.
pub(super) const ANY: &str = "*";

/// Prefix of the largest amount that may be paid.
pub(super) const UP_TO: &str = "up to ";

/// The name of a hole's field that stands for an element of a list.
pub(super) const ELEMENT: &str = "*";

/// A text with holes, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HolePattern {
    pieces: Vec<PatternPiece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternPiece {
    Text(String),
    Hole(Hole),
}

/// A hole: a value that a call of the mandate returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hole {
    pub(super) of: String,
    /// The name of the field, or the end of its path; [`ELEMENT`]; `None` for a word of the text.
    pub(super) field: Option<String>,
}

impl HolePattern {
    /// Parses a text with holes. Braces around anything but the name of a call, alone or with a
    /// field, are a part of the text.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            let (before, after) = rest.split_at(start);
            plain.push_str(before);
            let inner = after[1..].split_once('}');
            match inner.and_then(|(inner, tail)| Some((hole(inner)?, tail))) {
                Some((hole, tail)) => {
                    if !plain.is_empty() {
                        pieces.push(PatternPiece::Text(std::mem::take(&mut plain)));
                    }
                    pieces.push(PatternPiece::Hole(hole));
                    rest = tail;
                }
                None => {
                    plain.push('{');
                    rest = &after[1..];
                }
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() || pieces.is_empty() {
            pieces.push(PatternPiece::Text(plain));
        }
        let pattern = Self { pieces };
        if pattern.holes().count() > MAX_HOLES {
            return Err(format!("`{text}` has more than {MAX_HOLES} holes"));
        }
        Ok(pattern)
    }

    pub(super) fn holes(&self) -> impl Iterator<Item = &Hole> {
        self.pieces.iter().filter_map(|piece| match piece {
            PatternPiece::Hole(hole) => Some(hole),
            PatternPiece::Text(_) => None,
        })
    }

    /// Returns the pattern's text, if the pattern has no hole.
    pub(super) fn constant(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [PatternPiece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the hole that makes up the whole text, if one does.
    pub(super) fn sole_hole(&self) -> Option<&Hole> {
        match self.pieces.as_slice() {
            [PatternPiece::Hole(hole)] => Some(hole),
            _ => None,
        }
    }

    /// Whether the value is this text with its holes filled. `fills` says whether a text may stand
    /// in a hole.
    pub(super) fn fits(&self, value: &str, fills: &dyn Fn(&Hole, &str) -> bool) -> bool {
        match self.pieces.as_slice() {
            [PatternPiece::Text(text)] => folded_name(text) == folded_name(value),
            _ if self.holes().count() > 1 && value.len() > MAX_FILLED => false,
            pieces => fit(pieces, value, fills),
        }
    }
}

/// Whether the concatenated pieces match the value.
fn fit(pieces: &[PatternPiece], value: &str, fills: &dyn Fn(&Hole, &str) -> bool) -> bool {
    match pieces {
        [] => value.is_empty(),
        [PatternPiece::Text(text), rest @ ..] => value
            .strip_prefix(text.as_str())
            .is_some_and(|value| fit(rest, value, fills)),
        [PatternPiece::Hole(hole)] => fills(hole, value),
        [PatternPiece::Hole(hole), rest @ ..] => {
            let mut ends = value.char_indices().map(|(at, _)| at).skip(1);
            ends.any(|end| fills(hole, &value[..end]) && fit(rest, &value[end..], fills))
        }
    }
}

/// Parses the text between two braces. The `[]` after lists in a server's names of fields is left
/// out.
fn hole(inner: &str) -> Option<Hole> {
    let (of, field) = match inner.split_once('.') {
        Some((of, field)) => (of, Some(field)),
        None => (inner, None),
    };
    let is_field = |field: &str| !field.is_empty() && field.chars().all(|c| !c.is_whitespace());
    let field = field.map(|field| field.replace("[]", ""));
    (is_id(of) && field.as_deref().is_none_or(is_field)).then(|| Hole {
        of: of.to_owned(),
        field,
    })
}

/// Whether a text can name a call.
pub(super) fn is_id(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !text.is_empty() && text.len() <= 32 && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_filled_and_all_else_is_literal() {
        let fits = |pattern: &str, value: &str| {
            let filled = |hole: &Hole, text: &str| match (hole.of.as_str(), hole.field.as_deref()) {
                ("a", Some("name")) => text == "Chez Max" || text == "Bo",
                ("a", None) => text == "word",
                ("any", _) => true,
                _ => false,
            };
            HolePattern::read(pattern).unwrap().fits(value, &filled)
        };
        for (pattern, value) in [
            ("anna@x.com", "Anna@X.com"),
            ("{a.name}", "Chez Max"),
            ("Dinner at {a.name}", "Dinner at Chez Max"),
            ("{a.name} and {a.name}!", "Bo and Chez Max!"),
            ("{a}", "word"),
            ("{a[].name}", "{a[].name}"),
            ("{a.name[]}", "Bo"),
            ("{not a hole}", "{not a hole}"),
            ("{a.name", "{a.name"),
        ] {
            assert!(fits(pattern, value), "{pattern} {value}");
        }
        for (pattern, value) in [
            ("anna@x.com", "anna@x.com.evil.com"),
            ("{a.name}", "Chez Max "),
            ("{a.name}", "{a.name}"),
            ("Dinner at {a.name}", "dinner at Chez Max and more"),
            ("{a.name}!", "Bo! evil@y.com"),
            ("{b.name}", "Bo"),
            ("{a.other}", "Bo"),
            ("{a.[]}", "Bo"),
            ("", "x"),
        ] {
            assert!(!fits(pattern, value), "{pattern} {value}");
        }
        assert!(HolePattern::read(&"{a.b}".repeat(4)).is_err());
        // Several holes are tried at each place of a value, so that is short.
        for (length, expected) in [(MAX_FILLED, true), (MAX_FILLED + 1, false)] {
            assert_eq!(fits("{any}{any}", &"y".repeat(length)), expected);
        }
    }
}
