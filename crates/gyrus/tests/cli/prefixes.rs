//! Requests to a model only grow: over cycles, turns of a session, steering, limits and resumes, each
//! begins with the one before.

use serde_json::{Value, json};

use crate::{
    provider::{Provider, call, words},
    support::{THREE_STEPS, World},
};

/// Calls of a turn before its answer.
const CALLS: usize = 3;

/// Asserts that each request begins with the messages of the one before, and offers the same tools.
fn grow_only(asked: &[Value]) {
    for (number, pair) in asked.windows(2).enumerate() {
        let messages = |at: usize| pair[at]["messages"].as_array().unwrap();
        let (before, after) = (messages(0), messages(1));
        assert!(after.len() > before.len(), "request {}", number + 1);
        for (index, (one, other)) in before.iter().zip(after).enumerate() {
            assert_eq!(one, other, "message {index} of request {}", number + 1);
        }
        assert_eq!(pair[0]["tools"], pair[1]["tools"], "request {}", number + 1);
    }
}

#[test]
fn a_session_only_grows() {
    let world = World::new(THREE_STEPS);
    std::fs::write(world.path("work/AGENTS.md"), "Be brief.\n").unwrap();
    let provider = Provider::start(|number, _| match number % (CALLS + 1) {
        CALLS => words("It holds three lines."),
        step => call(
            "read",
            &json!({"path": "AGENTS.md", "offset_line": step + 1}),
        ),
    });
    let model = provider.model();
    let run = |more: &[&str]| {
        let arguments = ["run", "--model", &model, "--workdir", "."];
        world.gyrus(&[&arguments, more].concat())
    };
    run(&["how long is it?"]).exits(0);
    run(&["-c", "and in French?"]).exits(0);
    // It stops in the middle of a turn, hears something, and goes on.
    run(&["-c", "and now?", "--max-steps", "2"]).exits(3);
    world.gyrus(&["steer", "last", "count twice"]).exits(0);
    world
        .gyrus(&["resume", "last", "--max-steps", "9"])
        .exits(0);
    run(&["-c", "thanks"]).exits(0);

    let asked = provider.asked.lock();
    assert_eq!(asked.len(), 4 * (CALLS + 1));
    grow_only(&asked);
    // What a person says is a message of its own, where it was said.
    let last = asked.last().unwrap()["messages"].as_array().unwrap();
    let said: Vec<usize> = [
        "how long is it?",
        "in French?",
        "and now?",
        "count twice",
        "thanks",
    ]
    .map(|text| {
        let holds = |message: &Value| message.to_string().contains(text);
        last.iter().position(holds).unwrap()
    })
    .into();
    assert!(said.is_sorted_by(|one, other| one < other), "{said:?}");
    let is_told =
        |message: &&Value| message["role"] == "user" && message.to_string().contains("Be brief.");
    assert_eq!(
        last.iter().filter(is_told).count(),
        1,
        "guidelines come once"
    );
}

/// Returns the share of the requests that was the beginning of an earlier request, in bytes: what a
/// provider that keeps beginnings reads for little.
fn shared(asked: &[Value]) -> f64 {
    // Tools stand before messages in what a model reads.
    let text = |request: &Value| {
        let messages = request["messages"].as_array().unwrap();
        let messages: String = messages.iter().map(Value::to_string).collect();
        format!("{}{messages}", request["tools"])
    };
    let texts: Vec<String> = asked.iter().map(text).collect();
    let common = |one: &str, other: &str| {
        let bytes = one.bytes().zip(other.bytes());
        bytes.take_while(|(one, other)| one == other).count()
    };
    let again: usize = (1..texts.len())
        .map(|at| {
            let before = texts[..at].iter();
            before.map(|one| common(one, &texts[at])).max().unwrap_or(0)
        })
        .sum();
    again as f64 / texts[1..].iter().map(String::len).sum::<usize>() as f64
}

#[test]
fn phases_and_a_judge_share_what_was_sent() {
    let world = World::new(THREE_STEPS);
    std::fs::write(world.path("work/notes.md"), "Some note.\n".repeat(30)).unwrap();
    let read = || call("read", &json!({"path": "notes.md"}));
    let provider = Provider::start(move |number, _| match number {
        0 | 1 => read(),
        2 => words("1. look 2. submit"),
        // What was told later is rejected first.
        12 | 22 => call("submit", &json!({"summary": "It holds."})),
        23 => words("Reading found it."),
        _ => call(
            "shell",
            &json!({"command": format!("seq {number} {}; touch done", number + 200)}),
        ),
    });
    let arguments = [
        "run",
        "--model",
        &provider.model(),
        "--workdir",
        ".",
        "--approve",
        "auto",
        "--loop",
        "engineer",
        "--judge",
        "test -e twice || { touch twice; false; }",
        "make it hold",
    ];
    world.gyrus(&arguments).exits(0);
    let asked = provider.asked.lock();
    assert_eq!(asked.len(), 24);
    let shared = shared(&asked);
    eprintln!("{shared:.3} of what a judged run sent was the beginning of an earlier request");
    assert!(shared > 0.9, "{shared}");
    grow_only(&asked);
}
