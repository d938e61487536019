//! The contract that a messenger fulfils. An implementation is one file or folder; it knows nothing
//! of runs.

use std::time::Duration;

use gyrus_contract::BoxedFuture;
use serde::{Deserialize, Serialize};

/// An account at a messenger.
pub trait Messenger: Send + Sync + 'static {
    /// Name of the surface: `telegram`.
    fn surface(&self) -> &'static str;

    /// Returns the limits of the messenger.
    fn limits(&self) -> ChatLimits;

    /// Returns the length of a text in the unit of [`ChatLimits::text`].
    fn length(&self, text: &str) -> usize;

    /// Checks that the account works, and registers the commands (name and meaning) that people may
    /// type. Returns the name of the account.
    fn connect<'a>(
        &'a self,
        commands: &'a [(&'a str, &'a str)],
    ) -> BoxedFuture<'a, Result<String, MessengerError>>;

    /// Waits for events after a position (`None`: as far back as the messenger remembers), and
    /// returns them. Dropping the future loses nothing. Events before a given position are not
    /// returned again: passing it confirms them.
    fn receive<'a>(
        &'a self,
        position: Option<&'a str>,
    ) -> BoxedFuture<'a, Result<MessengerUpdates, MessengerError>>;

    /// Sends a message; returns the message's id.
    fn send<'a>(
        &'a self,
        message: &'a NewMessage,
    ) -> BoxedFuture<'a, Result<String, MessengerError>>;

    /// Replaces the text of a message, and removes its buttons.
    fn edit<'a>(
        &'a self,
        place: &'a ChatPlace,
        text: &'a str,
    ) -> BoxedFuture<'a, Result<(), MessengerError>>;

    /// Sends a file; returns the id of the file's message.
    fn send_file<'a>(
        &'a self,
        file: &'a OutgoingFile,
    ) -> BoxedFuture<'a, Result<String, MessengerError>>;

    /// Downloads a received file of at most `most` bytes.
    fn fetch<'a>(
        &'a self,
        file: &'a str,
        most: usize,
    ) -> BoxedFuture<'a, Result<Vec<u8>, MessengerError>>;

    /// Shows the person who pressed a button these words for a moment.
    fn acknowledge<'a>(
        &'a self,
        press: &'a str,
        words: &'a str,
    ) -> BoxedFuture<'a, Result<(), MessengerError>>;
}

/// The bounds of a messenger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatLimits {
    /// Maximum length of a text.
    pub text: usize,
    /// Maximum size of a file in either direction, in bytes.
    pub file_bytes: usize,
    /// Maximum size of a file that is shown as a picture, in bytes.
    pub picture_bytes: usize,
    /// Shortest time between two changes of one message.
    pub edit_every: Duration,
}

/// A message in a conversation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChatPlace {
    pub chat: String,
    /// The id of the message in the conversation.
    pub message: String,
}

/// Updates of a messenger, with the position behind them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessengerUpdates {
    /// Position from which the next updates are requested.
    pub position: String,
    /// The updates, oldest first.
    pub updates: Vec<MessengerUpdate>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessengerUpdate {
    /// A key unique to this update, by which repeated ones are recognised.
    pub key: String,
    /// The event in the conversation.
    pub event: ChatEvent,
}

/// An event in a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatEvent {
    /// Somebody sent a message.
    Message(Box<IncomingMessage>),
    /// Somebody pressed a button.
    Press(PressedButton),
    /// The id of a conversation changed.
    Moved {
        /// The id until now.
        from: String,
        /// The id from now on.
        to: String,
    },
    /// An event without consequences, such as the change of a message.
    Other,
}

/// A message that somebody sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncomingMessage {
    pub chat: String,
    /// The id of the message.
    pub message: String,
    /// Id of the person, which the messenger guarantees to be unique.
    pub person: String,
    /// The name that the person chose, which proves nothing.
    pub name: String,
    /// Whether the conversation has no other members.
    pub is_private: bool,
    /// Whether the words were forwarded, or were written elsewhere.
    pub is_forwarded: bool,
    /// Whether the message is meant for this account; in a group, not every one is.
    pub is_for_us: bool,
    pub text: String,
    pub reply_to: Option<String>,
    /// The files of the message.
    pub files: Vec<IncomingFile>,
}

/// A file that somebody sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncomingFile {
    /// The id for fetching the file.
    pub id: String,
    /// The name that the sender gave the file; empty if none. It may be anything.
    pub name: String,
    /// The size in bytes, if the messenger gives it.
    pub bytes: Option<u64>,
    pub kind: KindOfFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KindOfFile {
    /// A file of any type.
    Document,
    Picture,
    /// Speech that was recorded for this message.
    Voice,
}

/// A button that somebody pressed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PressedButton {
    /// The id of the press, to acknowledge it by.
    pub press: String,
    pub chat: String,
    pub message: String,
    /// The id of the person who pressed the button.
    pub person: String,
    pub data: String,
}

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    pub chat: String,
    pub reply_to: Option<String>,
    /// The words, as plain text.
    pub text: String,
    /// Buttons below the message, each with its label and its data of at most 64 bytes.
    pub buttons: Vec<(String, String)>,
}

/// A file to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingFile {
    pub chat: String,
    /// The message to which the file is a reply.
    pub reply_to: Option<String>,
    pub name: String,
    /// The text beside the file.
    pub caption: String,
    pub bytes: Vec<u8>,
    /// Whether the file is shown as a picture.
    pub is_picture: bool,
}

/// The reason why a messenger refused or failed a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessengerError {
    /// The operation failed, and may succeed later.
    #[error("{why}")]
    Later { why: String },
    /// The operation failed because this conversation is written to too quickly.
    #[error("too many messages: wait {} s", after.as_secs())]
    TooFast {
        /// The time to wait.
        after: Duration,
    },
    /// The operation may have succeeded, but no answer came.
    #[error("{why}")]
    Unknown { why: String },
    /// The operation failed, and will never succeed.
    #[error("{why}")]
    Refused { why: String },
    /// The account is not accepted.
    #[error("{why}")]
    Unauthorized { why: String },
    /// Another program reads the same account.
    #[error("{why}")]
    Conflict { why: String },
    /// The id of the conversation changed.
    #[error("the conversation has moved to {to}")]
    Moved {
        /// The new id of the conversation.
        to: String,
    },
}
