//! Roles of servers' tools: proposed, confirmed by a person, void once the server says something
//! else, and what follows for calls.

use std::fs;

use serde_json::Value;

use crate::{
    serving::{SERVER, results},
    support::World,
};

const GOOD: &str = "[mcp.srv]\ncommand = \"bash\"\nargs = [\"server.sh\", \"good\"]\n";

/// A world with a server, and a run that has it say something.
fn world(message: &str) -> World {
    let world = World::new(&format!(
        "[[reply]]\ncalls = [{{ tool = \"srv__echo\", arguments = {{ message = \"{message}\" }} }}]\n\
         [[reply]]\ncalls = [{{ tool = \"finish\", arguments = {{ reached = true, answer = \"done\" }} }}]\n"
    ));
    fs::copy(SERVER, world.work().join("server.sh")).unwrap();
    fs::create_dir(world.path("home")).unwrap();
    fs::write(world.path("home/config.toml"), GOOD).unwrap();
    world
}

/// Confirms what is proposed, with corrections.
pub(crate) fn confirm(world: &World, server: &str, corrections: &[&str]) {
    let mut command = vec!["mcp", "roles", server];
    for correction in corrections {
        command.extend(["--set", correction]);
    }
    let shown = world.gyrus(&[&command[..], &["--json"]].concat()).exits(0);
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    let content = shown["content"].as_str().unwrap();
    let said = world.gyrus(&[&command[..], &["--content", &content[..8]]].concat());
    assert!(said.exits(0).out.contains("confirmed for "));
}

#[test]
fn a_person_says_what_tools_do_and_nothing_else_does() {
    let world = world("hi");
    // Nobody said anything: in no mode does a call pass unasked.
    for mode in ["ask", "edits", "auto"] {
        world
            .gyrus(&["run", "go", "--approve", mode, "--on-ask", "park"])
            .exits(5);
    }
    let said = world.gyrus(&["mcp", "roles", "srv"]).exits(2);
    assert!(
        said.out
            .contains("echo         sends    text: message  (proposed)"),
        "{}",
        said.out
    );
    assert!(said.out.contains("destroys     deletes"), "{}", said.out);
    said.says("say it beforehand: gyrus mcp roles srv --content");
    confirm(&world, "srv", &["echo=reads"]);
    world.gyrus(&["run", "go", "--approve", "never"]).exits(0);
    assert_eq!(results(&world)[0].1, "you said hi");
    world
        .gyrus(&["mcp", "roles", "srv"])
        .exits(0)
        .out
        .contains("this is what you confirmed")
        .then_some(())
        .expect("nothing to be done");
    // It says something else of the tool: nobody has confirmed that.
    fs::write(world.work().join("described"), "says it to everybody").unwrap();
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    let said = world.gyrus(&["mcp", "roles", "srv"]).exits(2);
    assert!(
        said.out
            .contains("described otherwise since you confirmed it"),
        "{}",
        said.out
    );
    fs::remove_file(world.work().join("described")).unwrap();
    world.gyrus(&["run", "go", "--approve", "never"]).exits(0);
    // Another program of the same name is another server.
    let other = format!("{GOOD}env = {{ OTHER = \"1\" }}\n");
    fs::write(world.path("home/config.toml"), other).unwrap();
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    fs::write(world.path("home/config.toml"), GOOD).unwrap();
    world.gyrus(&["mcp", "roles", "srv", "--forget"]).exits(0);
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
}

#[test]
fn a_yes_for_the_session_is_for_one_place() {
    let world = world("anna@x.com");
    confirm(&world, "srv", &["echo.message=to"]);
    let said = world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    for words in [
        "goes to `anna@x.com`, which you did not name",
        "calls of `srv__echo` that go to anna@x.com",
    ] {
        assert!(said.err.contains(words), "{}", said.err);
    }
    world.gyrus(&["approve", "last", "--always"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(results(&world)[0].1, "you said anna@x.com");
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(0);
    let script = fs::read_to_string(world.path("script.toml")).unwrap();
    fs::write(world.path("script.toml"), script.replace("anna@", "bob@")).unwrap();
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    let said = world.gyrus(&["approvals"]).exits(0);
    assert!(
        said.out
            .contains("calls of `srv__echo` that go to anna@x.com"),
        "{}",
        said.out
    );
}

#[test]
fn wrong_words_are_told() {
    let world = world("hi");
    for (arguments, words) in [
        (&["other"][..], "there is no server `other`"),
        (&["srv", "--set", "echo"], "there is no `=` in it"),
        (
            &["srv", "--set", "ecko=reads"],
            "nothing in the list has this name",
        ),
        (
            &["srv", "--set", "echo=red"],
            "`red` is none of reads, creates",
        ),
        (&["srv", "--set", "echo.x=to"], "it has no argument `x`"),
        (
            &["srv", "--set", "echo.message=too"],
            "`too` is none of to, name",
        ),
        (
            &["srv", "--content", "00000000"],
            "this list is not 00000000",
        ),
    ] {
        world
            .gyrus(&[&["mcp", "roles"], arguments].concat())
            .exits(2)
            .says(words);
    }
    fs::create_dir(world.path("home/mcp-roles")).unwrap();
    fs::write(world.path("home/mcp-roles/srv.toml"), "setup = 7\n").unwrap();
    for command in [&["run", "go"][..], &["mcp", "roles", "srv"]] {
        world
            .gyrus(command)
            .exits(2)
            .says("delete it, and confirm again: gyrus mcp roles");
    }
}

#[test]
fn a_call_is_explained_without_being_made() {
    let world = world("hi");
    let explain = |arguments: &[&str]| {
        let command = [
            &["policy", "explain", "--tool", "srv__echo", "--arguments"],
            arguments,
        ];
        world.gyrus(&command.concat())
    };
    let said = explain(&[r#"{"message": "anna@x.com"}"#]).exits(0);
    assert!(
        said.out.contains("high risk, you are asked"),
        "{}",
        said.out
    );
    confirm(&world, "srv", &["echo.message=to"]);
    let rule = "[[rule]]\ndecide = \"allow\"\nwhy = \"whom I name\"\ntool = \"srv__echo\"\n\
                argument = { role = \"to\", named = true }\n";
    fs::write(world.path("home/policy.toml"), rule).unwrap();
    let message = r#"{"message": "anna@x.com"}"#;
    let said = explain(&[message]).exits(0);
    assert!(
        said.out.contains("high risk, you are asked"),
        "{}",
        said.out
    );
    let said = explain(&[message, "--goal", "write to anna@x.com."]).exits(0);
    assert!(
        said.out.contains("high risk, allowed unasked"),
        "{}",
        said.out
    );
    explain(&["{"]).exits(2).says("not a JSON object");
    explain(&[r#"{"message": 7}"#]).exits(2);
    let goal = [message, "--goal", "x", "--json"];
    let said: Value = serde_json::from_str(&explain(&goal).exits(0).out).unwrap();
    assert_eq!(said["decision"], "ask");
}
