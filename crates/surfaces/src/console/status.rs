//! The line at the bottom of a terminal: what the run is at, and what it has used.

use std::time::{Duration, Instant};

use gyrus_contract::{Microdollars, Spent};
use gyrus_kernel::LivePiece;
use gyrus_text::{clip, plural, span};

use super::paint::Painter;
use crate::projection::{Happening, HappeningSubject, Tone};

/// The current activity of a run, and its usage so far.
#[derive(Debug)]
pub(crate) struct StatusRow {
    since: Instant,
    /// Time used before this process, in milliseconds.
    before_ms: u64,
    step: u64,
    tokens: u64,
    cost: Microdollars,
    doing: String,
}

impl StatusRow {
    /// Creates the status of a run with this use so far.
    pub(crate) fn new(spent: Spent) -> Self {
        Self {
            since: Instant::now(),
            before_ms: spent.time_ms,
            step: spent.steps + 1,
            tokens: spent.tokens,
            cost: spent.cost,
            doing: "starting".to_owned(),
        }
    }

    pub(crate) fn happened(&mut self, happening: &Happening) {
        self.tokens += happening.charged.tokens;
        self.cost = self.cost + happening.charged.cost;
        if let Some(step) = happening.step {
            self.step = u64::from(step) + 1;
        }
        let doing = match happening.subject {
            HappeningSubject::Request => happening.headline.replacen("asks ", "asking ", 1),
            HappeningSubject::Reply
            | HappeningSubject::ReplyFailed
            | HappeningSubject::Result { .. } => "thinking".to_owned(),
            HappeningSubject::Call => format!("about to {}", happening.headline),
            HappeningSubject::Started => self.doing.replacen("about to", "running", 1),
            HappeningSubject::Wait => "waiting".to_owned(),
            HappeningSubject::Child => "a child run works".to_owned(),
            HappeningSubject::Goal
            | HappeningSubject::Resumed
            | HappeningSubject::Parked { .. }
            | HappeningSubject::Ended
            | HappeningSubject::HandedOver
            | HappeningSubject::StepEnded
            | HappeningSubject::StepDropped
            | HappeningSubject::Warning
            | HappeningSubject::Person
            | HappeningSubject::Told
            | HappeningSubject::Thought
            | HappeningSubject::Reflection
            | HappeningSubject::Note
            | HappeningSubject::Value
            | HappeningSubject::Verdict
            | HappeningSubject::View
            | HappeningSubject::Question
            | HappeningSubject::Answer { .. }
            | HappeningSubject::WaitEnded
            | HappeningSubject::Branches
            | HappeningSubject::ChildEnded
            | HappeningSubject::Unreadable => return,
        };
        self.doing = doing;
    }

    pub(crate) fn reply_piece(&mut self, said: &LivePiece) {
        match said {
            LivePiece::Text(_) | LivePiece::Thinking(_) => {
                self.doing = "the model writes".to_owned()
            }
            LivePiece::Tool(name) => self.doing = format!("the model calls {name}"),
            LivePiece::Progress(words) => self.doing = words.clone(),
            LivePiece::Asked | LivePiece::ProcessEnded(_) | LivePiece::Ended => {}
        }
    }

    pub(crate) fn line(&self, painter: &Painter) -> String {
        let elapsed = self.since.elapsed() + Duration::from_millis(self.before_ms);
        self.line_at(elapsed, painter)
    }

    fn line_at(&self, elapsed: Duration, painter: &Painter) -> String {
        let cost = self.cost.after(" · ");
        let seconds = elapsed.as_secs();
        let time = match seconds {
            ..120 => format!("{seconds} s"),
            _ => span(seconds * 1_000),
        };
        let text = format!(
            "step {} · {} {}{cost} · {time} · {}",
            self.step,
            thousands(self.tokens),
            plural(self.tokens, "token"),
            self.doing
        );
        // One column less: a full line would make some terminals scroll.
        let text = clip(&text, painter.columns.saturating_sub(1));
        painter.paint(Tone::Aside, &text)
    }
}

fn thousands(tokens: u64) -> String {
    match tokens {
        ..10_000 => tokens.to_string(),
        10_000..1_000_000 => format!("{}.{}k", tokens / 1_000, tokens % 1_000 / 100),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_of_any_width() {
        let mut status = StatusRow::new(Spent {
            steps: 2,
            tokens: 12_345,
            cost: Microdollars(21_500),
            ..Spent::default()
        });
        status.reply_piece(&LivePiece::Tool("shell\n\x1b[2J".to_owned()));
        let at = |columns| status.line_at(Duration::from_secs(61), &Painter::plain(columns));
        assert_eq!(
            at(80),
            "step 3 · 12.3k tokens · $0.0215 · 61 s · the model calls shell⏎␛[2J"
        );
        for columns in 20..80 {
            assert!(gyrus_text::width(&at(columns)) < columns);
        }
    }
}
