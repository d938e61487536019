//! Markdown as it arrives, for a terminal: marks of style stand in its words, which a painter turns into
//! colours. What is written is that of CommonMark that models write, and the tables of GitHub.

use gyrus_text::{STYLE_MARKS, width};

use super::{
    code_colours::CodeColours,
    paint::{ASIDE, CODE, STRONG},
};

/// Bytes of a line of code from which it is shown before its end, so that time does not grow with its
/// square.
const MOST_HELD: usize = 2_000;

#[derive(Debug, Default)]
pub(super) struct Markdown {
    /// The end of the text so far, which is ambiguous until more arrives.
    held: String,
    table: Vec<String>,
    in_line: bool,
    /// Number of backticks that began the fence; 0 outside of one.
    fence: usize,
    /// The colours of the fence's language, if it is known.
    code: Option<CodeColours>,
    open: Vec<char>,
}

impl Markdown {
    /// Returns the words of a piece as far as they can be understood.
    pub(super) fn take(&mut self, piece: &str) -> String {
        self.held
            .extend(piece.chars().filter(|c| !STYLE_MARKS.contains(c)));
        self.understand(false)
    }

    /// Returns the text held back, at the end of the input.
    pub(super) fn end(&mut self) -> String {
        let mut words = self.understand(true);
        words.push_str(&self.table());
        words
    }

    fn understand(&mut self, is_last: bool) -> String {
        let mut words = String::new();
        while !self.held.is_empty() {
            if !self.in_line && !self.begin_line(is_last, &mut words) {
                break;
            }
            let Some(end) = self.held.find('\n') else {
                let rest = std::mem::take(&mut self.held);
                self.held = self.inline(&rest, is_last, &mut words);
                break;
            };
            let line: String = self.held.drain(..=end).collect();
            if self.in_line {
                self.inline(line.trim_end_matches('\n'), true, &mut words);
                words.extend(self.open.drain(..).rev());
                words.push('\n');
            }
            self.in_line = false;
        }
        words
    }

    /// Understands the beginning of a line; `false` if more of it is needed.
    fn begin_line(&mut self, is_last: bool, words: &mut String) -> bool {
        let is_whole = is_last || self.held.contains('\n');
        let line = self.held.lines().next().unwrap_or_default().to_owned();
        let text = line.trim_start();
        let indent = line.len() - text.len();
        let sign = text.chars().next();
        let info = text.trim_start_matches('`');
        let ticks = text.len() - info.len();
        // A shorter fence, or one with a language, is code of the longer one around it.
        let is_fence = match self.fence {
            0 => ticks >= 3 && !info.contains('`'),
            open => ticks >= open && info.trim().is_empty(),
        };
        let may_be_more = match sign {
            None => true,
            Some(_) if self.code.is_some() => self.held.len() < MOST_HELD,
            Some('`') => ticks >= 3 || info.is_empty(),
            Some('|') => self.fence == 0,
            Some('#') => self.fence == 0 && text.trim_start_matches('#').is_empty(),
            Some('-' | '*' | '+' | '_') => self.fence == 0 && text.chars().all(|c| Some(c) == sign),
            Some(_) => false,
        };
        if may_be_more && !is_whole {
            return false;
        }
        if is_fence {
            self.fence = if self.fence == 0 { ticks } else { 0 };
            let name = info.split([' ', ',', '{']).next();
            let code = name.and_then(|name| CodeColours::named(name.trim()));
            self.code = code.filter(|_| self.fence > 0);
            self.held.drain(..line.len());
            return true;
        }
        if sign == Some('|') && self.fence == 0 {
            self.table.push(line.clone());
            self.held.drain(..line.len());
            return true;
        }
        words.push_str(&self.table());
        self.in_line = true;
        let heading = text.trim_start_matches('#');
        let hashes = text.len() - heading.len();
        let is_rule = text.len() > 2 && text.chars().all(|c| Some(c) == sign);
        let (skip, begin, mark) = if self.fence > 0 {
            (0, "  ".to_owned(), self.code.is_none().then_some(CODE))
        } else if (1..=6).contains(&hashes) && heading.starts_with(' ') {
            (indent + hashes + 1, String::new(), Some(STRONG))
        } else if matches!(sign, Some('-' | '*' | '_')) && is_rule {
            (line.len(), "─".repeat(8), None)
        } else if matches!(sign, Some('-' | '*' | '+')) && text[1..].starts_with(' ') {
            (indent + 2, format!("{}• ", &line[..indent]), None)
        } else if sign == Some('>') {
            (indent + 1, "│".to_owned(), Some(ASIDE))
        } else {
            (0, String::new(), None)
        };
        self.held.drain(..skip);
        words.push_str(&begin);
        words.extend(mark);
        self.open.extend(mark);
        true
    }

    /// Adds the words of a part of a line. Returns what is held: the beginning of a mark.
    fn inline(&mut self, part: &str, is_last: bool, words: &mut String) -> String {
        if self.fence > 0 {
            match &mut self.code {
                Some(code) => words.push_str(&code.marked(part)),
                None => words.push_str(part),
            }
            return String::new();
        }
        let mut rest = part;
        while let Some(at) = rest.find(['*', '`']) {
            words.push_str(&rest[..at]);
            rest = &rest[at..];
            let in_code = self.open.last() == Some(&CODE);
            if rest == "*" && !is_last && !in_code {
                return rest.to_owned();
            }
            let length = if rest.starts_with('`') {
                self.toggle(CODE, words);
                1
            } else if rest.starts_with("**") && !in_code {
                self.toggle(STRONG, words);
                2
            } else {
                words.push('*');
                1
            };
            rest = &rest[length..];
        }
        words.push_str(rest);
        String::new()
    }

    fn toggle(&mut self, mark: char, words: &mut String) {
        words.push(mark);
        match self.open.iter().rposition(|open| *open == mark) {
            Some(at) => drop(self.open.remove(at)),
            None => self.open.push(mark),
        }
    }

    /// Formats a table that has ended, with its columns below each other.
    fn table(&mut self) -> String {
        let rows: Vec<Vec<String>> = std::mem::take(&mut self.table)
            .iter()
            .map(|line| {
                let inner = line.trim().trim_start_matches('|');
                let inner = inner.strip_suffix('|').unwrap_or(inner);
                let cells = inner.split('|').map(|cell| {
                    let (mut cells, mut words) = (Markdown::default(), String::new());
                    cells.inline(cell.trim(), true, &mut words);
                    words.extend(cells.open.drain(..).rev());
                    words
                });
                cells.collect()
            })
            .collect();
        let is_line = |row: &Vec<String>| row.iter().all(|cell| is_dashes(cell));
        let has_head = rows.get(1).is_some_and(is_line);
        let rows = rows.into_iter().filter(|row| !is_line(row));
        let rows: Vec<Vec<String>> = rows.collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let is_shown = |c: &char| !STYLE_MARKS.contains(c);
        let shown = |cell: &String| width(&cell.chars().filter(is_shown).collect::<String>());
        let widest = |column| {
            rows.iter()
                .filter_map(|row| row.get(column))
                .map(shown)
                .max()
        };
        let widths: Vec<usize> = (0..columns)
            .map(|column| widest(column).unwrap_or(0))
            .collect();
        let mut table = String::new();
        for (number, row) in rows.iter().enumerate() {
            let mark = (has_head && number == 0).then_some(STRONG);
            let cells = row.iter().zip(&widths);
            let padded = cells.map(|(cell, width)| {
                let pad = " ".repeat(width.saturating_sub(shown(cell)));
                format!("{cell}{pad}")
            });
            let line = padded.collect::<Vec<_>>().join("  ");
            table.extend(mark);
            table.push_str(line.trim_end());
            table.extend(mark);
            table.push('\n');
        }
        table
    }
}

/// Whether a cell is of the line below a table's head.
fn is_dashes(cell: &str) -> bool {
    cell.contains('-') && cell.chars().all(|c| matches!(c, '-' | ':'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::paint::KEYWORD;

    const TEXT: &str = "# Plan\nIt is **bold**, `a**b` and 2 * 3 * 4.\n\n- one\n  * two\n> said\n---\n\
                        ```rust\nlet x = **y;\n# no heading\n```\n| a | long |\n|---|:--|\n| `x` | 1 |\n\
                        | yy |\nend **open\nnext *";

    const SHOWN: &str = "<Plan<\nIt is <bold<, >a**b> and 2 * 3 * 4.\n\n• one\n  • two\n│( said(\n────────\n  \
                         _let_ x = **y;\n  # no heading\n<a   long<\n>x>   1\nyy\nend <open<\nnext *";

    #[test]
    fn it_means_the_same_however_it_arrives() {
        let marked = |words: String| {
            words
                .replace(STRONG, "<")
                .replace(CODE, ">")
                .replace(ASIDE, "(")
                .replace(KEYWORD, "_")
        };
        for size in 1..TEXT.len() {
            let mut markdown = Markdown::default();
            let pieces = TEXT.as_bytes().chunks(size);
            let pieces = pieces.map(|piece| str::from_utf8(piece).unwrap());
            let mut words: String = pieces.map(|piece| markdown.take(piece)).collect();
            words.push_str(&markdown.end());
            assert_eq!(marked(words), SHOWN, "{size}");
        }
    }

    #[test]
    fn what_models_should_not_write_is_words() {
        for odd in [
            "\u{e0f0}x",
            "#x",
            "-x",
            "****",
            "``",
            "|",
            "```",
            "#",
            "*",
            "| |\n||",
            "```a``` b",
        ] {
            let mut markdown = Markdown::default();
            let mut words = markdown.take(odd);
            words.push_str(&markdown.end());
            assert!(words.len() <= odd.len() + 24, "{odd:?}: {words:?}");
        }
        let nested = "````md\n```rust\nlet\n```\n````\nend";
        let mut markdown = Markdown::default();
        let words = markdown.take(nested) + &markdown.end();
        let shown = words.replace(CODE, "");
        assert_eq!(shown, "  ```rust\n  let\n  ```\nend");
    }
}
