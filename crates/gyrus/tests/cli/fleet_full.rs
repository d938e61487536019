//! Too little room: at the servers for a run, which waits until there is some, or for a single message;
//! on the disks of a worker and of a door.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use gyrus_fleet::nats::{LocalServer, ServerOptions};
use serde_json::json;

use crate::{
    disks::{fill, own},
    fleet::{Fleet, SHORT, at, eventually, exits, no_server, program},
    server::{Server, TOKEN},
    support::{Running, UNTIL_GO, World, said},
};

/// Says more than fits, between two lines of a ledger.
const LARGE: &str = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "echo one >> ledger.txt" } }]
[[reply]]
calls = [{ tool = "shell", arguments = { command = "seq -f %.9f 1.1234 0.000377 160 | head -c 4000000" } }]
[[reply]]
calls = [{ tool = "shell", arguments = { command = "echo two >> ledger.txt" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "finished" } }]
"#;

/// Starts a server with an account of these limits, and more lines of configuration.
fn server(
    programs: &Path,
    folder: &Path,
    port: Option<u16>,
    limits: &str,
    more: &str,
) -> LocalServer {
    LocalServer::start(&ServerOptions {
        program: programs.join("nats-server"),
        folder: folder.to_owned(),
        name: "small".to_owned(),
        port,
        token: None,
        more: format!(
            "accounts {{ FLEET: {{ jetstream: {{ {limits} }}, \
             users: [ {{ user: worker, password: word }} ] }} }}\n{more}\n"
        ),
        syncs_always: true,
    })
    .unwrap()
}

fn address(server: &LocalServer) -> String {
    let LocalServer { port, monitor, .. } = server;
    format!("nats://worker:word@127.0.0.1:{port}?monitor={monitor}")
}

#[test]
fn a_run_that_the_servers_have_no_room_for_waits_until_they_have() {
    let Some(programs) = program() else {
        return no_server();
    };
    let world = World::new(LARGE);
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let server = |room: &str| {
        let limits = format!("max_file: {room}");
        server(&programs, &world.path("server"), Some(port), &limits, "")
    };
    let small = server("100KB");
    let fleet = address(&small);
    let mut worker = Running::of(&mut at(
        &world,
        "worker",
        &["worker", "--fleet", &fleet, "--lease", SHORT],
    ));
    worker.hears("takes runs of");
    let words = [&world.run_arguments(&[])[..], &["--fleet", &fleet]].concat();
    let mut submit = at(&world, "client", &words);
    let watched = std::thread::spawn(move || said(submit.output().unwrap()));
    worker.hears("the servers are full");
    drop(small);
    let large = server("200MB");
    let told = watched.join().unwrap();
    told.exits(0);
    assert_eq!(
        fs::read_to_string(world.path("work/ledger.txt")).unwrap(),
        "one\ntwo\n"
    );
    let status = ["fleet", "status", "--fleet", &address(&large)];
    let status = exits(at(&world, "client", &status)).exits(0);
    assert!(status.out.contains("1 over"), "{status:?}");
}

#[test]
fn servers_that_take_small_messages_or_few_are_told_by_the_doctor() {
    let Some(programs) = program() else {
        return no_server();
    };
    let world = World::new(LARGE);
    for (number, (limits, more, code, words)) in [
        ("", "", 0, "room "),
        (
            "",
            "max_payload: 64KB",
            2,
            "leave `max_payload` at its default",
        ),
        ("max_file: 1KB", "", 2, "the servers are full"),
        (
            "max_streams: 3",
            "",
            2,
            "do not make the stream gyrus-main-inbox",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let folder = world.path(&format!("server-{number}"));
        let server = server(&programs, &folder, None, limits, more);
        let doctor = ["fleet", "doctor", "--fleet", &address(&server)];
        let told = exits(at(&world, "client", &doctor)).exits(code);
        let text = format!("{}{}", told.out, told.err);
        assert!(text.contains(words), "{limits} {more}: {text}");
    }
}

/// Returns the command of gyrus with a home that is a small disk of its own.
fn on_small_disk(world: &World, home: &str, words: &str) -> Option<Command> {
    fs::create_dir(world.path(home)).unwrap();
    let line = format!("mount -t tmpfs -o size=6m tmpfs \"$GYRUS_HOME\"\nexec \"$GYRUS\" {words}");
    let mut command = own(world, "-m", &line)?;
    command.env("GYRUS_HOME", world.path(home));
    Some(command)
}

#[test]
fn a_worker_and_a_door_on_full_disks_go_on_once_there_is_room() {
    let Some(fleet) = Fleet::start(UNTIL_GO) else {
        return no_server();
    };
    let world = &fleet.world;
    let worker = format!(
        "worker --fleet {} --lease {SHORT} --at-once 1",
        fleet.address
    );
    let door = format!("serve --fleet {} --port 0 --token {TOKEN}", fleet.address);
    let (Some(mut worker), Some(door)) = (
        on_small_disk(world, "one", &worker),
        on_small_disk(world, "here", &door),
    ) else {
        return;
    };
    let mut worker = Running::of(&mut worker);
    worker.hears("takes runs of");
    let door = Server::of(world, door);
    let filler = |process: u32, home: &str| -> PathBuf {
        let home = world.path(home);
        format!("/proc/{process}/root{}/filler", home.display()).into()
    };
    let fillers = [
        filler(worker.process(), "one"),
        filler(door.process(), "here"),
    ];
    let options = json!({"approve": "auto"});
    let all: Vec<_> = (0..3).map(|_| door.run("go on", &options)).collect();
    world.wait_for_file("ledger.txt", "begun");
    fillers.iter().for_each(|filler| fill(filler));
    fs::write(world.path("work/go"), "").unwrap();
    worker.hears("is full");
    for filler in fillers {
        fs::remove_file(filler).unwrap();
    }
    for command in &all {
        let ended = door.wait_for_end(command);
        assert_eq!(ended["stage"]["code"], 0, "{ended:#}");
    }
    assert_eq!(world.file("ledger.txt").matches("done").count(), all.len());
    eventually("the door shows and tells each", || {
        let runs = door.get("/api/runs").json();
        let over = runs["runs"].as_array().unwrap().iter();
        let ended = door.get("/api/events?topic=command.ended&limit=9").json();
        over.filter(|run| run["state"] == "over").count() == all.len()
            && ended["events"].as_array().map(Vec::len) == Some(all.len())
    });
}
