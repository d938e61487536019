//! The bottom of the screen: a row whose words may go on, and below it the lines that stay there, as the
//! status and the line in which a person types. Everything else is written above those.

use std::io::{self, Write as _};

use gyrus_text::width;
use parking_lot::{Mutex, MutexGuard};

use super::debug_log;
use crate::{error::SurfaceError, output};

/// The sequence that resets colours.
const RESET: &str = "\x1b[0m";

/// An unfinished row, below which other text begins.
struct OpenRow {
    columns: usize,
    /// The sequence that began the row's colour, or an empty text.
    colour: String,
}

struct Bottom {
    row: Option<OpenRow>,
    /// The lines that stay below everything else.
    lines: Vec<String>,
    /// Row and column of the cursor among the lines, if a person types there. Then they come back
    /// by themselves whenever something was written.
    cursor: Option<(usize, usize)>,
    is_shown: bool,
}

static BOTTOM: Mutex<Bottom> = Mutex::new(Bottom {
    row: None,
    lines: Vec::new(),
    cursor: None,
    is_shown: false,
});

fn bottom() -> MutexGuard<'static, Bottom> {
    BOTTOM.lock()
}

impl Bottom {
    /// Returns the escape sequence that erases the lines and puts the cursor behind the last text.
    fn hide(&mut self) -> String {
        if !std::mem::take(&mut self.is_shown) {
            return String::new();
        }
        let last = self.lines.len().saturating_sub(1);
        let row = self.cursor.map_or(last, |(row, _)| row);
        let above = row + usize::from(self.row.is_some());
        let mut out = match above {
            0 => "\r".to_owned(),
            above => format!("\r\x1b[{above}A"),
        };
        if let Some(row) = self.row.as_ref().filter(|row| row.columns > 0) {
            out.push_str(&format!("\x1b[{}C", row.columns));
        }
        out.push_str(if above == 0 && last == 0 {
            "\x1b[K"
        } else {
            "\x1b[J"
        });
        out.push_str(self.row.as_ref().map_or("", |row| &row.colour));
        out
    }

    /// Returns the sequence to the line below the row that is open, if one is.
    fn below_row(&self) -> &'static str {
        match &self.row {
            None => "",
            Some(row) if row.colour.is_empty() => "\n",
            Some(_) => "\x1b[0m\n",
        }
    }

    /// Returns the escape sequence that draws the lines below the text.
    fn show(&mut self) -> String {
        if self.lines.is_empty() {
            return String::new();
        }
        self.is_shown = true;
        let last = self.lines.len() - 1;
        let cursor = self.cursor.map(|(row, column)| match last - row {
            0 => format!("\r\x1b[{column}C"),
            up => format!("\x1b[{up}A\r\x1b[{column}C"),
        });
        format!(
            "{}{}{}",
            self.below_row(),
            self.lines.join("\n"),
            cursor.unwrap_or_default()
        )
    }

    /// Returns the sequence that shows the lines again, if a person types there.
    fn show_again(&mut self) -> String {
        match self.cursor {
            Some(_) => self.show(),
            None => String::new(),
        }
    }
}

/// Writes to standard error at once.
pub fn put(text: &str) -> Result<(), SurfaceError> {
    debug_log::note(text);
    let mut bottom = bottom();
    let mut stream = io::stderr().lock();
    let mut out = bottom.hide();
    out.push_str(bottom.below_row());
    bottom.row = None;
    let text = output::wrapped(text, output::columns_of(&stream));
    out.push_str(&output::fit(&text));
    if bottom.cursor.is_some() && !text.is_empty() && !text.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&bottom.show_again());
    stream.write_all(out.as_bytes())?;
    Ok(stream.flush()?)
}

/// Continues an unfinished row, or begins one.
pub(super) fn put_more(text: &str) -> Result<(), SurfaceError> {
    if text.is_empty() {
        return Ok(());
    }
    let mut bottom = bottom();
    let mut stream = io::stderr().lock();
    let mut out = bottom.hide();
    out.push_str(&output::fit(text));
    let before = bottom.row.take();
    if !text.ends_with('\n') {
        let (is_same, last) = match text.rsplit_once('\n') {
            Some((_, last)) => (false, last),
            None => (true, text),
        };
        let (mut columns, mut colour) = (shown_width(last), colour(last));
        if let Some(before) = before {
            columns += if is_same { before.columns } else { 0 };
            colour = if is_same { before.colour } else { colour };
        }
        bottom.row = Some(OpenRow { columns, colour });
    }
    out.push_str(&bottom.show_again());
    stream.write_all(out.as_bytes())?;
    Ok(stream.flush()?)
}

pub(super) fn has_open_row() -> bool {
    bottom().row.is_some()
}

/// Shows a status line at the bottom, in place of an earlier one, until other text is written.
pub fn put_status(line: &str) -> Result<(), SurfaceError> {
    put("")?;
    put_below(vec![line.to_owned()], None)
}

/// Erases the lines at the bottom.
pub fn clear_status() -> Result<(), SurfaceError> {
    put_below(Vec::new(), None)?;
    put("")
}

/// Replaces the lines below everything else. With a cursor, they stay there.
pub(super) fn put_below(
    lines: Vec<String>,
    cursor: Option<(usize, usize)>,
) -> Result<(), SurfaceError> {
    let mut bottom = bottom();
    let mut out = bottom.hide();
    bottom.cursor = cursor;
    bottom.lines = lines.iter().map(|line| output::fit(line).into()).collect();
    out.push_str(&bottom.show());
    let mut stream = io::stderr().lock();
    stream.write_all(out.as_bytes())?;
    Ok(stream.flush()?)
}

/// Counts the columns of a text that contains our own colours.
fn shown_width(text: &str) -> usize {
    let mut columns = 0;
    for (number, part) in text.split('\x1b').enumerate() {
        let shown = match part.split_once('m') {
            Some((_, shown)) if number > 0 => shown,
            _ => part,
        };
        columns += width(shown);
    }
    columns
}

/// Returns the first sequence of a text that sets a colour.
fn colour(text: &str) -> String {
    let begin = text.find('\x1b');
    let sequence = begin.and_then(|begin| {
        let end = text[begin..].find('m')?;
        Some(&text[begin..=begin + end])
    });
    sequence
        .filter(|sequence| *sequence != RESET)
        .unwrap_or_default()
        .to_owned()
}
