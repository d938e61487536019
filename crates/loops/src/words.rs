//! Whether a reply in words is an answer.
//!
//! Words end a turn: most of what people ask is answered by them. Some replies are no answer, and a
//! run that took them for one would end with nothing done: an empty one, a piece of a call that
//! nobody could read, a repetition of what the model was told, and, as long as nothing was done, an
//! announcement of what will be done next. The model is asked once more after such a reply, then with
//! its reply bound to a call.

/// The reason why a reply is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UselessReply {
    Empty,
    /// The reply contains a piece of a call.
    PieceOfCall,
    /// The reply repeats a message to the model.
    Repetition,
    /// The reply announces work, but nothing was done.
    Announcement,
}

/// The message after a useless reply. Nothing in these messages could be one.
pub(crate) const AFTER_NO_CALL: &str =
    "[no call was read from that reply; one call is expected now]";

/// The message after an empty reply, when the work may be finished.
pub(crate) const AFTER_SILENCE: &str =
    "[that reply was empty; the answer, or the next call, is expected now]";

/// The message after words that follow a call that failed.
pub(crate) const AFTER_FAILURE: &str =
    "[the last call failed and nothing was done since; one call is expected now]";

/// The advice after a claim whose evidence failed.
pub(crate) const AFTER_FAILED_EVIDENCE: &str =
    "Nothing was recorded. Do it again if it can succeed now, or finish with what is true";

/// The message after a reply that reached its length limit.
pub(crate) const AFTER_CUT_OFF: &str = "[the reply was cut off at its length limit before a call was \
                                        complete, so nothing happened; smaller parts fit]";

/// Words with which an announcement begins, in the languages that models fall into.
const ANNOUNCING: [&str; 25] = [
    "i will ",
    "i'll ",
    "i’ll ",
    "i am going to ",
    "i'm going to ",
    "i’m going to ",
    "i need to ",
    "let me ",
    "let's ",
    "let us ",
    "we will ",
    "we'll ",
    "we need to ",
    "first, i",
    "first i ",
    "next, i",
    "to do this, i",
    "to do that, i",
    "sure, i",
    "ich werde ",
    "lass mich ",
    "je vais ",
    "voy a ",
    "vou ",
    "我将",
];

/// Words of the longest announcement.
const LONGEST_ANNOUNCEMENT: usize = 60;

/// Marks of a call in a text.
const MARKS: [&str; 8] = [
    "\"arguments\"",
    "\"parameters\"",
    "<tool_call",
    "</tool_call",
    "<function",
    "<|tool",
    "[tool_calls]",
    "\"tool\":",
];

/// Returns the reason why the words of a reply are no answer; `has_acted` says whether a call was
/// executed in the run, and `instructions` are those that the model has.
pub(crate) fn no_answer(words: &str, has_acted: bool, instructions: &str) -> Option<UselessReply> {
    let words = words.trim();
    let lower = words.to_lowercase();
    if !words.chars().any(char::is_alphanumeric) {
        return Some(UselessReply::Empty);
    }
    let opens = lower.contains('{') || lower.contains('<') || lower.contains('[');
    if opens && MARKS.iter().any(|mark| lower.contains(mark)) && looks_like_call(&lower) {
        return Some(UselessReply::PieceOfCall);
    }
    let plain = plain(&lower);
    let is_said_again = |line: &str| {
        let line = self::plain(&line.to_lowercase());
        line.len() > 20 && (plain == line || line.contains(&plain) && plain.len() > 20)
    };
    let reminders = [AFTER_NO_CALL, AFTER_SILENCE, AFTER_FAILURE, AFTER_CUT_OFF];
    if instructions.lines().chain(reminders).any(is_said_again) {
        return Some(UselessReply::Repetition);
    }
    (!has_acted && announces(&lower)).then_some(UselessReply::Announcement)
}

/// Whether a text, in lower case, is a call and little else: prose that explains one is an answer.
fn looks_like_call(lower: &str) -> bool {
    let start = lower.find(['{', '<', '[']).unwrap_or(0);
    let before = lower[..start].split_whitespace().count();
    let end = lower
        .rfind(['}', '>', ']'])
        .map_or(lower.len(), |at| at + 1);
    let after = lower[end.max(start)..].split_whitespace().count();
    before + after < 40
}

/// Whether a text, in lower case, only announces work.
fn announces(lower: &str) -> bool {
    if lower.split_whitespace().count() > LONGEST_ANNOUNCEMENT {
        return false;
    }
    let sentences = lower.split(['.', '!', '?', '\n', ':']);
    let mut sentences = sentences.map(str::trim).filter(|one| !one.is_empty());
    let begins = |sentence: &str| ANNOUNCING.iter().any(|words| sentence.starts_with(words));
    let first = sentences.next().unwrap_or_default();
    let last = sentences.next_back().unwrap_or(first);
    begins(first) || begins(last) || lower.ends_with(':')
}

/// Returns the letters and digits of a text.
fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_an_answer_unless_they_cannot_be_one() {
        let told = "You work on a person's goal with tools.";
        for (words, has_acted, expected) in [
            ("4", false, None),
            ("The file is renamed.", true, None),
            ("Paris is the capital of France.", false, None),
            ("", true, Some(UselessReply::Empty)),
            ("```\n```", false, Some(UselessReply::Empty)),
            (
                "I will ask the person for the name.",
                false,
                Some(UselessReply::Announcement),
            ),
            (
                "Sure, I'll do that. First, I'll list the files.",
                false,
                Some(UselessReply::Announcement),
            ),
            (
                "Here is the command:",
                false,
                Some(UselessReply::Announcement),
            ),
            (
                "Ich werde die Datei lesen.",
                false,
                Some(UselessReply::Announcement),
            ),
            ("I will be brief: it is done.", true, None),
            (
                "```json\n{\"tool\": \"shell\", \"arguments\": {\"command\": \"ls",
                true,
                Some(UselessReply::PieceOfCall),
            ),
            (
                "<tool_call>\n{\"name\": \"x\", \"arguments\": {}}",
                true,
                Some(UselessReply::PieceOfCall),
            ),
            (AFTER_NO_CALL, true, Some(UselessReply::Repetition)),
            (AFTER_SILENCE, true, Some(UselessReply::Repetition)),
        ] {
            assert_eq!(no_answer(words, has_acted, told), expected, "{words}");
        }
    }

    #[test]
    fn opinions_and_explanations_are_answers() {
        let long = "Let me explain. ".to_owned() + &"A packet is sent again. ".repeat(20);
        for words in ["I would take Rust, because it is safe.", &long] {
            assert_eq!(no_answer(words, false, ""), None, "{words}");
        }
    }

    #[test]
    fn prose_about_a_call_is_an_answer() {
        let prose = "A call has two parts. ".repeat(20)
            + "For example {\"tool\": \"shell\", \"arguments\": {}} runs a command.";
        assert_eq!(no_answer(&prose, false, ""), None);
    }
}
