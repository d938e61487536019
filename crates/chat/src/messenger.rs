//! The contract that a messenger fulfils. An implementation is one file or folder; it knows nothing
//! of runs.

use std::time::Duration;

use gyrus_contract::BoxedFuture;
use serde::{Deserialize, Serialize};

/// A messenger, as one account of it.
pub trait Messenger: Send + Sync + 'static {
    /// Name of the surface: `telegram`.
    fn surface(&self) -> &'static str;

    /// Returns what it can do.
    fn limits(&self) -> ChatLimits;

    /// Returns the length of a text in the unit of [`ChatLimits::text`].
    fn length(&self, text: &str) -> usize;

    /// Finds out whether the account can be used, and tells the messenger the commands (name and
    /// meaning) that people may type. Returns the name of the account.
    fn connect<'a>(
        &'a self,
        commands: &'a [(&'a str, &'a str)],
    ) -> BoxedFuture<'a, Result<String, MessengerError>>;

    /// Waits until something happened after a position (`None`: as far back as the messenger
    /// remembers), and returns it. Dropping the future loses nothing. What was returned before a
    /// position that is given here is not returned again; asking for it confirms it.
    fn receive<'a>(
        &'a self,
        position: Option<&'a str>,
    ) -> BoxedFuture<'a, Result<MessengerUpdates, MessengerError>>;

    /// Sends a message; returns its id.
    fn send<'a>(
        &'a self,
        message: &'a NewMessage,
    ) -> BoxedFuture<'a, Result<String, MessengerError>>;

    /// Replaces the text of a message, and takes its buttons away.
    fn edit<'a>(
        &'a self,
        place: &'a ChatPlace,
        text: &'a str,
    ) -> BoxedFuture<'a, Result<(), MessengerError>>;

    /// Sends a file; returns the id of its message.
    fn send_file<'a>(
        &'a self,
        file: &'a OutgoingFile,
    ) -> BoxedFuture<'a, Result<String, MessengerError>>;

    /// Fetches a file that somebody sent, of at most `most` bytes.
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
    /// Maximum size of a picture that is shown as one, in bytes.
    pub picture_bytes: usize,
    /// Shortest time between two changes of one message.
    pub edit_every: Duration,
}

/// A message in a conversation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ChatPlace {
    pub chat: String,
    /// The id of the message in it.
    pub message: String,
}

/// Updates of a messenger, with the position behind them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessengerUpdates {
    /// The position from which to go on.
    pub position: String,
    /// The updates, oldest first.
    pub updates: Vec<MessengerUpdate>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessengerUpdate {
    /// A name that no other update has, by which one that comes twice is known.
    pub key: String,
    /// The thing that happened.
    pub event: ChatEvent,
}

/// Something that happened in a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatEvent {
    /// Somebody wrote.
    Message(Box<IncomingMessage>),
    /// Somebody pressed a button.
    Press(PressedButton),
    /// A conversation has another id from now on.
    Moved {
        /// The id until now.
        from: String,
        /// The id from now on.
        to: String,
    },
    /// Something that asks for nothing, such as the change of a message.
    Other,
}

/// A message that somebody wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncomingMessage {
    pub chat: String,
    /// The id of the message.
    pub message: String,
    /// The id of the person, which the messenger vouches for and gives to nobody else.
    pub person: String,
    /// The name that the person gave themselves. It proves nothing.
    pub name: String,
    /// Whether nobody else is in the conversation.
    pub is_private: bool,
    /// Whether the words are somebody else's, or were written elsewhere.
    pub is_forwarded: bool,
    /// Whether it is meant for this account. In a group not every message is.
    pub is_for_us: bool,
    pub text: String,
    pub reply_to: Option<String>,
    /// The files that came with it.
    pub files: Vec<IncomingFile>,
}

/// A file that somebody sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncomingFile {
    /// The id by which it is fetched.
    pub id: String,
    /// The name that the sender gave it; empty if none. It may be anything.
    pub name: String,
    /// The size in bytes, if the messenger says it.
    pub bytes: Option<u64>,
    pub kind: KindOfFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KindOfFile {
    /// Any file.
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
    /// The id of the person who pressed it.
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
    /// Buttons below it, each with its label and its data of at most 64 bytes.
    pub buttons: Vec<(String, String)>,
}

/// A file to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingFile {
    pub chat: String,
    /// The message that it replies to.
    pub reply_to: Option<String>,
    pub name: String,
    /// Words beside it.
    pub caption: String,
    pub bytes: Vec<u8>,
    /// Whether it is shown as a picture.
    pub is_picture: bool,
}

/// The reason why a messenger did not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessengerError {
    /// It did not happen, and may go better later.
    #[error("{why}")]
    Later { why: String },
    /// It did not happen: this conversation is written to too quickly.
    #[error("too many messages: wait {} s", after.as_secs())]
    TooFast {
        /// The time to wait.
        after: Duration,
    },
    /// It may have happened: the answer did not come.
    #[error("{why}")]
    Unknown { why: String },
    /// It did not happen, and never will.
    #[error("{why}")]
    Refused { why: String },
    /// The account is not accepted.
    #[error("{why}")]
    Unauthorized { why: String },
    /// Another program reads the same account.
    #[error("{why}")]
    Conflict { why: String },
    /// The conversation has another id.
    #[error("the conversation has moved to {to}")]
    Moved {
        /// The new id.
        to: String,
    },
}
