//! The line in which a person types while a run works.

use gyrus_text::{one_line, width};

use super::paint::Painter;
use crate::{keys::LineEdit, projection::Tone};

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
    pub(super) fn edit(&mut self, key: LineEdit) {
        let (before, after) = self.text.split_at(self.cursor);
        let to = match &key {
            LineEdit::Left | LineEdit::Backspace => {
                before.char_indices().next_back().map_or(0, |(at, _)| at)
            }
            LineEdit::Right | LineEdit::Delete => {
                self.cursor + after.chars().next().map_or(0, char::len_utf8)
            }
            LineEdit::WordLeft | LineEdit::EraseWord => {
                let words = before.trim_end();
                let space = words.char_indices().rfind(|(_, c)| c.is_whitespace());
                space.map_or(0, |(at, c)| at + c.len_utf8())
            }
            LineEdit::WordRight => {
                let words = after.trim_start();
                let end = words.find(char::is_whitespace).unwrap_or(words.len());
                self.text.len() - words.len() + end
            }
            LineEdit::Home | LineEdit::EraseBefore => 0,
            LineEdit::End | LineEdit::EraseAfter => self.text.len(),
            LineEdit::Text(_) => self.cursor,
        };
        let range = to.min(self.cursor)..to.max(self.cursor);
        match key {
            LineEdit::Text(text) => {
                self.text.insert_str(self.cursor, &text);
                self.cursor += text.len();
            }
            LineEdit::Backspace
            | LineEdit::Delete
            | LineEdit::EraseWord
            | LineEdit::EraseBefore
            | LineEdit::EraseAfter => {
                self.text.drain(range.clone());
                self.cursor = range.start;
            }
            LineEdit::Left
            | LineEdit::Right
            | LineEdit::WordLeft
            | LineEdit::WordRight
            | LineEdit::Home
            | LineEdit::End => {
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
        let mut used = 0;
        let mut fits = |(at, c): (usize, char)| {
            used += width(c.encode_utf8(&mut [0; 4]));
            (used <= columns).then_some((at, c))
        };
        let start = before.char_indices().rev().map_while(&mut fits).last();
        let end = after.char_indices().map_while(&mut fits).last();
        let before = start.map_or("", |(at, _)| &before[at..]);
        let after = end.map_or("", |(at, c)| &after[..at + c.len_utf8()]);
        let (line, cursor) = (format!("{before}{after}"), width(PROMPT) + width(before));
        (format!("{prompt}{line}"), cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_edits_as_lines_do() {
        let text = |text: &str| LineEdit::Text(text.to_owned());
        let mut line = InputLine::default();
        for (key, shown, cursor) in [
            (text("one two drei"), "❯ one two drei", 14),
            (LineEdit::WordLeft, "❯ one two drei", 10),
            (LineEdit::EraseAfter, "❯ one two ", 10),
            (text("日"), "❯ one two 日", 12),
            (LineEdit::Left, "❯ one two 日", 10),
            (LineEdit::Delete, "❯ one two ", 10),
            (LineEdit::EraseWord, "❯ one ", 6),
            (LineEdit::Home, "❯ one ", 2),
            (LineEdit::Left, "❯ one ", 2),
            (LineEdit::WordRight, "❯ one ", 5),
            (text("\nx"), "❯ one⏎x ", 7),
            (LineEdit::EraseBefore, "❯  ", 2),
            (LineEdit::End, "❯  ", 3),
            (text("0123456789ABCDEFGHIJ"), "❯ 3456789ABCDEFGHIJ", 19),
            (LineEdit::Home, "❯  0123456789ABCDEF", 2),
        ] {
            line.edit(key.clone());
            let (text, at) = line.shown(&Painter::plain(20), "");
            assert_eq!((text.as_str(), at), (shown, cursor), "{key:?}");
        }
    }
}
