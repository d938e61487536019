//! The size of a goal chooses a run's loop and its limit, where a person names none.

use gyrus_kernel::{Entry, RunStarted};

use crate::support::{THREE_STEPS, World};

const ANSWER: &str = "[[reply]]\ntext = \"Lima.\"\n";
const CAPITAL: &str = "What is the capital of Peru?";

/// The start of a run with this goal and these flags, and what was said of it.
fn started(script: &str, goal: &str, more: &[&str]) -> (RunStarted, String) {
    let world = World::new(script);
    std::fs::write(world.work().join("notes.txt"), "notes\n").unwrap();
    let always = ["run", goal, "--workdir", ".", "--approve", "auto"];
    let ran = world.gyrus(&[&always, more].concat()).exits(0);
    let Some(Entry::RunStarted(started)) = world.entries().into_iter().next() else {
        panic!("the first entry is of another kind");
    };
    (started, ran.err)
}

#[test]
fn the_size_of_a_goal_chooses_what_nobody_named() {
    for (goal, name, intent, steps) in [
        (CAPITAL, "single-shot", "simple", 35),
        ("list the files in this folder", "react", "simple", 35),
        ("say hello", "react", "multi-step", 100),
        ("Refactor the whole storage layer", "react", "complex", 200),
    ] {
        let script = if name == "single-shot" {
            ANSWER
        } else {
            THREE_STEPS
        };
        let (started, said) = started(script, goal, &[]);
        assert_eq!(started.cognitive_loop, name, "{goal}");
        assert_eq!(started.loop_config["intent"], intent, "{goal}");
        assert_eq!(started.settings.limits.steps, Some(steps), "{goal}");
        // The loop of most goals needs no words.
        let choice = format!("uses the loop `{name}`, because ");
        assert_eq!(said.contains(&choice), name != "react", "{said}");
    }
}

#[test]
fn what_is_named_wins_over_the_size_of_a_goal() {
    let named = |more: &[&str]| started(THREE_STEPS, CAPITAL, more).0;
    let react = named(&["--loop", "react"]);
    assert_eq!(react.cognitive_loop, "react");
    assert!(react.loop_config.get("intent").is_none());
    assert_eq!(react.settings.limits.steps, Some(35), "a loop has a limit");
    // Nothing is left unchecked, and no file unread, for want of tools.
    for more in [["--check", "true"], ["--file", "notes.txt"]] {
        assert_eq!(named(&more).cognitive_loop, "react", "{more:?}");
    }
    let limits = named(&[
        "--loop",
        "auto",
        "--file",
        "notes.txt",
        "--max-tokens",
        "90000",
    ]);
    assert_eq!(limits.settings.limits.steps, Some(200));
    assert_eq!(limits.settings.limits.tokens, Some(90_000));
    let limits = named(&["--file", "notes.txt", "--max-steps", "7"]);
    assert_eq!(limits.settings.limits.steps, Some(7));
}
