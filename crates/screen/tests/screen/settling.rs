//! Waiting for rest ends neither before a page is done nor long after.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use gyrus_contract::Rest;
use gyrus_screen::Launch;
use serde_json::json;

use crate::{hands::World, support::has_browser};

/// How often the page that knows when it was done is tried.
const TRIALS: usize = 100;

fn now() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs_f64()
        * 1_000.0
}

#[tokio::test]
async fn rest_comes_after_the_last_change() {
    if !has_browser() {
        return;
    }
    let world = World::at("settle-oracle.html", Launch::default()).await;
    let go = world.id("Go").await;
    let mut late = Vec::new();
    let mut early = Vec::new();
    for trial in 0..TRIALS {
        let done = world.act("click", json!({"on": go})).await;
        let rested = now();
        assert!(!done.is_error, "{}", done.text);
        let last = world.eval("last").await.as_f64().unwrap();
        let way = world.eval("way").await;
        if last > rested {
            early.push(format!("{trial} {way}: {:.0} ms", last - rested));
        }
        late.push(rested - last);
    }
    late.sort_by(f64::total_cmp);
    eprintln!(
        "rest after the last change: median {:.0} ms; too early: {early:?}",
        late[TRIALS / 2]
    );
    assert!(early.len() * 50 <= TRIALS, "{early:?}");
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

    // What was asked for long ago, and what never ends by itself, is not waited for.
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
