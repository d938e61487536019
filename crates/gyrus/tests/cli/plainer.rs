//! A request that a model's server refuses is made plainer and sent again, once for each thing that
//! could be the reason; what helped is remembered for the model.

use std::fs;

use serde_json::{Value, json};

use crate::{
    provider::{Provider, Says, call, refusal, words},
    support::{THREE_STEPS, World},
};

/// A picture of one pixel.
const PIXEL: &[u8] = include_bytes!("../../../models/src/probe/number.png");

const VAGUE: &str = "Bad Request";

fn has(body: &Value, path: &str) -> bool {
    body.pointer(path).is_some_and(|value| !value.is_null())
}

fn has_picture(body: &Value) -> bool {
    body.to_string().contains("data:image/")
}

/// Whether a schema of a tool has this keyword, at any depth.
fn has_keyword(body: &Value, keyword: &str) -> bool {
    fn within(schema: &Value, keyword: &str) -> bool {
        match schema {
            Value::Object(fields) => fields.iter().any(|(name, inner)| {
                name == keyword && !inner.is_object() || within(inner, keyword)
            }),
            Value::Array(items) => items.iter().any(|item| within(item, keyword)),
            _ => false,
        }
    }
    let tools = body["tools"].as_array().into_iter().flatten();
    tools
        .filter_map(|tool| tool.pointer("/function/parameters"))
        .any(|schema| within(schema, keyword))
}

fn model(provider: &Provider) -> [String; 4] {
    ["--model", &provider.model(), "--workdir", "."].map(str::to_owned)
}

fn run(world: &World, provider: &Provider, more: &[&str]) -> crate::support::Said {
    let model = model(provider);
    let mut arguments = vec!["run"];
    arguments.extend(model.iter().map(String::as_str));
    arguments.extend(more);
    world.gyrus(&arguments)
}

fn assert_none_twice(asked: &[Value]) {
    for (index, body) in asked.iter().enumerate() {
        assert!(
            !asked[..index].contains(body),
            "request {index} was sent twice"
        );
    }
}

#[test]
fn a_picture_for_a_model_without_eyes_is_left_out_and_that_is_remembered() {
    let world = World::new(THREE_STEPS);
    fs::write(world.path("work/a.png"), PIXEL).unwrap();
    let provider = Provider::start(|_, body| {
        if has_picture(body) {
            refusal(
                500,
                "server_error",
                "image input is not supported - hint: mmproj",
            )
        } else {
            words("I cannot see it.")
        }
    });
    let asked = || provider.asked.lock().clone();
    let first = run(&world, &provider, &["what is this?", "--image", "a.png"]).exits(0);
    assert!(first.out.contains("I cannot see it."), "{}", first.out);
    assert_eq!(asked().len(), 2, "refused once, answered once");
    let sent = asked()[1].to_string();
    assert!(
        sent.contains("a picture is left out"),
        "the model is told: {sent}"
    );
    let told = "with no pictures";
    assert!(first.err.contains(told), "{}", first.err);
    // The next run knows.
    let second = run(&world, &provider, &["and this?", "--image", "a.png"]).exits(0);
    assert!(second.err.contains(told), "{}", second.err);
    assert_eq!(asked().len(), 3);
    world.replays();
}

/// A status, the words beside it, and whether a request has what they are about.
type Refused = (u16, &'static str, fn(&Value) -> bool);

/// Properties that servers refuse, in the words that they have for it: about half of them say nothing
/// useful.
#[rustfmt::skip]
const REFUSED: [Refused; 40] = [
    // Parameters.
    (400, "Unrecognized request argument supplied: stream_options", |it| has(it, "/stream_options")),
    (422, "Extra inputs are not permitted", |it| has(it, "/stream_options")),
    (422, VAGUE, |it| has(it, "/stream_options")),
    (400, "property 'include_usage' is unsupported", |it| has(it, "/stream_options/include_usage")),
    (400, "Unsupported parameter: 'max_tokens' is not supported", limit),
    (400, "max_tokens must be less than or equal to 4096", limit),
    (400, "`max_tokens` is too large: 8192. This model supports at most 4096 completion tokens", limit),
    (400, VAGUE, limit),
    (400, "Unrecognized request argument supplied: reasoning_effort", |it| has(it, "/reasoning_effort")),
    (400, "Unsupported value: 'reasoning_effort' does not support 'high' with this model", |it| has(it, "/reasoning_effort")),
    (400, "think value \"high\" is not supported for this model", |it| has(it, "/reasoning_effort")),
    (500, "reasoning_effort is not supported by this model", |it| has(it, "/reasoning_effort")),
    (400, VAGUE, |it| has(it, "/reasoning_effort")),
    // Tools.
    (400, "tiny does not support tools", |it| has(it, "/tools")),
    (404, "No endpoints found that support tool use", |it| has(it, "/tools")),
    (400, "`tool calling` is not supported with this model", |it| has(it, "/tools")),
    (400, "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set", |it| has(it, "/tools")),
    (500, "tools param requires --jinja flag", |it| has(it, "/tools")),
    (422, VAGUE, |it| has(it, "/tools")),
    (400, "Invalid 'tools': array too long. Expected at most 6", |it| tools(it) > 6),
    (400, "Invalid role: tool", |it| has_role(it, "tool")),
    (422, VAGUE, |it| has_role(it, "tool")),
    (400, "messages.2: 'tool_calls' is an unknown field", |it| it.to_string().contains("\"tool_calls\"")),
    // Schemas of tools.
    (400, "Invalid schema for function 'edit': default is not permitted", |it| has_keyword(it, "default")),
    (400, "Unknown name \"default\" at 'tools[0].function_declarations[0].parameters'", |it| has_keyword(it, "default")),
    (422, VAGUE, |it| has_keyword(it, "format")),
    (400, VAGUE, |it| has_keyword(it, "anyOf")),
    (500, "failed to parse grammar: schema keyword `enum` is not supported", |it| has_keyword(it, "enum")),
    (400, "Invalid JSON schema: 'items' is not allowed", |it| has_keyword(it, "items")),
    (400, VAGUE, |it| has_keyword(it, "minItems") || has_keyword(it, "default")),
    // Pictures.
    (400, "No endpoints found that support image input", has_picture),
    (400, VAGUE, has_picture),
    (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", has_picture),
    (400, "Could not process image", has_picture),
    (413, "image exceeds the maximum size", has_picture),
    (400, "messages[1].content must be a string", |it| it["messages"][1]["content"].is_array()),
    (422, "Input should be a valid string", |it| it["messages"][1]["content"].is_array()),
    (400, "image_url is only supported by certain models", has_picture),
    (400, "Invalid content type. image_url is only supported by certain models.", has_picture),
    (422, "unknown variant `image_url`, expected `text`", has_picture),
];

fn limit(body: &Value) -> bool {
    has(body, "/max_tokens") || has(body, "/max_completion_tokens")
}

fn tools(body: &Value) -> usize {
    body["tools"].as_array().map_or(0, Vec::len)
}

fn has_role(body: &Value, role: &str) -> bool {
    let mut messages = body["messages"].as_array().into_iter().flatten();
    messages.any(|message| message["role"] == role)
}

fn goes_on_without(refused: &[Refused]) {
    for &(status, said, is_in) in refused {
        let world = World::new(THREE_STEPS);
        fs::write(world.path("work/a.png"), PIXEL).unwrap();
        let provider = Provider::start(move |_, body| -> Says {
            if is_in(body) {
                return refusal(status, "invalid_request_error", said);
            }
            let has_acted = body.to_string().contains("AGENTS");
            match (has_acted, has(body, "/tools")) {
                (true, _) => words("There is one file."),
                (false, true) => call("glob", &json!({"pattern": "AGENTS*", "path": "."})),
                (false, false) => words(r#"{"tool": "glob", "arguments": {"pattern": "AGENTS*"}}"#),
            }
        });
        let flags = ["look around", "--image", "a.png", "--effort", "high"];
        let done = run(&world, &provider, &flags);
        let asked = provider.asked.lock();
        let what = format!(
            "{status} {said}: {} requests: {} {}",
            asked.len(),
            done.out,
            done.err
        );
        assert_eq!(done.code, Some(0), "{what}");
        assert!(done.out.contains("There is one file."), "{what}");
        assert_none_twice(&asked);
        assert!(asked.len() <= 10, "{what}");
        if said == "Could not process image" {
            assert!(done.err.contains("with one picture left out"), "{what}");
        }
    }
}

#[test]
fn a_run_goes_on_without_parameters_that_a_server_refuses() {
    goes_on_without(&REFUSED[..13]);
}

#[test]
fn a_run_goes_on_without_tools_that_a_server_refuses() {
    goes_on_without(&REFUSED[13..23]);
}

#[test]
fn a_run_goes_on_with_schemas_that_a_server_takes() {
    goes_on_without(&REFUSED[23..30]);
}

#[test]
fn a_run_goes_on_without_pictures_that_a_server_refuses() {
    goes_on_without(&REFUSED[30..]);
}

#[test]
fn what_is_refused_for_good_is_never_sent_again() {
    let world = World::new(THREE_STEPS);
    let provider = Provider::start(|_, _| refusal(400, "invalid_request_error", VAGUE));
    run(&world, &provider, &["hello"]).exits(7);
    let first = provider.asked.lock().len();
    assert!((2..=6).contains(&first), "{first} requests");
    world.gyrus(&["resume", "last"]).exits(7);
    assert_none_twice(&provider.asked.lock());
}

#[test]
fn a_model_that_is_missing_is_asked_again_when_it_is_there() {
    let world = World::new(THREE_STEPS);
    let provider = Provider::start(|number, _| match number {
        0 => refusal(404, "model_not_found", "The model `tiny` does not exist"),
        _ => words("Hello."),
    });
    run(&world, &provider, &["hello"]).exits(7);
    assert_eq!(provider.asked.lock().len(), 1, "nothing was left out");
    world.gyrus(&["resume", "last"]).exits(0);
}

#[test]
fn what_one_server_refuses_is_not_held_against_another() {
    let world = World::new(THREE_STEPS);
    let refusing = Provider::start(|_, _| refusal(400, "invalid_request_error", VAGUE));
    let answering = Provider::start(|_, _| words("Hello."));
    let both = format!("{},{}", refusing.model(), answering.model());
    world
        .gyrus(&["run", "--model", &both, "--workdir", ".", "hello"])
        .exits(0);
    run(&world, &answering, &["hello again"]).exits(0);
    let asked = answering.asked.lock();
    assert_eq!(asked.len(), 2);
    for body in asked.iter() {
        assert!(
            has(body, "/stream_options") && has(body, "/tools"),
            "{body:#}"
        );
    }
}
