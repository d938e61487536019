//! A model that plays on whatever page it is shown, and remembers what it was asked.

use std::sync::Arc;

use gyrus_contract::{
    BoxedFuture, Delta, Model, ModelError, Origin, Part, Price, Prompt, Reply, StopReason, Text,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// A question and its answer.
pub(super) struct Asked {
    pub(super) prompt: Prompt,
    pub(super) reply: String,
}

pub(super) struct Player {
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Player {
    pub(super) fn new(asked: Arc<Mutex<Vec<Asked>>>) -> Self {
        Self { asked }
    }
}

impl Model for Player {
    fn name(&self) -> &str {
        "bench/player"
    }

    fn price(&self) -> Option<Price> {
        Some(Price::new(1, 1))
    }

    fn reply<'a>(
        &'a self,
        prompt: &'a Prompt,
        _deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxedFuture<'a, Result<Reply, ModelError>> {
        let reply = answer(prompt).to_string();
        self.asked.lock().push(Asked {
            prompt: prompt.clone(),
            reply: reply.clone(),
        });
        let reply = Reply {
            parts: vec![Part::Text(Text::new(reply, Origin::Model))],
            stop: StopReason::EndOfTurn,
            usage: None,
            model: "player".to_owned(),
        };
        Box::pin(std::future::ready(Ok(reply)))
    }
}

/// Returns the usable elements of the screen: ids and roles, from the lines that begin with an id.
fn usable(prompt: &Prompt) -> Vec<(String, String)> {
    let words = prompt.messages.last().map(|message| message.text());
    let words = words.unwrap_or_default();
    let lines = words.lines().filter_map(|line| {
        let (id, rest) = line.trim_start().split_once(' ')?;
        let digits = id.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
        let is_id = digits.len() < id.len() && digits.parse::<u32>().is_ok();
        let role = rest.split(' ').next().unwrap_or_default();
        is_id.then(|| (id.to_owned(), role.to_owned()))
    });
    lines.collect()
}

fn answer(prompt: &Prompt) -> Value {
    let turn = usize::try_from(prompt.ordinal).unwrap_or(0);
    let usable = usable(prompt);
    let of = |roles: &[&str]| {
        let fitting = usable
            .iter()
            .filter(|(_, role)| roles.contains(&role.as_str()));
        let fitting: Vec<_> = fitting.map(|(id, _)| id.clone()).collect();
        (!fitting.is_empty()).then(|| fitting[(turn / 4) % fitting.len()].clone())
    };
    let press = || {
        of(&["button", "checkbox", "radio", "tab", "switch", "menuitem"])
            .map(|id| json!({"do": "click", "on": id}))
    };
    let write = || {
        of(&["textbox", "searchbox", "spinbutton"])
            .map(|id| json!({"do": "type_text", "on": id, "text": format!("lamp {turn}"), "replace": true}))
    };
    let find = || json!({"do": "find", "text": format!("lamp {turn}")});
    let scroll = |direction: &str| json!({"do": "scroll", "direction": direction});
    let action = match turn % 6 {
        0 => scroll("down"),
        1 | 4 => press().unwrap_or_else(find),
        2 => write().or_else(press).unwrap_or_else(find),
        3 => scroll("up"),
        _ => find(),
    };
    let memo = match turn % 4 {
        3 => json!([{
            "key": format!("page {}", turn / 4 % 3),
            "text": "the lamps of brass begin at 13,00 EUR, number 1 is in stock; two wanted",
        }]),
        _ => json!([]),
    };
    json!({
        "note": "I go on with the next control and compare what it shows with the goal.",
        "memo": memo,
        "actions": [action],
        "expects": "the list or the form shows the change",
    })
}
