//! Texts in the columns of a terminal.

use unicode_width::UnicodeWidthChar;

use crate::shown::readable;

/// Returns the number of columns of a text without unseen characters other than those that
/// [`readable`] leaves. Terminals differ about joined pictographs; they are counted as if each
/// stood alone.
pub fn width(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Characters of Unicode's private use which surfaces put into words to begin and end styles.
pub const STYLE_MARKS: std::ops::RangeInclusive<char> = '\u{e0f0}'..='\u{e0f5}';

/// Returns the columns of a character; a selector for a coloured picture adds one.
fn columns_of(c: char) -> usize {
    match c {
        '\u{fe0f}' => 1,
        c => c.width().unwrap_or(0),
    }
}

/// Returns one [`readable`] line of at most `columns` columns, with `…` for the cut part and `⏎`
/// for line ends.
pub fn clip(text: &str, columns: usize) -> String {
    let shown = readable(text);
    let line = shown.trim_end_matches('\n').replace('\n', "⏎");
    if width(&line) <= columns {
        return line;
    }
    let mut cut = String::new();
    let mut used = 1;
    for c in line.chars() {
        used += columns_of(c);
        if used > columns {
            break;
        }
        cut.push(c);
    }
    // A joiner would join the mark of the cut.
    cut.truncate(cut.trim_end_matches('\u{200d}').len());
    cut.push('…');
    cut
}

/// Splits the [`readable`] text into lines of at most `columns` columns, if possible at spaces.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    wrap_by(columns_of, text, columns)
}

/// Splits a text as [`wrap`] does, where [`STYLE_MARKS`] take no columns.
pub fn wrap_marked(text: &str, columns: usize) -> Vec<String> {
    let columns_of = |c| {
        if STYLE_MARKS.contains(&c) {
            0
        } else {
            columns_of(c)
        }
    };
    wrap_by(columns_of, text, columns)
}

fn wrap_by(columns_of: impl Fn(char) -> usize, text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let shown = readable(text);
    let mut lines = Vec::new();
    for paragraph in shown.trim_end_matches('\n').split('\n') {
        let mut line = String::new();
        let mut used = 0;
        for c in paragraph.chars() {
            let wide = columns_of(c);
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
                used = line.chars().map(&columns_of).sum();
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
    fn lines_fit_their_columns() {
        assert_eq!(clip("one\ntwo", 20), "one⏎two");
        assert_eq!(clip("日本語です", 5), "日本…");
        assert_eq!(clip("abcdef", 3), "ab…");
        assert_eq!(clip("❤️❤️", 3), "❤️…");
        assert_eq!(clip("👩‍🚀👩‍🚀", 4), "👩…");
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
