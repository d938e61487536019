//! The view of a screen that a run gets, and the aim of an input on it.
//!
//! There is one coordinate system: pixels of the frame, from its upper left corner. The screen
//! converts between it and its own pixels (density, zoom, a window wider than a frame).

use std::{collections::BTreeSet, fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{BoxedFuture, ConnectionPolicy, Image, ParseIdError, ids::not};

/// Identifies an element for the whole run: its document, as letters, and its number in it. `b17`
/// is the 17th element that was seen of the second document. A document that is loaded again is
/// another one, so no id is ever used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElementId {
    /// The number of the document, counted from 1 over the whole run.
    pub document: u32,
    /// The number of the element, counted from 1; 0 is the document itself, as in the aim of an
    /// answer to its dialog.
    pub number: u32,
}

impl fmt::Display for ElementId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Letters as for the columns of a spreadsheet: a … z, aa, ab …
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

crate::stored_as_text!(ElementId);

/// A rectangle in pixels of the frame. It may lie outside, where scrolling would bring it in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bounds {
    /// The left edge.
    pub x: i32,
    /// The upper edge.
    pub y: i32,
    /// The width, never negative.
    pub width: i32,
    /// The height, never negative.
    pub height: i32,
}

impl Bounds {
    /// Whether a point lies inside.
    pub fn contains(&self, x: i32, y: i32) -> bool {
        let within = |at: i32, from: i32, length: i32| at >= from && at - from < length;
        within(x, self.x, self.width) && within(y, self.y, self.height)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElementState {
    /// Has the keyboard focus.
    Focused,
    /// A check box or switch that is on.
    Checked,
    /// A check box that is neither on nor off.
    Mixed,
    /// A chosen option, tab or row.
    Selected,
    /// A toggle button that is down.
    Pressed,
    /// The part that the element controls is shown.
    Expanded,
    /// The part that the element controls is hidden.
    Collapsed,
    /// Accepts no input.
    Disabled,
    /// Its value cannot be changed.
    ReadOnly,
    /// Must be filled in for its form.
    Required,
    /// Has a value that its form does not accept.
    Invalid,
    /// Opens a menu, a list or a dialog.
    Opens,
    /// Holds a secret, which never leaves the page and is painted over in the frame.
    Masked,
    /// Scrolls by itself and shows only a part of its content.
    Scrolls,
    /// Lies outside the frame, where scrolling would bring it in.
    OutOfView,
    /// Is covered by something else at its middle.
    Covered,
    /// Can be dragged.
    Draggable,
    /// Accepts more than one line, or more than one choice.
    Multiple,
    /// Is loading or being updated.
    Busy,
    /// Reacts to clicks, though its role does not say so.
    Clickable,
    /// Accepts things that are dragged onto it.
    Droppable,
}

/// A part of a screen that a person could perceive or use.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Element {
    /// The id that inputs refer to.
    pub id: ElementId,
    /// The ARIA role, or `text` for plain text.
    pub role: String,
    /// The accessible name, or the text itself; bounded, untrusted text of the page.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The value that is typed, chosen or set; bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The target of a link: a web address of at most 2,000 characters, untrusted text of the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub states: BTreeSet<ElementState>,
    /// The position; `None` if nothing of it is painted, as for the options of a closed list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// The depth in the tree; elements come in reading order, parents first.
    pub depth: u16,
}

/// The distances by which a page can be scrolled, in pixels of the frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scroll {
    /// The width of the part to the left.
    pub x: u32,
    /// The height of the part above.
    pub y: u32,
    /// The width of the whole page.
    pub width: u32,
    /// The height of the whole page.
    pub height: u32,
}

/// An open page.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tab {
    /// The number, counted from 1 and never used twice in a session.
    pub number: u32,
    /// The title; untrusted text of the page.
    pub title: String,
    /// The address of the page.
    pub address: String,
    /// Whether the page is the one that views show.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_active: bool,
}

/// A dialog of the browser that blocks its page.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Dialog {
    /// `alert`, `confirm`, `prompt` or `beforeunload`; `login` if a site asks the browser for one.
    pub kind: String,
    /// The message; bounded, untrusted text of the page.
    pub message: String,
    /// The default answer of a prompt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub offered: String,
}

/// A file that a page offered for download.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Download {
    /// The file name that the page gave.
    pub name: String,
    /// The path in the workspace, once the file is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The progress of the download.
    pub state: DownloadState,
}

/// The progress of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DownloadState {
    /// The download is in progress.
    Running,
    /// The file is complete.
    Done,
    /// The download was interrupted, or refused for its size.
    Failed,
}

/// A request of a page to another origin that is held until it is approved or denied.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HeldRequest {
    /// The number, counted from 1 and never used twice in a session.
    pub number: u32,
    /// The HTTP method: `POST`, `PUT`, `DELETE` …
    pub method: String,
    /// The origin to which the request goes: `https://example.com`.
    pub origin: String,
    /// The complete address; bounded.
    pub address: String,
    /// Size of the request's body in bytes, as reported by the browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The cause, in words: `a form, after click`.
    pub started_by: String,
    /// Whether the page does not respond until the request is answered, as with a dialog.
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

/// The reason why waiting for a screen to settle ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Rest {
    /// Nothing was loading or changing any more.
    Quiet,
    /// A dialog blocks the page.
    Dialog,
    /// A held request blocks the page until it is answered.
    Held,
    /// The time limit passed while something was still changing.
    GaveUp {
        /// The activity, in words.
        waiting_for: String,
    },
    /// The page or the browser has gone.
    Gone,
}

/// A view of a screen at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The id of the screen's session. A session that is lost is followed by one with another id.
    pub session: String,
    /// The address of the page.
    pub address: String,
    /// The title; untrusted text of the page.
    pub title: String,
    /// The width of the frame in pixels, whether or not there is a picture of it.
    pub width: u32,
    /// The height of the frame in pixels.
    pub height: u32,
    /// The picture, if it was requested and could be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Image>,
    /// The average hash of the picture: 8 by 8 cells, one bit each for lighter than the mean or
    /// not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<u64>,
    /// The distances by which the screen can be scrolled.
    pub scroll: Scroll,
    /// All elements, in reading order.
    pub elements: Vec<Element>,
    /// The open pages.
    pub tabs: Vec<Tab>,
    /// The dialog that blocks the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<Dialog>,
    /// The latest downloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub downloads: Vec<Download>,
    /// Requests that are held until they are answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldRequest>,
    /// The reason why the view was taken at this moment.
    pub rest: Rest,
    /// Number of documents counted so far, for [`ElementId`]s.
    pub documents: u32,
    /// The parts that could not be read, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

/// Options for reading a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookOptions {
    /// Whether to take a picture.
    pub frame: bool,
    /// Number of documents that the run has counted so far, perhaps in an earlier session.
    pub documents: u32,
}

/// A view with the bytes of its picture, which is not stored yet.
#[derive(Debug)]
pub struct ViewWithPicture {
    /// The view, without [`View::frame`].
    pub view: View,
    pub frame: Option<Picture>,
}

/// An encoded picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// The bytes, in the format that [`Picture::media_type`] names.
    pub bytes: Vec<u8>,
    /// The media type: `image/png` or `image/jpeg`.
    pub media_type: &'static str,
    /// The width in pixels.
    pub width: u32,
    /// The height in pixels.
    pub height: u32,
}

/// The reason why a screen could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScreenError {
    /// No screen is open, and none could be opened.
    #[error("there is no screen: {reason}")]
    Unavailable {
        /// The missing part, and the way to get it.
        reason: String,
    },
    /// The screen does not show the requested page or window.
    #[error("{reason}")]
    Unreached {
        /// The missing element or page, and the reason.
        reason: String,
    },
    /// The screen broke down; the next look opens another.
    #[error("the screen was lost: {reason}")]
    Lost { reason: String },
}

/// A screen that a run can read. Inputs are tools; this trait only reads.
pub trait Screen: Send + Sync {
    /// Opens the screen if necessary, waits until it has settled, and reads it.
    fn look(&self, wanted: LookOptions) -> BoxedFuture<'_, Result<ViewWithPicture, ScreenError>>;

    /// Replaces the policy for the connections of programs on the screen. A screen whose programs
    /// connect otherwise ignores it, which is the default.
    fn connect_by(&self, _policy: Arc<dyn ConnectionPolicy>) {}
}

/// The target of an input, measured on the page just before the input is judged. The input is
/// checked against it again when it is executed: if another element has come to lie there, it is
/// refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Aim {
    /// The address of the document that gets the input.
    pub address: String,
    /// The origin of that document, `null` if it has none.
    pub origin: String,
    /// The element, if the input goes to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<AimedElement>,
    /// The form around the element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// The foreseeable effects of the input.
    pub starts: Vec<Starts>,
    /// The fields that are filled in before, in the order of the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fills: Vec<Aim>,
}

/// An element that an input goes to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AimedElement {
    pub id: ElementId,
    pub role: String,
    /// The accessible name; untrusted text of the page.
    pub name: String,
    pub states: BTreeSet<ElementState>,
}

/// The form of an element, or the nearest element around it that contains fields.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Form {
    /// The address to which the form is sent; the document's own address if it names none.
    pub action: String,
    /// The method in lower case; empty if it is not a real form.
    pub method: String,
    pub fields: Vec<Field>,
    /// The heading above the form, then the words and placeholders that a person reads in it, of
    /// what a click or Enter may send; bounded, untrusted text of the page.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// The data that the used button sends, as measured; `None` where nothing tells that: the form
    /// is not sent by this, or not as plain data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sends: Option<SentForm>,
}

/// The data that a form sends.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SentForm {
    /// All controls with a technical name, hidden ones included, in the order of the page.
    pub controls: Vec<SentControl>,
    /// Digest that distinguishes states of the controls, even if their values are not in journals.
    #[serde(default)]
    pub state: String,
}

/// A control whose value a form sends.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SentControl {
    /// The technical name of the control.
    pub name: String,
    /// The label for a person; empty if it has none.
    pub label: String,
    /// The type of the control: `text`, `hidden`, `radio`, `select-one` …
    pub kind: String,
    /// The page's hint for browsers that fill the control in: `street-address`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub autocomplete: String,
    /// The sent value; `None` if it is not sent now, and empty for a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The words of the choice, if a person sees these instead of the value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shown: String,
    /// Whether the control holds a secret, whose value is left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
}

impl SentControl {
    /// Returns the text that a person reads at the control: the words of what is chosen, or else
    /// the value.
    pub fn read(&self) -> Option<&str> {
        let value = self.value.as_deref()?;
        Some(if self.shown.is_empty() {
            value
        } else {
            &self.shown
        })
    }
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Field {
    /// The label for a person, or else the technical name.
    pub name: String,
    /// The type of the field: `text`, `password`, `email`, `file` …
    pub kind: String,
    /// Whether the field's value has changed since the page was loaded.
    pub filled: bool,
    /// Whether the field holds a secret.
    pub secret: bool,
}

/// An effect of an input.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Starts {
    /// Changes only the view: focus, scrolling, a hovering pointer.
    Looking,
    /// Goes to an address by a link.
    Follows {
        /// The whole address.
        address: String,
    },
    /// Opens the given address.
    Opens {
        /// The whole address.
        address: String,
    },
    /// Puts text into a field.
    Types,
    /// Chooses, checks or sets a value in a field.
    Chooses {
        /// The option of a list, with its group and its value; empty if none was named. Beside
        /// `Acts`, it is the target of a drop.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        option: String,
    },
    /// Sends the form.
    Submits,
    /// Does whatever the page does when the element is used.
    Acts,
    /// Uploads files to the page.
    Uploads { names: Vec<String> },
    /// Starts a program of the desktop, with the person's own rights.
    Launches {
        /// The absolute path of the program.
        program: String,
    },
    /// Closes a window of the desktop, which then is the element.
    Closes {
        /// Whether the window's title shows unsaved changes.
        unsaved: bool,
    },
    /// Answers a dialog, which then is the element: its kind is the role, its message the name.
    Answers {
        /// Whether the answer is yes.
        accepts: bool,
    },
    /// Sends a held request.
    Sends {
        method: String,
        /// The whole address.
        address: String,
        /// Size of the request's body in bytes, as reported by the browser.
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
