//! The servers that the protocol's own people publish. `cargo xtask test` installs them (see
//! `crates/mcp/tests/servers`) where there is npm; without them, or node, these tests pass over it.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use gyrus_contract::PersonReply;
use serde_json::json;

use crate::world::{World, named, ready};

/// Returns the program of an official server.
#[expect(clippy::print_stderr, reason = "a test that does nothing must say so")]
pub(crate) fn official(name: &str) -> Option<PathBuf> {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/mcp-servers/node_modules/@modelcontextprotocol")
        .join(name)
        .join("dist/index.js");
    let node = Command::new("node").arg("--version").output().is_ok();
    if node && installed.is_file() {
        return Some(installed);
    }
    eprintln!("passed over: {name} is not installed, or node is not; see the head of official.rs");
    None
}

#[tokio::test]
async fn everything() {
    let Some(program) = official("server-everything") else {
        return;
    };
    let world = World::new();
    let setup = world.process("node", &[program.to_str().unwrap()]);
    let (servers, tools) = ready(setup).await;
    let call = async |name: &str, arguments| {
        let name = format!("srv__{name}");
        world.call(named(&tools, &name), arguments).await
    };
    let output = call("echo", json!({"message": "hello"})).await;
    assert_eq!(output.text, "Echo: hello");
    let output = call("get-sum", json!({"a": 2, "b": 3})).await;
    assert!(output.text.contains('5'), "{output:?}");
    let output = call("get-sum", json!({"a": "two"})).await;
    assert!(
        output.text.contains("the server was not asked"),
        "{output:?}"
    );
    let output = call("get-tiny-image", json!({})).await;
    assert_eq!(output.images.len(), 1, "{output:?}");
    let output = call("get-structured-content", json!({"location": "Chicago"})).await;
    assert!(output.text.contains("temperature"), "{output:?}");
    let output = call("get-resource-links", json!({"count": 2})).await;
    assert!(output.text.contains("resource demo://"), "{output:?}");
    let arguments = json!({"duration": 1, "steps": 4});
    let output = call("trigger-long-running-operation", arguments).await;
    assert!(output.text.contains("completed"), "{output:?}");
    assert!(!world.told().is_empty());
    let offers = servers.offers("srv").await.unwrap();
    assert!(
        offers.resources.len() > 2 && offers.prompts.len() > 2,
        "{offers:?}"
    );
    let output = call("list_resources", json!({})).await;
    let first = output.text.split(',').next().unwrap().to_owned();
    let output = call("read_resource", json!({"uri": first})).await;
    assert!(
        !output.is_error && output.text.contains(&first),
        "{output:?}"
    );
    let simple = offers
        .prompts
        .iter()
        .find(|prompt| prompt.arguments.is_empty());
    let simple = servers
        .prompt("srv", &simple.unwrap().name, &BTreeMap::new())
        .await;
    assert!(simple.unwrap().starts_with("user: "));
    let output = call("get-env", json!({})).await;
    assert!(!output.text.contains("CARGO"), "{output:?}");
    servers.leave().await;
}

#[tokio::test]
async fn everything_asks() {
    let Some(program) = official("server-everything") else {
        return;
    };
    let accepted = |words: &str| PersonReply::Accepted(words.to_owned());
    let world = World::with_person([
        accepted(
            "name: Ada; check: yes; email: ada@example.org; birthdate: 1815-12-10; integer: 7; \
             titledSingleSelectEnum: Wonder Woman; titledMultipleSelectEnum: Tuna, fish-3; \
             untitledMultipleSelectEnum: Drums; legacyTitledEnum: Dogs",
        ),
        accepted(""),
        accepted(""),
    ]);
    let setup = world.process("node", &[program.to_str().unwrap()]);
    let (servers, tools) = ready(setup).await;
    let call = async |name: &str, arguments| {
        let name = format!("srv__{name}");
        world.call(named(&tools, &name), arguments).await
    };
    let output = call("trigger-elicitation-request", json!({})).await;
    for given in [
        "- Name: Ada",
        "- Birthdate: 1815-12-10",
        "\"hero-3\"",
        "\"fish-3\"",
        "\"pet-2\"",
    ] {
        assert!(output.text.contains(given), "{given}: {output:?}");
    }
    let arguments = json!({"prompt": "Say five", "maxTokens": 10});
    let output = call("trigger-sampling-request", arguments).await;
    assert!(output.text.contains("\"text\": \"five\""), "{output:?}");
    let arguments = json!({"url": "https://example.org/there"});
    let output = call("trigger-url-elicitation", arguments).await;
    assert!(!output.is_error, "{output:?}");
    assert!(world.asked()[2].sentence.contains("a page at example.org"));
    servers.leave().await;
}

#[tokio::test]
async fn filesystem() {
    let Some(program) = official("server-filesystem") else {
        return;
    };
    let world = World::new();
    fs::write(world.work("notes.txt"), "remember\n").unwrap();
    let work = world.work("");
    let arguments = [program.to_str().unwrap(), work.to_str().unwrap()];
    let (_servers, tools) = ready(world.process("node", &arguments)).await;
    let path = world.work("notes.txt");
    let read = named(&tools, "srv__read_text_file");
    let output = world.call(read, json!({"path": path})).await;
    assert!(output.text.contains("remember"), "{output:?}");
    let output = world.call(read, json!({"path": "/etc/passwd"})).await;
    assert!(output.is_error, "{output:?}");
    let write = named(&tools, "srv__write_file");
    let arguments = json!({"path": world.work("new.txt"), "content": "made"});
    world.call(write, arguments).await;
    assert_eq!(fs::read_to_string(world.work("new.txt")).unwrap(), "made");
}

#[tokio::test]
async fn everything_over_http() {
    let Some(program) = official("server-everything") else {
        return;
    };
    // The port is bound and released again: the server cannot be told to choose one and report it.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    drop(listener);
    let mut server = Command::new("node")
        .arg(&program)
        .arg("streamableHttp")
        .env("PORT", &port)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let listens = lines.any(|line| line.is_ok_and(|line| line.contains("listening")));
    let world = World::new();
    if listens {
        let url = format!("http://127.0.0.1:{port}/mcp");
        let (servers, tools) = ready(world.at(&url, &[])).await;
        let echo = named(&tools, "srv__echo");
        let output = world.call(echo, json!({"message": "over there"})).await;
        assert_eq!(output.text, "Echo: over there");
        let long = named(&tools, "srv__trigger-long-running-operation");
        let output = world.call(long, json!({"duration": 1, "steps": 4})).await;
        assert!(output.text.contains("completed"), "{output:?}");
        assert!(!world.told().is_empty());
        servers.leave().await;
    }
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(listens, "the server never listened");
}
