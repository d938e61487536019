//! A look shows what a person could perceive or use.

use gyrus_contract::{Element, ElementState, View};
use gyrus_screen::Launch;

use crate::support::{Pages, browser, has_browser, view};

/// The elements as lines: role, name, value, states; deeper ones further in.
pub(crate) fn tree(view: &View) -> String {
    let mut text = String::new();
    for one in &view.elements {
        let value = one.value.as_ref().map(|value| format!(" = {value:?}"));
        let states: Vec<String> = one.states.iter().map(|state| format!("{state:?}")).collect();
        let states = match states.is_empty() {
            true => String::new(),
            false => format!(" [{}]", states.join(" ")),
        };
        let indent = "  ".repeat(usize::from(one.depth));
        let value = value.unwrap_or_default();
        text += &format!("{indent}{} {:?}{value}{states}\n", one.role, one.name);
    }
    text + &view.unread.iter().map(|one| format!("unread: {one}\n")).collect::<String>()
}

pub(crate) fn named<'a>(view: &'a View, name: &str) -> &'a Element {
    let mut found = view.elements.iter().filter(|one| one.name == name);
    let one = found.next();
    one.unwrap_or_else(|| panic!("there is no {name:?}:\n{}", tree(view)))
}

fn is(element: &Element, state: ElementState) -> bool {
    element.states.contains(&state)
}

async fn seen(page: &str) -> Option<View> {
    if !has_browser() {
        return None;
    }
    let pages = Pages::serve().await;
    let browser = browser(Launch::default());
    Some(view(&browser, &pages.at(page)).await)
}

#[tokio::test]
async fn frames_of_every_kind_are_read() {
    let Some(view) = seen("plain.html").await else {
        return;
    };
    for name in ["a link", "Buy", "inside", "elsewhere"] {
        named(&view, name);
    }
}

#[tokio::test]
async fn shadow_roots_are_read_whether_open_or_closed() {
    let Some(view) = seen("look-shadow.html").await else {
        return;
    };
    for name in ["Slotted words", "Open inside", "Slotted button", "Closed inside", "Twice closed", "Closed in a div"] {
        named(&view, name);
    }
}

#[tokio::test]
async fn probe() {
    let Ok(page) = std::env::var("PROBE") else { return };
    for page in page.split(' ') {
        let view = seen(page).await.unwrap();
        println!("=== {page} {}x{}\n{}", view.width, view.height, tree(&view));
    }
}
