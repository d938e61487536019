//! Posts with signs below them that have no names: answer, share, like.

use serde_json::json;

use super::{
    Deed, Sight,
    sight::{between, click, extract},
};
use crate::prompt::{Line, plain};

/// The signs below a post, in their order.
const SIGNS: [&str; 4] = ["reply", "retweet", "like", "share"];

/// `Click the "Like" button on all posts by @lacus and then click Submit.`, and
/// `For the user @kenda, click on the "Like" button.`
pub(super) fn posts(sight: &Sight<'_>) -> Option<Deed> {
    let button = between(sight.asked, "\"", "\"")?;
    let of_one = between(sight.asked, "For the user ", ",");
    if let Some(item) = sight.usable().find(|line| {
        of_one.is_some() && line.role != "generic" && plain(&line.name).starts_with(&plain(button))
    }) {
        return Some(Deed::Do(vec![click(item)]));
    }
    let user = of_one.or_else(|| between(sight.asked, " by ", " and then"))?;
    let (first, stride, mut done, wanted) = match known(sight) {
        Some(known) => known,
        None => return begun(sight, user),
    };
    // One click is all that is asked for: while the page goes on it was not heard.
    if of_one.is_some() {
        done = done.min(wanted.len().saturating_sub(1));
    }
    let at = SIGNS.iter().position(|sign| plain(button) == *sign);
    // What is not a sign is in the menu behind the last one.
    let at = u32::try_from(at.unwrap_or(3)).ok()?;
    let signs: Vec<&Line> = sight.all("generic");
    let of_post = |post: u32| {
        let id = first + stride * post + at;
        signs.iter().find(|line| number(line) == Some(id))
    };
    let next = wanted
        .iter()
        .skip(done)
        .map_while(|post| of_post(*post))
        .take(4);
    let actions: Vec<_> = next.map(|line| click(line)).collect();
    done += actions.len();
    if !actions.is_empty() {
        return Some(Deed::Now(actions, noted(first, stride, done, &wanted)));
    }
    if done >= wanted.len()
        && of_one.is_none()
        && let Some(submit) = sight.one("button", "Submit")
    {
        return Some(Deed::Do(vec![click(submit)]));
    }
    let scrolls = sight
        .usable()
        .find(|line| line.states.contains("scrolls by itself"))?;
    Some(Deed::Do(vec![
        json!({"do": "scroll", "direction": "down", "pages": 0.6, "on": scrolls.id}),
    ]))
}

/// Finds the posts that are meant by the words of all; how their signs are counted is seen on the
/// first two.
fn begun(sight: &Sight<'_>, user: &str) -> Option<Deed> {
    let Some(words) = sight.read().and(sight.words()) else {
        return Some(Deed::Do(vec![extract()]));
    };
    let users: Vec<&str> = words
        .iter()
        .flat_map(|line| line.split_whitespace())
        .filter(|word| word.starts_with('@'))
        .collect();
    let is_meant = |name: &&str| name.trim_start_matches('@') == user.trim_start_matches('@');
    let mut wanted: Vec<u32> = (0..)
        .zip(&users)
        .filter(|(_, name)| is_meant(name))
        .map(|(at, _)| at)
        .collect();
    if let Some(count) = between(sight.asked, "button on ", " post") {
        wanted.truncate(count.parse().unwrap_or(wanted.len()));
    }
    let signs: Vec<u32> = sight
        .all("generic")
        .into_iter()
        .filter(|line| line.name.is_empty() && !line.states.contains("scrolls by itself"))
        .filter_map(number)
        .collect();
    let (first, second) = (*signs.first()?, *signs.get(4)?);
    Some(Deed::Now(
        vec![extract()],
        noted(first, second - first, 0, &wanted),
    ))
}

fn number(line: &Line) -> Option<u32> {
    let id = line.id.as_deref()?;
    id.trim_start_matches(|c: char| c.is_ascii_lowercase())
        .parse()
        .ok()
}

fn noted(first: u32, stride: u32, done: usize, wanted: &[u32]) -> String {
    let wanted: Vec<String> = wanted.iter().map(u32::to_string).collect();
    format!("{first} {stride} {done} {}", wanted.join(" "))
}

fn known(sight: &Sight<'_>) -> Option<(u32, u32, usize, Vec<u32>)> {
    let numbers: Vec<u32> = sight
        .note()
        .split(' ')
        .filter_map(|it| it.parse().ok())
        .collect();
    let [first, stride, done, wanted @ ..] = numbers.as_slice() else {
        return None;
    };
    Some((
        *first,
        *stride,
        usize::try_from(*done).ok()?,
        wanted.to_vec(),
    ))
}
