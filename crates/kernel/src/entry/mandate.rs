//! The mandate of a run: the calls that the goal means, stated before anything untrusted was read.

use std::collections::BTreeMap;

use gyrus_contract::{Digest, EffectId};
use serde::{Deserialize, Serialize};

/// A model stated the mandate, which was found to follow from the person's texts; or a person
/// approved calls that go beyond it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MandateSet {
    pub effect: EffectId,
    /// The calls; none if the goal needs no such call, or if no stated call was valid.
    pub mandate: Mandate,
    /// A line for people.
    pub text: String,
    /// Whether this mandate extends an earlier one instead of replacing it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub extends: bool,
}

/// The calls that a run may make without asking.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mandate {
    /// The calls, in any order.
    pub calls: Vec<MandatedCall>,
}

/// One call of a mandate, or several of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MandatedCall {
    /// The name by which later calls refer to its result.
    pub id: String,
    /// The name of the tool.
    pub tool: String,
    /// The number of times that the call may be made.
    pub times: Times,
    /// The allowed values of each argument, by its path. A `*` stands for any text, `{id.field}`
    /// for the value of a field in the result of the call `id`, `{id}` for a word of its text; both
    /// may stand within a text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, Vec<String>>,
    /// The digest of the arguments, if a person approved exactly these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<Digest>,
}

/// The number of times that a call may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Times {
    /// At most this number of times.
    AtMost(u32),
    /// Once for each of its destinations.
    Each,
}
