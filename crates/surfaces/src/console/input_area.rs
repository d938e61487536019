//! Reading a person who types while a run works: words for the run, answers to its cards, and goals for later.

use std::sync::Arc;

use gyrus_kernel::GoalAmendment;
use gyrus_text::{clip, one_line};
use parking_lot::Mutex;

use super::{
    bottom::put,
    input::{InputLine, TerminalRows},
    paint::Painter,
};
use crate::{
    error::SurfaceError,
    keys::{Key, LineEdit},
    projection::Tone,
};

/// Shown while nothing is typed.
const STEER_HINT: &str =
    "Enter tells the run · Alt-Enter: the next goal · Esc interrupts · Ctrl-B: background";

/// The same while a card is open.
const ANSWER_HINT: &str = "your answer · Alt-Enter: the next goal · Esc interrupts";

/// Goals that are shown of those that wait.
const SHOWN_GOALS: usize = 3;

/// Lines that were typed while a run worked, for whoever reads the terminal next.
#[derive(Debug, Default, Clone)]
pub struct LineQueue(Arc<Mutex<QueuedLines>>);

#[derive(Debug, Default)]
struct QueuedLines {
    goals: Vec<String>,
    begun: String,
}

impl LineQueue {
    /// Takes the goal that was typed first.
    pub fn next_goal(&self) -> Option<String> {
        let goals = &mut self.0.lock().goals;
        (!goals.is_empty()).then(|| goals.remove(0))
    }

    /// Takes the line that was begun and not ended.
    pub fn begun_line(&self) -> String {
        std::mem::take(&mut self.0.lock().begun)
    }

    /// Makes the goals that wait a begun line: nothing of it is done before the person wants it again.
    pub fn hold_goals(&self) {
        let mut ahead = self.0.lock();
        let goals = std::mem::take(&mut ahead.goals);
        let begun = std::mem::take(&mut ahead.begun);
        let all = goals.into_iter().chain([begun]);
        let all: Vec<String> = all.filter(|line| !line.is_empty()).collect();
        ahead.begun = all.join(" ");
    }
}

/// A line that is complete.
pub(super) enum PersonLine {
    /// To the card that is open.
    Answer(String),
    /// For the run.
    Steer(String),
    /// The command in progress is to go on in the background.
    Background,
}

/// The line of a run's terminal, and what became of the lines before.
pub(super) struct InputArea {
    line: InputLine,
    /// The line that was begun when a card came. It is no part of an answer.
    aside: Option<InputLine>,
    ahead: LineQueue,
    /// Messages that the run has not read: id and text.
    unread: Vec<(String, String)>,
    /// The run will read nothing more.
    is_over: bool,
}

impl InputArea {
    pub(super) fn new(ahead: LineQueue) -> Self {
        Self {
            line: InputLine::of(&ahead.begun_line()),
            aside: None,
            ahead,
            unread: Vec::new(),
            is_over: false,
        }
    }

    /// A key was pressed. What begins with a slash or an exclamation mark is for the prompt and waits, as
    /// goals do.
    pub(super) fn key(&mut self, key: Key, is_asked: bool) -> Option<PersonLine> {
        match key {
            Key::Enter | Key::AltEnter => {
                let text = self.line.take();
                let is_later = key == Key::AltEnter || text.starts_with(['/', '!']) || self.is_over;
                if text.trim().is_empty() {
                    return None;
                }
                if is_asked && key == Key::Enter {
                    return Some(PersonLine::Answer(text));
                }
                if is_later {
                    self.ahead.0.lock().goals.push(text);
                    return None;
                }
                return Some(PersonLine::Steer(text));
            }
            Key::Escape => {
                // As Ctrl-C: whoever drives the run counts them.
                let me = rustix::process::getpid();
                let _ = rustix::process::kill_process(me, rustix::process::Signal::INT);
            }
            Key::Background if !is_asked && !self.is_over => return Some(PersonLine::Background),
            Key::Background => self.line.edit(LineEdit::Left),
            Key::Edit(edit) => self.line.edit(edit),
            Key::EndOfInput => self.line.edit(LineEdit::Delete),
            Key::Tab
            | Key::BackTab
            | Key::Up
            | Key::Down
            | Key::Interrupt
            | Key::Suspend
            | Key::Editor
            | Key::Search => {}
        }
        None
    }

    pub(super) fn sent(&mut self, id: String, text: String) {
        self.unread.push((id, text));
    }

    pub(super) fn was_read(&mut self, steered: &GoalAmendment) {
        let is_read = |id: &String| steered.messages.iter().any(|message| message.id == *id);
        self.unread.retain(|(id, _)| !is_read(id));
    }

    /// The run is over: what it did not read comes first among the goals.
    pub(super) fn run_ended(&mut self) -> Result<(), SurfaceError> {
        self.is_over = true;
        let late: Vec<String> = self.unread.drain(..).map(|(_, text)| text).collect();
        if late.is_empty() {
            return Ok(());
        }
        self.ahead.0.lock().goals.splice(0..0, late);
        put("the run ended before it read what you added, so that is the next goal\n")
    }

    /// A card came.
    pub(super) fn set_aside(&mut self) {
        if self.aside.is_none() {
            self.aside = Some(std::mem::take(&mut self.line));
        }
    }

    /// More was asked than the person had seen: what they began to answer is no answer to it.
    pub(super) fn begin_answer_anew(&mut self) {
        self.line = InputLine::default();
    }

    /// No card is open any more.
    pub(super) fn take_up_again(&mut self) {
        if let Some(aside) = self.aside.take() {
            self.line = aside;
        }
    }

    /// Returns the goals that wait, as lines.
    pub(super) fn goals(&self, painter: &Painter) -> Vec<String> {
        let ahead = self.ahead.0.lock();
        let columns = painter.columns.saturating_sub(1);
        let line = |text: &str| painter.paint(Tone::Aside, &clip(text, columns));
        let goals = ahead.goals.iter().take(SHOWN_GOALS);
        let mut lines: Vec<String> = goals
            .map(|goal| line(&format!("then: {}", one_line(goal))))
            .collect();
        if let Some(more @ 1..) = ahead.goals.len().checked_sub(SHOWN_GOALS) {
            lines.push(line(&format!("then {more} more")));
        }
        lines
    }

    /// Returns the rows of the line.
    pub(super) fn rows(&self, painter: &Painter, is_asked: bool) -> TerminalRows {
        let hint = if is_asked { ANSWER_HINT } else { STEER_HINT };
        self.line.rows(painter, hint)
    }
}

impl Drop for InputArea {
    fn drop(&mut self) {
        self.take_up_again();
        self.ahead.0.lock().begun = self.line.take();
    }
}
