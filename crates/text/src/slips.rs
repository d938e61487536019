//! Names that somebody typed a little differently than they are written.

use icu_normalizer::DecomposingNormalizerBorrowed;

/// Minimum number of letters of a name in which one may be wrong.
const MIN_LETTERS: usize = 5;

/// Maximum number of characters of a name.
const MAX_CHARS: usize = 80;

/// Whether a name may be the one that a person mistyped: it differs in case, accents or one letter,
/// or has further names between the first and the last. Only names in words count: of an address or
/// a number, another one is never meant.
pub fn is_slip(typed: &str, known: &str) -> bool {
    let (Some(typed), Some(known)) = (plain(typed), plain(known)) else {
        return false;
    };
    if typed == known {
        return true;
    }
    let is_long = |name: &[String]| name.iter().map(String::len).sum::<usize>() >= MIN_LETTERS;
    let is_near = is_long(&typed)
        && is_long(&known)
        && strsim::osa_distance(&typed.join(" "), &known.join(" ")) == 1;
    is_near || has_more_names(&typed, &known)
}

/// Whether one name is the other with further names between its first and its last.
fn has_more_names(typed: &[String], known: &[String]) -> bool {
    if typed.len() < 2 || known.len() <= typed.len() || typed.last() != known.last() {
        return false;
    }
    let mut rest = known.iter();
    typed.first() == known.first() && typed.iter().all(|name| rest.any(|known| known == name))
}

/// Returns the words of a name in lower case and without accents; `None` if it has no words.
fn plain(name: &str) -> Option<Vec<String>> {
    if name.chars().nth(MAX_CHARS).is_some() {
        return None;
    }
    let apart = DecomposingNormalizerBorrowed::new_nfkd().normalize(name);
    let is_accent = |c: char| matches!(c, '\u{300}'..='\u{36f}');
    let letters: String = apart.chars().filter(|c| !is_accent(*c)).collect();
    let between = |c: char| c.is_whitespace() || matches!(c, '-' | '.' | '\'' | '’');
    let words = letters.split(between).filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(str::to_lowercase).collect();
    let is_word = |word: &String| word.chars().all(char::is_alphabetic);
    // A dot within a word is one of an address.
    let mut after_dots = letters.split('.').skip(1);
    let is_name = words.iter().all(is_word)
        && after_dots.all(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
    (is_name && !words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_told_from_other_names() {
        for (typed, known) in [
            ("anna berg", "Anna Berg"),
            ("Jose Garcia", "José García"),
            ("Müller", "Muller"),
            ("Anna Berg", "Anna Bergs"),
            ("Anna Breg", "Anna Berg"),
            ("Jon Smith", "John Smith"),
            ("Anna Berg", "Anna M. Berg"),
            ("Anna Berg", "Anna Maria Luisa Berg"),
            ("Chez Max", "Chéz Max"),
            ("O Connor", "O'Connor"),
            ("Anna-Lena Berg", "Anna Lena Berg"),
        ] {
            assert!(is_slip(typed, known), "{typed} {known}");
        }
        for (typed, known) in [
            ("Anna Berg", "Anne Borg"),
            ("Anna Berg", "Berg Anna"),
            ("Anna", "Anna Berg"),
            ("Anna Berg", "Anna Berg Evil"),
            ("Anna Berg", "Maria Anna Berg"),
            ("Bob", "Rob"),
            ("anna@x.com", "anna@x.co"),
            ("anna@x.com", "Anna@x.com"),
            ("x.com", "x.con"),
            ("DE1234", "DE1235"),
            ("room 21", "room 22"),
            ("general", "general_"),
            ("", ""),
            ("...", "."),
        ] {
            assert!(!is_slip(typed, known), "{typed} {known}");
        }
    }
}
