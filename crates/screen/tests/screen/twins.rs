//! A choice by name is never one of several, and a page sends its form as it was judged.

use gyrus_contract::{ActionVerdict, Starts};
use gyrus_screen::Launch;
use serde_json::json;

use crate::{hands::World, support::has_browser};

#[tokio::test]
async fn a_name_that_several_options_have_is_refused_with_what_tells_them_apart() {
    if !has_browser() {
        return;
    }
    let world = World::at("act-twins.html", Launch::default()).await;
    let list = world.id("To").await;
    let (to, colour) = (list.as_str(), world.id("Colour").await);
    for (on, option, told) in [
        (
            to,
            "Ada Byron",
            &[
                "#4 “Debtors: Ada Byron” (value “98”)",
                "#6 “Staff: Ada Byron” (value “12”)",
            ][..],
        ),
        (to, "ada byron", &["“98”", "“12”"]),
        (to, "Mary Shelley", &["“97”", "“11”"]),
        (
            to,
            "Nobody",
            &["has no option “Nobody”", "Staff: Ada Byron"],
        ),
        (to, "2", &["is disabled"]),
        (
            &colour,
            "blue",
            &["#3 “blue” (value “x”)", "#4 “blue” (value “x”)"],
        ),
        (&colour, "Red", &["#1", "#2"]),
    ] {
        let done = world
            .act("select_option", json!({"on": on, "option": option}))
            .await;
        assert_eq!(
            done.verdict,
            ActionVerdict::Refused,
            "{option}: {}",
            done.text
        );
        for part in told {
            assert!(done.text.contains(part), "{option}: {}", done.text);
        }
        assert!(
            !done.text.contains("“1”") && !done.text.contains("Gone"),
            "{}",
            done.text
        );
    }
    assert_eq!(world.eval("form.to.value").await, "");
    for (on, option, value, words) in [
        (to, "Grace Hopper", "15", "Grace Hopper (value 15)"),
        (
            to,
            "Debtors: Ada Byron",
            "98",
            "Debtors: Ada Byron (value 98)",
        ),
        (to, "Ada Byron (Staff)", "12", "Staff: Ada Byron (value 12)"),
        (
            to,
            "Staff / mary shelley",
            "11",
            "Staff: Mary Shelley (value 11)",
        ),
        (to, "98", "98", "Debtors: Ada Byron (value 98)"),
        (to, "#6", "12", "Staff: Ada Byron (value 12)"),
        (&colour, "RED", "RED", "RED"),
        (&colour, "blue (#4)", "x", "blue (value x)"),
    ] {
        let arguments = json!({"on": on, "option": option});
        let aim = world.aim("select_option", arguments.clone()).await;
        let starts = aim.unwrap().unwrap().starts;
        let wanted = Starts::Chooses {
            option: words.to_owned(),
        };
        assert_eq!(starts, [wanted], "{option}");
        let done = world.act("select_option", arguments).await;
        assert_eq!(
            done.verdict,
            ActionVerdict::Changed,
            "{option}: {}",
            done.text
        );
        let name = if on == to { "to" } else { "colour" };
        assert_eq!(
            world.eval(&format!("form.{name}.value")).await,
            value,
            "{option}"
        );
    }
    assert_eq!(world.eval("form.colour.selectedIndex").await, 3);
    // The view and what is sent say the same: no bare name stands for two.
    let view = world.look().await;
    let shown = view.elements.iter().find(|one| one.name == "To");
    assert_eq!(shown.unwrap().value.as_deref(), Some("Staff: Ada Byron"));
    let button = world.id("Send payment").await;
    let aim = world
        .aim("click", json!({"on": button}))
        .await
        .unwrap()
        .unwrap();
    let controls = aim.form.unwrap().sends.unwrap().controls;
    assert_eq!(controls[0].shown, "Staff: Ada Byron");
    assert_eq!(controls[0].value.as_deref(), Some("12"));
}

#[tokio::test]
async fn what_the_page_changes_at_the_press_is_not_sent() {
    if !has_browser() {
        return;
    }
    for way in [
        "press", "click", "submit", "formdata", "amount", "twice", "address", "script", "json",
    ] {
        let world = World::at("act-twins.html", Launch::default()).await;
        world
            .eval(&format!("lists.to.value = 98, ways.{way}()"))
            .await;
        let on = world.id("Send payment").await;
        let done = world.act("click", json!({"on": on})).await;
        assert!(
            done.text.contains("Blocked 1 request"),
            "{way}: {}",
            done.text
        );
        assert_eq!(done.verdict, ActionVerdict::CannotTell, "{way}");
        assert_eq!(world.arrived(), Vec::<String>::new(), "{way}");
    }
    let world = World::at("act-twins.html", Launch::default()).await;
    world.eval("lists.to.value = 98, ways.honest()").await;
    let on = world.id("Send payment").await;
    // What changes between the judgement and the press is no longer what was judged.
    let arguments = json!({"on": on});
    let judged = world.aim("click", arguments.clone()).await.unwrap();
    world.eval("lists.to.value = 12").await;
    let done = world
        .act_as_judged("click", arguments.clone(), judged.clone())
        .await;
    assert!(
        done.text.contains("what its form would send has changed"),
        "{}",
        done.text
    );
    world.eval("lists.to.value = 98").await;
    let done = world.act_as_judged("click", arguments, judged).await;
    assert_eq!(done.verdict, ActionVerdict::Changed, "{}", done.text);
    assert_eq!(world.arrived(), ["POST /post/pay"]);
}
