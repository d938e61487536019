//! Inputs reach their target and nothing else, as the pages themselves report it.

use gyrus_contract::{ActionVerdict, Starts};
use gyrus_screen::Launch;
use serde_json::{Value, json};

use crate::{hands::World, player::play, support::has_browser};

fn dense() -> Launch {
    Launch {
        density: 2.0,
        ..Launch::default()
    }
}

#[tokio::test]
async fn every_kind_of_field_is_filled() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-all.html", dense()).await;
    let check = async |name: &str, text: &str, wanted: &str| {
        let on = world.id(name).await;
        let done = world
            .act(
                "type_text",
                json!({"on": on, "text": text, "replace": true}),
            )
            .await;
        assert!(!done.is_error, "{name}: {}", done.text);
        assert_eq!(
            done.verdict,
            ActionVerdict::Changed,
            "{name}: {}",
            done.text
        );
        let element = name.split_whitespace().next().unwrap().to_lowercase();
        let value = world
            .eval(&format!(
                "(document.getElementById('{element}').value ?? rich.innerText)"
            ))
            .await;
        assert_eq!(value, json!(wanted), "{name}: {}", done.text);
        done.text
    };
    check("Name", "héllo 世界 😀", "héllo 世界 😀").await;
    check("Mail", "a@b.example", "a@b.example").await;
    let said = check("Secret", "⟦secret:KEY⟧", "hunter2").await;
    assert!(!said.contains("hunter2"), "{said}");
    check("Number", "42", "42").await;
    check("Date", "2026-01-31", "2026-01-31").await;
    check("Time", "13:05", "13:05").await;
    check("Range", "7", "7").await;
    check("Colour", "#ff0000", "#ff0000").await;
    check("Notes", "one\ntwo", "one\ntwo").await;
    check("Rich", "three", "three").await;
    let said = check("Upper", "abc", "ABC").await;
    assert!(said.contains("ABC"), "{said}");
    let long = "x".repeat(5_000);
    check("Notes", &long, &long).await;

    let on = world.id("Name").await;
    world
        .act("type_text", json!({"on": on, "text": " more"}))
        .await;
    assert_eq!(
        world.eval("document.getElementById('name').value").await,
        json!("héllo 世界 😀 more")
    );
    world
        .act("press_key", json!({"on": on, "key": "Control+a"}))
        .await;
    world.act("press_key", json!({"key": "Backspace"})).await;
    assert_eq!(
        world.eval("document.getElementById('name').value").await,
        json!("")
    );

    let on = world.id("Date").await;
    let wrong = world
        .act("type_text", json!({"on": on, "text": "tomorrow"}))
        .await;
    assert!(wrong.is_error, "{}", wrong.text);
    let two = world
        .act(
            "type_text",
            json!({"on": world.id("Mail").await, "text": "a\nb"}),
        )
        .await;
    assert_eq!(two.verdict, ActionVerdict::Refused, "{}", two.text);

    let on = world.id("Size").await;
    let chosen = world
        .act("select_option", json!({"on": on, "option": "extra large"}))
        .await;
    assert!(chosen.text.contains("Extra large"), "{}", chosen.text);
    assert_eq!(chosen.verdict, ActionVerdict::Changed);
    let none = world
        .act("select_option", json!({"on": on, "option": "Tiny"}))
        .await;
    assert!(
        none.text.contains("Small | Large | Extra large"),
        "{}",
        none.text
    );
    world.log().await;
    let sent = world.act("type_text", json!({"on": world.id("Mail").await, "text": "c@d.example", "replace": true, "submit": true})).await;
    assert!(!sent.is_error, "{}", sent.text);
    assert!(world.log().await.contains(&"top:submit:form".to_owned()));
}

#[tokio::test]
async fn every_kind_of_click_reaches_its_element() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-all.html", Launch::default()).await;
    let check = async |tool: &str, name: &str, more: Value, wanted: &str| {
        let mut arguments = more;
        arguments["on"] = json!(world.id(name).await);
        world.log().await;
        let done = world.act(tool, arguments).await;
        assert!(!done.is_error, "{name}: {}", done.text);
        let log = world.log().await;
        assert!(
            log.iter().any(|line| line == wanted),
            "{name}: {wanted} is not in {log:?}: {}",
            done.text
        );
        done
    };
    check("click", "Plain", json!({}), "top:click:plain").await;
    check(
        "click",
        "Plain",
        json!({"kind": "double"}),
        "top:dblclick:plain",
    )
    .await;
    check(
        "click",
        "Plain",
        json!({"kind": "right"}),
        "top:contextmenu:plain",
    )
    .await;
    check(
        "click",
        "Plain",
        json!({"kind": "middle"}),
        "top:auxclick:plain",
    )
    .await;
    check(
        "click",
        "Plain",
        json!({"with": ["shift", "control"]}),
        "top:click:plain+shift+ctrl",
    )
    .await;
    check(
        "click",
        "A link over several lines of text",
        json!({}),
        "top:click:wrapped",
    )
    .await;
    let agreed = check("click", "I agree", json!({}), "top:change:agree=on").await;
    assert_eq!(agreed.verdict, ActionVerdict::Changed, "{}", agreed.text);
    check("click", "In the shadow", json!({}), "top:click:shadowed").await;
    let drawn = check("click", "Pad", json!({}), "top:click:pad").await;
    assert_eq!(drawn.verdict, ActionVerdict::Changed, "{}", drawn.text);
    check("click", "Deep", json!({}), "top:click:deep").await;
    let far = check("click", "Far away", json!({}), "top:click:far").await;
    assert!(
        world.eval("scrollY").await.as_f64().unwrap() > 500.0,
        "{}",
        far.text
    );
    let dead = check("click", "Dead", json!({}), "top:click:dead").await;
    // The keyboard goes where one clicks, which changes nothing.
    assert_eq!(dead.verdict, ActionVerdict::NoEffect, "{}", dead.text);
    assert!(
        dead.text.contains("the keyboard is now at"),
        "{}",
        dead.text
    );
    let again = check("click", "Dead", json!({}), "top:click:dead").await;
    assert_eq!(again.verdict, ActionVerdict::NoEffect, "{}", again.text);
    check("hover", "Menu", json!({}), "top:mouseenter:opener").await;
    check("click", "Item", json!({}), "top:click:inmenu").await;
    let space = check(
        "press_key",
        "Plain",
        json!({"key": "Space"}),
        "top:click:plain",
    )
    .await;
    assert!(!space.is_error);

    let scrolled = world
        .act(
            "scroll",
            json!({"on": world.id("Scroller").await, "direction": "up", "pages": 10}),
        )
        .await;
    assert_eq!(
        scrolled.verdict,
        ActionVerdict::Changed,
        "{}",
        scrolled.text
    );
    assert_eq!(world.eval("scroller.scrollTop").await, json!(0));
    world.eval("scrollTo(0, 0)").await;
    let down = world.act("scroll", json!({"direction": "down"})).await;
    let at = world.eval("scrollY").await.as_f64().unwrap();
    assert!((500.0..800.0).contains(&at), "{at}: {}", down.text);
    let shown = world
        .act("scroll_to", json!({"on": world.id("Plain").await}))
        .await;
    assert_eq!(shown.verdict, ActionVerdict::Changed, "{}", shown.text);
}

#[tokio::test]
async fn the_gate_is_told_what_an_input_would_start() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-all.html", Launch::default()).await;
    let send = json!({"on": world.id("Send it").await});
    let aim = world.aim("click", send).await.unwrap().unwrap();
    assert_eq!(aim.starts, [Starts::Submits]);
    assert_eq!(aim.origin, world.address("").trim_end_matches('/'));
    let form = aim.form.unwrap();
    assert_eq!(
        (form.action, form.method.as_str()),
        (world.address("send"), "post")
    );
    let secret = form
        .fields
        .iter()
        .find(|field| field.kind == "password")
        .unwrap();
    assert!(secret.secret && !secret.filled);
    world
        .eval("document.getElementById('secret').value = 'x'")
        .await;
    let aim = world
        .aim(
            "type_text",
            json!({"on": world.id("Name").await, "text": "x", "submit": true}),
        )
        .await;
    let aim = aim.unwrap().unwrap();
    assert_eq!(aim.starts, [Starts::Types, Starts::Submits]);
    assert!(
        aim.form
            .unwrap()
            .fields
            .iter()
            .any(|field| field.secret && field.filled)
    );
    // A field's name shadows the form's own properties for a page, not for us.
    world.eval("form.insertAdjacentHTML('beforeend', '<input name=action value=x><input name=method>')").await;
    let aim = world
        .aim("click", json!({"on": world.id("Send it").await}))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(aim.form.unwrap().action, world.address("send"));
    let opened = world
        .aim("open_url", json!({"url": "javascript:alert(1)"}))
        .await;
    assert!(
        opened.unwrap_err().contains("refused")
            || world
                .act("open_url", json!({"url": "file:///etc/passwd"}))
                .await
                .is_error
    );
    let judged = world
        .aim("click", json!({"on": world.id("Plain").await}))
        .await
        .unwrap();
    let other = json!({"on": world.id("Dead").await});
    let refused = world.act_as_judged("click", other.clone(), judged).await;
    assert_eq!(refused.verdict, ActionVerdict::Refused, "{}", refused.text);
    let refused = world.act_as_judged("click", other, None).await;
    assert_eq!(refused.verdict, ActionVerdict::Refused, "{}", refused.text);
}

#[tokio::test]
async fn things_are_dragged_both_ways() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-drag.html", Launch::default()).await;
    let (card, bin) = (world.id("Card").await, world.id("Bin").await);
    let dropped = world.act("drag", json!({"from": card, "to": bin})).await;
    assert_eq!(
        world.eval("bin.textContent").await,
        json!("the card"),
        "{}",
        dropped.text
    );
    assert_eq!(dropped.verdict, ActionVerdict::Changed, "{}", dropped.text);
    let knob = world.id("Knob").await;
    let moved = world
        .act("drag", json!({"from": knob, "to": [600, 300]}))
        .await;
    let left = world
        .eval("knob.getBoundingClientRect().x")
        .await
        .as_f64()
        .unwrap();
    assert!((570.0..600.0).contains(&left), "{left}: {}", moved.text);
    let (first, second) = (world.id("First").await, world.id("Second").await);
    let dropped = world
        .act("drag", json!({"from": second, "to": first}))
        .await;
    let text = world.eval("first.textContent").await;
    assert_eq!(text, json!("First Second"), "{}", dropped.text);
    let (grip, third) = (world.id("☰").await, world.id("Third").await);
    let dropped = world.act("drag", json!({"from": grip, "to": third})).await;
    let sorted = world.eval("third.previousElementSibling?.id").await;
    assert_eq!(sorted, json!("fourth"), "{}", dropped.text);
}

#[tokio::test]
async fn typing_at_the_keyboard_replaces_what_is_selected() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-all.html", Launch::default()).await;
    let value = async || world.eval("document.getElementById('name').value").await;
    let on = world.id("Name").await;
    let typed = json!({"on": on, "text": "red and blue"});
    world.act("type_text", typed).await;
    let selected = json!({"on": on, "key": "Control+a"});
    world.act("press_key", selected).await;
    world.act("type_text", json!({"text": "green"})).await;
    assert_eq!(value().await, json!("green"));
    world.act("type_text", json!({"text": " too"})).await;
    assert_eq!(value().await, json!("green too"));
}

#[tokio::test]
async fn files_go_in_and_come_out() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-all.html", Launch::default()).await;
    std::fs::write(world.path("note.txt"), "hello").unwrap();
    for name in ["Attachment", "Upload with a button"] {
        world.eval("file.value = ''").await;
        let on = world.id(name).await;
        let done = world
            .act("upload_file", json!({"on": on, "path": "note.txt"}))
            .await;
        assert!(!done.is_error, "{name}: {}", done.text);
        let read = world
            .eval("file.files[0].text().then((text) => file.files[0].name + ' ' + text)")
            .await;
        assert_eq!(read, json!("note.txt hello"), "{name}: {}", done.text);
    }
    world
        .act("open_url", json!({"url": world.address("act-noise.html")}))
        .await;
    let on = world.id("Get it").await;
    let mut got = world.act("click", json!({"on": on})).await;
    assert_eq!(got.verdict, ActionVerdict::Changed, "{}", got.text);
    if got.artifacts.is_empty() {
        got = world.act("wait", json!({})).await;
    }
    assert_eq!(
        got.artifacts[0].path, "downloads/report.txt",
        "{}",
        got.text
    );
    assert_eq!(
        std::fs::read_to_string(world.path("downloads/report.txt")).unwrap(),
        "the report"
    );
}

#[tokio::test]
async fn what_moves_or_has_gone_is_not_touched() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-noise.html", Launch::default()).await;
    // Covered at the moment in which the pointer arrives.
    let caught = world
        .act("click", json!({"on": world.id("Caught").await}))
        .await;
    assert_eq!(caught.verdict, ActionVerdict::Refused, "{}", caught.text);
    let log = world.log().await;
    assert!(
        !log.iter()
            .any(|line| line.contains("click") || line.contains("mousedown")),
        "{log:?}"
    );
    // Covered after everything was measured: the guard keeps the press from the page.
    world.eval("trap.style.display = 'none'").await;
    let on = world.id("Live").await;
    let aim = world.aim("click", json!({"on": on})).await.unwrap();
    world.eval("live.addEventListener('pointerdown', () => 0); (() => { const box = live.getBoundingClientRect(); addEventListener('mousemove', () => setTimeout(() => Object.assign(trap.style, { display: 'block', left: box.x + 'px', top: box.y + 'px', width: box.width + 'px', height: box.height + 'px' }), 0)); })()").await;
    let refused = world.act_as_judged("click", json!({"on": on}), aim).await;
    assert_eq!(refused.verdict, ActionVerdict::Refused, "{}", refused.text);
    let log = world.log().await;
    assert!(
        !log.iter()
            .any(|line| line.contains("click") || line.contains("mousedown")),
        "{log:?}"
    );

    let stale = world.id("Dead").await;
    world.eval("dead.remove()").await;
    let gone = world.act("click", json!({"on": stale})).await;
    assert!(gone.text.starts_with("refused: gone"), "{}", gone.text);
    world.act("reload", json!({})).await;
    let gone = world.act("click", json!({"on": stale})).await;
    assert!(gone.text.starts_with("refused: gone"), "{}", gone.text);
}

#[tokio::test]
async fn a_ticking_clock_is_nobodys_doing() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-noise.html", Launch::default()).await;
    let (dead, live) = (world.id("Dead").await, world.id("Live").await);
    world.act("click", json!({"on": dead})).await;
    let again = world.act("click", json!({"on": dead})).await;
    assert!(
        matches!(
            again.verdict,
            ActionVerdict::NoEffect | ActionVerdict::CannotTell
        ),
        "{}",
        again.text
    );
    let changed = world.act("click", json!({"on": live})).await;
    assert_eq!(changed.verdict, ActionVerdict::Changed, "{}", changed.text);
    assert!(changed.text.contains("done"), "{}", changed.text);
}

#[tokio::test]
async fn dialogs_tabs_and_floods_are_bounded() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-noise.html", Launch::default()).await;
    let asked = world
        .act("click", json!({"on": world.id("Asks").await}))
        .await;
    assert_eq!(asked.verdict, ActionVerdict::Changed, "{}", asked.text);
    assert!(asked.text.contains("Your name?"), "{}", asked.text);
    let held = world.act("click", json!({"at": [10, 10]})).await;
    assert!(held.text.contains("answer_dialog"), "{}", held.text);
    world
        .act("answer_dialog", json!({"accept": true, "text": "Ada"}))
        .await;
    assert_eq!(world.eval("said.textContent").await, json!("Ada"));

    let opened = world
        .act("click", json!({"on": world.id("New tab").await}))
        .await;
    assert!(opened.text.contains("tab 2"), "{}", opened.text);
    let view = world.look().await;
    assert!(view.address.ends_with("inner.html"), "{}", view.address);
    world.act("close_tab", json!({})).await;
    assert!(world.look().await.address.ends_with("act-noise.html"));

    let popped = world
        .act("click", json!({"on": world.id("Pops").await}))
        .await;
    assert!(popped.text.contains("opened"), "{}", popped.text);
    // With the user gesture of a click, which the browser's own blocker allows.
    for _ in 0..25 {
        let open =
            json!({"expression": "window.open('inner.html', '_blank'), 0", "userGesture": true});
        world
            .browser
            .devtools("Runtime.evaluate", open)
            .await
            .unwrap();
    }
    let tabs = world.look().await.tabs.len();
    assert!((15..=20).contains(&tabs), "{tabs}");
    world.act("switch_tab", json!({"tab": 1})).await;

    let mut alerts = world
        .act("click", json!({"on": world.id("Alerts").await}))
        .await;
    assert!(alerts.text.contains("no 1"), "{}", alerts.text);
    for _ in 0..3 {
        alerts = world.act("answer_dialog", json!({"accept": true})).await;
    }
    assert!(
        alerts.text.contains("no 4") && alerts.text.contains("close_tab"),
        "{}",
        alerts.text
    );
    let closed = world.act("close_tab", json!({"tab": 1})).await;
    assert!(!closed.is_error, "{}", closed.text);
}

#[tokio::test]
async fn a_crash_is_told_and_overcome() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-all.html", Launch::default()).await;
    let on = world.id("Plain").await;
    let aim = world.aim("click", json!({"on": on})).await.unwrap();
    // The order itself is never answered.
    let crash = world.browser.devtools("Page.crash", json!({}));
    let click = async {
        let done = world.act_as_judged("click", json!({"on": on}), aim).await;
        assert!(
            done.is_error || done.text.contains("crashed"),
            "{}",
            done.text
        );
    };
    let (_, ()) = tokio::join!(
        tokio::time::timeout(std::time::Duration::from_secs(1), crash),
        click
    );
    let held = world.act("click", json!({"at": [10, 10]})).await;
    assert!(held.text.contains("crashed"), "{}", held.text);
    let reloaded = world.act("reload", json!({})).await;
    assert!(!reloaded.is_error, "{}", reloaded.text);
    world
        .act("click", json!({"on": world.id("Plain").await}))
        .await;
    assert!(world.log().await.contains(&"top:click:plain".to_owned()));

    // The whole browser.
    let _ = world.browser.devtools("Browser.crash", json!({})).await;
    let lost = world.act("click", json!({"at": [10, 10]})).await;
    assert!(lost.is_error && lost.text.contains("lost"), "{}", lost.text);
    let opened = world
        .act("open_url", json!({"url": world.address("plain.html")}))
        .await;
    assert!(!opened.is_error, "{}", opened.text);
}

#[tokio::test]
async fn random_clicks_land_where_they_are_meant() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-frames.html", dense()).await;
    play(&world, 100, false, 1).await;
    let pinched = json!({"pageScaleFactor": 1.5});
    world
        .browser
        .devtools("Emulation.setPageScaleFactor", pinched)
        .await
        .unwrap();
    play(&world, 100, true, 2).await;
}

#[tokio::test]
async fn frames_of_another_process_take_the_keyboard() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-frames.html", Launch::default()).await;
    for frame in ["same", "other", "deep"] {
        let on = world.id(&format!("{frame} field")).await;
        world.log().await;
        let done = world
            .act(
                "type_text",
                json!({"on": on, "text": "Aé界", "replace": true}),
            )
            .await;
        assert_eq!(done.verdict, ActionVerdict::Changed, "{}", done.text);
        let log = world.log().await;
        assert!(
            log.contains(&format!("{frame}:input:field=Aé界")),
            "{log:?}: {}",
            done.text
        );
        let pressed = world.act("press_key", json!({"key": "Backspace"})).await;
        let log = world.log().await;
        assert!(
            log.contains(&format!("{frame}:input:field=Aé")),
            "{log:?}: {}",
            pressed.text
        );
    }
}
