//! The parts of the Bot API's objects that are read (core.telegram.org/bots/api#available-types).

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub(super) struct BotUser {
    pub(super) id: i64,
    #[serde(default)]
    pub(super) first_name: String,
    pub(super) username: Option<String>,
    #[serde(default)]
    pub(super) is_bot: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct BotUpdate {
    pub(super) update_id: i64,
    pub(super) message: Option<BotMessage>,
    pub(super) callback_query: Option<CallbackQuery>,
}

#[derive(Debug, Deserialize)]
pub(super) struct BotChat {
    pub(super) id: i64,
    #[serde(rename = "type")]
    pub(super) kind: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct BotMessage {
    pub(super) message_id: i64,
    pub(super) from: Option<BotUser>,
    /// The channel or group in whose name the message was sent.
    pub(super) sender_chat: Option<BotChat>,
    pub(super) chat: BotChat,
    #[serde(default)]
    pub(super) text: String,
    #[serde(default)]
    pub(super) caption: String,
    pub(super) forward_origin: Option<Value>,
    /// Servers before version 7.0 of the Bot API have this instead.
    pub(super) forward_date: Option<i64>,
    /// The other bot that wrote the message on the person's behalf.
    pub(super) via_bot: Option<Value>,
    pub(super) reply_to_message: Option<Box<RepliedMessage>>,
    pub(super) document: Option<BotFile>,
    pub(super) audio: Option<BotFile>,
    pub(super) video: Option<BotFile>,
    pub(super) voice: Option<BotFile>,
    #[serde(default)]
    pub(super) photo: Vec<BotFile>,
    pub(super) migrate_to_chat_id: Option<i64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RepliedMessage {
    pub(super) message_id: i64,
    pub(super) from: Option<BotUser>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct BotFile {
    pub(super) file_id: String,
    pub(super) file_name: Option<String>,
    pub(super) file_size: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CallbackQuery {
    pub(super) id: String,
    pub(super) from: BotUser,
    pub(super) message: Option<PressedMessage>,
    #[serde(default)]
    pub(super) data: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct PressedMessage {
    pub(super) message_id: i64,
    pub(super) chat: BotChat,
}

#[derive(Debug, Deserialize)]
pub(super) struct SentMessage {
    pub(super) message_id: i64,
}

#[derive(Debug, Deserialize)]
pub(super) struct TelegramFile {
    pub(super) file_path: Option<String>,
    pub(super) file_size: Option<u64>,
}
