//! Colours and columns of one output stream.

use std::os::fd::AsFd;

use anstyle::{AnsiColor, Style};
use gyrus_text::readable;

use crate::projection::Tone;

/// Columns where the output is not a terminal: lines are for programs and logs, and only bounded.
const UNBOUNDED: usize = 2_000;

/// The fewest columns that text is fitted to.
const NARROWEST: usize = 20;

/// The sequences that colours are made of, without the escape character at their start.
pub(crate) const STYLES: [&str; 8] = ["[0m", "[1m", "[2m", "[31m", "[32m", "[33m", "[34m", "[35m"];

/// Writes texts in colours that fit one stream.
#[derive(Debug, Clone, Copy)]
pub struct Painter {
    colours: bool,
    /// Columns of a line.
    pub columns: usize,
}

impl Painter {
    /// Creates the painter for a stream of this process; `plain` forbids colours.
    pub fn new(stream: &impl AsFd, plain: bool) -> Self {
        if !rustix::termios::isatty(stream) {
            return Self {
                colours: false,
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
            columns: columns.max(NARROWEST),
        }
    }

    /// Returns the text in its colour, with unseen characters made visible.
    pub fn paint(&self, tone: Tone, text: &str) -> String {
        let style = match tone {
            Tone::Thought => AnsiColor::Blue.on_default(),
            Tone::Call => AnsiColor::Green.on_default(),
            Tone::Observation => AnsiColor::Yellow.on_default(),
            Tone::Ask => AnsiColor::Magenta.on_default().bold(),
            Tone::Bad => AnsiColor::Red.on_default(),
            Tone::Strong => Style::new().bold(),
            Tone::Aside => Style::new().dimmed(),
            Tone::Plain => Style::new(),
        };
        let text = readable(text);
        if self.colours && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.into_owned()
        }
    }
}

#[cfg(test)]
impl Painter {
    /// A painter without colours for this many columns.
    pub(crate) fn plain(columns: usize) -> Self {
        Self {
            colours: false,
            columns,
        }
    }

    /// A painter with colours.
    pub(crate) fn coloured() -> Self {
        Self {
            colours: true,
            columns: 80,
        }
    }
}
