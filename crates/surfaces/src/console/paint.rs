//! Colours and columns of one output stream.

use std::{os::fd::AsFd, sync::OnceLock};

use anstyle::{AnsiColor, Style};
use gyrus_text::{STYLE_MARKS, readable, width, wrap_marked};

use crate::projection::Tone;

/// Marks in the words: strong words, code, a line that is a heading or stands aside, and the words of
/// programming languages. Each begins and ends its style.
pub(super) const STRONG: char = '\u{e0f0}';
pub(super) const CODE: char = '\u{e0f1}';
pub(super) const ASIDE: char = '\u{e0f2}';
pub(super) const KEYWORD: char = '\u{e0f3}';
pub(super) const QUOTED: char = '\u{e0f4}';
pub(super) const NUMBER: char = '\u{e0f5}';

/// Columns where the output is not a terminal: lines are for programs and logs, and only bounded.
const UNBOUNDED: usize = 2_000;

/// The fewest columns that text is fitted to.
const NARROWEST: usize = 20;

/// The escape sequences of colours, without the escape character.
pub(crate) const STYLES: [&str; 10] = [
    "[0m", "[1m", "[2m", "[31m", "[32m", "[33m", "[34m", "[35m", "[36m", "[94m",
];

/// The background of the terminal, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    Light,
    Dark,
}

impl Theme {
    /// Returns the theme of this name, or else the one of a background as terminals write it into
    /// `COLORFGBG`: the numbers of two colours, at times with a word between them.
    pub fn of(named: Option<&str>, background: Option<&str>) -> Option<Self> {
        match named {
            Some("light") => return Some(Self::Light),
            Some("dark") => return Some(Self::Dark),
            _ => {}
        }
        let number: u8 = background?.rsplit(';').next()?.parse().ok()?;
        match number {
            7 | 15 => Some(Self::Light),
            0..=6 | 8 => Some(Self::Dark),
            _ => None,
        }
    }
}

/// The theme of this process's terminal, once it is known.
static THEME: OnceLock<Theme> = OnceLock::new();

/// Says once what the background of the terminal is.
pub fn set_theme(theme: Theme) {
    let _ = THEME.set(theme);
}

/// Formats texts in colours that fit one stream.
#[derive(Debug, Clone, Copy)]
pub struct Painter {
    colours: bool,
    theme: Option<Theme>,
    /// Columns of a line.
    pub columns: usize,
}

impl Painter {
    /// Creates the painter for a stream of this process; `plain` forbids colours.
    pub fn new(stream: &impl AsFd, plain: bool) -> Self {
        if !rustix::termios::isatty(stream) {
            return Self {
                colours: false,
                theme: None,
                columns: UNBOUNDED,
            };
        }
        let columns = rustix::termios::tcgetwinsize(stream)
            .ok()
            .map(|size| usize::from(size.ws_col))
            .filter(|columns| *columns > 0)
            .unwrap_or(80);
        Self {
            colours: !plain,
            theme: THEME.get().copied(),
            columns: columns.max(NARROWEST),
        }
    }

    pub(super) fn with_columns(mut self, columns: usize) -> Self {
        self.columns = columns.max(NARROWEST);
        self
    }

    /// Returns the beginning and the end of a text in a colour.
    fn colour(&self, tone: Tone) -> (String, String) {
        let style = match tone {
            _ if !self.colours => Style::new(),
            Tone::Thought if self.theme == Some(Theme::Dark) => AnsiColor::BrightBlue.on_default(),
            Tone::Thought => AnsiColor::Blue.on_default(),
            Tone::Call => AnsiColor::Green.on_default(),
            Tone::Observation if self.theme == Some(Theme::Light) => Style::new(),
            Tone::Observation => AnsiColor::Yellow.on_default(),
            Tone::Ask => AnsiColor::Magenta.on_default().bold(),
            Tone::Bad => AnsiColor::Red.on_default(),
            Tone::Strong => Style::new().bold(),
            Tone::Aside => Style::new().dimmed(),
            Tone::Plain => Style::new(),
        };
        (style.to_string(), format!("{style:#}"))
    }

    pub(super) fn has_colours(&self) -> bool {
        self.colours
    }

    /// Returns words with the colours of their marks. `open` are the marks that are open before the
    /// words, and then those after them.
    fn marked(&self, words: &str, begin: &str, open: &mut Vec<char>) -> String {
        let mut shown = String::with_capacity(words.len());
        for c in words.chars() {
            if !STYLE_MARKS.contains(&c) {
                shown.push(c);
                continue;
            }
            match open.iter().rposition(|mark| *mark == c) {
                Some(at) => drop(open.remove(at)),
                None => open.push(c),
            }
            shown.push_str("\x1b[0m");
            shown.push_str(begin);
            shown.push_str(&self.styles(open));
        }
        shown
    }

    /// Returns the output that adds `more` after `begun`, the words of the present row, wrapped at
    /// words; and the words of the row that is then the present one, if it is open. A row keeps its
    /// colour until it ends.
    pub(super) fn go_on(
        &self,
        tone: Tone,
        indent: &str,
        mark: char,
        begun: &str,
        more: &str,
    ) -> (String, String) {
        let mut open = Vec::new();
        // The marks that are open where the row goes on.
        self.marked(begun, "", &mut open);
        let columns = self.columns.saturating_sub(width(indent) + 2);
        let (begin, end) = self.colour(tone);
        let (mut shown, mut row, mut mark) = (String::new(), begun.to_owned(), mark);
        for line in more.split_inclusive('\n') {
            let words = line.trim_end_matches('\n');
            let mut rows = wrap_marked(&format!("{row}{words}"), columns);
            if !rows.first().is_some_and(|first| first.starts_with(&row)) {
                rows = wrap_marked(words, columns);
                rows.insert(0, row.clone());
            }
            for (number, text) in rows.iter().enumerate() {
                if number > 0 {
                    shown.push_str(&format!("{end}\n"));
                }
                match text.strip_prefix(&row) {
                    Some(new) if number == 0 && !row.is_empty() => {
                        shown.push_str(&self.styles(&open));
                        shown.push_str(&self.marked(new, &begin, &mut open));
                    }
                    _ if text.is_empty() => {}
                    _ => {
                        shown.push_str(&format!("{indent}{begin}{mark} {}", self.styles(&open)));
                        shown.push_str(&self.marked(text, &begin, &mut open));
                        mark = ' ';
                    }
                }
            }
            row = rows.pop().unwrap_or_default();
            if line.ends_with('\n') && !std::mem::take(&mut row).is_empty() {
                shown.push_str(&format!("{end}\n"));
            }
        }
        (shown, row)
    }

    fn styles(&self, open: &[char]) -> String {
        let is_light = self.theme == Some(Theme::Light);
        let style = |mark: &char| match *mark {
            STRONG => "\x1b[1m",
            CODE | NUMBER if is_light => "\x1b[35m",
            CODE | NUMBER => "\x1b[36m",
            KEYWORD if is_light => "\x1b[34m",
            KEYWORD => "\x1b[35m",
            QUOTED if is_light => "\x1b[36m",
            QUOTED => "\x1b[33m",
            _ => "\x1b[2m",
        };
        open.iter().map(style).collect()
    }

    /// Returns a text in its colour, and the words in it in those of their marks. `open` are the marks
    /// that are open before the text, and then those after it.
    pub(super) fn paint_marked(&self, tone: Tone, text: &str, open: &mut Vec<char>) -> String {
        let (begin, end) = self.colour(tone);
        let styles = self.styles(open);
        let words = self.marked(text, &begin, open);
        if text.is_empty() {
            return words;
        }
        let reset = if open.is_empty() { "" } else { "\x1b[0m" };
        format!("{begin}{styles}{words}{reset}{end}")
    }

    /// Returns the text in its colour, with unseen characters made visible.
    pub fn paint(&self, tone: Tone, text: &str) -> String {
        let (begin, end) = self.colour(tone);
        match &*readable(text) {
            "" => String::new(),
            text => format!("{begin}{text}{end}"),
        }
    }
}

#[cfg(test)]
impl Painter {
    /// A painter without colours for this many columns.
    pub(crate) fn plain(columns: usize) -> Self {
        Self {
            colours: false,
            theme: None,
            columns,
        }
    }

    /// A painter with colours.
    pub(crate) fn coloured() -> Self {
        Self {
            colours: true,
            theme: None,
            columns: 80,
        }
    }
}

#[cfg(test)]
mod tests {
    use gyrus_text::wrap;

    use super::*;

    #[test]
    fn words_go_on_in_their_row_and_wrap_as_if_they_had_come_at_once() {
        let painter = Painter::plain(20);
        let text = "The quick brown fox jumps over\n\n  the lazy dog, again and again\nend";
        let whole = text.lines().filter(|line| !line.is_empty());
        let whole = whole.flat_map(|line| wrap(line, 18)).enumerate();
        let whole: Vec<String> = whole
            .map(|(number, line)| format!("{} {line}", if number == 0 { '•' } else { ' ' }))
            .collect();
        let words: Vec<&str> = text.split_inclusive([' ', '\n']).collect();
        for size in 1..words.len() {
            let (mut all, mut row, mut mark) = (String::new(), String::new(), '•');
            for piece in words.chunks(size) {
                let (shown, next) = painter.go_on(Tone::Plain, "", mark, &row, &piece.concat());
                all.push_str(&shown);
                (row, mark) = (next, ' ');
            }
            let lines: Vec<&str> = all.lines().map(str::trim_end).collect();
            assert_eq!(lines, whole, "{size}");
        }
    }
}
