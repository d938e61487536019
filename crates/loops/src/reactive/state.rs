//! What the loop keeps between cycles, in place of a conversation: a memo that the model writes,
//! the last ten actions with what they did, and what a turn needs to know of the one before.

use std::collections::VecDeque;

use gyrus_contract::ActionVerdict;
use gyrus_text::shorten;
use serde::{Deserialize, Serialize};

use super::{
    stuck::{self, Stuck},
    words::{clean, quoted, tokens, within},
};

/// What a memo may have in all, in tokens.
pub(super) const MEMO_TOKENS: usize = 600;

/// How many actions are remembered.
pub(super) const LOG_LINES: usize = 10;

/// How many of them have a line of their own beside a picture, if the newest turn did not do more.
const WHOLE: usize = 2;

/// Characters of a key of the memo.
const KEY: usize = 40;

/// What the loop keeps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReactiveState {
    /// What only the run and its model know: with it the model says that the work is over.
    pub(super) token: String,
    /// The address that the run starts with was opened.
    #[serde(default)]
    pub(super) opened: bool,
    /// What the model wants to remember.
    #[serde(default)]
    pub(super) memo: Memo,
    /// The last actions.
    #[serde(default)]
    pub(super) log: Log,
    /// What the last action returned, unless all it says is that something changed; shown once.
    #[serde(default)]
    pub(super) output: Option<Output>,
    /// What the model expected to see now.
    #[serde(default)]
    pub(super) expects: String,
    /// How the last turn went.
    #[serde(default)]
    pub(super) last: LastTurn,
    /// What repeats, and what was done about it.
    #[serde(default)]
    pub(super) stuck: Stuck,
    /// Looks in a row at which the screen could not be seen.
    #[serde(default)]
    pub(super) blind: u32,
    /// It was said that there are no pictures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) told_without: bool,
    /// Why the run parks before its next turn.
    #[serde(default)]
    pub(super) parks: Option<String>,
}

/// What an action returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Output {
    /// The tool.
    pub(super) tool: String,
    /// Its words. Untrusted.
    pub(super) text: String,
}

/// What decides whether the next prompt has a picture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastTurn {
    /// An input did nothing, or nobody can tell.
    #[serde(default)]
    pub(super) had_no_effect: bool,
    /// It pointed at pixels, dragged, or asked for a picture.
    #[serde(default)]
    pub(super) needs_picture: bool,
}

/// Keys and texts, the one that was written last at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Memo(Vec<(String, String)>);

impl Memo {
    /// Writes a text under a key, in place of what stood there; an empty one forgets it. When
    /// there is too much, what was written longest ago is forgotten. Returns what was lost, in
    /// words for the model.
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

    /// Lines of a prompt.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(key, text)| format!("- {key}: {text}"))
    }

    /// Its size, estimated.
    pub(super) fn tokens(&self) -> usize {
        self.lines().map(|line| tokens(&line) + 1).sum()
    }
}

/// The last actions, newest last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Log(VecDeque<Line>);

/// One action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Line {
    /// The turn.
    pub(super) cycle: u32,
    /// What was done.
    pub(super) action: String,
    /// What came of it.
    pub(super) verdict: ActionVerdict,
    /// Why, where the verdict does not say it; a model's or a tool's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) note: String,
}

impl Log {
    /// Adds an action; the oldest is forgotten when there are too many.
    pub(super) fn add(&mut self, line: Line) {
        self.0.push_back(line);
        if self.0.len() > LOG_LINES {
            self.0.pop_front();
        }
    }

    /// Lines of a prompt.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(Line::whole)
    }

    /// The same for a prompt with a picture, where text is dear: only those of the
    /// newest turn, and two at least, have a line of their own.
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
            let short: Vec<_> = self.0.range(..older).map(Line::short).collect();
            lines.push(format!(
                "before (changed unless said): {}",
                short.join("; ")
            ));
        }
        lines.extend(self.0.range(older..).map(Line::whole));
        lines
    }
}

impl Line {
    fn whole(&self) -> String {
        let note = match self.note.is_empty() {
            true => String::new(),
            false => format!(", {}", self.note),
        };
        let (cycle, action, verdict) = (self.cycle, &self.action, verdict(self.verdict));
        format!("{cycle}. {action}: {verdict}{note}")
    }

    /// The tool and the first thing that it names, without its id, which may be gone by now.
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

/// A verdict in the words of a prompt.
pub(super) fn verdict(verdict: ActionVerdict) -> &'static str {
    match verdict {
        ActionVerdict::Changed => "changed",
        ActionVerdict::NoEffect => "no effect",
        ActionVerdict::CannotTell => "cannot tell",
        ActionVerdict::Refused => "refused",
    }
}

/// A tool's words in one short line.
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
            let line = Line {
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
        let mut log = Log::default();
        for cycle in 1..=12 {
            let note = if cycle == 12 { "\"it is covered\"" } else { "" };
            log.add(Line {
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
