//! Learned procedures of this program: what runs teach, what is kept, and which one a command
//! replays.
//!
//! `recording` reads a run's journal, `keeping` is the ledger, `matching` chooses for a command,
//! `promoting` asks a person, `words` says what a procedure does, `hints` helps where none
//! replays, `teaching` watches a person.
//! Learning itself is a pure function of the crate `gyrus-procedures`, replaying is a loop.

mod recording;
mod keeping;
mod matching;
mod promoting;
mod words;
mod hints;
mod teaching;

pub(crate) use self::{
    hints::hint,
    keeping::{after_run, change, keep, kept, named},
    matching::{CommandPlace, Replay, for_command, is_replay, refusing_flag, replayed_by},
    promoting::{ask, promote},
    recording::{origin, recorded},
    teaching::{Teaching, TeachingParts},
    words::{command, lines},
};
