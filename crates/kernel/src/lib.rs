//! Runs: each is one attempt at one goal, as an ordered list of journal entries.
//!
//! The one idea: a loop is plain `async` Rust that touches the world only through its [`Run`], and
//! every touch is an *effect* with an intent before and an outcome after it in the journal. So a
//! loop is deterministic given its journal, and resuming, replaying and forking are the same act:
//! running it again with what is recorded.
//!
//! This crate must never know which model answers, which tool is called or which loop thinks:
//! those arrive as [`Organs`]. It never prints.
//!
//! Reading order: [`CognitiveLoop`], [`Run`], then `driver` for the sequence of cycles and
//! `effects/call` for recording, clearing and settling one effect.

mod cognitive;
mod run;
mod driver;
mod effects;
mod core;
mod recorded;
mod abandoned;
mod position;
mod error;
mod runs;
mod register;
mod giving_up;
mod kernel;
mod start;
mod replay;
mod prompt;
mod fork;
mod entry;
mod inline;
mod stop;
mod unjudged;
mod unknown;
mod controls;
mod takeover;
mod inbox;
mod select;
mod settling;
mod standing;
mod standing_change;
pub mod approvals;
pub mod grants;
mod before;
mod accounts;
mod clock;
mod late_tools;
mod run_tools;
mod links;
mod mandate;
mod live;
mod log;
mod single_model;

pub mod latch;
pub mod redact;
mod typed;
mod contents;
mod folder;
pub mod undo;
mod withheld_changes;
#[cfg(test)]
mod sim;

pub use accounts::{OUTPUT_FLOOR, WARN_AT_PERCENT};
pub use approvals::QuestionId;
pub use clock::{now_ms, wait_until};
pub use cognitive::{CognitiveLoop, ErasedLoop, HandOverReport, InterruptedCycle, LoopFactory};
pub use controls::Controls;
pub use driver::{DrivableRun, DriveResult};
pub use effects::ask::{LONGEST_DELAY_MS, MAX_ATTEMPTS, amendment_message};
pub use effects::branches::Branch;
pub use effects::call::ExpectedAim;
pub use effects::delegate::{ChildOptions, ChildResult, Delegation, MAX_CHILDREN, MAX_DEPTH};
pub use effects::foresee::Foreseen;
pub use effects::layers::layer_of;
pub use effects::mandate::{MandateReview, MandateSubject};
pub use effects::request::{ModelQuestion, ToolOffer};
pub use effects::together::DeniedTogether;
pub use entry::{
    APPROVAL_REFUSED, ApprovalAnswered, ApprovalAsked, ApprovalCard, ApprovalRefused,
    AttemptResult, BranchesStarted, BudgetWarning, CallEnd, Charge, ChildEnded, ChildStarted,
    CodePins, ConcurrencyForm, ConnectionPermit, CycleDropped, CycleEnded, Ending, Entry, Fact,
    ForkedFrom, GateVerdict, GoalAmendment, HookState, KernelState, Mandate, MandateSet,
    MandatedCall, MessagesAppended, ModelCall, ModelReply, ParentRun, RaceWon, ReadValue, RunEnded,
    RunHandedOver, RunParked, RunResumed, RunSettings, RunStarted, ScreenViewed, Snapshot,
    TakeoverEnded, TakeoverStarted, Times, ToolCalled, ToolResulted, ToolStarted, ToolsAdded,
    UnknownInput, UnreadableEntry, Validity, ValueTaken, WaitEnded, WaitStarted, WorkspaceRecorded,
};
pub use error::KernelError;
pub use folder::RecordedFolder;
pub use fork::{DrivableFork, ForkInto, ForkedFiles};
pub use giving_up::give_up;
pub use inline::{BadBlob, INLINE_LIMIT, Inline};
pub use kernel::{
    Attachment, FolderTravels, Kernel, NewRun, Organs, QUESTIONS_LAST, ResumeChanges,
};
#[cfg(feature = "fuzz")]
pub use live::shown;
pub use live::{Live, LiveEvent, LivePiece};
pub use log::parse;
pub use prompt::prompt_of;
pub use register::{BegunBy, Register, RegisterLine};
pub use replay::ReplayResult;
pub use run::Run;
pub use runs::{
    RUNS, WorkspaceMoved, check_not_record, check_workspace, entries, family, is_record, last_page,
    log_name, record_summary, runs, summary, workspace,
};
pub use select::{FindRunError, find_run, newest_run_in};
pub use settling::has_unfinished_calls;
pub use single_model::{SingleModel, UnreachableModel};
pub use standing::{RunState, StandingError, StandingRun, spent};
pub use standing_change::StandingChange;
pub use stop::{Divergence, EffectError, Stop};
pub use takeover::{Takeover, Takeovers};
pub use withheld_changes::{WithheldChanges, withheld_changes};
