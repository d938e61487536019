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
    let asked = || provider.asked.lock().unwrap().clone();
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

/// A property of requests that some server refuses, and the words it has for that.
struct Refused {
    name: &'static str,
    status: u16,
    words: &'static str,
    is_in: fn(&Value) -> bool,
}

const fn refused(
    name: &'static str,
    status: u16,
    words: &'static str,
    is_in: fn(&Value) -> bool,
) -> Refused {
    Refused {
        name,
        status,
        words,
        is_in,
    }
}

const REFUSED: [Refused; 14] = [
    refused(
        "usage in streams",
        400,
        "Unrecognized request argument supplied: stream_options",
        |it| has(it, "/stream_options"),
    ),
    refused("usage in streams, vaguely", 422, VAGUE, |it| {
        has(it, "/stream_options")
    }),
    refused(
        "limit",
        400,
        "Unsupported parameter: 'max_tokens' is not supported",
        |it| has(it, "/max_tokens") || has(it, "/max_completion_tokens"),
    ),
    refused("limit, vaguely", 400, VAGUE, |it| {
        has(it, "/max_tokens") || has(it, "/max_completion_tokens")
    }),
    refused("tools", 400, "tiny does not support tools", |it| {
        has(it, "/tools")
    }),
    refused(
        "tools, elsewhere",
        404,
        "No endpoints found that support tool use",
        |it| has(it, "/tools"),
    ),
    refused("tools, vaguely", 400, VAGUE, |it| has(it, "/tools")),
    refused(
        "items",
        400,
        "Invalid schema for function 'edit': default is not permitted",
        |it| has_keyword(it, "default"),
    ),
    refused("formats", 422, VAGUE, |it| has_keyword(it, "format")),
    refused("several types", 400, VAGUE, |it| has_keyword(it, "anyOf")),
    refused(
        "pictures",
        400,
        "No endpoints found that support image input",
        has_picture,
    ),
    refused("pictures, vaguely", 400, VAGUE, has_picture),
    refused(
        "a broken picture",
        400,
        "Could not process image",
        has_picture,
    ),
    refused(
        "large pictures",
        413,
        "image exceeds the maximum size",
        has_picture,
    ),
];

#[test]
fn whatever_a_server_refuses_the_run_goes_on_and_nothing_refused_is_sent_again() {
    for refused in &REFUSED {
        let world = World::new(THREE_STEPS);
        fs::write(world.path("work/a.png"), PIXEL).unwrap();
        let provider = Provider::start(|_, body| -> Says {
            if (refused.is_in)(body) {
                return refusal(refused.status, "invalid_request_error", refused.words);
            }
            let has_acted = body.to_string().contains("AGENTS");
            if has_acted {
                words("There is one file.")
            } else {
                call("glob", &json!({"pattern": "AGENTS*", "path": "."}))
            }
        });
        let done = run(&world, &provider, &["look around", "--image", "a.png"]);
        assert_eq!(
            done.code,
            Some(0),
            "{}: {} {}",
            refused.name,
            done.out,
            done.err
        );
        let asked = provider.asked.lock().unwrap();
        assert_none_twice(&asked);
        if refused.name == "a broken picture" {
            assert!(
                done.err.contains("with one picture left out"),
                "{}",
                done.err
            );
        }
        assert!(
            asked.len() <= 10,
            "{}: {} requests",
            refused.name,
            asked.len()
        );
    }
}

#[test]
fn what_is_refused_for_good_is_never_sent_again() {
    let world = World::new(THREE_STEPS);
    let provider = Provider::start(|_, _| refusal(400, "invalid_request_error", VAGUE));
    run(&world, &provider, &["hello"]).exits(7);
    let first = provider.asked.lock().unwrap().len();
    assert!((2..=6).contains(&first), "{first} requests");
    world.gyrus(&["resume", "last"]).exits(7);
    assert_none_twice(&provider.asked.lock().unwrap());
}

#[test]
fn a_model_that_is_missing_is_asked_again_when_it_is_there() {
    let world = World::new(THREE_STEPS);
    let provider = Provider::start(|number, _| match number {
        0 => refusal(404, "model_not_found", "The model `tiny` does not exist"),
        _ => words("Hello."),
    });
    run(&world, &provider, &["hello"]).exits(7);
    assert_eq!(
        provider.asked.lock().unwrap().len(),
        1,
        "nothing was left out"
    );
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
    let asked = answering.asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    for body in asked.iter() {
        assert!(
            has(body, "/stream_options") && has(body, "/tools"),
            "{body:#}"
        );
    }
}
