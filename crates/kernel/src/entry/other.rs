//! Entries about the remaining effects: readings, waits, branches, child runs and noted facts.

use gyrus_contract::{Digest, EffectId, Image, Limits, Principal, RunId, Spent, Text};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Ending, cycle::is_zero};
use crate::Inline;

/// A reading that differs at every call, recorded so that it does not on replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValueTaken {
    /// The effect.
    pub effect: EffectId,
    /// The reading.
    #[serde(flatten)]
    pub value: Taken,
}

/// What was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Taken {
    /// The wall clock, in UTC milliseconds.
    Clock {
        /// The reading.
        at_ms: i64,
    },
    /// Randomness.
    Random {
        /// The number.
        number: u64,
    },
}

/// The run looked at its screen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScreenViewed {
    /// The effect.
    pub effect: EffectId,
    /// The session of the screen; empty when there was none to look at.
    pub session: String,
    /// How many documents were counted by then, over the whole run.
    pub documents: u32,
    /// What was seen: a [`View`](gyrus_contract::View) as JSON text, or why nothing was.
    pub view: Inline<String>,
    /// Nothing was seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The picture, which the view names too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Image>,
}

/// The run waits for a time or a signal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitStarted {
    /// The effect.
    pub effect: EffectId,
    /// Until when at the latest, in UTC milliseconds.
    pub until_ms: Option<i64>,
    /// For which signal.
    pub signal: Option<String>,
}

/// A wait is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitEnded {
    /// The effect.
    pub effect: EffectId,
    /// What came with the signal; `None` when the time was over.
    pub payload: Option<Text>,
    /// The inbox message that brought it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Several branches start together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BranchesStarted {
    /// The effect.
    pub effect: EffectId,
    /// How they end.
    pub form: Form,
    /// How many there are.
    pub branches: u32,
    /// The deadline of [`Form::Timeout`], in UTC milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
}

/// How branches end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// All run to their end.
    All,
    /// The first to end wins.
    Race,
    /// One branch against a deadline.
    Timeout,
}

/// A race is decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RaceWon {
    /// The effect.
    pub effect: EffectId,
    /// The branch, counted from 1; `None` when the deadline won.
    pub winner: Option<u32>,
}

/// A child run begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildStarted {
    /// The effect.
    pub effect: EffectId,
    /// The child.
    pub child: RunId,
    /// Its goal; not trusted text for the child.
    pub goal: String,
    /// What it may use, out of this run's own limits.
    pub limits: Limits,
    /// Of goal, loop and tools.
    pub digest: Digest,
}

/// A child run came to an end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildEnded {
    /// The effect.
    pub effect: EffectId,
    /// The child.
    pub child: RunId,
    /// How.
    #[serde(flatten)]
    pub ending: Ending,
    /// What it used; now part of this run's own use.
    pub spent: Spent,
    /// Runs that were started below it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub children: u32,
}

/// A person took the screen over; the run begins nothing meanwhile. What they see and type is not
/// written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TakeoverStarted {
    /// Who.
    pub by: Principal,
}

/// The screen is the run's again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TakeoverEnded {
    /// Who had it.
    pub by: Principal,
    /// For how long.
    pub took_ms: u64,
    /// What they tell the run. It gets that as it gets all that a person says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

/// An organ's or a loop's own fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// The effect.
    pub effect: EffectId,
    /// What was noted.
    pub fact: Value,
}
