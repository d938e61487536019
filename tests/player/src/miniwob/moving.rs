//! Pages where something is scrolled, dragged, or opened by pointing.

use serde_json::json;

use super::{
    Deed, Sight,
    sight::{between, click, extract, fill_and_click},
    steps,
};
use crate::{
    prompt::{Line, found, plain},
    task::Step,
};

/// `Scroll the textarea to the bottom of the text hit submit.`, and what is signed below one.
pub(super) fn scrolled(sight: &Sight<'_>) -> Option<Deed> {
    let long = sight
        .usable()
        .find(|line| line.states.contains("scrolls by itself"))?;
    let way = if sight.asked.contains("to the top") {
        "up"
    } else {
        "down"
    };
    let scroll = json!({"do": "scroll", "direction": way, "pages": 20, "on": long.id});
    if sight.asked.starts_with("Click the cancel") {
        return Some(Deed::Do(vec![click(sight.one("button", "Cancel")?)]));
    }
    if sight.note() != "scrolled" {
        return Some(Deed::Now(vec![scroll], "scrolled".to_owned()));
    }
    let Some(name) = between(sight.asked, "the name \"", "\"") else {
        return Some(Deed::Do(vec![click(sight.one("button", "Submit")?)]));
    };
    let button = between(sight.asked, "press \"", "\"")?;
    let field = sight.one("textbox", "Name")?;
    if field.states.contains("disabled") {
        return Some(Deed::Do(vec![scroll]));
    }
    let button = sight.one("button", button)?;
    Some(Deed::Do(fill_and_click(field, name, button)))
}

/// Numbers that are covered after the first was clicked; what is left stands in their order.
pub(super) fn ascending(sight: &Sight<'_>) -> Option<Deed> {
    let first = sight.named("1");
    Some(Deed::Do(vec![click(
        first.or_else(|| sight.all("generic").first().copied())?,
    )]))
}

/// Where an item of a list is dragged, counted from 0.
fn place(asked: &str, at: usize, all: usize) -> Option<usize> {
    let (columns, is_grid) = if all == 9 { (3, true) } else { (1, false) };
    let named = [
        ("top left", 0),
        ("top center", 1),
        ("top right", 2),
        ("center left", 3),
        ("center right", 5),
        ("the center", 4),
        ("bottom left", 6),
        ("bottom center", 7),
        ("bottom right", 8),
    ];
    if is_grid && let Some((_, place)) = named.iter().find(|(words, _)| asked.contains(words)) {
        return Some(*place);
    }
    if asked.contains("left by") {
        return at.checked_sub(1);
    }
    if asked.contains("right by") {
        return Some(at + 1);
    }
    if asked.contains("up by") {
        return at.checked_sub(columns);
    }
    if asked.contains("down by") {
        return Some(at + columns);
    }
    if asked.contains("to the top") {
        return Some(0);
    }
    if asked.contains("to the bottom") {
        return Some(all - 1);
    }
    let nth: String = asked
        .rsplit_once("to the ")?
        .1
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    nth.parse::<usize>().ok()?.checked_sub(1)
}

/// Where something is that only a search tells: `b5 listitem 'Arline' at 77,127`.
fn searched(sight: &Sight<'_>, name: &str) -> Option<[f64; 2]> {
    let (_, lines) = sight
        .prompt
        .returned
        .as_ref()
        .filter(|(tool, _)| tool == "find")?;
    let is_it = |line: &&String| found(line).is_some_and(|it| plain(&it.name) == plain(name));
    let (x, y) = lines
        .iter()
        .find(is_it)?
        .rsplit_once(" at ")?
        .1
        .split_once(',')?;
    Some([x.parse().ok()?, y.parse().ok()?])
}

/// The names of the items of a list, in its order.
fn items_of(words: &[String]) -> Vec<String> {
    let plain = words
        .iter()
        .map(|line| line.trim_start_matches(['-', '•', '*', ' ']).to_owned());
    plain
        .filter(|line| !line.is_empty() && line != "Submit")
        .collect()
}

/// `Drag Olwen up by one position.`: items of such lists have no ids in a prompt, so each is
/// searched.
pub(super) fn items(sight: &Sight<'_>) -> Option<Deed> {
    let known: Vec<&str> = sight
        .note()
        .split(';')
        .filter(|it| !it.is_empty())
        .collect();
    if known.is_empty() {
        let Some(words) = sight.words() else {
            return Some(Deed::Do(vec![extract()]));
        };
        let items = items_of(&words);
        let at = items
            .iter()
            .position(|item| sight.asked.starts_with(&format!("Drag {item} ")))?;
        let to = place(sight.asked, at, items.len())?;
        let note = format!("{};{}", items[at], items.get(to)?);
        return Some(Deed::Now(
            vec![json!({"do": "find", "text": items[at]})],
            note,
        ));
    }
    dragged(sight, &known)
}

/// How far beyond the middle of a place something is dropped to come after what is there.
const BEYOND: f64 = 6.0;

/// Finds the one, then the other, then drags.
fn dragged(sight: &Sight<'_>, known: &[&str]) -> Option<Deed> {
    let (from, to) = (*known.first()?, *known.get(1)?);
    match known.get(2) {
        None => {
            let [x, y] = searched(sight, from)?;
            let note = format!("{from};{to};{x} {y}");
            Some(Deed::Now(vec![json!({"do": "find", "text": to})], note))
        }
        Some(start) => {
            let (x, y) = start.split_once(' ')?;
            let (x, y): (f64, f64) = (x.parse().ok()?, y.parse().ok()?);
            let [right, down] = searched(sight, to)?;
            let beyond = |from: f64, to: f64| match to - from {
                away if away > BEYOND => to + BEYOND,
                away if away < -BEYOND => to - BEYOND,
                _ => to,
            };
            let to = [beyond(x, right), beyond(y, down)];
            let drag = json!({"do": "drag", "from": [x, y], "to": to});
            Some(Deed::Now(vec![drag], "-".to_owned()))
        }
    }
}

/// Numbers are put in order: the first that is too late goes before the one that stands there.
pub(super) fn sorted(sight: &Sight<'_>) -> Option<Deed> {
    let known: Vec<&str> = sight.note().split(';').collect();
    if known.len() >= 2 {
        return dragged(sight, &known);
    }
    let Some(words) = sight.words() else {
        return Some(Deed::Do(vec![extract()]));
    };
    let numbers: Vec<i64> = words.iter().filter_map(|item| item.parse().ok()).collect();
    let mut right = numbers.clone();
    right.sort_unstable();
    let wrong = numbers.iter().zip(&right).find(|(is, should)| is != should);
    Some(match wrong {
        None => Deed::Do(vec![click(sight.one("button", "Submit")?)]),
        Some((is, should)) => Deed::Now(
            vec![json!({"do": "find", "text": should.to_string()})],
            format!("{should};{is}"),
        ),
    })
}

/// The small box into the large one.
pub(super) fn into_box(sight: &Sight<'_>) -> Option<Deed> {
    let (small, large) = (sight.named("s")?, sight.named("L")?);
    if sight.note() == "there" {
        return Some(Deed::Do(vec![click(sight.one("button", "Submit")?)]));
    }
    let drag = json!({"do": "drag", "from": small.id, "to": large.id});
    Some(Deed::Now(vec![drag], "there".to_owned()))
}

/// A menu in the round, behind its `+`.
pub(super) fn pie(sight: &Sight<'_>) -> Option<Deed> {
    let name = between(sight.asked, "labeled \"", "\"")?;
    let is_there = |line: &&Line| line.name == name && !line.states.contains("covered");
    let item = sight.usable().find(is_there);
    Some(match (item, sight.note()) {
        (Some(item), "open") => Deed::Do(vec![click(item)]),
        _ => Deed::Now(vec![click(sight.named("+")?)], "open".to_owned()),
    })
}

/// A menu with one more inside; icons have no names, what they mean is known.
pub(super) fn menu(sight: &Sight<'_>) -> Option<Deed> {
    let name = between(sight.asked, "labeled \"", "\"")?;
    let inner = ["Prev", "Stop", "Play", "Next"].contains(&name);
    let mut plan = vec![steps::click("button Menu")];
    if inner {
        plan.push(Step {
            hover: Some("menuitem Playback".to_owned()),
            ..Step::default()
        });
    }
    plan.push(steps::click(format!("menuitem {name}")));
    Some(Deed::Steps(plan))
}

/// `Click on a "textarea" widget.`
pub(super) fn widget(sight: &Sight<'_>) -> Option<Deed> {
    let kind = between(sight.asked, "Click on a \"", "\" widget")?;
    let is_long = |line: &&Line| line.states.contains("takes several");
    let found = match kind {
        "textarea" => sight.all("textbox").into_iter().find(is_long),
        "text" => sight.all("textbox").into_iter().find(|line| !is_long(line)),
        other => sight.usable().find(|line| line.role == other),
    };
    Some(Deed::Do(vec![click(found?)]))
}

/// `Click button ONE, wait 2 seconds, then click button TWO.`: what a turn takes is waiting
/// enough; there is no way to wait for a stated time.
pub(super) fn delayed(sight: &Sight<'_>) -> Option<Deed> {
    let seconds = between(sight.asked, "wait ", " seconds")?;
    let (one, two) = (
        click(sight.one("button", "ONE")?),
        click(sight.one("button", "TWO")?),
    );
    Some(match (seconds, sight.note()) {
        ("1", "") => Deed::Now(vec![one], "one".to_owned()),
        (_, "") => Deed::Now(vec![one], "one".to_owned()),
        ("3", "one") => Deed::Now(vec![json!({"do": "take_screenshot"})], "two".to_owned()),
        _ => Deed::Do(vec![two]),
    })
}
