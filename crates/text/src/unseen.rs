//! The table of characters that a reader does not see, or that change what is seen around them.
//!
//! It follows the properties of Unicode, and a test holds it against them: every control (`Cc`) and
//! format character (`Cf`), the line and paragraph separators, everything that is ignored by default
//! (fillers, joiners, variation selectors, tags, also what is only reserved for such), and
//! non-characters; besides these, a few symbols whose picture is blank. Not in it:
//!
//! - signs that Unicode counts as format characters though they are drawn, as U+0600 ARABIC NUMBER
//!   SIGN;
//! - spaces (U+00A0, U+3000 and the like): they show the gap that they are;
//! - private use and unassigned code points: fonts draw them, as an icon or as a box with the number,
//!   so a reader sees that something is there;
//! - combining marks that are drawn over the letter before them.

use std::borrow::Cow;

/// Why a character is not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unseen {
    /// It controls a terminal or ends a line.
    Control,
    /// It changes the direction of the text around it.
    Direction,
    /// It stands for a letter or a number that is not drawn: whole texts can be hidden in a row of
    /// these (tags, and variation selectors beyond the first sixteen).
    Carrier,
    /// It is drawn as nothing.
    Blank,
}

use Unseen::{Blank, Carrier, Control, Direction};

/// First and last character of each range, in order, without the non-characters at the end of each
/// plane.
const TABLE: [(char, char, Unseen); 29] = [
    ('\0', '\u{1f}', Control),
    ('\u{7f}', '\u{9f}', Control),
    ('\u{ad}', '\u{ad}', Blank),
    ('\u{34f}', '\u{34f}', Blank),
    ('\u{61c}', '\u{61c}', Direction),
    ('\u{115f}', '\u{1160}', Blank),
    ('\u{17b4}', '\u{17b5}', Blank),
    ('\u{180b}', '\u{180f}', Blank),
    ('\u{200b}', '\u{200d}', Blank),
    ('\u{200e}', '\u{200f}', Direction),
    ('\u{2028}', '\u{2029}', Control),
    ('\u{202a}', '\u{202e}', Direction),
    ('\u{2060}', '\u{2065}', Blank),
    ('\u{2066}', '\u{2069}', Direction),
    ('\u{206a}', '\u{206f}', Blank),
    ('\u{2800}', '\u{2800}', Blank),
    ('\u{3164}', '\u{3164}', Blank),
    ('\u{fdd0}', '\u{fdef}', Blank),
    ('\u{fe00}', '\u{fe0f}', Blank),
    ('\u{feff}', '\u{feff}', Blank),
    ('\u{ffa0}', '\u{ffa0}', Blank),
    ('\u{fff0}', '\u{fffc}', Blank),
    ('\u{13430}', '\u{1343f}', Blank),
    ('\u{13441}', '\u{13442}', Blank),
    ('\u{16fe4}', '\u{16fe4}', Blank),
    ('\u{1bca0}', '\u{1bca3}', Blank),
    ('\u{1d159}', '\u{1d159}', Blank),
    ('\u{1d173}', '\u{1d17a}', Blank),
    ('\u{e0000}', '\u{e0fff}', Carrier),
];

/// Why the character is not seen; `None` if it is.
pub fn unseen(c: char) -> Option<Unseen> {
    if matches!(c, ' '..='~') {
        return None;
    }
    if u32::from(c) & 0xfffe == 0xfffe {
        return Some(Blank);
    }
    let after = TABLE.partition_point(|(first, _, _)| *first <= c);
    let (_, last, why) = TABLE[after.checked_sub(1)?];
    (c <= last).then_some(why)
}

/// Whether the character is not seen, or changes how others are. Line ends and tabs are unseen.
pub fn is_unseen(c: char) -> bool {
    unseen(c).is_some()
}

/// Whether some program takes the character for the end of a line.
pub fn ends_line(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// The text without what is not seen, for comparing names by what a reader sees. White space stays,
/// line ends too: it stands between words.
pub fn without_unseen(text: &str) -> Cow<'_, str> {
    let goes = |c: char| is_unseen(c) && !c.is_whitespace();
    if !text.contains(goes) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|c| !goes(*c)).collect())
}

#[cfg(test)]
mod tests {
    use icu_properties::{
        CodePointMapData, CodePointSetData,
        props::{DefaultIgnorableCodePoint, GeneralCategory, NoncharacterCodePoint},
    };

    use super::*;

    /// Format characters that are drawn: `Prepended_Concatenation_Mark`.
    fn is_drawn(c: char) -> bool {
        matches!(
            c,
            '\u{600}'
                ..='\u{605}'
                    | '\u{6dd}'
                    | '\u{70f}'
                    | '\u{890}'
                    | '\u{891}'
                    | '\u{8e2}'
                    | '\u{110bd}'
                    | '\u{110cd}'
        )
    }

    /// Symbols and letters whose picture is blank: braille without dots, the head of no note, what
    /// stands for an object that is not there, fillers of Khitan and hieroglyphs.
    const BLANK_PICTURES: [char; 6] = [
        '\u{2800}',
        '\u{1d159}',
        '\u{fffc}',
        '\u{16fe4}',
        '\u{13441}',
        '\u{13442}',
    ];

    #[test]
    fn the_table_is_that_of_unicode() {
        let category = CodePointMapData::<GeneralCategory>::new();
        let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
        let non_character = CodePointSetData::new::<NoncharacterCodePoint>();
        let wrong: Vec<_> = ('\0'..=char::MAX)
            .filter(|c| {
                let by_category = match category.get(*c) {
                    GeneralCategory::Control
                    | GeneralCategory::LineSeparator
                    | GeneralCategory::ParagraphSeparator => true,
                    GeneralCategory::Format => !is_drawn(*c),
                    _ => false,
                };
                let expected = by_category
                    || ignorable.contains(*c)
                    || non_character.contains(*c)
                    || BLANK_PICTURES.contains(c);
                is_unseen(*c) != expected
            })
            .collect();
        assert!(wrong.is_empty(), "{wrong:x?}");
    }

    #[test]
    fn the_reasons() {
        for (c, why) in [
            ('a', None),
            ('é', None),
            ('\u{a0}', None),
            ('\u{e000}', None),
            ('\n', Some(Control)),
            ('\u{9b}', Some(Control)),
            ('\u{202e}', Some(Direction)),
            ('\u{200b}', Some(Blank)),
            ('\u{fe0f}', Some(Blank)),
            ('\u{e0041}', Some(Carrier)),
            ('\u{e0100}', Some(Carrier)),
            (char::MAX, Some(Blank)),
        ] {
            assert_eq!(unseen(c), why, "{c:?}");
        }
    }

    #[test]
    fn names_are_compared_without_it() {
        assert_eq!(without_unseen("S\u{200b}e\u{ad}n\u{2060}d\0"), "Send");
        assert_eq!(without_unseen("a\u{3164}\tb\nc"), "a\tb\nc");
        assert!(matches!(without_unseen("Send it"), Cow::Borrowed(_)));
    }
}
