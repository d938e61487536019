//! The vocabulary of gyrus: the data that its parts exchange and the traits that its organs
//! implement.
//!
//! The one idea: a kernel that depends on no organ, and organs (models, tools, gate, …) that depend
//! only on this crate, can be joined by a binary in any combination. So this crate does nothing but
//! compare data: no file, no clock, no task, no network. Everything that enters a journal is
//! `serde` data.
//!
//! Reading order: texts and their origins ([`Text`]), questions to a model ([`Prompt`]), tools
//! ([`Tool`]), the decision about their calls ([`Gate`]), and the plans of a loop ([`Plan`]).

mod ids;
mod text;
mod message;
mod model;
mod simplification;
mod plainness;
mod tool;
mod server_request;
mod touch;
mod meaning;
mod schema;
mod repair;
mod typed_tool;
mod calls;
mod field_names;
mod hooks;
mod screen_calls;
mod patch;
mod proposal;
mod process;
mod containment;
mod sandbox_options;
mod sandbox;
mod command;
mod screen;
mod gate;
mod answer;
mod inbox;
mod outcome;
mod budget;
mod intent;
mod change_cycle;
mod thought;
mod memory_buffer;
mod worktree;

use std::{future::Future, pin::Pin};

pub use answer::{Answer, ApprovalScope};
pub use budget::{Limits, Microdollars, Price, Spent};
pub use calls::{
    AppliedChangeset, ApplyChangesetCall, CommandResult, DEFAULT_TIMEOUT_SECONDS, EvaluateCall,
    FINISH, FindToolsCall, FoundTools, GlobCall, JudgeCall, JudgeRuling, MAX_CHANGES,
    MAX_TIMEOUT_SECONDS, PathList, ProposeChangesetCall, ProposedChange, ProposedEdit,
    RankFilesCall, RankedFile, RankedFiles, ReadCall, ReadJournalCall, SearchCall, SearchMode,
    SearchResult, ShellCall, TypedCall, WantedChange, WhyRanked, is_default,
};
pub use change_cycle::{CHANGE_CYCLE, ChangeEvent, ChangeState, IllegalTransition};
pub use command::{
    CommandFact, CommandReading, CommandWord, Does, NamedPaths, SimpleCommand, quoted_word,
    quoted_words,
};
pub use containment::{Bind, Containment, Layer, Network, ResourceLimits};
pub use field_names::{field_tool_name, own_tool_name};
pub use gate::{
    CallPlace, ChangedPath, DEFAULT_AGENT, Decision, FileIdentity, FileState, FollowedSkill, Gate,
    Grant, Judgement, Mode, ModeError, NamedFile, PathChange, ResolvedCall, ResolvedCommand,
    ResolvedPath, ResolvedProgram, Risk, Unresolvable, Verdict, WithheldChange,
};
pub use hooks::{Hook, HookAnswer, HookEvent, HookRun, Hooks, field_mode, field_tool_input};
pub use ids::{BlobId, Digest, EffectId, ParseIdError, RunId, time_ordered_uuid};
pub use inbox::{MessageBody, OnAsk, Principal, SurfaceMessage};
pub use intent::Intent;
pub use meaning::{
    ANY_PART, ArgumentRole, ArgumentValue, MeaningError, MeantCall, ToolAction, ToolMeaning,
};
pub use memory_buffer::{MemoryBuffer, MemoryItem};
pub use message::{Image, Message, Part, Role, ToolCall, ToolResult};
pub use model::{
    CONFIRM, ChildModel, Choice, DEFAULT_IMAGE_TOKENS, Delta, MAX_SILENCE, Model, ModelError,
    Prompt, Purpose, Reply, RouteQuery, Router, ScreenSize, StopReason, SystemPart, ThinkingEffort,
    Usage,
};
pub use outcome::{ActionVerdict, Claim, Evidence, Strength};
pub use patch::{BINARY, EMPTY_BINARY, PatchHeader, git_mode, path_of_header};
pub use plainness::Plainness;
pub use process::{
    AttendedEnd, CapturedOutput, CommandOutcome, CommandSpec, Exit, KeeperError, ProcessAction,
    ProcessReport,
};
pub use proposal::{FileDiff, MADE_FOR, NO_GIT_ID, Proposal};
pub use sandbox::{
    Confine, ConfinementRecord, ConnectionPolicy, Destination, Listeners, Outlet, Relayer,
};
pub use sandbox_options::{AddedFolder, SandboxOptions};
pub use schema::{AnswerSchema, BadAnswerSchema, schema_of};
pub use screen::{
    Aim, AimedElement, Bounds, Dialog, Download, DownloadState, Element, ElementId, ElementState,
    Field, Form, HeldRequest, LookOptions, Picture, Rest, Screen, ScreenError, Scroll, SentControl,
    SentForm, Starts, Tab, View, ViewWithPicture,
};
pub use screen_calls::{
    AnswerDialogCall, AnswerRequestCall, ClickCall, ClickKind, CloseTabCall, DesktopClipboardCall,
    DragCall, DragEnd, ExtractCall, FieldText, FindCall, GoBackCall, HandOverCall, HeldKey,
    HoverCall, OpenApplicationCall, OpenUrlCall, PressKeyCall, ReloadCall, ScreenAction,
    ScreenEffect, ScrollCall, ScrollDirection, ScrollToCall, SelectOptionCall, SelectTextCall,
    SwitchTabCall, TakeScreenshotCall, TypeTextCall, TypedInto, UploadFileCall, WaitCall,
    fields_filled, screen_actions, typed_text,
};
pub use server_request::{AnswerForm, PersonReply, ServerPrompt, ServerQuestion};
pub use simplification::Simplification;
pub use text::{MemoryExtent, Origin, Text};
pub use thought::{Action, ExecutionResult, Observation, Perception, Plan, StepKind, ThoughtStep};
pub use tool::{
    Artifact, CallSource, Cleared, LateTools, Probe, Repeat, Site, Tool, ToolOutput, ToolSpec,
    UnknownSecret,
};
pub use touch::{PathArgument, Reach, Service, Touch, path_in_list};
pub use typed_tool::{Arguments, BuiltIn, TypedTool, WrongArguments};
pub use worktree::{RunWorktree, Worktrees};

/// The return type of an `async` method of an object-safe trait: a boxed future that can move
/// between threads.
pub type BoxedFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
