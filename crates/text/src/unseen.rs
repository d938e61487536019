//! The characters that a reader does not see, or that change what is seen around them.
//!
//! They follow from the properties of Unicode: every control (`Cc`) and format character (`Cf`), the line and paragraph separators, everything that is ignored by default
//! (fillers, joiners, variation selectors, tags, also what is only reserved for such), and
//! non-characters; besides these, a few symbols whose picture is blank. Not among them:
//!
//! - signs that Unicode counts as format characters though they are drawn, as U+0600 ARABIC NUMBER
//!   SIGN;
//! - spaces (U+00A0, U+3000 and the like): they show the gap that they are;
//! - private use and unassigned code points: fonts draw them, as an icon or as a box with the number,
//!   so a reader sees that something is there;
//! - combining marks that are drawn over the letter before them.

use std::borrow::Cow;

use icu_properties::{
    CodePointMapData, CodePointSetData,
    props::{
        BidiControl, DefaultIgnorableCodePoint, GeneralCategory, NoncharacterCodePoint,
        PrependedConcatenationMark,
    },
};

/// The reason why a character is not seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unseen {
    /// The character controls a terminal or ends a line.
    Control,
    /// The character changes the direction of the text around it.
    Direction,
    /// The character stands for a letter or a number that is not drawn: whole texts can be hidden
    /// in a row of these (tags, and variation selectors beyond the first sixteen).
    Carrier,
    /// The character is drawn as nothing.
    Blank,
}

use Unseen::{Blank, Carrier, Control, Direction};

/// Symbols and letters whose glyph is blank: braille without dots, the head of no note, what stands
/// for an object that is not there, fillers of Khitan and hieroglyphs.
const BLANK_PICTURES: [char; 6] = [
    '\u{2800}',
    '\u{1d159}',
    '\u{fffc}',
    '\u{16fe4}',
    '\u{13441}',
    '\u{13442}',
];

/// Returns the reason why the character is not seen; `None` if it is.
pub fn unseen(c: char) -> Option<Unseen> {
    if matches!(c, ' '..='~') {
        return None;
    }
    if matches!(c, '\u{e0000}'..='\u{e0fff}') {
        return Some(Carrier);
    }
    if CodePointSetData::new::<BidiControl>().contains(c) {
        return Some(Direction);
    }
    match CodePointMapData::<GeneralCategory>::new().get(c) {
        GeneralCategory::Control
        | GeneralCategory::LineSeparator
        | GeneralCategory::ParagraphSeparator => return Some(Control),
        GeneralCategory::Format
            if !CodePointSetData::new::<PrependedConcatenationMark>().contains(c) =>
        {
            return Some(Blank);
        }
        _ => {}
    }
    let is_blank = CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
        || CodePointSetData::new::<NoncharacterCodePoint>().contains(c)
        || BLANK_PICTURES.contains(&c);
    is_blank.then_some(Blank)
}

/// Whether the character is not seen, or changes how others are. Line ends and tabs are unseen.
pub fn is_unseen(c: char) -> bool {
    unseen(c).is_some()
}

/// Whether some program takes the character for the end of a line.
pub fn ends_line(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns the text without unseen characters, for comparing names by what a reader sees. White
/// space stays, line ends too: it stands between words.
pub fn without_unseen(text: &str) -> Cow<'_, str> {
    let goes = |c: char| is_unseen(c) && !c.is_whitespace();
    if !text.contains(goes) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|c| !goes(*c)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A newer version of Unicode may add some: then look at them before you change the numbers.
    #[test]
    fn as_many_as_ever() {
        let reasons: Vec<_> = ('\0'..=char::MAX).filter_map(unseen).collect();
        let count = |why| reasons.iter().filter(|reason| **reason == why).count();
        assert_eq!(
            [Control, Direction, Carrier, Blank].map(count),
            [67, 12, 4096, 157]
        );
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
