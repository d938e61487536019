//! The forms of slots: which texts may stand where a learned value stood.

use gyrus_text::is_unseen;

use crate::{
    slot::{Slot, SlotShape},
    words,
};

/// Maximum length in bytes of a value.
const LONGEST: usize = 4_000;

/// Maximum number of digits of a number.
const DIGITS: usize = 9;

/// Returns the form of a learned value that is not between quotation marks.
pub(crate) fn shape_of(value: &str) -> SlotShape {
    let shapes = [
        SlotShape::Number,
        SlotShape::Date,
        SlotShape::Time,
        SlotShape::Email,
    ];
    let fits = |shape: &SlotShape| is_of(value, *shape);
    shapes.into_iter().find(fits).unwrap_or(SlotShape::Words)
}

pub(crate) fn has_shape(value: &str, slot: &Slot) -> bool {
    if value.is_empty() || value.len() > LONGEST || value.trim() != value {
        return false;
    }
    match slot.shape {
        SlotShape::Quoted => {
            !value
                .chars()
                .any(|c| is_quotation(c) || c.is_control() || is_unseen(c))
                && is_of_one_script(value)
        }
        SlotShape::Words => is_like(value, &slot.learned),
        shape => is_of(value, shape),
    }
}

fn is_of(value: &str, shape: SlotShape) -> bool {
    match shape {
        SlotShape::Number => is_number(value) && value.len() <= DIGITS,
        SlotShape::Date => is_date(value),
        SlotShape::Time => is_time(value),
        SlotShape::Email => is_email(value),
        SlotShape::Quoted | SlotShape::Words => false,
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_date(value: &str) -> bool {
    let parts: Vec<_> = value.split('-').collect();
    let [year, month, day] = parts[..] else {
        return false;
    };
    let within = |text: &str, length: usize, most: u32| {
        let number = text.parse::<u32>();
        text.len() == length
            && is_number(text)
            && number.is_ok_and(|number| (1..=most).contains(&number))
    };
    within(year, 4, 9_999) && within(month, 2, 12) && within(day, 2, 31)
}

fn is_time(value: &str) -> bool {
    let Some((hours, minutes)) = value.split_once(':') else {
        return false;
    };
    let within = |text: &str, most: u32| {
        is_number(text) && text.len() <= 2 && text.parse::<u32>().is_ok_and(|it| it <= most)
    };
    minutes.len() == 2 && within(hours, 23) && within(minutes, 59)
}

fn is_email(value: &str) -> bool {
    let Some((who, host)) = value.split_once('@') else {
        return false;
    };
    let plain = |text: &str, more: &str| {
        !text.is_empty()
            && !text.starts_with('.')
            && !text.ends_with('.')
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    plain(who, ".+-_") && plain(host, ".-") && host.contains('.')
}

/// Whether a character is a quotation mark, by which the end of a quoted value could be mistaken.
pub(crate) fn is_quotation(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„' | '«' | '»' | '‟' | '＂')
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Lower,
    Capital,
    Upper,
    Mixed,
    Digits,
    Other,
}

fn case(word: &str) -> Case {
    let letters: Vec<_> = word.chars().filter(|c| c.is_alphabetic()).collect();
    let has_digits = word.chars().any(char::is_numeric);
    match (&letters[..], has_digits) {
        ([], true) => Case::Digits,
        ([], false) => Case::Other,
        (_, true) => Case::Mixed,
        (all, false) if all.iter().all(|c| c.is_lowercase()) => Case::Lower,
        ([first, rest @ ..], false) if first.is_uppercase() => {
            if rest.iter().all(|c| c.is_lowercase()) {
                Case::Capital
            } else if rest.iter().all(|c| c.is_uppercase()) {
                Case::Upper
            } else {
                Case::Mixed
            }
        }
        _ => Case::Mixed,
    }
}

/// Whether unquoted words are written like the learned ones: the number of words differs by at most
/// one, each is written in the same case, there is no punctuation that the learned ones did not
/// have, and none of them changes what a command means.
fn is_like(value: &str, learned: &str) -> bool {
    let given: Vec<_> = value.split(' ').collect();
    let known: Vec<_> = learned.split(' ').collect();
    if given.iter().any(|word| word.is_empty()) || given.len().abs_diff(known.len()) > 1 {
        return false;
    }
    let known_cases: Vec<_> = known.iter().map(|word| case(word)).collect();
    let first = known_cases.first().copied().unwrap_or(Case::Other);
    let rest = known_cases.get(1).copied().unwrap_or(first);
    let is_uniform = known_cases.iter().skip(1).all(|case| *case == rest);
    let has_case = |(at, word): (usize, &&str)| {
        let expected = match (at, given.len() == known.len()) {
            (at, true) => known_cases[at],
            (0, false) => first,
            (_, false) => rest,
        };
        case(word) == expected
    };
    let is_punctuated_alike = value
        .chars()
        .filter(|c| !c.is_alphanumeric() && *c != ' ')
        .all(|c| learned.contains(c));
    (given.len() == known.len() || is_uniform)
        && given.iter().enumerate().all(has_case)
        && is_punctuated_alike
        && !given.iter().any(|word| words::changes_a_command(word))
        && !words::is_destructive(value)
        && is_of_one_script(value)
        && script_of(value) == script_of(learned)
}

/// A family of letters that look like those of others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LetterFamily {
    Latin,
    Greek,
    Cyrillic,
    Other(u32),
}

fn script(c: char) -> Option<LetterFamily> {
    if !c.is_alphabetic() {
        return None;
    }
    Some(match u32::from(c) {
        0..=0x024F | 0x1E00..=0x1EFF => LetterFamily::Latin,
        0x0370..=0x03FF | 0x1F00..=0x1FFF => LetterFamily::Greek,
        0x0400..=0x052F => LetterFamily::Cyrillic,
        // Chinese and Japanese are written with several blocks.
        0x3005..=0x3007 | 0x3040..=0x30FF | 0x3400..=0x9FFF => LetterFamily::Other(0x3000),
        other => LetterFamily::Other(other >> 8),
    })
}

fn script_of(text: &str) -> Option<LetterFamily> {
    text.chars().find_map(script)
}

fn is_of_one_script(text: &str) -> bool {
    let first = script_of(text);
    text.chars()
        .filter_map(script)
        .all(|one| Some(one) == first)
}
