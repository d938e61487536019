//! An open desktop.

use gyrus_contract::ScreenError;

use super::{accessible::Accessible, display::Display, nested::Nested, numbers::ElementNumbers};

/// An open desktop.
pub(super) struct Session {
    /// The id that is in every view.
    pub(super) id: String,
    pub(super) display: Display,
    /// The accessibility bus, or the reason in words why there is none.
    pub(super) accessible: Result<Accessible, String>,
    pub(super) numbers: ElementNumbers,
    /// Kept for as long as the desktop is used.
    pub(super) nested: Option<Nested>,
}

/// Returns the error for a desktop that cannot be opened.
pub(super) fn unavailable(reason: impl ToString) -> ScreenError {
    ScreenError::Unavailable {
        reason: reason.to_string(),
    }
}

/// Returns the error for a desktop that broke down.
pub(super) fn lost(reason: impl ToString) -> ScreenError {
    ScreenError::Lost {
        reason: reason.to_string(),
    }
}
