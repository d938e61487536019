//! Tests of the wire: every client against a server with its protocol, good and bad, on a real
//! socket.
//!
//! `dialect` defines the properties of a protocol; each protocol has one file with them and one
//! line in [`dialects`]. The cases (`requests`, `streams`, `refusals`) are the same for all of
//! them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod check;
mod dialect;
mod prompts;
mod server;

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;

mod cases;
mod refusals;
mod requests;
mod screen;
mod streams;

use dialect::Dialect;

/// Returns all protocols.
fn dialects() -> Vec<&'static dyn Dialect> {
    vec![
        &anthropic::Messages,
        &chat::Chat,
        &responses::Responses,
        &gemini::Gemini,
        &ollama::Ollama,
    ]
}
