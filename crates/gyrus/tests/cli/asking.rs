//! A person is asked, here or elsewhere, now or later, or cannot be asked.

use gyrus_kernel::Entry;
use serde_json::{Value, json};

use crate::{
    mcp_serving::Client,
    server::{Server, TOKEN, guard::cookie_of, runs::ASKS},
    support::{THREE_STEPS, World},
};

fn asks(entry: &Entry) -> bool {
    matches!(entry, Entry::ApprovalAsked(_))
}

/// Writes a file if it may; says what it was told if not.
const ONE_QUESTION: &str = r#"
[[reply]]
text = "May I?"
calls = [{ tool = "write", arguments = { path = ".envrc", content = "hello\n" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;

const REFUSED: &str = r#"
[[reply]]
calls = [{ tool = "write", arguments = { path = ".envrc", content = "x" } }]
[[reply]]
when = "not there, use the other one"
calls = [{ tool = "finish", arguments = { reached = false, answer = "I may not" } }]
"#;

#[test]
fn what_a_person_typed_is_not_called_the_models() {
    let world = World::new(
        "[[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \"x\" } }]\n",
    );
    let arguments = ["run", "go", "--check", "cat .env", "--on-ask", "park"];
    let said = world.gyrus(&arguments).exits(5).err;
    assert!(
        said.contains("│ as you typed it:\n│ ┃ command: cat .env\n"),
        "{said}"
    );
}

#[test]
fn another_process_says_yes() {
    let world = World::new(ONE_QUESTION);
    let running = world.start(&["run", "go", "--on-ask", "wait"]);
    world.wait_for(asks);
    let listed = world.gyrus(&["approvals"]).exits(0).out;
    assert!(listed.contains("┃ +hello"), "{listed}");
    assert_eq!(
        world.file(".envrc"),
        "",
        "nothing happens before the answer"
    );
    world
        .gyrus(&["approve", "last"])
        .exits(0)
        .says("the run goes on");
    let said = running.end().exits(0);
    assert!(
        said.err.contains("approved by tester (command line)"),
        "{}",
        said.err
    );
    assert_eq!(world.file(".envrc"), "hello\n");
    world
        .gyrus(&["approve", "last"])
        .exits(2)
        .says("asks nothing");
}

#[test]
fn another_process_says_no_and_why() {
    let world = World::new(REFUSED);
    let running = world.start(&["run", "go", "--on-ask", "wait"]);
    world.wait_for(asks);
    let words = "not there, use the other one";
    world.gyrus(&["deny", "last", "--reason", words]).exits(0);
    running
        .end()
        .exits(4)
        .says("I may not")
        .says("(denied by tester)");
    assert_eq!(world.file(".envrc"), "");
}

#[test]
fn a_parked_question_is_answered_and_resumed_once() {
    let world = World::new(ONE_QUESTION);
    let said = world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    insta::assert_snapshot!(world.mask(&said.err), @r"
    run [run] · react · script/scripted · [folder]/work
    • May I?
    → write path=.envrc content=hello
    ┌ approval 1.3 ─────────────────────────────────────────────────────────
    │ The tool `write` wants to change [folder]/work/.envrc
    │ - writes .envrc: it is obeyed by direnv, which runs it when a person enters the folder
    │ as written by the model (unverified):
    │ ┃ diff --git a/.envrc b/.envrc
    │ ┃ new file mode 100644
    │ ┃ --- /dev/null
    │ ┃ +++ b/.envrc
    │ ┃ @@ -0,0 +1,1 @@
    │ ┃ +hello
    └───────────────────────────────────────────────────────────────────────
    the run waits for an answer: The tool `write` wants to change [folder]/work/.envrc
      answer with `gyrus approve [run] 1.3` or `gyrus deny [run] 1.3`, then `gyrus resume [run]`
    ");
    let listed = world.gyrus(&["approvals"]).exits(0).out;
    assert!(listed.contains("gyrus approve"), "{listed}");
    assert!(
        world
            .gyrus(&["runs", "list"])
            .out
            .contains("waits for an answer")
    );
    world.gyrus(&["resume", "last"]).exits(5);
    world
        .gyrus(&["approve", "last"])
        .exits(0)
        .says("to go on: gyrus resume");
    world
        .gyrus(&["approve", "last"])
        .exits(2)
        .says("has its answer already");
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(world.file(".envrc"), "hello\n");
    let asked = world.entries().iter().filter(|entry| asks(entry)).count();
    assert_eq!(asked, 1, "the same card is not asked twice");
}

#[test]
fn nobody_to_ask_is_a_no_at_once() {
    let world = World::new(&REFUSED.replace("not there, use the other one", "nobody can be asked"));
    world
        .gyrus(&["run", "go"])
        .exits(4)
        .says("nobody could be asked")
        .says("--on-ask park");
    assert_eq!(world.file(".envrc"), "");
}

#[test]
fn read_only_changes_nothing_and_edits_changes_the_workspace() {
    let world = World::new(THREE_STEPS);
    world
        .gyrus(&["run", "go", "--approve", "read-only"])
        .exits(0);
    assert_eq!(world.file("out.txt") + &world.file("ledger.txt"), "");
    world
        .gyrus(&["run", "go", "--permission-mode", "acceptEdits"])
        .exits(0);
    assert_eq!(world.file("out.txt"), "hello\n");
    assert_eq!(world.file("ledger.txt"), "hello\n");
}

#[test]
fn a_runs_own_command_cannot_answer_for_a_person() {
    let gyrus = env!("CARGO_BIN_EXE_gyrus");
    let world = World::new("");
    let home = world.path("home");
    let script = format!(
        "[[reply]]\ncalls = [{{ tool = \"shell\", arguments = {{ command = \"GYRUS_HOME={} {gyrus} \
         approve last\" }} }}]\n[[reply]]\ncalls = [{{ tool = \"finish\", arguments = \
         {{ reached = true, answer = \"x\" }} }}]\n",
        home.display()
    );
    std::fs::write(world.path("script.toml"), script).unwrap();
    // In the sandbox it would not even see the state that it wants to answer in.
    let unconfined = ["--sandbox", "off", "--on-ask", "park"];
    world.run(&unconfined).exits(5);
    world.gyrus(&["approve", "last"]).exits(0);
    let said = world
        .gyrus(&["resume", "last", "--sandbox", "off"])
        .exits(0);
    assert!(
        said.err
            .contains("a command of a run cannot answer for a person"),
        "{}",
        said.err
    );
}

/// Whatever surface an answer comes from, the kernel decides whether the card takes it, and says so
/// in the same words.
#[test]
fn one_rule_with_one_wording_decides_on_every_surface() {
    let world = World::new(ASKS);
    let server = Server::start(&world);
    let accepted = server.run("write", &json!({}));
    server.wait(&accepted, |stage| stage["state"] == "parked");
    let mut client = Client::start(&world, Some(TOKEN), &json!({}));
    let run = accepted["run"].clone();
    let asked = client.call("follow", &json!({"run": run}));
    let question = asked["structuredContent"]["questions"][0].clone();
    let text = |name: &str| question[name].as_str().unwrap().to_owned();
    let path = format!(
        "/runs/{}/questions/{}/answer",
        text("run"),
        text("question")
    );
    let form = format!(
        "cookie: {}\r\ncontent-type: application/x-www-form-urlencoded\r\norigin: http://{}\r\n",
        cookie_of(&server),
        server.host
    );
    let card = (
        question["run"].clone(),
        question["question"].clone(),
        question["digest"].clone(),
    );
    let mut tool = |approve: bool, words: &Value| {
        let (run, question, digest) = &card;
        let arguments = json!({
            "run": run, "question": question, "digest": digest, "approve": approve, "words": words,
        });
        client.call("answer", &arguments).to_string()
    };
    for (sentence, command, body, typed, called) in [
        (
            "the card asks for approval, not for words",
            vec!["approve", "last", "--answer", "if"],
            json!({"approve": true, "words": "if"}),
            "answer=once&words=if",
            Some(json!("if")),
        ),
        (
            "the card can only be allowed once",
            vec!["approve", "last", "--session"],
            json!({"approve": true, "reach": "session"}),
            "answer=session",
            None,
        ),
        (
            "the card can only be allowed once",
            vec!["approve", "last", "--always"],
            json!({"approve": true, "reach": "always"}),
            "answer=always",
            None,
        ),
    ] {
        world.gyrus(&command).exits(2).says(sentence);
        let posted = server.post(&format!("/api{path}"), &body).is(400).body;
        assert!(posted.contains(sentence), "{posted}");
        let page = server.send("POST", &path, &form, typed).is(400).body;
        assert!(page.contains(sentence), "{page}");
        if let Some(words) = called {
            let said = tool(true, &words);
            assert!(said.contains(sentence), "{said}");
        }
    }
    assert_eq!(
        server.get("/api/questions").is(200).json()[0]["answered"],
        Value::Null
    );
    assert_eq!(world.file(".envrc"), "");
    tool(false, &json!("not now"));
    server.wait_for_end(&accepted);
}
