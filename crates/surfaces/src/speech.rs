//! Streamed text of models: what of it a person is shown, and when.

use std::collections::BTreeMap;

use gyrus_contract::{Purpose, RunId};
use gyrus_kernel::LivePiece;

use crate::{live_replies::ReplyPiece, projection::HappeningSubject};

/// The beginnings of an object in a reply. The object is for the loop; what it says to a person comes as a note.
const OBJECT_STARTS: [&str; 3] = ["{\"", "{ \"", "```json"];

/// Text of a model, shown to a person as it arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSpeech {
    /// The kind of text.
    pub kind: SpokenKind,
    /// The text, in pieces that end anywhere.
    pub text: String,
    /// Whether the text is the first of its kind in the reply.
    pub begins: bool,
    /// Number of lines of the same kind before the text in the reply; counted for thinking only.
    pub lines_before: usize,
}

/// Kinds of text that a model streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpokenKind {
    /// Words for the person.
    Words,
    Thinking,
}

/// The replies in progress, by run.
#[derive(Debug, Default)]
pub struct Speech {
    runs: BTreeMap<RunId, SpeechState>,
}

#[derive(Debug, Default)]
struct SpeechState {
    /// Numbers of the announced questions and of those whose entry was shown: a reply is shown
    /// after everything that was on disk before its question.
    announced: u64,
    shown: u64,
    held: Vec<(u64, ReplyPiece)>,
    /// Number of open questions. With two, their replies would be mixed up.
    open: usize,
    mixed: bool,
    /// The subject of the note that will repeat the text.
    said_as: Option<HappeningSubject>,
    is_object: bool,
    is_thinking: bool,
    thinking_lines: usize,
}

impl Speech {
    /// Returns the text to show now, if there is some.
    pub fn take(&mut self, piece: &ReplyPiece) -> Option<LiveSpeech> {
        let saying = self.runs.entry(piece.run).or_default();
        if piece.said == LivePiece::Asked {
            saying.announced += 1;
        }
        if saying.announced > saying.shown || !saying.held.is_empty() {
            saying.held.push((saying.announced, piece.clone()));
            return None;
        }
        saying.take(piece)
    }

    /// Notes that the entry of a question was shown, and returns the text that waited for it.
    pub fn was_asked(&mut self, run: RunId) -> Vec<LiveSpeech> {
        let saying = self.runs.entry(run).or_default();
        saying.shown += 1;
        let shown = saying.shown;
        let due: Vec<_> = saying
            .held
            .extract_if(.., |(number, _)| *number <= shown)
            .collect();
        due.iter()
            .filter_map(|(_, piece)| saying.take(piece))
            .collect()
    }

    /// Whether the text of a note was shown already.
    pub fn was_shown(&mut self, run: RunId, subject: HappeningSubject) -> bool {
        let Some(saying) = self.runs.get_mut(&run) else {
            return false;
        };
        let shown = saying.said_as == Some(subject);
        if shown {
            saying.said_as = None;
        }
        shown
    }
}

impl SpeechState {
    fn take(&mut self, piece: &ReplyPiece) -> Option<LiveSpeech> {
        let note = match piece.purpose {
            Purpose::Agent | Purpose::Plan | Purpose::Mandate => HappeningSubject::Thought,
            Purpose::Reflect => HappeningSubject::Reflection,
            Purpose::Verify | Purpose::Safety | Purpose::Summarise | Purpose::Sampling => {
                return None;
            }
        };
        match &piece.said {
            LivePiece::Asked => {
                self.open += 1;
                self.mixed = self.open > 1;
                self.said_as = None;
                self.is_object = false;
                self.is_thinking = false;
                self.thinking_lines = 0;
                None
            }
            LivePiece::Ended => {
                self.open = self.open.saturating_sub(1);
                None
            }
            LivePiece::Text(_) | LivePiece::Thinking(_) if self.mixed => None,
            LivePiece::Text(text) => self.text(text, note),
            LivePiece::Thinking(text) => {
                let begins = !std::mem::replace(&mut self.is_thinking, true);
                let lines_before = self.thinking_lines;
                self.thinking_lines += text.matches('\n').count();
                Some(LiveSpeech {
                    kind: SpokenKind::Thinking,
                    text: text.clone(),
                    begins,
                    lines_before,
                })
            }
            // The call itself comes as an entry.
            LivePiece::Tool(_) | LivePiece::Progress(_) | LivePiece::ProcessEnded(_) => None,
        }
    }

    /// Returns the text of a piece, without the JSON object that may begin in it.
    fn text(&mut self, text: &str, note: HappeningSubject) -> Option<LiveSpeech> {
        if self.is_object {
            return None;
        }
        let starts = OBJECT_STARTS.iter().filter_map(|start| text.find(start));
        let is_whole = self.said_as.is_none() && text.trim_start().starts_with(['{', '[']);
        let object = if is_whole { Some(0) } else { starts.min() };
        let words = match object {
            Some(at) => {
                self.is_object = true;
                &text[..at]
            }
            None => text,
        };
        let begins = self.said_as.is_none();
        // With an object, the note says more than was shown.
        self.said_as = (object.is_none())
            .then_some(note)
            .filter(|_| !words.trim().is_empty() || self.said_as.is_some());
        (!words.is_empty() && (!begins || !words.trim().is_empty())).then(|| LiveSpeech {
            kind: SpokenKind::Words,
            text: words.to_owned(),
            begins,
            lines_before: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(said: LivePiece) -> ReplyPiece {
        ReplyPiece {
            run: "01980000-0000-7000-8000-00000000aaaa".parse().unwrap(),
            purpose: Purpose::Agent,
            said,
        }
    }

    #[test]
    fn what_was_spoken_is_not_noted_again() {
        let mut speech = Speech::default();
        let run = piece(LivePiece::Asked).run;
        assert!(speech.was_asked(run).is_empty());
        let mut say = |said| speech.take(&piece(said)).map(|spoken| spoken.begins);
        assert_eq!(say(LivePiece::Asked), None);
        assert_eq!(say(LivePiece::Thinking("hm\n".into())), Some(true));
        assert_eq!(say(LivePiece::Text("one\n".into())), Some(true));
        assert_eq!(say(LivePiece::Text("two".into())), Some(false));
        assert_eq!(say(LivePiece::Ended), None);
        assert!(!speech.was_shown(run, HappeningSubject::Reflection));
        assert!(speech.was_shown(run, HappeningSubject::Thought));
        assert!(
            !speech.was_shown(run, HappeningSubject::Thought),
            "another thought"
        );
    }

    #[test]
    fn two_at_once_are_left_to_their_entries() {
        let mut speech = Speech::default();
        let run = piece(LivePiece::Asked).run;
        for _ in 0..2 {
            speech.was_asked(run);
        }
        for said in [
            LivePiece::Asked,
            LivePiece::Asked,
            LivePiece::Text("one\n".into()),
        ] {
            assert_eq!(speech.take(&piece(said)), None);
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
            assert_eq!(speech.take(&piece(said)), None);
        }
        let run = piece(LivePiece::Asked).run;
        let lines = speech.was_asked(run);
        assert_eq!(lines.len(), 1);
        assert!(speech.was_shown(run, HappeningSubject::Thought));
    }

    #[test]
    fn objects_are_never_shown() {
        for (pieces, shown) in [
            (&["{\"note\": \"One. ", "Two.\"}"][..], &[][..]),
            (&["```json\n", "{\"a\": 1}\n"], &[]),
            (&["I do. {\"note\": ", "\"x\"}"], &["I do."]),
            (&["Sure:\n", "{\"a\": 1}\n", "more"], &["Sure:"]),
            (&["[1, ", "2]"], &[]),
            (&["plain {braces}\n", "go on"], &["plain {braces}", "go on"]),
        ] {
            let mut speech = Speech::default();
            let run = piece(LivePiece::Asked).run;
            speech.was_asked(run);
            speech.take(&piece(LivePiece::Asked));
            let lines = pieces
                .iter()
                .filter_map(|text| speech.take(&piece(LivePiece::Text((*text).to_owned()))));
            let lines: Vec<_> = lines.map(|line| line.text.trim_end().to_owned()).collect();
            assert_eq!(lines, shown, "{pieces:?}");
        }
    }
}
