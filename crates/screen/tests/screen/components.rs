//! Controls as component libraries build them: seen once, pressed where they take the mouse, and
//! judged by what they say.

use gyrus_contract::{ActionVerdict, Aim, ElementState, Starts};
use gyrus_screen::Launch;
use serde_json::{Value, json};

use crate::{hands::World, support::has_browser};

async fn world() -> World {
    World::at("act-components.html", Launch::default()).await
}

/// Returns the id of the element of this role whose name begins so.
async fn of(world: &World, role: &str, name: &str) -> String {
    let view = world.look().await;
    let is_it = |one: &&gyrus_contract::Element| one.role == role && one.name.starts_with(name);
    let found = view.elements.iter().find(is_it);
    let found = found.unwrap_or_else(|| panic!("{name} is not in {view:#?}"));
    found.id.to_string()
}

#[tokio::test]
async fn a_component_is_pressed_where_it_takes_the_mouse() {
    if !has_browser() {
        return;
    }
    let world = world().await;
    for (role, name, taker) in [
        ("tab", "Second", "tab"),
        ("radio", "Aisle", "radio"),
        ("checkbox", "Meal", "toggle"),
        ("combobox", "Role", "outer"),
        ("combobox", "Courses", "picker"),
        ("checkbox", "Wood", "item"),
        ("generic", "Rome", "sliding"),
        ("gridcell", "x", "grid"),
    ] {
        let on = of(&world, role, name).await;
        let done = world.act("click", json!({"on": on})).await;
        assert_eq!(
            done.verdict,
            ActionVerdict::Changed,
            "{name}: {}",
            done.text
        );
        let used = world.eval("used.textContent").await;
        let used = used.as_str().unwrap_or_default().split_whitespace();
        assert_eq!(used.last(), Some(taker), "{name}: {}", done.text);
    }
    // A block that lies in another is not the other.
    let on = of(&world, "generic", "print hello").await;
    world.act("click", json!({"on": on})).await;
    let used = world.eval("used.textContent").await;
    let used = used.as_str().unwrap_or_default();
    assert!(
        used.ends_with("block ") && !used.contains("within"),
        "{used}"
    );
}

#[tokio::test]
async fn a_page_that_does_not_scroll_itself_is_scrolled_by_its_pane() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-shell.html", Launch::default()).await;
    let done = world.act("scroll", json!({"direction": "down"})).await;
    assert_eq!(done.verdict, ActionVerdict::Changed, "{}", done.text);
    let at = world.eval("pane.scrollTop").await.as_f64().unwrap();
    assert!((500.0..800.0).contains(&at), "{at}: {}", done.text);
}

#[tokio::test]
async fn a_component_is_told_once_and_by_what_can_be_seen() {
    if !has_browser() {
        return;
    }
    let world = world().await;
    let view = world.look().await;
    let named = |part: &str| {
        let its = view.elements.iter().filter(|one| one.name.contains(part));
        its.map(|one| format!("{} {}", one.role, one.name))
            .collect::<Vec<_>>()
    };
    assert_eq!(named("Second"), ["tab Second"]);
    assert_eq!(named("Inside"), ["button Inside"]);
    assert_eq!(named("icon"), ["button icon mdi-pencil"]);
    assert_eq!(named("login"), ["textbox id login_name"]);
    assert!(named("never shown").is_empty());
    let comboboxes = view.elements.iter().filter(|one| one.role == "combobox");
    assert_eq!(comboboxes.count(), 2, "{:#?}", view.elements);
    let names = view
        .elements
        .iter()
        .find(|one| one.name == "Names")
        .unwrap();
    assert!(!names.states.contains(&ElementState::ReadOnly));
}

#[tokio::test]
async fn a_box_is_judged_by_its_words_and_a_plain_yes_by_its_question() {
    if !has_browser() {
        return;
    }
    let world = world().await;
    let aim = async |tool: &str, arguments: Value| -> Aim {
        world.aim(tool, arguments).await.unwrap().unwrap()
    };
    let pad = world.id("Delete drawing").await;
    let aimed = aim("click", json!({"on": pad})).await.element.unwrap();
    assert_eq!(aimed.name, "Delete drawing");
    let (rent, rope) = (world.id("Pay rent").await, world.id("Buy rope").await);
    let card = aim("drag", json!({"from": rent, "to": rope})).await;
    let card = card.element.unwrap();
    assert!(card.states.contains(&ElementState::Draggable), "{card:?}");
    let yes = aim("click", json!({"on": world.id("OK").await})).await;
    let asked = yes.form.unwrap().fields.pop().unwrap();
    assert_eq!(
        (&*asked.name, &*asked.kind),
        (" Delete Grace? It is gone then.", "submit")
    );
    let cell = of(&world, "gridcell", "Bolt").await;
    let typed = json!({"on": cell, "text": "Nut", "submit": true});
    let starts = aim("type_text", typed).await.starts;
    assert!(!starts.contains(&Starts::Submits), "{starts:?}");
}
