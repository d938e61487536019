//! The error of a command that was not begun.

/// Nothing was done: the arguments or this machine have to change first. Exit code 2.
#[derive(Debug)]
pub(crate) struct CannotStart(pub(crate) String);

impl std::fmt::Display for CannotStart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotStart {}
