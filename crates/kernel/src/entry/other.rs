//! Entries about the remaining effects: readings, waits, branches, child runs and recorded facts.

use gyrus_contract::{Digest, EffectId, Image, Limits, Principal, RunId, Spent, Text, is_default};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Ending;
use crate::Inline;

/// A reading that differs at every call, recorded so that a replay returns the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValueTaken {
    pub effect: EffectId,
    #[serde(flatten)]
    pub value: ReadValue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum ReadValue {
    /// The wall clock, in UTC milliseconds.
    Clock {
        at_ms: i64,
    },
    Random {
        number: u64,
    },
}

/// The run looked at its screen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScreenViewed {
    pub effect: EffectId,
    /// The id of the screen's session; empty when there was none to look at.
    pub session: String,
    /// Number of documents counted until then, over the whole run.
    pub documents: u32,
    /// The view: a [`View`](gyrus_contract::View) as JSON text, or the reason why there is none.
    pub view: Inline<String>,
    /// Whether there is no view.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The picture, which the view names too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Image>,
}

/// The run waits for a time or a signal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitStarted {
    pub effect: EffectId,
    /// The latest time at which the wait ends, in UTC milliseconds.
    pub until_ms: Option<i64>,
    /// The name of the signal.
    pub signal: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitEnded {
    pub effect: EffectId,
    /// The data sent with the signal; `None` when the deadline passed.
    pub payload: Option<Text>,
    /// The id of the inbox message that delivered the awaited signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Several branches start together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BranchesStarted {
    pub effect: EffectId,
    pub form: ConcurrencyForm,
    /// Number of branches.
    pub branches: u32,
    /// The deadline of [`ConcurrencyForm::Timeout`], in UTC milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
}

/// The form of concurrency, which decides when the branches end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConcurrencyForm {
    /// All branches run to their end.
    All,
    /// The first branch to end wins.
    Race,
    /// One branch against a deadline.
    Timeout,
}

/// A race has been decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RaceWon {
    pub effect: EffectId,
    /// The number of the branch, counted from 1; `None` when the deadline won.
    pub winner: Option<u32>,
}

/// A child run begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildStarted {
    pub effect: EffectId,
    pub child: RunId,
    /// The child's goal, which is not trusted text for the child.
    pub goal: String,
    /// The limits of the child, within this run's own.
    pub limits: Limits,
    /// The digest of goal, loop and tools.
    pub digest: Digest,
}

/// A child run has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildEnded {
    pub effect: EffectId,
    pub child: RunId,
    #[serde(flatten)]
    pub ending: Ending,
    /// The resources that it used, which now count as this run's own use.
    pub spent: Spent,
    /// Number of runs that were started below the child.
    #[serde(default, skip_serializing_if = "is_default")]
    pub children: u32,
    /// A description of the outcome of the child's work tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brought_back: Option<String>,
}

/// A person took the screen over; the run begins nothing meanwhile. What they see and type is not
/// recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TakeoverStarted {
    pub by: Principal,
}

/// The person gave the screen back to the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TakeoverEnded {
    pub by: Principal,
    /// The duration in milliseconds.
    pub took_ms: u64,
    /// The person's message to the run, which it receives like every message of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

/// A fact recorded by an organ or a loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    pub effect: EffectId,
    pub fact: Value,
}
