//! Models over a real wire: what a person sees when one answers, and when it does not.

use gyrus_kernel::Entry;
use serde_json::json;

use crate::{
    journal,
    provider::{Provider, Says, call, event, refusal, words},
    support::{Said, THREE_STEPS, World},
};

fn ask(world: &World, provider: &Provider, more: &[&str]) -> Said {
    let model = provider.model();
    let arguments = ["run", "say hello", "--model", &model];
    world.gyrus(&[&arguments, more].concat())
}

fn finish() -> Says {
    call("finish", &json!({"reached": true, "answer": "hello"}))
}

#[test]
fn a_compatible_server_reaches_the_goal() {
    let world = World::new(THREE_STEPS);
    let provider = Provider::start(|number, _| match number {
        0 => call("read", &json!({"path": "."})),
        _ => finish(),
    });
    let said = ask(&world, &provider, &[]).exits(0);
    assert_eq!(said.out, "hello\n");
    let asked = provider.asked.lock();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0]["model"], "tiny");
    assert_eq!(asked[0]["stream"], true);
    let last = asked[1]["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "tool", "the call has its result");
}

#[test]
fn an_answer_in_words_ends_the_work_at_once() {
    for (strategy, questions) in [("react", 1), ("chain-of-thought", 2), ("single-shot", 1)] {
        let world = World::new(THREE_STEPS);
        let provider = Provider::start(|_, _| words("7 × 6 is 42."));
        let said = ask(&world, &provider, &["--loop", strategy]).exits(0);
        assert_eq!(said.out, "7 × 6 is 42.\n", "{strategy}");
        let Some(Entry::RunEnded(ended)) = journal::entries(&world).pop() else {
            panic!("it has not ended");
        };
        let reached = format!("{:?}", ended.ending);
        assert!(reached.contains("Answered"), "{reached}");
        let asked = provider.asked.lock().len();
        assert_eq!(asked, questions, "{strategy}");
    }
}

#[test]
fn words_that_are_no_answer_are_asked_about_once_with_the_call_bound() {
    for no_answer in [
        "I will read the file now.",
        "```json\n{\"tool\": \"read\", \"arguments\": {\"path\"",
        "[no call was read from that reply; one call is expected now]",
    ] {
        let world = World::new(THREE_STEPS);
        let provider = Provider::start(move |number, _| match number {
            0 => words(no_answer),
            1 => call("read", &json!({"path": "."})),
            _ => words("It is empty."),
        });
        let said = ask(&world, &provider, &[]).exits(0).says("■ answered");
        assert_eq!(said.out, "It is empty.\n");
        let asked = provider.asked.lock();
        assert_eq!(asked[0].get("tool_choice"), None);
        assert_eq!(asked[1]["tool_choice"], "required", "{no_answer}");
        drop(asked);
        // Without any call it is no answer, however often it is said.
        let world = World::new(THREE_STEPS);
        let provider = Provider::start(move |_, _| words(no_answer));
        ask(&world, &provider, &[]).exits(6);
        assert_eq!(provider.asked.lock().len(), 2);
    }
}

#[test]
fn an_answer_after_a_failure_is_no_success() {
    let world = World::new(THREE_STEPS);
    let provider = Provider::start(|number, _| match number {
        0 => call("read", &json!({"path": "missing.txt"})),
        _ => words("All is well."),
    });
    let said = ask(&world, &provider, &[]).exits(4);
    assert_eq!(said.out, "All is well.\n");
    said.says("but `read` failed last");
    // The words were asked about once, with a call bound.
    let asked = provider.asked.lock();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[2]["tool_choice"], "required");
}

#[test]
fn a_claim_without_a_deed_is_an_answer() {
    let world = World::new(THREE_STEPS);
    let provider = Provider::start(|_, _| finish());
    ask(&world, &provider, &[]).exits(0).says("■ answered");
    let said = ask(&world, &provider, &["--require", "claimed"]).exits(1);
    said.says("only answered");
}

#[test]
fn calls_are_read_however_they_are_written() {
    for written in [
        "```json\n{\"name\": \"write\", \"arguments\": {\"path\": \"a.txt\", \"content\": \"x\"}}\n```",
        "<tool_call>{\"name\": \"functions.write\", \"arguments\": {\"path\": \"a.txt\", \"content\": \"x\"}}",
        "{\"write\": {\"path\": \"a.txt\", \"content\": \"x\", \"why\": \"it was asked for\"}}",
    ] {
        let world = World::new(THREE_STEPS);
        let provider = Provider::start(move |number, _| match number {
            0 => words(written),
            _ => words("Done."),
        });
        ask(&world, &provider, &["--approve", "auto"]).exits(0);
        let path = world.path("work/a.txt");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "x", "{written}");
        world.replays();
    }
}

#[test]
fn a_model_that_says_nothing_is_reminded_and_then_a_person_is_told() {
    let world = World::new(THREE_STEPS);
    let provider = Provider::start(|_, _| words(" "));
    ask(&world, &provider, &[])
        .exits(6)
        .says("without calling a tool")
        .says("gyrus steer");
}

#[test]
fn a_wrong_key_an_empty_account_and_a_missing_model() {
    let world = World::new(THREE_STEPS);
    for (status, code, message, says) in [
        (
            401,
            "invalid_api_key",
            "Incorrect API key provided",
            "the key",
        ),
        (
            429,
            "insufficient_quota",
            "You exceeded your current quota",
            "quota",
        ),
        (
            404,
            "model_not_found",
            "The model `tiny` does not exist",
            "does not exist",
        ),
    ] {
        let provider = Provider::start(move |_, _| refusal(status, code, message));
        let said = ask(&world, &provider, &[]).exits(7).says(says);
        assert!(said.err.contains("gyrus resume"), "{}", said.err);
        assert_eq!(
            provider.asked.lock().len(),
            1,
            "asked again in vain: {code}"
        );
    }
}

#[test]
fn a_network_that_dies_in_the_middle_is_asked_again() {
    let world = World::new(THREE_STEPS);
    let provider = Provider::start(|number, _| match number {
        0 => Says::Dies(event(&json!({
            "index": 0, "finish_reason": null,
            "delta": {"role": "assistant", "content": "I begin"}
        }))),
        1 => Says::Dies(event(&json!({
            "index": 0, "finish_reason": null,
            "delta": {"tool_calls": [{"index": 0, "id": "c", "type": "function",
                "function": {"name": "shell", "arguments": "{\"command\": \"touch half"}}]}
        }))),
        _ => finish(),
    });
    let said = ask(&world, &provider, &[]).exits(0);
    assert!(said.err.contains("attempt 1"), "{}", said.err);
    assert_eq!(world.file("half"), "");
    assert!(
        !world.work().join("half").exists(),
        "half a call was executed"
    );
}

#[test]
fn nobody_there_and_nobody_named() {
    let world = World::new(THREE_STEPS);
    world
        .gyrus(&["run", "go", "--model", "anthropic"])
        .exits(2)
        .says("ANTHROPIC_API_KEY")
        .says("gyrus setup");
    world
        .gyrus(&["run", "go", "--model", "anthropik/x"])
        .exits(2)
        .says("did you mean `anthropic`?");
    let said = world.gyrus(&["run", "go", "--model", "nope"]).exits(2);
    assert!(!said.err.contains("did you mean"), "{}", said.err);
    world
        .gyrus(&["run", "go", "--model", "http://127.0.0.1:1/v1#tiny"])
        .exits(7);
}

/// Models and servers are told of by the same words, before anything is sent.
#[test]
fn roots_that_are_not_there_are_an_error_for_everyone() {
    let world = World::new(THREE_STEPS);
    std::fs::create_dir_all(world.path("home")).unwrap();
    std::fs::write(
        world.path("home/config.toml"),
        "[mcp.far]\nurl = \"https://127.0.0.1:1/mcp\"\n",
    )
    .unwrap();
    let names_nothing = |arguments: &[&str]| {
        let mut command = world.command(arguments);
        command.env("SSL_CERT_FILE", "/dev/null");
        let said = crate::support::said(command.output().unwrap());
        let all = said.out.clone() + &said.err;
        let words = "no root certificate is found in `/dev/null`, which SSL_CERT_FILE names";
        assert!(all.contains(words), "{arguments:?}: {all}");
        said
    };
    names_nothing(&["run", "go", "--model", "https://127.0.0.1:1/v1#tiny"]).exits(7);
    names_nothing(&["mcp", "list"]);
}

#[test]
fn a_key_is_stored_found_and_never_shown() {
    let world = World::new(THREE_STEPS);
    let provider = Provider::start(|_, _| finish());
    let mut command = world.command(&["setup", "--provider", "openrouter", "--key-stdin"]);
    command
        .env_remove("GYRUS_MODEL")
        .env("OPENROUTER_BASE_URL", &provider.address)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"sk-or-secret-1234\n").unwrap();
    let said = crate::support::said(child.wait_with_output().unwrap());
    assert!(!said.err.contains("sk-or-secret") && !said.out.contains("sk-or-secret"));
    let config = std::fs::read_to_string(world.path("home/config.toml")).unwrap();
    assert!(config.contains("OPENROUTER_API_KEY") && !config.contains("sk-or-secret"));
    // The next run finds it by the configuration alone.
    let mut command = world.command(&["run", "go"]);
    command
        .env_remove("GYRUS_MODEL")
        .env("OPENROUTER_BASE_URL", &provider.address);
    let said = crate::support::said(command.output().unwrap());
    assert!(said.err.contains("openrouter/tiny"), "{}", said.err);
    said.exits(0);
}

#[test]
fn a_key_is_proven_before_it_is_stored() {
    let world = World::new(THREE_STEPS);
    let config = "[keys]\nOPENROUTER_API_KEY = { command = \"echo working\" }\n";
    std::fs::create_dir_all(world.path("home")).unwrap();
    std::fs::write(world.path("home/config.toml"), config).unwrap();
    let refusing = Provider::start(|_, _| Says::Answer(401, "application/json", "{}".to_owned()));
    for flag in ["--key-env", "--key-command"] {
        let mut command = world.command(&["setup", "--provider", "openrouter", flag]);
        command
            .arg(if flag == "--key-env" {
                "NO_SUCH_VARIABLE"
            } else {
                "echo wrong"
            })
            .env_remove("GYRUS_MODEL")
            .env("OPENROUTER_BASE_URL", &refusing.address);
        let said = crate::support::said(command.output().unwrap());
        assert_ne!(said.code, Some(0), "{said:?}");
        let now = std::fs::read_to_string(world.path("home/config.toml")).unwrap();
        assert_eq!(now, config, "{flag}");
        let said = said.says("nothing was stored");
        if flag == "--key-command" {
            said.says("sandbox: ");
        }
    }
}

#[test]
fn models_are_listed_and_measured() {
    let world = World::new(THREE_STEPS);
    let provider = Provider::start(|_, _| words("yes"));
    let model = provider.model();
    let said = world.gyrus(&["models", "check", &model]).exits(0);
    assert!(said.out.contains("answers"), "{}", said.out);
    assert!(said.out.contains("tool calls"), "{}", said.out);
    assert!(said.out.contains("no:"), "it only talks: {}", said.out);
    assert!(world.path("home/measured.json").exists());
    let mut command = world.command(&["models"]);
    command.env("GYRUS_MODEL", &model);
    let said = crate::support::said(command.output().unwrap()).exits(0);
    assert!(said.out.contains("measured"), "{}", said.out);
    // A model that calls no tools is driven by prompted ones from now on.
    world
        .gyrus(&["run", "go", "--model", &model, "--max-steps", "1"])
        .exits(0);
    let asked = provider.asked.lock();
    assert!(
        asked.last().unwrap().get("tools").is_none(),
        "{:?}",
        asked.last()
    );
}

#[test]
fn a_prompt_that_is_too_long_waits_for_a_model_that_takes_it() {
    let world = World::new(THREE_STEPS);
    let small =
        Provider::start(|_, _| refusal(400, "context_length_exceeded", "the prompt is too long"));
    ask(&world, &small, &["--loop", "single-shot"])
        .exits(7)
        .says("too long")
        .says("--model NAME");
    world.gyrus(&["replay", "last"]).exits(0);
    let large = Provider::start(|_, _| words("hello"));
    let said = world
        .gyrus(&["resume", "last", "--model", &large.model()])
        .exits(0);
    assert_eq!(said.out, "hello\n");
    assert!(said.err.contains(&large.address.replace("/v1", "")) || said.err.contains("tiny"));
    world.gyrus(&["replay", "last"]).exits(0);
}

#[test]
fn half_an_answer_is_no_answer() {
    let world = World::new(THREE_STEPS);
    let provider = Provider::start(|_, _| {
        crate::provider::stream(
            &[json!({"role": "assistant", "content": "It is because"})],
            "length",
        )
    });
    ask(&world, &provider, &["--loop", "single-shot"])
        .exits(1)
        .says("cut off");
}

#[test]
fn a_quota_that_returns_later_is_waited_for() {
    let world = World::new(THREE_STEPS);
    let provider = Provider::start(move |number, _| match number {
        0 => Says::Limited(7_200),
        _ => words("Here."),
    });
    let model = provider.model();
    let arguments = ["run", "--model", &model, "--workdir", ".", "hello"];
    // A run that may park does, until the quota is there again.
    let parked = world.gyrus(&[&arguments[..], &["--on-ask", "park"]].concat());
    let parked = parked.exits(5);
    assert!(
        parked.err.contains("it is asked again at "),
        "{}",
        parked.err
    );
    assert!(
        parked.err.contains("the run waits until "),
        "{}",
        parked.err
    );
    assert_eq!(provider.asked.lock().len(), 1);
    // Whoever knows better goes on at once.
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(provider.asked.lock().len(), 2);
    world.replays();
}

#[test]
fn the_effort_of_thinking_is_said_and_kept() {
    let world = World::new(THREE_STEPS);
    let provider = Provider::start(|_, _| words("Hello."));
    let model = provider.model();
    let arguments = ["run", "--model", &model, "--workdir", ".", "hello"];
    let run = |more: &[&str]| world.gyrus(&[&arguments[..], more].concat());
    let effort = || {
        let asked = provider.asked.lock();
        asked.last().unwrap()["reasoning_effort"].clone()
    };
    run(&[]).exits(0);
    assert_eq!(effort(), json!(null), "the model's own");
    run(&["--effort", "low"]).exits(0);
    assert_eq!(effort(), json!("low"));
    let config = world.path("home/config.toml");
    std::fs::write(config, "effort = \"high\"\n").unwrap();
    run(&[]).exits(0);
    assert_eq!(effort(), json!("high"));
    run(&["--effort", "much"])
        .exits(2)
        .says("write none, low, medium, high or max");
}
