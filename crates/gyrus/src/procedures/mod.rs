//! Learned procedures of this program: what runs teach, what is kept, and which one a command
//! replays.
//!
//! `recording` reads a run's journal, `ledger` holds what is kept, `keeping` adds to it, `matching`
//! chooses for a command, `promoting` asks a person, `words` says what a procedure does, `hints`
//! helps where none replays, `mirror` writes files for people, `teaching` watches a person.
//! Learning itself is a pure function of the crate `gyrus-procedures`, replaying is a loop.

mod ledger;
mod replayed;
mod recording;
mod words;
mod keeping;
mod matching;
mod promoting;
mod hints;
mod mirror;
mod teaching;

pub(crate) use self::{
    hints::hint,
    keeping::{ProcedureUpdate, after_run, keep},
    ledger::{change, kept, named},
    matching::{CommandPlace, ProcedureReplay, for_command, refusing_flag},
    mirror::mirror,
    promoting::{ask, promote},
    recording::{origin, recorded},
    replayed::{is_replay, replayed_by},
    teaching::{TeachingParts, TeachingSession},
    words::{command, lines, numbered},
};
