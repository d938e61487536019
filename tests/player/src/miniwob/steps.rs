//! Requests that are a list of steps by their words alone. A sentence that is not understood here
//! is not played.

use super::sight::between;
use crate::task::Step;

/// Words for places in a row.
const PLACES: [(&str, usize); 6] = [
    ("1st", 1),
    ("2nd", 2),
    ("3rd", 3),
    ("4th", 4),
    ("5th", 5),
    ("6th", 6),
];

/// Returns the steps for a request.
pub(super) fn does(asked: &str) -> Option<Vec<Step>> {
    let families = [clicks, selects, enters, focuses, others];
    families.into_iter().find_map(|family| family(asked))
}

/// Clicking what is called so.
pub(super) fn click(on: impl Into<String>) -> Step {
    Step {
        click: Some(on.into()),
        ..Step::default()
    }
}

/// Filling the nth field.
pub(super) fn types(nth: usize, text: &str) -> Step {
    Step {
        types: Some("textbox ".to_owned()),
        nth: Some(nth),
        text: Some(text.to_owned()),
        ..Step::default()
    }
}

fn chooses(option: &str) -> Step {
    Step {
        select: Some("combobox ".to_owned()),
        option: Some(option.to_owned()),
        ..Step::default()
    }
}

/// `Click on the "Ok" button.`, `Click button ONE.`, `Click on the link "x".` and the like.
fn clicks(asked: &str) -> Option<Vec<Step>> {
    if let Some(name) = between(asked, "Click on the \"", "\" button.") {
        return Some(vec![click(format!("button {name}"))]);
    }
    if let Some(name) = between(asked, "Click on the link \"", "\"") {
        return Some(vec![click(format!("generic {name}"))]);
    }
    if let Some(name) = between(asked, "dialog box labeled \"", "\"") {
        let name = if name == "x" { "Close" } else { name };
        return Some(vec![click(format!("button {name}"))]);
    }
    if asked.starts_with("Close the dialog box") {
        return Some(vec![click("button Close")]);
    }
    if let Some(first) = between(asked, "Click button ", ", ") {
        let second = between(asked, "then click button ", ".")?;
        let mut steps = vec![click(format!("button {first}"))];
        if asked.contains(" wait ") {
            steps.push(Step {
                wait: Some("pause".to_owned()),
                ..Step::default()
            });
        }
        steps.push(click(format!("button {second}")));
        return Some(steps);
    }
    if let Some(name) = between(asked, "Click button ", ".") {
        return Some(vec![click(format!("button {name}"))]);
    }
    if asked == "Click the button." {
        return Some(vec![click("button ")]);
    }
    if let Some(number) = between(asked, "Click on Tab #", ".") {
        return Some(vec![click(format!("tab Tab #{number}"))]);
    }
    if let Some(kind) = between(asked, "Click on a \"", "\" widget") {
        let role = match kind {
            "text" | "textarea" => "textbox",
            other => other,
        };
        return Some(vec![click(format!("{role} "))]);
    }
    None
}

/// `Select a, b and click Submit.`, from lists, boxes or choices.
fn selects(asked: &str) -> Option<Vec<Step>> {
    let submit = || click("button Submit");
    if let Some(option) = between(asked, "Select ", " from the list and") {
        return Some(vec![chooses(option), submit()]);
    }
    if let Some(option) = between(asked, "Choose ", " from the dropdown") {
        let name = between(asked, "labeled \"", "\"")?;
        return Some(vec![chooses(option), click(format!("button {name}"))]);
    }
    if let Some(number) = between(asked, "Select ", " with the spinner") {
        let spins = Step {
            types: Some("spinbutton ".to_owned()),
            text: Some(number.to_owned()),
            ..Step::default()
        };
        return Some(vec![spins, submit()]);
    }
    let names = between(asked, "Select ", " and click Submit")?;
    let is_of_its_own = names.contains(" from ") || names.starts_with("words similar");
    if is_of_its_own {
        return None;
    }
    let names = names.split(", ").filter(|name| *name != "nothing");
    let mut steps: Vec<Step> = names.map(|name| click(format!("item {name}"))).collect();
    steps.push(submit());
    Some(steps)
}

/// `Enter "x" into the text field and press Submit.` and the like.
fn enters(asked: &str) -> Option<Vec<Step>> {
    if let Some(user) = between(asked, "username \"", "\"") {
        let password = between(asked, "password \"", "\"")?;
        return Some(vec![
            types(1, user),
            types(2, password),
            click("button Login"),
        ]);
    }
    let submit = || click("button Submit");
    if let Some(password) = between(asked, "Enter the password \"", "\" into both") {
        return Some(vec![types(1, password), types(2, password), submit()]);
    }
    if let Some(text) = between(asked, "Enter \"", "\" into the text field") {
        return Some(vec![types(1, text), submit()]);
    }
    if let Some(text) = between(asked, "Type \"", "\" in ") {
        let text = if asked.contains("all upper case") {
            text.to_uppercase()
        } else {
            text.to_lowercase()
        };
        return Some(vec![types(1, &text), submit()]);
    }
    let (kind, written) = match between(asked, "Enter ", " as the date") {
        Some(date) => {
            let mut parts = date.split('/');
            let (month, day, year) = (parts.next()?, parts.next()?, parts.next()?);
            ("date", format!("{year}-{month:0>2}-{day:0>2}"))
        }
        None => ("time", hours(between(asked, "Enter ", " as the time")?)?),
    };
    let enters = Step {
        types: Some(format!("{kind} ")),
        text: Some(written),
        ..Step::default()
    };
    Some(vec![enters, submit()])
}

/// `2:33 PM` as `14:33`.
fn hours(time: &str) -> Option<String> {
    let (clock, half) = time.split_once(' ')?;
    let (hour, minute) = clock.split_once(':')?;
    let hour: u32 = hour.parse().ok()?;
    let hour = hour % 12 + if half == "PM" { 12 } else { 0 };
    Some(format!("{hour:02}:{minute}"))
}

/// `Focus into the 2nd input textbox.`
fn focuses(asked: &str) -> Option<Vec<Step>> {
    let rest = asked.strip_prefix("Focus into the ")?;
    let nth = PLACES.iter().find(|(word, _)| rest.starts_with(word));
    Some(vec![Step {
        nth: nth.map(|(_, nth)| *nth),
        ..click("textbox ")
    }])
}

/// Returns the steps for a request whose target has to be opened first.
fn others(asked: &str) -> Option<Vec<Step>> {
    if let Some(name) = between(asked, "find and click on the link \"", "\"") {
        return Some(vec![Step {
            opens: Some("tab".to_owned()),
            ..click(format!("generic {name}"))
        }]);
    }
    if asked.starts_with("Expand the section below and click submit") {
        return Some(vec![click("tab "), click("button Submit")]);
    }
    if let Some(names) = between(asked, "Select ", " from the scroll list") {
        let chooses = |name: &str| Step {
            select: Some("listbox ".to_owned()),
            option: Some(name.to_owned()),
            ..Step::default()
        };
        let mut steps: Vec<Step> = names.split(", ").map(chooses).collect();
        steps.push(click("button Submit"));
        return Some(steps);
    }
    if let Some((above, last)) = asked
        .strip_prefix("Select ")
        .and_then(|it| it.rsplit_once('>'))
    {
        let hovers = |name: &str| Step {
            hover: Some(format!("menuitem {name}")),
            ..Step::default()
        };
        let mut steps: Vec<Step> = above.split('>').map(hovers).collect();
        steps.push(click(format!("menuitem {last}")));
        return Some(steps);
    }
    if asked.starts_with("Click the \"Menu\" button") {
        let name = between(asked, "labeled \"", "\"")?;
        return Some(vec![
            click("button Menu"),
            click(format!("menuitem {name}")),
        ]);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_become_what_a_person_does() {
        let told = |asked: &str| -> Vec<String> {
            let steps = does(asked).unwrap_or_default();
            steps
                .into_iter()
                .map(|step| {
                    let on = step.click.or(step.types).or(step.select).or(step.wait);
                    let more = step.text.or(step.option).unwrap_or_default();
                    format!("{} {more}", on.unwrap_or_default())
                })
                .collect()
        };
        assert_eq!(told("Click on the \"Ok\" button."), ["button Ok "]);
        assert_eq!(
            told("Select a1, b and click Submit."),
            ["item a1 ", "item b ", "button Submit "]
        );
        assert_eq!(
            told("Enter 03/04/2015 as the date and hit submit."),
            ["date  2015-03-04", "button Submit "]
        );
        assert_eq!(
            told("Enter 12:05 AM as the time and press submit.")[0],
            "time  00:05"
        );
        assert!(does("Solve for x").is_none());
    }
}
