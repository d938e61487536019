//! A model that plays tasks perfectly: a provider on loopback that speaks a real one's wire.
//!
//! The one idea: it sees the bytes of a request and nothing else. Of each task it knows the goal
//! and *what* a person would do ("click the button Send"), never *where*: it must find the target
//! in the screen's text as the prompt renders it. It keeps nothing between requests but counts for
//! the report; where it is in a task stands in the memo, as with any model.
//!
//! Reading order: `task` (what it knows), `prompt` (what it sees), `play` (what it does), `calls`
//! (what it does without a screen), `wire` (how it says so), `server`. It stands on no crate of ours:
//! what it thinks of a prompt cannot come from whoever wrote the prompt.

mod task;
mod miniwob;
mod prompt;
mod picture;
mod play;
mod calls;
mod desktop;
mod tokens;
mod wire;
mod server;

pub use play::Figures;
pub use server::Player;
pub use task::{Step, Task, read};
