//! Dates, however they are written: `2026-03-14`, `14.3.2026`, `3/14/26`, `14 March 2026`, `March 14th`.

use std::collections::HashSet;

use crate::tokens::WordToken;

/// Prefix of the terms that represent dates; no word has it.
const DATE: char = '\u{2}';

/// English and German names of months, each by its first letters, at least three.
const MONTHS: [&[&str]; 12] = [
    &["january", "januar", "j\u{e4}nner"],
    &["february", "februar", "feber"],
    &["march", "m\u{e4}rz"],
    &["april"],
    &["may", "mai"],
    &["june", "juni"],
    &["july", "juli"],
    &["august"],
    &["september", "sept"],
    &["october", "oktober"],
    &["november"],
    &["december", "dezember"],
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Date {
    year: Option<u32>,
    month: u32,
    day: Option<u32>,
}

impl Date {
    fn new(year: Option<u32>, month: u32, day: Option<u32>) -> Option<Self> {
        let year = year.map(|year| if year < 100 { 2000 + year } else { year });
        let is_valid = year.is_none_or(|year| (1800..2200).contains(&year))
            && (1..=12).contains(&month)
            && day.is_none_or(|day| (1..=31).contains(&day));
        is_valid.then_some(Self { year, month, day })
    }

    /// Yields the terms of the date, one for each part by which somebody may ask for it.
    fn terms(self, each: &mut impl FnMut(&str)) {
        let month = self.month;
        each(&format!("{DATE}{month}"));
        if let Some(year) = self.year {
            each(&format!("{DATE}{year}-{month}"));
        }
        if let Some(day) = self.day {
            each(&format!("{DATE}{month}-{day}"));
        }
        if let (Some(year), Some(day)) = (self.year, self.day) {
            each(&format!("{DATE}{year}-{month}-{day}"));
        }
    }
}

/// Passes the terms of all dates in a line to `each`, and returns the indices of numbers that are
/// only parts of dates.
pub(crate) fn dates(tokens: &[WordToken<'_>], mut each: impl FnMut(&str)) -> HashSet<usize> {
    let mut parts = HashSet::new();
    let mut at = 0;
    while at < tokens.len() {
        let rest = &tokens[at..];
        let found = of_numbers(rest).or_else(|| with_name(rest));
        let Some((dates, length)) = found else {
            at += 1;
            continue;
        };
        dates
            .into_iter()
            .flatten()
            .for_each(|date| date.terms(&mut each));
        // The name of a month and the year are words as well.
        let is_part = |place: &usize| {
            let token = &tokens[*place];
            length > 1 && month(token.text).is_none() && token.text.len() != 4
                || token.text.matches('.').count() == 2
        };
        parts.extend((at..at + length).filter(is_part));
        at += length;
    }
    parts
}

type DateMatch = ([Option<Date>; 2], usize);

/// Reads a date of numbers alone at the beginning of the tokens.
fn of_numbers(tokens: &[WordToken<'_>]) -> Option<DateMatch> {
    let whole = |date: Option<Date>, length| Some(([Some(date?), None], length));
    let first = tokens.first().filter(|token| token.is_number())?;
    let parts: Vec<&str> = first.text.split('.').collect();
    match parts[..] {
        [day, month, year] => return whole(date(year, month, day), 1),
        [day, month] if tokens.get(1).is_some_and(|next| next.gap.starts_with('.')) => {
            return whole(Date::new(None, small(month)?, Some(small(day)?)), 1);
        }
        _ => {}
    }
    let second = tokens
        .get(1)
        .filter(|token| matches!(token.gap, "-" | "/"))?;
    let third = tokens.get(2).filter(|token| token.gap == second.gap);
    let third = third.filter(|token| token.is_number());
    match third {
        Some(third) if first.text.len() == 4 => whole(date(first.text, second.text, third.text), 3),
        Some(third) if second.gap == "/" => {
            // Countries do not agree which number is the month.
            let one = date(third.text, second.text, first.text);
            let other = date(third.text, first.text, second.text);
            let other = other.filter(|other| Some(*other) != one);
            (one.is_some() || other.is_some()).then_some(([one, other], 3))
        }
        Some(third) if second.gap == "-" => whole(date(third.text, second.text, first.text), 3),
        None if first.text.len() == 4 && second.text.len() == 2 => {
            whole(Date::new(small(first.text), small(second.text)?, None), 2)
        }
        Some(_) | None => None,
    }
}

/// Reads a date with the name of its month at the beginning of the tokens.
fn with_name(tokens: &[WordToken<'_>]) -> Option<DateMatch> {
    let first = tokens.first()?;
    let mut at = 1;
    let mut day = None;
    let month = match month(first.text) {
        Some(month) => {
            // "June 5", but not "June 2026".
            if let Some(number) = tokens.get(1).and_then(|token| day_of(token.text)) {
                day = Some(number);
                at += 1 + ordinal(tokens.get(2));
            }
            month
        }
        None => {
            day = Some(day_of(first.text)?);
            at += ordinal(tokens.get(1));
            at += usize::from(tokens.get(at).is_some_and(|token| token.text == "of"));
            let month = month(tokens.get(at)?.text)?;
            at += 1;
            month
        }
    };
    let year = tokens.get(at).filter(|token| token.text.len() == 4);
    let year = year.and_then(|token| small(token.text));
    let with_year = year.and_then(|year| Date::new(Some(year), month, day));
    at += usize::from(with_year.is_some());
    let date = with_year.or_else(|| Date::new(None, month, day))?;
    Some(([Some(date), None], at))
}

fn date(year: &str, month: &str, day: &str) -> Option<Date> {
    let is_year = matches!(year.len(), 2 | 4);
    Date::new(
        Some(small(year).filter(|_| is_year)?),
        small(month)?,
        Some(small(day)?),
    )
}

fn small(number: &str) -> Option<u32> {
    number.parse().ok().filter(|_| number.len() <= 4)
}

fn day_of(number: &str) -> Option<u32> {
    small(number).filter(|day| number.len() <= 2 && (1..=31).contains(day))
}

/// Returns 1 if a word is the ending of a number in a row, as in `3rd`.
fn ordinal(token: Option<&WordToken<'_>>) -> usize {
    let is_one = |token: &WordToken<'_>| {
        token.gap.is_empty() && matches!(token.text, "st" | "nd" | "rd" | "th")
    };
    usize::from(token.is_some_and(is_one))
}

fn month(word: &str) -> Option<u32> {
    let word = word.to_lowercase();
    let found = MONTHS.iter().position(|names| {
        let mut names = names.iter();
        names.any(|name| *name == word || word.len() == 3 && name.starts_with(&word))
    })?;
    u32::try_from(found + 1).ok()
}

#[cfg(test)]
mod tests {
    use crate::words::{TermKind, terms};

    #[test]
    fn dates_are_found_however_they_are_written() {
        let joints = |text: &str| {
            let mut found = Vec::new();
            terms(text, |term, kind| {
                if kind == TermKind::Joint && term.starts_with(super::DATE) {
                    found.push(term[1..].to_owned());
                }
            });
            found.join(" ")
        };
        for text in [
            "2026-03-14",
            "2026/3/14",
            "14.03.2026",
            "14.3.26",
            "on 14/3/2026.",
            "3/14/26",
            "14 March 2026",
            "March 14, 2026",
            "the 14th of March 2026",
            "Mar 14th 2026",
            "14. M\u{e4}rz 2026",
            "14-03-2026",
        ] {
            assert_eq!(joints(text), "3 2026-3 3-14 2026-3-14", "{text}");
        }
        for (text, expected) in [
            ("in March 2026", "3 2026-3"),
            ("2026-03", "3 2026-3"),
            ("in March", "3"),
            ("14.3. at nine", "3 3-14"),
            ("March 14", "3 3-14"),
            ("3/4/2026", "4 2026-4 4-3 2026-4-3 3 2026-3 3-4 2026-3-4"),
            (
                "version 1.2.3, 10.0.0.1, 31/31/2026, 2026-13-01, 0.0.0, 99999-1-1",
                "",
            ),
            ("", ""),
        ] {
            assert_eq!(joints(text), expected, "{text}");
        }
    }
}
