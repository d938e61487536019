//! Entries about calling a tool: asked for, judged, approved, started, settled.

use std::collections::BTreeMap;

use gyrus_contract::{
    ActionVerdict, Artifact, BlobId, Claim, Digest, EffectId, Grant, Image, Principal,
    ResolvedCall, ResolvedPath, Text, ToolCall, Verdict,
};
use gyrus_journal::os::process::ProcessIdentity;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Inline;

/// A tool is to be called. Nothing has happened yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCalled {
    /// The effect.
    pub effect: EffectId,
    /// As the loop asked for it.
    pub call: ToolCall,
}

/// The gate has judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateVerdict {
    /// The effect.
    pub effect: EffectId,
    /// The arguments that were judged, if the gate read them differently from how they were
    /// written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The paths among them, looked up.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub paths: BTreeMap<String, ResolvedPath>,
    /// What its command would run in: a `Containment` as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containment: Option<BlobId>,
    /// Of all that was judged; absent in journals of before there were sandboxes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The verdict.
    pub verdict: Verdict,
}

impl GateVerdict {
    /// The verdict on what `call` was resolved to, with its containment in a blob.
    pub fn on(
        effect: EffectId,
        call: &ToolCall,
        resolved: ResolvedCall,
        containment: Option<BlobId>,
        verdict: Verdict,
    ) -> Self {
        let digest = Some(Digest::of_json(&resolved));
        let arguments = (resolved.arguments != call.arguments).then_some(resolved.arguments);
        Self {
            effect,
            arguments,
            paths: resolved.paths,
            containment,
            digest,
            verdict,
        }
    }

    /// What `call` was resolved to, but for its command line.
    pub fn resolved(&self, call: &ToolCall) -> ResolvedCall {
        ResolvedCall {
            tool: call.tool.clone(),
            arguments: self
                .arguments
                .clone()
                .unwrap_or_else(|| call.arguments.clone()),
            paths: self.paths.clone(),
            command: None,
        }
    }

    /// The digest of all that was judged.
    pub fn digest(&self, call: &ToolCall) -> Digest {
        self.digest
            .unwrap_or_else(|| Digest::of_json(&self.resolved(call)))
    }
}

/// A person is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalAsked {
    /// The effect that asks.
    pub effect: EffectId,
    /// What is shown.
    pub card: Card,
    /// Of what would be done. An answer to another digest does not count.
    pub digest: Digest,
}

/// What a person sees before deciding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// What will happen, in one sentence of our own words.
    pub sentence: String,
    /// Why it is asked.
    pub reasons: Vec<String>,
    /// The call's own words: untrusted, shown in a marked box.
    pub details: Vec<Text>,
    /// It asks for words, not for leave.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub question: bool,
    /// What a wider yes would allow for the rest of the session; empty if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wider: Vec<Grant>,
}

/// A person answered, or nobody could be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalAnswered {
    /// The effect that asked.
    pub effect: EffectId,
    /// Of what was answered.
    pub digest: Digest,
    /// Yes.
    pub approved: bool,
    /// Who; `None` when nobody could be asked.
    pub by: Option<Principal>,
    /// Words for the model: the answer to a question, or why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it allows for the rest of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// The inbox message that said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A tool is about to run: from here on it may have happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolStarted {
    /// The effect.
    pub effect: EffectId,
    /// 1 for the first time.
    pub attempt: u32,
    /// The keeper of the processes it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeper: Option<ProcessIdentity>,
}

/// How a tool call came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    /// It ran to its end.
    Done,
    /// It was not let through: unknown, unreadable, denied.
    Refused,
    /// A crash cut it off; nobody knows how far it came.
    Interrupted,
    /// A person, or a race that another branch won, cut it off.
    Cancelled,
}

/// The outcome of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResulted {
    /// The effect.
    pub effect: EffectId,
    /// How it came out.
    pub settled: Settled,
    /// What the model sees, secrets redacted.
    pub text: Inline<String>,
    /// Pictures that the model sees with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// It failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Whether the world changed.
    pub verdict: ActionVerdict,
    /// Files worth showing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// A claim that ends the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}
