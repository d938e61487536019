//! Numbers in sentences.

/// Returns the number with the noun in the right form: `1 file`, `2 files`, `1,234 entries`. `noun`
/// is in the singular; its last word is given the ending of a regular English plural.
pub fn counted(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{} {}", grouped(number), plural(number, noun))
}

/// Returns the noun in the form that fits the number: `file` or `files`.
pub fn plural(number: impl TryInto<u64>, noun: &str) -> String {
    if number.try_into().is_ok_and(|number| number == 1) {
        return noun.to_owned();
    }
    let before_last = noun.chars().rev().nth(1);
    let is_vowel = |c: char| "aeiou".contains(c);
    match noun.strip_suffix('y') {
        Some(stem) if !before_last.is_some_and(is_vowel) => format!("{stem}ies"),
        _ if ["s", "x", "z", "ch", "sh"]
            .iter()
            .any(|end| noun.ends_with(end)) =>
        {
            format!("{noun}es")
        }
        _ => format!("{noun}s"),
    }
}

/// Returns a number with commas between its thousands.
pub fn grouped(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_agree() {
        for (number, noun, expected) in [
            (0_u64, "file", "0 files"),
            (1, "file", "1 file"),
            (2, "more line", "2 more lines"),
            (1, "entry", "1 entry"),
            (3, "entry", "3 entries"),
            (3, "day", "3 days"),
            (3, "match", "3 matches"),
            (3, "process", "3 processes"),
            (1_234_567, "byte", "1,234,567 bytes"),
        ] {
            assert_eq!(counted(number, noun), expected);
        }
        assert_eq!(plural(1_usize, "run"), "run");
        assert_eq!(plural(-1_i32, "run"), "runs");
    }

    #[test]
    fn thousands_are_set_apart() {
        for (number, text) in [
            (0_u64, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
