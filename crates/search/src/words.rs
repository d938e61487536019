//! Splits text into the words that are searched.

/// Maximum characters of a word that are searched; the rest of a longer one is ignored.
const MAX_WORD_CHARS: usize = 40;

/// Calls `each` with every word of a text, in lower case.
///
/// A word is a sequence of letters and digits. Scripts that are written without spaces have no such
/// sequences: there each character is a word.
pub fn words(text: &str, mut each: impl FnMut(&str)) {
    let mut word = String::new();
    let mut chars = 0;
    for character in text.chars() {
        if !character.is_alphanumeric() || stands_alone(character) {
            if !word.is_empty() {
                each(&word);
                word.clear();
                chars = 0;
            }
            if stands_alone(character) {
                each(character.encode_utf8(&mut [0; 4]));
            }
            continue;
        }
        if chars < MAX_WORD_CHARS {
            word.extend(character.to_lowercase());
        }
        chars += 1;
    }
    if !word.is_empty() {
        each(&word);
    }
}

/// Whether a character belongs to a script that is written without spaces.
fn stands_alone(character: char) -> bool {
    matches!(character,
        '\u{0e00}'..='\u{0eff}'
        | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{20000}'..='\u{3ffff}')
        && character.is_alphanumeric()
}

/// Returns the different words of a query, in their order.
pub fn query_words(query: &str) -> Vec<String> {
    /// Maximum number of words of a query; further ones are ignored.
    const MAX_WORDS: usize = 64;
    let mut found: Vec<String> = Vec::new();
    words(query, |word| {
        if found.len() < MAX_WORDS && !found.iter().any(|known| known == word) {
            found.push(word.to_owned());
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_texts() {
        for (text, expected) in [
            ("", ""),
            ("Eve's e-mail: EVE@x.org", "eve s e mail x org"),
            ("Ärger ÜBER 42", "ärger über 42"),
            ("東京 tower", "東 京 tower"),
            ("a\0b \u{202e}c", "a b c"),
        ] {
            assert_eq!(query_words(text).join(" "), expected, "{text}");
        }
        assert_eq!(query_words(&"x".repeat(10_000)), ["x".repeat(40)]);
    }
}
