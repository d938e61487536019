//! Matrix, by the client-server API (spec.matrix.org/latest/client-server-api), over long polling.
//!
//! People are known by their ids (`@ada:example.org`), for which their homeservers vouch. Matrix has
//! no buttons: a message shows them with numbers, carries their data itself, and a reply with a
//! number is a press. Messages and files have transaction ids, so one that is sent again stands
//! there once. Encrypted rooms cannot be read; that is said in them, once.

mod api;
mod events;
mod wire;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use gyrus_contract::{Boxed, Digest, time_ordered_uuid};
use serde_json::{Value, json};

use self::{
    api::Homeserver,
    events::{BUTTONS, Received},
    wire::{
        InvitedRoom, JoinedMembers, JoinedRoom, OlderEvents, RoomEvent, SentEvent, SyncAnswer,
        UploadedFile, WhoAmI,
    },
};
use crate::messenger::{
    ChatEvent, ChatLimits, ChatPlace, Messenger, MessengerError, MessengerUpdate, MessengerUpdates,
    NewMessage, OutgoingFile, PressedButton, SentTwice,
};

/// Milliseconds for which the server holds a request for events.
const HELD_MS: &str = "30000";

/// Time after which such a request has failed.
const HELD_WITHIN: Duration = Duration::from_secs(60);

/// Parts of a synchronisation that are wanted.
const FILTER: &str = r#"{"presence":{"types":[]},"account_data":{"types":[]},"room":{"account_data":{"types":[]},"ephemeral":{"types":[]},"state":{"types":["m.room.member"]},"timeline":{"limit":100}}}"#;

/// Maximum length of a text as JSON in bytes: an event has 65,536, and one that replaces another
/// holds its text twice.
const TEXT: usize = 20_000;

/// Number of requests by which a gap before the newest events is filled, of 100 events each.
const GAP_PAGES: usize = 20;

/// Maximum number of rooms whose members are remembered.
const ROOMS: usize = 1_000;

/// The account of a person's bot.
pub struct Matrix {
    server: Homeserver,
    /// Id of the account, once it is known.
    own: OnceLock<String>,
    rooms: Mutex<Rooms>,
}

/// Facts about rooms that are looked up once.
#[derive(Default)]
struct Rooms {
    members: BTreeMap<String, BTreeSet<String>>,
    /// Encrypted rooms that are known to be.
    told: BTreeSet<String>,
}

/// Whether a text may be an access token.
pub fn is_matrix_token(text: &str) -> bool {
    let is_sign = |sign: char| sign.is_ascii_graphic();
    (8..=2_000).contains(&text.len()) && text.chars().all(is_sign)
}

impl Matrix {
    /// Creates the account of an access token at a homeserver.
    ///
    /// # Errors
    /// The address or the token cannot be used; in words.
    pub fn new(server: &str, token: &str) -> Result<Self, String> {
        if !is_matrix_token(token) {
            return Err("the token does not have the form of an access token".to_owned());
        }
        Ok(Self {
            server: Homeserver::new(server, token)?,
            own: OnceLock::new(),
            rooms: Mutex::default(),
        })
    }

    fn rooms(&self) -> MutexGuard<'_, Rooms> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn own(&self) -> &str {
        self.own.get().map_or("", String::as_str)
    }

    async fn updates(&self, position: Option<&str>) -> Result<MessengerUpdates, MessengerError> {
        let mut query = vec![("filter", FILTER)];
        match position {
            Some(position) => query.extend([("since", position), ("timeout", HELD_MS)]),
            // Nobody is paired before the first position, so what was written before means nothing.
            None => query.push(("timeout", "0")),
        }
        let path = ["client", "v3", "sync"];
        let synced: SyncAnswer = self.server.get_within(&path, &query, HELD_WITHIN).await?;
        let mut updates = Vec::new();
        for (room, invited) in synced.rooms.invite {
            updates.extend(self.invited(room, &invited, &synced.next_batch));
        }
        if let Some(since) = position {
            for (room, joined) in synced.rooms.join {
                updates.extend(self.joined(&room, joined, since).await?);
            }
        }
        Ok(MessengerUpdates {
            position: synced.next_batch,
            updates,
        })
    }

    fn invited(&self, room: String, invited: &InvitedRoom, batch: &str) -> Option<MessengerUpdate> {
        let mut events = invited.invite_state.events.iter();
        let invitation = events.find(|event| {
            event["type"] == "m.room.member"
                && event["state_key"] == self.own()
                && event["content"]["membership"] == "invite"
        })?;
        let person = invitation["sender"].as_str()?.to_owned();
        Some(MessengerUpdate {
            // The same invitation comes once in a synchronisation.
            key: format!("i{room}{batch}"),
            event: ChatEvent::Invited { chat: room, person },
        })
    }

    /// Returns what happened in a room since a position, oldest first.
    async fn joined(
        &self,
        room: &str,
        joined: JoinedRoom,
        since: &str,
    ) -> Result<Vec<MessengerUpdate>, MessengerError> {
        let JoinedRoom { timeline, state } = joined;
        let is_about_members = |event: &Value| event["type"] == "m.room.member";
        let mut all = state.events.iter().chain(&timeline.events);
        if timeline.limited || all.any(is_about_members) {
            self.rooms().members.remove(room);
        }
        let mut events = timeline.events;
        if let (true, Some(before)) = (timeline.limited, &timeline.prev_batch) {
            let mut older = self.older(room, before, since).await?;
            older.extend(events);
            events = older;
        }
        // What was written before we came in was not written to us.
        if let Some(entered) = events.iter().rposition(|event| self.enters(event)) {
            events.drain(..=entered);
        }
        let mut updates = Vec::new();
        for event in events {
            let Ok(event) = serde_json::from_value::<RoomEvent>(event) else {
                continue;
            };
            let key = event.event_id.clone();
            let event = self.event(room, event).await?;
            updates.push(MessengerUpdate { key, event });
        }
        Ok(updates)
    }

    /// Whether an event is our entering of a room, and not a change of our name in it.
    fn enters(&self, event: &Value) -> bool {
        event["type"] == "m.room.member"
            && event["state_key"] == self.own()
            && event["content"]["membership"] == "join"
            && event["unsigned"]["prev_content"]["membership"] != "join"
    }

    /// Returns the events of a gap, oldest first: those before a place, back to a position.
    async fn older(
        &self,
        room: &str,
        before: &str,
        since: &str,
    ) -> Result<Vec<Value>, MessengerError> {
        let path = ["client", "v3", "rooms", room, "messages"];
        let (mut events, mut from) = (Vec::new(), before.to_owned());
        for _ in 0..GAP_PAGES {
            let query = [
                ("dir", "b"),
                ("from", &*from),
                ("to", since),
                ("limit", "100"),
            ];
            let page: OlderEvents = self.server.get(&path, &query).await?;
            let is_last =
                page.chunk.is_empty() || page.chunk.iter().any(|event| self.enters(event));
            events.extend(page.chunk);
            match page.end {
                Some(end) if !is_last && end != from => from = end,
                _ => break,
            }
        }
        events.reverse();
        Ok(events)
    }

    async fn event(&self, room: &str, event: RoomEvent) -> Result<ChatEvent, MessengerError> {
        if event.sender == self.own() || event.state_key.is_some() {
            return Ok(ChatEvent::Other);
        }
        if event.kind == "m.room.encrypted" {
            return Ok(self.encrypted(room));
        }
        let Some(received) = Received::read(&event, self.own()) else {
            return Ok(ChatEvent::Other);
        };
        let replied = match &received.reply_to {
            Some(to) => self.replied(room, to).await?,
            None => None,
        };
        let replied = replied.filter(|replied| replied.sender == self.own());
        if let Some(data) = replied
            .as_ref()
            .and_then(|replied| received.pressed(replied))
        {
            return Ok(ChatEvent::Press(PressedButton {
                press: format!("{room} {}", event.event_id),
                chat: room.to_owned(),
                message: received.reply_to.unwrap_or_default(),
                person: event.sender,
                data,
            }));
        }
        let members = self.members(room).await?;
        let is_private = members.len() == 2
            && [self.own(), &event.sender]
                .iter()
                .all(|one| members.contains(*one));
        let message = received.message(room, event, is_private, replied.is_some());
        Ok(ChatEvent::Message(Box::new(message)))
    }

    /// Returns the event of a message that cannot be read: the first in its room says so.
    fn encrypted(&self, room: &str) -> ChatEvent {
        let mut rooms = self.rooms();
        if rooms.told.len() >= ROOMS || !rooms.told.insert(room.to_owned()) {
            return ChatEvent::Other;
        }
        ChatEvent::Unreadable {
            chat: room.to_owned(),
            why: "This room is encrypted, and I cannot read what is written in it. Make a room \
                  without encryption, and invite me there."
                .to_owned(),
        }
    }

    /// Returns the event that a message replies to, unless there is none that we may see.
    async fn replied(&self, room: &str, to: &str) -> Result<Option<RoomEvent>, MessengerError> {
        let path = ["client", "v3", "rooms", room, "event", to];
        match self.server.get::<RoomEvent>(&path, &[]).await {
            Ok(event) => Ok(Some(event)),
            Err(MessengerError::Refused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn members(&self, room: &str) -> Result<BTreeSet<String>, MessengerError> {
        if let Some(known) = self.rooms().members.get(room) {
            return Ok(known.clone());
        }
        let path = ["client", "v3", "rooms", room, "joined_members"];
        let members: JoinedMembers = match self.server.get(&path, &[]).await {
            Ok(members) => members,
            // We are not in it any more.
            Err(MessengerError::Refused { .. }) => return Ok(BTreeSet::new()),
            Err(error) => return Err(error),
        };
        let members: BTreeSet<String> = members.joined.into_keys().collect();
        let mut rooms = self.rooms();
        if rooms.members.len() >= ROOMS {
            rooms.members.clear();
        }
        rooms.members.insert(room.to_owned(), members.clone());
        Ok(members)
    }

    /// Sends an event; the server ignores one of the same key.
    async fn put_message(
        &self,
        room: &str,
        key: &str,
        content: &Value,
    ) -> Result<String, MessengerError> {
        let path = ["client", "v3", "rooms", room, "send", "m.room.message", key];
        let sent: SentEvent = self.server.put(&path, content).await?;
        Ok(sent.event_id)
    }
}

/// Adds to a message what it replies to.
fn reply(content: &mut Value, to: Option<&str>) {
    if let Some(to) = to {
        content["m.relates_to"] = json!({"m.in_reply_to": {"event_id": to}});
    }
}

/// Returns a text with its buttons below it.
fn with_buttons(text: &str, buttons: &[(String, String)]) -> String {
    let mut shown = text.to_owned();
    if !buttons.is_empty() {
        shown.push_str("\n\nTo choose, reply to this message with a number:");
        for (number, (label, _)) in (1..).zip(buttons) {
            shown.push_str(&format!("\n{number} {label}"));
        }
    }
    shown
}

impl Messenger for Matrix {
    fn surface(&self) -> &'static str {
        "matrix"
    }

    fn limits(&self) -> ChatLimits {
        ChatLimits {
            text: TEXT,
            file_bytes: 20_000_000,
            picture_bytes: 10_000_000,
            // Homeservers usually take a message in five seconds for long, and some at once.
            edit_every: Duration::from_secs(5),
            sent_twice: SentTwice::Ignored,
        }
    }

    fn length(&self, text: &str) -> usize {
        Value::from(text).to_string().len()
    }

    fn connect<'a>(
        &'a self,
        _commands: &'a [(&'a str, &'a str)],
    ) -> Boxed<'a, Result<String, MessengerError>> {
        Box::pin(async move {
            let path = ["client", "v3", "account", "whoami"];
            let who: WhoAmI = self.server.get(&path, &[]).await?;
            Ok(self.own.get_or_init(|| who.user_id).clone())
        })
    }

    fn receive<'a>(
        &'a self,
        position: Option<&'a str>,
    ) -> Boxed<'a, Result<MessengerUpdates, MessengerError>> {
        Box::pin(self.updates(position))
    }

    fn send<'a>(&'a self, message: &'a NewMessage) -> Boxed<'a, Result<String, MessengerError>> {
        Box::pin(async move {
            let text = with_buttons(&message.text, &message.buttons);
            let mut content = json!({"msgtype": "m.text", "body": text});
            if !message.buttons.is_empty() {
                content[BUTTONS] = json!(message.buttons);
            }
            reply(&mut content, message.reply_to.as_deref());
            self.put_message(&message.chat, &message.key, &content)
                .await
        })
    }

    fn edit<'a>(
        &'a self,
        place: &'a ChatPlace,
        text: &'a str,
    ) -> Boxed<'a, Result<(), MessengerError>> {
        Box::pin(async move {
            let content = json!({
                "msgtype": "m.text", "body": text,
                "m.new_content": {"msgtype": "m.text", "body": text},
                "m.relates_to": {"rel_type": "m.replace", "event_id": place.message},
            });
            // A text may come back that was there before.
            let key = time_ordered_uuid().to_string();
            self.put_message(&place.chat, &key, &content).await?;
            Ok(())
        })
    }

    fn send_file<'a>(
        &'a self,
        file: &'a OutgoingFile,
    ) -> Boxed<'a, Result<String, MessengerError>> {
        Box::pin(async move {
            let kind = "application/octet-stream";
            let uploaded: UploadedFile = self.server.upload(&file.name, kind, &file.bytes).await?;
            let mut content = json!({
                "msgtype": if file.is_picture { "m.image" } else { "m.file" },
                "body": file.name, "filename": file.name, "url": uploaded.content_uri,
                "info": {"size": file.bytes.len()},
            });
            if !file.caption.is_empty() {
                content["body"] = json!(file.caption);
            }
            reply(&mut content, file.reply_to.as_deref());
            self.put_message(&file.chat, &file.key, &content).await
        })
    }

    fn fetch<'a>(
        &'a self,
        file: &'a str,
        most: usize,
    ) -> Boxed<'a, Result<Vec<u8>, MessengerError>> {
        Box::pin(async move {
            let place = file.strip_prefix("mxc://");
            let place = place.and_then(|place| place.split_once('/'));
            let is_plain = |part: &str| !part.is_empty() && !part.contains('/') && part != "..";
            match place.filter(|(server, media)| is_plain(server) && is_plain(media)) {
                Some((server, media)) => self.server.download(server, media, most).await,
                None => Err(MessengerError::Refused {
                    why: "the message gave no usable address for the file".to_owned(),
                }),
            }
        })
    }

    fn join<'a>(&'a self, chat: &'a str) -> Boxed<'a, Result<(), MessengerError>> {
        Box::pin(async move {
            let path = ["client", "v3", "rooms", chat, "join"];
            let _: Value = self.server.post(&path, &json!({})).await?;
            Ok(())
        })
    }

    fn acknowledge<'a>(
        &'a self,
        press: &'a str,
        words: &'a str,
    ) -> Boxed<'a, Result<(), MessengerError>> {
        Box::pin(async move {
            let Some((room, message)) = press.split_once(' ') else {
                return Ok(());
            };
            let mut content = json!({"msgtype": "m.notice", "body": words});
            reply(&mut content, Some(message));
            let key = Digest::of_json(&(press, words)).to_string();
            self.put_message(room, &key, &content).await?;
            Ok(())
        })
    }
}
