//! Whoever hears of a person's inputs on a page before they are carried out, to learn from them. Typed
//! text is not told: what it did can be looked at, as far as it is no secret.

use gyrus_contract::BoxedFuture;

/// An input of a person.
#[derive(Debug, Clone, PartialEq)]
pub enum PersonInput {
    /// Presses the left button, at these fractions of the picture's width and height.
    Presses {
        /// Distance from the left edge.
        x: f64,
        /// Distance from the top edge.
        y: f64,
    },
    /// Presses the left button again at the same place, soon enough to be one of several clicks.
    PressesAgain {
        /// The number of clicks, from 2.
        count: u32,
    },
    /// Releases the left button, at these fractions of the picture's width and height.
    Releases {
        /// Distance from the left edge.
        x: f64,
        /// Distance from the top edge.
        y: f64,
    },
    /// Strikes a key that is not a letter, like `Enter` or `Control+a`.
    Strikes { key: String },
    /// Goes to an address.
    GoesTo {
        /// The address, as typed.
        address: String,
    },
    /// Goes back, or loads the page again.
    GoesBack,
    /// Switches to another tab or window in the list, or closes one.
    ChangesTab,
    /// Answers a dialog.
    Answers {
        /// Whether the dialog is accepted.
        accepts: bool,
    },
    /// Returns control of the screen to the run.
    GivesBack,
}

/// Hears of a person's inputs.
pub trait InputWatcher: Send + Sync {
    /// Receives the next input, which is carried out after this returns.
    fn before(&self, input: PersonInput) -> BoxedFuture<'_, ()>;
}
