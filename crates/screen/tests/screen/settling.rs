//! Waiting for rest ends neither before a page is done nor long after.

use std::time::Instant;

use gyrus_contract::{ActionVerdict, Rest};
use gyrus_screen::Launch;
use serde_json::json;

use crate::{
    hands::{World, echo},
    player::{By, try_often},
    support::has_browser,
};

#[tokio::test]
async fn rest_comes_after_the_last_change() {
    if has_browser() {
        let world = World::at("settle-oracle.html", Launch::default()).await;
        for by in [By::Hand, By::Script] {
            let trials = try_often(&world, 50, by).await;
            assert_eq!(trials.late.len(), 50);
            assert!(trials.early.is_empty(), "{:?}", trials.early);
        }
    }
}

#[tokio::test]
async fn a_page_that_never_rests_is_given_up() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-noise.html", Launch::default()).await;
    let begun = Instant::now();
    let busy = world
        .act("click", json!({"on": world.id("Busy").await}))
        .await;
    assert!(busy.text.contains("Still waiting for"), "{}", busy.text);
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    let view = world.look().await;
    assert!(
        matches!(&view.rest, Rest::GaveUp { waiting_for } if waiting_for.contains("moving")),
        "{:?}",
        view.rest
    );
    world.eval("run = false").await;
    assert_eq!(world.look().await.rest, Rest::Quiet);

    // Old requests, and those that never end by themselves, are not waited for.
    world
        .eval("fetch('hang'); new EventSource('hang'); navigator.sendBeacon('hang'); 0")
        .await;
    assert_eq!(world.look().await.rest, Rest::Quiet);
    // A script that runs without a pause.
    world
        .eval("setTimeout(() => { const end = Date.now() + 12000; while (Date.now() < end); }, 0)")
        .await;
    let begun = Instant::now();
    let view = world.look().await;
    assert!(matches!(view.rest, Rest::GaveUp { .. }), "{:?}", view.rest);
    assert!(begun.elapsed().as_secs() < 40);
}

/// A page that is read to its end may have drawn nothing yet.
#[tokio::test]
async fn the_first_look_waits_for_first_content_and_says_if_there_is_none() {
    if !has_browser() {
        return;
    }
    for part in ["all", "main", "root", "spinner"] {
        let world = World::at(
            &format!("settle-drawing.html#{part}=1200"),
            Launch::default(),
        )
        .await;
        world.id("Drawn").await;
    }
    let world = World::at("settle-drawing.html#all", Launch::default()).await;
    let drawing = "still drawing: nothing is on it yet";
    let open = json!({"url": world.address("settle-drawing.html?again#all")});
    let opened = world.act("open_url", open).await;
    assert!(opened.text.contains(drawing), "{}", opened.text);
    // It may have nothing to show, and is waited for once.
    let begun = Instant::now();
    let rest = world.look().await.rest;
    assert!(begun.elapsed().as_secs() < 4, "{:?}", begun.elapsed());
    assert!(
        matches!(&rest, Rest::GaveUp { waiting_for } if waiting_for.contains(drawing)),
        "{rest:?}"
    );
}

/// A badge that pulses for half a minute is a part of the page.
#[tokio::test]
async fn a_long_animation_is_not_waited_for() {
    if !has_browser() {
        return;
    }
    let world = World::at("settle-pulse.html", Launch::default()).await;
    let begun = Instant::now();
    assert_eq!(world.look().await.rest, Rest::Quiet);
    assert!(begun.elapsed().as_secs() < 4, "{:?}", begun.elapsed());
}

/// A page whose server draws it over a socket, and one that paints on a canvas, change as well.
#[tokio::test]
async fn an_answer_over_a_socket_and_a_painted_canvas_are_effects() {
    if !has_browser() {
        return;
    }
    let page = format!("act-answers.html#{}", echo().await);
    let world = World::at(&page, Launch::default()).await;
    world.eval("new Promise((open) => { if (socket.readyState === 1) open(); else socket.onopen = open; })").await;
    let asked = world
        .act("click", json!({"on": world.id("Ask").await}))
        .await;
    assert_eq!(asked.verdict, ActionVerdict::Changed, "{}", asked.text);
    assert_eq!(world.eval("answer.textContent").await, json!("heard"));
    // Beside a canvas that is painted all the time, which is no effect.
    let sheet = world.eval("over.getBoundingClientRect().top").await;
    let middle = sheet.as_f64().unwrap() + 50.0;
    for (x, verdict) in [(50.0, false), (150.0, true)] {
        let clicked = world.act("click", json!({"at": [x, middle]})).await;
        let painted = clicked.text.contains("on a canvas");
        assert_eq!(painted, verdict, "{}", clicked.text);
    }
}

#[tokio::test]
async fn images_that_hang_are_waited_for_once() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-all.html", Launch::default()).await;
    let begun = Instant::now();
    let address = world.address("hang-images.html");
    let opened = world.act("open_url", json!({"url": address})).await;
    assert!(!opened.text.contains("Still waiting"), "{}", opened.text);
    let started = begun.elapsed();
    let mut costs = Vec::new();
    for (name, next) in [("Go", "Done"), ("Done", "Done"), ("Done", "Done")] {
        let begun = Instant::now();
        let button = world.id(name).await;
        let done = world.act("click", json!({"on": button})).await;
        assert!(!done.text.contains("Still waiting"), "{}", done.text);
        world.id(next).await;
        costs.push(begun.elapsed().as_millis());
    }
    // Each was waited for to the bound of ten seconds.
    assert!(
        started.as_secs() < 9 && costs.iter().all(|cost| *cost < 9_000),
        "{started:?}, then {costs:?} ms"
    );
}
