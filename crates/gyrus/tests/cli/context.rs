//! The window of a model: where a run works, its tools, and a session that is summarised.

use std::fs;

use serde_json::{Value, json};

use crate::{
    provider::{Provider, call, words},
    support::{THREE_STEPS, World},
};

fn told(body: &Value) -> String {
    body["messages"].to_string()
}

#[test]
fn a_session_is_told_once_where_it_works_and_can_be_summarised() {
    let world = World::new(THREE_STEPS);
    fs::create_dir(world.path("work/.git")).unwrap();
    fs::write(world.path("work/.git/HEAD"), "ref: refs/heads/fix/one\n").unwrap();
    let long = "tea ".repeat(2_000);
    let provider = Provider::start(move |number, body| match number {
        _ if told(body).contains("Write the summary now") => {
            words(r#"{"summary": "They spoke of tea.", "open_steps": [], "constraints": []}"#)
        }
        0 => words(&long),
        _ => words("Yes."),
    });
    let model = provider.model();
    let run = |more: &[&str]| {
        let mut arguments = vec![
            "run",
            "--model",
            &model,
            "--workdir",
            ".",
            "--loop",
            "react",
        ];
        arguments.extend(more);
        world.gyrus(&arguments)
    };
    run(&["tell me of tea", "--compact"])
        .exits(2)
        .says("needs a session");
    run(&["tell me of tea"]).exits(0);
    run(&["-c", "is it good?"]).exits(0);
    let asked = || provider.asked.lock().clone();
    let second = told(&asked()[1]);
    assert_eq!(second.matches("You are in `").count(), 1, "{second}");
    assert!(second.contains("(git branch `fix/one`)"), "{second}");
    let context = world.gyrus(&["context", "--json"]).exits(0).out;
    let context: Value = serde_json::from_str(&context).unwrap();
    let size = |part: &str| {
        let parts = context["parts"].as_array().unwrap();
        let part = parts.iter().find(|it| it[0] == part).unwrap();
        part[1].as_u64().unwrap()
    };
    // The provider counts 100 tokens, whatever is sent.
    assert_eq!(context["tokens"], 100);
    assert!(
        size("the model's words and calls") > size("tools"),
        "{context}"
    );
    assert!(size("tools") > size("instructions") && size("results of tools") == 0);
    run(&["-c", "and now?", "--compact"]).exits(0);
    let last = told(asked().last().unwrap());
    assert!(last.contains("They spoke of tea.") && !last.contains("tea tea tea"));
    assert!(
        last.contains("tell me of tea"),
        "a person's words stay: {last}"
    );
    let summary = world.gyrus(&["context", "--summary"]).exits(0).out;
    assert_eq!(summary, "They spoke of tea.\n");
    fs::write(world.path("work/own.md"), "They spoke of green tea.\n").unwrap();
    fs::write(world.path("work/empty.md"), " \n").unwrap();
    run(&["-c", "more", "--summary", "empty.md"])
        .exits(2)
        .says("it is empty");
    run(&["more", "--summary", "own.md"])
        .exits(2)
        .says("needs a session");
    run(&["-c", "which tea?", "--summary", "own.md"]).exits(0);
    let last = told(asked().last().unwrap());
    assert!(last.contains("They spoke of green tea.") && !last.contains("They spoke of tea."));
    assert!(
        last.contains("tell me of tea") && last.contains("which tea?"),
        "{last}"
    );
}

#[test]
fn few_tools_are_offered_on_request_and_evidence_that_failed_is_not_taken() {
    let world = World::new(THREE_STEPS);
    let finish = || {
        let evidence = json!([{"what": "it is there", "at": "`cat missing.txt`"}]);
        call(
            "finish",
            &json!({"reached": true, "answer": "done", "evidence": evidence}),
        )
    };
    let provider = Provider::start(move |number, _| match number {
        0 => call("shell", &json!({"command": "cat missing.txt"})),
        _ => finish(),
    });
    let model = provider.model();
    let done = world.gyrus(&[
        "run",
        "--model",
        &model,
        "--workdir",
        ".",
        "--tools",
        "few",
        "--loop",
        "react",
        "look",
    ]);
    assert_eq!(done.code, Some(4), "{done:?}");
    assert!(
        done.err
            .contains("the evidence names `cat missing.txt`, which failed")
    );
    let asked = provider.asked.lock();
    assert_eq!(asked.len(), 3, "asked once more");
    assert_eq!(asked[0]["tools"].as_array().unwrap().len(), 5);
    assert!(told(&asked[2]).contains("Nothing was recorded"));
}
