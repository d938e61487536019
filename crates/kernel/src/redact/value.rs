//! The range of the value behind a name and a separator, to its end.
//!
//! The end depends on the syntax: a quoted value ends at its closing quote, one between tags at the
//! next tag, a block at the end of its indentation, a setting at the end of its line, a word at
//! white space or at what encloses it. Everything is decided within one line (except for blocks and
//! triple quotes, which announce themselves that they continue), so a text can be redacted line by
//! line with the same result.

use std::ops::Range;

use gyrus_text::first_bytes;
use memchr::{memchr, memchr2, memrchr2};

use super::{
    ends::{end_of_word, is_block, next_setting, quoted_bytes, unclosed},
    pass::{FreeText, TextBefore},
    plausible::ValueSyntax,
};

/// Maximum length of a quoted value in bytes. Like the next, it bounds the cost of a text that
/// consists of names.
const MAX_QUOTED_BYTES: usize = 2048;
/// Number of bytes of a bare value that decide about it; one that continues is taken to its end.
pub(super) const MAX_BARE_BYTES: usize = 256;
/// Maximum number of bytes that may introduce a setting on its line.
const MAX_INTRODUCTION_BYTES: usize = 256;
/// Quotation marks.
const QUOTES: [char; 3] = ['"', '\'', '`'];

/// The text before a position in its line. It is updated as the positions of a text are visited in
/// order, so that a text that is one long line is read once.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LineBefore {
    at: usize,
    /// Whether each of the [`QUOTES`] is open.
    open: [bool; 3],
    /// Whether the line is not the first of the text.
    is_later_line: bool,
}

impl LineBefore {
    /// Advances to `end`. Text before `settled` opens no quotation mark.
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

/// The position of a value, and the text before it.
pub(super) struct ValuePlace<'a> {
    pub(super) piece: &'a FreeText<'a>,
    /// The start of the name.
    pub(super) name: usize,
    pub(super) start: usize,
    /// The end of the previous value: nothing before it affects this one.
    pub(super) settled: usize,
    /// The unsettled text before `start` in its line.
    pub(super) before: LineBefore,
    /// The separator, without white space and the end of the name.
    pub(super) separator: &'a str,
    /// Whether the name is followed by `=` alone, as in shells and `.env` files.
    pub(super) environment: bool,
}

pub(super) type ValueRange = (Range<usize>, ValueSyntax);

impl<'a> ValuePlace<'a> {
    /// Returns the possible readings of the value, the longest first. A value that a marker cuts
    /// off is left out, because it is settled already.
    pub(super) fn values(&self) -> Vec<ValueRange> {
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
            let value = end.map(|end| (self.at(trimmed(line, 0..end)), ValueSyntax::Quoted));
            return value.into_iter().collect();
        }
        let mut values = Vec::new();
        values.extend(self.setting(line));
        values.extend(self.word(line));
        values
    }

    /// Returns the end of a bare value that continues behind the bytes that decided about it.
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

    /// Whether a marker begins where the value would end.
    fn is_cut(&self, end: usize) -> bool {
        self.start + end == self.piece.text.len() && !self.piece.ends_text
    }

    /// Whether the name begins its line, apart from an introduction of the setting.
    fn begins_line(&self) -> bool {
        let text = self.piece.text;
        let from = text.ceil_char_boundary(self.name.saturating_sub(MAX_INTRODUCTION_BYTES));
        let before = &text[from..self.name];
        let line = match memrchr2(b'\n', b'\r', before.as_bytes()) {
            Some(at) => from + at + 1,
            None if from == 0 && self.piece.before != TextBefore::Text => 0,
            None => return false,
        };
        if line < self.settled {
            return false;
        }
        introduces_setting(&text[line..self.name])
    }

    /// Whether the line is one of several: part of a file, not a single command.
    fn is_line_of_file(&self, line: &str) -> bool {
        let rest = self.rest();
        self.before.is_later_line
            || rest[line.len()..].starts_with(['\n', '\r'])
            || self.piece.before == TextBefore::LineEnd
    }

    /// Returns the quotation marks that are open before the value: they close what encloses the
    /// value.
    fn open_quotes(&self) -> Vec<char> {
        let open = QUOTES.into_iter().zip(self.before.open);
        open.filter_map(|(quote, is_open)| is_open.then_some(quote))
            .collect()
    }

    /// Returns a value in quotation marks; `Some(None)` if there is one that a marker cuts off.
    fn quoted(&self, line: &str) -> Option<Option<ValueRange>> {
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
        let shape = if self.environment {
            ValueSyntax::Environment
        } else {
            ValueSyntax::Quoted
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

    /// Returns a YAML block: `password: |`, and indented lines.
    fn block(&self, line: &str) -> Option<ValueRange> {
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
        // The line end behind the header belongs to none of the block's lines.
        let newline = rest[line.len()..].find('\n').map_or(0, |at| at + 1);
        let end = (lines + newline).min(rest.len());
        (!self.is_cut(end) && newline > 0).then(|| {
            (
                self.at(trimmed(rest, line.len() + newline..end)),
                ValueSyntax::Quoted,
            )
        })
    }

    /// Returns the value of a setting: the rest of a line that begins with its name.
    fn setting(&self, line: &str) -> Option<ValueRange> {
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
            (true, 0) => ValueSyntax::Environment,
            (true, _) => ValueSyntax::Quoted,
            (false, _) => ValueSyntax::Line,
        };
        Some((self.at(range.start..end), shape))
    }

    /// Returns one word, without quotation marks or brackets around it.
    fn word(&self, line: &str) -> Option<ValueRange> {
        // An authentication scheme like `Bearer` may stand between the separator and a bare value.
        let scheme = scheme_bytes(line);
        let bare = first_bytes(&line[scheme..], MAX_BARE_BYTES);
        let quotes = self.open_quotes();
        let end = scheme + end_of_word(bare, &quotes, self.environment);
        if self.is_cut(end) {
            return None;
        }
        if self.environment {
            return Some((self.at(0..end), ValueSyntax::Environment));
        }
        let after = &line[end..];
        let line_is_over = after.trim().is_empty() && !self.is_cut(line.len());
        let ends_line = line_is_over || after.starts_with('<') || after.starts_with("\\n");
        let shape = match self.separator {
            "" | "is" => ValueSyntax::Said,
            _ => ValueSyntax::Bare { ends_line },
        };
        let end = line[..end].trim_end_matches(['.', ':']).len();
        Some((self.at(0..end), shape))
    }
}

/// Whether the beginning of a line may precede the name of a setting.
pub(super) fn introduces_setting(words: &str) -> bool {
    matches!(
        words.trim_matches([' ', '\t', '-', '+', '"', '\'', '*']),
        "" | "export" | "set" | "setx" | "ENV" | "ARG" | "let" | "const" | "var"
    )
}

/// Whether a word is part of a command that follows variables: an option, a path, an assignment, a
/// redirection.
fn is_part_of_command(word: &str) -> bool {
    word.starts_with(['-', '>', '<', '|', '&', ';', '$', '('])
        || word.contains(['/', '=', '"', '\''])
}

/// Returns a range of `text` without white space at its ends.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let inside = &text[range.clone()];
    let start = range.start + (inside.len() - inside.trim_start().len());
    start..start + inside.trim().len()
}

/// Returns the length in bytes of an authentication scheme and the space after it.
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
