//! Programs of Qt on a nested desktop: it hands out none of its elements, and answers pings in its
//! own way.
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use gyrus_contract::{ActionVerdict, Element, ElementState};
use serde_json::json;

use crate::{
    desktop::has,
    desktop_acting::{Desk, is_missing},
};

/// The Python and the Qt of Debian.
const PYTHON: &str = "/usr/bin/python3";
const QT: &str = "/usr/lib/python3/dist-packages/PyQt6/QtWidgets.abi3.so";

/// Opens the form, or returns `None` where something is missing.
async fn form() -> Option<Desk> {
    if is_missing() || ![PYTHON, QT].iter().all(|path| Path::new(path).exists()) {
        return None;
    }
    let desk = Desk::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/screen/qt_form.py");
    let words = [PYTHON.to_owned(), script.to_owned()];
    desk.desktop.start(&words).await.unwrap();
    Some(desk)
}

impl Desk {
    /// Does something to the element with this role and name, and returns what is said of it.
    async fn does(&self, tool: &str, on: (&str, &str), mut with: serde_json::Value) -> String {
        let element = self.find(|one| (&*one.role, &*one.name) == on).await;
        with["on"] = json!(element.id);
        let done = self.done(tool, with).await;
        assert_eq!(done.verdict, ActionVerdict::Changed, "{}", done.text);
        done.text
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_qt_is_filled_and_sent() {
    let Some(desk) = form().await else { return };
    let text = json!({"text": "Ada", "replace": true});
    let said = desk.does("type_text", ("textbox", "Name"), text).await;
    assert!(said.contains("it holds “Ada” now"), "{said}");
    let text = json!({"text": "one\ntwo żółw"});
    let said = desk.does("type_text", ("textbox", "Notes"), text).await;
    assert!(said.contains("it holds “one\ntwo żółw” now"), "{said}");
    let text = json!({"text": "7", "replace": true});
    desk.does("type_text", ("spinbutton", "Count"), text).await;
    let option = json!({"option": "blue"});
    let said = desk
        .does("select_option", ("combobox", "red"), option)
        .await;
    assert!(said.contains("“blue”"), "{said}");
    desk.does("click", ("checkbox", "I agree"), json!({})).await;
    let agreed = desk.named("I agree").await;
    assert!(agreed.states.contains(&ElementState::Checked));
    let is_secret = |one: &Element| (&*one.role, &*one.name) == ("textbox", "Secret");
    let secret = desk.find(is_secret).await;
    let is_masked = secret.states.contains(&ElementState::Masked);
    assert!(is_masked && secret.value.is_none(), "{secret:?}");
    desk.does("click", ("button", "Send"), json!({})).await;
    desk.named("Ada, 7 blue, agreed").await;
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn menus_dialogs_and_cells_of_qt_are_used() {
    let Some(desk) = form().await else { return };
    // A button that has only a hint.
    let said = desk.does("click", ("button", "Clear all"), json!({})).await;
    assert!(said.contains("opened (“Sure”)"), "{said}");
    let no = desk.find(|one| one.name.contains("No")).await.id;
    desk.done("click", json!({"on": no})).await;
    desk.does("click", ("menuitem", "File"), json!({})).await;
    desk.does("click", ("menuitem", "Clear"), json!({})).await;
    let yes = desk.find(|one| one.name.contains("Yes")).await.id;
    desk.done("click", json!({"on": yes})).await;
    desk.named("cleared").await;
    let cell = ("cell", "row 1 column 1");
    desk.does("click", cell, json!({"kind": "double"})).await;
    desk.done("type_text", json!({"text": "changed", "submit": true}))
        .await;
    desk.named("changed").await;
    // A menu of a right click is none of the program's elements.
    let text = json!({"text": "some words"});
    desk.does("type_text", ("textbox", "Notes"), text).await;
    let kind = json!({"kind": "right"});
    let said = desk.does("click", ("textbox", "Notes"), kind).await;
    assert!(said.contains("menuitem “Undo"), "{said}");
    let select = desk.find(|one| one.name.starts_with("Select All")).await;
    desk.done("click", json!({"on": select.id})).await;
    let after = desk.look().await;
    let menus = after.elements.iter().filter(|one| one.id == select.id);
    assert_eq!(menus.count(), 0);
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn trees_and_long_lists_of_qt_keep_their_ids() {
    let Some(desk) = form().await else { return };
    desk.does("click", ("tab", "Tree"), json!({})).await;
    let node = desk.named("node 1").await;
    desk.does("click", (&node.role, "node 1"), json!({})).await;
    let opened = desk.done("press_key", json!({"key": "ArrowRight"})).await;
    assert!(opened.text.contains("“leaf 1” appeared"), "{}", opened.text);
    assert_eq!(desk.named("node 1").await.id, node.id);
    desk.does("click", ("tab", "List"), json!({})).await;
    let began = Instant::now();
    let seen = desk.look().await;
    let rows = seen.elements.iter().filter(|one| one.role == "listitem");
    let rows = rows.count();
    assert!((10..200).contains(&rows), "{rows}");
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    desk.does("select_option", ("list", ""), json!({"option": "item 3"}))
        .await;
    let chosen = desk.named("item 3").await;
    assert!(chosen.states.contains(&ElementState::Selected));
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_written_and_saved_in_an_editor_of_qt_5() {
    if is_missing() || !has(&["featherpad"]) {
        return;
    }
    let desk = Desk::new();
    let file = desk.path("note.txt");
    fs::write(&file, "first\n").unwrap();
    let words = ["featherpad".to_owned(), file.to_string_lossy().into_owned()];
    desk.desktop.start(&words).await.unwrap();
    let text = desk.find(|one| one.value.as_deref() == Some("first")).await;
    let typed = json!({"on": text.id, "text": "second"});
    let typed = desk.done("type_text", typed).await;
    assert_eq!(typed.verdict, ActionVerdict::Changed, "{}", typed.text);
    desk.does("click", ("button", "Save"), json!({})).await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "first\nsecond\n");
    desk.leave().await;
}
