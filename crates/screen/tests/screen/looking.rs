//! A look shows what a person could perceive or use.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use gyrus_contract::{Element, ElementState, View};
use gyrus_screen::Launch;

use crate::support::{Pages, browser, has_browser, view};

/// Formats the elements as lines: role, name, value, states; deeper ones are indented.
pub(crate) fn tree(view: &View) -> String {
    let mut text = String::new();
    for one in &view.elements {
        let value = one.value.as_ref().map(|value| format!(" = {value:?}"));
        let states: Vec<String> = one
            .states
            .iter()
            .map(|state| format!("{state:?}"))
            .collect();
        let states = if states.is_empty() {
            String::new()
        } else {
            format!(" [{}]", states.join(" "))
        };
        let indent = "  ".repeat(usize::from(one.depth));
        let value = value.unwrap_or_default();
        text += &format!("{indent}{} {:?}{value}{states}\n", one.role, one.name);
    }
    text + &view
        .unread
        .iter()
        .map(|one| format!("unread: {one}\n"))
        .collect::<String>()
}

pub(crate) fn named<'a>(view: &'a View, name: &str) -> &'a Element {
    let mut found = view.elements.iter().filter(|one| one.name == name);
    found
        .next()
        .unwrap_or_else(|| panic!("there is no {name:?}:\n{}", tree(view)))
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

/// Checks the lines that must be in the tree of a page, and the words that must not.
async fn check(page: &str, lines: &str, nowhere: &[&str]) {
    let Some(view) = seen(page).await else {
        return;
    };
    let tree = tree(&view);
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        assert!(
            tree.lines().any(|is| is.trim() == line),
            "{page}: {line}\n{tree}"
        );
    }
    let whole = serde_json::to_string(&view).unwrap();
    for words in nowhere {
        assert!(!whole.contains(words), "{page}: {words}\n{tree}");
    }
}

#[tokio::test]
async fn fields_of_every_kind_have_names_values_and_states() {
    let lines = r##"
        heading "Order no. 7" = "1"
        group "Person"
        textbox "Full name" = "Ada" [Required]
        textbox "E-mail" = "ada@" [Invalid]
        textbox "Telephone" = ""
        searchbox "Search here" = ""
        textbox "Given second" = "x" [ReadOnly]
        spinbutton "Amount" = "3"
        slider "Volume" = "40"
        date "Day" = "2024-02-29"
        time "Hour" = "13:37"
        datetime "When" = "2024-02-29T13:37"
        month "Month" = "2024-02"
        week "Week" = "2024-W09"
        color "Colour" = "#ff0000"
        file "Papers" = "" [Multiple]
        textbox "Cannot" = "fixed" [Disabled]
        checkbox "Fast" [Checked]
        checkbox "Some" [Mixed]
        radio "One" [Checked]
        radio "Two"
        combobox "Size" = "Medium" [Opens]
        option "Medium" [Selected]
        option "Big: Large"
        listbox "Toppings" = "Ham, Corn" [Multiple]
        combobox "Town" = "Ul" [Opens]
        switch "Night mode" [Checked]
        combobox "Country" = "France" [Collapsed Opens]
        textbox "Notes" = "first line\nsecond line" [Multiple]
        progressbar "Upload" = "75%"
        meter "Disk" = "0.6"
        button "Bold" [Pressed]
        button "Also send"
        button "Reset"
        button "Plain"
        button "Go"
    "##;
    check("look-form.html", lines, &["Ulm"]).await;
}

#[tokio::test]
async fn what_nobody_sees_is_not_told() {
    let lines = r#"
        text "Visible words"
        text "Shown shown"
        text "but bold"
        button "More" [Collapsed]
        button "Usable though aria-hidden"
        link "Named for readers"
        button "Inert" [Disabled]
        link "Skip to content" [OutOfView]
        heading "Gradient words" = "2"
    "#;
    check("look-hidden.html", lines, &["GHOST"]).await;
}

#[tokio::test]
async fn painted_boxes_stand_for_their_fields() {
    let lines = r#"
        checkbox "Behind its label" [Checked]
        radio "Inside its label"
        file "Upload" = ""
        checkbox "Switch over a box"
        generic "Div that is a button" [Clickable]
        generic "By attribute" [Clickable]
        listitem "List item for keys" [Clickable]
        listitem "Plain item"
        button "Close"
        button "Cancel (Delete everything)"
        button "Print"
        link "Text bold and more"
        text "Before the middle after, and act too."
        link "One"
        generic "Drag me" [Draggable Clickable]
        textbox "City (required)" = ""
    "#;
    check("look-boxes.html", lines, &["\" | \""]).await;
    let Some(view) = seen("look-boxes.html").await else {
        return;
    };
    for name in ["Behind its label", "Inside its label", "Upload"] {
        let bounds = named(&view, name).bounds.unwrap();
        assert!(
            bounds.width > 60 && bounds.height > 15,
            "{name}: {bounds:?}"
        );
    }
}

/// Pages of components keep native fields in wrappers of one pixel, for keys and screen readers.
#[tokio::test]
async fn a_field_in_a_hidden_wrapper_stands_where_its_stand_in_is() {
    let lines = r#"
        radiogroup "Size"
        radio "Small" [Checked]
        radio "Large"
        switch "Night mode"
        slider "Level" = "30"
        checkbox "Label after its field"
        button "Town"
    "#;
    check("look-wrapped.html", lines, &["GHOST", r#""text""#]).await;
    let Some(view) = seen("look-wrapped.html").await else {
        return;
    };
    for (name, width) in [
        ("Small", 200),
        ("Level", 20),
        ("Label after its field", 200),
    ] {
        let bounds = named(&view, name).bounds.unwrap();
        assert_eq!(bounds.width, width, "{name}: {bounds:?}");
    }
}

#[tokio::test]
async fn pictures_rich_text_and_names_in_any_script_are_told() {
    let lines = r#"
        img "A red square"
        canvas "Drawing pad"
        img "Chart of sales"
        text "42 %"
        link "North"
        link "South"
        video "Film" = "paused, muted"
        textbox "Letter" = "Dear Ada,\n\nyours" [Multiple]
        textbox "" = "bare editable" [Multiple]
        text "שלום world קישור"
        button "日本語 🎌 ボタン"
        listitem "First"
        listitem "Nested"
        link "Second"
        term "Term"
        definition "Meaning"
        tab "Tab A" [Selected]
        alert "Something went wrong"
        button "Second role"
        button "Stays a button"
    "#;
    check("look-media.html", lines, &["GHOST"]).await;
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
async fn frames_in_frames_stand_where_they_are_painted() {
    let Some(view) = seen("look-frames.html").await else {
        return;
    };
    let deep = view
        .elements
        .iter()
        .filter(|one| one.name == "Three")
        .count();
    assert_eq!(deep, 2, "{}", tree(&view));
    let halved = named(&view, "Halved").bounds.unwrap();
    assert!(
        (halved.width - 50).abs() <= 1 && (halved.height - 20).abs() <= 1,
        "{halved:?}"
    );
    assert!(
        is(named(&view, "Under"), ElementState::Covered),
        "{}",
        tree(&view)
    );
    assert!(is(named(&view, "Far down"), ElementState::OutOfView));
    assert!(!is(named(&view, "Two"), ElementState::Covered));
}

#[tokio::test]
async fn shadow_roots_are_read_whether_open_or_closed() {
    let lines = r#"
        heading "Slotted words" = "2"
        button "Open inside"
        button "Slotted button"
        button "Closed inside"
        button "Twice closed"
        link "Closed in a div"
        text "Not defined, just words"
    "#;
    check("look-shadow.html", lines, &[]).await;
}

#[tokio::test]
async fn what_scrolling_brings_is_out_of_view_and_what_is_folded_away_is_left_out() {
    let lines = r#"
        generic "Steps" [Scrolls]
        button "Step 1"
        text "Step 2 text"
        button "Step 3" [OutOfView]
        text "At the bottom" [OutOfView]
        button "Last" [OutOfView]
    "#;
    check("look-scroll.html", lines, &["Folded"]).await;
}

#[tokio::test]
async fn what_lies_under_something_is_covered() {
    let modal = r#"
        button "In the bar" [Covered]
        button "Under the bar" [Covered]
        dialog "Sure?"
        button "Yes" [Focused]
        button "No"
    "#;
    check("look-modal.html#modal", modal, &[]).await;
    check(
        "look-modal.html#scrolled",
        "button \"Under the bar\" [Covered]",
        &["Really"],
    )
    .await;
    let popover = "button \"In the popover\"\nbutton \"Under the bar\"";
    check("look-modal.html#pop", popover, &[]).await;
}

#[tokio::test]
async fn what_has_no_box_of_its_own_is_read() {
    let lines = r#"
        text "Directly in contents"
        text "Twice in contents"
        button "Contents button"
        text "Contents item"
        text "Shown in hidden contents"
        text "Shown again"
    "#;
    check("look-contents.html", lines, &["GHOST"]).await;
}

#[tokio::test]
async fn what_says_nothing_is_left_out() {
    // No element may be reported as covered: asking for listeners must not change the page.
    let lines = r#"
        button "Sort"
        checkbox "Pick 0"
        generic "" [Clickable]
        radio "Small plan"
        radio "Large plan"
    "#;
    let nowhere = [r#""covered""#, "Small plan Large plan", r#""img""#];
    check("look-noise.html", lines, &nowhere).await;
    let Some(view) = seen("look-noise.html#over").await else {
        return;
    };
    assert!(is(named(&view, "Pick 0"), ElementState::Covered));
    let tree = tree(&view);
    // The box around the radios.
    let boxes = tree
        .lines()
        .filter(|line| line.contains("generic \"\" [Covered"));
    assert_eq!(boxes.count(), 1, "{tree}");
}

#[tokio::test]
async fn a_thousand_rows_are_all_there() {
    let Some(view) = seen("look-grid.html").await else {
        return;
    };
    let count = |role: &str| view.elements.iter().filter(|one| one.role == role).count();
    assert_eq!((count("row"), count("cell")), (1001, 3000));
    assert_eq!((count("button"), count("link")), (1000, 1000));
    named(&view, "Buy 1000");
    assert!(view.unread.is_empty(), "{:?}", view.unread);
}

#[tokio::test]
async fn a_huge_page_is_cut_off_and_that_is_said() {
    let Some(view) = seen("look-huge.html#100000").await else {
        return;
    };
    assert!(view.elements.len() <= 20_001, "{}", view.elements.len());
    assert!(
        view.unread.iter().any(|one| one.contains("too large")),
        "{:?}",
        view.unread
    );
}

#[tokio::test]
async fn a_name_lasts_as_long_as_its_document_and_is_never_used_again() {
    if !has_browser() {
        return;
    }
    let pages = Pages::serve().await;
    let browser = browser(Launch::default());
    let address = pages.at("plain.html");
    let first = view(&browser, &address).await;
    let look = gyrus_contract::LookOptions {
        frame: false,
        documents: 0,
    };
    let again = gyrus_contract::Screen::look(&browser, look)
        .await
        .unwrap()
        .view;
    assert_eq!(named(&first, "Buy").id, named(&again, "Buy").id);
    let reloaded = view(&browser, &address).await;
    let old = |one: &Element| first.elements.iter().any(|other| other.id == one.id);
    assert!(!reloaded.elements.iter().any(old), "{}", tree(&reloaded));
}
