//! Tools, resources and prompts of servers that speak the Model Context Protocol, over a pipe or over
//! HTTP.
//!
//! The one idea: a server is an untrusted program. Its tool definitions are untrusted text,
//! cleaned, bounded and pinned when a run begins; its claims that they are harmless are ignored;
//! its answers are bounded; and neither its slowness nor its end stops a run.
//!
//! Not here: whether a call may happen (the gate), how processes are kept and confined (the
//! program hands in [`RunServer`]), and which of the configured servers a person allowed.

mod definition;
mod returns;
mod setup;
mod section;
mod project;
mod bounded;
mod login;
mod process;
mod http;
mod asking;
mod subscriber;
mod pages;
mod connection;
mod result;
mod resources;
mod prompts;
mod server;
mod tool;
mod find;
mod servers;

pub use asking::RequestPolicy;
pub use definition::LeftOut;
pub use login::{LoginAttempt, LoginClient, ServerLogin};
pub use process::{PipedProgram, StartedProgram, how_it_ended, start_piped};
pub use project::{
    PROJECT_FILE, ProjectFileError, ProjectServers, fitted_name, own_servers, server_section,
};
pub use prompts::OfferedPrompt;
pub use section::{ServerSection, ServerValue, server_value};
pub use server::{McpServer, Offers, ServerState};
pub use servers::Servers;
pub use setup::{
    EndOfStart, JudgeStart, PictureFormat, ReadPicture, RunServer, ServerSetup, ServerWay,
    StartedServer, is_server_name,
};
