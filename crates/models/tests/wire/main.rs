//! The truth about the wire: every client against a server that speaks its protocol, good and
//! bad, on a real socket.
//!
//! `dialect` says what a protocol must bring; each has one file that brings it and one line in
//! [`dialects`]. The cases (`requests`, `streams`, `refusals`) are the same for all of them.

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

mod refusals;
mod requests;
mod screen;
mod streams;

use dialect::Dialect;

/// Every protocol that is spoken.
fn dialects() -> Vec<&'static dyn Dialect> {
    vec![
        &anthropic::Messages,
        &chat::Chat,
        &responses::Responses,
        &gemini::Gemini,
        &ollama::Ollama,
    ]
}
