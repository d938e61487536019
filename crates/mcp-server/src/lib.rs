//! Runs for clients that speak the Model Context Protocol: other agents and editors.
//!
//! The one idea: such a client is a surface like any other. Its tools put commands into the queue and
//! messages into inboxes, and show the projection of a run's entries. What sets it apart is that a
//! model speaks through it. So its goals and amendments are not a person's word: they vouch for no
//! address and expose the run. And it answers approvals only if a person made it an approver; if it
//! can then show a question to its own person, the question goes there, and the model has no tool for
//! it.
//!
//! Reading order: `host` (the program around it), `tools` (what there is, and what each takes),
//! `service` (the protocol), `work` (starting, amending and ending runs), `following` (a run until
//! something new is to be told), `report` (what is told), `asking` (questions), `resources` (runs to
//! read), `http` (the service behind a server's guard).
//!
//! The protocol is that of <https://modelcontextprotocol.io/specification>, versions 2024-11-05 to
//! 2026-07-28, as the library `rmcp` has it.

mod host;
mod tools;
mod report;
mod following;
mod asking;
mod work;
mod resources;
mod service;
mod http;
mod stdio;

pub use self::{
    host::{Identify, McpCallers, McpHost},
    http::http_service,
    service::McpService,
    stdio::{McpServeError, serve_stdio},
};
