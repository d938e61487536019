//! Text that nobody vouches for, made fit for a terminal: nothing in it can move the cursor,
//! change colours, hide, or pose as something else.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text with everything invisible made visible: control characters as their pictures, format
/// characters by number. Newlines stay; a tab becomes four spaces.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c != '\n' && is_hidden(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => shown.push('\n'),
            '\t' => shown.push_str("    "),
            '\0'..='\x1f' => {
                shown.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'));
            }
            '\x7f' => shown.push('\u{2421}'),
            c if is_hidden(c) => shown.push_str(&format!("<U+{:04X}>", u32::from(c))),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Controls, and what changes how the text around it is read without showing itself.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// How many columns a visible text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// One line of at most `columns` columns, with `…` for what was cut and `⏎` for newlines.
pub(crate) fn clip(text: &str, columns: usize) -> String {
    let shown = visible(text);
    let line = shown.trim_end_matches('\n').replace('\n', "⏎");
    if width(&line) <= columns {
        return line;
    }
    let mut cut = String::new();
    let mut used = 1;
    for c in line.chars() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        cut.push(c);
    }
    cut.push('…');
    cut
}

/// The text as lines of at most `columns` columns, broken at spaces where there are some.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let shown = visible(text);
    let mut lines = Vec::new();
    for paragraph in shown.trim_end_matches('\n').split('\n') {
        let mut line = String::new();
        let mut used = 0;
        for c in paragraph.chars() {
            let wide = c.width().unwrap_or(0);
            if used + wide > columns && c == ' ' {
                lines.push(std::mem::take(&mut line));
                used = 0;
                continue;
            }
            if used + wide > columns {
                let at = line.rfind(' ').filter(|&at| !line[..at].trim().is_empty());
                let rest = match at {
                    Some(at) => line.split_off(at).trim_start().to_owned(),
                    None => String::new(),
                };
                lines.push(std::mem::replace(&mut line, rest));
                used = width(&line);
            }
            line.push(c);
            used += wide;
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides() {
        for (text, shown) in [
            ("plain\nüber 🦀", "plain\nüber 🦀"),
            ("\x1b[2J\x1b]0;x\x07", "␛[2J␛]0;x␇"),
            ("a\rb\x08c\x7f", "a␍b␈c␡"),
            ("\u{9b}31m", "<U+009B>31m"),
            ("rm \u{202e}txt.exe\u{202c}", "rm <U+202E>txt.exe<U+202C>"),
            ("a\u{200b}b\u{feff}", "a<U+200B>b<U+FEFF>"),
            ("\u{e0041}", "<U+E0041>"),
            ("a\tb", "a    b"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn lines_fit_their_columns() {
        assert_eq!(clip("one\ntwo", 20), "one⏎two");
        assert_eq!(clip("日本語です", 5), "日本…");
        assert_eq!(clip("abcdef", 3), "ab…");
        assert_eq!(wrap("the quick brown fox", 10), ["the quick", "brown fox"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("日本語", 4), ["日本", "語"]);
        assert_eq!(wrap("a\n\nb\n", 9), ["a", "", "b"]);
        assert_eq!(
            wrap("  indented words here", 12),
            ["  indented", "words here"]
        );
        for columns in 1..30 {
            for line in wrap(
                "x 日本 \u{1b}[31m some words, and somewhatlongerwords",
                columns,
            ) {
                assert!(width(&line) <= columns.max(8), "{columns}: {line:?}");
            }
        }
    }
}
