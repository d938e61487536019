//! The entries that a run's fold needs: a closed set, one struct a kind.
//!
//! Facts that organs note down (`thought`, `reflection`, …) are [`Fact`]s under their own kind and
//! version; the kernel carries them and never looks inside. Adding a kind here is a change of the
//! journal's format.

use std::{collections::BTreeMap, path::PathBuf};

use gyrus_contract::{
    ActionVerdict, Artifact, BlobId, Claim, Digest, EffectId, Item, Limits, Message, MessageBody,
    Microdollars, Mode, ModelError, OnAsk, Principal, Purpose, Reply, ResolvedCall, RunId, Spent,
    SurfaceMessage, Text, ToolCall, Verdict,
};
use gyrus_journal::os::process::ProcessIdentity;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Inline;

/// What a run was started with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The run.
    pub run: RunId,
    /// What it is to reach.
    pub goal: Inline<Text>,
    /// The loop that thinks.
    #[serde(rename = "loop")]
    pub cognitive_loop: String,
    /// The loop's configuration, opaque here.
    pub loop_config: Value,
    /// The folder it works in.
    pub workspace: PathBuf,
    /// The person named the workspace as one that may be lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub throwaway: bool,
    /// What holds until it is resumed with something else.
    #[serde(flatten)]
    pub settings: Settings,
    /// The names of the tools it has.
    pub tools: Vec<String>,
    /// The model as the person named it.
    pub model: String,
    /// The run that delegated this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The cycle of another run that this one goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkedFrom>,
    /// The workspace at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<BlobId>,
}

/// Hashes of code and configuration, by name (`gyrus`, `loop`, `prompts`, `tools`, …).
pub type Pins = BTreeMap<String, String>;

/// Where a child run comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parent {
    /// The delegating run.
    pub run: RunId,
    /// Its effect.
    pub effect: EffectId,
    /// 1 for a child of a run that a person started.
    pub depth: u32,
}

/// Where a fork comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForkedFrom {
    /// The run.
    pub run: RunId,
    /// The last cycle that both share.
    pub cycle: u32,
    /// The hash of that cycle's last entry.
    pub head: Digest,
}

/// What holds for a run until it is resumed with something else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// What it may use.
    pub limits: Limits,
    /// How much it may do without asking.
    pub mode: Mode,
    /// What happens when a person must be asked.
    pub on_ask: OnAsk,
    /// Hashes of everything that decides how the run goes on.
    pub pins: Pins,
}

/// A process took the run up again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResumed {
    /// The process.
    pub process: ProcessIdentity,
    /// What holds from here on.
    #[serde(flatten)]
    pub settings: Settings,
    /// Bytes at the journal's end that a crash left unfinished and that were set aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside_bytes: Option<u64>,
}

/// The unfinished cycle could not be continued by today's code; a fresh one takes over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHandedOver {
    /// Why.
    pub reason: String,
    /// The effects that were done and are told to the fresh cycle.
    pub done: Vec<EffectId>,
}

/// How a run, or a stretch of it, ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub enum Ending {
    /// The model claims that the goal is reached.
    Reached {
        /// The claim.
        claim: Claim,
    },
    /// The goal was not reached, or the loop cannot go on.
    Failed {
        /// Why, for a person.
        reason: String,
        /// Calls that were denied because nobody could be asked.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        denied: Vec<String>,
    },
    /// A limit was reached.
    Limit {
        /// Which, and how much was used: `steps: 10 of 10`.
        what: String,
    },
    /// It waits for a person's answer.
    Waiting {
        /// The effect that asks.
        effect: EffectId,
        /// The question in one sentence.
        question: String,
    },
    /// It waits for a time or a signal.
    Sleeping {
        /// The effect that waits.
        effect: EffectId,
        /// Until when, in UTC milliseconds.
        until_ms: Option<i64>,
        /// For which signal.
        signal: Option<String>,
    },
    /// It repeats itself.
    Stuck {
        /// What repeats, in plain words.
        what: String,
    },
    /// The model could not be reached or refused the key.
    ModelUnreachable {
        /// The last error.
        error: ModelError,
    },
    /// A person stopped it from another surface.
    Stopped {
        /// Who.
        by: Principal,
    },
    /// Interrupted at the terminal.
    Interrupted,
}

impl Ending {
    /// Whether the run is over. Every other ending can be resumed.
    pub fn is_final(&self) -> bool {
        match self {
            Ending::Reached { .. } | Ending::Failed { .. } => true,
            Ending::Limit { .. }
            | Ending::Waiting { .. }
            | Ending::Sleeping { .. }
            | Ending::Stuck { .. }
            | Ending::ModelUnreachable { .. }
            | Ending::Stopped { .. }
            | Ending::Interrupted => false,
        }
    }
}

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
    /// The kernel's own state.
    #[serde(flatten)]
    pub kernel: KernelState,
    /// The claim that ends the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// Why the run cannot go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The workspace, if it may have changed in this cycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<BlobId>,
}

fn nothing_appended(appended: &Appended) -> bool {
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
    /// Replies so far, by purpose.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replies: BTreeMap<Purpose, u64>,
    /// The person's amendments of the goal, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub amendments: Vec<Text>,
    /// Inbox messages that this cycle used up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumed: Vec<String>,
    /// Children started so far, over the whole tree below this run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub children: u32,
    /// Calls denied because nobody could be asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// What the run was resumed with, if that is not what it was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(n: &u32) -> bool {
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

/// A person's message amended the goal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Steered {
    /// The effect that it was recorded with; effect 0 of a cycle is its start.
    pub effect: EffectId,
    /// The messages, in the order they arrived.
    pub messages: Vec<SurfaceMessage>,
}

/// A request to a model is about to leave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelCall {
    /// The effect.
    pub effect: EffectId,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// What for.
    pub purpose: Purpose,
    /// How many replies of this purpose came before.
    pub ordinal: u64,
    /// Who is asked.
    pub model: String,
    /// Of everything that is sent.
    pub prompt: Digest,
    /// System parts, first messages, tools and schema, stored once.
    pub frame: BlobId,
    /// The messages of memory that are sent: from this number …
    pub from: u64,
    /// … up to before this one.
    pub to: u64,
    /// Those of them that no entry held before.
    #[serde(default, skip_serializing_if = "nothing_appended")]
    pub appended: Appended,
    /// Messages sent after memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tail: Vec<Message>,
    /// The most it may write.
    pub max_output_tokens: u64,
    /// Reserved until the reply is settled.
    pub reserved: Charge,
}

/// Tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// Input and output together.
    pub tokens: u64,
    /// Money.
    pub cost: Microdollars,
}

/// What came of a request to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The effect.
    pub effect: EffectId,
    /// Which attempt.
    pub attempt: u32,
    /// What came.
    #[serde(flatten)]
    pub came: Came,
    /// What it is settled at.
    pub charged: Charge,
    /// No usage was reported: `charged` is the reservation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

/// What came of one attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "came", rename_all = "snake_case")]
pub enum Came {
    /// A reply.
    Reply {
        /// The reply.
        reply: Inline<Reply>,
    },
    /// An error.
    Error {
        /// The error.
        #[serde(flatten)]
        error: ModelError,
    },
    /// It was cut off by a crash or a person; it may have been answered and charged.
    CutOff,
}

/// A tool is to be called. Nothing has happened yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCalled {
    /// The effect.
    pub effect: EffectId,
    /// As the loop asked for it.
    pub call: ToolCall,
    /// Of the call.
    pub digest: Digest,
}

/// The gate has judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateVerdict {
    /// The effect.
    pub effect: EffectId,
    /// What was judged, with its paths looked up.
    pub resolved: ResolvedCall,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
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
    /// Words for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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
}

/// A limit is near.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetWarning {
    /// Which, and how much was used.
    pub what: String,
}

/// An organ's or a loop's own fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// The effect.
    pub effect: EffectId,
    /// What was noted.
    pub fact: Value,
}

macro_rules! entries {
    ($($variant:ident($body:ident) = $kind:literal,)*) => {
        /// An entry of a run's journal.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Entry {
            $(
                #[doc = concat!("`", $kind, "`")]
                $variant($body),
            )*
            /// A fact under its own kind and version.
            Noted {
                /// The kind, dotted.
                kind: String,
                /// The version of the fact's form.
                version: u16,
                /// The fact.
                fact: Fact,
            },
        }

        $(
            impl From<$body> for Entry {
                fn from(body: $body) -> Self {
                    Entry::$variant(body)
                }
            }
        )*

        impl Entry {
            /// The kinds that the kernel defines.
            pub const KINDS: &'static [&'static str] = &[$($kind),*];

            /// The entry's kind.
            pub fn kind(&self) -> &str {
                match self {
                    $(Entry::$variant(_) => $kind,)*
                    Entry::Noted { kind, .. } => kind,
                }
            }

            /// The version of the payload's form.
            pub fn version(&self) -> u16 {
                match self {
                    $(Entry::$variant(_) => KERNEL_VERSION,)*
                    Entry::Noted { version, .. } => *version,
                }
            }

            /// The payload as JSON text.
            pub(crate) fn payload(&self) -> Result<Box<serde_json::value::RawValue>, serde_json::Error> {
                match self {
                    $(Entry::$variant(body) => serde_json::value::to_raw_value(body),)*
                    Entry::Noted { fact, .. } => serde_json::value::to_raw_value(fact),
                }
            }

            /// Reads a payload of `kind`.
            pub fn parse(kind: &str, version: u16, payload: &str) -> Result<Self, UnreadableEntry> {
                let unreadable = |error: serde_json::Error| UnreadableEntry {
                    kind: kind.to_owned(),
                    reason: error.to_string(),
                };
                match kind {
                    $($kind if version > KERNEL_VERSION => Err(UnreadableEntry {
                        kind: kind.to_owned(),
                        reason: format!("its version {version} is newer than this gyrus reads"),
                    }),
                    $kind => serde_json::from_str(payload).map(Entry::$variant).map_err(unreadable),)*
                    _ => Ok(Entry::Noted {
                        kind: kind.to_owned(),
                        version,
                        fact: serde_json::from_str(payload).map_err(unreadable)?,
                    }),
                }
            }
        }
    };
}

/// The version of the kernel's own payloads.
pub const KERNEL_VERSION: u16 = 1;

/// An entry that this gyrus cannot make sense of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an entry of kind `{kind}` cannot be read: {reason}")]
pub struct UnreadableEntry {
    /// Its kind.
    pub kind: String,
    /// Why.
    pub reason: String,
}

entries! {
    RunStarted(RunStarted) = "run.started",
    RunResumed(RunResumed) = "run.resumed",
    RunHandedOver(RunHandedOver) = "run.handed_over",
    RunParked(RunParked) = "run.parked",
    RunEnded(RunEnded) = "run.ended",
    CycleEnded(CycleEnded) = "cycle.ended",
    CycleDropped(CycleDropped) = "cycle.dropped",
    Steered(Steered) = "run.steered",
    ModelCall(ModelCall) = "model.call",
    ModelReply(ModelReply) = "model.reply",
    ToolCalled(ToolCalled) = "tool.call",
    GateVerdict(GateVerdict) = "gate.verdict",
    ApprovalAsked(ApprovalAsked) = "approval.asked",
    ApprovalAnswered(ApprovalAnswered) = "approval.answered",
    ToolStarted(ToolStarted) = "tool.started",
    ToolResulted(ToolResulted) = "tool.result",
    ValueTaken(ValueTaken) = "value",
    WaitStarted(WaitStarted) = "wait.started",
    WaitEnded(WaitEnded) = "wait.ended",
    BranchesStarted(BranchesStarted) = "branches.started",
    RaceWon(RaceWon) = "branches.won",
    ChildStarted(ChildStarted) = "child.started",
    ChildEnded(ChildEnded) = "child.ended",
    BudgetWarning(BudgetWarning) = "budget.warning",
}

/// The run stops for now and can be resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunParked {
    /// Why.
    #[serde(flatten)]
    pub ending: Ending,
    /// What was used so far.
    pub spent: Spent,
}

/// The run is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEnded {
    /// How.
    #[serde(flatten)]
    pub ending: Ending,
    /// What was used.
    pub spent: Spent,
}

impl Entry {
    /// The effect that the entry belongs to, if it belongs to one.
    pub fn effect(&self) -> Option<&EffectId> {
        match self {
            Entry::Steered(body) => Some(&body.effect),
            Entry::ModelCall(body) => Some(&body.effect),
            Entry::ModelReply(body) => Some(&body.effect),
            Entry::ToolCalled(body) => Some(&body.effect),
            Entry::GateVerdict(body) => Some(&body.effect),
            Entry::ApprovalAsked(body) => Some(&body.effect),
            Entry::ApprovalAnswered(body) => Some(&body.effect),
            Entry::ToolStarted(body) => Some(&body.effect),
            Entry::ToolResulted(body) => Some(&body.effect),
            Entry::ValueTaken(body) => Some(&body.effect),
            Entry::WaitStarted(body) => Some(&body.effect),
            Entry::WaitEnded(body) => Some(&body.effect),
            Entry::BranchesStarted(body) => Some(&body.effect),
            Entry::RaceWon(body) => Some(&body.effect),
            Entry::ChildStarted(body) => Some(&body.effect),
            Entry::ChildEnded(body) => Some(&body.effect),
            Entry::Noted { fact, .. } => Some(&fact.effect),
            Entry::RunStarted(_)
            | Entry::RunResumed(_)
            | Entry::RunHandedOver(_)
            | Entry::RunParked(_)
            | Entry::RunEnded(_)
            | Entry::CycleEnded(_)
            | Entry::CycleDropped(_)
            | Entry::BudgetWarning(_) => None,
        }
    }

    /// The inbox message that the entry used up.
    pub fn consumed_messages(&self) -> Vec<&str> {
        match self {
            Entry::Steered(body) => body.messages.iter().map(|m| m.id.as_str()).collect(),
            Entry::ApprovalAnswered(body) => body.message.as_deref().into_iter().collect(),
            Entry::WaitEnded(body) => body.message.as_deref().into_iter().collect(),
            _ => Vec::new(),
        }
    }
}

/// Whether a message amends the goal; the others act on the driver or answer an effect.
pub(crate) fn is_steering(body: &MessageBody) -> bool {
    matches!(body, MessageBody::Steer { .. })
}
