//! Editors: people start, watch, answer and stop runs from an editor, over the Agent Client Protocol
//! (version 1, JSON-RPC over standard input and output).
//!
//! The one idea: an editor is a surface like any other. A prompt is a run, a session is a chain of
//! runs, and what the editor shows is the projection of their entries. A permission is given by
//! `gyrus_kernel::approvals`, bound to the digest of its card; an answer from elsewhere counts as
//! well, and then the editor's question is withdrawn. A session is not recorded anywhere: it is found
//! again by its first run, so it survives whatever is killed.
//!
//! The messages are read and written here, without a library of the protocol: it is small, and
//! whatever arrives must end in an answer, never in the end of the process.
//!
//! Reading order: `message` (JSON-RPC), `wire` (parameters), `agent` (the methods), `session` (from a
//! prompt to a run), `turn` (a run from its start to its end), `view` (entries as updates),
//! `questions`. `host` is what the program around it does: this crate drives no run itself.

mod message;
mod connection;
mod buffers;
mod host;
mod wire;
mod options;
mod prompt;
mod chains;
mod diffs;
mod view;
mod commands;
mod questions;
mod turn;
mod session;
mod agent;

pub use agent::serve;
pub use buffers::EditorBuffers;
pub use host::{
    AcpHost, EditorServer, EditorServerWay, SessionSettings, SettingChoice, SettingChoices,
    TurnAtWork, TurnControls, TurnRequest, TurnWork,
};
