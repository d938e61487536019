//! Pages that misbehave: each is reported in a sentence, and the next look works.

use gyrus_contract::{ActionVerdict, DownloadState};
use gyrus_screen::Launch;
use serde_json::json;

use crate::{hands::World, support::has_browser};

async fn world() -> World {
    World::at("rude.html", Launch::default()).await
}

/// Checks that the browser still works: it shows the first page again.
async fn comes_back(world: &World) {
    let address = world.address("rude.html");
    let opened = world.browser.open(&address).await;
    opened.expect("the browser opens it");
    world.id("Empty").await;
}

#[tokio::test]
async fn a_page_that_takes_itself_away_can_be_left() {
    if !has_browser() {
        return;
    }
    let world = world().await;
    let on = world.id("Empty").await;
    let done = world.act("click", json!({"on": on})).await;
    assert!(!done.is_error, "{}", done.text);
    let view = world.look().await;
    assert_eq!(view.elements, []);
    assert!(
        view.unread.iter().any(|note| note.contains("empty")),
        "{view:#?}"
    );
    let pressed = world.act("press_key", json!({"key": "a"})).await;
    assert_eq!(pressed.verdict, ActionVerdict::Refused, "{}", pressed.text);
    world.act("reload", json!({})).await;
    world.id("Empty").await;
    // Written over while it is being read.
    let on = world.id("Rewrite").await;
    world.act("click", json!({"on": on})).await;
    world.id("Rewritten").await;
}

#[tokio::test]
async fn addresses_of_no_page_are_not_reached_from_a_page() {
    if !has_browser() {
        return;
    }
    let world = world().await;
    for name in ["To a file", "To data", "To the browser", "Script to a file"] {
        let on = world.id(name).await;
        world.act("click", json!({"on": on})).await;
        let view = world.look().await;
        assert!(
            view.address.ends_with("/rude.html"),
            "{name}: {}",
            view.address
        );
        assert_eq!(view.tabs.len(), 1, "{name}: {:?}", view.tabs);
    }
    // Its own script, in its own page.
    let on = world.id("To a script").await;
    world.act("click", json!({"on": on})).await;
    world.id("Scripted").await;
    let gone = world
        .act("open_url", json!({"url": world.address("redirect/file")}))
        .await;
    assert!(gone.is_error, "{}", gone.text);
    comes_back(&world).await;
}

#[tokio::test]
async fn downloads_without_end_are_cut_off() {
    if !has_browser() {
        return;
    }
    let world = world().await;
    let on = world.id("Downloads").await;
    world.act("click", json!({"on": on})).await;
    let mut view = world.look().await;
    // They come one after the other, at the browser's speed.
    for _ in 0..30 {
        if view
            .unread
            .iter()
            .any(|note| note.contains("downloads were refused"))
        {
            break;
        }
        world.act("wait", json!({})).await;
        view = world.look().await;
    }
    assert!(
        view.unread
            .iter()
            .any(|note| note.contains("downloads were refused")),
        "{:?} {:?}",
        view.unread,
        view.downloads
    );
    assert!(view.downloads.len() <= 20);
    let brought = std::fs::read_dir(world.path("downloads")).unwrap().count();
    assert!(brought <= 50, "{brought}");
    assert!(
        view.downloads
            .iter()
            .all(|one| one.state != DownloadState::Failed || one.path.is_none())
    );
}

#[tokio::test]
async fn huge_pages_are_read_up_to_a_bound() {
    if !has_browser() {
        return;
    }
    let world = world().await;
    for (page, note) in [("huge/elements", "too large"), ("huge/bytes", "too large")] {
        world.browser.open(&world.address(page)).await.unwrap();
        let view = world.look().await;
        assert!(
            view.unread.iter().any(|one| one.contains(note)),
            "{page}: {:?}",
            view.unread
        );
        assert!(
            !view.elements.is_empty() && view.elements.len() <= 20_000,
            "{page}"
        );
    }
    comes_back(&world).await;
}

#[tokio::test]
async fn what_leaving_would_lose_is_measured() {
    if !has_browser() {
        return;
    }
    let world = world().await;
    let looks =
        |aim: &gyrus_contract::Aim| matches!(aim.starts[..], [gyrus_contract::Starts::Looking]);
    let aim = world.aim("close_tab", json!({})).await.unwrap().unwrap();
    assert!(looks(&aim), "{aim:?}");
    let on = world.id("Word").await;
    world
        .act("type_text", json!({"on": on, "text": "a letter"}))
        .await;
    let aim = world.aim("close_tab", json!({})).await.unwrap().unwrap();
    assert_eq!(aim.element.unwrap().role, "beforeunload");
    // The page asks for confirmation; closing never waits for it.
    let done = world.act("close_tab", json!({})).await;
    assert!(done.text.contains("Closed tab 1"), "{}", done.text);
    for (key, starts) in [
        ("Control+a", "looking"),
        ("Control+v", "types"),
        ("Control+s", "types"),
        ("Control+Enter", "submits"),
        ("Shift+Enter", "types"),
        ("Enter", "submits"),
        ("x", "types"),
    ] {
        world
            .browser
            .open(&world.address("rude.html"))
            .await
            .unwrap();
        let on = world.id("Letter").await;
        world.act("type_text", json!({"on": on, "text": "a"})).await;
        let aim = world.aim("press_key", json!({"on": on, "key": key})).await;
        let aim = serde_json::to_value(aim.unwrap().unwrap()).unwrap();
        assert_eq!(aim["starts"][0]["what"], starts, "{key}");
    }
}
