//! A choice among lines, by the arrow keys or a number.

use std::{io, sync::mpsc};

use gyrus_text::{clip, one_line};

use super::{
    bottom::{put, put_below},
    line_editor::next,
    paint::Painter,
};
use crate::{
    error::SurfaceError,
    keys::{self, Key, KeySignals, LineEdit},
    output,
    projection::Tone,
};

/// Rows for the lines where the terminal does not say how many it has.
const MOST_SHOWN: usize = 9;

/// Asks the person to choose one of some lines, and returns its index; `None` for none. The first is
/// selected at the beginning.
pub fn choose(
    question: &str,
    lines: &[String],
    painter: &Painter,
) -> Result<Option<usize>, SurfaceError> {
    let (sender, typed) = mpsc::channel();
    // If nobody listens any more, nobody needs to know.
    let keys = keys::read_keys(KeySignals::Keys, move |key| drop(sender.send(key)))?;
    let (mut selected, mut number) = (0, 0);
    let chosen = loop {
        put_below(rows(question, lines, selected, painter), None)?;
        match next(&typed, || keys.is_over()) {
            Some(Key::Up) => (selected, number) = (selected.saturating_sub(1), 0),
            Some(Key::Down | Key::Tab) => {
                (selected, number) = ((selected + 1).min(lines.len().saturating_sub(1)), 0);
            }
            Some(Key::Edit(LineEdit::Text(text))) => {
                for digit in text.chars().filter_map(|c| c.to_digit(10)) {
                    let more = |before: usize| before * 10 + digit as usize;
                    let fits = |number: &usize| *number <= lines.len();
                    number = Some(more(number)).filter(fits).unwrap_or(more(0));
                    if (1..=lines.len()).contains(&number) {
                        selected = number - 1;
                    }
                }
            }
            Some(Key::Enter) => break Some(selected).filter(|it| *it < lines.len()),
            Some(Key::Escape | Key::Interrupt | Key::EndOfInput) => break None,
            None if keys.is_over() => break None,
            Some(_) | None => {}
        }
    };
    put_below(Vec::new(), None)?;
    drop(keys);
    if let Some(line) = chosen.and_then(|number| lines.get(number)) {
        put(&format!("{question}: {}\n", one_line(line)))?;
    }
    Ok(chosen)
}

/// Returns the rows of the question, and of the lines around the selected one.
fn rows(question: &str, lines: &[String], selected: usize, painter: &Painter) -> Vec<String> {
    let most = output::rows_of(&io::stderr()).map_or(MOST_SHOWN, |rows| rows.saturating_sub(3));
    let first = (selected + 1).saturating_sub(most.max(1));
    let question = format!("{question}? arrows or a number, Enter takes it, Esc none");
    let columns = painter.columns.saturating_sub(1);
    let head = painter.paint(Tone::Aside, &clip(&question, columns));
    let lines = lines.iter().enumerate().skip(first).take(most.max(1));
    let rows = lines.map(|(number, line)| {
        let (sign, tone) = if number == selected {
            ("▸", Tone::Strong)
        } else {
            (" ", Tone::Plain)
        };
        let row = format!("{sign} {:>2}  {}", number + 1, one_line(line));
        painter.paint(tone, &clip(&row, columns))
    });
    std::iter::once(head).chain(rows).collect()
}
