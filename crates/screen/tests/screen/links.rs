//! Links that do more than to go somewhere wait for an answer, and controls without words are told
//! by their pictures.

use gyrus_contract::{ElementState, Starts};
use gyrus_screen::Launch;
use serde_json::json;

use crate::{
    hands::{World, echo},
    support::has_browser,
};

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

/// A server does things for a mere question, too, and a script does them after a while.
#[tokio::test]
async fn what_a_link_orders_by_an_address_or_a_timer_is_held() {
    if !has_browser() {
        return;
    }
    let world = world().await;
    for (link, is_held) in [("Row five", false), ("Row three", true)] {
        let on = world.id(link).await;
        let done = world.act("click", json!({"on": on})).await;
        assert_eq!(
            done.text.contains("Held: request"),
            is_held,
            "{}",
            done.text
        );
    }
    assert_eq!(world.arrived(), ["GET /post/row?id=3"]);
    let on = world.id("Row four").await;
    world.act("click", json!({"on": on})).await;
    // The look comes before the timer.
    let mut view = world.look().await;
    while view.held.len() < 2 {
        view = world.look().await;
    }
    assert_eq!(view.held[1].method, "POST");
    assert_eq!(world.arrived().len(), 1);
}

/// Nothing can hold what goes over a socket.
#[tokio::test]
async fn a_link_of_a_page_with_a_socket_is_judged_by_its_words() {
    if !has_browser() {
        return;
    }
    let world = world().await;
    let on = world.id("Plain").await;
    let port = echo().await;
    for (script, acts) in [
        ("null".to_owned(), false),
        (
            format!(
                "new Promise((open) => {{ globalThis.socket = new WebSocket('ws://127.0.0.1:{port}'); socket.onopen = () => open(null); }})"
            ),
            true,
        ),
        (
            "new Promise((closed) => { socket.onclose = () => closed(null); socket.close(); })"
                .to_owned(),
            false,
        ),
    ] {
        world.eval(&script).await;
        let aim = world
            .aim("click", json!({"on": on}))
            .await
            .unwrap()
            .unwrap();
        let states = aim.element.unwrap().states;
        assert_eq!(states.contains(&ElementState::Clickable), acts, "{script}");
    }
}

#[tokio::test]
async fn what_a_thing_is_dropped_on_is_judged() {
    if !has_browser() {
        return;
    }
    let world = world().await;
    let rope = world.id("Buy rope").await;
    let bin = world
        .eval("(({ x, y }) => [x + 20, y + 20])(bin.getBoundingClientRect())")
        .await;
    let aim = world
        .aim("drag", json!({"from": rope, "to": bin}))
        .await
        .unwrap()
        .unwrap();
    let option = "Trash".to_owned();
    assert_eq!(aim.starts, [Starts::Acts, Starts::Chooses { option }]);
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
        ["icon fa-trash", "🗑 icon Delete", "icon bin-outline"]
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
