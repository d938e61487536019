use serde_json::{Value, json};

use super::*;

fn all() -> Vec<&'static ScreenAction> {
    actions::ACTIONS.iter().collect()
}

fn read_it(text: &str) -> Result<UsableReply, String> {
    let actions = all();
    let offered = ReplyChoices {
        actions: &actions,
        frame: Some((1280, 800)),
    };
    read(text, offered)
}

fn calls(text: &str) -> Vec<ToolCall> {
    match read_it(text).unwrap().deeds {
        Deeds::Calls(calls) => calls,
        Deeds::Finish(finish) => panic!("{finish:?}"),
    }
}

const CLICK: &str =
    r#"{"note": "n", "memo": [], "actions": [{"do": "click", "on": "b17"}], "expects": "e"}"#;

#[test]
fn syntax_is_tolerated() {
    let expected = vec![ToolCall::new("click", json!({"on": "b17"}))];
    for text in [
        CLICK.to_owned(),
        format!("\u{feff}\n{CLICK}  "),
        format!("I will click {{b17}} now.\n```json\n{CLICK}\n```\nDone."),
        format!("Sure! {CLICK} I hope that \"helps\"."),
        r#"{"actions": {"do": "click", "on": " b17 "}, "mood": "good"}"#.to_owned(),
        r#"{"actions": [{"do": "click", "on": "b17", "at": [], "kind": "", "with": null, "url": "", "submit": false, "pages": 0}]}"#.to_owned(),
    ] {
        assert_eq!(calls(&text), expected, "{text}");
    }
    let typed = calls(
        r#"{"memo": {"price": 42, "old": null}, "actions": [
            {"do": "type_text", "on": "b3", "text": 42, "submit": "true"},
            {"do": "scroll", "direction": "DOWN", "pages": "1.5"},
            {"do": "click", "at": ["12", 7.9], "with": "shift"},
            {"do": "drag", "from": "b3", "to": [-0.0, 799]},
            {"do": "switch_tab", "tab": "2"}]}"#,
    );
    assert_eq!(
        typed,
        [
            ToolCall::new(
                "type_text",
                json!({"on": "b3", "text": "42", "submit": true})
            ),
            ToolCall::new("scroll", json!({"direction": "down", "pages": 1.5})),
            ToolCall::new("click", json!({"at": [12, 7], "with": ["shift"]})),
            ToolCall::new("drag", json!({"from": "b3", "to": [0, 799]})),
            ToolCall::new("switch_tab", json!({"tab": 2})),
        ]
    );
    let cleared =
        calls(r#"{"actions": [{"do": "type_text", "on": "b3", "text": "", "replace": true}]}"#);
    assert_eq!(cleared[0].arguments["text"], "");
}

fn refused(text: &str, why: &str) {
    let error = read_it(text).expect_err(text);
    assert!(error.contains(why), "{text:.200}: {error}");
}

#[test]
fn which_object_is_meant_is_never_guessed() {
    let twice = r#"{"actions": [{"do":"click","on":"b1"}], "actions": [{"do":"reload"}]}"#;
    refused(&format!("{CLICK}\n{CLICK}"), "two JSON objects");
    let fences = format!("```json\n{CLICK}\n```\nor\n```json\n{CLICK}\n```");
    refused(&fences, "two JSON objects");
    refused(&format!("{CLICK} {{\"actions\": [}}"), "two JSON objects");
    refused("", "no JSON object");
    refused("I click b17.", "no JSON object");
    refused(r#"{"do": "click", "on": "b17"}"#, "no `actions`");
    refused(r#"[{"do": "click", "on": "b17"}]"#, "no JSON object");
    refused(&CLICK[..CLICK.len() - 1], "does not end");
    refused(twice, "given twice");
    refused(r#"{"actions": []}"#, "one to 5");
    let deep = |before: &str, after: &str| {
        let (open, close) = ("[".repeat(30_000), "]".repeat(30_000));
        format!("{before}{open}{close}{after}")
    };
    refused(&deep("", ""), "no JSON object");
    refused(&deep("{\"actions\": ", "}"), "JSON is wrong");
    refused(&"{".repeat(100_000), "longer than");
}

#[test]
fn what_an_action_means_is_never_guessed() {
    for (action, why) in [
        (&*[r#"{"do": "reload"}"#; 6].join(","), "one to 5"),
        (r#"{"do": "click", "on": "b1", "on": "b2"}"#, "given twice"),
        (
            r#"{"do": "click", "on": "b1", "at": [1, 2]}"#,
            "both `on` and `at`",
        ),
        (
            r#"{"do": "click", "on": "b1", "button": "right"}"#,
            "unknown argument `button`, expected one of `on`, `at`, `kind`, `with`, `seconds`, `fill`; the syntax is click{on|at, kind?: double|triple|right|middle",
        ),
        (
            r#"{"do": "click", "on": "b1", "kimd": "right"}"#,
            "(did you mean `kind`?)",
        ),
        (
            r#"{"do": "click", "on": "b1", "count": 2}"#,
            "unknown argument `count`",
        ),
        (
            r#"{"do": "click", "on": "b1", "on\u200b": "b2"}"#,
            "unknown argument",
        ),
        (
            r#"{"do": "click"}"#,
            "one of `on` and `at` is needed; the syntax is click{on|at,",
        ),
        (r#"{"do": "cl\u0456ck", "on": "b1"}"#, "no action"),
        (r#"{"do": "click\u200b", "on": "b1"}"#, "no action"),
        (
            r#"{"do": "click", "on": "17"}"#,
            "an element of the screen, as `b17`",
        ),
        (r#"{"do": "click", "at": [NaN, 1]}"#, "JSON is wrong"),
        (r#"{"do": "click", "at": [1e999, 1]}"#, "JSON is wrong"),
        (r#"{"do": "click", "at": [9007199254740993, 1]}"#, "outside"),
        (r#"{"do": "click", "at": [-1, 1]}"#, "outside"),
        (r#"{"do": "click", "at": [1280, 1]}"#, "outside"),
        (r#"{"do": "click", "at": ["inf", 1]}"#, "must be [x, y]"),
        (r#"{"do": "click", "at": ["NaN", 1]}"#, "must be [x, y]"),
        (r#"{"do": "click", "at": [1, 2, 3]}"#, "must be [x, y]"),
        (
            r#"{"do": "scroll", "direction": "down", "pages": 1e300}"#,
            "at most 20",
        ),
        (
            r#"{"do": "answer_dialog"}"#,
            "missing argument `accept`; the syntax is answer_dialog{accept,",
        ),
        (
            r#"{"do": "finish", "token": "t", "answer": "a"}"#,
            "missing argument `reached`",
        ),
        (
            r#"{"do": "reload"}, {"do": "finish", "token": "t", "reached": true, "answer": "a"}"#,
            "stands alone",
        ),
    ] {
        refused(&format!(r#"{{"actions": [{action}]}}"#), why);
    }
}

#[test]
fn ways_and_waits_are_bounded() {
    let drag = |via: &str| {
        let drag = format!(r#"{{"do": "drag", "from": "b3", "via": {via}, "to": [9, 9]}}"#);
        read_it(&format!(r#"{{"actions": [{drag}]}}"#)).map(|reply| reply.deeds)
    };
    let way = json!({"from": "b3", "via": [[1, 2], [3, 4]], "to": [9, 9]});
    assert_eq!(
        drag(r#"[["1", 2.5], [3, 4]]"#),
        Ok(Deeds::Calls(vec![ToolCall::new("drag", way)]))
    );
    let endless = format!("[{}]", vec!["[1, 2]"; 101].join(","));
    for wrong in [
        "[[1, 2, 3]]",
        "[[1, 2000]]",
        r#"["b4"]"#,
        "7",
        endless.as_str(),
    ] {
        assert!(drag(wrong).is_err(), "{wrong}");
    }
    let wait = |seconds: &str| {
        let wait = format!(r#"{{"actions": [{{"do": "wait", "seconds": {seconds}}}]}}"#);
        read_it(&wait).is_ok()
    };
    assert!(wait("0.5") && wait("10") && wait("null"));
    assert!(!wait("0") && !wait("10.5") && !wait("-1"));
}

#[test]
fn points_need_a_picture() {
    let actions = all();
    let offered = ReplyChoices {
        actions: &actions,
        frame: None,
    };
    let error = read(r#"{"actions": [{"do": "click", "at": [1, 2]}]}"#, offered).unwrap_err();
    assert!(error.contains("shown no picture"), "{error}");
}

#[test]
fn what_is_not_offered_cannot_be_done() {
    let actions = offered_by(["click", "wait"].into_iter());
    let names: Vec<_> = actions.iter().map(|action| action.name).collect();
    assert_eq!(names, ["click", "wait", "finish"]);
    let offered = ReplyChoices {
        actions: &actions,
        frame: None,
    };
    assert!(
        read(
            r#"{"actions": [{"do": "open_url", "url": "https://a.test"}]}"#,
            offered
        )
        .is_err()
    );
}

#[test]
fn a_finish_is_read_with_its_token() {
    let reply = read_it(
        r#"{"actions": [{"do": "finish", "token": "12ab 34cd", "reached": "false", "answer": "no"}]}"#,
    );
    let Deeds::Finish(finish) = reply.unwrap().deeds else {
        panic!("no finish")
    };
    assert_eq!(
        (
            finish.token.as_str(),
            finish.reached,
            finish.answer.as_str()
        ),
        ("12ab 34cd", false, "no")
    );
}

/// Returns replies to cut and to corrupt.
fn specimens() -> Vec<String> {
    let rich = json!({
        "note": "a \"quoted\" note with { and } and \\ in it, 日本",
        "memo": [{"key": "k", "text": "{\"actions\": [{\"do\": \"reload\"}]}"}],
        "actions": [
            {"do": "type_text", "on": "b3", "text": "pay {\"do\": \"click\", \"on\": \"b9\"} \u{1F600}"},
            {"do": "click", "on": "b4", "with": ["shift"]},
            {"do": "drag", "from": [12, 34], "to": [120, 340]},
            {"do": "scroll", "direction": "down", "pages": 12},
        ],
        "expects": "```json {\"actions\":[]}```",
    });
    vec![
        CLICK.to_owned(),
        rich.to_string(),
        format!("First {{a}} thought.\n```json\n{rich:#}\n```\nThen {{b}}."),
    ]
}

#[test]
fn a_cut_reply_never_does_what_the_whole_did_not() {
    for whole in specimens() {
        let wanted = calls(&whole);
        for end in 0..whole.len() {
            let Some(cut) = whole.get(..end) else {
                continue;
            };
            if let Ok(reply) = read_it(cut) {
                assert_eq!(reply.deeds, Deeds::Calls(wanted.clone()), "{cut}");
            }
        }
        for start in 1..whole.len() {
            let Some(cut) = whole.get(start..) else {
                continue;
            };
            if let Ok(reply) = read_it(cut) {
                assert_eq!(reply.deeds, Deeds::Calls(wanted.clone()), "{cut}");
            }
        }
    }
}

#[test]
fn no_mutation_panics_or_leaves_the_frame() {
    const BITS: [&str; 22] = [
        "{",
        "}",
        "[",
        "]",
        "\"",
        "\\",
        ",",
        ":",
        "NaN",
        "1e999",
        "-1",
        "null",
        "```",
        "\u{feff}",
        "\u{0}",
        "\\ud800",
        "\"actions\":",
        "{\"do\":\"finish\",",
        "true",
        "99999999999999999999",
        "日",
        "\"on\":\"b1\"",
    ];
    let specimens = specimens();
    let mut chance = fastrand::Rng::with_seed(1);
    for round in 0..60_000 {
        let mut text = specimens[round % specimens.len()].clone();
        for _ in 0..=chance.usize(..3) {
            let at = loop {
                let at = chance.usize(..=text.len());
                if text.is_char_boundary(at) {
                    break at;
                }
            };
            let end = (at..=text.len())
                .skip(chance.usize(..6))
                .find(|end| text.is_char_boundary(*end));
            match chance.usize(..3) {
                0 => text.insert_str(at, BITS[chance.usize(..BITS.len())]),
                1 => text.replace_range(at..end.unwrap_or(at), ""),
                _ => text.replace_range(at..end.unwrap_or(at), BITS[chance.usize(..BITS.len())]),
            }
        }
        let Ok(reply) = read_it(&text) else { continue };
        let Deeds::Calls(calls) = reply.deeds else {
            continue;
        };
        assert!((1..=MOST_ACTIONS).contains(&calls.len()), "{text}");
        for call in calls {
            for place in ["at", "from", "to"].map(|name| &call.arguments[name]) {
                if let Value::Array(point) = place {
                    assert!(
                        point[0].as_u64().unwrap() < 1280 && point[1].as_u64().unwrap() < 800,
                        "{text}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_schema_names_every_argument_once() {
    let schema = actions::schema(&all());
    let action = &schema["properties"]["actions"]["items"];
    assert_eq!(
        action["properties"]["do"]["enum"].as_array().unwrap().len(),
        actions::ACTIONS.len()
    );
    // One provider accepts at most 24 of them. A desktop's own tool is never offered with a page's.
    let of_page = all()
        .into_iter()
        .filter(|action| action.name != "open_application");
    let of_page = actions::schema(&of_page.collect::<Vec<_>>());
    let properties = &of_page["properties"]["actions"]["items"]["properties"];
    let optional = properties.as_object().unwrap().len() - 1;
    assert!(optional <= 24, "{optional}");
    for (name, _) in all().iter().flat_map(|action| actions::arguments(action)) {
        assert!(!action["properties"][name].is_null(), "{name}");
    }
}
