//! Entries about a cycle: its end, from which a later process continues, or that it was abandoned.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use gyrus_contract::{
    Claim, Destination, Digest, Grant, Plainness, Purpose, Spent, Strength, Text, ToolSpec,
    is_default,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Inline;

use super::{MessagesAppended, RunSettings, Snapshot, Validity, model::nothing_appended};

/// A cycle is complete: its effects will never run again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CycleEnded {
    /// The number of the cycle, counted from 1.
    pub cycle: u32,
    /// The version of the loop's state.
    pub state_version: u32,
    /// The loop's state.
    pub state: Value,
    /// The messages added to memory since the previous entry that holds some.
    #[serde(default, skip_serializing_if = "nothing_appended")]
    pub appended: MessagesAppended,
    /// Number of messages that memory ever held.
    pub memory_next: u64,
    /// Number before which the loop archived messages, although there was room for them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub memory_first: u64,
    pub kernel: KernelState,
    /// The claim that ends the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The strength of the claim's support.
    #[serde(default, skip_serializing_if = "is_default")]
    pub strength: Strength,
    /// The reason why the run cannot continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The workspace, if it changed in this cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
}

/// The state that the kernel needs to continue from a cycle's end, without reading earlier entries.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelState {
    /// The resources used so far.
    pub spent: Spent,
    /// Whether untrusted text was read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exposed: bool,
    /// Number of questions to models so far, by purpose.
    #[serde(default, alias = "replies", skip_serializing_if = "BTreeMap::is_empty")]
    pub questions: BTreeMap<Purpose, u64>,
    /// The person's amendments of the goal, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub amendments: Vec<Text>,
    /// Number of children started so far in the whole tree below this run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub children: u32,
    /// Calls that were denied because nobody could be asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// The grants for the rest of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// The reason why changes in the workspace cannot be undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_undoable: Option<String>,
    /// The context window of the model that was asked last, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The parts left out of the requests to each model, because its server refused them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plainer: BTreeMap<String, Plainness>,
    /// Number of documents counted on screens so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub documents: u32,
    /// The tools of servers that were found or called, if models are only offered those.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub found_tools: BTreeSet<String>,
    /// The tools of servers that joined the run, each time that some did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added_tools: Vec<Inline<Vec<Arc<ToolSpec>>>>,
    /// Connections that the person allowed once, to commands that had ended by then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permits: Vec<ConnectionPermit>,
    /// Number of the person's texts for which the last mandate was stated.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mandate_for: u32,
    /// Inputs that a crash interrupted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<UnknownInput>,
    /// The answers of hooks about the start and the end of the run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hooks: HookState,
    /// The settings with which the run was resumed, if they differ from those with which it was
    /// started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<RunSettings>,
}

/// The answers of hooks about the start and the end of a run, up to now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookState {
    /// Whether the hooks were asked about the start.
    #[serde(default)]
    pub began: bool,
    /// Number of times that the hooks kept the run from ending.
    #[serde(default)]
    pub refused_ends: u32,
}

/// A cycle failed or was abandoned; its state is never used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CycleDropped {
    /// The number of the cycle.
    pub cycle: u32,
    pub why: String,
}

/// A connection that a person allowed once, to a command that had ended by then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionPermit {
    /// The digest of the call: one more start of it may use this.
    pub command: Digest,
    pub destination: Destination,
    /// The grants that a wider answer would have given; the approval also covers these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wider: Vec<Grant>,
    /// The period for which the permit is valid.
    pub valid: Validity,
}

/// The target of an interrupted input, which may or may not have happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownInput {
    /// The origin of the document.
    pub origin: String,
    /// Role and name of the element, if it went to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<(String, String)>,
    /// The address that the form around it is sent to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
}
