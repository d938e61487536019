//! Learned procedures: how a task was done once, so that it can be done again without a model.
//!
//! The one idea: a procedure is a list of actions with holes. The holes (*slots*) are filled from
//! the words of a command that equals the learned one everywhere else; what each action touches is
//! described by *anchors*, and a page must show exactly one element that fits one of them, or the
//! procedure does not go on. It never guesses: everything uncertain is handed over to a model.
//!
//! This crate is pure: it reads no journal, looks at no screen and stores nothing. A loop replays
//! procedures, the program learns and keeps them. Reading order: `procedure` (the data),
//! `template` (commands and slots), `anchor` (describing and finding an element), `learn` (from
//! what a run did to a procedure).

mod procedure;
mod template;
mod anchor;
mod learn;

pub use anchor::{Anchor, AnchorMiss};
pub use learn::{NotLearned, RecordedRun, RecordedStep, learn};
pub use procedure::{Expectation, LearnedPlace, Procedure, ProcedureStep};
pub use template::{Slot, SlotShape, SlotValues, Template, TemplatePart};
