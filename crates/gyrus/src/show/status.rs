//! The line at the bottom of a terminal: what the run is at, and what it has used.

use std::time::{Duration, Instant};

use gyrus_contract::{Microdollars, Spent};
use gyrus_kernel::{Entry, LivePiece};
use gyrus_text::{clip, span};

use super::paint::{Paint, Painter};

/// What a run is at.
#[derive(Debug)]
pub(crate) struct Status {
    since: Instant,
    /// Used before this process.
    before_ms: u64,
    step: u64,
    tokens: u64,
    cost: Microdollars,
    doing: String,
}

impl Status {
    /// Of a run that had used this much.
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

    /// An entry of the run is on disk.
    pub(crate) fn entry(&mut self, entry: &Entry) {
        match entry {
            Entry::ModelCall(asked) => self.doing = format!("asking {}", asked.model),
            Entry::ModelReply(reply) => {
                self.tokens += reply.charged.tokens;
                self.cost = self.cost + reply.charged.cost;
                self.doing = "thinking".to_owned();
            }
            Entry::ToolCalled(called) => self.doing = format!("about to {}", called.call.tool),
            Entry::ToolStarted(_) => self.doing = self.doing.replacen("about to", "running", 1),
            Entry::ToolResulted(_) => self.doing = "thinking".to_owned(),
            Entry::WaitStarted(_) => self.doing = "waiting".to_owned(),
            Entry::ChildStarted(_) => self.doing = "a child run works".to_owned(),
            Entry::ChildEnded(child) => {
                self.tokens += child.spent.tokens;
                self.cost = self.cost + child.spent.cost;
            }
            Entry::CycleEnded(ended) => {
                self.step = u64::from(ended.cycle) + 1;
                self.tokens = ended.kernel.spent.tokens;
                self.cost = ended.kernel.spent.cost;
            }
            _ => {}
        }
    }

    /// A model of the run speaks.
    pub(crate) fn heard(&mut self, said: &LivePiece) {
        match said {
            LivePiece::Text(_) | LivePiece::Thinking(_) => {
                self.doing = "the model writes".to_owned()
            }
            LivePiece::Tool(name) => self.doing = format!("the model calls {name}"),
            LivePiece::Progress(words) => self.doing = words.clone(),
            LivePiece::Asked | LivePiece::Ended => {}
        }
    }

    /// One line that fits the terminal.
    pub(crate) fn line(&self, painter: &Painter) -> String {
        let elapsed = self.since.elapsed() + Duration::from_millis(self.before_ms);
        self.line_at(elapsed, painter)
    }

    fn line_at(&self, elapsed: Duration, painter: &Painter) -> String {
        let cost = match self.cost.0 {
            0 => String::new(),
            _ => format!(" · {}", self.cost),
        };
        let seconds = elapsed.as_secs();
        let time = match seconds {
            ..120 => format!("{seconds} s"),
            _ => span(seconds * 1_000),
        };
        let text = format!(
            "step {} · {} tokens{cost} · {time} · {}",
            self.step,
            thousands(self.tokens),
            self.doing
        );
        // One column less: a full line would make some terminals scroll.
        let text = clip(&text, painter.columns.saturating_sub(1));
        painter.paint(Paint::Aside, &text)
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
        let mut status = Status::new(Spent {
            steps: 2,
            tokens: 12_345,
            cost: Microdollars(21_500),
            ..Spent::default()
        });
        status.heard(&LivePiece::Tool("shell\n\x1b[2J".to_owned()));
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
