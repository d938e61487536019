//! Fields that a click fills in before it, and buttons that are held down.

use gyrus_contract::{ActionVerdict, Starts};
use gyrus_screen::Launch;
use serde_json::json;

use crate::{hands::World, support::has_browser};

#[tokio::test]
async fn a_click_fills_in_fields_of_every_kind_as_they_were_judged() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-all.html", Launch::default()).await;
    let mut fill = Vec::new();
    for (name, text) in [
        ("Name", "Ada"),
        ("Secret", "⟦secret:KEY⟧"),
        ("Date", "2026-01-31"),
        ("Range", "7"),
        ("Upper", "abc"),
        ("Size", "Extra large"),
    ] {
        fill.push(json!([world.id(name).await, text]));
    }
    let on = world.id("Send it").await;
    let click = json!({"on": on, "fill": fill});
    let aim = world.aim("click", click.clone()).await.unwrap().unwrap();
    assert_eq!(aim.starts, [Starts::Submits]);
    let option = "Extra large (value xl)".to_owned();
    assert_eq!(aim.fills[5].starts, [Starts::Chooses { option }]);
    let controls = aim.form.clone().unwrap().sends.unwrap().controls;
    assert_eq!(controls[0].value.as_deref(), Some("Ada"));
    let done = world.act_as_judged("click", click, Some(aim)).await;
    assert!(!done.is_error, "{}", done.text);
    let fields = "[...form.elements].map((one) => one.value).slice(0, 11).join()";
    assert_eq!(
        world.eval(fields).await,
        "Ada,,hunter2,,2026-01-31,,7,#000000,ABC,,xl"
    );
    assert!(world.log().await.contains(&"top:submit:form".to_owned()));

    // Nothing is pressed where the page holds something else, and a choice is not asked about first.
    let name = world.id("Name").await;
    for (script, field, told) in [
        (
            "name.oninput = () => { document.getElementById('upper').value = 'Eve'; }",
            &name,
            "",
        ),
        (
            "document.getElementById('name').oninput = (event) => { event.target.value = 'Eve'; }",
            &name,
            "holds “Eve”",
        ),
        ("0", &world.id("I agree").await, "cannot be filled in"),
        ("0", &world.id("Plain").await, "cannot be filled in"),
    ] {
        world.eval(script).await;
        let fill = json!([[field, "Bob"]]);
        let done = world.act("click", json!({"on": on, "fill": fill})).await;
        assert!(done.text.contains(told), "{}", done.text);
        let sent = world.log().await.contains(&"top:submit:form".to_owned());
        assert_eq!(sent, told.is_empty(), "{}", done.text);
        assert_ne!(done.verdict, ActionVerdict::NoEffect);
    }
}

#[tokio::test]
async fn a_button_is_held_down() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-all.html", Launch::default()).await;
    let held = "(() => { let since; plain.onmousedown = () => { since = performance.now(); }; \
                plain.onmouseup = () => { plain.textContent = performance.now() - since > 700 ? 'Held' : 'Pressed'; }; })()";
    world.eval(held).await;
    let on = world.id("Plain").await;
    for (seconds, said) in [(json!(null), "Pressed"), (json!(0.8), "Held")] {
        let done = world
            .act("click", json!({"on": on, "seconds": seconds}))
            .await;
        assert_eq!(done.verdict, ActionVerdict::Changed, "{}", done.text);
        assert_eq!(world.eval("plain.textContent").await, said);
    }
}
