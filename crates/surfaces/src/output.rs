//! Output of the program: all of it passes here, so that nothing that others wrote can move the
//! cursor, hide, or pass for something else, even where nobody thought of it.
//!
//! Whoever prints what a person decides on makes it [`gyrus_text::visible`] before; what arrives
//! here is at least made [`readable`]. JSON is escaped, so programs get the same values.

use std::{
    borrow::Cow,
    fmt,
    fs::File,
    io::{self, IsTerminal, StdoutLock, Write},
    os::fd::{AsFd, BorrowedFd},
};

use gyrus_text::{escaped_json, readable, width, wrap};
use serde::Serialize;

use crate::{console::STYLES, error::SurfaceError};

/// Standard output, held by one writer at a time.
pub struct StandardOutput(StdoutLock<'static>);

pub fn standard() -> StandardOutput {
    StandardOutput(io::stdout().lock())
}

/// Reserves standard input and output for a protocol, out of reach of all else in this process and
/// of its child processes. Reading gives nothing from then on, and what would be printed goes to
/// standard error.
///
/// # Errors
/// Standard input or output is not open.
pub fn take_both() -> io::Result<(File, File)> {
    let input = rustix::io::fcntl_dupfd_cloexec(io::stdin(), FIRST_FREE)?;
    let output = rustix::io::fcntl_dupfd_cloexec(io::stdout(), FIRST_FREE)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok((File::from(input), File::from(output)))
}

/// Number of the first descriptor after the three standard ones.
const FIRST_FREE: i32 = 3;

impl StandardOutput {
    /// Writes text for people; used by `write!` and `writeln!`.
    pub fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        let text = text.to_string();
        let wrapped = wrapped(&text, columns_of(&self.0));
        self.0.write_all(fit(&wrapped).as_bytes())
    }

    /// Writes one line of JSON, for programs.
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), SurfaceError> {
        let line = serde_json::to_string(value).map_err(SurfaceError::Json)?;
        Ok(self.json_line(&line)?)
    }

    /// Writes a line that is JSON already.
    pub fn json_line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.0, "{}", escaped_json(line))
    }

    /// Returns the stream itself, for exact bytes to a file or a program.
    pub fn raw(&mut self) -> &mut impl Write {
        &mut self.0
    }

    /// Flushes the buffer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    /// Whether a person reads the output at a terminal.
    pub fn is_terminal(&self) -> bool {
        self.0.is_terminal()
    }
}

impl AsFd for StandardOutput {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Returns the columns of a stream; `None` if it is not a terminal.
pub fn columns_of(stream: &(impl AsFd + IsTerminal)) -> Option<usize> {
    let (columns, _) = size_of(stream)?;
    (columns > 0).then_some(columns)
}

/// Returns the rows of a stream; `None` if it is not a terminal.
pub fn rows_of(stream: &(impl AsFd + IsTerminal)) -> Option<usize> {
    let (_, rows) = size_of(stream)?;
    (rows > 0).then_some(rows)
}

fn size_of(stream: &(impl AsFd + IsTerminal)) -> Option<(usize, usize)> {
    if !stream.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    Some((usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// Returns the text with long lines broken at words; what follows stands below the beginning of its
/// line.
pub fn wrapped(text: &str, columns: Option<usize>) -> Cow<'_, str> {
    let Some(columns) = columns else {
        return Cow::Borrowed(text);
    };
    let mut whole = String::new();
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        let (style, inner, reset) = painted(line);
        if inner.contains('\x1b') || width(&readable(inner.trim_end())) <= columns {
            whole.extend([line, end]);
            continue;
        }
        let words = inner.trim_start_matches(' ');
        let indent = (inner.len() - words.len()).min(columns / 2);
        let lines = wrap(words, columns - indent).into_iter();
        let lines = lines.map(|line| format!("{style}{}{line}{reset}", " ".repeat(indent)));
        whole.push_str(&lines.collect::<Vec<_>>().join("\n"));
        whole.push_str(end);
    }
    Cow::Owned(whole)
}

/// Splits a line painted in one colour into the colour, the text, and the end of the colour.
fn painted(line: &str) -> (&str, &str, &str) {
    let mut inner = line;
    while let Some(rest) = inner.strip_prefix('\x1b')
        && let Some(style) = STYLES.iter().find(|style| rest.starts_with(**style))
    {
        inner = &rest[style.len()..];
    }
    let (style, reset) = (&line[..line.len() - inner.len()], "\x1b[0m");
    match inner.strip_suffix(reset) {
        Some(text) => (style, text, reset),
        None => ("", line, ""),
    }
}

/// The text as a terminal may have it: readable, and with no sequences but our own colours.
pub fn fit(text: &str) -> Cow<'_, str> {
    let Some((before, mut rest)) = text.split_once('\x1b') else {
        return readable(text);
    };
    let mut fit = readable(before).into_owned();
    loop {
        let style = STYLES.iter().find(|style| rest.starts_with(**style));
        match style {
            Some(style) => {
                fit.push('\x1b');
                fit.push_str(style);
                rest = &rest[style.len()..];
            }
            None => fit.push('␛'),
        }
        let Some((before, after)) = rest.split_once('\x1b') else {
            fit.push_str(&readable(rest));
            return Cow::Owned(fit);
        };
        fit.push_str(&readable(before));
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{console::Painter, projection::Tone};

    #[test]
    fn long_lines_break_at_words() {
        for (text, shown) in [
            ("a short one\n", "a short one\n"),
            ("one two three four\nfive\n", "one two\nthree four\nfive\n"),
            ("  hint: one two\n", "  hint: one\n  two\n"),
            (
                "\x1b[1mone two three four\x1b[0m\n",
                "\x1b[1mone two\x1b[0m\n\x1b[1mthree four\x1b[0m\n",
            ),
            ("日本語 日本語です\n", "日本語\n日本語です\n"),
            ("abcdefghijklmnop", "abcdefghijk\nlmnop"),
        ] {
            assert_eq!(wrapped(text, Some(11)), shown);
            assert_eq!(wrapped(text, None), text);
        }
    }

    #[test]
    fn only_our_own_colours_pass() {
        let painter = Painter::coloured();
        for tone in [
            Tone::Thought,
            Tone::Call,
            Tone::Observation,
            Tone::Ask,
            Tone::Bad,
            Tone::Strong,
            Tone::Aside,
            Tone::Plain,
        ] {
            let text = painter.paint(tone, "some text");
            assert_eq!(fit(&text), text);
        }
        for (text, shown) in [
            ("plain ❤️\n", "plain ❤️\n"),
            ("\x1b[2J\x1b[8mx\x1b[31my", "␛[2J␛[8mx\x1b[31my"),
            ("\x1b", "␛"),
            (
                "a\u{9b}31m\u{202e}\x1b]0;t\x07",
                "a<U+009B>31m<U+202E>␛]0;t␇",
            ),
        ] {
            assert_eq!(fit(text), shown);
        }
    }
}
