//! `gyrus setup ADDRESS`: servers as they really are, and what is kept of them.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    process::{Command, Stdio},
    sync::mpsc,
};

use serde_json::{Value, json};

use crate::{
    provider::{Provider, Says, call, words},
    support::{Said, THREE_STEPS, World, said},
};

fn without_model(world: &World, arguments: &[&str]) -> Command {
    let mut command = world.command(arguments);
    command.env_remove("GYRUS_MODEL");
    command
}

fn setup(world: &World, address: &str) -> Said {
    let mut command = without_model(world, &["setup", address]);
    said(command.output().unwrap())
}

fn run(world: &World) -> Said {
    let mut command = without_model(world, &["run", "go", "--max-steps", "2"]);
    said(command.output().unwrap())
}

fn asks_for_the_call(body: &Value) -> bool {
    body["messages"].to_string().contains("seven pieces")
}

const CALL: &str = r#"{"name": "put_into_basket", "arguments": {"fruit": "quince", "pieces": 7}}"#;

/// A reply in words whose prompt has so many tokens.
fn counted(text: &str, tokens: usize) -> Says {
    let chunks = [
        json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 9}}),
    ];
    let mut body: String = chunks.iter().map(|it| format!("data: {it}\n\n")).collect();
    body.push_str("data: [DONE]\n\n");
    Says::Answer(200, "text/event-stream", body)
}

fn measured(world: &World) -> Value {
    let text = fs::read_to_string(world.path("home/measured.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    all.as_object().unwrap().values().next().unwrap().clone()
}

#[test]
fn a_server_that_writes_calls_as_text_is_set_up_by_its_address() {
    let world = World::new(THREE_STEPS);
    let provider = Provider::start(|_, body| {
        if asks_for_the_call(body) {
            counted(&format!("```json\n{CALL}\n```"), body.to_string().len() / 4)
        } else {
            counted("yes", body.to_string().len() / 4)
        }
    });
    let root = provider.address.strip_suffix("/v1").unwrap();
    setup(&world, root)
        .exits(0)
        .says("tool calls           yes\n")
        .says("answers and calls tools")
        .says("runs ask ");
    let config = fs::read_to_string(world.path("home/config.toml")).unwrap();
    let model = format!("model = \"{}\"", provider.model());
    assert!(config.contains(&model), "{config}");
    assert_eq!(measured(&world)["calls"], "native");
    run(&world).exits(0);
    let asked = provider.asked.lock();
    assert!(asked.last().unwrap().get("tools").is_some());
}

#[test]
fn tools_that_a_server_drops_are_described_in_the_prompt() {
    let world = World::new(THREE_STEPS);
    let provider = Provider::start(|_, body| {
        let told = body["messages"].to_string();
        let has_tools = told.contains("Schema of its arguments");
        if has_tools && asks_for_the_call(body) {
            counted(CALL, told.len() / 4)
        } else {
            counted("I have no tools.", told.len() / 4)
        }
    });
    setup(&world, &provider.model())
        .exits(0)
        .says("its server seems to leave tools out")
        .says("calls tools that its prompt describes");
    assert_eq!(measured(&world)["calls"], "prompted");
    run(&world).exits(0);
    let asked = provider.asked.lock();
    let last = asked.last().unwrap();
    assert!(last.get("tools").is_none() && last.to_string().contains("Schema of its arguments"));
}

#[test]
fn a_model_that_calls_only_when_bound_is_bound() {
    let world = World::new(THREE_STEPS);
    let provider = Provider::start(|_, body| {
        let schema = body["response_format"].to_string();
        if schema.contains("put_into_basket") {
            words(CALL)
        } else if body.to_string().contains("Result of read") {
            words(r#"{"answer": "hi"}"#)
        } else if schema.contains("shell") {
            words(r#"{"tool": "read", "arguments": {"path": "."}}"#)
        } else {
            words("Let us talk.")
        }
    });
    setup(&world, &provider.address).exits(0);
    assert_eq!(measured(&world)["calls"], "bound");
    assert_eq!(run(&world).exits(0).out, "hi\n");
}

#[test]
fn the_window_is_read_wherever_a_server_names_it() {
    let listed = |more: Value| {
        let mut model = json!({"id": "tiny", "object": "model"});
        let fields = more.as_object().unwrap().clone();
        model.as_object_mut().unwrap().extend(fields);
        json!({"data": [model]})
    };
    let plain = || listed(json!({}));
    for (name, path, page, window) in [
        (
            "llama.cpp, its properties",
            "/props",
            json!({"default_generation_settings": {"n_ctx": 4096}}),
            4_096,
        ),
        (
            "llama.cpp, its list",
            "/v1/models",
            listed(json!({"meta": {"n_ctx": 6000, "n_ctx_train": 32768}})),
            6_000,
        ),
        (
            "llama.cpp, as trained",
            "/v1/models",
            listed(json!({"meta": {"n_ctx_train": 32768}})),
            32_768,
        ),
        (
            "LM Studio, loaded",
            "/api/v0/models",
            listed(json!({"loaded_context_length": 7000, "max_context_length": 90000})),
            7_000,
        ),
        (
            "LM Studio, not loaded",
            "/api/v0/models",
            listed(json!({"max_context_length": 90000})),
            90_000,
        ),
        (
            "vLLM",
            "/v1/models",
            listed(json!({"max_model_len": 8000})),
            8_000,
        ),
        (
            "Ollama behind the Chat protocol",
            "/api/ps",
            json!({"models": [{"name": "tiny", "context_length": 5000}]}),
            5_000,
        ),
        (
            "others",
            "/v1/models",
            listed(json!({"context_length": 9000})),
            9_000,
        ),
        (
            "still others",
            "/v1/models",
            listed(json!({"context_window": 9001})),
            9_001,
        ),
    ] {
        let world = World::new(THREE_STEPS);
        let plain = plain();
        let pages = move |asked: &str| {
            let asked = asked.split('?').next().unwrap();
            let page = match asked {
                _ if asked == path => &page,
                "/v1/models" => &plain,
                _ => return Some(Says::Answer(404, "text/plain", "not found".to_owned())),
            };
            Some(Says::Answer(200, "application/json", page.to_string()))
        };
        let provider = Provider::with_pages(pages, |_, _| words("Hello."));
        for model in [provider.model(), provider.address.clone()] {
            let mut command = without_model(&world, &["models", "--json"]);
            command.env("GYRUS_MODEL", &model);
            let said = said(command.output().unwrap()).exits(0);
            let first: Value = serde_json::from_str(said.out.lines().next().unwrap()).unwrap();
            assert_eq!(first["models"][0]["window"], window, "{name}: {first}");
        }
    }
}

#[test]
fn a_slow_server_is_waited_for() {
    let world = World::new(THREE_STEPS);
    let (go, wait) = mpsc::channel::<()>();
    let provider = Provider::start(move |number, _| {
        if number == 0 {
            wait.recv().unwrap();
        }
        match number {
            1 => call("put_into_basket", &json!({"fruit": "quince", "pieces": 7})),
            _ => words("yes"),
        }
    });
    let mut command = without_model(&world, &["setup", &provider.address]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut heard = String::new();
    while !heard.contains("asking ") {
        assert_ne!(err.read_line(&mut heard).unwrap(), 0, "{heard}");
    }
    go.send(()).unwrap();
    err.read_to_string(&mut heard).unwrap();
    assert!(child.wait().unwrap().success(), "{heard}");
    assert!(heard.contains("answers and calls tools"), "{heard}");
    assert!(heard.contains("tokens a second"), "{heard}");
}

#[test]
fn an_address_that_leads_to_no_model_says_why_and_what_to_do() {
    let world = World::new(THREE_STEPS);
    let page = |status, kind: &'static str, body: &'static str| {
        Provider::with_pages(
            move |_| Some(Says::Answer(status, kind, body.to_owned())),
            |_, _| words("never asked"),
        )
        .address
    };
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let beside = page(
        200,
        "application/json",
        r#"{"data": [{"id": "text-embedding-nomic"}]}"#,
    );
    let two = page(
        200,
        "application/json",
        r#"{"data": [{"id": "one"}, {"id": "two"}]}"#,
    );
    let cases = [
        (
            "http://".to_owned(),
            2,
            "invalid address",
            "http://127.0.0.1:8080",
        ),
        (
            "ftp://host".to_owned(),
            2,
            "`ftp` is not spoken here",
            "write it like",
        ),
        (
            "opnrouter".to_owned(),
            2,
            "invalid address `opnrouter`",
            "--provider NAME",
        ),
        (
            closed.clone(),
            7,
            "no server answers at",
            "start the server",
        ),
        (
            closed.replace("http://", ""),
            7,
            "no server answers at http://",
            "8080",
        ),
        (
            page(200, "text/html", "<html>welcome</html>"),
            2,
            "lists no models",
            "ends in /v1",
        ),
        (
            page(404, "text/plain", "no such page"),
            2,
            "no such page",
            "ends in /v1",
        ),
        (
            page(401, "text/plain", "who?"),
            7,
            "wants a key",
            "models.toml",
        ),
        (
            page(200, "application/json", r#"{"data": []}"#),
            2,
            "has no model",
            "load a model",
        ),
        (beside, 2, "has no model", "load a model"),
        (two.clone(), 2, "has 2 models: one, two", "/v1#one"),
        (format!("{two}#twp"), 2, "has no model `twp`", "/v1#two"),
    ];
    for (address, code, what, hint) in cases {
        let said = setup(&world, &address).exits(code).says(what).says(hint);
        assert!(said.err.contains("hint") || said.err.lines().count() >= 2);
        assert!(!world.path("home/config.toml").exists(), "{address}");
    }
    // An answer to the list is not yet a model that works.
    let refusing = Provider::start(|_, _| Says::Answer(500, "text/plain", "broken".to_owned()));
    setup(&world, &refusing.address)
        .exits(7)
        .says("broken")
        .says("nothing was stored");
    assert!(!world.path("home/config.toml").exists());
}
