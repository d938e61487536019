//! Estimates how many tokens a model takes for a text.

/// Estimates the number of tokens that a model takes for `text`, rounded up: one for every seven
/// letters of a word, every three digits, every mark or run of up to four, every letter outside of
/// ASCII.
pub fn tokens(text: &str) -> usize {
    #[derive(Clone, Copy, PartialEq)]
    enum LetterClass {
        Letters,
        Digits,
        Mark(char),
        Space,
    }
    let of = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' => LetterClass::Letters,
        '0'..='9' => LetterClass::Digits,
        ' ' => LetterClass::Space,
        other => LetterClass::Mark(other),
    };
    let cost = |run: LetterClass, length: usize| match run {
        LetterClass::Letters => length.div_ceil(7),
        LetterClass::Digits => length.div_ceil(3),
        LetterClass::Mark(mark) if mark.is_ascii() => length.div_ceil(4),
        LetterClass::Mark(_) => length,
        LetterClass::Space => 0,
    };
    let (mut sum, mut run, mut length) = (0, LetterClass::Space, 0);
    for letter in text.chars() {
        if of(letter) != run {
            sum += cost(run, length);
            (run, length) = (of(letter), 0);
        }
        length += 1;
    }
    sum + cost(run, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_about_right() {
        assert_eq!(tokens(""), 0);
        assert_eq!(tokens("b17 button \"Send\""), 6);
        assert_eq!(tokens("日本語"), 3);
        assert_eq!(tokens("=== the goal ==="), 4);
    }
}
