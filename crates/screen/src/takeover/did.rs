//! An input of a person, as the page sends it.

use serde::Deserialize;

use super::PersonInput;

/// An input of a person. Positions are fractions of the picture's width and height.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum Did {
    Mouse(Mouse),
    Wheel {
        x: f64,
        y: f64,
        dx: f64,
        dy: f64,
        held: u32,
    },
    /// A key like `Control+a`.
    Key {
        key: String,
    },
    Text {
        text: String,
    },
    Go {
        address: String,
    },
    Back,
    Reload,
    Tab {
        number: u32,
    },
    Close {
        number: u32,
    },
    Dialog {
        accept: bool,
        #[serde(default)]
        text: String,
        /// The password of a login, whose user name is in `text`.
        #[serde(default)]
        password: String,
    },
}

#[derive(Deserialize)]
pub(crate) struct Mouse {
    pub(crate) kind: MouseKind,
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// The button: `left`, `middle`, `right` or `none`.
    pub(crate) button: String,
    /// Pressed buttons, as the DOM's bits.
    pub(crate) buttons: u32,
    /// Number of consecutive clicks.
    pub(crate) count: u32,
    /// Pressed modifiers, as the protocol's bits.
    pub(crate) held: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum MouseKind {
    #[serde(rename = "move")]
    Moved,
    #[serde(rename = "down")]
    Pressed,
    #[serde(rename = "up")]
    Released,
}

impl Did {
    /// Returns the input as watchers receive it, if it can matter to the page.
    pub(super) fn seen(&self) -> Option<PersonInput> {
        match self {
            Did::Mouse(mouse) => {
                let (x, y) = (mouse.x, mouse.y);
                let seen = match (mouse.kind, mouse.count) {
                    (MouseKind::Moved, _) => return None,
                    (MouseKind::Released, _) => PersonInput::Releases { x, y },
                    (MouseKind::Pressed, 0 | 1) => PersonInput::Presses { x, y },
                    (MouseKind::Pressed, count) => PersonInput::PressesAgain { count },
                };
                (mouse.button == "left").then_some(seen)
            }
            Did::Key { key } => Some(PersonInput::Strikes { key: key.clone() }),
            Did::Go { address } => Some(PersonInput::GoesTo {
                address: address.clone(),
            }),
            Did::Back | Did::Reload => Some(PersonInput::GoesBack),
            Did::Tab { .. } | Did::Close { .. } => Some(PersonInput::ChangesTab),
            Did::Dialog { accept, .. } => Some(PersonInput::Answers { accepts: *accept }),
            Did::Text { .. } | Did::Wheel { .. } => None,
        }
    }
}
