//! Sample views as a browser would return them, for tests.

use std::fmt::Write as _;

use gyrus_contract::{Bounds, Element, ElementId, ElementState, Rest, Scroll, Tab, View};

/// Returns a page of these elements: each a line of role, depth, name, and states behind a `/`. A
/// state of `=…` is the value. Elements are placed below each other, 20 pixels apart.
pub(super) fn page(address: &str, title: &str, elements: &str) -> View {
    let mut listed = Vec::new();
    for (line, number) in elements
        .lines()
        .filter(|line| !line.trim().is_empty())
        .zip(1..)
    {
        let depth = line.len() - line.trim_start().len();
        let (words, states) = line.trim().split_once(" /").unwrap_or((line.trim(), ""));
        let (role, name) = words.split_once(' ').unwrap_or((words, ""));
        let mut element = Element {
            id: ElementId {
                document: 2,
                number,
            },
            role: role.to_owned(),
            name: name.to_owned(),
            value: None,
            address: None,
            states: Default::default(),
            bounds: Some(Bounds {
                x: 10 * i32::try_from(depth).unwrap(),
                y: 20 * (i32::try_from(number).unwrap() - 1),
                width: 100,
                height: 18,
            }),
            depth: u16::try_from(depth).unwrap(),
        };
        for state in states
            .split('/')
            .map(str::trim)
            .filter(|state| !state.is_empty())
        {
            match state.strip_prefix('=') {
                Some(value) => element.value = Some(value.to_owned()),
                None if state == "unpainted" => element.bounds = None,
                None => {
                    let state = serde_json::from_value(state.into()).unwrap();
                    element.states.insert(state);
                }
            }
        }
        if element.bounds.is_some_and(|bounds| bounds.y >= 800) {
            element.states.insert(ElementState::OutOfView);
        }
        listed.push(element);
    }
    View {
        session: "s".to_owned(),
        address: address.to_owned(),
        title: title.to_owned(),
        width: 1280,
        height: 800,
        frame: None,
        hash: None,
        scroll: Scroll {
            x: 0,
            y: 0,
            width: 1280,
            height: u32::try_from(listed.len() * 20).unwrap().max(800),
        },
        elements: listed,
        tabs: vec![Tab {
            number: 1,
            title: title.to_owned(),
            address: address.to_owned(),
            is_active: true,
        }],
        dialog: None,
        downloads: Vec::new(),
        held: Vec::new(),
        rest: Rest::Quiet,
        documents: 2,
        unread: Vec::new(),
    }
}

/// Returns a login form.
pub(super) fn form() -> View {
    page(
        "https://shop.test/login",
        "Log in – Shop",
        "banner
 link Shop home
main
 heading Log in
 form Log in
  textbox E-mail /=ann@example.org/required
  textbox Password /masked/required
  checkbox Stay logged in /checked
  button Log in
  link Forgot your password?
 text New here? An account takes a minute.
 link Create account
contentinfo
 link Terms
 link Privacy",
    )
}

/// Returns a list of products that is longer than the frame.
pub(super) fn shop() -> View {
    let mut elements = String::from(
        "banner
 link Shop
 searchbox Search /=lamp
 button Search
 link Cart (2)
navigation Categories
 link Lamps /selected
 link Chairs
 link Tables
 link Carpets
main
 heading Lamps
 text 60 results
 combobox Sort by /=Price/collapsed
  option Price /unpainted
  option Name /unpainted
  option Newest /unpainted
 list
",
    );
    for number in 1..=60 {
        let price = 10 + number * 3;
        writeln!(
            elements,
            "  listitem\n   link Lamp {number} of brass\n    text Lamp {number} of brass\n   text {price},00 EUR\n   text In stock, 2 days\n   button Add to cart"
        )
        .unwrap();
    }
    elements.push_str("contentinfo\n link Imprint\n link Privacy\n link Contact\n");
    page(
        "https://shop.test/lamps?sort=price",
        "Lamps – Shop",
        &elements,
    )
}

pub(super) fn article() -> View {
    let mut elements = String::from(
        "banner\n link News\n link Politics\n link Science\n link Sport\nmain\n heading The moon is made of rock\n text By A. Writer, 3 March\n",
    );
    for number in 1..=25 {
        writeln!(
            elements,
            " paragraph\n  text Paragraph {number}: it has long been said that the moon is made of cheese, but samples that were brought back show that it is rock, mostly basalt and anorthosite, as many had thought.\n  link source {number}"
        )
        .unwrap();
    }
    page(
        "https://news.test/moon",
        "The moon is made of rock",
        &elements,
    )
}

/// Returns a table of numbers.
pub(super) fn table() -> View {
    let mut elements = String::from(
        "main\n heading Invoices\n textbox Filter\n table Invoices\n  row\n   columnheader Number\n   columnheader Customer\n   columnheader Amount\n",
    );
    for number in 1..=30 {
        writeln!(
            elements,
            "  row\n   cell R-{number:04}\n   cell Customer {number}\n   cell {number}0,50 EUR"
        )
        .unwrap();
    }
    elements.push_str("button Export\n");
    let mut view = page("https://books.test/invoices", "Invoices", &elements);
    // Rows are one line high.
    let mut y = 0;
    for element in &mut view.elements {
        let bounds = element.bounds.as_mut().unwrap();
        y += if element.role == "cell" || element.role == "columnheader" {
            0
        } else {
            22
        };
        bounds.y = y;
        element.states.remove(&ElementState::OutOfView);
    }
    view.scroll.height = 800;
    view
}

/// Returns a drawing board.
pub(super) fn board() -> View {
    let mut view = page(
        "https://draw.test/",
        "Board",
        "main\n canvas\n button Pen\n button Undo\n button Clear",
    );
    view.elements[1].bounds = Some(Bounds {
        x: 0,
        y: 100,
        width: 1280,
        height: 700,
    });
    view
}
