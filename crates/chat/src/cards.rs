//! Approval cards as messages. A card is shown whole, and its buttons name its digest.

use gyrus_contract::Digest;
use gyrus_kernel::approvals::OpenQuestion;
use gyrus_surfaces::console::card;
use gyrus_text::{clip, one_line};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ButtonMeaning {
    Allow {
        card: u64,
    },
    Deny {
        card: u64,
    },
    /// Send the message with this number again.
    Again {
        message: u64,
    },
    File {
        /// The place of the file in the list of the run's files.
        index: u64,
    },
}

/// Number of characters of a digest in a button's data.
const MARK: usize = 24;

/// Columns of a file's name on a button.
const LABEL: usize = 40;

pub(crate) fn text(open: &OpenQuestion) -> String {
    let asked = if open.card.question {
        "Reply to this message to answer."
    } else {
        "Allow it once, or deny it?"
    };
    card::plain_text(open) + asked
}

pub(crate) fn buttons(number: u64, open: &OpenQuestion) -> Vec<(String, String)> {
    if open.card.question {
        return Vec::new();
    }
    let mark = mark(&open.digest);
    vec![
        ("Allow once".to_owned(), format!("allow:{number}:{mark}")),
        ("Deny".to_owned(), format!("deny:{number}:{mark}")),
    ]
}

/// Returns the button by which a message is sent again.
pub(crate) fn again(message: u64) -> Vec<(String, String)> {
    vec![("Send it again".to_owned(), format!("again:{message}"))]
}

pub(crate) fn files(paths: &[String]) -> Vec<(String, String)> {
    let label = |path: &String| format!("📄 {}", clip(&one_line(path), LABEL));
    let button = |(index, path)| (label(path), format!("file:{index}"));
    paths.iter().enumerate().map(button).collect()
}

/// Parses the data of a button, and returns its meaning with the mark of a digest.
pub(crate) fn read(data: &str) -> Option<(ButtonMeaning, Option<&str>)> {
    let mut words = data.split(':');
    let (word, number, mark) = (words.next()?, words.next()?, words.next());
    let number = number.parse().ok()?;
    let meaning = match word {
        "allow" => ButtonMeaning::Allow { card: number },
        "deny" => ButtonMeaning::Deny { card: number },
        "again" => ButtonMeaning::Again { message: number },
        "file" => ButtonMeaning::File { index: number },
        _ => return None,
    };
    Some((meaning, mark))
}

/// Returns the part of a digest that a button carries.
pub(crate) fn mark(digest: &Digest) -> String {
    digest.to_string().chars().take(MARK).collect()
}

#[cfg(test)]
mod tests {
    use gyrus_contract::{Origin, RunId, Text};
    use gyrus_kernel::{ApprovalCard, Validity};

    use super::*;

    #[test]
    fn a_card_is_whole_and_nothing_in_it_looks_like_ours() {
        let details = format!(
            "command: ls\x1b[1A\nAllow it once, or deny it?\n{}end",
            "x\n".repeat(300)
        );
        let open = OpenQuestion {
            run: RunId::new(),
            id: "2.3".parse().unwrap(),
            card: ApprovalCard {
                sentence: "run a command".to_owned(),
                reasons: vec!["it is\nnot known".to_owned()],
                details: vec![Text::new(details, Origin::Model)],
                ..ApprovalCard::default()
            },
            digest: Digest::of(b"call"),
            valid: Validity {
                from_ms: 0,
                until_ms: 1,
            },
        };
        let text = text(&open);
        assert!(text.contains("\n┃ end\nAllow it once"), "{text}");
        assert!(text.contains(
            "- it is⏎not known\nas written by the model (unverified):\n┃ command: ls␛[1A\n┃ Allow"
        ));
        for (_, data) in buttons(u64::MAX, &open) {
            assert!(data.len() <= 64, "{data}");
            let (_, given) = read(&data).unwrap();
            assert_eq!(given, Some(mark(&open.digest).as_str()));
        }
        for odd in ["", "allow", "allow:x", "allow:-1:a", "other:1", ":::"] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }
}
