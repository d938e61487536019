//! A run's state as one message: the last things that happened, newest state only. It renders the
//! projection that every surface shows.

use std::collections::VecDeque;

use gyrus_contract::RunId;
use gyrus_journal::{LogEntry, LogReader};
use gyrus_surfaces::{
    left_files::LeftFiles,
    projection::{Projection, Prominence},
};
use gyrus_text::{clip, one_line};

/// Maximum number of lines about the last events.
const LINES: usize = 6;

/// Columns of a line.
const COLUMNS: usize = 100;

/// Maximum number of files of a result.
const FILES: usize = 6;

pub(crate) struct RunProgress {
    projection: Projection,
    lines: VecDeque<String>,
    step: u32,
    files: LeftFiles,
}

impl RunProgress {
    pub(crate) fn new() -> Self {
        Self {
            projection: Projection::new(),
            lines: VecDeque::new(),
            step: 0,
            files: LeftFiles::default(),
        }
    }

    pub(crate) fn take(&mut self, entry: &LogEntry, reader: &LogReader) {
        for happening in self.projection.take(entry, reader) {
            if let Some(step) = happening
                .effect
                .as_ref()
                .map(|effect| effect.cycle_number())
            {
                self.step = self.step.max(step);
            }
            self.files.note(&happening);
            if happening.weight == Prominence::Main
                && let Some(line) = happening.in_one_line(COLUMNS)
            {
                self.lines.push_back(line);
            }
            if self.lines.len() > LINES {
                self.lines.pop_front();
            }
        }
    }

    pub(crate) fn files(&self) -> Vec<String> {
        self.files.newest(FILES).to_vec()
    }

    /// Returns the text: a heading with `state`, the step, and the run's latest lines.
    pub(crate) fn text(&self, run: RunId, gist: &str, state: &str) -> String {
        let mut text = heading(run, gist, state);
        if self.step > 0 {
            text.push_str(&format!(", step {}", self.step));
        }
        for line in &self.lines {
            text.push('\n');
            text.push_str(line);
        }
        text
    }
}

/// Returns the first lines of a status message.
pub(crate) fn heading(run: RunId, gist: &str, state: &str) -> String {
    format!("Run {}: {gist}\n{state}", run.short())
}

/// Returns the beginning of a goal, for headings.
pub(crate) fn gist(goal: &str) -> String {
    clip(&one_line(goal), COLUMNS)
}
