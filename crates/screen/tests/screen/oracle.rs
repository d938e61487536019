//! Completeness, against what the browser itself says: everything in its accessibility tree that
//! can be used and has a box has to stand in the view, with these bounds and no worse a name.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use gyrus_contract::{Element, ElementState, View};
use gyrus_screen::{Browser, Launch};
use serde_json::{Value, json};

use crate::support::{Pages, browser, has_browser, view};

/// Roles of the browser's tree that stand for something to use.
const USABLE: [&str; 24] = [
    "button",
    "link",
    "textbox",
    "searchbox",
    "checkbox",
    "radio",
    "combobox",
    "listbox",
    "slider",
    "spinbutton",
    "switch",
    "tab",
    "menuitem",
    "menuitemcheckbox",
    "menuitemradio",
    "treeitem",
    "Date",
    "DateTime",
    "InputTime",
    "ColorWell",
    "DisclosureTriangle",
    "PopUpButton",
    "ToggleButton",
    "Canvas",
];

/// A usable element according to the browser: role, name, and box from the left, the top, in size.
struct Usable {
    role: String,
    name: String,
    bounds: [f64; 4],
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_default()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

async fn usable(browser: &Browser) -> Vec<Usable> {
    let order = json!({"computedStyles": [], "includeDOMRects": true});
    let snapshot = browser
        .devtools("DOMSnapshot.captureSnapshot", order)
        .await
        .unwrap();
    let mut boxes = BTreeMap::new();
    // The main frame's own: those of others are in coordinates of theirs.
    let document = &snapshot["documents"][0];
    let nodes = document["nodes"]["backendNodeId"].as_array().unwrap();
    let placed = document["layout"]["nodeIndex"].as_array().unwrap();
    for (place, index) in placed.iter().enumerate() {
        let node = nodes[usize::try_from(index.as_u64().unwrap()).unwrap()]
            .as_i64()
            .unwrap();
        let bounds = &document["layout"]["bounds"][place];
        let corner = [0, 1, 2, 3].map(|at| bounds[at].as_f64().unwrap());
        boxes.entry(node).or_insert(corner);
    }
    let tree = browser
        .devtools("Accessibility.getFullAXTree", json!({}))
        .await
        .unwrap();
    let nodes = tree["nodes"].as_array().unwrap().iter();
    let mut found = Vec::new();
    for node in nodes.filter(|node| node["ignored"] == false) {
        let role = node["role"]["value"].as_str().unwrap_or_default();
        let id = node["backendDOMNodeId"].as_i64().unwrap_or_default();
        let Some(bounds) = boxes.get(&id).filter(|bounds| bounds[2] * bounds[3] > 1.0) else {
            continue;
        };
        if USABLE.contains(&role) {
            found.push(Usable {
                role: role.to_owned(),
                name: text(&node["name"]["value"]),
                bounds: *bounds,
            });
        }
    }
    found
}

fn is_near(one: &Element, bounds: [f64; 4]) -> bool {
    let Some(own) = one.bounds else {
        return false;
    };
    let near = |own: i32, other: f64| (f64::from(own) - other).abs() <= 2.0;
    near(own.x, bounds[0])
        && near(own.y, bounds[1])
        && near(own.x + own.width, bounds[0] + bounds[2])
        && near(own.y + own.height, bounds[1] + bounds[3])
}

/// Compares the view: returns the number of elements, and those that are missing, elsewhere, or
/// have a worse name.
fn compare(view: &View, usable: &[Usable]) -> (usize, Vec<String>) {
    let mut wrong = Vec::new();
    for one in usable {
        let describe =
            |what: &str| format!("{what}: {} {:?} at {:?}", one.role, one.name, one.bounds);
        let here: Vec<&Element> = view
            .elements
            .iter()
            .filter(|own| is_near(own, one.bounds))
            .collect();
        let is_named = |own: &&&Element| own.name.to_lowercase().contains(&one.name.to_lowercase());
        if here.is_empty() {
            // Fields without a box of their own are where their label is.
            if one.name.is_empty()
                || !view
                    .elements
                    .iter()
                    .any(|own| own.name == one.name && own.role != "text")
            {
                wrong.push(describe("missing"));
            }
        } else if !here.iter().any(|own| is_named(&own)) {
            wrong.push(describe("named worse"));
        }
    }
    (usable.len(), wrong)
}

#[tokio::test]
async fn nearly_all_that_the_browser_calls_usable_is_in_the_view() {
    if !has_browser() {
        return;
    }
    let pages = Pages::serve().await;
    let browser = browser(Launch::default());
    let names = [
        "look-form.html",
        "look-secrets.html",
        "look-shadow.html",
        "look-frames.html",
        "look-scroll.html",
        "look-hidden.html",
        "look-boxes.html",
        "look-modal.html",
        "look-grid.html",
        "look-media.html",
        "look-colour.html",
    ];
    let (mut all, mut wrong) = (0, Vec::new());
    for name in names {
        let view = view(&browser, &pages.at(name)).await;
        let (count, misses) = compare(&view, &usable(&browser).await);
        all += count;
        wrong.extend(misses.into_iter().map(|miss| format!("{name}: {miss}")));
    }
    println!("{all} usable, {} wrong: {wrong:#?}", wrong.len());
    assert!(all > 2000, "{all}");
    // A share would be lost in the rows of one large table. These two are left out on purpose.
    assert!(wrong.len() <= 2, "{wrong:#?}");
}

#[tokio::test]
async fn what_only_listens_for_the_mouse_is_told() {
    if !has_browser() {
        return;
    }
    let pages = Pages::serve().await;
    let browser = browser(Launch::default());
    let view = view(&browser, &pages.at("look-listeners.html")).await;
    let clickable = |one: &&Element| one.states.contains(&ElementState::Clickable);
    let told = view.elements.iter().filter(clickable);
    let told: Vec<_> = told
        .map(|one| (one.role.as_str(), one.name.as_str()))
        .collect();
    // Neither an element that listens for all of its content, nor one without listeners.
    assert_eq!(
        told,
        [
            ("generic", "Only listens"),
            ("row", "1 Oslo"),
            ("img", ""),
            ("generic", "Region"),
        ]
    );
}
