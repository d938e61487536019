//! The line in which a person types while a run works.

use gyrus_text::{one_line, width};

use super::paint::Painter;
use crate::{keys::Edit, projection::Tone};

const PROMPT: &str = "❯ ";

/// A text that is being typed, with a cursor.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct InputLine {
    text: String,
    /// In bytes.
    cursor: usize,
}

impl InputLine {
    /// Takes the text; an empty one stays.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(self).text
    }

    /// Changes the text or moves the cursor.
    pub(super) fn edit(&mut self, key: Edit) {
        let (before, after) = self.text.split_at(self.cursor);
        let to = match &key {
            Edit::Left | Edit::Backspace => {
                before.char_indices().next_back().map_or(0, |(at, _)| at)
            }
            Edit::Right | Edit::Delete => {
                self.cursor + after.chars().next().map_or(0, char::len_utf8)
            }
            Edit::WordLeft | Edit::EraseWord => {
                let words = before.trim_end();
                let space = words.char_indices().rfind(|(_, c)| c.is_whitespace());
                space.map_or(0, |(at, c)| at + c.len_utf8())
            }
            Edit::WordRight => {
                let words = after.trim_start();
                let end = words.find(char::is_whitespace).unwrap_or(words.len());
                self.text.len() - words.len() + end
            }
            Edit::Home | Edit::EraseBefore => 0,
            Edit::End | Edit::EraseAfter => self.text.len(),
            Edit::Text(_) => self.cursor,
        };
        let range = to.min(self.cursor)..to.max(self.cursor);
        match key {
            Edit::Text(text) => {
                self.text.insert_str(self.cursor, &text);
                self.cursor += text.len();
            }
            Edit::Backspace
            | Edit::Delete
            | Edit::EraseWord
            | Edit::EraseBefore
            | Edit::EraseAfter => {
                self.text.drain(range.clone());
                self.cursor = range.start;
            }
            Edit::Left
            | Edit::Right
            | Edit::WordLeft
            | Edit::WordRight
            | Edit::Home
            | Edit::End => {
                self.cursor = to;
            }
        }
    }

    /// Returns the line for a terminal, and the column of the cursor in it. Of a long text the part around
    /// the cursor is shown, of none the hint.
    pub(super) fn shown(&self, painter: &Painter, hint: &str) -> (String, usize) {
        let prompt = painter.paint(Tone::Strong, PROMPT);
        let columns = painter.columns.saturating_sub(width(PROMPT) + 1);
        if self.text.is_empty() {
            let hint = gyrus_text::clip(hint, columns);
            let hint = painter.paint(Tone::Aside, &hint);
            return (format!("{prompt}{hint}"), width(PROMPT));
        }
        let (before, after) = self.text.split_at(self.cursor);
        let (before, after) = (one_line(before), one_line(after));
        let mut start = 0;
        while width(&before[start..]) > columns {
            start += before[start..].chars().next().map_or(1, char::len_utf8);
        }
        let mut line = before[start..].to_owned();
        let cursor = width(PROMPT) + width(&line);
        for c in after.chars() {
            line.push(c);
            if width(&line) > columns {
                line.pop();
                break;
            }
        }
        (format!("{prompt}{line}"), cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_edits_as_lines_do() {
        let text = |text: &str| Edit::Text(text.to_owned());
        let mut line = InputLine::default();
        for (key, shown, cursor) in [
            (text("one two drei"), "❯ one two drei", 14),
            (Edit::WordLeft, "❯ one two drei", 10),
            (Edit::EraseAfter, "❯ one two ", 10),
            (text("日"), "❯ one two 日", 12),
            (Edit::Left, "❯ one two 日", 10),
            (Edit::Delete, "❯ one two ", 10),
            (Edit::EraseWord, "❯ one ", 6),
            (Edit::Home, "❯ one ", 2),
            (Edit::Left, "❯ one ", 2),
            (Edit::WordRight, "❯ one ", 5),
            (text("\nx"), "❯ one⏎x ", 7),
            (Edit::EraseBefore, "❯  ", 2),
            (Edit::End, "❯  ", 3),
            (text("0123456789ABCDEFGHIJ"), "❯ 456789ABCDEFGHIJ", 18),
            (Edit::Home, "❯  0123456789ABCDEF", 2),
        ] {
            line.edit(key.clone());
            let (text, at) = line.shown(&Painter::plain(20), "");
            assert_eq!((text.as_str(), at), (shown, cursor), "{key:?}");
        }
    }
}
