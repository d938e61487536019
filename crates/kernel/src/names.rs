//! The names of questions.

use std::{fmt, str::FromStr};

use gyrus_contract::EffectId;

/// The name of a question for people: `2.3`, and `2.3-2` when it was asked for the second time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionId {
    /// The effect that asks.
    pub effect: EffectId,
    /// Number of times that the question was asked; 1 for the first time.
    pub asking: u32,
}

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.asking {
            1 => self.effect.fmt(f),
            asking => write!(f, "{}-{asking}", self.effect),
        }
    }
}

gyrus_contract::stored_as_text!(QuestionId);

impl FromStr for QuestionId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` names no question; the card does, like 2.3 or 2.3-2");
        let (effect, asking) = text.split_once('-').unwrap_or((text, "1"));
        Ok(Self {
            effect: effect.parse().map_err(|_| wrong())?,
            asking: asking.parse().map_err(|_| wrong())?,
        })
    }
}
