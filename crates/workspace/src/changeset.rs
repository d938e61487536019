//! Several files changed together: all of them, or none.
//!
//! [`apply()`] looks, prepares and moves; the [`Applied`] that it returns can still be taken back,
//! and is when it is dropped. Whatever cuts it off, whoever comes next finds in [`HOME`] what was about to
//! be done, and takes everything back. See `docs/changeset.md` for what a crash leaves.

mod apply;
mod intent;
mod prepare;
#[cfg(test)]
mod tests;

pub use self::{
    apply::{After, Applied, ApplyError, EXECUTE, FileChange, already, apply, recover},
    intent::HOME,
    prepare::{ancestors, look, parents},
};
