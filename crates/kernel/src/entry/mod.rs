//! The entries that a run's fold needs: a closed set, one struct for each kind.
//!
//! Facts that organs record (`thought`, `reflection`, …) are [`Fact`]s under their own kind and
//! version; the kernel stores them and never looks inside. Adding a kind here is a change of the
//! journal's format.

mod run;
mod cycle;
mod model;
mod call;
mod mandate;
mod other;

use gyrus_contract::EffectId;

pub use call::{
    APPROVAL_REFUSED, ApprovalAnswered, ApprovalAsked, ApprovalCard, ApprovalRefused, CallEnd,
    GateVerdict, ToolCalled, ToolResulted, ToolStarted, Validity,
};
pub use cycle::{ConnectionPermit, CycleDropped, CycleEnded, HookState, KernelState, UnknownInput};
pub use mandate::{Mandate, MandateSet, MandatedCall, Times};
pub use model::{AttemptResult, Charge, MessagesAppended, ModelCall, ModelReply};
pub use other::{
    BranchesStarted, ChildEnded, ChildStarted, ConcurrencyForm, Fact, RaceWon, ReadValue,
    ScreenViewed, TakeoverEnded, TakeoverStarted, ValueTaken, WaitEnded, WaitStarted,
};
pub(crate) use run::is_steering;
pub use run::{
    BudgetWarning, CodePins, Ending, ForkedFrom, GoalAmendment, ParentRun, RunEnded, RunHandedOver,
    RunParked, RunResumed, RunSettings, RunStarted, Snapshot, ToolsAdded, WorkspaceRecorded,
};

/// Defines the entries: those of the run as a whole, and those that belong to an effect.
macro_rules! entries {
    (
        run { $($of_run:ident($run_body:ident) = $run_kind:literal,)* }
        effect { $($of_effect:ident($effect_body:ident) = $effect_kind:literal,)* }
    ) => {
        entries! {
            $($of_run($run_body) = $run_kind,)*
            $($of_effect($effect_body) = $effect_kind,)*
        }

        impl Entry {
            /// Returns the effect that the entry belongs to, if it belongs to one.
            pub fn effect(&self) -> Option<&EffectId> {
                match self {
                    $(Entry::$of_effect(body) => Some(&body.effect),)*
                    Entry::Noted { fact, .. } => Some(&fact.effect),
                    $(Entry::$of_run(_) => None,)*
                }
            }
        }
    };
    ($($variant:ident($body:ident) = $kind:literal,)*) => {
        /// An entry of a run's journal.
        #[derive(Debug, Clone, PartialEq)]
        #[expect(clippy::large_enum_variant, reason = "entries are read and written one by one")]
        pub enum Entry {
            $(
                #[doc = concat!("`", $kind, "`")]
                $variant($body),
            )*
            /// A fact under its own kind and version.
            Noted {
                /// The kind of the fact, dotted.
                kind: String,
                /// The version of the fact's format.
                version: u16,
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

            /// Returns the entry's kind.
            pub fn kind(&self) -> &str {
                match self {
                    $(Entry::$variant(_) => $kind,)*
                    Entry::Noted { kind, .. } => kind,
                }
            }

            /// Returns the version of the payload's format.
            pub fn version(&self) -> u16 {
                match self {
                    $(Entry::$variant(_) => KERNEL_VERSION,)*
                    Entry::Noted { version, .. } => *version,
                }
            }

            pub(crate) fn payload(&self) -> Result<Box<serde_json::value::RawValue>, serde_json::Error> {
                match self {
                    $(Entry::$variant(body) => serde_json::value::to_raw_value(body),)*
                    Entry::Noted { fact, .. } => serde_json::value::to_raw_value(fact),
                }
            }

            /// Parses a payload of `kind`.
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
pub(crate) const KERNEL_VERSION: u16 = 1;

/// An entry that this version of gyrus cannot read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an entry of kind `{kind}` cannot be read: {reason}")]
pub struct UnreadableEntry {
    pub kind: String,
    pub reason: String,
}

entries! {
    run {
        RunStarted(RunStarted) = "run.started",
        WorkspaceRecorded(WorkspaceRecorded) = "workspace.recorded",
        RunResumed(RunResumed) = "run.resumed",
        RunHandedOver(RunHandedOver) = "run.handed_over",
        RunParked(RunParked) = "run.parked",
        RunEnded(RunEnded) = "run.ended",
        CycleEnded(CycleEnded) = "cycle.ended",
        CycleDropped(CycleDropped) = "cycle.dropped",
        BudgetWarning(BudgetWarning) = "budget.warning",
        TakeoverStarted(TakeoverStarted) = "takeover.started",
        TakeoverEnded(TakeoverEnded) = "takeover.ended",
    }
    effect {
        Steered(GoalAmendment) = "run.steered",
        ToolsAdded(ToolsAdded) = "tools.added",
        ModelCall(ModelCall) = "model.call",
        ModelReply(ModelReply) = "model.reply",
        ToolCalled(ToolCalled) = "tool.call",
        GateVerdict(GateVerdict) = "gate.verdict",
        ApprovalAsked(ApprovalAsked) = "approval.asked",
        ApprovalAnswered(ApprovalAnswered) = "approval.answered",
        ToolStarted(ToolStarted) = "tool.started",
        ToolResulted(ToolResulted) = "tool.result",
        ValueTaken(ValueTaken) = "value",
        ScreenViewed(ScreenViewed) = "screen.view",
        WaitStarted(WaitStarted) = "wait.started",
        WaitEnded(WaitEnded) = "wait.ended",
        BranchesStarted(BranchesStarted) = "branches.started",
        RaceWon(RaceWon) = "branches.won",
        ChildStarted(ChildStarted) = "child.started",
        ChildEnded(ChildEnded) = "child.ended",
        MandateSet(MandateSet) = "mandate.set",
    }
}

impl Entry {
    /// Returns the ids of the inbox messages that the entry consumed.
    pub fn consumed_messages(&self) -> Vec<&str> {
        match self {
            Entry::Steered(body) => body.messages.iter().map(|m| m.id.as_str()).collect(),
            Entry::ApprovalAnswered(body) => body.message.as_deref().into_iter().collect(),
            Entry::WaitEnded(body) => body.message.as_deref().into_iter().collect(),
            _ => Vec::new(),
        }
    }
}
