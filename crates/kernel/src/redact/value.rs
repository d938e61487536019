//! Where the value behind a name and a separator lies: it goes on to its end, whatever is in it.
//!
//! How it ends depends on how it stands: a quoted value at its closing quote, one between tags at
//! the next tag, a block at the end of its indentation, a setting at the end of its line, a word
//! at a blank or at what stands around it. Everything is decided within one line (but for blocks
//! and triple quotes, which say themselves that they go on), so a text can be redacted line by
//! line with the same result.

use std::ops::Range;

use gyrus_text::first_bytes;
use memchr::{memchr, memchr2, memrchr2};

use super::{
    Before, Piece,
    ends::{end_of_word, is_block, next_setting, quoted_bytes, unclosed},
    plausible::Shape,
};

/// Bytes of a quoted value. Like the next, it bounds what a text of nothing but names can cost.
const MAX_QUOTED_BYTES: usize = 2048;
/// Bytes of a bare value that are looked at to decide; one that goes on is taken to its end.
pub(super) const MAX_BARE_BYTES: usize = 256;
/// Bytes that may introduce a setting on its line.
const MAX_INTRODUCTION_BYTES: usize = 256;
/// Quotation marks.
const QUOTES: [char; 3] = ['"', '\'', '`'];

/// What stands before a place in its line. It is kept up as the places of a text are visited in
/// order, so that a text that is one long line is read once.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LineBefore {
    at: usize,
    /// Which of [`QUOTES`] stand open.
    open: [bool; 3],
    /// Whole lines stand before this one.
    is_later_line: bool,
}

impl LineBefore {
    /// Goes on to `end`. What stands before `settled` opens no quotation mark.
    pub(super) fn advance(&mut self, text: &str, settled: usize, end: usize) {
        let bytes = text.as_bytes();
        if self.at < settled {
            self.is_later_line |= memchr(b'\n', &bytes[self.at..settled]).is_some();
            self.open = [false; 3];
            self.at = settled;
        }
        for byte in bytes.get(self.at..end).unwrap_or_default() {
            match byte {
                b'"' => self.open[0] = !self.open[0],
                b'\'' => self.open[1] = !self.open[1],
                b'`' => self.open[2] = !self.open[2],
                b'\n' | b'\r' => {
                    self.open = [false; 3];
                    self.is_later_line |= *byte == b'\n';
                }
                _ => {}
            }
        }
        self.at = self.at.max(end);
    }
}

/// What stands before a value.
pub(super) struct Place<'a> {
    pub(super) piece: &'a Piece<'a>,
    /// Where the name begins, and where the separator ends.
    pub(super) name: usize,
    pub(super) start: usize,
    /// Where the last value before ended: nothing before that says how this one is read.
    pub(super) settled: usize,
    /// What stands before `start` in its line, as far as nothing in it is settled.
    pub(super) before: LineBefore,
    /// The separator without blanks and what closes the name.
    pub(super) separator: &'a str,
    /// `NAME=`, which shells and `.env` files read.
    pub(super) environment: bool,
}

/// A value, and how it stands there.
pub(super) type Value = (Range<usize>, Shape);

impl<'a> Place<'a> {
    /// The ways in which the value can be read, the longest first. A value that a marker cuts off
    /// is none: it was seen to already.
    pub(super) fn values(&self) -> Vec<Value> {
        let rest = self.rest();
        let line = first_bytes(rest, MAX_QUOTED_BYTES);
        let line = &line[..memchr2(b'\n', b'\r', line.as_bytes()).unwrap_or(line.len())];
        if let Some(block) = self.block(line) {
            return vec![block];
        }
        if let Some(quoted) = self.quoted(line) {
            return quoted.into_iter().collect();
        }
        if self.separator == ">" {
            let end = line.find("</");
            let value = end.map(|end| (self.at(trimmed(line, 0..end)), Shape::Quoted));
            return value.into_iter().collect();
        }
        let mut values = Vec::new();
        values.extend(self.setting(line));
        values.extend(self.word(line));
        values
    }

    /// Where a bare value ends that goes on behind what was looked at.
    pub(super) fn end_of_long(&self, from: usize) -> usize {
        let rest = &self.piece.text[from..];
        let quotes = self.open_quotes();
        let ends = |c: char| c.is_whitespace() || quotes.contains(&c) || "\\,;<>|".contains(c);
        from + rest.find(ends).unwrap_or(rest.len())
    }

    fn rest(&self) -> &'a str {
        &self.piece.text[self.start..]
    }

    fn at(&self, range: Range<usize>) -> Range<usize> {
        self.start + range.start..self.start + range.end
    }

    /// Whether a marker stands where the value would end.
    fn is_cut(&self, end: usize) -> bool {
        self.start + end == self.piece.text.len() && !self.piece.ends_text
    }

    /// Whether the name begins its line, but for what introduces a setting.
    fn begins_line(&self) -> bool {
        let text = self.piece.text;
        let from = text.ceil_char_boundary(self.name.saturating_sub(MAX_INTRODUCTION_BYTES));
        let before = &text[from..self.name];
        let line = match memrchr2(b'\n', b'\r', before.as_bytes()) {
            Some(at) => from + at + 1,
            None if from == 0 && self.piece.before != Before::Text => 0,
            None => return false,
        };
        if line < self.settled {
            return false;
        }
        let words = text[line..self.name].trim_matches([' ', '\t', '-', '+', '"', '\'', '*']);
        matches!(
            words,
            "" | "export" | "set" | "setx" | "ENV" | "ARG" | "let" | "const" | "var"
        )
    }

    /// Whether the line is one of several: of a file, and not a command that stands alone.
    fn is_line_of_file(&self, line: &str) -> bool {
        let rest = self.rest();
        self.before.is_later_line
            || rest[line.len()..].starts_with(['\n', '\r'])
            || self.piece.before == Before::LineEnd
    }

    /// Quotation marks that stand open before the value: they close what is around the value.
    fn open_quotes(&self) -> Vec<char> {
        let open = QUOTES.into_iter().zip(self.before.open);
        open.filter_map(|(quote, is_open)| is_open.then_some(quote))
            .collect()
    }

    /// A value in quotation marks; `Some(None)` if there is one that a marker cuts off.
    fn quoted(&self, line: &str) -> Option<Option<Value>> {
        let prefix = line.len()
            - line
                .trim_start_matches(['r', 'b', 'f', 'u', '@', '\\'])
                .len();
        let quote = line[prefix..]
            .chars()
            .next()
            .filter(|c| "\"'`".contains(*c))?;
        if prefix > 2 || self.open_quotes().contains(&quote) {
            return None;
        }
        let shape = match self.environment {
            true => Shape::Environment,
            false => Shape::Quoted,
        };
        let inside = prefix + 1;
        let escaped = line[..prefix].ends_with('\\');
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        if !escaped && line[prefix..].starts_with(&triple) {
            let inside = prefix + 3;
            let rest = &self.rest()[inside..];
            let rest = first_bytes(rest, MAX_QUOTED_BYTES);
            return Some(rest.find(&triple).map(|length| {
                (
                    self.at(trimmed(self.rest(), inside..inside + length)),
                    shape,
                )
            }));
        }
        if let Some(length) = quoted_bytes(&line[inside..], quote, escaped) {
            return Some(Some((self.at(inside..inside + length), shape)));
        }
        // It is not closed on its line.
        let end = line.trim_end().len();
        let is_cut = self.is_cut(line.len());
        Some((!is_cut && end > inside).then(|| (self.at(inside..end), shape)))
    }

    /// A block of YAML: `password: |`, and lines that stand further in.
    fn block(&self, line: &str) -> Option<Value> {
        if self.separator != ":" || !is_block(line) || !self.begins_line() {
            return None;
        }
        let before = &self.piece.text[..self.name];
        let own = &before[before.rfind('\n').map_or(0, |at| at + 1)..];
        let indent = own.len() - own.trim_start_matches([' ', '-']).len();
        let mut lines = line.len();
        let rest = self.rest();
        for next in rest[line.len()..].split_inclusive('\n').skip(1) {
            let inner = next.len() - next.trim_start_matches([' ', '\t']).len();
            if !next.trim().is_empty() && inner <= indent {
                break;
            }
            lines += next.len();
            if lines > MAX_QUOTED_BYTES {
                break;
            }
        }
        // The line end behind the header belongs to no line of the block.
        let newline = rest[line.len()..].find('\n').map_or(0, |at| at + 1);
        let end = (lines + newline).min(rest.len());
        (!self.is_cut(end) && newline > 0).then(|| {
            (
                self.at(trimmed(rest, line.len() + newline..end)),
                Shape::Quoted,
            )
        })
    }

    /// The rest of a line that begins with the name, without what follows a setting.
    fn setting(&self, line: &str) -> Option<Value> {
        let in_a_file = !self.environment || self.is_line_of_file(line);
        let separated = matches!(self.separator, ":" | "=" | ":=" | "?=" | "=>");
        if !separated || !in_a_file || !self.begins_line() || self.is_cut(line.len()) {
            return None;
        }
        let quotes = self.open_quotes();
        let mut end = line.find(|c| quotes.contains(&c)).unwrap_or(line.len());
        for comment in [" #", "\t#", " ;", " //", " <", "\\n", "\\r", "\\\"", "\\u"] {
            end = line[..end].find(comment).unwrap_or(end);
        }
        end = next_setting(&line[..end]).unwrap_or(end);
        let range = trimmed(line, 0..end);
        let value = line[range.clone()].trim_end_matches([',', ';']);
        let end = range.start + unclosed(value).unwrap_or(value.len());
        let value = &line[range.start..end];
        let words = value.split_whitespace().skip(1);
        let is_command = self.environment && words.clone().any(is_part_of_command);
        if value.len() > MAX_BARE_BYTES || is_command {
            return None;
        }
        let shape = match (self.environment, words.count()) {
            (true, 0) => Shape::Environment,
            (true, _) => Shape::Quoted,
            (false, _) => Shape::Line,
        };
        Some((self.at(range.start..end), shape))
    }

    /// One word, without what stands around it.
    fn word(&self, line: &str) -> Option<Value> {
        // `Bearer` and the like may stand between the separator and a bare value.
        let scheme = scheme_bytes(line);
        let bare = first_bytes(&line[scheme..], MAX_BARE_BYTES);
        let quotes = self.open_quotes();
        let end = scheme + end_of_word(bare, &quotes, self.environment);
        if self.is_cut(end) {
            return None;
        }
        if self.environment {
            return Some((self.at(0..end), Shape::Environment));
        }
        let after = &line[end..];
        let line_is_over = after.trim().is_empty() && !self.is_cut(line.len());
        let ends_line = line_is_over || after.starts_with('<') || after.starts_with("\\n");
        let shape = match self.separator {
            "" | "is" => Shape::Said,
            _ => Shape::Bare { ends_line },
        };
        let end = line[..end].trim_end_matches(['.', ':']).len();
        Some((self.at(0..end), shape))
    }
}

/// Options, paths, assignments, redirections: what follows variables in a command.
fn is_part_of_command(word: &str) -> bool {
    word.starts_with(['-', '>', '<', '|', '&', ';', '$', '('])
        || word.contains(['/', '=', '"', '\''])
}

/// A range of `text` without blanks at its ends.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let inside = &text[range.clone()];
    let start = range.start + (inside.len() - inside.trim_start().len());
    start..start + inside.trim().len()
}

/// Bytes of an authentication scheme and the blank after it.
pub(super) fn scheme_bytes(value: &str) -> usize {
    [
        "bearer ",
        "basic ",
        "token ",
        "apikey ",
        "digest ",
        "bot ",
        "oauth ",
        "negotiate ",
        "ntlm ",
        "ssws ",
        "geniekey ",
        "key ",
        "apitoken ",
        "private-token ",
    ]
    .iter()
    .find(|scheme| {
        value
            .get(..scheme.len())
            .is_some_and(|v| v.eq_ignore_ascii_case(scheme))
    })
    .map_or(0, |scheme| scheme.len())
}
