//! About how many tokens a prompt takes: the estimate that docs/reactive.md states, written anew.

/// Counts the tokens of a text: one for every seven letters of a word, every three digits, every
/// mark or run of up to four equal ones, and every letter outside of ASCII.
pub(crate) fn of_text(text: &str) -> u64 {
    let mut sum = 0;
    let mut letters = text.chars().peekable();
    while let Some(first) = letters.next() {
        let alike = |next: &char| match first {
            _ if first.is_ascii_alphabetic() => next.is_ascii_alphabetic(),
            _ if first.is_ascii_digit() => next.is_ascii_digit(),
            _ => *next == first,
        };
        let mut length = 1_u64;
        while letters.next_if(alike).is_some() {
            length += 1;
        }
        sum += match first {
            ' ' => 0,
            _ if first.is_ascii_alphabetic() => length.div_ceil(7),
            _ if first.is_ascii_digit() => length.div_ceil(3),
            _ if first.is_ascii() => length.div_ceil(4),
            _ => length,
        };
    }
    sum
}

/// Counts the tokens of a picture: one for every square of 28 pixels, the dearest formula known.
pub(crate) fn of_picture(width: u32, height: u32) -> u64 {
    u64::from(width.div_ceil(28)) * u64::from(height.div_ceil(28))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_it_is_stated() {
        assert_eq!(of_text("b17 button \"Send\""), 6);
        assert_eq!(of_text("日本語"), 3);
        assert_eq!(of_text("=== the goal ==="), 4);
        assert_eq!(of_picture(1280, 800), 1334);
    }
}
