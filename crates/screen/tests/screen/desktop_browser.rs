//! Browsers on a nested desktop: their pages are part of the view, and are used like any program.

use std::fs;

use gyrus_contract::ElementState;
use serde_json::json;

use crate::{desktop::has, desktop_acting::Desk};

const PAGE: &str = "<!doctype html><title>Orders</title><h1>Orders of March</h1>
<label>Name <input id=name value=Ada></label>
<label>Word <input type=password value=geheim></label>
<select aria-label=Size><option>Small<option>Large</select>
<button onclick=\"said.textContent = 'Sent for ' + document.getElementById('name').value\">Send it</button>
<output id=said></output>
<p style='margin-top: 3000px'>The end</p>
<iframe srcdoc='<button>Within</button>'></iframe>";

#[tokio::test]
async fn a_page_in_a_browser_on_a_desktop_is_seen_and_used() {
    if !has(&["Xvfb", "openbox", "dbus-daemon", "chromium"]) {
        return;
    }
    let desk = Desk::new();
    fs::write(desk.path("orders.html"), PAGE).unwrap();
    let page = format!("file://{}", desk.path("orders.html").display());
    // Outside of gyrus's sandbox a Chromium of root has to be told.
    let words = [
        "chromium",
        "--no-sandbox",
        "--test-type",
        "--disable-gpu",
        &page,
    ];
    desk.desktop.start(&words.map(str::to_owned)).await.unwrap();

    let view = desk.look().await;
    let one = |role: &str, name: &str| {
        let mut fitting = view.elements.iter().filter(|it| it.role == role);
        let found = fitting.find(|it| it.name == name);
        found.unwrap_or_else(|| panic!("no {role} “{name}” in {:#?}", view.elements))
    };
    assert_eq!(one("textbox", "Name").value.as_deref(), Some("Ada"));
    assert_eq!(one("combobox", "Size").value.as_deref(), Some("Small"));
    let word = one("textbox", "Word");
    assert!(word.states.contains(&ElementState::Masked));
    assert_eq!(word.value, None);
    let end = one("text", "The end");
    assert!(end.states.contains(&ElementState::OutOfView));
    one("button", "Within");
    one("heading", "Orders of March");
    let headings = view
        .elements
        .iter()
        .filter(|it| it.name == "Orders of March");
    assert_eq!(headings.count(), 1, "its text is its name");

    let name = one("textbox", "Name").id;
    desk.done(
        "type_text",
        json!({"on": name, "text": "Žofie 世界", "replace": true}),
    )
    .await;
    let send = one("button", "Send it").id;
    let done = desk.done("click", json!({"on": send})).await;
    assert!(done.text.contains("Sent for Žofie 世界"), "{}", done.text);
    let size = one("combobox", "Size").id;
    desk.done("click", json!({"on": size})).await;
    let option = desk
        .find(|it| it.role == "menuitem" && it.name == "Large")
        .await;
    desk.done("click", json!({"on": option.id})).await;
    let size = desk.named("Size").await;
    assert_eq!(size.value.as_deref(), Some("Large"));
    desk.done("scroll_to", json!({"on": end.id})).await;
    let end = desk.named("The end").await;
    assert!(!end.states.contains(&ElementState::OutOfView), "{end:?}");
    desk.leave().await;
}
