//! Links that do more than to go somewhere wait for an answer, and controls without words are told
//! by their pictures.

use gyrus_contract::{ElementState, Starts};
use gyrus_screen::Launch;
use serde_json::json;

use crate::{hands::World, support::has_browser};

async fn world() -> World {
    World::at("act-links.html", Launch::default()).await
}

#[tokio::test]
async fn a_link_that_was_judged_to_go_somewhere_sends_nothing() {
    if !has_browser() {
        return;
    }
    for (link, is_held) in [("Next page", true), ("Read on", false), ("Details", true)] {
        let world = world().await;
        let on = world.id(link).await;
        let done = world.act("click", json!({"on": on})).await;
        assert_eq!(
            done.text.contains("Held: request"),
            is_held,
            "{}",
            done.text
        );
        assert_eq!(world.arrived(), Vec::<String>::new(), "{link}");
        if is_held {
            // The question is about what the link says.
            let yes = json!({"request": 1, "accept": true});
            let aim = world
                .aim("answer_request", yes.clone())
                .await
                .unwrap()
                .unwrap();
            assert_eq!(aim.element.unwrap().name, link);
            world.act("answer_request", yes).await;
            world.arrives(1).await;
        }
    }
    let world = world().await;
    let on = world.id("Questions").await;
    let done = world.act("click", json!({"on": on})).await;
    assert!(!done.text.contains("Held"), "{}", done.text);
    world.arrives(1).await;
    let on = world.id("Plain").await;
    let done = world.act("click", json!({"on": on})).await;
    assert!(done.text.contains("plain.html"), "{}", done.text);
}

#[tokio::test]
async fn links_that_are_buttons_are_judged_as_buttons() {
    if !has_browser() {
        return;
    }
    let world = world().await;
    for (name, follows, acts, listens) in [
        ("Plain", true, false, false),
        ("Back", true, false, false),
        ("Heard", true, false, true),
        ("Away", true, true, false),
        ("Boosted", true, true, false),
        ("Button", true, true, false),
        ("Hash", false, true, false),
        ("Script", false, true, false),
    ] {
        let on = world.id(name).await;
        let aim = world
            .aim("click", json!({"on": on}))
            .await
            .unwrap()
            .unwrap();
        let goes = |starts: &Starts| matches!(starts, Starts::Follows { .. });
        assert_eq!(aim.starts.iter().any(goes), follows, "{name}");
        assert_eq!(aim.starts.contains(&Starts::Acts), acts, "{name}");
        let states = aim.element.unwrap().states;
        assert_eq!(states.contains(&ElementState::Clickable), listens, "{name}");
    }
}

#[tokio::test]
async fn pictures_are_read_and_what_is_no_command_is_told_as_such() {
    if !has_browser() {
        return;
    }
    let world = world().await;
    let view = world.look().await;
    let nameless = |one: &&gyrus_contract::Element| {
        ["button", "link"].contains(&one.role.as_str())
            && (one.name.starts_with("icon") || one.name.starts_with('🗑'))
    };
    let mut names = Vec::new();
    for one in view.elements.iter().filter(nameless) {
        let on = one.id.to_string();
        let aim = world
            .aim("click", json!({"on": on}))
            .await
            .unwrap()
            .unwrap();
        names.push(aim.element.unwrap().name);
    }
    assert_eq!(
        names,
        ["icon fa fa-trash", "🗑 icon Delete", "icon bin-outline"]
    );

    let rope = world.id("Buy rope").await;
    let dragged = world
        .aim("drag", json!({"from": rope, "to": [10, 10]}))
        .await;
    let clicked = world.aim("click", json!({"on": rope})).await;
    for (aim, is_dragged) in [(dragged, true), (clicked, false)] {
        let states = aim.unwrap().unwrap().element.unwrap().states;
        assert_eq!(states.contains(&ElementState::Draggable), is_dragged);
    }
    // A key that a page uses as a shortcut has nothing to do with what stands in its fields.
    let aim = world
        .aim("press_key", json!({"key": "j"}))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((aim.form, &aim.starts[..]), (None, &[Starts::Acts][..]));
    for (name, expected) in [
        ("Sheet", Starts::Types),
        ("Line", Starts::Submits),
        ("Cell", Starts::Types),
    ] {
        let on = world.id(name).await;
        let aim = world
            .aim("press_key", json!({"key": "Enter", "on": on}))
            .await;
        assert_eq!(aim.unwrap().unwrap().starts, [expected], "{name}");
    }
}
