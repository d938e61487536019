//! What a run sees of a screen, and what an input on it would touch.
//!
//! There is one coordinate system: pixels of the frame, from its upper left corner. Whatever
//! scales between it and the screen's own pixels (density, zoom, a window wider than a frame) is
//! the screen's business.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{Boxed, Image, ParseIdError, ids::not};

/// Names an element for as long as a run lasts: the document that it stands in, as letters, and
/// its number there. `b17` is the 17th element that was seen of the second document. A document
/// that is loaded again is another one, so no id is ever used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ElementId {
    /// Counted from 1, over the whole run.
    pub document: u32,
    /// Counted from 1; 0 is the document itself, as in the aim of an answer to its dialog.
    pub number: u32,
}

impl fmt::Display for ElementId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Letters as columns of a spreadsheet have them: a … z, aa, ab …
        let mut letters = Vec::new();
        let mut rest = self.document;
        while rest > 0 {
            rest -= 1;
            letters.push(char::from(b'a' + u8::try_from(rest % 26).unwrap_or(0)));
            rest /= 26;
        }
        letters.reverse();
        write!(f, "{}{}", letters.iter().collect::<String>(), self.number)
    }
}

impl FromStr for ElementId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let wrong = || not(text, "an element of the screen, as `b17`");
        let split = text
            .find(|letter: char| !letter.is_ascii_lowercase())
            .ok_or_else(wrong)?;
        let (letters, digits) = text.split_at(split);
        let document = letters.bytes().try_fold(0_u32, |sum, letter| {
            sum.checked_mul(26)?
                .checked_add(u32::from(letter - b'a') + 1)
        });
        let is_plain = digits == "0" || !digits.starts_with(['0', '+']);
        match (document, digits.parse()) {
            (Some(document @ 1..), Ok(number)) if is_plain => Ok(Self { document, number }),
            _ => Err(wrong()),
        }
    }
}

impl From<ElementId> for String {
    fn from(id: ElementId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for ElementId {
    type Error = ParseIdError;
    fn try_from(text: String) -> Result<Self, ParseIdError> {
        text.parse()
    }
}

/// A rectangle in pixels of the frame. It may lie outside, where scrolling would bring it in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bounds {
    /// The left edge.
    pub x: i32,
    /// The upper edge.
    pub y: i32,
    /// Never negative.
    pub width: i32,
    /// Never negative.
    pub height: i32,
}

impl Bounds {
    /// Whether a point lies inside.
    pub fn contains(&self, x: i32, y: i32) -> bool {
        let within = |at: i32, from: i32, length: i32| at >= from && at - from < length;
        within(x, self.x, self.width) && within(y, self.y, self.height)
    }
}

/// Something that is true of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElementState {
    /// It has the keyboard.
    Focused,
    /// A check box or switch that is on.
    Checked,
    /// A check box that is neither on nor off.
    Mixed,
    /// A chosen option, tab or row.
    Selected,
    /// A toggle button that is down.
    Pressed,
    /// What it controls is shown.
    Expanded,
    /// What it controls is hidden.
    Collapsed,
    /// It takes no input.
    Disabled,
    /// Its value cannot be changed.
    ReadOnly,
    /// A form wants it filled in.
    Required,
    /// A form does not accept its value.
    Invalid,
    /// It opens a menu, a list or a dialog.
    Opens,
    /// It holds a secret: its value never leaves the page, and it is painted over in the frame.
    Masked,
    /// It scrolls by itself and shows only a part.
    Scrolls,
    /// Scrolling would bring it into the frame.
    OutOfView,
    /// Something else lies over its middle.
    Covered,
    /// It can be dragged.
    Draggable,
    /// It takes more than one line, or more than one choice.
    Multiple,
    /// It is being worked on.
    Busy,
    /// It reacts to clicks, though nothing about its role says so.
    Clickable,
}

/// Something on a screen that a person could perceive or use.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Element {
    /// Its name for inputs.
    pub id: ElementId,
    /// The ARIA role, or `text` for plain text.
    pub role: String,
    /// The accessible name, or the text itself; bounded, in the page's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What is typed, chosen or set; bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where a link leads: an address of the web of at most 2,000 characters, in the page's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// What is true of it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub states: BTreeSet<ElementState>,
    /// Where it is; `None` if nothing of it is painted, as of options in a closed list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// How deep it stands in the tree; elements come in reading order, parents first.
    pub depth: u16,
}

/// How far a page can be scrolled, in pixels of the frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scroll {
    /// What lies to the left.
    pub x: u32,
    /// What lies above.
    pub y: u32,
    /// What there is in all.
    pub width: u32,
    /// What there is in all.
    pub height: u32,
}

/// A page that is open.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tab {
    /// Counted from 1, never used twice in a session.
    pub number: u32,
    /// In the page's words.
    pub title: String,
    /// Where it is.
    pub address: String,
    /// It is the one that is looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_active: bool,
}

/// A box of the browser's own that holds up its page.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Dialog {
    /// `alert`, `confirm`, `prompt` or `beforeunload`.
    pub kind: String,
    /// In the page's words; bounded.
    pub message: String,
    /// What a prompt offers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub offered: String,
}

/// A file that a page handed over.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Download {
    /// As the page called it.
    pub name: String,
    /// Where it lies in the workspace, once it is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How far it came.
    pub state: DownloadState,
}

/// How far a download came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DownloadState {
    /// It goes on.
    Running,
    /// It is whole.
    Done,
    /// It was cut off, or refused for its size.
    Failed,
}

/// A request of a page to another place that waits for a yes or a no, and until then is not sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HeldRequest {
    /// Counted from 1, never used twice in a session.
    pub number: u32,
    /// `POST`, `PUT`, `DELETE` …
    pub method: String,
    /// Where it would go: `https://example.com`.
    pub origin: String,
    /// The whole address; bounded.
    pub address: String,
    /// What it would carry, in bytes, as far as the browser says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What it came of, in words: `a form, after click`.
    pub started_by: String,
    /// Its page answers nothing until it is answered, as with a dialog.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blocks: bool,
}

impl fmt::Display for HeldRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            number,
            method,
            origin,
            started_by,
            ..
        } = self;
        write!(f, "request {number}: {method} to {origin}")?;
        match self.bytes {
            Some(bytes) => write!(f, " ({bytes} bytes), by {started_by}"),
            None => write!(f, ", by {started_by}"),
        }
    }
}

/// Why waiting for a screen to come to rest was over.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Rest {
    /// Nothing was going on any more.
    Quiet,
    /// A dialog holds the page up.
    Dialog,
    /// A request that is held for an answer holds the page up.
    Held,
    /// It took too long; this was still going on.
    GaveUp {
        /// In words.
        waiting_for: String,
    },
    /// The page or the browser has gone.
    Gone,
}

/// One look at a screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The session of the screen. One that is lost is followed by another with another id.
    pub session: String,
    /// Where the page is.
    pub address: String,
    /// In the page's words.
    pub title: String,
    /// Of the frame, in pixels, whether or not there is a picture of it.
    pub width: u32,
    /// Of the frame, in pixels.
    pub height: u32,
    /// The picture, if one was wanted and could be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Image>,
    /// The average hash of the picture: 8 by 8 cells, a bit each, lighter than the mean or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<u64>,
    /// How far it can be scrolled.
    pub scroll: Scroll,
    /// Everything, in reading order.
    pub elements: Vec<Element>,
    /// The pages that are open.
    pub tabs: Vec<Tab>,
    /// What holds the page up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<Dialog>,
    /// Files that came, the last ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub downloads: Vec<Download>,
    /// Requests that wait for an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldRequest>,
    /// Why this was the moment to look.
    pub rest: Rest,
    /// How many documents have been counted so far, for [`ElementId`]s.
    pub documents: u32,
    /// What could not be read, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

/// What a look is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// With a picture.
    pub frame: bool,
    /// Documents that the run has counted already, perhaps in a session that is gone.
    pub documents: u32,
}

/// A look with the bytes of its picture, which is not in a store yet.
#[derive(Debug)]
pub struct Seen {
    /// Without [`View::frame`].
    pub view: View,
    /// The picture.
    pub frame: Option<Picture>,
}

/// An encoded picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// In the format that [`Picture::media_type`] names.
    pub bytes: Vec<u8>,
    /// `image/png` or `image/jpeg`.
    pub media_type: &'static str,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
}

/// Why a screen shows nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScreenError {
    /// There is none, and it could not be opened.
    #[error("there is no screen: {reason}")]
    Unavailable {
        /// What is missing, and the way out.
        reason: String,
    },
    /// It does not show what was asked for.
    #[error("{reason}")]
    Unreached {
        /// What, and why not.
        reason: String,
    },
    /// It broke down; the next look opens another.
    #[error("the screen was lost: {reason}")]
    Lost {
        /// What happened.
        reason: String,
    },
}

/// What a run can look at. Inputs are tools; this is the eye only.
pub trait Screen: Send + Sync {
    /// Opens the screen if it is not, waits until it has come to rest, and reads it.
    fn look(&self, wanted: Look) -> Boxed<'_, Result<Seen, ScreenError>>;
}

/// What an input would touch, measured on the page just before it is judged. What is executed is
/// checked against it again: if another element has come to lie there, it is refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Aim {
    /// The address of the document that the input goes to.
    pub address: String,
    /// The origin of that document, `null` if it has none.
    pub origin: String,
    /// The element, if it goes to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<Aimed>,
    /// The form around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// What the input would start, as far as can be told beforehand.
    pub starts: Vec<Starts>,
}

/// An element that an input goes to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Aimed {
    /// Which.
    pub id: ElementId,
    /// Its role.
    pub role: String,
    /// Its name, in the page's words.
    pub name: String,
    /// What is true of it.
    pub states: BTreeSet<ElementState>,
}

/// The form that an element belongs to, or the nearest box around it that holds fields.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Form {
    /// Where it is sent to; the document's own address if it does not say.
    pub action: String,
    /// In lower case; empty if it is no real form.
    pub method: String,
    /// What is in it.
    pub fields: Vec<Field>,
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Field {
    /// Its name for a person, or else its technical one.
    pub name: String,
    /// Its type: `text`, `password`, `email`, `file` …
    pub kind: String,
    /// Something stands in it that was not there when the page came.
    pub filled: bool,
    /// It holds a secret.
    pub secret: bool,
}

/// What an input starts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Starts {
    /// Nothing but what can be seen: focus, scrolling, a pointer that hovers.
    Looking,
    /// Goes to an address by a link.
    Follows {
        /// The whole address.
        address: String,
    },
    /// Goes to an address that was given.
    Opens {
        /// The whole address.
        address: String,
    },
    /// Puts text into a field.
    Types,
    /// Chooses, checks or sets something in a field.
    Chooses,
    /// Sends the form.
    Submits,
    /// Whatever the page does when it is used.
    Acts,
    /// Hands files over to the page.
    Uploads {
        /// Their names.
        names: Vec<String>,
    },
    /// Answers a dialog, which then is the element: its kind the role, its message the name.
    Answers {
        /// Yes or no.
        accepts: bool,
    },
    /// Lets a request go that was held.
    Sends {
        /// Its method.
        method: String,
        /// The whole address.
        address: String,
        /// What it carries, in bytes, as far as the browser says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_elements_read_as_they_are_written() {
        for (document, letters) in [(1, "a"), (26, "z"), (27, "aa"), (702, "zz"), (703, "aaa")] {
            let id = ElementId {
                document,
                number: 17,
            };
            assert_eq!(id.to_string(), format!("{letters}17"));
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for wrong in [
            "",
            "a",
            "7",
            "A7",
            "a00",
            "a+7",
            "a07",
            "a-1",
            "a7b",
            "zzzzzzzzzz1",
            "é7",
        ] {
            assert!(wrong.parse::<ElementId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_rectangle_ends_before_its_edge() {
        let bounds = Bounds {
            x: -5,
            y: 10,
            width: 10,
            height: 1,
        };
        assert!(bounds.contains(-5, 10) && bounds.contains(4, 10));
        assert!(!bounds.contains(5, 10) && !bounds.contains(0, 11));
    }
}
