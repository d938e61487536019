//! Entries about calling a tool: requested, judged, approved, started, settled.

use std::{collections::BTreeMap, time::Duration};

use gyrus_contract::{
    ActionVerdict, Aim, Artifact, BlobId, Claim, Destination, Digest, EffectId, Grant, Image,
    NamedFile, Principal, ResolvedCall, ResolvedPath, Text, ToolCall, Verdict,
};
use gyrus_process::ProcessIdentity;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Inline;

/// A tool is to be called. Nothing has been executed yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCalled {
    pub effect: EffectId,
    /// The call as the loop requested it.
    pub call: ToolCall,
}

/// The gate has judged a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateVerdict {
    pub effect: EffectId,
    /// The arguments that were judged, if the gate read them differently from how they were
    /// written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The resolved paths among the arguments.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub paths: BTreeMap<String, ResolvedPath>,
    /// The files that the arguments name, if an approval depends on their contents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<NamedFile>,
    /// The element of the screen that the call would touch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aim: Option<Aim>,
    /// The containment of the call's command: a `Containment` as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containment: Option<BlobId>,
    /// The digest of everything that was judged; absent in journals from before there were
    /// sandboxes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The id of the mandate's call that this call is, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mandated: Option<String>,
    pub verdict: Verdict,
}

impl GateVerdict {
    /// Creates the entry about the verdict on the resolved `call`, with its containment in a blob.
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
            files: resolved.files,
            aim: resolved.aim,
            containment,
            digest,
            mandated: None,
            verdict,
        }
    }

    /// Returns the resolved `call`, without its command line.
    pub fn resolved(&self, call: &ToolCall) -> ResolvedCall {
        ResolvedCall {
            tool: call.tool.clone(),
            arguments: self
                .arguments
                .clone()
                .unwrap_or_else(|| call.arguments.clone()),
            paths: self.paths.clone(),
            command: None,
            files: self.files.clone(),
            aim: self.aim.clone(),
        }
    }

    /// Returns the digest of everything that was judged.
    pub fn digest(&self, call: &ToolCall) -> Digest {
        self.digest
            .unwrap_or_else(|| Digest::of_json(&self.resolved(call)))
    }
}

/// A person was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalAsked {
    pub effect: EffectId,
    /// The card that is shown.
    pub card: ApprovalCard,
    /// The digest of the planned action and, from the second question on, of the number of the
    /// asking. An answer to another digest does not count.
    pub digest: Digest,
    /// Number of times that the effect has asked; 1 for the first time.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub asking: u32,
    /// The destination of a command's connection, if the question is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<Destination>,
    /// The time in which an answer counts. Questions of journals without it have expired.
    #[serde(default)]
    pub valid: Validity,
}

impl ApprovalAsked {
    /// Returns the digest of the card about `what`, asked for the `asking`th time.
    pub fn digest_of(what: &Digest, asking: u32) -> Digest {
        match asking {
            1 => *what,
            _ => Digest::of_json(&(what, asking)),
        }
    }
}

pub(super) fn first() -> u32 {
    1
}

pub(super) fn is_first(asking: &u32) -> bool {
    *asking == first()
}

/// The time in which an answer counts, on the wall clock, because another process may receive it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validity {
    /// The time of the question, in UTC milliseconds.
    pub from_ms: i64,
    /// The time from which no answer counts, in UTC milliseconds.
    pub until_ms: i64,
}

impl Validity {
    pub(crate) fn starting(now_ms: i64, lasts: Duration) -> Self {
        let lasts_ms = i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX);
        Self {
            from_ms: now_ms,
            until_ms: now_ms.saturating_add(lasts_ms),
        }
    }

    /// Returns the remaining validity in milliseconds. Setting the clock back by more than the
    /// whole leaves nothing, so no clock makes an answer count forever.
    pub fn left_ms(self, now_ms: i64) -> u64 {
        let lasts_ms = self.until_ms.saturating_sub(self.from_ms);
        if now_ms < self.from_ms.saturating_sub(lasts_ms) {
            return 0;
        }
        u64::try_from(self.until_ms.saturating_sub(now_ms)).unwrap_or(0)
    }

    /// Whether answers no longer count.
    pub fn is_over(self, now_ms: i64) -> bool {
        self.left_ms(now_ms) == 0
    }
}

/// The kind of the fact that an answer did not count.
pub const APPROVAL_REFUSED: &str = "approval.refused";

/// An answer did not count. Stored in the journal as a fact of the kind [`APPROVAL_REFUSED`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRefused {
    /// Whether the answer was an approval.
    pub approved: bool,
    /// The person who gave the answer.
    pub by: Principal,
    /// The reason why the answer did not count, as a sentence.
    pub text: String,
    /// The inbox message.
    pub message: String,
}

/// The card that a person sees before deciding.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ApprovalCard {
    /// The planned action in one sentence written by gyrus.
    pub sentence: String,
    /// The reasons for asking.
    pub reasons: Vec<String>,
    /// The call's own text: untrusted, shown in a marked box.
    pub details: Vec<Text>,
    /// Whether the card asks for words instead of approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub question: bool,
    /// The grants that a wider approval would give for the rest of the session; empty if there are
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wider: Vec<Grant>,
    /// The subject of the question as a text that a person may edit: an approval with words
    /// approves these words in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit: Option<String>,
}

/// A person answered, or nobody could be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalAnswered {
    /// The effect of the question.
    pub effect: EffectId,
    /// The digest of the question that was answered.
    pub digest: Digest,
    /// Whether the person approved.
    pub approved: bool,
    /// The person; `None` when nobody could be asked.
    pub by: Option<Principal>,
    /// The text for the model: the answer to a question, or the reason of a denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The grants for the rest of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// The id of the inbox message with the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A tool is about to run: from this entry on it may have happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolStarted {
    pub effect: EffectId,
    /// The number of the attempt, 1 for the first.
    pub attempt: u32,
    /// The keeper of the processes that the tool starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeper: Option<ProcessIdentity>,
    /// The snapshot of the workspace before the call, if its changes there are judged when it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<BlobId>,
}

/// The way in which a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEnd {
    /// The call ran to its end.
    Done,
    /// The call was not allowed: unknown, unreadable, denied.
    Refused,
    /// A crash interrupted the call; it is unknown how far it came.
    Interrupted,
    /// A person, or a race that another branch won, interrupted the call.
    Cancelled,
}

/// The outcome of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResulted {
    pub effect: EffectId,
    /// The way in which the call ended.
    pub settled: CallEnd,
    /// The text that the model sees, redacted.
    pub text: Inline<String>,
    /// The result as data, redacted; absent if the tool returned none, and in old journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Inline<Value>>,
    /// Pictures that the model sees with the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Whether the call failed.
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
    /// The changes that were reverted until a person approves them, as a blob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<BlobId>,
    /// The data for undoing the call's changes that no snapshot contains, as a blob: about
    /// repositories, and files of a large folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_undo: Option<BlobId>,
    /// Questions about connections of the call's command that were open when it ended, and are
    /// continued.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<EffectId>,
    /// The limits of the sandbox that stopped the call's command, each with the setting that would
    /// allow it, redacted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandbox: Vec<String>,
    /// The duration in milliseconds.
    pub took_ms: u64,
}

impl ToolResulted {
    /// Creates the outcome of a call that did not run to its end. `text` tells the model why.
    pub(crate) fn not_done(
        effect: EffectId,
        settled: CallEnd,
        verdict: ActionVerdict,
        text: String,
    ) -> Self {
        Self {
            effect,
            settled,
            text: Inline::Is(text),
            value: None,
            images: Vec::new(),
            is_error: true,
            verdict,
            artifacts: Vec::new(),
            claim: None,
            withheld: None,
            to_undo: None,
            pending: Vec::new(),
            sandbox: Vec::new(),
            took_ms: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_clock_makes_an_answer_count_for_ever() {
        let day = Duration::from_secs(86_400);
        let day_ms = 86_400_000;
        let asked = 1_000 * day_ms;
        for (lasts, now, left) in [
            (day, asked, 86_400_000),
            (day, asked + 1, 86_399_999),
            (day, asked + day_ms - 1, 1),
            (day, asked + day_ms, 0),
            (day, i64::MAX, 0),
            // Clocks set back a little, and so far that the old time says nothing.
            (day, asked - 1, 86_400_001),
            (day, asked - day_ms, 172_800_000),
            (day, asked - day_ms - 1, 0),
            (day, 0, 0),
            (day, i64::MIN, 0),
            (Duration::ZERO, asked, 0),
            (
                Duration::MAX,
                asked + day_ms,
                (i64::MAX - asked - day_ms) as u64,
            ),
        ] {
            let valid = Validity::starting(asked, lasts);
            assert_eq!(valid.left_ms(now), left, "{lasts:?} at {now}");
        }
        assert!(Validity::default().is_over(asked));
        let wrong = Validity {
            from_ms: i64::MAX,
            until_ms: i64::MIN,
        };
        assert!(wrong.is_over(asked));
    }
}
