//! Entries about a cycle: its end, which is what a later process goes on from, or that it was
//! given up.

use std::collections::BTreeMap;

use gyrus_contract::{Claim, Grant, Item, Purpose, Spent, Strength, Text};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Settings, Snapshot};
use crate::{Inline, Permit, Unknown};

/// Messages that memory gained and that no entry held before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Appended {
    /// The number of the first.
    pub first: u64,
    /// They themselves, in order.
    pub items: Vec<Inline<Item>>,
}

/// A cycle is complete: its effects will never run again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CycleEnded {
    /// Counted from 1.
    pub cycle: u32,
    /// The version of the loop's state.
    pub state_version: u32,
    /// The loop's state.
    pub state: Value,
    /// What memory gained since its last entry.
    #[serde(default, skip_serializing_if = "nothing_appended")]
    pub appended: Appended,
    /// How many messages memory ever held.
    pub memory_next: u64,
    /// Those before this number were put away by the loop, though there was room for them.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub memory_first: u64,
    /// The kernel's own state.
    pub kernel: KernelState,
    /// The claim that ends the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// How well it is supported.
    #[serde(default, skip_serializing_if = "is_claimed")]
    pub strength: Strength,
    /// Why the run cannot go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The workspace, if it changed in this cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
pub(super) fn is_claimed(strength: &Strength) -> bool {
    *strength == Strength::Claimed
}

pub(super) fn nothing_appended(appended: &Appended) -> bool {
    appended.items.is_empty()
}

/// What the kernel must know to go on from a cycle's end, without reading what was before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelState {
    /// What was used so far.
    pub spent: Spent,
    /// Untrusted text was read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exposed: bool,
    /// Questions to models so far, by purpose.
    #[serde(default, alias = "replies", skip_serializing_if = "BTreeMap::is_empty")]
    pub questions: BTreeMap<Purpose, u64>,
    /// The person's amendments of the goal, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub amendments: Vec<Text>,
    /// Children started so far, over the whole tree below this run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub children: u32,
    /// Calls denied because nobody could be asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// What the person allowed for the rest of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// Why what changes in the workspace cannot be undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_undoable: Option<String>,
    /// How many tokens the model takes that was asked last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Documents counted on screens so far.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub documents: u32,
    /// Connections that the person allowed once, to commands that had ended by then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permits: Vec<Permit>,
    /// Inputs that a crash cut off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Unknown>,
    /// What the run was resumed with, if that is not what it was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
pub(super) fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_zero_u64(n: &u64) -> bool {
    *n == 0
}

/// A cycle failed or was given up; its state is never used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CycleDropped {
    /// Which.
    pub cycle: u32,
    /// Why.
    pub why: String,
}
