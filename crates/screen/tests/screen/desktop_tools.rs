//! The clipboard, lists, what is out of view, and files, on a nested desktop with real programs.
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::fs;

use gyrus_contract::{ActionVerdict, ElementState, Starts};
use serde_json::json;

use crate::{
    desktop::has,
    desktop_acting::{Desk, SCRIPTS, is_missing},
};

#[tokio::test(flavor = "multi_thread")]
async fn the_clipboard_carries_text_both_ways() {
    if is_missing() {
        return;
    }
    let desk = Desk::with_editor("").await;
    let empty = desk.done("desktop_clipboard", json!({})).await;
    assert!(empty.text.contains("holds no text"), "{}", empty.text);
    // The second is longer than what a property holds, so it goes in parts.
    for text in [SCRIPTS.to_owned(), SCRIPTS.repeat(1_000)] {
        let set = json!({"text": text});
        let set = desk.done("desktop_clipboard", set).await;
        assert_eq!(set.verdict, ActionVerdict::Changed);
        desk.done("press_key", json!({"key": "Control+a"})).await;
        desk.done("press_key", json!({"key": "Control+v"})).await;
        desk.done("press_key", json!({"key": "Control+s"})).await;
        let saved = fs::read_to_string(desk.path("note.txt")).unwrap();
        assert!(saved.trim_end() == text.trim_end(), "{:.200}", saved);
        // The program offers it, and we read it.
        desk.done("press_key", json!({"key": "Control+a"})).await;
        desk.done("press_key", json!({"key": "Control+c"})).await;
        let read = desk.done("desktop_clipboard", json!({})).await.text;
        let shown = read.strip_suffix("\n[cut here: there is more]");
        let shown = shown.unwrap_or(&read);
        assert_eq!(shown.len() < text.len() - 10, text.len() > 50_000);
        assert!(text.starts_with(shown.trim_end()), "{read:.200}");
    }
    // What is measured is what the gate judges: reading, or what is set.
    let starts = async |arguments| {
        let aim = desk.aim("desktop_clipboard", arguments).await;
        aim.unwrap().unwrap().starts
    };
    assert_eq!(starts(json!({})).await, [Starts::Looking]);
    let other = desk.aim("desktop_clipboard", json!({})).await.unwrap();
    let set = json!({"text": "x"});
    assert_eq!(starts(set.clone()).await, [Starts::Types]);
    let refused = desk.act_as_judged("desktop_clipboard", set, other).await;
    assert_eq!(refused.verdict, ActionVerdict::Refused, "{}", refused.text);
    desk.leave().await;
}

/// Starts zenity, which shows simple dialogs.
async fn dialog(words: &[&str]) -> Desk {
    let desk = Desk::new();
    let words = [&["zenity"], words].concat();
    let words: Vec<_> = words.into_iter().map(str::to_owned).collect();
    desk.desktop.start(&words).await.unwrap();
    desk
}

#[tokio::test(flavor = "multi_thread")]
async fn options_of_lists_are_chosen_by_their_words() {
    if is_missing() || !has(&["zenity"]) {
        return;
    }
    let desk = dialog(&[
        "--forms",
        "--add-combo=Size",
        "--combo-values=Small|Large|Extra large",
    ])
    .await;
    let list = desk.find(|one| one.role == "combobox").await.id;
    let chosen = json!({"on": list, "option": "extra LARGE"});
    let chosen = desk.done("select_option", chosen).await;
    assert_eq!(chosen.verdict, ActionVerdict::Changed, "{}", chosen.text);
    assert!(chosen.text.contains("“Extra large”"), "{}", chosen.text);
    let shown = desk.find(|one| one.role == "combobox").await;
    assert_eq!(shown.name, "Extra large");
    let wrong = json!({"on": list, "option": "Medium"});
    let wrong = desk.act("select_option", wrong).await;
    let names = "Small | Large | Extra large";
    assert!(
        wrong.is_error && wrong.text.contains(names),
        "{}",
        wrong.text
    );
    let button = desk.named("OK").await.id;
    let none = json!({"on": button, "option": "Small"});
    let none = desk.act("select_option", none).await;
    assert!(
        none.is_error && none.text.contains("no options"),
        "{}",
        none.text
    );
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_out_of_view_is_listed_and_brought_into_view() {
    if is_missing() || !has(&["zenity"]) {
        return;
    }
    let rows: Vec<_> = (1..=80).map(|row| format!("row {row}")).collect();
    let mut words = vec!["--list", "--column=Rows"];
    words.extend(rows.iter().map(String::as_str));
    let desk = dialog(&words).await;
    let is_out = |state: &gyrus_contract::Element| state.states.contains(&ElementState::OutOfView);
    let last = desk.named("row 80").await;
    assert!(is_out(&last), "{last:?}");
    let found = desk.done("find", json!({"text": "row 80"})).await;
    assert!(found.text.contains("row 80"), "{}", found.text);
    let click = json!({"on": last.id});
    let refused = desk.act("click", click.clone()).await;
    assert!(
        refused.text.contains("scroll_to it first"),
        "{}",
        refused.text
    );
    let scrolled = desk.done("scroll_to", json!({"on": last.id})).await;
    assert!(scrolled.text.contains("is in view"), "{}", scrolled.text);
    assert!(!is_out(&desk.named("row 80").await));
    let first = desk.named("row 1").await;
    assert!(is_out(&first), "{first:?}");
    desk.done("click", click).await;
    let chosen = desk.named("row 80").await;
    assert!(
        chosen.states.contains(&ElementState::Selected),
        "{chosen:?}"
    );
    desk.done("scroll_to", json!({"on": first.id})).await;
    assert!(!is_out(&desk.named("row 1").await));
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_with_a_pixel_ratio_of_their_own_are_used_where_they_are() {
    if is_missing() || !has(&["galculator"]) {
        return;
    }
    let desk = Desk::new();
    let words = ["env", "GDK_SCALE=2", "galculator"].map(str::to_owned);
    desk.desktop.start(&words).await.unwrap();
    let view = desk.look().await;
    let window = view.elements[0].bounds.unwrap();
    for element in &view.elements {
        if let Some(bounds) = element.bounds {
            // The program counts in its own pixels, so the last of ours is not told.
            let (right, lower) = (bounds.x + bounds.width, bounds.y + bounds.height);
            assert!(
                bounds.x + 2 > window.x && bounds.y + 2 > window.y,
                "{element:?}"
            );
            assert!(right < window.x + window.width + 2, "{element:?}");
            assert!(lower < window.y + window.height + 2, "{element:?}");
        }
    }
    for digit in ["7", "1", "9"] {
        let button = desk.find(|one| one.role == "button" && one.name == digit);
        let button = button.await.id;
        desk.done("click", json!({"on": button})).await;
    }
    let shown = desk.text().await.value.unwrap_or_default();
    assert_eq!(shown, "719");
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_given_by_the_window_for_choosing_one() {
    if is_missing() {
        return;
    }
    let desk = Desk::with_editor("").await;
    let name = "ein Bericht – März.txt";
    fs::write(desk.path(name), "the report").unwrap();
    let file = desk.named("File").await.id;
    desk.done("click", json!({"on": file})).await;
    let open = desk
        .find(|one| one.name.starts_with("Open") && one.role == "menuitem")
        .await;
    let given = json!({"on": open.id, "path": name});
    let aim = desk.aim("upload_file", given.clone()).await.unwrap();
    let names = vec![name.to_owned()];
    assert_eq!(aim.unwrap().starts, [Starts::Uploads { names }]);
    desk.done("upload_file", given).await;
    let text = desk.text().await;
    assert_eq!(text.value.as_deref(), Some("the report"));
    for (wrong, words) in [("gone.txt", "not a file"), (".", "not a file")] {
        let wrong = json!({"on": text.id, "path": wrong});
        let refused = desk.act("upload_file", wrong).await;
        assert!(refused.text.contains(words), "{}", refused.text);
    }
    let wrong = json!({"on": text.id, "path": name});
    let wrong = desk.act("upload_file", wrong).await;
    assert!(
        wrong.text.contains("no window for choosing"),
        "{}",
        wrong.text
    );
    desk.leave().await;
}
