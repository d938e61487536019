//! Reading an event of a room as a message, or as the press of a button.

use super::wire::RoomEvent;
use crate::messenger::{IncomingFile, IncomingMessage, KindOfFile};

/// The field of a message that holds its buttons, as pairs of label and data.
pub(super) const BUTTONS: &str = "dev.gyrus.buttons";

/// A message of somebody.
pub(super) struct Received {
    text: String,
    pub(super) reply_to: Option<String>,
    file: Option<IncomingFile>,
    mentions_us: bool,
}

impl Received {
    /// Reads an event; `None` for one that asks for nothing: a change of a message, a notice of a
    /// bot, a reaction.
    pub(super) fn read(event: &RoomEvent, own: &str) -> Option<Self> {
        let content = &event.content;
        let relation = &content["m.relates_to"];
        if event.kind != "m.room.message" || relation["rel_type"] == "m.replace" {
            return None;
        }
        let body = content["body"].as_str()?;
        let kind = match content["msgtype"].as_str()? {
            "m.text" => None,
            "m.image" => Some(KindOfFile::Picture),
            "m.audio" if content["org.matrix.msc3245.voice"].is_object() => Some(KindOfFile::Voice),
            "m.file" | "m.audio" | "m.video" => Some(KindOfFile::Document),
            _ => return None,
        };
        // In a thread it is only for clients that know no threads.
        let reply_to = relation["m.in_reply_to"]["event_id"].as_str();
        let reply_to = reply_to.filter(|_| relation["is_falling_back"] != true);
        let name = content["filename"].as_str();
        let file = kind.map(|kind| IncomingFile {
            // An encrypted file has no address of its own, and cannot be fetched.
            id: content["url"].as_str().unwrap_or_default().to_owned(),
            name: match kind {
                KindOfFile::Voice => "voice.ogg".to_owned(),
                KindOfFile::Picture | KindOfFile::Document => name.unwrap_or(body).to_owned(),
            },
            bytes: content["info"]["size"].as_u64(),
            kind,
        });
        // Beside a file, words are a caption only if they are not its name.
        let is_caption = name.is_some_and(|name| name != body);
        let text = match (&file, is_caption) {
            (Some(_), false) => "",
            (Some(_), true) => body,
            (None, _) if reply_to.is_some() => without_quote(body),
            (None, _) => body,
        };
        let mentioned = content["m.mentions"]["user_ids"].as_array();
        let mentioned = mentioned.into_iter().flatten().any(|id| id == own);
        Some(Self {
            text: text.to_owned(),
            reply_to: reply_to.map(str::to_owned),
            file,
            mentions_us: mentioned,
        })
    }

    /// Returns the data of the button of our message `replied` that a reply chooses, by its number
    /// or its label.
    pub(super) fn pressed(&self, replied: &RoomEvent) -> Option<String> {
        let buttons = replied.content[BUTTONS].as_array()?;
        let words = self.text.trim();
        let chosen = match words.parse::<usize>() {
            Ok(number) => buttons.get(number.checked_sub(1)?)?,
            Err(_) => buttons.iter().find(|button| {
                let label = button[0].as_str();
                label.is_some_and(|label| label.eq_ignore_ascii_case(words))
            })?,
        };
        chosen[1].as_str().map(str::to_owned)
    }

    /// Returns the message. In a group, commands, replies to us and what mentions us are meant for
    /// us.
    pub(super) fn message(
        self,
        room: &str,
        event: RoomEvent,
        is_private: bool,
        replies_to_us: bool,
    ) -> IncomingMessage {
        let is_for_us =
            is_private || replies_to_us || self.mentions_us || self.text.starts_with('/');
        IncomingMessage {
            chat: room.to_owned(),
            message: event.event_id,
            name: event.sender.clone(),
            person: event.sender,
            is_private,
            // Matrix does not tell: a forwarded message is one that its sender wrote again.
            is_forwarded: false,
            is_for_us,
            text: self.text,
            reply_to: self.reply_to,
            files: self.file.into_iter().collect(),
        }
    }
}

/// Returns the words of a reply without the quote before them, which older clients put there.
fn without_quote(body: &str) -> &str {
    let mut rest = body;
    while rest.starts_with("> ") || rest.starts_with(">\n") {
        rest = rest.split_once('\n').map_or("", |(_, after)| after);
    }
    if rest.len() == body.len() {
        body
    } else {
        rest.strip_prefix('\n').unwrap_or(rest)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(content: Value) -> RoomEvent {
        RoomEvent {
            kind: "m.room.message".to_owned(),
            event_id: "$1".to_owned(),
            sender: "@ada:x".to_owned(),
            state_key: None,
            content,
        }
    }

    fn read(content: Value) -> Option<IncomingMessage> {
        let event = event(content);
        let received = Received::read(&event, "@bot:x")?;
        Some(received.message("!r:x", event, true, false))
    }

    #[test]
    fn words_are_what_somebody_typed() {
        let reply = json!({"m.in_reply_to": {"event_id": "$0"}});
        let quoted = json!({
            "msgtype": "m.text", "body": "> <@bot:x> 1 Allow once\n> 2 Deny\n\n2",
            "m.relates_to": reply,
        });
        let message = read(quoted).unwrap();
        assert_eq!(
            (message.text.as_str(), message.reply_to.as_deref()),
            ("2", Some("$0"))
        );
        // Without a reply, such a line is the person's.
        let said = read(json!({"msgtype": "m.text", "body": "> a\nb"})).unwrap();
        assert_eq!(said.text, "> a\nb");
        let threaded = json!({
            "msgtype": "m.text", "body": "x",
            "m.relates_to": {"rel_type": "m.thread", "event_id": "$9", "is_falling_back": true,
                "m.in_reply_to": {"event_id": "$0"}},
        });
        assert_eq!(read(threaded).unwrap().reply_to, None);
        for nothing in [
            json!({"msgtype": "m.notice", "body": "x"}),
            json!({"msgtype": "m.text"}),
            json!({"msgtype": "m.text", "body": 7}),
            json!({"msgtype": "m.text", "body": "* x", "m.new_content": {"body": "x"},
                "m.relates_to": {"rel_type": "m.replace", "event_id": "$0"}}),
            json!({}),
            json!(null),
        ] {
            assert_eq!(read(nothing.clone()), None, "{nothing}");
        }
    }

    #[test]
    fn files_come_with_their_captions() {
        let file = json!({
            "msgtype": "m.file", "body": "look at this", "filename": "a.txt",
            "url": "mxc://x/abc", "info": {"size": 3},
        });
        let message = read(file).unwrap();
        assert_eq!(message.text, "look at this");
        assert_eq!(message.files[0].name, "a.txt");
        assert_eq!(message.files[0].id, "mxc://x/abc");
        let plain = json!({"msgtype": "m.image", "body": "a.png", "url": "mxc://x/abc"});
        let message = read(plain).unwrap();
        assert_eq!(
            (message.text.as_str(), message.files[0].name.as_str()),
            ("", "a.png")
        );
    }

    #[test]
    fn a_reply_chooses_a_button_by_its_number_or_its_label() {
        let card = event(json!({BUTTONS: [["Allow once", "allow:1:a"], ["Deny", "deny:1:a"]]}));
        let pressed = |body: &str| {
            let content = json!({"msgtype": "m.text", "body": body});
            Received::read(&event(content), "@bot:x")
                .unwrap()
                .pressed(&card)
        };
        assert_eq!(pressed("1").as_deref(), Some("allow:1:a"));
        assert_eq!(pressed(" 2\n").as_deref(), Some("deny:1:a"));
        assert_eq!(pressed("deny").as_deref(), Some("deny:1:a"));
        for nothing in ["0", "3", "-1", "yes", "1 2", "", "99999999999999999999"] {
            assert_eq!(pressed(nothing), None, "{nothing}");
        }
    }
}
