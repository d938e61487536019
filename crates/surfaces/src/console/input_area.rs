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

/// The hint while nothing is typed.
const STEER_HINT: &str =
    "Enter tells the run · Alt-Enter: the next goal · Esc interrupts · Ctrl-B: background";

/// The hint while a card is open.
const ANSWER_HINT: &str = "your answer · Alt-Enter: the next goal · Esc interrupts";

/// Maximum number of waiting goals that are shown.
const SHOWN_GOALS: usize = 3;

/// Lines typed while a run worked, for the next reader of the terminal.
#[derive(Debug, Default, Clone)]
pub struct LineQueue(Arc<Mutex<QueuedLines>>);

#[derive(Debug, Default)]
struct QueuedLines {
    goals: Vec<String>,
    begun: String,
}

impl LineQueue {
    /// Removes and returns the oldest waiting goal.
    pub fn next_goal(&self) -> Option<String> {
        let goals = &mut self.0.lock().goals;
        (!goals.is_empty()).then(|| goals.remove(0))
    }

    /// Takes the unfinished line.
    pub fn begun_line(&self) -> String {
        std::mem::take(&mut self.0.lock().begun)
    }

    /// Turns the waiting goals into an unfinished line, so that none begins before the person sends
    /// it again.
    pub fn hold_goals(&self) {
        let mut ahead = self.0.lock();
        let goals = std::mem::take(&mut ahead.goals);
        let begun = std::mem::take(&mut ahead.begun);
        let all = goals.into_iter().chain([begun]);
        let all: Vec<String> = all.filter(|line| !line.is_empty()).collect();
        ahead.begun = all.join(" ");
    }
}

pub(super) enum PersonLine {
    Answer(String),
    Steer(String),
    /// The command in progress is to go on in the background.
    Background,
}

/// The input line of a run's terminal, and the state of the previous lines.
pub(super) struct InputArea {
    line: InputLine,
    /// The unfinished line when a card came, which is not part of an answer.
    aside: Option<InputLine>,
    ahead: LineQueue,
    /// Messages that the run has not read, each with its id and text.
    unread: Vec<(String, String)>,
    /// Whether the run reads no more messages.
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

    /// Puts the unfinished line aside when a card comes.
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
