//! Whoever hears of a person's inputs before they are carried out, to learn from them. That text is
//! typed is told, but not which: what it did can be looked at, as far as it is no secret.

use gyrus_contract::BoxedFuture;

/// An input of a person.
#[derive(Debug, Clone, PartialEq)]
pub enum PersonInput {
    /// Presses the left button, at these fractions of the picture's width and height.
    Presses {
        /// From the left.
        x: f64,
        /// From the top.
        y: f64,
    },
    /// Presses it again at the same place, soon enough to be one of several clicks.
    PressesAgain {
        /// The number of clicks, from 2.
        count: u32,
    },
    /// Lets the left button go, at these fractions of the picture's width and height.
    Releases {
        /// From the left.
        x: f64,
        /// From the top.
        y: f64,
    },
    /// Presses another button than the left one.
    PressesAnother,
    /// Types text, where the keyboard is.
    Types,
    /// Strikes a key that is not a letter, like `Enter` or `Control+a`.
    Strikes { key: String },
    /// Goes to an address.
    GoesTo {
        /// The address, as typed.
        address: String,
    },
    /// Goes back, or loads the page again.
    GoesBack,
    /// Goes to another tab or window by the list of them, or closes one.
    ChangesTab,
    /// Answers a dialog.
    Answers {
        /// Whether with yes.
        accepts: bool,
    },
    /// Gives the screen back.
    GivesBack,
}

/// Hears of a person's inputs.
pub trait InputWatcher: Send + Sync {
    /// Takes the next input, which is carried out when this has ended.
    fn before(&self, input: PersonInput) -> BoxedFuture<'_, ()>;
}
