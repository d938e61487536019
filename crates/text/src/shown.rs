//! Texts written so that nothing in them is unseen.
//!
//! There are two ways. [`visible`] names every unseen character: for what a person decides on or
//! searches (approval cards, traces, explanations of the gate, errors that quote). [`readable`] is
//! for everything else that is read, and leaves those in place without which ordinary writing falls
//! apart and which can mislead nobody, because each belongs to signs that are seen on either side:
//!
//! - a variation selector after the symbol that it colours (❤️), or within a keycap (1️⃣);
//! - a joiner between two pictographs (👩‍🚀);
//! - a joiner or non-joiner between two letters of a script that spells with them (Persian, Hindi).
//!
//! Either way a line end stays, a tab becomes four spaces, other ASCII controls become their
//! pictures (`␛`), and the rest `<U+202E>`. What [`visible`] wrote, [`readable`] leaves alone.

use std::{borrow::Cow, fmt::Write as _};

use crate::{
    cut::shorten,
    unseen::{is_unseen, unseen},
};

/// The text with every unseen character named.
pub fn visible(text: &str) -> Cow<'_, str> {
    let all = text
        .char_indices()
        .filter(|(_, c)| *c != '\n' && is_unseen(*c));
    named(text, all)
}

/// Returns the text with every unseen character named, except those that ordinary writing needs.
pub fn readable(text: &str) -> Cow<'_, str> {
    named(text, unseen_when_reading(text))
}

/// Returns the [`visible`] text on one line, with `⏎` for line ends.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let shown = visible(text);
    if shown.contains('\n') {
        Cow::Owned(shown.replace('\n', "⏎"))
    } else {
        shown
    }
}

/// The text as a quotation within a sentence of ours: [`visible`], on one line, with single spaces,
/// cut after `most` characters, between `“` and `”`, and with each quotation mark in it as `'`, so
/// that it cannot end there.
pub fn quote(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let shown = visible(&shorten(&line, most)).replace(QUOTATION_MARKS, "'");
    format!("“{shown}”")
}

/// Characters that could be taken for the end or the beginning of a quotation.
const QUOTATION_MARKS: [char; 8] = ['“', '”', '"', '„', '‟', '«', '»', '＂'];

/// Returns JSON with every unseen character in its strings as `\u202e`: the same values, and
/// nothing that a terminal could obey. The line end after it stays.
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    if is_plain(json) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match c {
            '\n' | '\t' | '\r' => escaped.push(c),
            c if is_unseen(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(escaped, "\\u{unit:04x}").expect("writing to a String cannot fail");
                }
            }
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

/// Iterates over the places of the unseen characters that [`readable`] names. Line ends are not
/// among them.
pub fn unseen_when_reading(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut before = ['\n'; 2];
    // Most text has none at all; that is seen quickly.
    let looked_at = if is_plain(text) { "" } else { text };
    looked_at.char_indices().filter(move |&(at, c)| {
        let next = || text[at + c.len_utf8()..].chars().next();
        let shows = c == '\n' || unseen(c).is_none() || belongs(before, c, next().unwrap_or('\n'));
        before = [before[1], c];
        !shows
    })
}

/// Whether the text is ASCII, without controls but line ends.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n'))
}

/// Whether an unseen character belongs to the writing around it.
fn belongs([second, first]: [char; 2], c: char, next: char) -> bool {
    match c {
        '\u{fe0e}' | '\u{fe0f}' => {
            let keycap = matches!(first, '0'..='9' | '#' | '*') && next == '\u{20e3}';
            is_pictograph(first) || keycap
        }
        '\u{200c}' if spells_with_joiners(first) => spells_with_joiners(next),
        '\u{200d}' => {
            let left = if first == '\u{fe0f}' { second } else { first };
            (is_pictograph(left) && is_pictograph(next))
                || (spells_with_joiners(first) && spells_with_joiners(next))
        }
        _ => false,
    }
}

/// Symbols with a picture in colour, and their neighbours.
fn is_pictograph(c: char) -> bool {
    matches!(c, '©' | '®' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}'
        | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}'
        | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
        | '\u{1f000}'..='\u{1faff}')
}

/// The scripts between Arabic and Sinhala, Myanmar and Khmer.
fn spells_with_joiners(c: char) -> bool {
    matches!(c, '\u{600}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
        && !is_unseen(c)
}

fn named<'a>(text: &'a str, which: impl Iterator<Item = (usize, char)>) -> Cow<'a, str> {
    let mut which = which.peekable();
    if is_plain(text) || which.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut end = 0;
    for (at, c) in which {
        shown.push_str(&text[end..at]);
        end = at + c.len_utf8();
        match c {
            '\t' => shown.push_str("    "),
            '\0'..='\x1f' => {
                shown.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'));
            }
            '\x7f' => shown.push('\u{2421}'),
            c => {
                write!(shown, "<U+{:04X}>", u32::from(c)).expect("writing to a String cannot fail");
            }
        }
    }
    shown.push_str(&text[end..]);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use icu_properties::{CodePointSetData, props::Emoji};

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
            (
                "a\u{3164}b\u{fe0f}c\u{e0100}",
                "a<U+3164>b<U+FE0F>c<U+E0100>",
            ),
            ("\u{e0041}", "<U+E0041>"),
            ("a\tb", "a    b"),
        ] {
            assert_eq!(visible(text), shown);
            assert_eq!(readable(text), shown);
            assert_eq!(one_line(text), shown.replace('\n', "⏎"));
        }
    }

    #[test]
    fn ordinary_writing_is_left_whole_when_it_is_read() {
        for text in ["❤️ and ❤︎", "1️⃣ #️⃣", "👩‍🚀 🧑🏽‍🚀 🏳️‍🌈 🤷‍♂️ ❤️‍🔥 👨‍👩‍👧‍👦", "می‌خواهم", "क्‍ष"]
        {
            assert_eq!(readable(text), text);
            assert!(visible(text).contains("<U+"), "{text}");
        }
        // What stands elsewhere, or once more than is needed, is named.
        for (text, shown) in [
            ("a\u{fe0f}", "a<U+FE0F>"),
            ("1\u{fe0f}", "1<U+FE0F>"),
            ("❤\u{fe0f}\u{fe0e}", "❤\u{fe0f}<U+FE0E>"),
            ("🚀\u{200d}a", "🚀<U+200D>a"),
            ("🚀\u{200d}\u{200d}🚀", "🚀<U+200D><U+200D>🚀"),
            ("git\u{200c}hub", "git<U+200C>hub"),
            ("م\u{200c}\u{200c}خ", "م<U+200C><U+200C>خ"),
            ("🏴\u{e0067}\u{e007f}", "🏴<U+E0067><U+E007F>"),
        ] {
            assert_eq!(readable(text), shown);
        }
        let emoji = CodePointSetData::new::<Emoji>();
        let missing: Vec<_> = ('\u{80}'..=char::MAX)
            .filter(|c| emoji.contains(*c) && !is_pictograph(*c))
            .collect();
        assert!(missing.is_empty(), "{missing:x?}");
    }

    #[test]
    fn what_is_shown_stays_shown() {
        for c in '\0'..=char::MAX {
            let text = format!("x{c}x");
            let shown = visible(&text);
            assert!(!shown.contains(|c| c != '\n' && is_unseen(c)), "{text:?}");
            assert_eq!(readable(&shown), shown);
        }
        assert!(matches!(visible("plain text\n"), Cow::Borrowed(_)));
        assert!(matches!(readable("über ❤️"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_quotation_cannot_end_itself() {
        for (text, most, quoted) in [
            ("", 3, "“”"),
            (" a\n b ", 3, "“a b”"),
            ("say “no”", 99, "“say 'no'”"),
            ("a\" «b» „c ＂", 99, "“a' 'b' 'c '”"),
            ("a\u{202e}b", 99, "“a<U+202E>b”"),
            ("abcd”", 3, "“abc…”"),
        ] {
            assert_eq!(quote(text, most), quoted);
        }
    }

    #[test]
    fn json_keeps_its_values() {
        assert_eq!(
            escaped_json("{\"a\": \"x\u{9b}\u{202e}\u{e0041}é\"}\n"),
            "{\"a\": \"x\\u009b\\u202e\\udb40\\udc41é\"}\n"
        );
        assert!(matches!(escaped_json("{\"a\": 1}\n"), Cow::Borrowed(_)));
    }
}
