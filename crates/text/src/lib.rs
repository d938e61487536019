//! Small pieces of text handling that several crates need, each in one place.
//!
//! [`unseen`] is the one table of characters that a reader does not see; [`visible`] and
//! [`readable`] write a text so that everything in it is seen; [`columns`] cuts and wraps what is
//! shown in a terminal; `time` writes times and durations for people.
//!
//! Everything here is a pure function of its arguments. This crate stands on no other crate of the
//! workspace and knows nothing of runs, models or terminals.

mod unseen;
mod shown;
mod columns;
mod time;
mod mistake;

pub use columns::{clip, width, wrap};
pub use mistake::{FileMistake, file_mistake};
pub use shown::{escaped_json, one_line, readable, unseen_when_reading, visible};
pub use time::{ago, parse_duration, span, utc};
pub use unseen::{Unseen, ends_line, is_unseen, unseen, without_unseen};
