//! Colours and columns of one output stream.

use std::{io::IsTerminal, os::fd::AsFd};

use anstyle::{AnsiColor, Style};

/// Columns of what is no terminal: lines are for programs and logs, and only bounded.
const UNBOUNDED: usize = 2_000;

/// No terminal is narrower, or the text is unreadable anyway.
const NARROWEST: usize = 20;

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
    pub(crate) fn new(stream: &(impl IsTerminal + AsFd), plain: bool) -> Self {
        if !stream.is_terminal() {
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

    /// The text in its colour.
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
        if self.colours && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
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
}
