//! Tools of servers that speak the Model Context Protocol, over a pipe or over HTTP.
//!
//! The one idea: a server is somebody else's program. What it says of its tools is untrusted text,
//! cleaned, bounded and pinned when a run begins; what it says of their harmlessness counts for
//! nothing; what it answers is bounded; and neither its slowness nor its death stops a run.
//!
//! Not here: whether a call may happen (the gate), how processes are kept and confined (the
//! program hands in [`RunServer`]), and which of the configured servers a person allowed.

mod definition;
mod setup;
mod section;
mod project;
mod bounded;
mod process;
mod http;
mod ear;
mod connection;
mod result;
mod server;
mod tool;

pub use definition::LeftOut;
pub use project::{PROJECT_FILE, ProjectFileError, ProjectServers};
pub use section::{ServerSection, ServerValue, server_value};
pub use server::{Server, Servers, State};
pub use setup::{Picture, ReadPicture, RunServer, Setup, Way, is_server_name};
