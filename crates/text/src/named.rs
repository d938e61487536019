//! Whether a person named a value: it stands as a whole word, or several, in what they typed.
//!
//! Letters count without their case, spaces as one; a scheme before an address, a slash after it
//! and the `#` or `@` before a channel or person are set aside. A number alone is never named:
//! "two events at 12" names no account 12. Neither is a word that every text holds.

use crate::{is_unseen, links::is_registered};

/// Words in a sentence that never name anybody.
const COMMON: &str = "\
     a about all an and any anybody anyone as at be but by do each everybody everyone for from get \
     have he here him i if in is it its me my no not of on one or our out public she so some \
     somebody someone that the them then there they this to up us we what when which who with world \
     you your";

/// Characters that may directly precede a word.
const OPENING: &str = "([{<\"'`«“„‘‹*_";

/// Characters that may directly follow a word.
const CLOSING: &str = ")]}>\"'`»”“’›.!?:…*_";

/// Characters that separate words, as spaces do.
const BETWEEN: &str = ",;|";

/// Returns the form in which two spellings of one destination are the same text.
pub fn folded_name(value: &str) -> String {
    let lower = value.to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let text = words.join(" ");
    let schemes = ["https://", "http://"];
    let bare = schemes.iter().find_map(|scheme| text.strip_prefix(scheme));
    let bare = bare.unwrap_or(&text);
    let bare = bare.strip_suffix('/').unwrap_or(bare);
    let bare = bare.strip_prefix(['#', '@']).unwrap_or(bare);
    bare.to_owned()
}

/// Whether the value occurs as a whole in one of the texts.
pub fn is_named(value: &str, texts: &[&str]) -> bool {
    let value = folded_name(value);
    let is_number = !value.chars().any(char::is_alphabetic);
    if is_number || COMMON.split(' ').any(|common| common == value) || value.chars().any(is_unseen)
    {
        return false;
    }
    let stands_in = |text: &str| {
        stands_in(&value, text)
            || sentences_apart(text).is_some_and(|text| stands_in(&value, &text))
    };
    texts.iter().any(|text| stands_in(text))
}

/// Returns the text with a space before each sentence that begins without one: right after the dot
/// of the last, with a capital, and not as a name's ending would.
fn sentences_apart(text: &str) -> Option<String> {
    let begins = |at: usize| {
        let rest = &text[at + 1..];
        let word = &rest[..rest
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(rest.len())];
        let ends = rest[word.len()..].chars().next();
        let is_word = ends.is_none_or(|c| c.is_whitespace() || c == ',');
        let mut letters = word.chars();
        let is_capital = letters.next().is_some_and(char::is_uppercase);
        is_capital && is_word && letters.all(char::is_lowercase) && !is_registered(word)
    };
    let dots = text.match_indices('.').map(|(at, _)| at + 1);
    let starts: Vec<usize> = dots.filter(|at| begins(at - 1)).collect();
    let mut apart = text.to_owned();
    for at in starts.iter().rev() {
        apart.insert(*at, ' ');
    }
    (!starts.is_empty()).then_some(apart)
}

/// Whether a number occurs in one of the texts, with a currency or not: `12.50`, `€12.50` and
/// `12.5` are the same.
pub fn is_number_named(value: &str, texts: &[&str]) -> bool {
    let Some(value) = number_in(value) else {
        return false;
    };
    let between = |c: char| c.is_whitespace() || "()[]{}\"'`“”«»;!?".contains(c);
    let mut words = texts.iter().flat_map(|text| text.split(between));
    words.any(|word| number_in(word) == Some(value))
}

/// Returns the value of a word that is a number, without currency and the punctuation around it.
pub fn number_in(word: &str) -> Option<f64> {
    let word = word.trim_end_matches(['.', ',', ':']);
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == ',' || c == '-';
    let word = word.trim_matches(|c: char| !is_part(c));
    let plain = word.replace(',', "");
    plain.parse().ok()
}

fn stands_in(value: &str, text: &str) -> bool {
    let text: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let text = text.join(" ");
    let mut from = 0;
    while let Some(found) = text[from..].find(value) {
        let (start, end) = (from + found, from + found + value.len());
        if begins_word(&text[..start]) && ends_word(&text[end..]) {
            return true;
        }
        from = start + text[start..].chars().next().map_or(1, char::len_utf8);
    }
    false
}

/// Whether a word can begin after this text.
fn begins_word(before: &str) -> bool {
    let schemes = ["https://", "http://"];
    let before = schemes
        .iter()
        .find_map(|scheme| before.strip_suffix(scheme))
        .unwrap_or(before);
    let before = before.strip_suffix(['#', '@']).unwrap_or(before);
    let before = before.trim_end_matches(|c| OPENING.contains(c));
    before.chars().next_back().is_none_or(is_between)
}

/// Whether a word can end before this text.
fn ends_word(after: &str) -> bool {
    let after = after.strip_prefix('/').unwrap_or(after);
    let possessive = ["'s", "’s"]
        .into_iter()
        .find_map(|end| after.strip_prefix(end));
    let after = possessive.unwrap_or(after);
    let after = after.trim_start_matches(|c| CLOSING.contains(c));
    after.chars().next().is_none_or(is_between)
}

fn is_between(c: char) -> bool {
    c.is_whitespace() || BETWEEN.contains(c) || c == '—' || c == '–'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_in_any_usual_writing_are_named() {
        let goal = "Mail “Anna Berg” (anna@x.com), bob@x.com;carl@x.com: the minutes of \
                    Dora's talk. Post them in #general and at https://Wiki.x.com/notes/.";
        for value in [
            "anna@x.com",
            "ANNA@X.COM",
            "bob@x.com",
            "carl@x.com",
            "Anna  Berg",
            "Dora",
            "#general",
            "general",
            "wiki.x.com/notes",
            "http://wiki.x.com/notes/",
        ] {
            assert!(is_named(value, &[goal]), "{value}");
        }
    }

    #[test]
    fn a_sentence_may_begin_without_a_space() {
        let goal = "Post it to www.our-company.com.They wait. Tell Alice.Also Bob, see x.Com and \
                    a.In the end, notes.Final.txt or evil.Org";
        for value in ["www.our-company.com", "Alice", "x.com", "evil.org"] {
            assert!(is_named(value, &[goal]), "{value}");
        }
        for value in ["www.our-company", "x", "notes", "evil", "our-company.com"] {
            assert!(!is_named(value, &[goal]), "{value}");
        }
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        let goal = "Pay $1,200.50 (not 12) by card 4711.";
        for value in ["1200.5", "1,200.50", "12", "4711"] {
            assert!(is_number_named(value, &[goal]), "{value}");
        }
        for value in ["1", "200.50", "120050", "471", "", "x", "-12"] {
            assert!(!is_number_named(value, &[goal]), "{value}");
        }
    }

    #[test]
    fn parts_numbers_and_common_words_are_not() {
        let goal = "Pay 12 to all of anna@x.com, see notevil.com and a.com/x/y?z=1, us-east and \
                    (the one) at x.com:8080 by 2026-11-26";
        for value in [
            "12",
            "anna",
            "x.com",
            "@x.com",
            "na@x.com",
            "evil.com",
            "a.com",
            "a.com/x",
            "a.com/x/y",
            "east",
            "all",
            "The",
            "2026-11-26",
            "anna@x.com.evil.com",
            "",
            " ",
            "/",
            "#",
            "anna@x.com\u{200b}",
            "see\u{202e}",
        ] {
            assert!(!is_named(value, &[goal]), "{value}");
        }
    }
}
