//! An editor works with gyrus over the Agent Client Protocol.

use std::{fs, time::Instant};

use gyrus_kernel::{Ending, RunState};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    changing::{edit, propose},
    editor::Editor,
    planning,
    serving::{SERVER, allow, results},
    support::{THREE_STEPS, UNTIL_GO, World},
};

/// Writes a control file if it may; says what it was told if not.
const ONE_QUESTION: &str = r#"
[[reply]]
text = "May I?"
calls = [{ tool = "write", arguments = { path = ".envrc", content = "hello\n" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;

/// Asks the person, and repeats the answer.
const ASKS_WORDS: &str = r#"
[[reply]]
calls = [{ tool = "ask_person", arguments = { question = "Which colour?" } }]
[[reply]]
when = "green"
calls = [{ tool = "finish", arguments = { reached = true, answer = "It is green." } }]
"#;

fn state(world: &World, session: &str) -> RunState {
    RunState::of(&world.store(), session.parse().unwrap()).unwrap()
}

/// The contents of a kind in the updates of calls and in permission requests.
fn diffs(editor: &Editor) -> Vec<Value> {
    let contents = editor.heard.iter().flat_map(|message| {
        let params = &message["params"];
        let places = [&params["update"]["content"], &params["toolCall"]["content"]];
        places.map(|content| content.as_array().cloned().unwrap_or_default())
    });
    let contents = contents.flatten();
    contents
        .filter(|content| content["type"] == "diff")
        .collect()
}

#[test]
fn a_turn_is_shown_while_it_goes_on() {
    let world = World::new(THREE_STEPS);
    let mut editor = Editor::start(&world, &["--approve", "auto"]);
    let session = editor.session(&world);
    let since = Instant::now();
    let prompt = editor.prompt(&session, "say hello");
    editor.hears(|message| message["method"] == "session/update");
    let first = since.elapsed();
    assert!(first.as_millis() < 1_000, "{first:?}");
    assert_eq!(editor.ends(prompt), "end_turn");
    assert_eq!(world.file("ledger.txt"), "hello\n");
    assert_eq!(
        editor.words(&session),
        "First a file.Then the ledger.Done.\n\nIt says hello."
    );
    let calls = editor.updates(&session, "tool_call");
    let shown: Vec<_> = calls
        .iter()
        .map(|call| {
            (
                call["kind"].as_str().unwrap(),
                call["title"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("edit", "write out.txt"),
            ("execute", "shell cat out.txt >> ledger.txt")
        ]
    );
    // Each call goes from pending by in progress to its end.
    for call in &calls {
        let id = &call["toolCallId"];
        let updates = editor.updates(&session, "tool_call_update").into_iter();
        let updates = updates.filter(|update| update["toolCallId"] == *id);
        let steps: Vec<_> = updates
            .filter_map(|update| update["status"].as_str())
            .collect();
        assert_eq!(steps, ["in_progress", "completed"], "{call}");
    }
    let path = world.work().canonicalize().unwrap().join("out.txt");
    assert_eq!(
        diffs(&editor),
        [json!({"type": "diff", "path": path, "newText": "hello\n"})]
    );
    let titles = editor.updates(&session, "session_info_update");
    assert_eq!(titles[0]["title"], "say hello");
    // The session is the run; whoever lists runs sees it.
    assert_eq!(world.runs()[0].to_string(), session);
    assert_eq!(editor.leave(), Some(0));
    world.replays();
}

#[test]
fn a_changeset_is_approved_with_its_diffs() {
    let changes = [
        edit("notes.txt", "soup", "stew"),
        json!({"path": "NEWS.md", "reason": "people ask", "content": "Stew.\n"}),
    ];
    let learned = "[[reply]]\npurpose = \"reflect\"\n\
                   text = '{\"worked\": \"It was short.\", \"did_not\": \"Nothing.\"}'\n";
    let world = World::new(&(propose(&changes, "") + learned));
    fs::write(world.work().join("notes.txt"), "soup on Mondays\n").unwrap();
    let mut editor = Editor::start(&world, &["--approve", "auto", "--no-memory"]);
    let session = editor.session(&world);
    let set = json!({"sessionId": session, "configId": "loop", "value": "changeset"});
    let options = editor.call("session/set_config_option", &set).unwrap();
    let current = options["configOptions"].as_array().unwrap().iter();
    let current: Vec<_> = current.map(|option| &option["currentValue"]).collect();
    assert_eq!(current, ["auto", "configured", "changeset"]);
    let prompt = editor.prompt(&session, "stew instead of soup in notes.txt");
    let context = editor.asked("session/request_permission");
    editor.choose(&context, "allow_once");
    let proposal = editor.asked("session/request_permission");
    assert_eq!(world.file("notes.txt"), "soup on Mondays\n");
    // The whole card is there: as a text whose untrusted lines are marked, and as diffs.
    let content = proposal["params"]["toolCall"]["content"]
        .as_array()
        .unwrap();
    let card = content[0]["content"]["text"].as_str().unwrap();
    assert!(
        card.contains("The agent wants to change 2 files: 1 new"),
        "{card}"
    );
    assert!(
        card.contains("\n┃ -soup on Mondays\n┃ +stew on Mondays\n"),
        "{card}"
    );
    assert_eq!(content[1]["oldText"], "soup on Mondays\n");
    assert_eq!(content[1]["newText"], "stew on Mondays\n");
    assert!(content[2]["oldText"].is_null());
    editor.choose(&proposal, "allow_once");
    assert_eq!(editor.ends(prompt), "end_turn");
    assert_eq!(world.file("notes.txt"), "stew on Mondays\n");
    assert_eq!(world.file("NEWS.md"), "Stew.\n");
}

#[test]
fn a_no_is_a_no_and_one_for_the_session_is_not_asked_again() {
    let world = World::new(ONE_QUESTION);
    let mut editor = Editor::start(&world, &[]);
    let session = editor.session(&world);
    let prompt = editor.prompt(&session, "go");
    let asked = editor.asked("session/request_permission");
    let kinds = asked["params"]["options"].as_array().unwrap().iter();
    let kinds: Vec<_> = kinds
        .map(|option| option["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds[0], "allow_once");
    assert!(
        kinds.ends_with(&["reject_once", "reject_always"]),
        "{kinds:?}"
    );
    editor.choose(&asked, "reject_once");
    editor.ends(prompt);
    assert!(!world.work().join(".envrc").exists());
    let failed = editor.updates(&session, "tool_call_update").into_iter();
    assert!(failed.rev().any(|update| update["status"] == "failed"));
    // What was not offered, and what is no answer, is a no as well.
    for answer in [
        json!({"outcome": {"outcome": "selected", "optionId": "allow_everything"}}),
        json!({"outcome": "yes"}),
        json!(7),
    ] {
        let prompt = editor.prompt(&session, "go on");
        let asked = editor.asked("session/request_permission");
        editor.answer(&asked, &answer);
        editor.ends(prompt);
        assert!(!world.work().join(".envrc").exists(), "{answer}");
    }
    let prompt = editor.prompt(&session, "and now");
    let asked = editor.asked("session/request_permission");
    editor.choose(&asked, "reject_always");
    editor.ends(prompt);
    let count = |editor: &Editor| {
        let asks = |message: &&Value| message["method"] == "session/request_permission";
        editor.heard.iter().filter(asks).count()
    };
    let before = count(&editor);
    let prompt = editor.prompt(&session, "once more");
    editor.ends(prompt);
    assert_eq!(count(&editor), before);
    assert!(!world.work().join(".envrc").exists());
}

#[test]
fn an_answer_from_elsewhere_withdraws_the_question() {
    let world = World::new(ONE_QUESTION);
    let mut editor = Editor::start(&world, &[]);
    let session = editor.session(&world);
    let prompt = editor.prompt(&session, "go");
    let asked = editor.asked("session/request_permission");
    world.gyrus(&["approve", &session]).exits(0);
    let withdrawn = editor.asked("$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    // What comes too late changes nothing.
    editor.choose(&asked, "reject_once");
    assert_eq!(editor.ends(prompt), "end_turn");
    assert_eq!(world.file(".envrc"), "hello\n");
    assert!(
        editor
            .text(&session, "agent_thought_chunk")
            .contains("approved by tester (command line)")
    );
}

#[test]
fn a_cancel_cuts_a_command_off_and_the_session_goes_on() {
    let world = World::new(UNTIL_GO);
    let mut editor = Editor::start(&world, &["--approve", "auto"]);
    let session = editor.session(&world);
    let prompt = editor.prompt(&session, "wait");
    world.wait_for_file("ledger.txt", "begun");
    // Another prompt is refused meanwhile.
    let second = editor.prompt(&session, "hurry");
    let refused = editor.result(second).unwrap_err();
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("a turn is at work"),
        "{refused}"
    );
    editor.notify("session/cancel", &json!({"sessionId": session}));
    assert_eq!(editor.ends(prompt), "cancelled");
    assert!(matches!(
        state(&world, &session),
        RunState::Parked(Ending::Stopped { .. })
    ));
    fs::write(world.work().join("go"), "").unwrap();
    let prompt = editor.prompt(&session, "wait again");
    assert_eq!(editor.ends(prompt), "end_turn");
    assert!(editor.words(&session).ends_with("finished"));
    // The second run of the session knows of the first.
    assert_eq!(world.runs().len(), 2);
    // A cancel when nothing is at work means nothing.
    editor.notify("session/cancel", &json!({"sessionId": session}));
    editor.notify("session/cancel", &json!({"sessionId": "nobody"}));
    assert_eq!(editor.leave(), Some(0));
}

#[test]
fn a_session_is_loaded_after_a_kill_and_goes_on() {
    let world = World::new(UNTIL_GO);
    let mut editor = Editor::start(&world, &["--approve", "auto"]);
    let session = editor.session(&world);
    editor.prompt(&session, "wait for it");
    world.wait_for_file("ledger.txt", "begun");
    kill_process(editor.process(), Signal::KILL).unwrap();
    drop(editor);
    let mut editor = Editor::start(&world, &["--approve", "auto"]);
    let listed = editor
        .call("session/list", &json!({"cwd": world.work()}))
        .unwrap();
    assert_eq!(listed["sessions"][0]["sessionId"], session);
    assert_eq!(listed["sessions"][0]["title"], "wait for it");
    let load = json!({"sessionId": session, "cwd": world.work(), "mcpServers": []});
    let loaded = editor.call("session/load", &load).unwrap();
    assert_eq!(loaded["modes"]["currentModeId"], "auto");
    assert_eq!(editor.text(&session, "user_message_chunk"), "wait for it");
    assert_eq!(editor.updates(&session, "tool_call").len(), 1);
    let words = editor.words(&session);
    assert!(words.starts_with("This takes a while."), "{words}");
    assert!(words.contains("`/resume` goes on with it"), "{words}");
    fs::write(world.work().join("go"), "").unwrap();
    let prompt = editor.prompt(&session, "/resume");
    assert_eq!(editor.ends(prompt), "end_turn");
    assert!(editor.words(&session).ends_with("finished"));
    assert_eq!(world.runs().len(), 1);
    // A folder that it does not work in, and sessions that do not exist.
    let elsewhere = json!({"sessionId": session, "cwd": world.path("person"), "mcpServers": []});
    assert!(editor.call("session/load", &elsewhere).is_err());
    for unknown in ["", "x", "../..", "01980000-0000-7000-8000-00000000aaaa"] {
        let load = json!({"sessionId": unknown, "cwd": world.work(), "mcpServers": []});
        assert_eq!(
            editor.call("session/load", &load).unwrap_err()["code"],
            -32_002
        );
    }
}

#[test]
fn two_sessions_work_at_once() {
    let world = World::new(UNTIL_GO);
    let other = world.path("other");
    fs::create_dir(&other).unwrap();
    let mut editor = Editor::start(&world, &["--approve", "auto"]);
    let first = editor.session(&world);
    let params = json!({"cwd": other, "mcpServers": []});
    let second = editor.call("session/new", &params).unwrap()["sessionId"].clone();
    let second = second.as_str().unwrap().to_owned();
    let slow = editor.prompt(&first, "wait");
    let cut = editor.prompt(&second, "wait too");
    let working = |session: &str, message: &Value| {
        message["params"]["sessionId"] == session
            && message["params"]["update"]["status"] == "in_progress"
    };
    editor.hears(|message| working(&second, message));
    editor.notify("session/cancel", &json!({"sessionId": second}));
    assert_eq!(editor.ends(cut), "cancelled");
    fs::write(world.work().join("go"), "").unwrap();
    assert_eq!(editor.ends(slow), "end_turn");
    assert!(editor.words(&first).ends_with("finished"));
    assert!(!editor.words(&second).contains("finished"));
    editor
        .call("session/close", &json!({"sessionId": second}))
        .unwrap();
    let closed = editor.prompt(&second, "more");
    assert_eq!(editor.result(closed).unwrap_err()["code"], -32_002);
}

#[test]
fn a_server_asks_an_editor_that_can_ask_for_words() {
    let script = "[[reply]]\ncalls = [{ tool = \"srv__asks\", arguments = {} }]\n\
                  [[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \"done\" } }]\n";
    let ends = |abilities: &Value, asks: &dyn Fn(&mut Editor)| {
        let world = World::new(script);
        fs::copy(SERVER, world.work().join("server.sh")).unwrap();
        fs::create_dir(world.path("home")).unwrap();
        let servers = "[mcp.srv]\ncommand = \"bash\"\nargs = [\"server.sh\", \"asking\"]\n";
        fs::write(world.path("home/config.toml"), servers).unwrap();
        allow(&world, "srv__*");
        let mut editor = Editor::with(&world, &[], abilities);
        let session = editor.session(&world);
        let prompt = editor.prompt(&session, "ask");
        asks(&mut editor);
        assert_eq!(editor.ends(prompt), "end_turn");
        results(&world)[0].1.clone()
    };
    let forms = json!({"elicitation": {"form": {}}});
    let said = ends(&forms, &|editor| {
        let form = editor.asked("elicitation/create");
        let words = form["params"]["message"].as_str().unwrap();
        assert!(words.contains("asks you for 1 field (`branch`)"), "{words}");
        editor.answer(
            &form,
            &json!({"action": "accept", "content": {"answer": "main"}}),
        );
    });
    assert!(said.contains("'branch':'main'"), "{said}");
    // One that cannot ends its turn for words, which no call survives.
    let said = ends(&json!({}), &|_| {});
    assert!(said.contains("'action':'decline'"), "{said}");
}

#[test]
fn a_question_is_answered_by_a_form_or_by_the_next_prompt() {
    let world = World::new(ASKS_WORDS);
    let mut editor = Editor::with(&world, &[], &json!({"elicitation": {"form": {}}}));
    let session = editor.session(&world);
    let prompt = editor.prompt(&session, "paint it");
    let form = editor.asked("elicitation/create");
    assert!(
        form["params"]["message"]
            .as_str()
            .unwrap()
            .contains("┃ Which colour?"),
        "{form}"
    );
    editor.answer(
        &form,
        &json!({"action": "accept", "content": {"answer": "green"}}),
    );
    assert_eq!(editor.ends(prompt), "end_turn");
    assert!(editor.words(&session).ends_with("It is green."));

    let mut editor = Editor::start(&world, &[]);
    let session = editor.session(&world);
    let prompt = editor.prompt(&session, "paint it");
    assert_eq!(editor.ends(prompt), "end_turn");
    let words = editor.words(&session);
    assert!(words.ends_with("Your next message answers it."), "{words}");
    // The question is still open after a restart.
    drop(editor);
    let mut editor = Editor::start(&world, &[]);
    let load = json!({"sessionId": session, "cwd": world.work(), "mcpServers": []});
    editor.call("session/load", &load).unwrap();
    assert!(
        editor
            .words(&session)
            .ends_with("Your next message answers it.")
    );
    let prompt = editor.prompt(&session, "green, please");
    assert_eq!(editor.ends(prompt), "end_turn");
    assert!(editor.words(&session).ends_with("It is green."));
    assert_eq!(world.runs().len(), 2);
}

#[test]
fn whatever_is_at_work_parks_when_the_editor_goes() {
    let world = World::new(UNTIL_GO);
    let mut editor = Editor::start(&world, &["--approve", "auto"]);
    let session = editor.session(&world);
    editor.prompt(&session, "wait");
    world.wait_for_file("ledger.txt", "begun");
    assert_eq!(editor.leave(), Some(0));
    assert!(matches!(
        state(&world, &session),
        RunState::Parked(Ending::Interrupted)
    ));
    fs::write(world.work().join("go"), "").unwrap();
    world
        .gyrus(&["resume", "last", "--approve", "auto"])
        .exits(0);
}

#[test]
fn what_comes_with_a_prompt_is_data() {
    let world = World::new(
        "[[reply]]\nwhen = 'the text of the page'\n\
         calls = [{ tool = \"finish\", arguments = { reached = true, answer = \"read\" } }]\n",
    );
    let mut editor = Editor::start(&world, &[]);
    let session = editor.session(&world);
    let prompt = json!([
        {"type": "text", "text": "summarise"},
        {"type": "resource", "resource": {"uri": "file:///page.md", "text": "the text of the page"}},
        {"type": "resource_link", "name": "evil\nname", "uri": "https://evil.example/x"},
    ]);
    let id = editor.ask(
        "session/prompt",
        &json!({"sessionId": session, "prompt": prompt}),
    );
    assert_eq!(editor.ends(id), "end_turn");
    let Some(gyrus_kernel::Entry::RunStarted(started)) = world.entries().into_iter().next() else {
        panic!("it begins with a start");
    };
    assert!(started.exposed);
    let reader = world
        .store()
        .reader(&gyrus_kernel::log_name(started.run))
        .unwrap();
    let goal = gyrus_surfaces::projection::goal(&started.goal, &reader);
    assert_eq!(goal, "summarise (attachment 1) (attachment 2)");
    for wrong in [
        json!([]),
        json!([{"type": "text", "text": "  \n"}]),
        json!([{"type": "audio", "data": "", "mimeType": "audio/wav"}]),
        json!([{"type": "image", "data": "bm90IGEgcGljdHVyZQ==", "mimeType": "image/png"}]),
        json!([{"type": "image", "data": "%", "mimeType": "image/png"}]),
        json!([{"type": "resource", "resource": {"uri": "a", "blob": "AA=="}}]),
        json!("text"),
    ] {
        let params = json!({"sessionId": session, "prompt": wrong});
        let error = editor.call("session/prompt", &params).unwrap_err();
        assert_eq!(error["code"], -32_602, "{wrong}: {error}");
    }
}

#[test]
fn settings_are_checked_and_folders_too() {
    let world = World::new(THREE_STEPS);
    let mut editor = Editor::silent(&world, &[]);
    let early = editor.call(
        "session/new",
        &json!({"cwd": world.work(), "mcpServers": []}),
    );
    assert_eq!(early.unwrap_err()["code"], -32_600);
    editor
        .call("initialize", &json!({"protocolVersion": 1}))
        .unwrap();
    let session = editor.session(&world);
    let mode = |editor: &mut Editor, mode: &str| {
        editor.call(
            "session/set_mode",
            &json!({"sessionId": session, "modeId": mode}),
        )
    };
    assert!(mode(&mut editor, "auto").is_ok());
    let told = editor
        .hears(|message| message["params"]["update"]["sessionUpdate"] == "config_option_update");
    let options = &told["params"]["update"]["configOptions"];
    assert_eq!(options[0]["currentValue"], "auto");
    for wrong in ["", "bypass", "AUTO", "yolo"] {
        assert!(mode(&mut editor, wrong).is_err(), "{wrong}");
    }
    for (id, value) in [
        ("loop", "nothing"),
        ("model", "script:/x"),
        ("x", "auto"),
        ("loop", "engineer"),
    ] {
        let set = json!({"sessionId": session, "configId": id, "value": value});
        let refused = editor.call("session/set_config_option", &set).unwrap_err();
        assert_eq!(refused["code"], -32_602, "{refused}");
    }
    for folder in ["", ".", "work", "/", "/nowhere/at/all"] {
        let new = editor.call("session/new", &json!({"cwd": folder, "mcpServers": []}));
        assert!(new.is_err(), "{folder}");
    }
    let home = editor.call(
        "session/new",
        &json!({"cwd": world.path("home"), "mcpServers": []}),
    );
    assert!(home.is_err(), "{home:?}");
}

/// A server that tells what it was given and what it can see.
const TELLS: &str = r#"say() { printf '%s\n' "$1"; }
answer() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
while IFS= read -r line; do
    id=none
    [[ $line =~ \"id\":([0-9]+) ]] && id=${BASH_REMATCH[1]}
    case $line in
        *'"method":"initialize"'*)
            answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
        *'"method":"tools/list"'*)
            answer '{"tools":[{"name":"tell","description":"tells","inputSchema":{"type":"object"}}]}' ;;
        *'"method":"tools/call"'*)
            seen=$(cat "$GYRUS_STATE/policy.toml" 2>/dev/null)
            answer "{\"content\":[{\"type\":\"text\",\"text\":\"given $GIVEN; model ${GYRUS_MODEL:-none}; policy ${seen:-none}\"}]}" ;;
    esac
done
"#;

#[test]
fn a_server_of_the_editor_runs_in_the_sandbox_without_keys() {
    let script = "[[reply]]\ncalls = [{ tool = \"my-tools__tell\", arguments = {} }]\n\
                  [[reply]]\nwhen = 'given'\n\
                  calls = [{ tool = \"finish\", arguments = { reached = true, answer = \"told\" } }]\n";
    let world = World::new(script);
    fs::write(world.work().join("tells.sh"), TELLS).unwrap();
    fs::create_dir(world.path("home")).unwrap();
    fs::write(world.path("home/policy.toml"), "# the policy\n").unwrap();
    let explained = world
        .gyrus(&["policy", "explain", "--json", "make"])
        .exits(0);
    let explained: Value = serde_json::from_str(&explained.out).unwrap();
    if explained["containment"].is_null() {
        eprintln!("no sandbox holds here, so such a server does not run");
        return;
    }
    let mut editor = Editor::start(&world, &[]);
    let env = json!([
        {"name": "GIVEN", "value": "${HOME} secret:KEY"},
        {"name": "GYRUS_STATE", "value": world.path("home")},
    ]);
    let server = json!({"name": "My Tools", "command": "bash", "args": ["tells.sh"], "env": env});
    let params = json!({"cwd": world.work(), "mcpServers": [server]});
    let session = editor.call("session/new", &params).unwrap()["sessionId"].clone();
    let session = session.as_str().unwrap().to_owned();
    let prompt = editor.prompt(&session, "tell");
    // Whatever it says of itself, a call of it is asked about.
    let asked = editor.asked("session/request_permission");
    editor.choose(&asked, "allow_once");
    assert_eq!(editor.ends(prompt), "end_turn");
    let updates = editor.updates(&session, "tool_call_update");
    let ended = updates
        .iter()
        .find(|update| update["status"] == "completed");
    let told = ended.unwrap()["content"][0]["content"]["text"]
        .as_str()
        .unwrap();
    assert!(
        told.contains("given ${HOME} secret:KEY; model none; policy none"),
        "{told}"
    );
    for wrong in [
        json!([{"name": "x", "type": "sse", "url": "http://x"}]),
        json!([{"name": "x"}]),
        json!([{"name": "x", "command": 7}]),
        json!(vec![json!({"name": "x", "command": "y"}); 33]),
    ] {
        let params = json!({"cwd": world.work(), "mcpServers": wrong});
        assert_eq!(
            editor.call("session/new", &params).unwrap_err()["code"],
            -32_602
        );
    }
}

#[test]
fn no_message_ends_the_process() {
    let world = World::new(THREE_STEPS);
    let mut editor = Editor::start(&world, &["--approve", "auto"]);
    let session = editor.session(&world);
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let requests = [
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/prompt\",\"params\":{deep}}}"),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/load\",\"params\":null}".to_owned(),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/new\",\"params\":{\"cwd\":{}}}"
            .to_owned(),
        "{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"session/list\"}".to_owned(),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":1,\"method\":\"session/list\"}".to_owned(),
        "{\"jsonrpc\":\"2.0\",\"id\":18446744073709551615,\"method\":\"x\"}".to_owned(),
        "[[1]".to_owned(),
        "\u{feff}{}".to_owned(),
    ];
    let rounds = 100;
    for round in 0..rounds {
        for request in &requests {
            editor.write(format!("{request}\n").as_bytes());
        }
        editor.write(b"\xff\xfe{\"jsonrpc\":\"2.0\"}\n\r\n\n");
        let answer = json!({"jsonrpc": "2.0", "id": round, "result": {"outcome": 7}});
        editor.send(&answer);
        editor.notify("session/cancel", &json!({"sessionId": session}));
        editor.notify("$/cancel_request", &json!({"requestId": round}));
    }
    // Longer than can be read.
    editor.write(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"");
    editor.write(&vec![b'x'; 17 << 20]);
    editor.write(b"\"}\n");
    editor.hears(|message| {
        let words = message["error"]["message"].as_str().unwrap_or_default();
        words.contains("is longer than")
    });
    let errors = editor
        .heard
        .iter()
        .filter(|message| message["error"].is_object());
    assert_eq!(errors.count(), rounds * (requests.len() + 1) + 1);
    let prompt = editor.prompt(&session, "say hello");
    assert_eq!(editor.ends(prompt), "end_turn");
    assert_eq!(world.file("ledger.txt"), "hello\n");
    assert_eq!(editor.leave(), Some(0));
}

/// Reads a note and changes it.
const EDITS: &str = r#"
[[reply]]
calls = [{ tool = "read", arguments = { path = "note.txt" } }]
[[reply]]
calls = [{ tool = "edit", arguments = { path = "note.txt", old_text = "soup", new_text = "stew" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "over" } }]
"#;

#[test]
fn what_a_person_has_not_saved_is_not_overwritten() {
    let world = World::new(EDITS);
    fs::write(world.work().join("note.txt"), "soup\r\n").unwrap();
    let path = world.work().canonicalize().unwrap().join("note.txt");
    let abilities = json!({"fs": {"readTextFile": true, "writeTextFile": true}});
    let mut editor = Editor::with(&world, &["--approve", "auto"], &abilities);
    let session = editor.session(&world);
    let read = "fs/read_text_file";
    // The buffer has more than the file.
    let prompt = editor.prompt(&session, "stew");
    for _ in 0..2 {
        let asked = editor.asked(read);
        assert_eq!(asked["params"], json!({"sessionId": session, "path": path}));
        editor.answer(&asked, &json!({"content": "soup and bread\n"}));
    }
    editor.ends(prompt);
    assert_eq!(world.file("note.txt"), "soup\r\n");
    let results = editor.updates(&session, "tool_call_update");
    let shown = json!(results).to_string();
    assert!(shown.contains("they are not shown here]"), "{shown}");
    assert!(shown.contains("so nothing was changed"), "{shown}");
    assert!(!shown.contains("bread"), "{shown}");
    // It is saved, but for how lines end; then the editor has nothing to say.
    for answer in [
        json!({"result": {"content": "soup\n"}}),
        json!({"error": {"code": 1, "message": "?"}}),
    ] {
        fs::write(world.work().join("note.txt"), "soup\r\n").unwrap();
        let prompt = editor.prompt(&session, "stew");
        for _ in 0..2 {
            let mut answer = answer.clone();
            answer["jsonrpc"] = json!("2.0");
            answer["id"] = editor.asked(read)["id"].clone();
            editor.send(&answer);
        }
        assert_eq!(editor.ends(prompt), "end_turn");
        assert_eq!(world.file("note.txt"), "stew\r\n");
    }
}

#[test]
fn a_question_that_was_open_when_all_was_killed_is_asked_again() {
    let world = World::new(ONE_QUESTION);
    let mut editor = Editor::start(&world, &[]);
    let session = editor.session(&world);
    editor.prompt(&session, "go");
    editor.asked("session/request_permission");
    kill_process(editor.process(), Signal::KILL).unwrap();
    drop(editor);
    let mut editor = Editor::start(&world, &[]);
    let load = json!({"sessionId": session, "cwd": world.work(), "mcpServers": []});
    editor.call("session/load", &load).unwrap();
    let words = editor.words(&session);
    assert!(words.ends_with("The run waits for 1 answer."), "{words}");
    let prompt = editor.prompt(&session, "/resume");
    let asked = editor.asked("session/request_permission");
    assert!(!world.work().join(".envrc").exists());
    editor.choose(&asked, "allow_once");
    assert_eq!(editor.ends(prompt), "end_turn");
    assert_eq!(world.file(".envrc"), "hello\n");
}

#[test]
fn a_plan_is_shown_with_the_status_of_its_steps() {
    let steps = [
        planning::write("one", "one.txt", "1", &[]),
        planning::write("two", "two.txt", "2", &["one"]),
    ];
    let world = planning::planned(&steps);
    let mut editor = Editor::start(&world, &["--approve", "auto", "--loop", "plan"]);
    let session = editor.session(&world);
    let prompt = editor.prompt(&session, planning::GOAL);
    assert_eq!(editor.ends(prompt), "end_turn");
    let plans = editor.updates(&session, "plan").into_iter().map(|plan| {
        let entries = plan["entries"].as_array().unwrap().iter();
        let statuses = entries.map(|entry| entry["status"].as_str().unwrap());
        statuses.collect::<Vec<_>>()
    });
    let plans: Vec<_> = plans.collect();
    assert_eq!(
        plans,
        [
            ["pending", "pending"],
            ["completed", "pending"],
            ["completed", "completed"]
        ]
    );
}
