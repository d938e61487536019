//! Suggests known words for an unknown one.

/// Maximum number of characters of a word that is compared with known ones, in a time that grows
/// with the product of both lengths.
const MAX_CHARS: usize = 100;

/// Maximum number of edits between a word and the one that was meant, whatever their length.
const MAX_EDITS: usize = 3;

/// Minimum length of a typed beginning of a longer word.
const MIN_BEGINNING: usize = 3;

/// Returns the known word that `given` probably means: the only one that begins with it, or else
/// the one that it is a misspelling of, the first of several that are equally near. Letters
/// inserted, left out, exchanged or swapped with their neighbour count as one edit each; at most
/// three are allowed, and three for each seven characters of the longer word. Case does not count.
pub fn closest<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if given.is_empty() || given.chars().nth(MAX_CHARS).is_some() {
        return None;
    }
    let given = given.to_lowercase();
    let known: Vec<&'k str> = known.into_iter().collect();
    if let Some(only) = only_beginning_with(&given, &known) {
        return Some(only);
    }
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

/// The only known word that begins with `given`, which is in lower case.
fn only_beginning_with<'k>(given: &str, known: &[&'k str]) -> Option<&'k str> {
    let mut found = known
        .iter()
        .filter(|known| known.to_lowercase().starts_with(given));
    let is_long_enough = given.chars().nth(MIN_BEGINNING - 1).is_some();
    match (found.next(), found.next()) {
        (Some(only), None) if is_long_enough => Some(only),
        _ => None,
    }
}

/// Finds the word [meant](closest) by an unknown one in a parser's message, which first names that
/// word and then the expected ones, each between backquotes, as serde does. `None` for other
/// messages.
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
            // Beginnings.
            ("anthro", Some("anthropic")),
            ("ant", Some("anthropic")),
            ("an", None),
            ("tdiy", Some("tidy")),
            ("x", None),
            ("", None),
            ("\u{202e}", None),
        ] {
            assert_eq!(closest(given, known), meant, "{given}");
        }
        let long = "plan".repeat(1_000_000);
        assert!(closest(&long, known).is_none() && closest("paln", [&*long]).is_none());
        assert_eq!(closest("open", ["openai", "openrouter"]), Some("openai"));
        assert_eq!(
            closest("openr", ["openai", "openrouter"]),
            Some("openrouter")
        );
        assert_eq!(closest("chain", ["chain-one", "chain-two"]), None);
        // The nearest, and the first of those.
        assert_eq!(closest("plann", ["plans", "plan", "plane"]), Some("plans"));
        assert_eq!(closest("paln", ["plane", "plan"]), Some("plan"));
    }

    #[test]
    fn messages_of_parsers() {
        let message = "unknown field `txet`, expected one of `find`, `text`";
        assert_eq!(closest_in(message), Some("text"));
        assert_eq!(closest_in("invalid type: `txet`, `text`"), None);
        assert_eq!(closest_in("unknown field `modl`"), None);
    }
}
