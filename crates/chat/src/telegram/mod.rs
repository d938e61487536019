//! Telegram, by its Bot API (core.telegram.org/bots/api), over long polling.
//!
//! People are known by their numeric ids, never by names. Texts are sent plain, and no preview is
//! made of their links: a preview would be a request to an address that a model wrote.

mod api;
mod wire;

use std::{sync::OnceLock, time::Duration};

use gyrus_contract::BoxedFuture;
use gyrus_kernel::now_ms;
use serde_json::{Value, json};

use self::{
    api::BotApi,
    wire::{BotFile, BotMessage, BotUpdate, BotUser, CallbackQuery, SentMessage, TelegramFile},
};
use crate::{
    messenger::{
        ChatEvent, ChatLimits, ChatPlace, IncomingFile, IncomingMessage, KindOfFile, Messenger,
        MessengerError, MessengerUpdate, MessengerUpdates, NewMessage, OutgoingFile, PressedButton,
    },
    multipart::Multipart,
    requests::RepeatRule,
};

/// Seconds for which the server holds a request for updates.
const HELD_SECONDS: u64 = 50;

/// Time limit for a request for updates.
const HELD_WITHIN: Duration = Duration::from_secs(HELD_SECONDS + 15);

/// Time without an update after which ids may begin anew at any number: the server says a week.
const IDS_LAST_MS: i64 = 6 * 24 * 60 * 60 * 1000;

/// Maximum length of a text, and of the words beside a file, in UTF-16 code units.
const TEXT: usize = 4_096;
const CAPTION: usize = 1_024;

/// Maximum length of the words that answer a press.
const TOAST: usize = 200;

/// The bot of a person.
pub struct Telegram {
    api: BotApi,
    own: OnceLock<BotUser>,
}

/// A position: the id from which updates are asked for, and the time of the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UpdatePosition {
    next: i64,
    at_ms: i64,
}

/// Whether a text has the form of a bot's token.
pub fn is_telegram_token(text: &str) -> bool {
    let Some((id, secret)) = text.split_once(':') else {
        return false;
    };
    let is_secret = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-';
    (1..=20).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_digit())
        && (16..=100).contains(&secret.len())
        && secret.chars().all(is_secret)
}

impl Telegram {
    /// The address of the Bot API.
    pub const SERVER: &str = "https://api.telegram.org";

    /// Creates the bot of a token at a server of the Bot API.
    ///
    /// # Errors
    /// A message if the address or the token cannot be used.
    pub fn new(server: &str, token: &str) -> Result<Self, String> {
        if !is_telegram_token(token) {
            return Err("the token does not have the form of a bot's token".to_owned());
        }
        Ok(Self {
            api: BotApi::new(server, token)?,
            own: OnceLock::new(),
        })
    }

    async fn updates(&self, position: Option<&str>) -> Result<MessengerUpdates, MessengerError> {
        let before = position.and_then(UpdatePosition::read);
        // Ids that began anew may be lower than ours, and asking from ours would drop them.
        let is_recent = |before: &UpdatePosition| now_ms() - before.at_ms < IDS_LAST_MS;
        let offset = before.filter(is_recent).map(|before| before.next);
        let mut arguments = json!({
            "timeout": HELD_SECONDS,
            "allowed_updates": ["message", "callback_query"],
        });
        if let Some(offset) = offset {
            arguments["offset"] = json!(offset);
        }
        let received: Vec<Value> = self
            .api
            .call_within("getUpdates", &arguments, RepeatRule::Harmless, HELD_WITHIN)
            .await?;
        let mut updates: Vec<(i64, Option<BotUpdate>)> = Vec::new();
        for update in received {
            // One that cannot be read must not hold up all others.
            if let Some(id) = update["update_id"].as_i64() {
                updates.push((id, serde_json::from_value(update).ok()));
            }
        }
        updates.sort_by_key(|(id, _)| *id);
        let last = updates.last().map(|(id, _)| id.saturating_add(1));
        let next = match (last, offset, before) {
            (Some(last), Some(offset), _) => last.max(offset),
            (Some(last), None, _) => last,
            (None, _, Some(before)) => before.next,
            (None, _, None) => 0,
        };
        let at_ms = match (last, before) {
            (None, Some(before)) => before.at_ms,
            _ => now_ms(),
        };
        let updates = updates.into_iter();
        Ok(MessengerUpdates {
            position: UpdatePosition { next, at_ms }.to_string(),
            updates: updates
                .filter_map(|(_, update)| self.update(update?))
                .collect(),
        })
    }

    fn update(&self, update: BotUpdate) -> Option<MessengerUpdate> {
        let id = update.update_id;
        match (update.message, update.callback_query) {
            (Some(message), _) => {
                // Ids of updates may begin anew; those of messages do not.
                let key = format!("m{}:{}", message.chat.id, message.message_id);
                let event = self.message(message);
                Some(MessengerUpdate { key, event })
            }
            (None, Some(press)) => Some(MessengerUpdate {
                key: format!("p{}", press.id),
                event: pressed(press),
            }),
            (None, None) => Some(MessengerUpdate {
                key: format!("u{id}"),
                event: ChatEvent::Other,
            }),
        }
    }

    fn message(&self, message: BotMessage) -> ChatEvent {
        if let Some(to) = message.migrate_to_chat_id {
            return ChatEvent::Moved {
                from: message.chat.id.to_string(),
                to: to.to_string(),
            };
        }
        let (Some(from), None) = (&message.from, &message.sender_chat) else {
            return ChatEvent::Other;
        };
        if from.is_bot {
            return ChatEvent::Other;
        }
        let own = self.own.get();
        let is_private = message.chat.kind == "private" && message.chat.id == from.id;
        let words = if message.text.is_empty() {
            &message.caption
        } else {
            &message.text
        };
        let (text, named) = without_name(words);
        let is_own_name = |name: &str| {
            let own = own.and_then(|own| own.username.as_deref());
            own.is_some_and(|own| own.eq_ignore_ascii_case(name))
        };
        let replied = message.reply_to_message.as_ref();
        let replies_to_us = replied
            .and_then(|replied| replied.from.as_ref())
            .is_some_and(|from| own.is_some_and(|own| own.id == from.id));
        let is_for_us = match &named {
            Some(name) => is_own_name(name),
            None => is_private || words.starts_with('/') || replies_to_us,
        };
        let is_forwarded = message.forward_origin.is_some()
            || message.forward_date.is_some()
            || message.via_bot.is_some();
        ChatEvent::Message(Box::new(IncomingMessage {
            chat: message.chat.id.to_string(),
            message: message.message_id.to_string(),
            person: from.id.to_string(),
            name: from.username.clone().unwrap_or(from.first_name.clone()),
            is_private,
            is_forwarded,
            is_for_us,
            text,
            reply_to: replied.map(|replied| replied.message_id.to_string()),
            files: files(&message),
        }))
    }

    async fn find(&self, file: &str, most: usize) -> Result<Vec<u8>, MessengerError> {
        let arguments = json!({"file_id": file});
        let found: TelegramFile = self
            .api
            .call("getFile", &arguments, RepeatRule::Harmless)
            .await?;
        let limit = u64::try_from(most).unwrap_or(u64::MAX);
        if found.file_size.is_some_and(|bytes| bytes > limit) {
            let why = format!("it is larger than {most} bytes");
            return Err(MessengerError::Refused { why });
        }
        self.api
            .download(found.file_path.as_deref().unwrap_or_default(), most)
            .await
    }
}

/// Removes the name of a bot from a command: `/run@my_bot x`.
fn without_name(words: &str) -> (String, Option<String>) {
    let end = words.find(char::is_whitespace).unwrap_or(words.len());
    let (command, rest) = words.split_at(end);
    match command.split_once('@') {
        Some((command, name)) if command.starts_with('/') => {
            (format!("{command}{rest}"), Some(name.to_owned()))
        }
        _ => (words.to_owned(), None),
    }
}

fn files(message: &BotMessage) -> Vec<IncomingFile> {
    let file = |file: &BotFile, kind| IncomingFile {
        id: file.file_id.clone(),
        name: file.file_name.clone().unwrap_or_default(),
        bytes: file.file_size,
        kind,
    };
    let documents = [&message.document, &message.audio, &message.video];
    let documents = documents.into_iter().flatten();
    let mut files: Vec<IncomingFile> = documents
        .map(|one| file(one, KindOfFile::Document))
        .collect();
    // The sizes of one picture, the largest last.
    files.extend(message.photo.last().map(|one| {
        let mut picture = file(one, KindOfFile::Picture);
        "photo".clone_into(&mut picture.name);
        picture
    }));
    files.extend(message.voice.as_ref().map(|one| {
        let mut voice = file(one, KindOfFile::Voice);
        "voice.ogg".clone_into(&mut voice.name);
        voice
    }));
    files
}

fn pressed(press: CallbackQuery) -> ChatEvent {
    let Some(message) = press.message else {
        return ChatEvent::Other;
    };
    ChatEvent::Press(PressedButton {
        press: press.id,
        chat: message.chat.id.to_string(),
        message: message.message_id.to_string(),
        person: press.from.id.to_string(),
        data: press.data,
    })
}

fn number(id: &str) -> Result<i64, MessengerError> {
    id.parse().map_err(|_| MessengerError::Refused {
        why: format!("`{id}` is not an id of this messenger"),
    })
}

fn reply(to: Option<&str>) -> Result<Option<Value>, MessengerError> {
    let reply = |to| Ok(json!({"message_id": number(to)?, "allow_sending_without_reply": true}));
    to.map(reply).transpose()
}

fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

impl Messenger for Telegram {
    fn surface(&self) -> &'static str {
        "telegram"
    }

    fn limits(&self) -> ChatLimits {
        ChatLimits {
            text: TEXT,
            file_bytes: 20_000_000,
            picture_bytes: 10_000_000,
            // A chat takes about one message a second, a group twenty a minute.
            edit_every: Duration::from_secs(3),
        }
    }

    fn length(&self, text: &str) -> usize {
        units(text)
    }

    fn connect<'a>(
        &'a self,
        commands: &'a [(&'a str, &'a str)],
    ) -> BoxedFuture<'a, Result<String, MessengerError>> {
        Box::pin(async move {
            let own: BotUser = self
                .api
                .call("getMe", &json!({}), RepeatRule::Harmless)
                .await?;
            let commands = commands.iter();
            let commands = commands.map(
                |(command, description)| json!({"command": command, "description": description}),
            );
            let menu = json!({"commands": commands.collect::<Vec<_>>()});
            // A bot works without its menu.
            let _: Result<bool, _> = self
                .api
                .call("setMyCommands", &menu, RepeatRule::Harmless)
                .await;
            let own = self.own.get_or_init(|| own);
            let name = own.username.as_ref().unwrap_or(&own.first_name);
            Ok(format!("@{name}"))
        })
    }

    fn receive<'a>(
        &'a self,
        position: Option<&'a str>,
    ) -> BoxedFuture<'a, Result<MessengerUpdates, MessengerError>> {
        Box::pin(self.updates(position))
    }

    fn send<'a>(
        &'a self,
        message: &'a NewMessage,
    ) -> BoxedFuture<'a, Result<String, MessengerError>> {
        Box::pin(async move {
            let mut arguments = json!({
                "chat_id": number(&message.chat)?,
                "text": message.text,
                "link_preview_options": {"is_disabled": true},
            });
            if let Some(reply) = reply(message.reply_to.as_deref())? {
                arguments["reply_parameters"] = reply;
            }
            if !message.buttons.is_empty() {
                let buttons = message.buttons.iter();
                let rows: Vec<Value> = buttons
                    .map(|(label, data)| json!([{"text": label, "callback_data": data}]))
                    .collect();
                arguments["reply_markup"] = json!({"inline_keyboard": rows});
            }
            let sent: SentMessage = self
                .api
                .call("sendMessage", &arguments, RepeatRule::Visible)
                .await?;
            Ok(sent.message_id.to_string())
        })
    }

    fn edit<'a>(
        &'a self,
        place: &'a ChatPlace,
        text: &'a str,
    ) -> BoxedFuture<'a, Result<(), MessengerError>> {
        Box::pin(async move {
            let arguments = json!({
                "chat_id": number(&place.chat)?,
                "message_id": number(&place.message)?,
                "text": text,
                "link_preview_options": {"is_disabled": true},
            });
            let edited: Result<Value, _> = self
                .api
                .call("editMessageText", &arguments, RepeatRule::Harmless)
                .await;
            match edited {
                Err(MessengerError::Refused { why }) if why.contains("not modified") => Ok(()),
                edited => edited.map(drop),
            }
        })
    }

    fn send_file<'a>(
        &'a self,
        file: &'a OutgoingFile,
    ) -> BoxedFuture<'a, Result<String, MessengerError>> {
        Box::pin(async move {
            let mut body = Multipart::new().field("chat_id", &number(&file.chat)?.to_string());
            let caption = crate::split::split(&file.caption, CAPTION, units);
            if let Some(caption) = caption.first() {
                body = body.field("caption", caption);
            }
            if let Some(reply) = reply(file.reply_to.as_deref())? {
                body = body.field("reply_parameters", &reply.to_string());
            }
            let (method, field) = if file.is_picture {
                ("sendPhoto", "photo")
            } else {
                ("sendDocument", "document")
            };
            let body = body.file(field, &file.name, "application/octet-stream", &file.bytes);
            let sent: SentMessage = self.api.upload(method, body).await?;
            Ok(sent.message_id.to_string())
        })
    }

    fn fetch<'a>(
        &'a self,
        file: &'a str,
        most: usize,
    ) -> BoxedFuture<'a, Result<Vec<u8>, MessengerError>> {
        Box::pin(self.find(file, most))
    }

    fn acknowledge<'a>(
        &'a self,
        press: &'a str,
        words: &'a str,
    ) -> BoxedFuture<'a, Result<(), MessengerError>> {
        Box::pin(async move {
            let words = gyrus_text::shorten(words, TOAST - 1);
            let arguments = json!({"callback_query_id": press, "text": words});
            let _: bool = self
                .api
                .call("answerCallbackQuery", &arguments, RepeatRule::Harmless)
                .await?;
            Ok(())
        })
    }
}

impl UpdatePosition {
    fn read(text: &str) -> Option<Self> {
        let (next, at_ms) = text.split_once(' ')?;
        Some(Self {
            next: next.parse().ok()?,
            at_ms: at_ms.parse().ok()?,
        })
    }
}

impl std::fmt::Display for UpdatePosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.next, self.at_ms)
    }
}
