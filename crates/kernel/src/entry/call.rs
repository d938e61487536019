//! Entries about calling a tool: asked for, judged, approved, started, settled.

use std::{collections::BTreeMap, time::Duration};

use gyrus_contract::{
    ActionVerdict, Aim, Artifact, BlobId, Claim, Destination, Digest, EffectId, Grant, Image,
    Principal, ResolvedCall, ResolvedPath, Text, ToolCall, Verdict,
};
use gyrus_process::ProcessIdentity;
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
    /// What on the screen it would touch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aim: Option<Aim>,
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
            aim: resolved.aim,
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
            aim: self.aim.clone(),
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
    /// Of what would be done and, from the second asking on, of which asking it is. An answer to
    /// another digest does not count.
    pub digest: Digest,
    /// How often the effect has asked by now: 1 for the first time.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub asking: u32,
    /// Where a command wants to connect, if that is asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<Destination>,
    /// When an answer counts. Questions of journals that do not say have expired.
    #[serde(default)]
    pub valid: Validity,
}

impl ApprovalAsked {
    /// The digest of the card about `what`, asked for the `asking`th time.
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
pub(super) fn is_first(asking: &u32) -> bool {
    *asking == first()
}

/// The time in which an answer counts, on the wall clock: the process may be another by then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validity {
    /// When it was asked, in UTC milliseconds.
    pub from_ms: i64,
    /// From when on no answer counts, in UTC milliseconds.
    pub until_ms: i64,
}

impl Validity {
    /// From now on, for so long.
    pub(crate) fn starting(now_ms: i64, lasts: Duration) -> Self {
        let lasts_ms = i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX);
        Self {
            from_ms: now_ms,
            until_ms: now_ms.saturating_add(lasts_ms),
        }
    }

    /// How much of it is left, in milliseconds. A clock that was set back by more than the whole
    /// leaves nothing, so no clock makes an answer count for ever.
    pub fn left_ms(self, now_ms: i64) -> u64 {
        let lasts_ms = self.until_ms.saturating_sub(self.from_ms);
        if now_ms < self.from_ms.saturating_sub(lasts_ms) {
            return 0;
        }
        u64::try_from(self.until_ms.saturating_sub(now_ms)).unwrap_or(0)
    }

    /// Whether no answer counts any more.
    pub fn is_over(self, now_ms: i64) -> bool {
        self.left_ms(now_ms) == 0
    }
}

/// The kind of the fact that an answer did not count.
pub const APPROVAL_REFUSED: &str = "approval.refused";

/// An answer did not count. It stands in the journal as a fact under [`APPROVAL_REFUSED`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRefused {
    /// What it said.
    pub approved: bool,
    /// Who said it.
    pub by: Principal,
    /// Why it did not count, in a sentence.
    pub text: String,
    /// The inbox message.
    pub message: String,
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
    /// What is asked about, as a text that a person may change: a yes with words is a yes to
    /// these words in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit: Option<String>,
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
    /// The snapshot of the workspace before it, if what it changes there is judged when it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<BlobId>,
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
    /// Changes that were taken back until a person says yes, as a blob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<BlobId>,
    /// What an undo needs to take its changes back where no snapshot says it, as a blob: of
    /// repositories, and of files of a large folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_undo: Option<BlobId>,
    /// Questions about connections of its command that were open when it ended, and are asked on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<EffectId>,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
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
            // Set back a little, and so far that the old time says nothing.
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
