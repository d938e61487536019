//! The way out through gyrus's proxy.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread,
};

use gyrus_contract::{BoxedFuture, ConnectionPolicy, Destination, Network};
use gyrus_gate::sandbox::proxy::serve;
use parking_lot::Mutex;

use super::{
    start::{Around, Ran, User},
    world::World,
};

/// Sends what its arguments say to the proxy and prints what comes back. A peer that closes with
/// something unread resets the connection, of which `cat` would tell. `printf` writes line by line,
/// so a peer that has heard enough may be gone before the last line.
const ASK: &str = r#"
trap '' PIPE
ask() {
  local proxy=${HTTP_PROXY#http://}
  exec 3<>/dev/tcp/${proxy%:*}/${proxy#*:}
  printf "$1" >&3 2>/dev/null
  cat <&3 2>/dev/null | tr -d '\r' | tr '\n' '|'
  exec 3>&-
  echo
}
"#;

/// Says `told:` and what it was told, for as long as the test runs.
fn echo() -> u16 {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in server.incoming() {
            let mut client = client.unwrap();
            let mut asked = [0; 4096];
            let count = client.read(&mut asked).unwrap_or_default();
            let said = [b"told:", &asked[..count]].concat();
            let _ = client.write_all(&said);
        }
    });
    port
}

/// Opens some places at once, never answers about another, and remembers what it was asked.
#[derive(Clone)]
struct Policy {
    opens: Arc<Vec<String>>,
    never_answers: &'static str,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ConnectionPolicy for Policy {
    fn decide<'a>(&'a self, to: &'a Destination) -> BoxedFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let text = to.to_string();
            let decided = if self.opens.contains(&text) {
                Ok(())
            } else {
                Err("it was not granted".to_owned())
            };
            let waits = text == self.never_answers;
            self.asked.lock().push(text);
            if waits {
                std::future::pending().await
            } else {
                decided
            }
        })
    }
}

impl Policy {
    fn opening(places: &[String]) -> Self {
        Self {
            opens: Arc::new(places.to_vec()),
            never_answers: "held.example:443",
            asked: Arc::default(),
        }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }
}

fn run(world: &World, policy: &Policy, script: &str) -> Ran {
    let policy = policy.clone();
    world.start(|start| {
        start.run("/bin/bash", &["-c", script], |listeners| {
            let listeners = listeners.expect("listeners");
            thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                runtime.block_on(serve(listeners, &policy))
            });
        })
    })
}

pub(crate) fn asks_about_each_connection(user: User, around: Around) {
    let port = echo();
    let mut world = World::new(user, around);
    world.network = Network::Proxy;
    let policy = Policy::opening(&[format!("127.0.0.1:{port}"), format!("localhost:{port}")]);
    let script = format!(
        "{ASK}
        ask 'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\nhello'
        ask 'GET http://127.1:{port}/x HTTP/1.1\\r\\n\\r\\n'
        ask 'CONNECT localhost.:{port} HTTP/1.1\\r\\n\\r\\nhello'
        ask 'CONNECT EXAMPLE.com.:443 HTTP/1.1\\r\\n\\r\\n'
        ask 'CONNECT 127.0.0.1:1 HTTP/1.1\\r\\n\\r\\n'
        ask 'GET / HTTP/1.1\\r\\n\\r\\n'
        ask 'GET http://127.0.0.1:{port}@example.org/ HTTP/1.1\\r\\n\\r\\n'
        (exec 4<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo BROKEN
        echo done"
    );
    let ran = run(&world, &policy, &script);
    let lines: Vec<&str> = ran.output.lines().collect();
    assert_eq!(lines.len(), 8, "{ran:?}");
    assert_eq!(lines[0], "HTTP/1.1 200 Connection established||told:hello");
    let plain = format!("told:GET /x HTTP/1.1|Host: 127.1:{port}|");
    assert!(lines[1].starts_with(&plain), "{ran:?}");
    assert!(lines[2].ends_with("told:hello"), "{ran:?}");
    for (line, place) in [(3, "example.com:443"), (4, "127.0.0.1:1")] {
        let says = format!("refuses to connect to {place}: it was not granted");
        let refused = lines[line].starts_with("HTTP/1.1 403 ") && lines[line].contains(&says);
        assert!(refused, "{ran:?}");
    }
    assert!(lines[5].starts_with("HTTP/1.1 400 "), "{ran:?}");
    assert!(lines[6].starts_with("HTTP/1.1 400 "), "{ran:?}");
    assert_eq!(lines[7], "done");
    let asked = [
        format!("127.0.0.1:{port}"),
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        "example.com:443".to_owned(),
        "127.0.0.1:1".to_owned(),
    ];
    assert_eq!(policy.asked(), asked);
}

/// Whatever follows a request goes where that request went.
pub(crate) fn a_connection_has_one_destination(user: User, around: Around) {
    let port = echo();
    let mut world = World::new(user, around);
    world.network = Network::Proxy;
    let policy = Policy::opening(&[format!("127.0.0.1:{port}")]);
    let second = "GET http://127.0.0.1:1/smuggled HTTP/1.1\\r\\nHost: 127.0.0.1:1\\r\\n\\r\\n";
    let script = format!(
        "{ASK}
        ask 'GET http://127.0.0.1:{port}/a HTTP/1.1\\r\\n\\r\\n{second}'
        ask 'POST http://127.0.0.1:{port}/b HTTP/1.1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n{second}'
        ask 'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\nCONNECT 127.0.0.1:1 HTTP/1.1\\r\\n\\r\\n'
        "
    );
    let ran = run(&world, &policy, &script);
    assert_eq!(ran.output.lines().count(), 3, "{ran:?}");
    // The port may have these digits, too.
    assert!(!ran.output.contains("HTTP/1.1 403"), "{ran:?}");
    assert!(
        policy
            .asked()
            .iter()
            .all(|to| *to == format!("127.0.0.1:{port}")),
        "{:?}",
        policy.asked()
    );
}

/// One that waits for an answer keeps nobody else waiting, and is given up with its program.
pub(crate) fn a_held_connection_holds_nothing_up(user: User, around: Around) {
    let port = echo();
    let mut world = World::new(user, around);
    world.network = Network::Proxy;
    let policy = Policy::opening(&[format!("127.0.0.1:{port}")]);
    // More than may be held at once; those refused say so.
    let script = format!(
        "{ASK}
        for i in $(seq 40); do (ask 'CONNECT held.example:443 HTTP/1.1\\r\\n\\r\\n' > held.$i) & done
        until [ $(cat held.* 2>/dev/null | grep -c 'too many connections wait') = 8 ]; do :; done
        ask 'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\nhello'
        kill $(jobs -p); wait
        echo done"
    );
    let ran = run(&world, &policy, &script);
    let lines: Vec<&str> = ran.output.lines().collect();
    assert_eq!(
        lines,
        ["HTTP/1.1 200 Connection established||told:hello", "done"],
        "{ran:?}"
    );
}

/// A forwarded address stands inside, for every protocol, and leads outside when it is let.
pub(crate) fn a_forwarded_address_leads_outside(user: User, around: Around) {
    let (port, other, refused) = (echo(), echo(), echo());
    let mut world = World::new(user, around);
    world.network = Network::Proxy;
    world.forwarded = [port, refused, 80]
        .map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
        .to_vec();
    let policy = Policy::opening(&[format!("127.0.0.1:{port}")]);
    let script = format!(
        "say() {{ exec 4<>/dev/tcp/127.0.0.1/$1 && printf hello >&4 && cat <&4 2>/dev/null; echo; }}
        say {port}
        (exec 4<>/dev/tcp/127.0.0.1/{other}) 2>/dev/null || echo closed
        say {refused}
        say 80
        python3 - <<'E'
import socket
try:
    socket.create_server(('127.0.0.1', {port}))
except OSError as error:
    print(error.errno)
s = socket.create_server(('127.0.0.1', {other}))
c = socket.create_connection(('127.0.0.1', {other}))
print('own')
E"
    );
    let ran = run(&world, &policy, &script);
    // 98: the address is in use, as it would be outside.
    assert_eq!(ran.output, "told:hello\nclosed\n\n\n98\nown\n", "{ran:?}");
    assert_eq!(
        policy.asked(),
        [port, refused, 80].map(|port| format!("127.0.0.1:{port}"))
    );
}
