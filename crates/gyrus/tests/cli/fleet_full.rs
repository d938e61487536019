//! Servers with too little room: for a run, which waits until there is some, or for a single message.

use std::{fs, net::TcpListener, path::Path};

use gyrus_fleet::nats::{LocalServer, ServerOptions};

use crate::{
    fleet::{SHORT, at, exits, no_server, program},
    support::{Running, World, said},
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
