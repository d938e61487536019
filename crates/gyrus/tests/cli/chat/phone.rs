//! A person with a phone, whatever messenger is on it, and what they do there.

use std::time::{Duration, Instant};

use super::{OWNER, bot_api::BotApi, paired, start};
use crate::{
    server::runs::ASKS,
    support::{THREE_STEPS, TIMEOUT, World},
};

/// A message as it stands on the phone now.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) reply_to: Option<String>,
}

/// The phone of a person who is paired.
pub(crate) trait Phone {
    /// The person writes; returns the id of the message.
    fn says(&self, text: &str) -> String;

    fn replies(&self, to: &str, text: &str);

    /// The person chooses a button of a message.
    fn presses(&self, message: &Seen, label: &str);

    /// Returns all messages of the bot, as they stand now.
    fn seen(&self) -> Vec<Seen>;

    /// Waits until a message of the bot has these words; returns it.
    #[track_caller]
    fn sees(&self, words: &str) -> Seen {
        self.waits_until(words, &|text| text.contains(words))
    }

    /// Waits until a message of the bot begins with these words.
    #[track_caller]
    fn sees_first(&self, words: &str) -> Seen {
        self.waits_until(words, &|text| text.starts_with(words))
    }

    #[track_caller]
    fn waits_until(&self, what: &str, wanted: &dyn Fn(&str) -> bool) -> Seen {
        let until = Instant::now() + TIMEOUT;
        loop {
            let seen = self.seen();
            if let Some(found) = seen.iter().find(|one| wanted(&one.text)) {
                return found.clone();
            }
            assert!(Instant::now() < until, "{what}: {seen:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Asks a person for words.
pub(crate) const QUESTION: &str = r#"
[[reply]]
calls = [{ tool = "ask_person", arguments = { question = "Which colour?" } }]
[[reply]]
when = "green"
calls = [{ tool = "finish", arguments = { reached = true, answer = "It is green." } }]
"#;

/// A goal, its progress in one message, and its result.
pub(crate) fn has_a_goal_done(phone: &dyn Phone, world: &World) {
    let asked = phone.says("say hello");
    let status = phone.sees("say hello\n");
    assert_eq!(status.reply_to.as_deref(), Some(asked.as_str()));
    let result = phone.sees("It says hello.");
    assert_eq!(result.reply_to.as_deref(), Some(asked.as_str()));
    assert_eq!(world.file("ledger.txt"), "hello\n");
    let last = phone.sees("\nclaimed");
    assert_eq!(last.id, status.id, "its state is one message");
    phone.says("/status");
    phone.sees(" at work, 0 waiting");
}

/// A card is answered once.
pub(crate) fn answers_a_card(phone: &dyn Phone, world: &World) {
    phone.says("write it");
    let card = phone.sees("Allow it once, or deny it?");
    assert!(card.text.contains("┃ "), "{card:?}");
    phone.replies(&card.id, "yes, please");
    phone.sees("the card asks for approval, not for words");
    assert_eq!(world.file(".envrc"), "");
    phone.presses(&card, "Allow once");
    phone.sees("\n— approved by ");
    phone.sees_first("done");
    assert_eq!(world.file(".envrc"), "hello\n");
}

/// A question is answered by a reply.
pub(crate) fn answers_a_question(phone: &dyn Phone) {
    phone.says("paint it");
    let card = phone.sees("Which colour?");
    phone.replies(&card.id, "green");
    phone.sees("It is green.");
    phone.sees("\n— answered by ");
}

impl Phone for BotApi {
    fn says(&self, text: &str) -> String {
        BotApi::says(self, OWNER, text).to_string()
    }

    fn replies(&self, to: &str, text: &str) {
        BotApi::replies(self, OWNER, to.parse().unwrap(), text);
    }

    fn presses(&self, message: &Seen, label: &str) {
        let shown = self.shown().into_iter();
        let shown = shown
            .into_iter()
            .find(|one| one.id.to_string() == message.id);
        BotApi::presses(self, OWNER, &shown.unwrap(), label);
    }

    fn seen(&self) -> Vec<Seen> {
        let shown = self.shown().into_iter().map(|one| Seen {
            id: one.id.to_string(),
            text: one.text,
            reply_to: one.reply_to.map(|id| id.to_string()),
        });
        shown.collect()
    }
}

#[test]
fn a_person_with_telegram() {
    let auto = "options = { approve = \"auto\" }";
    let (world, bot) = paired(THREE_STEPS, auto);
    let server = start(&world);
    has_a_goal_done(&bot, &world);
    drop(server);
    let (world, bot) = paired(ASKS, "");
    let server = start(&world);
    answers_a_card(&bot, &world);
    drop(server);
    let (world, bot) = paired(QUESTION, "");
    let _server = start(&world);
    answers_a_question(&bot);
}
