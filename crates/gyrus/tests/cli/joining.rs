//! Tools of servers that join a run after its start.

use std::fs;

use gyrus_kernel::Entry;

use crate::{
    finding_tools::{script, served_by},
    serving::{SERVER, allow, results},
    support::World,
};

fn world(how: &str, calls: &[&str]) -> World {
    let world = World::new(&script(calls));
    fs::copy(SERVER, world.work().join("server.sh")).unwrap();
    fs::create_dir(world.path("home")).unwrap();
    let text = format!("[mcp.srv]\ncommand = \"bash\"\nargs = [\"server.sh\", \"{how}\"]\n");
    fs::write(world.path("home/config.toml"), text).unwrap();
    allow(&world, "srv__*");
    world
}

const ECHO: &str = r#"tool = "srv__echo", arguments = { message = "hi" }"#;
const LIST: &str = r#"tool = "list", arguments = { path = "." }"#;
const JOINED: &str = r#"tool = "srv__joined", arguments = {}"#;

/// Returns the names of the tools that joined the only run, addition by addition.
fn joined(world: &World) -> Vec<Vec<String>> {
    let names = world.entries().into_iter().filter_map(|entry| match entry {
        Entry::ToolsAdded(added) => Some(added.names),
        _ => None,
    });
    names.collect()
}

#[test]
fn a_new_tool_joins_at_a_later_step_and_stays() {
    // The server says so before it answers; two steps later it surely has been heard.
    let world = world("growing", &[ECHO, LIST, LIST, JOINED, ECHO]);
    world.run(&["--max-steps", "4"]).exits(3);
    assert_eq!(joined(&world), [["srv__joined"]]);
    assert_eq!(results(&world)[3].1, "nothing");
    // Another process has it from the journal, without the server.
    let dead = world.path("home/config.toml");
    let text = fs::read_to_string(&dead)
        .unwrap()
        .replace("growing", "dead");
    fs::write(&dead, text).unwrap();
    world
        .gyrus(&["resume", "last", "--max-steps", "9"])
        .exits(0);
    assert_eq!(joined(&world).len(), 1);
    let offered = served_by(&world, "srv__");
    assert_eq!(offered[0], ["srv__echo"]);
    for later in &offered[3..] {
        assert_eq!(*later, ["srv__echo", "srv__joined"]);
    }
    world.replays();
}

#[test]
fn a_server_that_was_late_joins() {
    // The second command ends when the server was asked for its tools; its answer is there a few
    // steps later, each with a process of its own, which a busy machine is as slow to start.
    let ready = r#"tool = "shell", arguments = { command = "touch heard ready" }"#.to_owned();
    let heard = "until grep -q tools/list heard; do sleep 0.05; done";
    let heard = format!(r#"tool = "shell", arguments = {{ command = "{heard}" }}"#);
    let process =
        |number| format!(r#"tool = "shell", arguments = {{ command = "true {number}" }}"#);
    let mut calls = vec![ready, heard];
    calls.extend((0..8).map(process));
    calls.push(ECHO.to_owned());
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let world = world("waiting", &calls);
    world.run(&[]).exits(0).says("it joins once it is ready");
    let joined = joined(&world);
    assert!(joined[0].contains(&"srv__echo".to_owned()), "{joined:?}");
    assert_eq!(results(&world)[10].1, "you said hi");
    world.replays();
}
