//! What a word that is not known was probably meant to be.

/// The most characters of a word for which a known one is sought: comparing takes time with the
/// product of both lengths.
const MAX_CHARS: usize = 100;

/// The most edits between a word and what it was meant to be, however long they are.
const MAX_EDITS: usize = 3;

/// The known word that `given` is probably a misspelling of, the first of several that are equally
/// near. Letters inserted, left out, exchanged or swapped with their neighbour count as one edit
/// each; there may be [`MAX_EDITS`], and three for each seven characters of the longer word. Case
/// does not count.
pub fn closest<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if given.is_empty() || given.chars().nth(MAX_CHARS).is_some() {
        return None;
    }
    let given = given.to_lowercase();
    let edits_from = |known: &'k str| {
        let longer = given.chars().count().max(known.chars().count());
        let most = (longer * 3 / 7).min(MAX_EDITS);
        // Not compared where their lengths differ by more.
        if known.len().abs_diff(given.len()) > 4 * MAX_EDITS {
            return None;
        }
        let edits = strsim::osa_distance(&given, &known.to_lowercase());
        (edits <= most).then_some((edits, known))
    };
    let near = known.into_iter().filter_map(edits_from);
    near.min_by_key(|(edits, _)| *edits).map(|(_, known)| known)
}

/// The same for a message of a parser that names the unknown word first and then those that it
/// expected, each between backquotes, as those of serde do. `None` for other messages.
pub fn closest_in(message: &str) -> Option<&str> {
    if !message.starts_with("unknown ") {
        return None;
    }
    let mut words = message.split('`').skip(1).step_by(2);
    closest(words.next()?, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspellings_are_told_from_other_words() {
        let known = [
            "openai",
            "anthropic",
            "gemini",
            "react",
            "plan",
            "text",
            "reply",
            "path",
            "tidy",
        ];
        for (given, meant) in [
            ("nope", None),
            ("opnai", Some("openai")),
            ("antropic", Some("anthropic")),
            ("ANTHROPIC", Some("anthropic")),
            ("raect", Some("react")),
            ("plna", Some("plan")),
            ("txet", Some("text")),
            ("pth", Some("path")),
            ("replies", Some("reply")),
            ("tdiy", Some("tidy")),
            ("x", None),
            ("", None),
            ("\u{202e}", None),
        ] {
            assert_eq!(closest(given, known), meant, "{given}");
        }
        assert_eq!(closest(&"plan".repeat(1_000_000), known), None);
        assert_eq!(closest("plan", [&*"plan".repeat(1_000_000)]), None);
        // The nearest, and the first of those.
        assert_eq!(closest("plann", ["plans", "plan", "plane"]), Some("plans"));
        assert_eq!(closest("plan", ["plane", "plan"]), Some("plan"));
    }

    #[test]
    fn messages_of_parsers() {
        let message = "unknown field `txet`, expected one of `find`, `text`";
        assert_eq!(closest_in(message), Some("text"));
        assert_eq!(closest_in("invalid type: `txet`, `text`"), None);
        assert_eq!(closest_in("unknown field `modl`"), None);
    }
}
