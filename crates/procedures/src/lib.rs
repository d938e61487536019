//! Learned procedures: how a task was done once, so that it can be done again without a model.
//!
//! The one idea: a procedure is a list of actions with holes. The holes (*slots*) are filled from
//! the words of a command that equals the learned one everywhere else; what each action touches is
//! described by *anchors*, and a page must show exactly one element that fits one of them, or the
//! procedure does not go on. It never guesses: everything uncertain is handed over to a model.
//!
//! This crate is pure: it reads no journal, looks at no screen and stores nothing. A loop replays
//! procedures, the program learns and keeps them. Reading order: `procedure` (the data),
//! `template` and `shape` (commands and slots), `page`, `address` and `desktop` (what a view says),
//! `anchor` (describing and finding an element), `expectation` and
//! `form` (what must hold), `words` (names for
//! the same thing), `learn` with `recorded`, `find_slots`, `kept`, `on_screen` and `folder` (from
//! what a run did to a procedure).

mod procedure;
mod slot;
mod template;
mod shape;
mod words;
mod page;
mod address;
mod anchor;
mod sight;
mod desktop;
mod form;
mod expectation;
mod recorded;
mod find_slots;
mod kept;
mod on_screen;
mod folder;
mod learn;

pub use address::origin_of;
pub use anchor::{Anchor, AnchorMiss};
pub use desktop::in_use;
pub use expectation::{Expectation, FieldValue, LearnedField, LearnedWindow};
pub use form::{AtPress, LearnedControl, RecordedForm};
pub use learn::learn;
pub use procedure::{LearnedPlace, Procedure, ProcedureStep};
pub use recorded::{NotLearned, RecordedRun, RecordedStep};
pub use sight::ReplaySight;
pub use slot::{Slot, SlotShape, SlotValues};
pub use template::{SlotTemplate, TemplatePart};
