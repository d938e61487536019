//! Secrets in a proposal: markers are replaced by values to compare files, and values by markers in
//! the output.
//!
//! A marker can appear anywhere in a proposal, also where its value would not be recognised as a
//! secret. So every occurrence of an inserted value becomes its marker again.

use std::collections::BTreeMap;

use gyrus_contract::{FileDiff, Proposal, Site, UnknownSecret};

/// Start of a marker, as [`Site::reveal`] knows it: `⟦secret:NAME⟧`.
const START: &str = "⟦secret:";
const END: char = '⟧';

/// Reason why a text cannot be proposed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SecretError {
    #[error("needs a secret, but {0}")]
    Unknown(#[from] UnknownSecret),
    #[error("has {0} in it, a secret of several lines, which a diff would show")]
    Lines(String),
}

#[derive(Default)]
pub(super) struct Secrets {
    /// Markers by the values that they replace.
    used: BTreeMap<String, String>,
}

impl Secrets {
    pub(super) fn reveal(&mut self, text: &str, site: &dyn Site) -> Result<String, SecretError> {
        for (at, _) in text.match_indices(START) {
            let Some(end) = text[at..].find(END) else {
                break;
            };
            let marker = &text[at..at + end + END.len_utf8()];
            let value = site.reveal(marker)?;
            if value.contains('\n') {
                return Err(SecretError::Lines(marker.to_owned()));
            }
            if !value.is_empty() && value != marker {
                self.used.insert(value, marker.to_owned());
            }
        }
        Ok(site.reveal(text)?)
    }

    /// Replaces all revealed values by markers.
    pub(super) fn hide_in(&self, proposal: &mut Proposal) {
        proposal.summary = self.hide(&proposal.summary);
        for FileDiff {
            path,
            reason,
            hunks,
            ..
        } in &mut proposal.changes
        {
            for text in [path, reason, hunks] {
                *text = self.hide(text);
            }
        }
    }

    /// Returns the text with markers in the place of all revealed values.
    pub(super) fn hide(&self, text: &str) -> String {
        let mut hidden = String::with_capacity(text.len());
        let mut at = 0;
        // The next occurrence of each value; of two at one place, the longer counts.
        let mut next: Vec<_> = self
            .used
            .iter()
            .map(|(value, marker)| (text.find(value), value, marker))
            .collect();
        while let Some((start, value, marker)) = next
            .iter()
            .filter_map(|(start, value, marker)| Some(((*start)?, *value, *marker)))
            .min_by_key(|(start, value, _)| (*start, usize::MAX - value.len()))
        {
            hidden.push_str(&text[at..start]);
            hidden.push_str(marker);
            at = start + value.len();
            for (start, value, _) in &mut next {
                if start.is_some_and(|start| start < at) {
                    *start = text[at..].find(*value).map(|further| at + further);
                }
            }
        }
        hidden.push_str(&text[at..]);
        hidden
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_revealed_is_hidden_wherever_it_stands() {
        let secrets = |used: &[(&str, &str)]| Secrets {
            used: used
                .iter()
                .map(|(value, marker)| ((*value).to_owned(), (*marker).to_owned()))
                .collect(),
        };
        let some = secrets(&[
            ("secret", "⟦secret:A⟧"),
            ("secrets", "⟦secret:B⟧"),
            ("aa", "⟦secret:C⟧"),
        ]);
        for (text, hidden) in [
            ("", ""),
            ("no such thing", "no such thing"),
            ("secret", "⟦secret:A⟧"),
            ("xsecretsxsecretx", "x⟦secret:B⟧x⟦secret:A⟧x"),
            ("aaa secret secrets", "⟦secret:C⟧a ⟦secret:A⟧ ⟦secret:B⟧"),
        ] {
            assert_eq!(some.hide(text), hidden, "{text}");
        }
        assert_eq!(secrets(&[]).hide("secret"), "secret");
    }
}
