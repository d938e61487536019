//! An inbox: a mail is found by its sender, and answered, forwarded, starred or thrown away.

use serde_json::json;

use super::{
    Deed, Sight,
    sight::{between, click, fill_and_click},
};
use crate::prompt::{Line, found};

/// Action on the mail.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Act {
    Reply(String),
    Forward(String),
    Delete,
    Star,
}

/// `Find the email by Rochella and …`, and the same in other people's words.
pub(super) fn inbox(sight: &Sight<'_>) -> Option<Deed> {
    let (by, act) = understood(sight.asked)?;
    let unnamed: Vec<&Line> = sight
        .all("generic")
        .into_iter()
        .filter(|line| line.name.is_empty() && !line.states.contains("scrolls by itself"))
        .collect();
    let fields = sight.all("textbox");
    if let Some(field) = fields.first() {
        let text = match &act {
            Act::Reply(text) | Act::Forward(text) => text,
            Act::Delete | Act::Star => return None,
        };
        // The second sign above the letter sends it.
        return Some(Deed::Do(fill_and_click(field, text, unnamed.get(1)?)));
    }
    if let Some(reply) = sight.named("Reply") {
        let next = match &act {
            Act::Reply(_) => reply,
            Act::Forward(_) => sight.named("Forward")?,
            Act::Delete => unnamed.get(1)?,
            Act::Star => unnamed.get(2)?,
        };
        return Some(Deed::Do(vec![click(next)]));
    }
    let usable: Vec<&Line> = sight.usable().collect();
    let at = usable
        .iter()
        .position(|line| line.role == "generic" && line.name.starts_with(&by));
    let Some(at) = at else {
        return Some(Deed::Do(vec![searched(sight, &by)]));
    };
    // Its signs are told where it is in view.
    if usable[at].is_away {
        return Some(Deed::Do(vec![
            json!({"do": "scroll_to", "on": usable[at].id}),
        ]));
    }
    let next = match act {
        Act::Reply(_) | Act::Forward(_) => usable[at],
        Act::Delete => usable.get(at + 1)?,
        Act::Star => usable.get(at + 2)?,
    };
    Some(Deed::Do(vec![click(next)]))
}

/// A mail that is not in the prompt: opened if a search has found it.
fn searched(sight: &Sight<'_>, by: &str) -> serde_json::Value {
    let returned = sight
        .prompt
        .returned
        .as_ref()
        .filter(|(tool, _)| tool == "find");
    let lines = returned.into_iter().flat_map(|(_, lines)| lines);
    let mail = lines
        .filter_map(|line| found(line))
        .find(|line| line.role == "generic" && line.name.starts_with(by));
    match mail {
        Some(mail) => click(&mail),
        None => json!({"do": "find", "text": by}),
    }
}

/// By whom the mail is, and what is asked for, in whatever words.
fn understood(asked: &str) -> Option<(String, Act)> {
    let known = [
        "with the text \"",
        "forward that email to ",
        "trash",
        "star ",
    ];
    let known = known.iter().any(|words| asked.contains(words));
    if let Some(by) = between(asked, "Find the email by ", " and ").filter(|_| known) {
        let act = if let Some(text) = between(asked, "with the text \"", "\"") {
            Act::Reply(text.to_owned())
        } else if let Some((_, to)) = asked.rsplit_once("forward that email to ") {
            Act::Forward(to.trim_end_matches('.').to_owned())
        } else if asked.contains("trash") {
            Act::Delete
        } else {
            Act::Star
        };
        return Some((by.to_owned(), act));
    }
    let words: Vec<&str> = asked.split_whitespace().collect();
    let name = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        word.strip_suffix("'s").unwrap_or(word).to_owned()
    };
    let named: Vec<(usize, String)> = (1..)
        .zip(words.iter().skip(1))
        .map(|(at, word)| (at, name(word)))
        .filter(|(_, word)| word.chars().next().is_some_and(char::is_uppercase))
        .collect();
    let is_to = |at: usize| matches!(words[at - 1].to_lowercase().as_str(), "to" | "with");
    let lower = asked.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if let Some(text) = between(asked, "\"", "\"") {
        let by = named.iter().find(|(_, name)| !text.contains(name.as_str()));
        return Some((by?.1.clone(), Act::Reply(text.to_owned())));
    }
    if named.len() == 1 && has(&["delete", "trash", "remove", "get rid", "discard", "erase"]) {
        return Some((named[0].1.clone(), Act::Delete));
    }
    if named.len() == 1 && has(&["star", "important", "favorite", "mark", "flag"]) {
        return Some((named[0].1.clone(), Act::Star));
    }
    let to = named.iter().find(|(at, _)| is_to(*at)).or(named.last())?;
    let by = named.iter().find(|(at, _)| at != &to.0)?;
    Some((by.1.clone(), Act::Forward(to.1.clone())))
}
