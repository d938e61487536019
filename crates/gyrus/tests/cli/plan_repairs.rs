//! Plans as real models write them: repaired, refused or stopped with reasons; never carried out
//! by accident.

use std::fs;

use serde_json::{Value, json};

use crate::{
    journal::facts,
    planning::{GOAL, plan, planned, reply, run, shell, started, step, summary, timeline, write},
    support::World,
};

fn good() -> Value {
    write("1", "good.txt", "good\n", &[])
}

/// A plan in which nothing is wrong but one thing, and words of the reason that goes back.
fn bad_plans() -> Vec<(&'static str, String, &'static str)> {
    let trap = || shell("trap", "touch trap", &[]);
    let without = |field: &str| {
        let mut step = trap();
        step.as_object_mut().unwrap().remove(field);
        plan(&[good(), step])
    };
    let many: Vec<_> = (0..500)
        .map(|n| shell(&format!("s{n}"), "touch trap", &[]))
        .collect();
    let other_goal = json!({"goal": "send the notes to everybody", "steps": [trap()]});
    let wider = json!({"goal": format!("{GOAL}, then delete them"), "steps": [trap()]});
    let path = |path: &str| plan(&[trap(), write("1", path, "x", &[])]);
    vec![
        (
            "no object",
            "I would begin with the notes.".to_owned(),
            "there is no JSON object",
        ),
        (
            "cut off",
            plan(&[trap()])[..80].to_owned(),
            "a JSON object in it does not end",
        ),
        (
            "two plans",
            format!("{}\nor\n{}", plan(&[trap()]), plan(&[good()])),
            "two JSON objects",
        ),
        ("no steps", plan(&[]), "at least one step"),
        (
            "unknown tool",
            plan(&[trap(), step("1", "send_email", json!({}), &[])]),
            "there is no tool `send_email`",
        ),
        (
            "finish",
            plan(&[
                trap(),
                step("1", "finish", json!({"reached": true, "answer": "x"}), &[]),
            ]),
            "`finish` is not a step",
        ),
        (
            "no input",
            without("input"),
            "step number 2: `input` must be an object",
        ),
        (
            "no reason",
            without("reason"),
            "step number 2: `reason` is missing",
        ),
        (
            "unmarked",
            without("requires_permission"),
            "step number 2: `requires_permission` must be",
        ),
        ("no id", without("id"), "step number 2: `id` is missing"),
        (
            "wrong input",
            plan(&[
                trap(),
                step(
                    "1",
                    "shell",
                    json!({"command": "true", "timeout_seconds": 9000, "sudo": true}),
                    &[],
                ),
            ]),
            "`sudo` is not an argument",
        ),
        (
            "no path",
            plan(&[trap(), step("1", "write", json!({"content": "x"}), &[])]),
            "`path` is missing",
        ),
        (
            "a circle",
            plan(&[
                shell("a", "touch trap", &["c"]),
                shell("b", "true", &["a"]),
                shell("c", "true", &["b"]),
            ]),
            "in a circle: a → c → b → a",
        ),
        (
            "unknown dependency",
            plan(&[trap(), shell("1", "true", &["9"])]),
            "depends on `9`, which is not a step",
        ),
        (
            "twice",
            plan(&[trap(), trap()]),
            "the id `trap` is used twice",
        ),
        (
            "500 steps",
            plan(&many),
            "it has 500 steps, and 50 are allowed",
        ),
        (
            "a command in a path",
            path("out.txt; touch trap"),
            "looks like a command line, not like a path",
        ),
        (
            "a substitution in a path",
            path("$(touch trap).txt"),
            "looks like a command line",
        ),
        (
            "another goal",
            other_goal.to_string(),
            "is not the person's goal",
        ),
        (
            "a wider goal",
            wider.to_string(),
            "is not the person's goal",
        ),
        (
            "data as a command",
            plan(&[
                step("1", "read", json!({"path": "found.txt"}), &[]),
                shell("2", "sh -c '{{1.output}}'", &["1"]),
            ]),
            "no output may stand in `command`",
        ),
        ("a home", path("~/notes.txt"), "`~` is not expanded"),
    ]
}

#[test]
fn every_bad_plan_is_sent_back_with_its_reasons_and_repaired() {
    for (name, bad, reason) in bad_plans() {
        let script = reply("plan", &bad, "")
            + &reply(
                "plan",
                &plan(&[good()]),
                "find = { why = '(The plan cannot be carried out)' }",
            )
            + &summary("ok");
        let world = World::new(&script);
        fs::write(world.work().join("found.txt"), "touch trap\n").unwrap();
        let said = run(&world, &[]);
        assert_eq!(said.code, Some(0), "{name}: {said:#?}");
        let invalid = &facts(&world, "plan.invalid")[0]["text"];
        assert!(
            invalid.as_str().unwrap().contains(reason),
            "{name}: {invalid}"
        );
        assert_eq!(world.file("good.txt"), "good\n", "{name}");
        assert!(!world.work().join("trap").exists(), "{name}");
        assert_eq!(started(&world), 1, "{name}");
        timeline(&world);
    }
}

#[test]
fn a_plan_that_is_never_right_ends_the_task_and_nothing_happened() {
    let bad = json!({"goal": "delete everything", "steps": [shell("1", "touch trap", &[])]});
    let world = World::new(&reply("plan", &bad.to_string(), "repeat = 4"));
    run(&world, &[])
        .exits(1)
        .says("no plan could be carried out, after 3 repairs");
    assert_eq!(timeline(&world), ["task.request", "task.error"]);
    assert_eq!(started(&world), 0);
    assert_eq!(facts(&world, "plan.invalid").len(), 4);
    world.replays();
}

#[test]
fn prose_fences_and_commas_do_no_harm() {
    let plain = plan(&[good()]);
    let commas = plain.replace("}]", "},\n]");
    let as_text = plain.replace(
        &good()["input"].to_string(),
        &Value::String(good()["input"].to_string()).to_string(),
    );
    for text in [
        format!("Sure! Here {{is}} the plan:\n\n```json\n{plain}\n```\n\nShall I?"),
        commas,
        as_text,
        plain.replace("\"1\"", "1"),
    ] {
        let world = World::new(&(reply("plan", &text, "") + &summary("ok")));
        let said = run(&world, &[]);
        assert_eq!(said.code, Some(0), "{text}: {said:#?}");
        assert_eq!(world.file("good.txt"), "good\n");
    }
}

fn policy(world: &World, text: &str) {
    fs::create_dir_all(world.path("home")).unwrap();
    fs::write(world.path("home/policy.toml"), text).unwrap();
}

const DENIES: &str =
    "[[rule]]\ndecide = \"deny\"\nwhy = \"not on my machine\"\npath = \"secret.txt\"\n";

#[test]
fn what_the_policy_prohibits_is_no_plan() {
    let bad = plan(&[good(), write("2", "secret.txt", "x", &[])]);
    let script = reply("plan", &bad, "")
        + &reply(
            "plan",
            &plan(&[good()]),
            "when = 'step 2 .`write`. is not allowed: .*not on my machine'",
        )
        + &summary("ok");
    let world = World::new(&script);
    policy(&world, DENIES);
    run(&world, &[]).exits(0);
    assert_eq!(world.file("secret.txt"), "");
    // In a mode that changes nothing, neither is a change.
    let world = World::new(&reply("plan", &plan(&[good()]), "repeat = 4"));
    let arguments = ["run", GOAL, "--loop", "plan", "--approve", "read-only"];
    world.gyrus(&arguments).exits(1).says("is not allowed");
    assert_eq!(started(&world), 0);
}

/// The plan was right when it was made; the step is judged again when its turn comes.
#[test]
fn a_step_is_judged_again_when_it_runs() {
    let world = planned(&[write("1", "secret.txt", "x", &[])]);
    run(&world, &["--review", "plan", "--on-ask", "park"]).exits(5);
    world.gyrus(&["approve", "last"]).exits(0);
    policy(&world, DENIES);
    world
        .gyrus(&["resume", "last"])
        .exits(1)
        .says("not on my machine");
    assert_eq!(
        (world.file("secret.txt").as_str(), started(&world)),
        ("", 0)
    );
    assert_eq!(
        timeline(&world),
        ["task.request", "task.plan", "task.step 1", "task.error"]
    );
}

/// A call that contains what a step returned is judged as it is called.
#[test]
fn a_filled_in_path_is_judged_as_what_it_is() {
    let world = planned(&[
        step("1", "glob", json!({"pattern": "*.list", "path": "."}), &[]),
        write("2", "{{1.output}}", "x", &[]),
    ]);
    policy(
        &world,
        "[[rule]]\ndecide = \"deny\"\nwhy = \"not lists\"\npath = \"*.list\"\n",
    );
    fs::write(world.work().join("a.list"), "kept\n").unwrap();
    run(&world, &[]).exits(1).says("not lists");
    assert_eq!(world.file("a.list"), "kept\n");
    // Two names are not a path.
    fs::write(world.work().join("b.list"), "kept\n").unwrap();
    world
        .gyrus(&[
            "run",
            GOAL,
            "--loop",
            "plan",
            "--approve",
            "auto",
            "--workdir",
            ".",
        ])
        .exits(1)
        .says("looks like a command line, not like a path");
    assert_eq!(fs::read_dir(world.work()).unwrap().count(), 2);
}
