//! What models say, while they say it: as lines like those of the entries that follow.

use std::collections::BTreeMap;

use gyrus_contract::{Purpose, RunId};
use gyrus_kernel::LivePiece;
use gyrus_loops::WENT_RIGHT;

use super::{
    line::{Line, Weight},
    paint::Paint,
};

/// What a model says while it says it.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    /// The run that asked.
    pub(crate) run: RunId,
    /// What for.
    pub(crate) purpose: Purpose,
    /// What is said.
    pub(crate) said: LivePiece,
}

/// Lines of thinking that are shown of one reply.
const THINKING_LINES: usize = 12;

/// The note of what a model says when it looks back.
const REFLECTION: &str = "reflection";

/// What is being said, by run.
#[derive(Debug, Default)]
pub(crate) struct Speech {
    runs: BTreeMap<RunId, Saying>,
}

#[derive(Debug, Default)]
struct Saying {
    /// Questions that were heard of, and those whose entry was shown: what comes of a question is
    /// shown after everything that was on disk before it.
    heard: u64,
    shown: u64,
    held: Vec<(u64, Heard)>,
    /// Questions that are open at once. With two, their words would run into each other.
    open: usize,
    mixed: bool,
    /// The note that will say the same.
    said_as: Option<&'static str>,
    /// The reply is an object for the loop; what it says to a person comes as a note.
    is_object: bool,
    thinking_lines: usize,
}

impl Speech {
    /// The line to show now, if there is one.
    pub(crate) fn line(&mut self, heard: &Heard) -> Option<Line> {
        let saying = self.runs.entry(heard.run).or_default();
        if heard.said == LivePiece::Asked {
            saying.heard += 1;
        }
        if saying.heard > saying.shown || !saying.held.is_empty() {
            saying.held.push((saying.heard, heard.clone()));
            return None;
        }
        saying.line(heard)
    }

    /// The entry of a question was shown: the lines that waited for it.
    pub(crate) fn was_asked(&mut self, run: RunId) -> Vec<Line> {
        let saying = self.runs.entry(run).or_default();
        saying.shown += 1;
        let shown = saying.shown;
        let due: Vec<_> = saying
            .held
            .extract_if(.., |(number, _)| *number <= shown)
            .collect();
        due.iter()
            .filter_map(|(_, heard)| saying.line(heard))
            .collect()
    }

    /// Whether a note of this kind says only what was shown already.
    pub(crate) fn was_shown(&mut self, run: RunId, kind: &str) -> bool {
        let Some(saying) = self.runs.get_mut(&run) else {
            return false;
        };
        let kind = if kind == WENT_RIGHT { REFLECTION } else { kind };
        let shown = saying.said_as == Some(kind);
        if shown {
            saying.said_as = None;
        }
        shown
    }
}

impl Saying {
    fn line(&mut self, heard: &Heard) -> Option<Line> {
        let saying = self;
        let note = match heard.purpose {
            Purpose::Agent | Purpose::Plan => "thought",
            Purpose::Reflect => REFLECTION,
            Purpose::Verify | Purpose::Safety | Purpose::Summarise => return None,
        };
        match &heard.said {
            LivePiece::Asked => {
                saying.open += 1;
                saying.mixed = saying.open > 1;
                saying.said_as = None;
                saying.is_object = false;
                saying.thinking_lines = 0;
                None
            }
            LivePiece::Ended => {
                saying.open = saying.open.saturating_sub(1);
                None
            }
            _ if saying.mixed => None,
            LivePiece::Text(text) if text.trim().is_empty() => None,
            LivePiece::Text(text)
                if saying.is_object || (saying.said_as.is_none() && begins_an_object(text)) =>
            {
                saying.is_object = true;
                None
            }
            LivePiece::Text(text) => {
                let mark = if saying.said_as.is_none() { '•' } else { ' ' };
                saying.said_as = Some(note);
                Some(spoken(Paint::Thought, mark, text))
            }
            LivePiece::Thinking(text) => {
                let first = saying.thinking_lines;
                saying.thinking_lines += text.lines().count();
                (first < THINKING_LINES && !text.trim().is_empty())
                    .then(|| spoken(Paint::Aside, if first == 0 { '~' } else { ' ' }, text))
            }
            // The call itself comes as an entry.
            LivePiece::Tool(_) | LivePiece::Progress(_) => None,
        }
    }
}

fn begins_an_object(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with('{') || text.starts_with("```json")
}

fn spoken(paint: Paint, mark: char, text: &str) -> Line {
    Line {
        weight: Weight::Main,
        paint,
        mark,
        text: text.trim_end().to_owned(),
        effect: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(said: LivePiece) -> Heard {
        Heard {
            run: "01980000-0000-7000-8000-00000000aaaa".parse().unwrap(),
            purpose: Purpose::Agent,
            said,
        }
    }

    #[test]
    fn what_was_spoken_is_not_noted_again() {
        let mut speech = Speech::default();
        let run = heard(LivePiece::Asked).run;
        assert!(speech.was_asked(run).is_empty());
        let mut say = |said| speech.line(&heard(said)).map(|line| line.mark);
        assert_eq!(say(LivePiece::Asked), None);
        assert_eq!(say(LivePiece::Thinking("hm\n".into())), Some('~'));
        assert_eq!(say(LivePiece::Text("one\n".into())), Some('•'));
        assert_eq!(say(LivePiece::Text("two".into())), Some(' '));
        assert_eq!(say(LivePiece::Ended), None);
        assert!(!speech.was_shown(run, "reflection"));
        assert!(speech.was_shown(run, "thought"));
        assert!(!speech.was_shown(run, "thought"), "another thought");
    }

    #[test]
    fn two_at_once_are_left_to_their_entries() {
        let mut speech = Speech::default();
        let run = heard(LivePiece::Asked).run;
        for _ in 0..2 {
            speech.was_asked(run);
        }
        for said in [
            LivePiece::Asked,
            LivePiece::Asked,
            LivePiece::Text("one\n".into()),
        ] {
            assert_eq!(speech.line(&heard(said)), None);
        }
    }

    #[test]
    fn words_wait_for_the_entry_of_their_question() {
        let mut speech = Speech::default();
        for said in [
            LivePiece::Asked,
            LivePiece::Text("one\n".into()),
            LivePiece::Ended,
        ] {
            assert_eq!(speech.line(&heard(said)), None);
        }
        let run = heard(LivePiece::Asked).run;
        let lines = speech.was_asked(run);
        assert_eq!(lines.len(), 1);
        assert!(speech.was_shown(run, "thought"));
    }
}
