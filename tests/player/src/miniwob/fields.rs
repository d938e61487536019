//! Fields: sliders, spinners, completions, copies, and fields that only a label tells apart.

use serde_json::json;

use super::{
    Deed, Sight,
    sight::{between, click, extract, fill, press},
    steps,
};
use crate::{
    prompt::{Line, plain},
    task::Step,
};

/// Number of keys that are pressed before the next look.
const PRESSES: usize = 5;

/// `Select 12 with the slider and hit Submit.`, and `Set the sliders to the combination [1,2,3]`.
pub(super) fn sliders(sight: &Sight<'_>) -> Option<Deed> {
    let wanted = match between(sight.asked, "[", "]") {
        Some(all) => all
            .split(',')
            .map(|it| it.trim().parse().ok())
            .collect::<Option<_>>()?,
        None => vec![between(sight.asked, "Select ", " with").and_then(|it| it.parse().ok())?],
    };
    let handles = handles(sight);
    match slid(sight, &handles, &wanted)? {
        Some(deed) => Some(deed),
        None => Some(Deed::Do(vec![click(sight.one("button", "Submit")?)])),
    }
}

/// Returns the handles that can be pulled: they have no name of their own.
fn handles<'a>(sight: &Sight<'a>) -> Vec<&'a Line> {
    let unnamed = sight.usable().filter(|line| line.name.is_empty());
    unnamed
        .filter(|line| line.role == "slider" || line.role == "generic")
        .collect()
}

/// Moves the first slider that is not where it should be; nothing if all are. How far each must
/// go is read once and noted, and every key that was pressed since is taken off.
fn slid(sight: &Sight<'_>, handles: &[&Line], wanted: &[i64]) -> Option<Option<Deed>> {
    let noted = sight.note().split(',').map(|it| it.parse().ok());
    let mut away: Vec<i64> = match noted.collect::<Option<_>>() {
        Some(away) => away,
        None => {
            let Some(words) = sight.words() else {
                return Some(Some(Deed::Do(vec![extract()])));
            };
            let shown = words.iter().filter_map(|line| line.parse::<i64>().ok());
            wanted
                .iter()
                .zip(shown)
                .map(|(wanted, is)| wanted - is)
                .collect()
        }
    };
    if away.len() != wanted.len() {
        return None;
    }
    if !sight.note().is_empty()
        && let Some(moved) = away.iter_mut().find(|it| **it != 0)
    {
        let pressed = sight
            .prompt
            .verdicts
            .iter()
            .filter(|it| *it != "refused")
            .count();
        let pressed = i64::try_from(pressed).ok()?;
        *moved -= moved.signum() * pressed.min(moved.abs());
    }
    let note = away
        .iter()
        .map(i64::to_string)
        .collect::<Vec<_>>()
        .join(",");
    let Some(at) = away.iter().position(|it| *it != 0) else {
        return Some(None);
    };
    let handle = handles.get(at)?;
    let key = if away[at] > 0 {
        "ArrowRight"
    } else {
        "ArrowLeft"
    };
    let times = usize::try_from(away[at].abs()).ok()?.min(PRESSES);
    let keys = (0..times).map(|_| press(handle, key)).collect();
    Some(Some(Deed::Now(keys, note)))
}

/// `Select 4 with the spinner and hit Submit.`
pub(super) fn spinner(sight: &Sight<'_>) -> Option<Deed> {
    let wanted: i64 = between(sight.asked, "Select ", " with")?.parse().ok()?;
    let field = *sight.all("spinbutton").first()?;
    let away = wanted - field.value.parse::<i64>().unwrap_or(0);
    let key = if away > 0 { "ArrowUp" } else { "ArrowDown" };
    Some(Deed::Do(match usize::try_from(away.abs()).ok()? {
        0 => vec![click(sight.one("button", "Submit")?)],
        times => (0..times.min(PRESSES)).map(|_| press(field, key)).collect(),
    }))
}

/// `Select 3 with the slider, click the 2nd checkbox, then hit Submit.` and its kin.
pub(super) fn sequence(sight: &Sight<'_>) -> Option<Deed> {
    let asked = sight.asked;
    let nth = |text: &str| {
        text.chars()
            .find_map(|c| c.to_digit(10))
            .map(|it| it as usize)
    };
    let submit = || steps::click("button Submit");
    if let Some(number) = between(asked, "Select ", " with the slider") {
        let handles = handles(sight);
        if let Some(deed) = slid(sight, &handles, &[number.parse().ok()?])? {
            return Some(deed);
        }
        let nth = nth(between(asked, "click the ", " checkbox")?);
        return Some(Deed::Plan(vec![
            Step {
                nth,
                ..steps::click("checkbox ")
            },
            submit(),
        ]));
    }
    if let Some(radio) = between(asked, "Check the ", " radio") {
        let text = between(asked, "number \"", "\"")?;
        let field = nth(between(asked, "into the ", " textbox")?)?;
        return Some(Deed::Steps(vec![
            Step {
                nth: nth(radio),
                ..steps::click("radio ")
            },
            steps::types(field, text),
            submit(),
        ]));
    }
    let option = between(asked, "Choose ", " from the dropdown")?;
    let button = between(asked, "labeled \"", "\"")?;
    let chosen = sight
        .usable()
        .filter(|line| plain(&line.name) == plain(option));
    let next = match (chosen.last(), sight.note()) {
        (_, "chosen") => vec![click(sight.one("button", button)?)],
        (Some(option), _) => {
            return Some(Deed::Now(vec![click(option)], "chosen".to_owned()));
        }
        // It is open, and the option is further down.
        (None, _) if sight.all("listitem").len() > 1 => {
            let list = sight
                .usable()
                .find(|line| line.states.contains("scrolls by itself"))?;
            vec![json!({"do": "scroll", "direction": "down", "pages": 0.8, "on": list.id})]
        }
        (None, _) => vec![click(sight.usable().find(|line| line.name.contains('▾'))?)],
    };
    Some(Deed::Do(next))
}

/// `Enter an item that starts with "Ma" and ends with "ta".`
pub(super) fn completed(sight: &Sight<'_>) -> Option<Deed> {
    let start = between(sight.asked, "starts with \"", "\"")?;
    let end = between(sight.asked, "ends with \"", "\"").unwrap_or("");
    let field = *sight.all("textbox").first()?;
    let fits = |name: &str| name.starts_with(start) && name.ends_with(end);
    if fits(&field.value) && sight.note() == "chosen" {
        return Some(Deed::Do(vec![click(sight.one("button", "Submit")?)]));
    }
    let item = sight
        .all("listitem")
        .into_iter()
        .find(|line| fits(&line.name));
    Some(match (item, field.value.is_empty()) {
        (Some(item), _) => Deed::Now(vec![click(item)], "chosen".to_owned()),
        (None, true) => Deed::Do(vec![fill(field, start)]),
        (None, false) => Deed::Do(vec![json!({"do": "find", "text": start})]),
    })
}

/// Copied and pasted by keys, since a long text is not shown whole.
pub(super) fn copied(sight: &Sight<'_>) -> Option<Deed> {
    let fields = sight.all("textbox");
    let holds = |line: &&&Line| line.states.contains("takes several");
    let nth = ["1st", "2nd", "3rd"]
        .iter()
        .position(|word| sight.asked.contains(word));
    let from = fields.iter().filter(holds).nth(nth.unwrap_or(0))?;
    let from = fields.iter().position(|line| line.id == from.id)? + 1;
    let to = fields.iter().position(|line| !holds(&line))? + 1;
    let at = |nth| Step {
        nth: Some(nth),
        ..steps::click("textbox ")
    };
    let key = |key: &str| Step {
        press: Some(key.to_owned()),
        ..Step::default()
    };
    Some(Deed::Steps(vec![
        at(from),
        key("Control+a"),
        key("Control+c"),
        at(to),
        key("Control+v"),
        steps::click("button Submit"),
    ]))
}

/// A login over which another window may come.
pub(super) fn login(sight: &Sight<'_>) -> Option<Deed> {
    let user = between(sight.asked, "username \"", "\"")?;
    let password = between(sight.asked, "password \"", "\"")?;
    if let Some(cancel) = sight.one("button", "Cancel") {
        return Some(Deed::Now(vec![click(cancel)], "again".to_owned()));
    }
    let fields = sight.all("textbox");
    let (name, secret) = (fields.first()?, fields.get(1)?);
    if name.value != user {
        return Some(Deed::Do(vec![fill(name, user)]));
    }
    Some(match sight.note() {
        "typed" => Deed::Do(vec![click(sight.one("button", "OK")?)]),
        _ => Deed::Now(vec![fill(secret, password)], "typed".to_owned()),
    })
}

/// Three fields that their labels tell apart.
pub(super) fn labelled(sight: &Sight<'_>) -> Option<Deed> {
    let asked = plain(sight.asked);
    let year: String = asked
        .split(|c: char| !c.is_ascii_digit())
        .find(|part| part.len() == 4)?
        .to_owned();
    let genre = between(&asked, "search for ", " movies")?.to_owned();
    let name = asked
        .split(" by ")
        .nth(1)?
        .split([' ', '.'])
        .next()?
        .to_owned();
    let words = [
        ("genre", genre),
        ("director", name),
        ("year", year.clone()),
        ("date", year),
    ];
    let fields = sight.all("textbox");
    let mut labels: Vec<String> = fields.iter().map(|line| plain(&line.name)).collect();
    if labels.iter().any(String::is_empty) {
        let Some(lines) = sight.words() else {
            return Some(Deed::Do(vec![extract()]));
        };
        let lines = lines.iter().map(|line| plain(line));
        labels = lines
            .filter(|line| words.iter().any(|(word, _)| line.contains(word)))
            .collect();
    }
    let mut plan = Vec::new();
    for (at, label) in labels.iter().enumerate() {
        let (_, text) = words.iter().find(|(word, _)| label.contains(word))?;
        plan.push(steps::types(at + 1, text));
    }
    let ends = ["submit", "search", "go!", "go"];
    let last = sight
        .usable()
        .find(|line| ends.contains(&plain(&line.name).as_str()))?;
    plan.push(steps::click(format!("{} {}", last.role, last.name)));
    Some(Deed::Plan(plan))
}
