//! The answers that a person can type to a card.

use gyrus_contract::{Answer, ApprovalScope};
use gyrus_kernel::{ApprovalCard, approvals::OpenQuestion};

/// Returns what can be answered to a card.
pub fn choices(card: &ApprovalCard) -> &'static str {
    if card.question {
        "your answer: "
    } else if card.edit.is_some() {
        "y = yes, e = edit it first, n = no, n and words = no, and what to do instead: "
    } else if card.wider.is_empty() {
        "y = yes, n = no, n and words = no, and what to do instead: "
    } else {
        "y = yes, once; s = for this session; a = always here; n = no, n and words = no, and what \
         to do instead: "
    }
}

/// Whether a typed line asks for an editor.
pub fn wants_to_edit(typed: &str, card: &ApprovalCard) -> bool {
    let word = typed.trim().to_ascii_lowercase();
    card.edit.is_some() && (word == "e" || word == "edit")
}

/// Parses a typed line as an answer; `None` if it is neither yes nor no, or no answer to a
/// question.
pub fn understand(typed: &str, card: &ApprovalCard) -> Option<Answer> {
    let typed = typed.trim();
    if card.question {
        return (!typed.is_empty()).then(|| Answer::words(typed));
    }
    let (word, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    let rest = rest.trim();
    match word.to_ascii_lowercase().as_str() {
        // Words after a yes may be a condition, and a yes has none.
        "y" | "yes" if rest.is_empty() => Some(Answer::yes(ApprovalScope::Once)),
        "s" | "session" if rest.is_empty() => Some(Answer::yes(ApprovalScope::Session)),
        "a" | "always" if rest.is_empty() => Some(Answer::yes(ApprovalScope::Always)),
        "n" | "no" => Some(Answer::Deny {
            reason: (!rest.is_empty()).then(|| rest.to_owned()),
        }),
        _ => None,
    }
}

/// Returns the part of a card's sentence that says what is wanted, without where.
fn kind(card: &ApprovalCard) -> &str {
    let sentence = &card.sentence;
    let places = [" connect to ", " change /", " read /"];
    let mut parts = places.iter().map(|place| sentence.rsplit_once(place));
    parts
        .find_map(|parts| parts)
        .or_else(|| sentence.split_once(": "))
        .map_or(sentence, |(kind, _)| kind)
}

/// Whether two cards are asked together: nobody can say more to the one than to the other.
pub(super) fn is_alike(one: &OpenQuestion, other: &OpenQuestion) -> bool {
    let is_plain = |card: &ApprovalCard| !card.question && card.edit.is_none();
    is_plain(&one.card) && is_plain(&other.card) && kind(&one.card) == kind(&other.card)
}

/// Parses a typed line as an answer to all cards that are asked together.
pub(super) fn understand_all(typed: &str) -> Option<Answer> {
    let typed = typed.trim();
    let (word, rest) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    match word {
        "Y" if rest.is_empty() => Some(Answer::yes(ApprovalScope::Once)),
        "N" => Some(Answer::Deny {
            reason: (!rest.trim().is_empty()).then(|| rest.trim().to_owned()),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_is_a_yes() {
        let yes = |scope| Some(Answer::yes(scope));
        let card = ApprovalCard::default();
        for (typed, answer) in [
            ("y\n", yes(ApprovalScope::Once)),
            (" YES ", yes(ApprovalScope::Once)),
            ("s", yes(ApprovalScope::Session)),
            ("a", yes(ApprovalScope::Always)),
            ("n", Some(Answer::Deny { reason: None })),
            (
                "no use the other folder\n",
                Some(Answer::no("use the other folder")),
            ),
            ("yes but not x", None),
            ("", None),
            ("yess", None),
        ] {
            assert_eq!(understand(typed, &card), answer, "{typed}");
        }
    }
}
