//! Colours and columns of one output stream.

use std::os::fd::AsFd;

use anstyle::{AnsiColor, Style};
use gyrus_text::readable;

/// Columns of what is no terminal: lines are for programs and logs, and only bounded.
const UNBOUNDED: usize = 2_000;

/// No terminal is narrower, or the text is unreadable anyway.
const NARROWEST: usize = 20;

/// The sequences that colours are made of, without the escape character at their start.
pub(crate) const STYLES: [&str; 8] = ["[0m", "[1m", "[2m", "[31m", "[32m", "[33m", "[34m", "[35m"];

/// What a piece of text is; it decides the colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// The model's thinking: blue.
    Thought,
    /// A tool call: green.
    Call,
    /// What came back: yellow.
    Observation,
    /// A question to the person: magenta.
    Ask,
    /// Something failed or is dangerous: red.
    Bad,
    /// A heading: bold.
    Strong,
    /// What one may skip: dim.
    Aside,
    /// Everything else.
    Plain,
}

/// How to write to one stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Painter {
    colours: bool,
    /// Columns of a line.
    pub(crate) columns: usize,
}

impl Painter {
    /// For a stream of this process; `plain` forbids colours.
    pub(crate) fn new(stream: &impl AsFd, plain: bool) -> Self {
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

    /// The text, readable, in its colour.
    pub(crate) fn paint(&self, paint: Paint, text: &str) -> String {
        let style = match paint {
            Paint::Thought => AnsiColor::Blue.on_default(),
            Paint::Call => AnsiColor::Green.on_default(),
            Paint::Observation => AnsiColor::Yellow.on_default(),
            Paint::Ask => AnsiColor::Magenta.on_default().bold(),
            Paint::Bad => AnsiColor::Red.on_default(),
            Paint::Strong => Style::new().bold(),
            Paint::Aside => Style::new().dimmed(),
            Paint::Plain => Style::new(),
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
impl Paint {
    pub(crate) const ALL: [Self; 8] = [
        Self::Thought,
        Self::Call,
        Self::Observation,
        Self::Ask,
        Self::Bad,
        Self::Strong,
        Self::Aside,
        Self::Plain,
    ];
}

#[cfg(test)]
impl Painter {
    /// Without colours, as wide as it says.
    pub(crate) fn plain(columns: usize) -> Self {
        Self {
            colours: false,
            columns,
        }
    }

    /// With colours.
    pub(crate) fn coloured() -> Self {
        Self {
            colours: true,
            columns: 80,
        }
    }
}
