//! Chats: people start, watch, steer and answer runs from a messenger.
//!
//! The one idea: a chat is a surface like any other. What a person writes becomes a command of the
//! queue or a message in a run's inbox, what they see is the projection of the run's entries, and a
//! card is answered by `gyrus_kernel::approvals`, bound to its digest. There is no private view of
//! a run, and no second way to approve.
//!
//! Everything that must survive a kill is one ledger (`record`): how far the messenger was read and
//! what follows from what was read are one entry of it, so nothing is lost and nothing happens
//! twice. What is to be said waits there, too; a message whose delivery nobody knows is shown as
//! that, and is not repeated by itself.
//!
//! Reading order: `messenger` (the contract that a messenger fulfils), `record` (the state),
//! `receiving` and `conversation` (from an update to what follows from it), `tasks` (a run from its
//! goal to its result), `delivery` (what is said, one message after the other), and `telegram`
//! (the messenger). A messenger knows nothing of runs, and nothing else knows its name.

mod messenger;
mod record;
mod pairing;
mod split;
mod words;
mod cards;
mod progress;
mod files;
mod multipart;
mod requests;
mod transcription;
mod board;
mod shared;
mod conversation;
mod jobs;
mod receiving;
mod tasks;
mod following;
mod delivery;
mod service;
mod telegram;

pub use messenger::{
    ChatEvent, ChatLimits, ChatPlace, IncomingFile, IncomingMessage, KindOfFile, Messenger,
    MessengerError, MessengerUpdate, MessengerUpdates, NewMessage, OutgoingFile, PressedButton,
};
pub use pairing::PAIRING_MINUTES;
pub use record::{ChatRecord, PairedPerson};
pub use service::{ChatAccount, ChatError, ChatTasks, read_chats};
pub use shared::{ChatHost, ChatSettings};
pub use telegram::{Telegram, is_telegram_token};
pub use transcription::Transcription;
