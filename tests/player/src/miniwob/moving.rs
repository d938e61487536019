//! Pages where something is scrolled, dragged, or opened by pointing.

use serde_json::json;

use super::{
    Deed, Sight,
    sight::{between, click, fill_and_click},
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

/// Returns the place to which an item of a list is dragged, counted from 0.
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

/// The items of a list that is sorted by dragging.
fn sortable<'a>(sight: &Sight<'a>) -> Vec<&'a Line> {
    sight.all("listitem")
}

fn drag(from: &Line, to: &Line) -> Deed {
    Deed::Do(vec![json!({"do": "drag", "from": from.id, "to": to.id})])
}

/// Returns the place of something, as a search tells: `b5 listitem 'Arline' at 77,127`.
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

/// Distance beyond the middle of a place at which something is dropped to come after what is there.
const BEYOND: f64 = 6.0;

/// `Drag Jinny to the center.`: the page takes the first drop, so one looks where both are before.
pub(super) fn items(sight: &Sight<'_>) -> Option<Deed> {
    let items = sortable(sight);
    let at = items
        .iter()
        .position(|item| sight.asked.starts_with(&format!("Drag {} ", item.name)))?;
    let to = *items.get(place(sight.asked, at, items.len())?)?;
    let numbers = sight.note().split(' ').map(|it| it.parse::<f64>().ok());
    let known: Vec<f64> = numbers.flatten().collect();
    let search = |item: &Line| json!({"do": "find", "text": item.name});
    let noted = |at: [f64; 2]| {
        let numbers = known.iter().chain(&at).map(f64::to_string);
        numbers.collect::<Vec<_>>().join(" ")
    };
    let [x, y, right, down] = match known.as_slice() {
        [x, y, right, down] => [*x, *y, *right, *down],
        // Points are given where a picture is shown only.
        [_, _] => {
            let note = noted(searched(sight, &to.name)?);
            let looks = json!({"do": "take_screenshot"});
            return Some(Deed::Now(vec![looks], note));
        }
        _ => {
            return Some(match searched(sight, &items[at].name) {
                None => Deed::Do(vec![search(items[at])]),
                Some(is) => Deed::Now(vec![search(to)], noted(is)),
            });
        }
    };
    let beyond = |from: f64, to: f64| match to - from {
        away if away > BEYOND => to + BEYOND,
        away if away < -BEYOND => to - BEYOND,
        _ => to,
    };
    let to = [beyond(x, right), beyond(y, down)];
    Some(Deed::Do(vec![
        json!({"do": "drag", "from": items[at].id, "to": to}),
    ]))
}

/// Numbers are put in order: the first that is too late goes to where another stands.
pub(super) fn sorted(sight: &Sight<'_>) -> Option<Deed> {
    let items = sortable(sight);
    let numbers: Option<Vec<i64>> = items.iter().map(|item| item.name.parse().ok()).collect();
    let numbers = numbers?;
    let mut right = numbers.clone();
    right.sort_unstable();
    let wrong = (0..numbers.len()).find(|at| numbers[*at] != right[*at]);
    let Some(at) = wrong else {
        return Some(Deed::Do(vec![click(sight.one("button", "Submit")?)]));
    };
    let from = numbers.iter().position(|number| *number == right[at])?;
    Some(drag(items[from], items[at]))
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
    // It opens slowly.
    Some(match (item, sight.note()) {
        (_, "open") => Deed::Now(
            vec![json!({"do": "wait", "seconds": 2})],
            "still".to_owned(),
        ),
        (Some(item), "still") => Deed::Now(vec![click(item)], "open".to_owned()),
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

/// `Click button ONE, wait 2 seconds, then click button TWO.`: what comes between takes time, too.
pub(super) fn delayed(sight: &Sight<'_>) -> Option<Deed> {
    let seconds: f64 = between(sight.asked, "wait ", " seconds")?.parse().ok()?;
    Some(Deed::Do(vec![
        click(sight.one("button", "ONE")?),
        json!({"do": "wait", "seconds": seconds - 0.3}),
        click(sight.one("button", "TWO")?),
    ]))
}
