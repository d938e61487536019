//! Elements that can be used have an id, whatever says so; others have none.

use gyrus_contract::{ActionVerdict, ElementState, Rest, View};
use gyrus_screen::Launch;
use serde_json::json;

use crate::{hands::World, support::has_browser};

async fn world() -> World {
    World::at("look-uses.html", Launch::default()).await
}

/// Whether an element of this name can be used.
fn is_used(view: &View, name: &str) -> bool {
    let mut named = view.elements.iter().filter(|one| one.name == name);
    named.any(|one| {
        one.role != "text" && one.role != "heading" && one.role != "listitem" || {
            let uses = [ElementState::Clickable, ElementState::Draggable];
            uses.iter().any(|state| one.states.contains(state))
        }
    })
}

#[tokio::test]
async fn what_can_be_used_has_an_id_and_nothing_else_has() {
    if !has_browser() {
        return;
    }
    let world = world().await;
    let view = world.look().await;
    let used = [
        "Red",
        "Blue",
        "Rust",
        "Amber",
        "Slate",
        "Navy",
        "Alpha",
        "Beta",
        "Mint",
        "Teal",
        "Title Body",
        "Products",
        "Company",
        "Right click only",
        "Hover only",
        "id close-panel",
        "Paint hull",
        "Done",
        "In the shadow",
        "Deep",
        "elsewhere",
    ];
    for name in used {
        assert!(
            is_used(&view, name),
            "{name} is not in {:#?}",
            view.elements
        );
    }
    for name in [
        "Red Blue",
        "Warm",
        "First paragraph.",
        "Touch only",
        "Title",
    ] {
        assert!(!is_used(&view, name), "{name} is in {:#?}", view.elements);
    }
    let done = view
        .elements
        .iter()
        .find(|one| one.name == "Done" && one.role == "generic");
    assert!(done.unwrap().states.contains(&ElementState::Droppable));
    // A frame out of sight that never stands still is not waited for.
    assert_eq!(view.rest, Rest::Quiet);
}

#[tokio::test]
async fn what_has_an_id_works() {
    if !has_browser() {
        return;
    }
    let world = world().await;
    for (name, is_now) in [
        ("Amber", "document.title === 'Amber'"),
        ("Beta", "document.title === 'Beta'"),
    ] {
        let done = world
            .act("click", json!({"on": world.id(name).await}))
            .await;
        assert_eq!(done.verdict, ActionVerdict::Changed, "{}", done.text);
        assert_eq!(world.eval(is_now).await, json!(true), "{}", done.text);
    }
    // Below two shadow roots, by the only part of it that listens.
    let done = world
        .act("click", json!({"on": world.id("Deep").await}))
        .await;
    assert_eq!(done.verdict, ActionVerdict::Changed, "{}", done.text);
    for (name, number, is_now) in [
        ("Keys", "60", "keys.ariaValueNow"),
        ("Mouse", "30", "mouse.ariaValueNow"),
    ] {
        let done = world
            .act(
                "type_text",
                json!({"on": world.id(name).await, "text": number}),
            )
            .await;
        assert!(!done.is_error, "{}", done.text);
        assert_eq!(world.eval(is_now).await, json!(number), "{}", done.text);
    }
    let none = world
        .act(
            "type_text",
            json!({"on": world.id("Keys").await, "text": "63"}),
        )
        .await;
    assert!(none.text.contains("does not take “63”"), "{}", none.text);
    let view = world.look().await;
    let mut columns = view
        .elements
        .iter()
        .filter(|one| one.states.contains(&ElementState::Droppable));
    let empty = columns.find(|one| one.name == "Done").unwrap().id;
    let paint = world.id("Paint hull").await;
    let done = world.act("drag", json!({"from": paint, "to": empty})).await;
    assert_eq!(done.verdict, ActionVerdict::Changed, "{}", done.text);
    assert_eq!(
        world
            .eval("document.getElementById('done').textContent")
            .await,
        json!("Paint hull")
    );
}
