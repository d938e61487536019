//! Answers in a form that a program reads (`--answer-schema`).

use serde_json::json;

use crate::{server::Server, support::World};

const SCHEMA: &str = r#"{"type": "object", "properties": {"lines": {"type": "integer"}}, "required": ["lines"], "additionalProperties": false}"#;

/// Answers in words first, then with a wrong field, then as it should, in a fence.
const AT_LAST: &str = r#"
[[reply]]
when = "It must be JSON that fits this JSON Schema"
calls = [{ tool = "finish", arguments = { reached = true, answer = "three" } }]
[[reply]]
when = "It is not JSON"
calls = [{ tool = "finish", arguments = { reached = true, answer = "{\"lines\": \"3\"}" } }]
[[reply]]
when = "- `lines` must be of type integer"
calls = [{ tool = "finish", arguments = { reached = true, answer = "```json\n{\"lines\": 3}\n```" } }]
"#;

#[test]
fn what_does_not_fit_goes_back_and_the_answer_is_json() {
    let world = World::new(AT_LAST);
    let said = world.run(&["--answer-schema", SCHEMA]).exits(0);
    assert_eq!(said.out, "{\"lines\":3}\n");
    assert!(
        said.err.contains("■ answered"),
        "a form proves nothing: {}",
        said.err
    );
    world.replays();
    std::fs::write(world.work().join("schema.json"), SCHEMA).unwrap();
    let said = world.run(&["--output-schema", "schema.json"]).exits(0);
    assert_eq!(said.out, "{\"lines\":3}\n");
}

#[test]
fn a_model_that_never_keeps_to_the_form_fails() {
    let words = "[[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \
                 \"three\" } }]\n";
    let world = World::new(&words.repeat(4));
    let said = world.run(&["--answer-schema", SCHEMA]).exits(1);
    assert_eq!(said.out, "");
    said.says("sent back 3 times").says("It is not JSON");
    // Not reaching the goal has no form.
    let world = World::new(
        "[[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = false, answer = \"no \
         file\" } }]\n",
    );
    world
        .run(&["--answer-schema", SCHEMA])
        .exits(1)
        .says("no file");
}

#[test]
fn a_loop_that_answers_in_words_keeps_to_the_form() {
    let world = World::new(
        "[[reply]]\ntext = \"It has three lines.\"\n[[reply]]\nwhen = \"It is not JSON\"\ntext = \
         \"{\\\"lines\\\": 3}\"\n",
    );
    let said = world
        .run(&["--answer-schema", SCHEMA, "--loop", "single-shot"])
        .exits(0);
    assert_eq!(said.out, "{\"lines\":3}\n");
}

#[test]
fn schemas_that_cannot_be_used_are_refused() {
    let world = World::new("");
    let long = format!("{{\"title\": \"{}\"}}", "x".repeat(70_000));
    for (schema, why) in [
        ("no-such-file.json", "No such file"),
        (".", "directory"),
        ("{", "EOF"),
        (
            "{\"pattern\": \"x\"}",
            "`pattern` is not one that is checked",
        ),
        ("{\"$ref\": \"#/nowhere\"}", "leads nowhere"),
        (long.as_str(), "at most 65536 bytes"),
    ] {
        world.run(&["--answer-schema", schema]).exits(2).says(why);
    }
    assert!(world.runs().is_empty());
}

#[test]
fn a_program_asks_for_a_form_over_http() {
    let world = World::new(AT_LAST);
    let server = Server::start(&world);
    let accepted = server.run("count", &json!({"answer-schema": SCHEMA}));
    let ended = server.wait_for_end(&accepted);
    assert_eq!(ended["stage"]["code"], 0, "{ended:#}");
    let run = accepted["run"].as_str().unwrap();
    let shown = server.get(&format!("/api/runs/{run}")).is(200).json();
    assert_eq!(shown["answer"], "{\"lines\":3}");
    let body = json!({"goal": "x", "workdir": world.work(), "options": {"answer-schema": "{"}});
    let refused = server.post("/api/runs", &body).is(400).json();
    assert!(
        refused["error"].as_str().unwrap().contains("answer-schema"),
        "{refused:#}"
    );
}
