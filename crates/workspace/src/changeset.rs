//! Atomic changes of several files.
//!
//! [`apply()`] checks, prepares and moves; the [`UndoableChangeset`] that it returns can still be undone, and
//! is when it is dropped. After an interruption, the next process finds the intent in [`HOME`] and
//! undoes everything. See `docs/changeset.md` for the state after a crash.

mod change;
mod apply;
mod intent;
mod prepare;
#[cfg(test)]
mod tests;

pub use self::{
    apply::{UndoableChangeset, already, apply, recover},
    change::{After, ApplyError, EXECUTE, FileChange},
    intent::HOME,
    prepare::{ancestors, look, parents},
};
