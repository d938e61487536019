//! Calendars that pop up under a field, and flights that are booked with one.

use serde_json::json;

use super::{
    Deed, Sight,
    sight::{between, click, extract, fill},
    tables::duration,
};
use crate::prompt::{Line, plain};

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// `Select 12/09/2016 as the date and hit submit.`
pub(super) fn chosen(sight: &Sight<'_>) -> Option<Deed> {
    let date = between(sight.asked, "Select ", " as the date")?;
    let field = *sight.all("textbox").first()?;
    if field.value == date {
        return Some(Deed::Do(vec![click(sight.one("button", "Submit")?)]));
    }
    turned(sight, field, date)
}

/// Opens the calendar, turns it to the month, picks the day.
fn turned(sight: &Sight<'_>, field: &Line, date: &str) -> Option<Deed> {
    let mut parts = date.split('/').map(|part| part.parse::<i32>().ok());
    let (month, day, year) = (parts.next()??, parts.next()??, parts.next()??);
    if sight.one("link", "15").is_none() && sight.named("Prev").is_none() {
        return Some(Deed::Do(vec![click(field)]));
    }
    let shown = sight
        .words()
        .and_then(|words| words.iter().find_map(|line| shown_month(line)));
    let Some(shown) = shown else {
        return Some(Deed::Do(vec![extract()]));
    };
    let away = year * 12 + month - 1 - shown;
    let next = match away.signum() {
        -1 => sight.named("Prev")?,
        1 => sight.named("Next")?,
        _ => sight.one("link", &day.to_string())?,
    };
    Some(Deed::Do(vec![click(next)]))
}

/// `December 2016`, in months.
fn shown_month(line: &str) -> Option<i32> {
    let line = plain(line);
    let month = MONTHS.iter().position(|month| line.starts_with(month))?;
    let rest = line[MONTHS[month].len()..].trim_start();
    let year: String = rest.chars().take(4).collect();
    Some(year.parse::<i32>().ok()? * 12 + i32::try_from(month).ok()?)
}

/// `Book the shortest one-way flight from: A to: B on 11/19/2016.`
pub(super) fn flight(sight: &Sight<'_>) -> Option<Deed> {
    let from = between(sight.asked, "from: ", " to: ")?;
    let to = between(sight.asked, " to: ", " on ")?;
    let date = sight.asked.rsplit_once(" on ")?.1.trim_end_matches('.');
    let offers: Vec<&Line> = sight
        .usable()
        .filter(|line| line.name.starts_with("Book flight for"))
        .collect();
    if !offers.is_empty() {
        return best_flight(sight, &offers);
    }
    for (name, place) in [("From:", from), ("To:", to)] {
        let field = sight.one("textbox", name)?;
        // `SHV` is not part of Nashville.
        let code = format!("({place})");
        let is_code = place.len() == 3 && place.chars().all(|it| it.is_ascii_uppercase());
        let is_it = |name: &str| {
            if is_code {
                name.contains(&code)
            } else {
                plain(name).contains(&plain(place)) && name.contains('(')
            }
        };
        if is_it(&field.value) {
            continue;
        }
        let offered = sight
            .usable()
            .find(|line| !matches!(line.role.as_str(), "textbox" | "button") && is_it(&line.name));
        return Some(match (offered, field.value.is_empty()) {
            (Some(item), _) => Deed::Do(vec![click(item)]),
            (None, true) => Deed::Do(vec![fill(field, place)]),
            (None, false) => Deed::Do(vec![json!({"do": "wait"})]),
        });
    }
    let field = *sight.all("textbox").get(2)?;
    if field.value != date {
        return turned(sight, field, date);
    }
    Some(Deed::Do(vec![click(sight.one("button", "Search")?)]))
}

fn best_flight(sight: &Sight<'_>, offers: &[&Line]) -> Option<Deed> {
    if sight.asked.contains("cheapest") {
        let price = |line: &&&Line| {
            line.name
                .rsplit_once('$')
                .and_then(|(_, it)| it.parse().ok())
        };
        let best = offers
            .iter()
            .min_by_key(|line| price(line).unwrap_or(u32::MAX))?;
        return Some(Deed::Do(vec![click(best)]));
    }
    let Some(words) = sight.read().and(sight.words()) else {
        return Some(Deed::Do(vec![extract()]));
    };
    let times = words.iter().filter_map(|line| duration(line));
    let (best, _) = offers.iter().zip(times).min_by_key(|(_, time)| *time)?;
    Some(Deed::Do(vec![click(best)]))
}
