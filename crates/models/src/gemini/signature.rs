//! Thought signatures, and the form in which a conversation stores them.
//!
//! A model that thinks signs some of its parts, and wants each signature back on the same part
//! (<https://ai.google.dev/gemini-api/docs/thought-signatures>). A conversation carries it as
//! [`Part::Thinking`] right before the part that it belongs to.
//!
//! [`Part::Thinking`]: gyrus_contract::Part::Thinking

use gyrus_contract::Part;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The documented stand-in for the signature of a call that this provider's models did not make.
/// Without any signature on the first call of a turn, the provider refuses the conversation.
pub(super) const FOREIGN_CALL: &str = "skip_thought_signature_validator";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Signature {
    // Not called `type`: that field is the conversation's own, for the kind of a part.
    kind: SignatureKind,
    /// The signature, unchanged.
    pub(super) signature: String,
    /// The part to which the signature belongs.
    pub(super) on: SignaturePart,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum SignatureKind {
    #[serde(rename = "thought_signature")]
    ThoughtSignature,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SignaturePart {
    /// The call after the signature.
    Call,
    /// These bytes of the text after the signature, which arrived as a separate part. The text is
    /// not stored in pieces, because its readers need it whole. An empty range is an empty part.
    Text {
        /// First byte of the part.
        start: usize,
        /// End of the part, exclusive.
        end: usize,
    },
    /// A part of thinking, with these words.
    Thought(String),
}

impl Signature {
    /// Returns a signature in the form in which a conversation stores it.
    pub(super) fn part(signature: String, on: SignaturePart) -> Part {
        let kind = SignatureKind::ThoughtSignature;
        // Strings and numbers only: this cannot fail.
        let carried = serde_json::to_value(Self {
            kind,
            signature,
            on,
        });
        Part::Thinking(carried.unwrap_or_default())
    }

    /// Returns the signature in a block of thinking; `None` if another provider wrote the block.
    pub(super) fn read(block: &Value) -> Option<Self> {
        Self::deserialize(block).ok()
    }
}

/// Splits a text into the parts in which it arrived: `signed` has the ranges and their signatures,
/// in order. A range that does not fit (the text was changed since) is left out.
pub(super) fn text_parts(text: &str, signed: Vec<(usize, usize, String)>) -> Vec<Value> {
    let mut parts = Vec::with_capacity(1);
    let push_plain = |parts: &mut Vec<Value>, plain: &str| {
        if !plain.is_empty() {
            parts.push(json!({"text": plain}));
        }
    };
    let mut at = 0;
    for (start, end, signature) in signed {
        let (Some(plain), Some(own)) = (text.get(at..start), text.get(start..end)) else {
            continue;
        };
        push_plain(&mut parts, plain);
        parts.push(json!({"text": own, "thoughtSignature": signature}));
        at = end;
    }
    push_plain(&mut parts, &text[at..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_carried_and_found_again() {
        for on in [
            SignaturePart::Call,
            SignaturePart::Text { start: 1, end: 3 },
            SignaturePart::Thought("hm".into()),
        ] {
            let Part::Thinking(block) = Signature::part("c2ln+/=".into(), on.clone()) else {
                panic!("a signature is thinking");
            };
            let read = Signature::read(&block).unwrap();
            assert_eq!((read.signature.as_str(), read.on), ("c2ln+/=", on));
            let part = Part::Thinking(block);
            let journal = serde_json::to_string(&part).unwrap();
            assert_eq!(serde_json::from_str::<Part>(&journal).unwrap(), part);
        }
        for foreign in [
            json!({"type": "thinking", "thinking": "", "signature": "s"}),
            json!({"kind": "thought_signature", "signature": "s"}),
            json!({"kind": "reasoning", "signature": "s", "on": "call"}),
            json!(null),
        ] {
            assert_eq!(Signature::read(&foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_text_falls_into_its_parts_again() {
        let check = |text: &str, signed: &[(usize, usize)], expected: &[(&str, bool)]| {
            let signed = signed.iter().map(|&(start, end)| (start, end, "s".into()));
            let parts: Vec<_> = text_parts(text, signed.collect())
                .iter()
                .map(|part| {
                    let text = part["text"].as_str().unwrap().to_owned();
                    (text, part.get("thoughtSignature").is_some())
                })
                .collect();
            let expected: Vec<_> = expected.iter().map(|&(t, s)| (t.to_owned(), s)).collect();
            assert_eq!(parts, expected, "{text} {signed:?}", signed = parts);
        };
        check("abc", &[], &[("abc", false)]);
        check("abc", &[(0, 3)], &[("abc", true)]);
        check("abc", &[(3, 3)], &[("abc", false), ("", true)]);
        check(
            "abcd",
            &[(1, 2), (2, 3)],
            &[("a", false), ("b", true), ("c", true), ("d", false)],
        );
        check("", &[(0, 0)], &[("", true)]);
        // Ranges not on a character boundary, past the end, backwards, or overlapping.
        check("ä", &[(0, 1), (0, 9), (2, 1)], &[("ä", false)]);
        check("abc", &[(0, 2), (1, 3)], &[("ab", true), ("c", false)]);
    }
}
