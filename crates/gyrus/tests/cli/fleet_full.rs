//! Servers that have no room: a run that does not fit waits, and goes on when there is some.

use std::{fs, net::TcpListener};

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
        LocalServer::start(&ServerOptions {
            program: programs.join("nats-server"),
            folder: world.path("server"),
            name: "small".to_owned(),
            port: Some(port),
            token: None,
            more: format!(
                "accounts {{ FLEET: {{ jetstream: {{ max_file: {room} }}, \
                 users: [ {{ user: worker, password: word }} ] }} }}"
            ),
            syncs_always: true,
        })
        .unwrap()
    };
    let small = server("100KB");
    let address = |server: &LocalServer| {
        let monitor = server.monitor;
        format!("nats://worker:word@127.0.0.1:{port}?monitor={monitor}")
    };
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
