//! Texts cut to a number of characters or bytes, never within a character.
//!
//! Characters bound what somebody reads, bytes what is stored or searched. What fits in the columns
//! of a terminal is cut by [`clip`](crate::clip).

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// Returns the first `most` characters of the text, with `…` if there were more. A letter keeps its
/// combining marks, or is left out with them.
pub fn shorten(text: &str, most: usize) -> Cow<'_, str> {
    let start = first_chars(text, most);
    if start.len() == text.len() {
        return Cow::Borrowed(text);
    }
    let mut end = start.len();
    while let Some(last) = text[..end].chars().next_back() {
        let next = text[end..].chars().next();
        if last != '\u{200d}' && next.and_then(char::width) != Some(0) {
            break;
        }
        end -= last.len_utf8();
    }
    // Marks without end have no letter to be left out with.
    let kept = if end == 0 { start } else { &text[..end] };
    Cow::Owned(format!("{}…", kept.trim_end()))
}

/// Returns the first `most` characters of the text.
pub fn first_chars(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// Returns the longest beginning of the text with at most `most` bytes.
pub fn first_bytes(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// The longest beginning of at most `head` bytes, the number of bytes left out, and the longest end
/// of at most `tail` bytes. `None` if the text has at most `head + tail` bytes, so that nothing
/// needs to be left out.
pub fn head_and_tail(text: &str, head: usize, tail: usize) -> Option<(&str, usize, &str)> {
    if text.len() <= head.saturating_add(tail) {
        return None;
    }
    let head = first_bytes(text, head);
    let tail = &text[text.ceil_char_boundary(text.len() - tail)..];
    Some((head, text.len() - head.len() - tail.len(), tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_marked_and_spares_whole_letters() {
        for (text, most, shown) in [
            ("", 0, ""),
            ("", 3, ""),
            ("abc", 3, "abc"),
            ("abcd", 3, "abc…"),
            ("ab cd", 3, "ab…"),
            ("abc", 0, "…"),
            ("日本語", 2, "日本…"),
            ("日本語", 3, "日本語"),
            // Letters with combining marks.
            ("xe\u{301}y", 2, "x…"),
            ("xe\u{301}y", 3, "xe\u{301}…"),
            ("xe\u{301}", 3, "xe\u{301}"),
            // A joined pictograph.
            ("x👩\u{200d}🚀", 3, "x…"),
            ("x👩\u{200d}🚀", 2, "x…"),
            ("❤\u{fe0f}x", 2, "❤\u{fe0f}…"),
            // Nothing but marks.
            ("e\u{301}\u{301}\u{301}", 2, "e\u{301}…"),
        ] {
            assert_eq!(shorten(text, most), shown, "{text:?} {most}");
        }
        assert!(matches!(shorten("abc", 3), Cow::Borrowed(_)));
    }

    #[test]
    fn bytes_and_characters_are_whole() {
        assert_eq!(first_chars("äöü", 2), "äö");
        assert_eq!(first_chars("äöü", 3), "äöü");
        assert_eq!(first_chars("", 3), "");
        for (most, start) in [(0, ""), (1, ""), (2, "ä"), (3, "ä"), (4, "äö"), (9, "äö")] {
            assert_eq!(first_bytes("äö", most), start);
        }
    }

    #[test]
    fn both_ends() {
        assert_eq!(head_and_tail("abcdef", 2, 3), Some(("ab", 1, "def")));
        assert_eq!(head_and_tail("abcdef", 3, 3), None);
        assert_eq!(head_and_tail("äöü", 3, 1), Some(("ä", 4, "")));
        assert_eq!(head_and_tail("abc", 0, 1), Some(("", 2, "c")));
        assert_eq!(head_and_tail("", 0, 0), None);
        assert_eq!(head_and_tail("abc", usize::MAX, 1), None);
    }
}
