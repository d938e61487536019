//! A person reads the plan first: approves, changes or rejects it, here or later, in any process.

use std::fs;

use gyrus_kernel::Entry;
use serde_json::{Value, json};

use crate::{
    journal::facts,
    planning::{GOAL, plan, planned, reply, run, shell, started, step, summary, timeline, write},
    support::World,
    terminal::Terminal,
};

const PARKED: [&str; 4] = ["--review", "plan", "--on-ask", "park"];

/// In the mode that asks.
fn asking(world: &World, more: &[&str]) -> crate::support::Said {
    world.gyrus(&[&["run", GOAL, "--loop", "plan"], more].concat())
}

fn two_steps() -> Vec<Value> {
    vec![
        write("1", "sort.sh", "mv a.txt b.txt\n", &[]),
        shell("2", "cat .env", &["1"]),
    ]
}

#[test]
fn the_card_shows_steps_tools_inputs_and_risk() {
    let world = planned(&two_steps());
    let said = run(&world, &PARKED).exits(5);
    insta::assert_snapshot!(world.mask(&said.err), @r"
    run [run] · plan · script/scripted · [folder]/work
    ┌ approval 1.4 ─────────────────────────────────────────────────────────
    │ The agent wants to carry out a plan of 2 steps; 1 of them asks again when it runs
    │ - step 1 (`write`): a plain change, runs unasked
    │ - step 2 (`shell`, marked as risky): high risk, asks again: reads [folder]/work/.env, where keys or passwords are kept; mode `auto` asks about what no sandbox contains
    │ as written by the model (unverified):
    │ ┃ 1. write: because of 1
    │ ┃    content: mv a.txt b.txt
    │ ┃    path: sort.sh
    │ ┃    expected: it is done
    │ ┃ 2. shell (after 1): because of 2
    │ ┃    command: cat .env
    │ ┃    expected: it is done
    └───────────────────────────────────────────────────────────────────────
    the run waits for an answer: The agent wants to carry out a plan of 2 steps; 1 of them asks again when it runs
      answer with `gyrus approve [run] 1.4` or `gyrus deny [run] 1.4`, then `gyrus resume [run]`
    ");
    assert_eq!(started(&world), 0, "nothing happens before the answer");
    assert_eq!(facts(&world, "task.plan").len(), 0, "it is not in force");
}

#[test]
fn a_parked_plan_is_approved_and_carried_out_by_another_process() {
    let world = planned(&[write("1", "a.txt", "a\n", &[])]);
    run(&world, &PARKED).exits(5);
    world
        .gyrus(&["approve", "last"])
        .exits(0)
        .says("approved 1.4 of run");
    assert_eq!(world.file("a.txt"), "");
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(world.file("a.txt"), "a\n");
    timeline(&world);
    world.replays();
}

/// An editor that replaces the first text by the second in the file that it is given.
fn editor(world: &World, from: &str, to: &str) -> String {
    let script = world.path("editor.sh");
    fs::write(&script, format!("sed -i 's/{from}/{to}/' \"$1\"\n")).unwrap();
    format!("sh {}", script.display())
}

#[test]
fn a_plan_is_edited_before_the_yes() {
    let world = planned(&[write("1", "a.txt", "a\n", &[])]);
    run(&world, &PARKED).exits(5);
    let editor = editor(&world, "a.txt", "mine.txt");
    let mut command = world.command(&["approve", "last", "--edit"]);
    let output = command.env("EDITOR", editor).output().unwrap();
    crate::support::said(output)
        .exits(0)
        .says("approved, as you changed it, 1.4");
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(
        (
            world.file("a.txt").as_str(),
            world.file("mine.txt").as_str()
        ),
        ("", "a\n")
    );
    let in_force = &facts(&world, "task.plan")[0]["steps"][0]["input"]["path"];
    assert_eq!(in_force, "mine.txt");
    timeline(&world);
    world.replays();
}

/// A person's edit is checked as a model's plan is, and asked about again if it is wrong.
#[test]
fn an_edit_that_cannot_be_carried_out_is_asked_about_again() {
    let world = planned(&[write("1", "a.txt", "a\n", &[])]);
    run(&world, &PARKED).exits(5);
    let edited = world.path("edited.json");
    let file = edited.to_str().unwrap();
    world
        .gyrus(&["approve", "last", "--answer", "yes please"])
        .exits(2)
        .says("asks for approval, not for words");
    fs::write(&edited, plan(&[step("1", "no_such_tool", json!({}), &[])])).unwrap();
    // What can be seen without the run is said at once, and nothing is sent.
    let approve = ["approve", "last", "--edited", file];
    world
        .gyrus(&approve)
        .exits(2)
        .says("step 1: there is no tool `no_such_tool`");
    let both = [
        step("1", "write", json!({"path": "a"}), &[]),
        step("2", "no_such_tool", json!({}), &[]),
    ];
    fs::write(&edited, plan(&both).replace("\"reason\"", "\"why\"")).unwrap();
    world
        .gyrus(&approve)
        .exits(2)
        .says("step number 2: `reason` is missing");
    let own = world.path("home/config.toml");
    let outside = write("1", own.to_str().unwrap(), "a\n", &[]);
    fs::write(&edited, plan(&[outside])).unwrap();
    world.gyrus(&approve).exits(2).says("is not allowed");
    // The rest is checked by the run.
    let other = plan(&[write("1", "a.txt", "a\n", &[])])
        .replace("\"goal\":", "\"goal\": \"else\", \"was\":");
    fs::write(&edited, other).unwrap();
    world.gyrus(&approve).exits(0);
    world
        .gyrus(&["resume", "last", "--on-ask", "park"])
        .exits(5)
        .says("your edit was not taken: `goal` is not the person's goal");
    assert_eq!(started(&world), 0);
    fs::write(&edited, plan(&[write("7", "mine.txt", "mine\n", &[])])).unwrap();
    world.gyrus(&["approve", "last", "--edited", file]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(world.file("mine.txt"), "mine\n");
    assert_eq!(timeline(&world)[2], "task.step 7");
    // An empty text is not a plan, and a tool's card has nothing to edit.
    let world = planned(&[write("1", ".envrc", "a\n", &[])]);
    asking(&world, &PARKED).exits(5);
    let empty = world.path("empty.json");
    fs::write(&empty, "\n").unwrap();
    world
        .gyrus(&["approve", "last", "--edited", empty.to_str().unwrap()])
        .exits(2)
        .says("the edited text is empty");
    world.gyrus(&["approve", "last"]).exits(0);
    world
        .gyrus(&["resume", "last", "--on-ask", "park"])
        .exits(5);
    world
        .gyrus(&["approve", "last", "--edit"])
        .exits(2)
        .says("there is nothing to edit");
    world.gyrus(&["approve", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(world.file(".envrc"), "a\n");
}

#[test]
fn a_rejection_with_words_is_planned_for_and_one_without_ends_it() {
    let second = plan(&[write("1", "b.txt", "b\n", &[])]);
    let script = reply("plan", &plan(&[write("1", "a.txt", "a\n", &[])]), "")
        + &reply("plan", &second, "find = { words = '(not a, b please)' }")
        + &summary("ok");
    let world = World::new(&script);
    run(&world, &PARKED).exits(5);
    world
        .gyrus(&["deny", "last", "--reason", "not a, b please"])
        .exits(0);
    world
        .gyrus(&["resume", "last", "--on-ask", "park"])
        .exits(5);
    world.gyrus(&["approve", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(
        (world.file("a.txt").as_str(), world.file("b.txt").as_str()),
        ("", "b\n")
    );
    timeline(&world);

    let world = planned(&[write("1", "a.txt", "a\n", &[])]);
    run(&world, &PARKED).exits(5);
    world.gyrus(&["deny", "last"]).exits(0);
    world
        .gyrus(&["resume", "last"])
        .exits(4)
        .says("a person rejected the plan");
    assert_eq!(timeline(&world), ["task.request", "task.error"]);
}

#[test]
fn with_nobody_to_ask_nothing_is_carried_out() {
    let world = planned(&[write("1", "a.txt", "a\n", &[])]);
    run(&world, &["--review", "plan"])
        .exits(4)
        .says("nobody could be asked");
    assert_eq!((started(&world), timeline(&world).len()), (0, 2));
}

/// A yes to the plan is not a yes to its steps, and one step that asks does not hold up the others.
#[test]
fn steps_ask_for_themselves() {
    let world = planned(&[
        write("1", ".envrc", "a\n", &[]),
        write("2", "plain.txt", "b\n", &[]),
        write("3", "after.txt", "c\n", &["1", "2"]),
    ]);
    asking(&world, &PARKED)
        .exits(5)
        .says("1 of them asks again when it runs");
    world.gyrus(&["approve", "last"]).exits(0);
    world
        .gyrus(&["resume", "last", "--on-ask", "park"])
        .exits(5);
    assert_eq!(
        (
            world.file(".envrc").as_str(),
            world.file("plain.txt").as_str()
        ),
        ("", "b\n")
    );
    world.gyrus(&["approve", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(
        (
            world.file(".envrc").as_str(),
            world.file("after.txt").as_str()
        ),
        ("a\n", "c\n")
    );
    let asked = world.entries().into_iter();
    let asked = asked.filter(|entry| matches!(entry, Entry::ApprovalAsked(_)));
    assert_eq!(asked.count(), 2);
    world.replays();
}

#[test]
fn a_plan_is_edited_at_the_terminal() {
    let world = planned(&[write("1", "a.txt", "a\n", &[])]);
    let editor = editor(&world, "a.txt", "mine.txt");
    let arguments = ["run", GOAL, "--review", "plan"];
    let environment = [("TERM", "xterm-256color"), ("VISUAL", editor.as_str())];
    let Some(mut terminal) = Terminal::start_with(&world, &arguments, "", &environment) else {
        return;
    };
    terminal.shows("e = edit it first");
    terminal.types("perhaps\n");
    terminal.shows("please type y = yes, e = edit");
    terminal.types("e\n");
    terminal.shows("approved by tester (console)");
    terminal.shows("All is in order.");
    assert_eq!(terminal.exit_code(), Some(0));
    assert_eq!(world.file("mine.txt"), "a\n");
}

/// By which rules a loop is chosen where nobody names one.
#[test]
fn the_loop_is_chosen_by_rules_that_say_why() {
    let auto = |world: &World, more: &[&str]| world.gyrus(&[&["run", GOAL], more].concat());
    let world = World::new(crate::support::THREE_STEPS);
    let told = auto(&world, &["--approve", "auto", "--workdir", "."]).exits(0);
    assert!(!told.err.contains("--loop"), "{}", told.err);
    let named = auto(
        &World::new(crate::support::THREE_STEPS),
        &["--loop", "react"],
    );
    assert!(!named.err.contains("uses the loop"), "{}", named.err);
    for (flags, flag) in [
        (["--review", "plan"], "--review plan"),
        (["--on-failure", "stop"], "--on-failure"),
    ] {
        let world = planned(&[step("1", "list", json!({"path": "."}), &[])]);
        let why = format!("uses the loop `plan`, because {flag} asks for a plan");
        auto(&world, &[&flags[..], &["--on-ask", "park"]].concat()).says(&why);
        auto(&world, &[&flags[..], &["--loop", "react"]].concat())
            .exits(2)
            .says(&format!(
                "{flag} needs a plan, and the loop `react` makes none"
            ));
        auto(
            &world,
            &[&flags[..], &["--url", "https://example.com"]].concat(),
        )
        .exits(2)
        .says("--loop reactive and --loop plan");
    }
    auto(&world, &["--review", "everything"]).exits(2);
    auto(&world, &["--loop", "plna"])
        .exits(2)
        .says("did you mean `plan`?");
}
