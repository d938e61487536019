//! The parts of gyrus put together, for the program and for embedders alike.

mod home;
mod guidelines;
pub mod sandbox;
pub mod sandbox_folders;
mod programs;
mod run_screen;
mod assembly;
mod llm_client;
mod agent_context;
mod agent_runtime;
mod agents;
mod no_model;
mod worktrees;
mod error;

pub use agent_context::{
    AgentContext, ContextLimits, ContextRecord, ContextWindow, RecordKind, TokenLedger,
};
pub use agent_runtime::{AgentLoop, AgentRuntime, SimpleCognitiveLoop, init};
pub use agents::CognitiveAgent;
pub use assembly::{
    Confinement, KernelParts, bare_gate, built_in_tools, gate, live_gate, memory_tools, organs,
    workspace,
};
pub use error::RuntimeError;
pub use guidelines::{GuidelineTrust, Guidelines};
pub use home::Home;
pub use llm_client::{LlmClient, StoredPictures};
pub use no_model::NoModel;
pub use programs::keep_out_of_workspaces;
pub use run_screen::RunScreen;
pub use worktrees::{GitWorktrees, stands_for};
