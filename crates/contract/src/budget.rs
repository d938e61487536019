//! Limits, prices and what was spent. Plain integers, so that sums are exact.

use std::{fmt, ops, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::Usage;

/// Money in millionths of a US dollar.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Microdollars(pub u64);

impl FromStr for Microdollars {
    type Err = String;

    /// Reads US dollars like `0.25` or `$3`, to the sixth decimal, below a billion.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim().trim_start_matches('$');
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let is_amount = is_number(whole)
            && is_number(decimals)
            && !(whole.is_empty() && decimals.is_empty())
            && whole.len() <= 9
            && decimals.len() <= 6;
        let micros = is_amount.then(|| format!("{whole}{decimals:0<6}").parse().ok());
        micros
            .flatten()
            .map(Self)
            .ok_or_else(|| format!("`{text}` is not an amount of US dollars; write 0.25 or 3"))
    }
}

impl fmt::Display for Microdollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}.{:04}", self.0 / 1_000_000, self.0 % 1_000_000 / 100)
    }
}

impl Microdollars {
    /// Returns the amount for people, after `before`; empty for 0, because the price of a model
    /// that nobody knows is charged as 0, and nothing is said of it.
    pub fn after(self, before: &str) -> String {
        if self.0 == 0 {
            String::new()
        } else {
            format!("{before}{self}")
        }
    }
}

impl ops::Add for Microdollars {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Prices of a model, in microdollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// Price of tokens sent.
    pub input: u64,
    /// Price of tokens received.
    pub output: u64,
    /// Price of input tokens that the provider had in its cache; defaults to `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Price of sent tokens that the provider put into its cache; defaults to `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
}

impl Price {
    /// Creates a price without separate rates for the cache.
    pub fn new(input: u64, output: u64) -> Self {
        Self {
            input,
            output,
            cache_read: None,
            cache_write: None,
        }
    }

    /// Returns the highest possible cost of a call, rounded up: the whole prompt at the highest
    /// input rate.
    pub fn at_most(&self, input_tokens: u64, output_tokens: u64) -> Microdollars {
        let dearest = self.input.max(self.cache_write.unwrap_or(0));
        sum([(dearest, input_tokens), (self.output, output_tokens)])
    }

    /// Returns the cost of a call, rounded up.
    pub fn of(&self, usage: &Usage) -> Microdollars {
        let read = usage.cached_tokens.min(usage.input_tokens);
        let written = usage.cache_written_tokens.min(usage.input_tokens - read);
        sum([
            (self.input, usage.input_tokens - read - written),
            (self.cache_read.unwrap_or(self.input), read),
            (self.cache_write.unwrap_or(self.input), written),
            (self.output, usage.output_tokens),
        ])
    }
}

fn sum<const N: usize>(rates_and_tokens: [(u64, u64); N]) -> Microdollars {
    let exact = rates_and_tokens
        .into_iter()
        .map(|(rate, tokens)| u128::from(rate) * u128::from(tokens))
        .fold(0, u128::saturating_add);
    Microdollars(u64::try_from(exact.div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

/// Limits on the use of a run and its children. `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Number of cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Input and output tokens together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Microdollars>,
    /// Time in milliseconds, not counting the time a run was parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

/// Resources used by a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Number of cycles.
    pub steps: u64,
    /// Input and output tokens together.
    pub tokens: u64,
    /// Cost, as far as prices are known.
    pub cost: Microdollars,
    /// Time in milliseconds, not counting the time the run was parked.
    pub time_ms: u64,
    /// Whether a part of the use is a reservation that was never settled by a reported usage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}
