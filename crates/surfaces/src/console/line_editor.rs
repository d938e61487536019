//! The line in which a person types while no run works: rows at the bottom of the terminal, and below
//! them what could be meant.

use std::{
    io::{self, Write as _},
    path::Path,
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    time::Duration,
};

use gyrus_text::{clip, width};

use super::{
    bottom::{put, put_below},
    history::TypedHistory,
    input::InputLine,
    paint::Painter,
};
use crate::{
    card_editor,
    error::SurfaceError,
    keys::{self, Key, KeyReader, KeySignals, LineEdit},
    output,
    projection::Tone,
};

/// Maximum number of candidates shown at once.
const MOST_SHOWN: usize = 8;

/// Interval at which the size of the terminal is read.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Possible completions of the text before the cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineCandidates {
    /// Byte offset in the line from which a candidate replaces the text.
    pub from: usize,
    /// The words, the best first.
    pub words: Vec<LineCandidate>,
}

/// A possible completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineCandidate {
    /// The word inserted into the line.
    pub word: String,
    /// The meaning of the word, in a few words; may be empty.
    pub about: String,
    /// Whether the return key is enough to have it: it takes nothing more.
    pub is_whole: bool,
}

/// The result of a line that a person typed, or of a key instead of one.
#[derive(Debug, PartialEq, Eq)]
pub enum LineWish {
    /// The line is to be carried out.
    Line(String),
    /// The next mode is wanted; the line stays.
    NextMode,
    /// The person wants to go back: Escape was pressed twice on an empty line.
    Back,
    Leave,
}

/// The surroundings of the line, and the source of completions.
pub struct LineView<'a> {
    /// The row above the line.
    pub above: &'a str,
    /// The hint while nothing is typed.
    pub hint: &'a str,
    /// Returns the completions of the text before the cursor.
    pub candidates: &'a dyn Fn(&str) -> LineCandidates,
}

/// A line that a person types, with a history.
pub struct LineEditor {
    history: TypedHistory,
    line: InputLine,
    /// Typed keys; those behind the return key are of the next line.
    keys: (Sender<Key>, Receiver<Key>),
    /// The present completions, unless Escape dismissed them.
    candidates: LineCandidates,
    selected: Option<usize>,
    /// The shown earlier line, counted from the newest, with the line that was being typed.
    before: Option<(usize, String)>,
    searches: bool,
    editor: Option<String>,
    plain: bool,
}

impl LineEditor {
    /// Creates an editor with the history in this file, which nobody else may read.
    pub fn open(history: &Path, editor: Option<String>, plain: bool) -> Self {
        Self {
            history: TypedHistory::open(history),
            line: InputLine::default(),
            keys: mpsc::channel(),
            candidates: LineCandidates::default(),
            selected: None,
            before: None,
            searches: false,
            editor,
            plain,
        }
    }

    /// Adds a line to the history that was typed elsewhere.
    pub fn remember(&mut self, line: &str) {
        self.history.add(line);
    }

    /// Begins the next line with these words, if none is begun.
    pub fn begin(&mut self, words: &str) {
        if self.line.text().is_empty() {
            self.line = InputLine::of(words);
        }
    }

    /// Reads the next line or request of the person.
    pub fn read(&mut self, view: &LineView<'_>) -> Result<LineWish, SurfaceError> {
        let sender = self.keys.0.clone();
        let take = move |key| {
            // If nobody listens any more, nobody needs to know.
            let _ = sender.send(key);
        };
        let mut keys = Some(keys::read_keys(KeySignals::Keys, take.clone())?);
        let mut last = None;
        loop {
            self.show(view)?;
            let is_over = || keys.as_ref().is_none_or(KeyReader::is_over);
            let Some(key) = next(&self.keys.1, is_over) else {
                if is_over() {
                    return Ok(LineWish::Leave);
                }
                continue;
            };
            if matches!(key, Key::Editor | Key::Suspend) {
                // Somebody else reads the terminal now.
                drop(keys.take());
                put_below(Vec::new(), None)?;
                if key == Key::Editor {
                    self.write_in_editor()?;
                } else {
                    let me = rustix::process::getpid();
                    let _ = rustix::process::kill_process(me, rustix::process::Signal::TSTP);
                }
                keys = Some(keys::read_keys(KeySignals::Keys, take.clone())?);
            }
            let wish = self.key(&key, last.as_ref(), view);
            last = Some(key);
            let Some(wish) = wish else { continue };
            put_below(Vec::new(), None)?;
            drop(keys);
            return Ok(wish);
        }
    }

    fn key(&mut self, key: &Key, last: Option<&Key>, view: &LineView<'_>) -> Option<LineWish> {
        let is_empty = self.line.text().is_empty();
        match key {
            Key::Enter => return self.enter(view),
            Key::AltEnter => self.edit(LineEdit::Text("\n".to_owned()), view),
            Key::Tab => self.take_candidate(view),
            Key::BackTab => return Some(LineWish::NextMode),
            Key::Up => self.up(),
            Key::Down => self.down(),
            Key::Search => {
                self.searches = true;
                self.look(view);
            }
            Key::Escape if is_empty && last == Some(&Key::Escape) => return Some(LineWish::Back),
            Key::Escape => {
                (self.candidates, self.selected) = (LineCandidates::default(), None);
                self.searches = false;
            }
            Key::Interrupt if is_empty && last == Some(&Key::Interrupt) => {
                return Some(LineWish::Leave);
            }
            Key::Interrupt => {
                self.line = InputLine::default();
                (self.before, self.searches) = (None, false);
                self.look(view);
            }
            Key::EndOfInput if is_empty => return Some(LineWish::Leave),
            Key::EndOfInput => self.edit(LineEdit::Delete, view),
            Key::Background => self.edit(LineEdit::Left, view),
            Key::Edit(edit) => self.edit(edit.clone(), view),
            Key::Editor | Key::Suspend => self.look(view),
        }
        None
    }

    fn edit(&mut self, edit: LineEdit, view: &LineView<'_>) {
        self.line.edit(edit);
        self.look(view);
    }

    fn look(&mut self, view: &LineView<'_>) {
        self.selected = None;
        let before = self.line.before();
        self.candidates = if self.searches {
            let found = self.history.newest_first();
            let mut words: Vec<LineCandidate> = Vec::new();
            for line in found.filter(|line| line.contains(before)) {
                if words.len() < MOST_SHOWN && words.iter().all(|known| known.word != *line) {
                    words.push(LineCandidate {
                        word: line.clone(),
                        about: String::new(),
                        is_whole: false,
                    });
                }
            }
            LineCandidates { from: 0, words }
        } else {
            (view.candidates)(before)
        };
    }

    /// Handles the return key: takes the candidate that is selected, and has the line if it is
    /// whole.
    fn enter(&mut self, view: &LineView<'_>) -> Option<LineWish> {
        let typed = &self.line.before()[self.candidates.from.min(self.line.before().len())..];
        let is_exact = |candidate: &LineCandidate| candidate.word == typed;
        let names_one = !self.candidates.words.is_empty()
            && self.line.before().starts_with('/')
            && !self.candidates.words.iter().any(is_exact);
        if self.selected.is_some() || self.searches || names_one {
            let number = self.selected.unwrap_or(0);
            let is_whole = self.candidates.words.get(number).map(|it| it.is_whole);
            self.take_candidate(view);
            if is_whole != Some(true) {
                return None;
            }
        }
        // A backslash at its end says that it goes on.
        if self.line.text().ends_with('\\') {
            self.edit(LineEdit::End, view);
            self.edit(LineEdit::Text("\n".to_owned()), view);
            return None;
        }
        let text = self.line.take();
        (self.candidates, self.before) = (LineCandidates::default(), None);
        self.history.add(&text);
        if !text.trim().is_empty() {
            let rows = InputLine::of(&text).rows(&self.painter(), "");
            // That a terminal is gone is noticed when the next line is read.
            let _ = put_below(Vec::new(), None);
            let _ = put(&format!("{}\n", rows.lines.join("\n")));
        }
        Some(LineWish::Line(text))
    }

    /// Inserts the selected candidate, or the first, in place of the typed text.
    fn take_candidate(&mut self, view: &LineView<'_>) {
        let words = &mut self.candidates.words;
        let number = self.selected.unwrap_or(0);
        if number >= words.len() {
            return;
        }
        let candidate = words.swap_remove(number);
        self.line
            .replace_before(self.candidates.from, &candidate.word);
        self.searches = false;
        self.look(view);
    }

    fn up(&mut self) {
        if let Some(selected) = self.selected {
            self.selected = selected.checked_sub(1);
            return;
        }
        let back = self.before.as_ref().map_or(0, |(back, _)| back + 1);
        let Some(line) = self.history.back(back).cloned() else {
            return;
        };
        let begun = self.before.take();
        let begun = begun.map_or_else(|| self.line.take(), |(_, begun)| begun);
        self.line = InputLine::of(&line);
        self.before = Some((back, begun));
        // A line from before is whole: Up and Down go on in the history.
        (self.candidates, self.selected) = (LineCandidates::default(), None);
    }

    fn down(&mut self) {
        if !self.candidates.words.is_empty() {
            let next = self.selected.map_or(0, |selected| selected + 1);
            self.selected = Some(next.min(self.candidates.words.len() - 1));
            return;
        }
        let Some((back, begun)) = self.before.take() else {
            return;
        };
        if let Some(newer) = back.checked_sub(1) {
            let line = self.history.back(newer).cloned().unwrap_or_default();
            self.line = InputLine::of(&line);
            self.before = Some((newer, begun));
        } else {
            self.line = InputLine::of(&begun);
        }
    }

    fn write_in_editor(&mut self) -> Result<(), SurfaceError> {
        let text = self.line.take();
        let written = card_editor::write_in_editor(&text, self.editor.as_deref());
        match written {
            Ok(written) => self.line = InputLine::of(written.trim_end_matches('\n')),
            Err(failure) => {
                self.line = InputLine::of(&text);
                put(&failure.told())?;
            }
        }
        Ok(())
    }

    fn painter(&self) -> Painter {
        let painter = Painter::new(&io::stderr(), self.plain);
        // Behind a character in the last column a cursor cannot be put.
        painter.with_columns(painter.columns - 1)
    }

    fn show(&self, view: &LineView<'_>) -> Result<(), SurfaceError> {
        let painter = self.painter();
        let hint = if self.searches {
            "what to look for among the lines before"
        } else {
            view.hint
        };
        let rows = self.line.rows(&painter, hint);
        let above = painter.paint(Tone::Aside, &clip(view.above, painter.columns));
        let mut lines = vec![above];
        let (row, column) = rows.cursor;
        let cursor = (lines.len() + row, column);
        lines.extend(rows.lines);
        lines.extend(self.palette(&painter));
        // More than the screen has rows could not be taken away again.
        if let Some(most) = output::rows_of(&io::stderr()) {
            lines.truncate(most.saturating_sub(1).max(cursor.0 + 1));
        }
        put_below(lines, Some(cursor))
    }

    /// Returns the rows of the candidates around the selected one.
    fn palette(&self, painter: &Painter) -> Vec<String> {
        let words = &self.candidates.words;
        let first = self.selected.unwrap_or(0);
        let first = (first + 1).saturating_sub(MOST_SHOWN);
        let shown = || words.iter().enumerate().skip(first).take(MOST_SHOWN);
        let widest = shown().map(|(_, it)| width(&it.word)).max().unwrap_or(0);
        let row = |(number, candidate): (usize, &LineCandidate)| {
            let is_selected = self.selected == Some(number);
            let sign = if is_selected { "▸ " } else { "  " };
            let pad = " ".repeat(widest.saturating_sub(width(&candidate.word)));
            let words = format!("{sign}{}{pad}  {}", candidate.word, candidate.about);
            let words = clip(gyrus_text::one_line(&words).trim_end(), painter.columns);
            let tone = if is_selected {
                Tone::Strong
            } else {
                Tone::Aside
            };
            painter.paint(tone, &words)
        };
        shown().map(row).collect()
    }
}

/// Waits for the next key; `None` where the line is to be shown again, as the terminal has another
/// size, or where no key will come.
pub(super) fn next(typed: &Receiver<Key>, is_over: impl Fn() -> bool) -> Option<Key> {
    let columns = output::columns_of(&io::stderr());
    loop {
        match typed.recv_timeout(LOOK_AGAIN) {
            Ok(key) => return Some(key),
            Err(RecvTimeoutError::Timeout)
                if !is_over() && output::columns_of(&io::stderr()) == columns => {}
            Err(_) => return None,
        }
    }
}

/// Reads a line from a simple terminal, or for a person who wants no editor; `None` at its end.
pub fn plain_line(prompt: &str) -> Result<Option<String>, SurfaceError> {
    put("")?;
    let mut asking = io::stderr().lock();
    asking.write_all(prompt.as_bytes())?;
    asking.flush()?;
    let mut whole = String::new();
    loop {
        let mut line = String::new();
        if io::stdin().read_line(&mut line)? == 0 {
            return Ok(None);
        }
        whole.push_str(line.trim_end_matches(['\n', '\r']));
        if !whole.ends_with('\\') {
            return Ok(Some(whole));
        }
        whole.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Candidates for the word before the cursor, wherever it begins.
    fn candidates(typed: &str) -> LineCandidates {
        let from = typed.rfind(' ').map_or(0, |space| space + 1);
        let words = ["日本", "src/main.rs", ""].map(|word| LineCandidate {
            word: word.to_owned(),
            about: String::new(),
            is_whole: false,
        });
        LineCandidates {
            from,
            words: words.into(),
        }
    }

    #[test]
    fn no_order_of_keys_is_too_odd() {
        let folder = tempfile::tempdir().unwrap();
        let view = LineView {
            above: "",
            hint: "",
            candidates: &candidates,
        };
        let text = |text: &str| Key::Edit(LineEdit::Text(text.to_owned()));
        let keys = [
            text("ü @ma"),
            text(" "),
            text(&"long\n".repeat(30)),
            Key::Edit(LineEdit::Left),
            Key::Edit(LineEdit::EraseWord),
            Key::Edit(LineEdit::Home),
            Key::Edit(LineEdit::EraseAfter),
            Key::Tab,
            Key::Up,
            Key::Down,
            Key::Search,
            Key::Escape,
            Key::Editor,
            Key::Interrupt,
            Key::EndOfInput,
            Key::AltEnter,
        ];
        let mut editor = LineEditor::open(&folder.path().join("history"), None, true);
        for line in ["first", "zweite Zeile", "日本語"] {
            editor.remember(line);
        }
        // A small generator of numbers (Knuth, MMIX).
        let (mut number, mut last) = (1_u64, None);
        for _ in 0..20_000 {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let key = &keys[usize::try_from(number >> 33).unwrap() % keys.len()];
            if *key == Key::Editor {
                // The editor leaves another text.
                editor.line = InputLine::of("x");
            }
            editor.key(key, last.as_ref(), &view);
            let rows = editor.line.rows(&Painter::plain(20), "");
            assert!(rows.cursor.0 < rows.lines.len(), "{key:?}: {rows:?}");
            last = Some(key.clone());
        }
    }
}
