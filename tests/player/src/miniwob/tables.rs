//! Pages that are read before something of them is chosen: tables, offers, results, menus, trees.

use serde_json::json;

use super::{
    Deed, Sight,
    sight::{between, click, extract, fill},
    steps,
};
use crate::prompt::{Line, plain};

/// `3h 43m`, in minutes.
pub(super) fn duration(line: &str) -> Option<u32> {
    let (hours, rest) = line.split_once("h ")?;
    let hours: u32 = hours.rsplit(' ').next()?.parse().ok()?;
    let minutes: u32 = rest.split('m').next()?.parse().ok()?;
    Some(hours * 60 + minutes)
}

/// `Buy the ticket with the shortest duration.`
pub(super) fn ticket(sight: &Sight<'_>) -> Option<Deed> {
    let offers: Vec<&Line> = sight
        .all("button")
        .into_iter()
        .filter(|line| line.name.starts_with("Book for"))
        .collect();
    let asked = sight.asked;
    let sizes: Vec<u32> = if asked.contains("cost") {
        let price = |line: &&Line| line.name.rsplit_once('$')?.1.parse().ok();
        offers.iter().filter_map(price).collect()
    } else {
        let Some(words) = sight.words() else {
            return Some(Deed::Do(vec![extract()]));
        };
        words.iter().filter_map(|line| duration(line)).collect()
    };
    let all = offers.iter().zip(sizes);
    let (best, _) = if asked.contains("cheapest") || asked.contains("shortest") {
        all.min_by_key(|(_, size)| *size)?
    } else {
        all.max_by_key(|(_, size)| *size)?
    };
    Some(Deed::Do(vec![click(best)]))
}

/// `Enter the value of Gender into the text field and press Submit.`
pub(super) fn values(sight: &Sight<'_>) -> Option<Deed> {
    let Some(words) = sight.words() else {
        return Some(Deed::Do(vec![extract()]));
    };
    let value = |key: &str| {
        let key = plain(key);
        words.iter().enumerate().find_map(|(at, line)| {
            // What is read on purpose has a space between the cells.
            let rest = plain(line).strip_prefix(&key)?.starts_with(' ');
            if rest && !line.contains('|') {
                return Some(line[key.len()..].trim().to_owned());
            }
            let cells: Vec<&str> = line.split(['|', '\t']).map(str::trim).collect();
            let cells: Vec<&str> = cells.into_iter().filter(|it| !it.is_empty()).collect();
            let found = cells.iter().position(|cell| plain(cell) == key)?;
            let beside = cells.get(found + 1).map(|it| (*it).to_owned());
            beside.or_else(|| words.get(at + 1).cloned())
        })
    };
    let mut plan = Vec::new();
    match between(sight.asked, "the value of ", " into") {
        Some(key) => plan.push(steps::types(1, &value(key)?)),
        None => {
            let keys = words.iter().filter_map(|line| line.strip_suffix(':'));
            for (at, key) in (1..).zip(keys.take(2)) {
                plan.push(steps::types(at, &value(key)?));
            }
        }
    }
    plan.push(steps::click("button Submit"));
    Some(Deed::Plan(plan))
}

/// `Find Clementine in the contact book and click on their phone number.`
pub(super) fn contact(sight: &Sight<'_>) -> Option<Deed> {
    let person = between(sight.asked, "Find ", " in the contact")?;
    let Some(words) = sight.words() else {
        return Some(Deed::Do(vec![extract()]));
    };
    if !words
        .iter()
        .any(|line| plain(line.trim_start_matches(['#', ' '])) == plain(person))
    {
        return Some(Deed::Do(vec![click(sight.named(">")?)]));
    }
    let of = sight.asked.rsplit_once("their ")?.1;
    let links = sight
        .usable()
        .filter(|line| line.role == "generic" || line.role == "link");
    let links: Vec<&Line> = links.filter(|line| line.name.len() > 3).collect();
    let is_email = |line: &&&Line| line.name.contains('@');
    let is_phone = |line: &&&Line| line.name.chars().all(|c| c.is_ascii_digit() || c == '-');
    let found = match of.split([' ', '.']).next()? {
        "email" => links.iter().find(is_email),
        "phone" => links.iter().find(is_phone),
        _ => links.iter().find(|line| !is_email(line) && !is_phone(line)),
    };
    Some(Deed::Do(vec![click(found?)]))
}

/// `Use the textbox to enter "Jerald" and press "Search", then find and click the 5th result.`
pub(super) fn results(sight: &Sight<'_>) -> Option<Deed> {
    let name = between(sight.asked, "enter \"", "\"")?;
    let field = *sight.all("textbox").first()?;
    if field.value != name {
        let search = sight.one("button", "Search")?;
        return Some(Deed::Do(vec![fill(field, name), click(search)]));
    }
    if sight.named("1").is_none() {
        return Some(Deed::Do(vec![click(sight.one("button", "Search")?)]));
    }
    let rest = sight.asked.rsplit_once(" the ")?.1;
    let nth: usize = rest
        .chars()
        .take_while(char::is_ascii_digit)
        .collect::<String>()
        .parse()
        .ok()?;
    let page = (nth - 1) / 3 + 1;
    if page > 1 && sight.note() != "there" {
        let link = sight.named(&page.to_string())?;
        return Some(Deed::Now(vec![click(link)], "there".to_owned()));
    }
    let pages = [
        "1", "2", "3", "first", "previous", "next", "last", "<", ">", "<<", ">>",
    ];
    let links = sight.usable().filter(|line| {
        matches!(line.role.as_str(), "link" | "generic")
            && !line.name.is_empty()
            && !pages.contains(&plain(&line.name).as_str())
    });
    let links: Vec<&Line> = links.collect();
    Some(Deed::Do(vec![click(links.get((nth - 1) % 3)?)]))
}

/// `Navigate through the file tree. Find and click on the folder or file named "Livia".`
pub(super) fn tree(sight: &Sight<'_>) -> Option<Deed> {
    let name = between(sight.asked, "named \"", "\"")?;
    // A folder's words are what is clicked; a file's words are its item.
    let named = |role: &str| sight.one(role, name);
    if let Some(found) = named("generic").or_else(|| named("listitem")) {
        return Some(Deed::Do(vec![click(found)]));
    }
    // Folders are opened in their order; what was opened is remembered by name.
    let opened: Vec<&str> = sight.note().split(';').collect();
    let folder = sight.usable().find(|line| {
        line.role == "generic"
            && !line.name.is_empty()
            && !opened.contains(&line.id.as_deref().unwrap_or(""))
    })?;
    let note = format!("{};{}", sight.note(), folder.id.as_deref().unwrap_or(""));
    Some(Deed::Now(vec![click(folder)], note))
}

/// `Order one of each item: A, B`, and `Order 3 items that are vegan`.
pub(super) fn food(sight: &Sight<'_>) -> Option<Deed> {
    let names = match sight.asked.split_once(": ") {
        Some((_, names)) => names.split(", ").map(str::to_owned).collect(),
        None => return kinds(sight),
    };
    let names: Vec<String> = names;
    // Searched one by one, since most of the menu is out of view.
    let done: usize = sight.note().parse().unwrap_or(0);
    match names.get(done) {
        None => Some(ordered(sight)),
        Some(name) => Some(match added(sight, name) {
            Some(plus) => Deed::Now(vec![click(plus)], (done + 1).to_string()),
            None => Deed::Do(vec![
                json!({"do": "scroll", "direction": "down", "pages": 0.7,
                "on": sight.usable().find(|line| line.states.contains("scrolls by itself"))?.id}),
            ]),
        }),
    }
}

/// The sign that adds what has this name.
fn added<'a>(sight: &Sight<'a>, name: &str) -> Option<&'a Line> {
    let lines = &sight.prompt.lines;
    let at = lines
        .iter()
        .position(|line| !line.is_away && plain(&line.name) == plain(name))?;
    let rest = lines[at + 1..].iter().take(8);
    let next = rest.take_while(|line| line.id.is_some() || line.role == "img");
    next.filter(|line| line.id.is_some())
        .find(|line| line.name == "+")
}

/// Several of one kind: the first of that kind, often enough.
fn kinds(sight: &Sight<'_>) -> Option<Deed> {
    let mut words = sight.asked.split_whitespace().skip(1);
    let often: usize = words.next()?.parse().ok()?;
    let kind = sight
        .asked
        .rsplit_once("that are ")?
        .1
        .trim_end_matches('.');
    let done: usize = sight.note().parse().unwrap_or(0);
    if done >= often {
        return Some(ordered(sight));
    }
    let lines = &sight.prompt.lines;
    let at = lines
        .iter()
        .position(|line| line.role == "img" && plain(&line.name) == plain(kind));
    let plus = at.and_then(|at| lines[at..].iter().find(|line| line.name == "+"));
    Some(match plus {
        Some(plus) => Deed::Now(vec![click(plus)], (done + 1).to_string()),
        None => Deed::Do(vec![
            json!({"do": "scroll", "direction": "down", "pages": 0.7,
            "on": sight.usable().find(|line| line.states.contains("scrolls by itself"))?.id}),
        ]),
    })
}

fn ordered(sight: &Sight<'_>) -> Deed {
    Deed::Do(match sight.one("button", "Order!") {
        Some(order) => vec![click(order)],
        None => vec![json!({"do": "find", "text": "Order!"})],
    })
}
