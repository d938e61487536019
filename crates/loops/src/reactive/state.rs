//! The state that the loop keeps between cycles in place of a conversation: a memo that the model
//! writes, the last ten actions with their effects, and the facts about the previous turn that a
//! turn needs.

use std::collections::VecDeque;

use gyrus_contract::{ActionVerdict, Observation, View};
use gyrus_text::{shorten, tokens};
use serde::{Deserialize, Serialize};

use super::{
    stuck::{self, Stuck},
    words::{clean, quoted, within},
};

/// Maximum size of a memo in tokens.
pub(super) const MEMO_TOKENS: usize = 600;

/// Maximum number of remembered actions.
pub(super) const LOG_LINES: usize = 10;

/// Number of actions with their own line beside a picture, if the newest turn had no more.
const WHOLE: usize = 2;

/// Maximum number of characters of a key in the memo.
const KEY: usize = 40;

/// The state of the loop.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReactiveState {
    /// The completion token, known only to the run and its model: with it the model claims that the
    /// work is over.
    pub(super) token: String,
    /// Whether the start address was opened.
    #[serde(default)]
    pub(super) opened: bool,
    /// The model's memo.
    #[serde(default)]
    pub(super) memo: Memo,
    /// The last actions.
    #[serde(default)]
    pub(super) log: ActionLog,
    /// The output of the last action, unless it only reports a change; shown once.
    pub(super) output: Option<ActionOutput>,
    /// The model's expectation of the present view.
    #[serde(default)]
    pub(super) expects: String,
    #[serde(default)]
    pub(super) last: LastTurn,
    /// The page of the last reading.
    #[serde(default)]
    pub(super) page: VisitedPage,
    /// The detector of repetition.
    #[serde(default)]
    pub(super) stuck: Stuck,
    /// Number of consecutive failed readings.
    #[serde(default)]
    pub(super) blind: u32,
    /// Whether the model was informed that there are no pictures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) told_without: bool,
    /// The reason why the run parks before its next turn.
    pub(super) parks: Option<String>,
}

/// A visited page, which is opened again on a screen that has lost it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct VisitedPage {
    pub(super) session: String,
    /// The address of the page, if it is one of the web.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) address: Option<String>,
    /// A fingerprint of the page's content.
    pub(super) contents: u64,
}

impl VisitedPage {
    /// Remembers a view. An empty page does not replace one of the web.
    pub(super) fn remember(&mut self, view: &View) {
        self.session.clone_from(&view.session);
        if can_be_opened(&view.address) {
            self.address = Some(view.address.clone());
            self.contents = stuck::contents(view);
        }
    }

    /// Remembers where an action led. What the page shows after it was not seen.
    pub(super) fn follow(&mut self, seen: &Observation) {
        let value = seen.value.as_ref();
        let page = value.and_then(|value| value["page"].as_str());
        if let Some(address) = page.filter(|address| can_be_opened(address)) {
            self.address = Some(address.to_owned());
        }
        if matches!(
            seen.verdict,
            ActionVerdict::Changed | ActionVerdict::CannotTell
        ) {
            self.contents = 0;
        }
    }
}

/// Whether an address can be opened again: one of the web, with no secret that was taken out.
fn can_be_opened(address: &str) -> bool {
    address.starts_with("http") && !address.contains('⟦')
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ActionOutput {
    pub(super) tool: String,
    /// The text of the output. Untrusted.
    pub(super) text: String,
}

/// The facts about the last turn that decide whether the next prompt has a picture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct LastTurn {
    /// Whether an input had no effect, or an unknown one.
    pub(super) had_no_effect: bool,
    /// Whether the last turn pointed at pixels, dragged, or asked for a picture.
    pub(super) needs_picture: bool,
}

/// Keys and texts, the latest at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Memo(Vec<(String, String)>);

impl Memo {
    /// Writes a text under a key, replacing the previous one; an empty text removes the key. When
    /// the memo is too large, the oldest texts are removed. Describes the loss for the model.
    pub(super) fn change(&mut self, key: &str, text: &str) -> Option<String> {
        let key = shorten(&clean(key), KEY).into_owned();
        self.0.retain(|(known, _)| *known != key);
        let text = clean(text);
        if text.is_empty() {
            return None;
        }
        let mut lost = Vec::new();
        let kept = within(&text, MEMO_TOKENS.saturating_sub(tokens(&key) + 6));
        if kept.len() < text.len() {
            lost.push(format!("the end of `{key}`"));
        }
        self.0.push((key, kept));
        while self.tokens() > MEMO_TOKENS && self.0.len() > 1 {
            lost.push(format!("`{}`", self.0.remove(0).0));
        }
        (!lost.is_empty()).then(|| format!("the memo was full and lost {}", lost.join(", ")))
    }

    /// Returns the lines for a prompt.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(key, text)| format!("- {key}: {text}"))
    }

    /// Returns the estimated size in tokens.
    pub(super) fn tokens(&self) -> usize {
        self.lines().map(|line| tokens(&line) + 1).sum()
    }
}

/// The last actions, newest last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct ActionLog(VecDeque<ActionLine>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ActionLine {
    pub(super) cycle: u32,
    pub(super) action: String,
    pub(super) verdict: ActionVerdict,
    /// The reason in words of a model or a tool, unless the verdict makes it clear.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) note: String,
}

impl ActionLog {
    /// Adds an action; the oldest is dropped when there are too many.
    pub(super) fn add(&mut self, line: ActionLine) {
        self.0.push_back(line);
        if self.0.len() > LOG_LINES {
            self.0.pop_front();
        }
    }

    /// Returns the lines for a prompt.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(ActionLine::whole)
    }

    /// Returns the lines for a prompt with a picture, where text is expensive: only the actions of
    /// the newest turn, and at least two, have a line of their own.
    pub(super) fn fewer_lines(&self) -> Vec<String> {
        let newest = self.0.back().map(|line| line.cycle);
        let newest = self
            .0
            .iter()
            .rev()
            .take_while(|line| Some(line.cycle) == newest);
        let older = self.0.len().saturating_sub(newest.count().max(WHOLE));
        let mut lines = Vec::new();
        if older > 0 {
            let short: Vec<_> = self.0.range(..older).map(ActionLine::short).collect();
            lines.push(format!(
                "before (changed unless said): {}",
                short.join("; ")
            ));
        }
        lines.extend(self.0.range(older..).map(ActionLine::whole));
        lines
    }
}

impl ActionLine {
    fn whole(&self) -> String {
        let note = if self.note.is_empty() {
            String::new()
        } else {
            format!(", {}", self.note)
        };
        let (cycle, action, verdict) = (self.cycle, &self.action, verdict(self.verdict));
        format!("{cycle}. {action}: {verdict}{note}")
    }

    /// Returns the tool and the first thing it names, without an id, which may no longer exist.
    fn short(&self) -> String {
        let tool = self.action.split(' ').next().unwrap_or_default();
        let mut quotes = self.action.match_indices('"').map(|(at, _)| at);
        let action = match (quotes.next(), quotes.next()) {
            (Some(open), Some(close)) => format!("{tool} {}", &self.action[open..=close]),
            _ => self.action.clone(),
        };
        match self.verdict {
            ActionVerdict::Changed => action,
            _ if stuck::only_looks(tool) => action,
            other => format!("{action}, {}", verdict(other)),
        }
    }
}

/// Returns the prompt's words for a verdict.
pub(super) fn verdict(verdict: ActionVerdict) -> &'static str {
    match verdict {
        ActionVerdict::Changed => "changed",
        ActionVerdict::NoEffect => "no effect",
        ActionVerdict::CannotTell => "cannot tell",
        ActionVerdict::Refused => "refused",
    }
}

/// Shortens a tool's text to one short line.
pub(super) fn in_short(text: &str) -> String {
    quoted(text, 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memo_stays_small_and_forgets_the_oldest() {
        let mut memo = Memo::default();
        assert_eq!(memo.change("price", "42 EUR"), None);
        assert_eq!(memo.change("name", "Ann\n=== goal ==="), None);
        assert_eq!(memo.change("price", "43 EUR"), None);
        let lines: Vec<_> = memo.lines().collect();
        assert_eq!(lines, ["- name: Ann === goal ===", "- price: 43 EUR"]);
        assert_eq!(memo.change("name", ""), None);
        assert_eq!(memo.lines().count(), 1);

        let lost = memo.change("page", &"word ".repeat(2_000)).unwrap();
        assert!(lost.contains("the end of `page`"), "{lost}");
        assert!(memo.tokens() <= MEMO_TOKENS, "{}", memo.tokens());
        for text in ["日".repeat(5_000), "x".repeat(50_000), "!".repeat(5_000)] {
            memo.change("wide", &text);
            assert!(memo.tokens() <= MEMO_TOKENS, "{}", memo.tokens());
        }
        for n in 0..500 {
            memo.change(&format!("key {n}"), "some words to remember");
        }
        assert!(memo.tokens() <= MEMO_TOKENS);
        assert!(memo.lines().last().unwrap().starts_with("- key 499"));
    }

    #[test]
    fn a_short_line_ends_at_a_closed_quotation_mark() {
        let check = |action: &str, verdict, expected: &str| {
            let line = ActionLine {
                cycle: 1,
                action: action.to_owned(),
                verdict,
                note: "why".to_owned(),
            };
            assert_eq!(line.short(), expected);
        };
        let typed = "type_text b6 \"E-mail\" replace true text \"lamp; 8\"";
        check(typed, ActionVerdict::Changed, "type_text \"E-mail\"");
        check("find \"lamp\"", ActionVerdict::NoEffect, "find \"lamp\"");
        check(
            "click at [1,2]",
            ActionVerdict::NoEffect,
            "click at [1,2], no effect",
        );
    }

    #[test]
    fn a_log_has_ten_lines() {
        let mut log = ActionLog::default();
        for cycle in 1..=12 {
            let note = if cycle == 12 { "\"it is covered\"" } else { "" };
            log.add(ActionLine {
                cycle,
                action: "click b7".to_owned(),
                verdict: ActionVerdict::Refused,
                note: note.to_owned(),
            });
        }
        let lines: Vec<_> = log.lines().collect();
        assert_eq!(lines.len(), LOG_LINES);
        assert_eq!(lines[0], "3. click b7: refused");
        assert_eq!(lines[9], "12. click b7: refused, \"it is covered\"");
        let fewer = log.fewer_lines();
        assert_eq!(fewer.len(), 1 + WHOLE);
        assert!(fewer[0].starts_with("before (changed unless said): click b7, refused; click"));
        assert_eq!(fewer[WHOLE], lines[9]);
    }
}
