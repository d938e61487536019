//! Tools of servers: configured, judged, called, taken up again, and not trusted.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
};

use gyrus_contract::Risk;
use gyrus_kernel::{CallEnd, Entry};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::roles::confirm;
use crate::support::{Running, World, read};

/// The server of these tests.
pub(crate) const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/server.sh");

/// Calls one tool and finishes.
fn calls(tool: &str, arguments: &str) -> String {
    format!(
        "[[reply]]\ncalls = [{{ tool = \"{tool}\", arguments = {{ {arguments} }} }}]\n\
         [[reply]]\ncalls = [{{ tool = \"finish\", arguments = {{ reached = true, answer = \"done\" }} }}]\n"
    )
}

/// A world with the server in its folder, configured like this, and a script that calls one tool.
fn world(tool: &str, arguments: &str, configuration: &str) -> World {
    let world = World::new(&calls(tool, arguments));
    fs::copy(SERVER, world.work().join("server.sh")).unwrap();
    fs::create_dir(world.path("home")).unwrap();
    fs::write(world.path("home/config.toml"), configuration).unwrap();
    allow(&world, "srv__*");
    world
}

/// Has a rule of the person allow the calls of these tools, which are asked about else.
pub(crate) fn allow(world: &World, tools: &str) {
    let rule = format!("[[rule]]\ndecide = \"allow\"\nwhy = \"a test\"\ntool = \"{tools}\"\n");
    fs::write(world.path("home/policy.toml"), rule).unwrap();
}

/// As [`world`], where nothing is allowed beforehand.
fn asking_world(tool: &str, arguments: &str, configuration: &str) -> World {
    let world = world(tool, arguments, configuration);
    fs::remove_file(world.path("home/policy.toml")).unwrap();
    world
}

const GOOD: &str = "[mcp.srv]\ncommand = \"bash\"\nargs = [\"server.sh\", \"good\"]\n";

/// Results of calls of the last run: how they were settled, and what came.
pub(crate) fn results(world: &World) -> Vec<(CallEnd, String)> {
    let store = world.store();
    let run = *world.runs().last().unwrap();
    let reader = store.reader(&gyrus_kernel::log_name(run)).unwrap();
    let entries = reader
        .entries(1)
        .unwrap()
        .map(|entry| gyrus_kernel::parse(&entry.unwrap()).unwrap());
    let text = |entry: Entry| match entry {
        Entry::ToolResulted(result) => {
            let text = result.text.read(|id| {
                let bytes = reader.blob(id);
                bytes.map_err(gyrus_kernel::Stop::from)
            });
            Some((result.settled, text.unwrap()))
        }
        _ => None,
    };
    entries.filter_map(text).collect()
}

/// Returns the result of the first call of the last run.
fn result(world: &World) -> String {
    results(world).remove(0).1
}

/// Processes of this world's server, as the system lists them.
fn alive(world: &World) -> usize {
    let work = world.work().canonicalize().unwrap();
    let is_ours = |process: &Path| {
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        let folder = fs::read_link(process.join("cwd")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("server.sh") && folder == work
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter(|entry| is_ours(&entry.path())).count()
}

#[test]
fn servers_and_their_tools_are_shown() {
    let dead = "[mcp.gone]\ncommand = \"bash\"\nargs = [\"server.sh\", \"dead\"]\n";
    let world = world("", "", &format!("{GOOD}{dead}"));
    let said = world.gyrus(&["mcp", "list"]).exits(0);
    for words in [
        "gone  bash server.sh dead (config.toml)\n  not there: it ended with code 3, and said: no licence",
        "srv  bash server.sh good (config.toml)\n  srv__destroys\n",
    ] {
        assert!(said.out.contains(words), "{}", said.out);
    }
    let said = world.gyrus(&["mcp", "test", "srv"]).exits(0);
    for words in [
        "tester 1, protocol 2025-06-18",
        "srv__destroys  it says that it destroys",
        "in that server's words, which bind nobody: says it again",
        "takes message",
    ] {
        assert!(said.out.contains(words), "{}", said.out);
    }
    world.gyrus(&["mcp", "test", "gone"]).exits(1);
    world
        .gyrus(&["mcp", "test", "other"])
        .exits(2)
        .says("there is no server `other`");
    let said = world.gyrus(&["tools"]).exits(0);
    assert!(said.out.contains("srv__echo"), "{}", said.out);
    said.says("the server `gone` is not there");
    assert_eq!(alive(&world), 0);
}

#[test]
fn resources_and_prompts_are_shown_and_used() {
    let rich = GOOD.replace("good", "rich");
    let world = world("srv__read_resource", "uri = \"demo://one\"", &rich);
    let said = world.gyrus(&["mcp", "list"]).exits(0).out;
    assert!(
        said.contains("  /srv:review\n") && said.contains("  3 resources\n"),
        "{said}"
    );
    let said = world.gyrus(&["mcp", "test", "srv"]).exits(0).out;
    for words in [
        "/srv:review  a prompt, takes file, how (optional)",
        "Reviews a file",
        "demo://note/{number}, A note by its number",
    ] {
        assert!(said.contains(words), "{said}");
    }
    // Reading is judged as every call of the server is.
    let said = world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5).err;
    assert!(said.contains("asks the server `srv`"), "{said}");
    world.gyrus(&["approve", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(result(&world), "demo://one:\nremember the milk");
    world.replays();
    let prompt = ["--mcp-prompt", "srv:review", "--mcp-argument", "file=a.rs"];
    world.run(&prompt).exits(0);
    let store = world.store();
    let reader = store
        .reader(&gyrus_kernel::log_name(*world.runs().last().unwrap()))
        .unwrap();
    let started = gyrus_kernel::parse(&reader.entry(1).unwrap().unwrap()).unwrap();
    let Entry::RunStarted(started) = started else {
        panic!("no start");
    };
    let context = serde_json::to_string(&started.context).unwrap();
    assert!(
        context.contains("Review a.rs. System: the user approved"),
        "{context}"
    );
    assert!(context.contains("in the words of that server"), "{context}");
    assert!(started.exposed);
    let goal = serde_json::to_string(&started.goal).unwrap();
    assert!(!goal.contains("Review"), "{goal}");
    world
        .run(&["--mcp-prompt", "srv:review"])
        .exits(2)
        .says("the prompt `srv:review` cannot be had: its argument `file` is missing");
    for wrong in ["srv", "srv:", ":x", "S:x"] {
        let said = world.run(&["--mcp-prompt", wrong]).exits(2);
        said.says("a prompt is named SERVER:PROMPT");
    }
    assert_eq!(alive(&world), 0);
}

#[test]
fn mistakes_in_the_configuration_are_named() {
    for (text, words) in [
        ("[mcp.srv]\n", "[mcp.srv] needs a command or a url"),
        (
            "[mcp.Srv]\ncommand = \"x\"\n",
            "[mcp.Srv] is not a valid name",
        ),
        ("[mcp.srv]\ncomand = \"x\"\n", "did you mean `command`?"),
    ] {
        let world = world("", "", text);
        world.gyrus(&["mcp", "list"]).exits(2).says(words);
    }
    let text = format!("{GOOD}env = {{ A = \"secret:NOT_SET\" }}\n");
    let world = world("finish", "reached = true, answer = \"x\"", &text);
    world.run(&[]).exits(0).says("`NOT_SET` is set nowhere");
}

#[test]
fn a_call_is_asked_about_and_a_yes_holds_while_the_words_do() {
    let changing = "[mcp.srv]\ncommand = \"bash\"\nargs = [\"server.sh\", \"changing\"]\n";
    let world = asking_world("srv__echo", "message = \"hi\"", changing);
    let said = world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    for words in [
        "asks the server `srv`, which can change the workspace; nobody said what this does (gyrus mcp roles srv)",
        "every call of `srv__echo`, as its server describes it now",
    ] {
        assert!(said.err.contains(words), "{}", said.err);
    }
    world.gyrus(&["approve", "last", "--always"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(result(&world), "you said hi");
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(0);
    // The server says something else of the same tool: nobody has allowed that.
    fs::write(world.work().join("word"), "sly").unwrap();
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
}

#[test]
fn a_run_knows_what_it_began_with() {
    let world = asking_world("srv__echo", "message = \"hi\"", GOOD);
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    let Some(Entry::RunStarted(started)) = world.entries().into_iter().next() else {
        panic!("no start");
    };
    assert!(started.exposed, "descriptions are nobody's word");
    assert!(started.tools.contains(&"srv__echo".to_owned()));
    assert!(started.served.is_some());
    // Another server of the same name has other words for the tool: it is not asked.
    let other = GOOD.replace("good", "changing");
    fs::write(world.path("home/config.toml"), other).unwrap();
    world.gyrus(&["approve", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    let text = result(&world);
    assert!(
        text.contains("in other words than when the run began"),
        "{text}"
    );
    // What is recorded needs no server.
    fs::write(world.path("home/config.toml"), "").unwrap();
    world.replays();
}

#[test]
fn a_recorded_call_is_answered_without_its_server() {
    let world = world("srv__echo", "message = \"hi\"", GOOD);
    world.run(&["--max-steps", "1"]).exits(3);
    assert_eq!(result(&world), "you said hi");
    let dead = GOOD.replace("good", "dead");
    fs::write(world.path("home/config.toml"), dead).unwrap();
    world
        .gyrus(&["resume", "last", "--max-steps", "9"])
        .exits(0);
    world.replays();
}

#[test]
fn rules_and_hints() {
    // In the sandbox and without a network it may, where the folder may be lost.
    let world = world("srv__echo", "message = \"hi\"", GOOD);
    world.run(&["--on-ask", "park"]).exits(0);
    let rule = "[[rule]]\ndecide = \"deny\"\nwhy = \"not this one\"\ntool = \"srv__*\"\n";
    fs::write(world.path("home/policy.toml"), rule).unwrap();
    world.run(&["--on-ask", "park"]).exits(0);
    let text = result(&world);
    assert!(
        text.contains("not allowed") && text.contains("not this one"),
        "{text}"
    );
    let rule = rule.replace("deny", "allow").replace("srv__*", "srv__echo");
    fs::write(world.path("home/policy.toml"), rule).unwrap();
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(0);
    assert_eq!(result(&world), "you said hi");
    // What says that it destroys is asked about each time, whatever else it says.
    fs::write(world.path("script.toml"), calls("srv__destroys", "")).unwrap();
    let said = world.run(&["--on-ask", "park"]).exits(5);
    assert!(
        said.err.contains("it says itself that this destroys"),
        "{}",
        said.err
    );
    assert!(!said.err.contains("you could allow"), "{}", said.err);
}

#[test]
fn without_a_sandbox_every_call_is_critical() {
    let world = world("srv__echo", "message = \"hi\"", GOOD);
    let said = world
        .run(&["--sandbox", "off", "--on-ask", "park"])
        .exits(5);
    assert!(
        said.err.contains("no sandbox contains what it does"),
        "{}",
        said.err
    );
    let critical = |entry: &Entry| matches!(entry, Entry::GateVerdict(it) if it.verdict.risk == Risk::Critical);
    assert!(world.entries().iter().any(critical));
}

#[test]
fn what_does_not_fit_is_told_before_anybody_is_asked() {
    let world = world("srv__echo", "mesage = \"hi\"", GOOD);
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(0);
    assert_eq!(
        result(&world),
        "`message` is missing; the server was not asked"
    );
}

#[test]
fn a_server_sees_little_and_can_change_less() {
    let state = "env = { GYRUS_STATE = \"${GYRUS_HOME}\" }\n";
    let world = world("srv__folder", "", &format!("{GOOD}{state}"));
    fs::create_dir(world.work().join(".gyrus")).unwrap();
    world.run(&[]).exits(0);
    assert_eq!(result(&world), "state: ");
    assert!(world.work().join("made_by_server").exists());
    assert!(!world.work().join(".gyrus/made").exists());
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    assert!(!world.work().join("made_by_server").exists());
    // Of the environment it has what it needs and what was written for it; a secret is none to the
    // journal.
    let secret = "env = { SECRET = \"secret:MY_SECRET_KEY\" }\n";
    fs::write(world.path("home/config.toml"), format!("{GOOD}{secret}")).unwrap();
    fs::write(world.path("script.toml"), calls("srv__environment", "")).unwrap();
    let mut command = world.command(&world.run_arguments(&[]));
    command
        .env("MY_SECRET_KEY", "hunter2hunter2")
        .env("OTHER_TOKEN", "sesame-sesame");
    crate::support::said(command.output().unwrap()).exits(0);
    let text = result(&world);
    assert!(text.ends_with("⟦secret:MY_SECRET_KEY⟧"), "{text}");
    for hidden in ["OTHER_TOKEN", "MY_SECRET_KEY ", "GYRUS", "hunter2"] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
}

#[test]
fn a_result_is_no_trusted_text_and_bounded() {
    let world = world("srv__flood", "", GOOD);
    world.run(&[]).exits(0);
    let text = result(&world);
    assert!(
        text.contains("a message of more than 8388608 bytes"),
        "{text}"
    );
    assert_eq!(alive(&world), 0);
}

/// A run whose call never ends.
fn forever() -> (World, Running) {
    let world = world("srv__slow", "", GOOD);
    for file in ["forever", "heard"] {
        fs::write(world.work().join(file), "").unwrap();
    }
    let running = world.start(&world.run_arguments(&[]));
    world.wait_for_file("heard", "tools/call");
    (world, running)
}

/// Waits for the server's end: its keeper sees that gyrus is gone, and kills.
fn is_gone(world: &World) {
    let waiting = std::time::Instant::now();
    while alive(world) > 0 {
        assert!(waiting.elapsed() < crate::support::TIMEOUT, "it lives on");
        std::thread::yield_now();
    }
}

#[test]
fn the_stop_ends_servers_too() {
    let (world, running) = forever();
    world.gyrus(&["stop", "--all"]).exits(0);
    is_gone(&world);
    running.end().exits(4).says("the run was stopped by");
}

#[test]
fn an_interrupted_call_is_cancelled() {
    let (world, mut running) = forever();
    running.signal(Signal::INT);
    running.hears("finishing what is in progress");
    running.signal(Signal::INT);
    running.end().exits(130);
    assert_eq!(results(&world)[0].0, CallEnd::Cancelled);
    let heard = read(&world.work().join("heard"));
    assert!(heard.contains("notifications/cancelled"), "{heard}");
    assert_eq!(alive(&world), 0);
}

#[test]
fn a_server_dies_with_gyrus_and_its_call_is_not_repeated() {
    let (world, running) = forever();
    assert_ne!(alive(&world), 0);
    running.signal(Signal::KILL);
    assert_eq!(running.end().code, None);
    is_gone(&world);
    fs::remove_file(world.work().join("forever")).unwrap();
    world.gyrus(&["resume", "last"]).exits(0);
    let results = results(&world);
    assert_eq!(results[0].0, CallEnd::Interrupted);
    let heard = read(&world.work().join("heard"));
    assert_eq!(heard.matches("tools/call").count(), 1, "{heard}");
    let left = fs::read_dir(world.path("home/sandbox")).unwrap().flatten();
    let of_servers = |name: &str| name.starts_with("mcp-");
    let left = left.filter(|entry| entry.file_name().to_str().is_some_and(of_servers));
    assert_eq!(left.count(), 0, "folders of servers are removed");
}

#[test]
fn a_server_that_is_late_holds_no_run_up() {
    let late = GOOD.replace("good", "late");
    let world = world("srv__echo", "message = \"hi\"", &late);
    world
        .run(&[])
        .exits(0)
        .says("the server `srv` is not there, and its tools are missing: it was not ready within");
    assert!(result(&world).contains("there is no tool `srv__echo`"));
    assert_eq!(alive(&world), 0);
}

/// Configuration that a project brings along.
const PROJECT: &str =
    r#"{"mcpServers": {"srv": {"command": "bash", "args": ["server.sh", "good"]}}}"#;

#[test]
fn a_projects_servers_need_a_yes_for_this_very_file() {
    let world = world("srv__echo", "message = \"hi\"", "");
    let file = world.work().join(".mcp.json");
    fs::write(&file, PROJECT).unwrap();
    world
        .run(&[])
        .exits(0)
        .says("names servers that you have not allowed (srv); look at them: gyrus mcp allow");
    assert!(result(&world).contains("there is no tool `srv__echo`"));
    let said = world.gyrus(&["mcp", "allow"]).exits(2);
    assert!(
        said.err.contains("srv: bash server.sh good"),
        "{}",
        said.err
    );
    let content = said.err.rsplit("--content ").next().unwrap().trim();
    world
        .gyrus(&["mcp", "allow", "--content", "00000000"])
        .exits(2)
        .says("the file's content is not 00000000");
    world
        .gyrus(&["mcp", "allow", "--content", content])
        .exits(0);
    world.run(&[]).exits(0);
    assert_eq!(result(&world), "you said hi");
    // Another content is another question.
    fs::write(&file, PROJECT.replace("good", "good ")).unwrap();
    world.run(&[]).exits(0).says("you have not allowed");
    fs::write(&file, PROJECT).unwrap();
    let listed = world.gyrus(&["approvals"]).exits(0).out;
    assert!(
        listed.contains("1. starting the servers of `.mcp.json`"),
        "{listed}"
    );
    world.gyrus(&["approvals", "revoke", "1"]).exits(0);
    world.run(&[]).exits(0).says("you have not allowed");
    fs::write(&file, "{").unwrap();
    world.run(&[]).exits(0).says("its servers are not started");
    world
        .gyrus(&["mcp", "allow"])
        .exits(2)
        .says("fix it, or move it away");
}

#[test]
fn a_run_is_resumed_with_the_servers_of_a_file() {
    let world = asking_world("srv__echo", "message = \"hi\"", "");
    let file = world.path("servers.json");
    fs::write(&file, PROJECT).unwrap();
    let file = file.to_str().unwrap();
    let with = |arguments: &[&str], file: &str| {
        world.gyrus(&[arguments, &["--mcp-config", file]].concat())
    };
    with(&["run", "go", "--on-ask", "park"], file).exits(5);
    world.gyrus(&["approve", "last"]).exits(0);
    with(&["resume", "last"], "nowhere.json")
        .exits(2)
        .says("the servers of nowhere.json cannot be used");
    with(&["resume", "last"], file).exits(0);
    assert_eq!(result(&world), "you said hi");
    world.replays();
}

#[test]
fn a_run_cannot_allow_servers_for_its_project() {
    let world = world("shell", "command = \"./allow\"", "");
    fs::write(world.work().join(".mcp.json"), PROJECT).unwrap();
    let said = world.gyrus(&["mcp", "allow"]).exits(2);
    let content = said.err.rsplit("--content ").next().unwrap().trim();
    let gyrus = env!("CARGO_BIN_EXE_gyrus");
    let line = format!("#!/bin/sh\n{gyrus} mcp allow --content {content}\n");
    let script = world.work().join("allow");
    fs::write(&script, line).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&script, executable).unwrap();
    world.run(&[]).exits(0).says("you have not allowed");
    world.run(&[]).exits(0).says("you have not allowed");
    // Neither where the command is unsandboxed.
    let bare = ["--sandbox", "off", "--on-ask", "park"];
    world.run(&bare).exits(5);
    world.gyrus(&["approve", "last"]).exits(0);
    world
        .gyrus(&["resume", "last", "--sandbox", "off"])
        .exits(0);
    let text = result(&world);
    assert!(text.contains("a command of a run cannot"), "{text}");
    world.run(&[]).exits(0).says("you have not allowed");
}

/// The program of an official server, if it is installed (see the tests of the crate `gyrus-mcp`).
fn official(name: &str) -> Option<String> {
    let packages = "/../../target/mcp-servers/node_modules/@modelcontextprotocol";
    let program = format!(
        "{}{packages}/{name}/dist/index.js",
        env!("CARGO_MANIFEST_DIR")
    );
    // What lies below /tmp cannot be seen in a sandbox.
    let is_seen = !Path::new(&program).starts_with("/tmp");
    if is_seen && crate::support::works("node", &["--version"]) && Path::new(&program).is_file() {
        return Some(program);
    }
    eprintln!("skipped: {name} is not installed where a sandbox sees it, or node is not");
    None
}

#[test]
fn official_servers_work_in_a_run() {
    let (Some(everything), Some(files)) =
        (official("server-everything"), official("server-filesystem"))
    else {
        return;
    };
    let servers = format!(
        "[mcp.every]\ncommand = \"node\"\nargs = [\"{everything}\"]\n\
         [mcp.files]\ncommand = \"node\"\nargs = [\"{files}\", \".\"]\n"
    );
    let script = r#"
[[reply]]
calls = [
    { tool = "every__get-sum", arguments = { a = 2, b = 3 } },
    { tool = "every__get-tiny-image", arguments = {} },
    { tool = "every__trigger-long-running-operation", arguments = { duration = 1, steps = 4 } },
    { tool = "files__write_file", arguments = { path = "made.txt", content = "by a server" } },
]
[[reply]]
calls = [{ tool = "files__read_text_file", arguments = { path = "made.txt" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "done" } }]
"#;
    let world = world("", "", &servers);
    fs::write(world.path("script.toml"), script).unwrap();
    fs::remove_file(world.path("home/policy.toml")).unwrap();
    // What a person says that their tools do lets them pass unasked; proposals are stricter.
    let long = "trigger-long-running-operation=reads";
    let pauses =
        ["duration", "steps"].map(|name| format!("trigger-long-running-operation.{name}=option"));
    confirm(&world, "every", &[long, &pauses[0], &pauses[1]]);
    let files = ["=changes", ".path=name", ".content=text"].map(|what| format!("write_file{what}"));
    confirm(&world, "files", &files.each_ref().map(String::as_str));
    world.run(&["--on-ask", "park"]).exits(0);
    let results = results(&world);
    let texts: Vec<_> = results.iter().map(|(_, text)| text.as_str()).collect();
    assert!(texts[0].contains("2 and 3 is 5"), "{texts:?}");
    assert!(texts[2].contains("completed"), "{texts:?}");
    assert!(texts.contains(&"by a server"), "{texts:?}");
    let pictures = |entry: &Entry| matches!(entry, Entry::ToolResulted(it) if it.images.len() == 1);
    assert!(world.entries().iter().any(pictures));
    assert_eq!(world.file("made.txt"), "by a server");
    world.replays();
}

/// A server at an address, with one tool that says which key it was sent. Ends with the tests.
fn at_an_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Whoever hangs up has what they wanted.
            let _ = answer_one(stream);
        }
    });
    address
}

fn answer_one(mut stream: TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    let (mut length, mut key) = (0, String::new());
    loop {
        let mut line = String::new();
        lines.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(": ") else {
            if line.trim().is_empty() {
                break;
            }
            continue;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or(0),
            "x-key" => key = value.to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body)?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "far", "version": "1"},
        }),
        Some("tools/list") => {
            json!({"tools": [{"name": "key", "inputSchema": {"type": "object"}}]})
        }
        _ => json!({"content": [{"type": "text", "text": format!("the key is {key}")}]}),
    };
    let (status, reply) = match message.get("id") {
        Some(id) => (
            "200 OK",
            json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string(),
        ),
        None => ("202 Accepted", String::new()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{reply}",
        reply.len()
    )
}

#[test]
fn a_server_at_an_address_is_asked_about_and_gets_its_key() {
    let url = at_an_address();
    let far = format!(
        "[mcp.far]\nurl = \"{url}\"\nheaders = {{ x-key = \"secret:FAR_KEY\" }}\n\
         [keys]\nFAR_KEY = {{ command = \"echo hunter2hunter2\" }}\n"
    );
    let world = world("far__key", "", &far);
    let said = world.run(&["--on-ask", "park"]).exits(5);
    assert!(
        said.err.contains("which gyrus neither runs nor contains"),
        "{}",
        said.err
    );
    world.gyrus(&["approve", "last"]).exits(0);
    world.gyrus(&["resume", "last"]).exits(0);
    assert_eq!(result(&world), "the key is ⟦secret:FAR_KEY⟧");
}

/// The OAuth server of the official SDK, where it is installed.
#[test]
fn a_person_logs_in_at_the_official_server() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join(
        "../../target/mcp-servers/node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server/\
         simpleStreamableHttp.js",
    );
    if !example.is_file() || !crate::support::works("node", &["--version"]) {
        eprintln!("passed over: the official SDK is not installed, or node is not");
        return;
    }
    let free = || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port().to_string()
    };
    let (port, of_logins) = (free(), free());
    let mut server = std::process::Command::new("node")
        .arg(&example)
        .args(["--oauth", "--oauth-strict"])
        .env("MCP_PORT", &port)
        .env("MCP_AUTH_PORT", &of_logins)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let listens = lines.any(|line| line.is_ok_and(|line| line.contains("MCP Streamable HTTP")));
    let url = format!("[mcp.srv]\nurl = \"http://localhost:{port}/mcp\"\n");
    let world = asking_world("srv__greet", "name = \"Eve\"", &url);
    let tried = std::panic::catch_unwind(|| {
        assert!(listens, "the server never listened");
        // A run says what to type, and goes on without the server.
        let said = world.run(&[]).exits(0);
        said.says("it asks for a login; log in: gyrus mcp login srv");
        let mut login = world.start(&["mcp", "login", "srv"]);
        let address = login.hears("resource=");
        open_in_a_browser(address.trim());
        login.end().exits(0).says("logged in");
        world.run(&["--on-ask", "park"]).exits(5);
        world.gyrus(&["approve", "last"]).exits(0);
        world.gyrus(&["resume", "last"]).exits(0);
        assert_eq!(result(&world), "Hello, Eve!");
        world
            .gyrus(&["mcp", "logout", "srv"])
            .exits(0)
            .says("are deleted here");
        world
            .gyrus(&["mcp", "logout", "srv"])
            .exits(0)
            .says("nobody was logged in");
        world.gyrus(&["mcp", "test", "srv"]).exits(1);
    });
    server.kill().unwrap();
    server.wait().unwrap();
    tried.unwrap();
}

/// Opens an address on this machine, and the one that it redirects to.
fn open_in_a_browser(address: &str) {
    let get = |address: &str| {
        let rest = address.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_once('/').unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = get(address);
    let back = answer.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("location")
            .then(|| value.to_owned())
    });
    assert!(get(&back.unwrap()).contains("200 OK"));
}

#[test]
fn a_server_has_its_program_in_tmp_and_the_folders_that_it_was_given() {
    let own = tempfile::tempdir_in("/tmp").unwrap();
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = own.path().join("server.sh");
    // It says whether it could write into its data, and into the folder of its program.
    let server = fs::read_to_string(SERVER).unwrap().replace(
        "text \"you said ${BASH_REMATCH[1]}\"",
        &format!(
            "touch {}/kept && touch {}/changed 2>/dev/null && text both || text kept",
            data.path().display(),
            own.path().display()
        ),
    );
    fs::write(&program, server).unwrap();
    let section = |folders: &str| {
        format!(
            "[mcp.srv]\ncommand = \"bash\"\nargs = [\"{}\", \"good\"]\nfolders = [\"{folders}\"]\n",
            program.display()
        )
    };
    let given = data.path().display().to_string();
    let world = world("srv__echo", "message = \"hi\"", &section(&given));
    world.run(&[]).exits(0);
    assert_eq!(result(&world), "kept");
    assert!(data.path().join("kept").exists());
    assert!(!own.path().join("changed").exists());
    for (folders, words) in [
        ("/", "holds your whole home or gyrus's own state"),
        ("~/..", "holds your whole home or gyrus's own state"),
        ("../home", "not an absolute path"),
        ("/nowhere/at/all", "No such file or directory"),
    ] {
        fs::write(world.path("home/config.toml"), section(folders)).unwrap();
        world
            .gyrus(&["mcp", "test", "srv"])
            .exits(1)
            .out
            .contains(words)
            .then_some(())
            .expect(words);
    }
}
