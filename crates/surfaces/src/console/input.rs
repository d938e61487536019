//! A text that a person types, in the rows in which it stands at the bottom of the terminal.

use gyrus_text::{counted, one_line, width};

use super::paint::Painter;
use crate::{keys::LineEdit, projection::Tone};

const PROMPT: &str = "❯ ";

/// Prefix of continuation rows.
const GOES_ON: &str = "  ";

/// Maximum number of shown rows of a text, those around the cursor.
const MOST_ROWS: usize = 8;

/// The first of the characters that replace folded pieces of a text; Unicode gives them no meaning.
const PIECE: char = '\u{e000}';

/// Maximum number of folded pieces of a text.
const MOST_PIECES: usize = 256;

/// Maximum number of characters and of lines of a pasted text that is shown in full.
const LONGEST_SHOWN: (usize, usize) = (800, 6);

/// A text that is being typed, with a cursor.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct InputLine {
    text: String,
    /// The position of the cursor, in bytes.
    cursor: usize,
    /// Long pasted pieces; each stands in the text as one character.
    pieces: Vec<String>,
}

/// Rows of the terminal, with the position of the cursor: row and column.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TerminalRows {
    pub(super) lines: Vec<String>,
    pub(super) cursor: (usize, usize),
}

impl InputLine {
    /// Creates an input line with a text, and the cursor at its end.
    pub(super) fn of(text: &str) -> Self {
        let mut line = Self::default();
        line.edit(LineEdit::Text(text.to_owned()));
        line
    }

    /// Returns and clears the text; an empty one is left.
    pub(super) fn take(&mut self) -> String {
        let line = std::mem::take(self);
        let mut whole = String::with_capacity(line.text.len());
        for c in line.text.chars() {
            match line.piece(c) {
                Some(piece) => whole.push_str(piece),
                None => whole.push(c),
            }
        }
        whole
    }

    fn piece(&self, c: char) -> Option<&String> {
        self.pieces.get(piece_number(c)?)
    }

    /// Returns the text as typed, with one character for each folded piece.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn before(&self) -> &str {
        &self.text[..self.cursor]
    }

    pub(super) fn replace_before(&mut self, from: usize, words: &str) {
        self.text.replace_range(from..self.cursor, words);
        self.cursor = from + words.len();
    }

    fn folded(&mut self, text: &str) -> String {
        let is_piece = |c: &char| (PIECE..='\u{e0ff}').contains(c);
        let text: String = text.chars().filter(|c| !is_piece(c)).collect();
        let (characters, lines) = LONGEST_SHOWN;
        let is_long = text.len() > characters || text.lines().count() > lines;
        // A very long text is pasted in pieces.
        let before = self.before().chars().next_back();
        let before = before.and_then(piece_number);
        if let Some(piece) = before.and_then(|number| self.pieces.get_mut(number))
            && is_long
        {
            piece.push_str(&text);
            return String::new();
        }
        let number = u32::try_from(self.pieces.len()).unwrap_or(u32::MAX);
        let sign = u32::from(PIECE)
            .checked_add(number)
            .and_then(char::from_u32);
        match sign.filter(|_| is_long && self.pieces.len() < MOST_PIECES) {
            Some(sign) => {
                self.pieces.push(text);
                sign.to_string()
            }
            None => text,
        }
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
                let text = self.folded(&text);
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

    fn sign(&self, c: char) -> String {
        match self.piece(c) {
            Some(piece) => format!("[pasted {}]", counted(piece.lines().count(), "line")),
            None => one_line(c.encode_utf8(&mut [0; 4])).into_owned(),
        }
    }

    /// Returns the rows for a terminal. Of a long text those around the cursor are shown, of none the hint.
    pub(super) fn rows(&self, painter: &Painter, hint: &str) -> TerminalRows {
        let prompt = painter.paint(Tone::Strong, PROMPT);
        let columns = painter.columns.saturating_sub(width(PROMPT) + 1).max(2);
        if self.text.is_empty() {
            let hint = painter.paint(Tone::Aside, &gyrus_text::clip(hint, columns));
            return TerminalRows {
                lines: vec![format!("{prompt}{hint}")],
                cursor: (0, width(PROMPT)),
            };
        }
        let (mut rows, mut used, mut cursor) = (vec![String::new()], 0, (0, 0));
        for (at, c) in self.text.char_indices() {
            let sign = if c == '\n' {
                String::new()
            } else {
                self.sign(c)
            };
            if c != '\n' && used + width(&sign) > columns {
                rows.push(String::new());
                used = 0;
            }
            if at == self.cursor {
                cursor = (rows.len() - 1, used);
            }
            used += width(&sign);
            if let Some(row) = rows.last_mut() {
                row.push_str(&sign);
            }
            if c == '\n' {
                rows.push(String::new());
                used = 0;
            }
        }
        if self.cursor == self.text.len() {
            cursor = (rows.len() - 1, used);
        }
        let first = (cursor.0 + 1).saturating_sub(MOST_ROWS);
        let shown = rows.into_iter().enumerate().skip(first).take(MOST_ROWS);
        let lines = shown.map(|(number, row)| match number {
            0 => format!("{prompt}{row}"),
            _ => format!("{GOES_ON}{row}"),
        });
        TerminalRows {
            lines: lines.collect(),
            cursor: (cursor.0 - first, width(PROMPT) + cursor.1),
        }
    }
}

fn piece_number(c: char) -> Option<usize> {
    let number = u32::from(c).checked_sub(u32::from(PIECE))?;
    usize::try_from(number).ok()
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
            (LineEdit::EraseBefore, "❯  ", 2),
            (LineEdit::End, "❯  ", 3),
        ] {
            line.edit(key.clone());
            let rows = line.rows(&Painter::plain(20), "");
            assert_eq!(
                (rows.lines.concat().as_str(), rows.cursor),
                (shown, (0, cursor)),
                "{key:?}"
            );
        }
    }

    #[test]
    fn it_goes_on_in_further_rows() {
        let mut line = InputLine::of("0123456789ABCDEFGHIJ\nx日");
        let rows = |line: &InputLine| line.rows(&Painter::plain(20), "");
        let lines = ["❯ 0123456789ABCDEFG", "  HIJ", "  x日"].map(str::to_owned);
        assert_eq!(rows(&line).lines, lines);
        assert_eq!(rows(&line).cursor, (2, 5));
        line.edit(LineEdit::Home);
        assert_eq!(rows(&line).cursor, (0, 2));
        // Of many rows those around the cursor are shown.
        let many = InputLine::of(&"y\n".repeat(6)).text().repeat(3);
        let shown = rows(&InputLine {
            cursor: many.len(),
            text: many,
            pieces: Vec::new(),
        });
        assert_eq!(
            (shown.lines.len(), shown.cursor),
            (MOST_ROWS, (MOST_ROWS - 1, 2))
        );
    }

    #[test]
    fn a_long_text_that_is_pasted_is_folded() {
        let mut line = InputLine::of("see ");
        let long = "one line\n".repeat(40);
        line.edit(LineEdit::Text(long.clone()));
        line.edit(LineEdit::Text(" \u{e000}?".to_owned()));
        let rows = line.rows(&Painter::plain(60), "");
        assert_eq!(rows.lines, ["❯ see [pasted 40 lines] ?"]);
        assert_eq!(line.take(), format!("see {long} ?"));
        assert_eq!(line, InputLine::default());
    }
}
