//! Requests to other sites because of an input wait for an answer, wherever they come from.

use gyrus_contract::{ActionVerdict, Starts};
use gyrus_screen::Launch;
use serde_json::json;

use crate::{hands::World, support::has_browser};

async fn world() -> World {
    World::at("hold.html", Launch::default()).await
}

/// Clicks, and returns the requests held then.
async fn held(world: &World, button: &str) -> u32 {
    let on = world.id(button).await;
    let done = world.act("click", json!({"on": on})).await;
    assert!(
        done.text.contains("Held: request"),
        "{button}: {}",
        done.text
    );
    assert_eq!(done.verdict, ActionVerdict::CannotTell, "{button}");
    let view = world.look().await;
    let [held] = &view.held[..] else {
        panic!("{button}: {view:#?}");
    };
    held.number
}

#[tokio::test]
async fn what_goes_elsewhere_is_sent_once_on_a_yes_and_never_on_a_no() {
    if !has_browser() {
        return;
    }
    for (button, what) in [
        ("Fetch", "POST /post/fetch"),
        ("Json", "PUT /post/json"),
        ("Worker", "POST /post/worker"),
        ("Framed", "POST /post/frame"),
        ("Elsewhere", "POST /post/form"),
        ("Popup", "POST /post/popup"),
        ("Waits", "POST /post/waits"),
        ("Kept", "POST /post/kept"),
    ] {
        let world = world().await;
        let number = held(&world, button).await;
        let no = json!({"request": number, "accept": false});
        let done = world.act("answer_request", no.clone()).await;
        assert!(done.text.contains("Turned request"), "{}", done.text);
        assert!(world.act("answer_request", no).await.is_error);
        world
            .browser
            .open(&world.address("hold.html"))
            .await
            .unwrap();
        assert_eq!(world.arrived(), Vec::<String>::new(), "{button}");

        let number = held(&world, button).await;
        let yes = json!({"request": number, "accept": true});
        let aim = world.aim("answer_request", yes.clone()).await;
        let aim = aim.unwrap().unwrap();
        assert!(matches!(&aim.starts[..], [Starts::Sends { .. }]), "{aim:?}");
        let done = world.act("answer_request", yes).await;
        assert!(done.text.contains("Let request"), "{}", done.text);
        world.arrives(1).await;
        assert_eq!(world.arrived(), [what], "{}", done.text);
        assert_eq!(world.look().await.held, []);
    }
}

#[tokio::test]
async fn what_stays_where_it_may_go_is_not_held() {
    if !has_browser() {
        return;
    }
    let world = world().await;
    let on = world.id("Own").await;
    let done = world.act("click", json!({"on": on})).await;
    assert_eq!(done.verdict, ActionVerdict::Changed, "{}", done.text);
    assert_eq!(world.arrived(), ["POST /post/own"]);
    // No script waits for a beacon: it is blocked without a question.
    let on = world.id("Beacon").await;
    let done = world.act("click", json!({"on": on})).await;
    assert!(!done.text.contains("Held"), "{}", done.text);
    let view = world.look().await;
    assert!(
        view.unread
            .iter()
            .any(|note| note.contains("was not sent (1 time)")),
        "{view:#?}"
    );
    // A request that the page sends by itself, after a look, is not held.
    world.eval("send('alone'), 0").await;
    world.arrives(2).await;
}

#[tokio::test]
async fn a_link_sends_nothing_along_and_what_is_held_ends_with_its_page() {
    if !has_browser() {
        return;
    }
    let world = world().await;
    for button in ["Fetch", "Kept", "Elsewhere"] {
        held(&world, button).await;
        world
            .browser
            .open(&world.address("hold.html"))
            .await
            .unwrap();
        let view = world.look().await;
        assert_eq!(view.held, [], "{button}");
        assert!(
            view.unread.iter().any(|note| note.contains("was not sent")),
            "{button}: {view:#?}"
        );
    }
    let on = world.id("Link").await;
    let done = world.act("click", json!({"on": on})).await;
    assert!(done.text.contains("plain.html"), "{}", done.text);
    assert_eq!(world.look().await.held, []);
    // Held until no answer counts any more.
    world
        .browser
        .open(&world.address("hold.html"))
        .await
        .unwrap();
    held(&world, "Fetch").await;
    for _ in 0..20 {
        world.look().await;
    }
    assert_eq!(world.look().await.held, []);
    held(&world, "Kept").await;
    world.act("close_tab", json!({})).await;
    world
        .browser
        .open(&world.address("plain.html"))
        .await
        .unwrap();
    assert_eq!(world.arrived(), Vec::<String>::new());
}
