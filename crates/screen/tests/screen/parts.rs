//! Inputs on parts of larger things: items, tabs, cells, words, ways.

use gyrus_contract::{ActionVerdict, Starts};
use gyrus_screen::Launch;
use serde_json::{Value, json};

use crate::{hands::World, support::has_browser};

async fn changes(world: &World, tool: &str, arguments: Value) -> String {
    let done = world.act(tool, arguments).await;
    assert_eq!(
        done.verdict,
        ActionVerdict::Changed,
        "{tool}: {}",
        done.text
    );
    done.text
}

/// The inner box of an item of a menu takes its clicks, and so does the link in a tab; what stands
/// beside a link in a row stays the row's.
#[tokio::test]
async fn a_control_and_what_takes_its_clicks_are_one() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-parts.html", Launch::default()).await;
    let item = world.id("First choice").await;
    changes(&world, "click", json!({"on": item})).await;
    assert_eq!(world.eval("panel.textContent").await, json!("chosen"));
    let tab = world.id("Second tab").await;
    let aim = world.aim("click", json!({"on": tab})).await.unwrap();
    let starts = aim.unwrap().starts;
    assert!(starts.contains(&Starts::Acts), "{starts:?}");
    assert!(
        starts.iter().any(|it| matches!(it, Starts::Follows { .. })),
        "{starts:?}"
    );
    changes(&world, "click", json!({"on": tab})).await;
    assert_eq!(world.eval("panel.textContent").await, json!("second panel"));
    world.log().await;
    let row = world.id("Row Details").await;
    world.act("click", json!({"on": row})).await;
    let log = world.log().await;
    assert!(log.contains(&"top:click:TD".to_owned()), "{log:?}");
}

/// Libraries put the part of a slider that takes the keyboard inside the slider.
#[tokio::test]
async fn a_control_is_used_through_the_bare_part_that_takes_the_keyboard() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-parts.html", Launch::default()).await;
    let on = world.id("Dial").await;
    changes(&world, "press_key", json!({"on": on, "key": "ArrowRight"})).await;
    assert_eq!(world.eval("dial.ariaValueNow").await, json!("4"));
    changes(&world, "click", json!({"on": on})).await;
    assert_eq!(world.eval("dial.ariaValueNow").await, json!("5"));
}

/// A click on a field in a hidden wrapper goes to its label, or to the box that it stands in.
#[tokio::test]
async fn a_field_in_a_hidden_wrapper_is_used_through_its_stand_in() {
    if !has_browser() {
        return;
    }
    let world = World::at("look-wrapped.html", Launch::default()).await;
    for (name, field) in [
        ("Large", "large.checked"),
        ("Night mode", "night.checked"),
        ("Label after its field", "after.checked"),
    ] {
        let on = world.id(name).await;
        changes(&world, "click", json!({"on": on})).await;
        assert_eq!(world.eval(field).await, json!(true), "{name}");
    }
    let on = world.id("Level").await;
    changes(&world, "press_key", json!({"on": on, "key": "ArrowRight"})).await;
    assert_eq!(world.eval("level.value").await, json!("31"));
    world.log().await;
    // Pages take a slider's value over when a key is released.
    changes(&world, "type_text", json!({"on": on, "text": "70"})).await;
    assert_eq!(world.eval("level.value").await, json!("70"));
    let log = world.log().await;
    assert!(
        log.contains(&"top:keydown:level=ArrowUp".to_owned()),
        "{log:?}"
    );
    world.act("click", json!({"on": on})).await;
    let log = world.log().await;
    assert!(log.contains(&"top:click:thumb".to_owned()), "{log:?}");
}

/// A node of a drawing is made of shapes, words that take no clicks, and lines.
#[tokio::test]
async fn what_is_drawn_is_reached_by_its_shape_and_by_its_words() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-drawing.html", Launch::default()).await;
    let view = world.look().await;
    let of = |role: &str, name: &str| {
        let is_it = |one: &&gyrus_contract::Element| one.role == role && one.name == name;
        let found = view.elements.iter().find(is_it);
        found
            .unwrap_or_else(|| panic!("{name}: {view:#?}"))
            .id
            .to_string()
    };
    for (role, name, hit) in [
        ("generic", "Inject", "down:body"),
        ("text", "Inject", "down:body"),
        ("generic", "Debug", "down:second"),
        ("generic", "The wire", "down:wire"),
        ("generic", "Second wire", "down:wide"),
    ] {
        world.log().await;
        let done = world.act("click", json!({"on": of(role, name)})).await;
        let log = world.log().await;
        assert!(
            log.contains(&hit.to_owned()),
            "{name}: {log:?}: {}",
            done.text
        );
    }
    let (from, to) = (of("text", "Inject"), of("generic", "Debug"));
    world.log().await;
    let dragged = world.act("drag", json!({"from": from, "to": to})).await;
    assert!(!dragged.is_error, "{}", dragged.text);
    assert!(world.log().await.contains(&"down:body".to_owned()));
}

/// A form that has just come takes text, and the same key again and again moves a slider.
#[tokio::test]
async fn what_came_by_itself_is_no_reason_to_overlook_an_input() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-parts.html", Launch::default()).await;
    world.look().await;
    world
        .eval("room.innerHTML = '<form><label>Late <input id=late></label></form>'")
        .await;
    let on = world.id("Late").await;
    let typed = json!({"on": on, "text": "now", "replace": true});
    let said = changes(&world, "type_text", typed.clone()).await;
    assert!(said.contains("the element is different"), "{said}");
    let on = world.id("Knob").await;
    for _ in 0..4 {
        let press = json!({"on": on, "key": "ArrowRight"});
        let said = changes(&world, "press_key", press).await;
        assert!(said.contains("the element is different"), "{said}");
    }
    let unmoved = world
        .act("press_key", json!({"on": on, "key": "ArrowUp"}))
        .await;
    assert_eq!(unmoved.verdict, ActionVerdict::NoEffect, "{}", unmoved.text);
}

#[tokio::test]
async fn half_a_double_click_is_not_called_a_double_click() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-parts.html", Launch::default()).await;
    let page = "room.innerHTML = '<button>Row 0</button>'; let clicks = 0; \
                room.onclick = () => { room.innerHTML = `<button>Row ${++clicks}</button>` }";
    world.eval(page).await;
    let on = world.id("Row 0").await;
    let done = world
        .act("click", json!({"on": on, "kind": "double"}))
        .await;
    assert!(done.is_error, "{}", done.text);
    assert!(
        done.text.contains("Only 1 of 2 clicks landed"),
        "{}",
        done.text
    );
    assert_eq!(done.verdict, ActionVerdict::Changed, "{}", done.text);
    assert_eq!(world.eval("room.textContent").await, json!("Row 1"));
}

#[tokio::test]
async fn waiting_says_what_changed_meanwhile() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-parts.html", Launch::default()).await;
    for (words, arguments) in [("first", json!({"seconds": 0.6})), ("second", json!({}))] {
        let later = format!("setTimeout(() => {{ room.innerHTML = '<h2>{words}</h2>' }}, 200)");
        world.eval(&later).await;
        changes(&world, "wait", arguments).await;
    }
    let quiet = world.act("wait", json!({"seconds": 0.2})).await;
    assert_eq!(quiet.verdict, ActionVerdict::NoEffect, "{}", quiet.text);
}

#[tokio::test]
async fn a_long_value_is_read_whole_and_a_secret_is_not() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-parts.html", Launch::default()).await;
    let on = world.id("Long").await;
    let read = world.act("extract", json!({"on": on})).await;
    assert!(read.text.ends_with("the very end"), "{}", read.text);
    assert_eq!(read.text.matches("word").count(), 200);
    world
        .eval("room.innerHTML = '<input type=password aria-label=Key value=hunter2>'")
        .await;
    let read = world
        .act("extract", json!({"on": world.id("Key").await}))
        .await;
    assert!(!read.text.contains("hunter"), "{}", read.text);
}

#[tokio::test]
async fn words_are_selected_and_a_caret_that_moves_is_a_change() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-parts.html", Launch::default()).await;
    let words = json!({"text": "brown fox jumps over the"});
    changes(&world, "select_text", words).await;
    assert_eq!(
        world.eval("chosen").await,
        json!("brown fox jumps over the")
    );
    let none = world.act("select_text", json!({"text": "fox brown"})).await;
    assert_eq!(none.verdict, ActionVerdict::Refused, "{}", none.text);
    let on = world.id("Long").await;
    changes(
        &world,
        "select_text",
        json!({"on": on, "text": "the very end"}),
    )
    .await;
    let selected = "long.value.slice(long.selectionStart, long.selectionEnd)";
    assert_eq!(world.eval(selected).await, json!("the very end"));
    changes(&world, "press_key", json!({"on": on, "key": "Home"})).await;
    changes(&world, "click", json!({"on": on, "kind": "triple"})).await;
    assert_eq!(
        world.eval("long.selectionEnd - long.selectionStart").await,
        world.eval("long.value.length").await
    );
}

/// Cells take keys without being fields; what comes of them is told.
#[tokio::test]
async fn a_cell_that_takes_keys_is_typed_into() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-cells.html", Launch::default()).await;
    let on = world.id("Tea").await;
    let typed = json!({"on": on, "text": "Mint tea", "submit": true});
    changes(&world, "type_text", typed).await;
    assert_eq!(world.eval("a1.textContent").await, json!("Mint tea"));
    let on = world.id("12").await;
    let said = changes(&world, "type_text", json!({"on": on, "text": "34"})).await;
    assert!(said.contains("textbox"), "{said}");
    changes(&world, "press_key", json!({"key": "Enter"})).await;
    assert_eq!(world.eval("b1.textContent").await, json!("34"));
    let on = world.id("5").await;
    let typed = json!({"on": on, "text": "67", "replace": true});
    let said = changes(&world, "type_text", typed).await;
    assert!(
        said.contains("a field opened for it and holds “67”"),
        "{said}"
    );
    changes(&world, "press_key", json!({"key": "Enter"})).await;
    assert_eq!(world.eval("c1.textContent").await, json!("67"));
    let on = world.id("Fixed").await;
    let still = world.act("type_text", json!({"on": on, "text": "x"})).await;
    assert_eq!(still.verdict, ActionVerdict::NoEffect, "{}", still.text);
    let on = world.id("Press").await;
    let pressed = world.act("type_text", json!({"on": on, "text": "x"})).await;
    assert_eq!(pressed.verdict, ActionVerdict::Refused, "{}", pressed.text);
}

/// Items of a list that is sorted by dragging and cells of a grid can be named.
#[tokio::test]
async fn items_and_cells_are_for_clicks() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-parts.html", Launch::default()).await;
    let view = world.look().await;
    for (role, name) in [
        ("listitem", "One"),
        ("listitem", "Two"),
        ("gridcell", "A1"),
        ("gridcell", "B1"),
    ] {
        let is_it = |one: &&gyrus_contract::Element| one.role == role && one.name == name;
        let found = view.elements.iter().find(is_it);
        let states = &found.unwrap_or_else(|| panic!("{name}: {view:#?}")).states;
        let is_used = states.contains(&gyrus_contract::ElementState::Clickable);
        assert!(is_used, "{name}: {states:?}");
    }
}

#[tokio::test]
async fn a_drag_goes_through_its_points_and_a_wait_takes_its_time() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-parts.html", Launch::default()).await;
    let way = json!({"from": [520, 120], "via": [[600, 120], [600, 180]], "to": [520, 180]});
    let done = world.act("drag", way).await;
    assert!(!done.is_error, "{}", done.text);
    let path = world.eval("path").await;
    let path: Vec<[f64; 2]> = serde_json::from_value(path).unwrap();
    let passes = |x: f64, y: f64| {
        path.iter()
            .any(|at| (at[0] - x).abs() < 2.0 && (at[1] - y).abs() < 2.0)
    };
    // The pad begins at 501, 101.
    assert!(passes(99.0, 19.0) && passes(99.0, 79.0), "{path:?}");
    assert!(!passes(19.0, 49.0), "{path:?}");
    world
        .eval("setTimeout(() => { room.textContent = 'early' }, 1)")
        .await;
    let before = std::time::Instant::now();
    let waited = world.act("wait", json!({"seconds": 0.4})).await;
    assert!(before.elapsed().as_millis() >= 400, "{}", waited.text);
}

/// A list that draws only what is in view takes away what it was scrolled on.
#[tokio::test]
async fn a_list_is_scrolled_on_a_row_that_goes_away() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-parts.html", Launch::default()).await;
    world
        .eval(
            "room.innerHTML = '<div id=list style=\"height: 100px; overflow: auto\"><div style=\"height: 5000px\"><button>Row 0</button></div></div>'; \
             list.onscroll = () => { list.firstChild.innerHTML = '<button>Row ' + list.scrollTop + '</button>'; }",
        )
        .await;
    let on = world.id("Row 0").await;
    let scroll = json!({"on": on, "direction": "down", "pages": 2});
    let said = changes(&world, "scroll", scroll).await;
    assert!(said.contains("it scrolled from 0,0"), "{said}");
}
