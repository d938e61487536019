//! Patterns of model names: `provider/id` with `*` for any text.

use gyrus_text::fits;
use serde::{Deserialize, Deserializer, de::Error};

/// A pattern like `provider/family-*`. The more characters it has beside its stars, the more
/// specific it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModelPattern {
    provider: String,
    model: String,
}

impl ModelPattern {
    /// Whether the pattern matches this model: its id as it is, or without the date of a snapshot
    /// at its end (`-20261007`, `-2026-10-07`), since a snapshot is the same model.
    pub(super) fn is_for(&self, provider: &str, model: &str) -> bool {
        fits(&self.provider, provider)
            && (fits(&self.model, model) || fits(&self.model, without_date(model)))
    }

    /// Returns the provider, if the pattern is about a family of its models to which this one belongs.
    pub(super) fn family_of(&self, model: &str) -> Option<&str> {
        let names_family = !self.provider.contains('*') && !self.model.starts_with('*');
        let is_own = names_family && fits(&self.model, model);
        is_own.then_some(self.provider.as_str())
    }

    /// Returns the number of characters other than stars.
    pub(super) fn specificity(&self) -> usize {
        let demanded = |text: &str| text.chars().filter(|&c| c != '*').count();
        demanded(&self.provider) + demanded(&self.model)
    }
}

impl<'de> Deserialize<'de> for ModelPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.split_once('/') {
            Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(Self {
                provider: provider.to_owned(),
                model: model.to_owned(),
            }),
            _ => Err(D::Error::custom(format!(
                "`{text}` is not a pattern like provider/model; write */{text} for every provider"
            ))),
        }
    }
}

fn without_date(model: &str) -> &str {
    let is_date = |text: &str, dashes: &[usize]| {
        text.bytes().enumerate().all(|(at, byte)| {
            if dashes.contains(&at) {
                byte == b'-'
            } else {
                byte.is_ascii_digit()
            }
        })
    };
    for (length, dashes) in [(9, &[0][..]), (11, &[0, 5, 8][..])] {
        let Some((rest, date)) = model
            .len()
            .checked_sub(length)
            .and_then(|at| model.split_at_checked(at))
        else {
            continue;
        };
        if !rest.is_empty() && is_date(date, dashes) {
            return rest;
        }
    }
    model
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_models() {
        let check = |pattern: &str, name: &str, expected: bool| {
            let (provider, model) = pattern.split_once('/').unwrap();
            let pattern = ModelPattern {
                provider: provider.into(),
                model: model.into(),
            };
            let (provider, model) = name.split_once('/').unwrap();
            assert_eq!(
                pattern.is_for(provider, model),
                expected,
                "{pattern:?} {name}"
            );
        };
        check("a/one-5", "a/one-5", true);
        check("a/one-5", "a/one-5-20261007", true);
        check("a/one-5", "a/one-5-2026-10-07", true);
        check("a/one-5", "a/one-5-1", false);
        check("a/one-5", "a/one-5-2026-1-07", false);
        check("a/one-5", "a/one-51", false);
        check("a/one-5", "b/one-5", false);
        check("*/one-5", "b/one-5", true);
        check("a/*", "a/", true);
        check("a/one*five", "a/onefive", true);
        check("a/one*five", "a/one-2-five", true);
        check("a/one*five", "a/onefiv", false);
        check("a/o*o", "a/o", false);
        check("a/*b*b*", "a/xbxb", true);
        check("a/*b*b*", "a/xbx", false);
        check("a/-20261007", "a/-20261007", true);
        check("a/grün", "a/grün-20261007", true);
        check("a/ü", "a/üüüüüüüüü", false);
    }
}
