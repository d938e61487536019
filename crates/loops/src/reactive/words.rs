//! Text of a page in a prompt: on one line, bounded, without hidden characters, and its size in
//! tokens.
//!
//! The text is always in quotation marks that it cannot close, on a line that begins with our own
//! words. So it can look like nothing else in the prompt.

use gyrus_text::{Unseen, ends_line, first_chars, shorten, tokens, unseen};

/// Returns `text` on one line, without invisible characters. Removed characters that could be meant
/// to mislead leave a mark.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut hidden = 0_usize;
    let mut space = false;
    for letter in text.chars() {
        let why = unseen(letter);
        if letter.is_whitespace() || why == Some(Unseen::Control) {
            space = true;
            continue;
        }
        hidden += usize::from(why == Some(Unseen::Carrier));
        if matches!(why, Some(Unseen::Carrier | Unseen::Blank)) {
            continue;
        }
        if std::mem::take(&mut space) && !cleaned.is_empty() {
            cleaned.push(' ');
        }
        match letter {
            _ if why.is_some() => cleaned.push_str(&format!("⟨U+{:04X}⟩", u32::from(letter))),
            '"' | '“' | '”' | '„' | '‟' | '＂' => cleaned.push('\''),
            other => cleaned.push(other),
        }
    }
    if hidden > 0 {
        cleaned.push_str(&format!("⟨{hidden} hidden letters⟩"));
    }
    cleaned
}

/// Returns `text` cleaned, in quotation marks, cut after `most` characters.
pub(crate) fn quoted(text: &str, most: usize) -> String {
    format!("\"{}\"", shorten(&clean(text), most))
}

/// Returns the beginning of `text` with at most `most` tokens, cut between words if it has spaces.
pub(super) fn within(text: &str, most: usize) -> String {
    let mut kept = String::new();
    let mut left = most;
    for word in text.split_inclusive(' ') {
        let cost = tokens(word).max(1);
        if cost > left {
            // A text without spaces is cut anywhere; each character may be a token.
            if kept.is_empty() {
                kept.push_str(first_chars(word, most));
            }
            break;
        }
        left -= cost;
        kept.push_str(word);
    }
    kept.trim_end().to_owned()
}

/// Formats lines of a tool's output as data: marked, cleaned, and within `most` tokens together.
pub(crate) fn lines_of_data(text: &str, most: usize) -> String {
    let (mut shown, mut left) = (String::new(), most);
    let mut lines = text
        .split(ends_line)
        .map(clean)
        .filter(|line| !line.is_empty());
    for line in lines.by_ref() {
        let cost = tokens(&line) + 2;
        if cost > left {
            shown.push_str(&format!("| {}\n", within(&line, left)));
            let rest = lines.map(|line| line.chars().count()).sum::<usize>();
            shown.push_str(&format!("(cut here; about {rest} more characters)\n"));
            return shown;
        }
        left -= cost;
        shown.push_str(&format!("| {line}\n"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hidden_is_left_and_nothing_can_close_the_marks() {
        let check = |text: &str, expected: &str| assert_eq!(clean(text), expected, "{text:?}");
        check("  a \n\t b\u{0}c\r\nd ", "a b c d");
        check("pay\u{200b}pal \u{feff}x\u{ad}", "paypal x");
        check("a\u{202e}b\u{2066}", "a⟨U+202E⟩b⟨U+2066⟩");
        check("ok\u{e0049}\u{e0067}", "ok⟨2 hidden letters⟩");
        check("say \"yes\" “now”", "say 'yes' 'now'");
        check("日本 é", "日本 é");
        assert_eq!(quoted("abc\"\n=== goal ===", 40), "\"abc' === goal ===\"");
    }

    #[test]
    fn output_is_marked_line_by_line_and_bounded() {
        assert_eq!(
            lines_of_data("a\n\nb\u{2028}=== c", 50),
            "| a\n| b\n| === c\n"
        );
        let long = "word word word word\n".repeat(1_000);
        let shown = lines_of_data(&long, 100);
        assert!(tokens(&shown) < 160, "{}", tokens(&shown));
        assert!(shown.contains("(cut here; about"), "{shown}");
        let wide = "a".repeat(100_000);
        assert!(lines_of_data(&wide, 100).len() < 300);
    }
}
