//! Limits, prices and what was spent. Plain integers, so that sums are exact.

use std::{fmt, ops};

use serde::{Deserialize, Serialize};

/// Money in millionths of a US dollar.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Microdollars(pub u64);

impl fmt::Display for Microdollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}.{:04}", self.0 / 1_000_000, self.0 % 1_000_000 / 100)
    }
}

impl ops::Add for Microdollars {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// What a model charges, in microdollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// Tokens sent.
    pub input: u64,
    /// Tokens received.
    pub output: u64,
}

impl Price {
    /// The cost of a call, rounded up.
    pub fn of(&self, input_tokens: u64, output_tokens: u64) -> Microdollars {
        let exact = u128::from(self.input) * u128::from(input_tokens)
            + u128::from(self.output) * u128::from(output_tokens);
        Microdollars(u64::try_from(exact.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }
}

/// What a run may use, its children included. `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Cycles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Input and output tokens together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Microdollars>,
    /// Time in milliseconds, without the time a run was parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

/// What a run has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Cycles.
    pub steps: u64,
    /// Input and output tokens together.
    pub tokens: u64,
    /// Money, as far as prices are known.
    pub cost: Microdollars,
    /// Time in milliseconds, without the time the run was parked.
    pub time_ms: u64,
    /// Some of it is a reservation that was never settled by a reported usage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}
