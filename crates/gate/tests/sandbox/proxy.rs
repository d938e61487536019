//! The way out through gyrus's proxy.

use std::{
    io::{Read, Write},
    net::TcpListener,
    os::fd::OwnedFd,
    sync::Arc,
    thread,
};

use gyrus_contract::Network;
use gyrus_gate::sandbox::proxy::{Denials, serve};

use super::{
    start::{Around, User},
    world::World,
};

/// Sends what its arguments say to the proxy and prints what comes back.
const ASK: &str = r#"
ask() {
  local proxy=${HTTP_PROXY#http://}
  exec 3<>/dev/tcp/${proxy%:*}/${proxy#*:}
  printf "$1" >&3
  cat <&3 | tr -d '\r' | tr '\n' '|'
  exec 3>&-
  echo
}
"#;

pub(crate) fn opens_what_was_granted(user: User, around: Around) {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    // Says what it was told, for as long as this test runs.
    thread::spawn(move || {
        for client in server.incoming() {
            let mut client = client.unwrap();
            let mut asked = [0; 512];
            let count = client.read(&mut asked).unwrap();
            client.write_all(b"told:").unwrap();
            client.write_all(&asked[..count]).unwrap();
        }
    });
    let mut world = World::new(user, around);
    world.network = Network::Proxy;
    let denials = Denials::default();
    let known = denials.clone();
    // The name leads to this machine, which was granted by number only.
    let hosts = move |host: &str, at: u16| at == port && ["127.0.0.1", "localhost"].contains(&host);
    let script = format!(
        "{ASK}
        ask 'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\nhello'
        ask 'GET http://127.0.0.1:{port}/x HTTP/1.1\\r\\n\\r\\n'
        ask 'CONNECT localhost:{port} HTTP/1.1\\r\\n\\r\\n'
        ask 'CONNECT example.com:443 HTTP/1.1\\r\\n\\r\\n'
        ask 'CONNECT 127.0.0.1:1 HTTP/1.1\\r\\n\\r\\n'
        ask 'GET / HTTP/1.1\\r\\n\\r\\n'
        (exec 4<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo BROKEN
        echo done"
    );
    let ran = world.start(|start| {
        start.run("/bin/bash", &["-c", &script], |listener| {
            let listener: OwnedFd = listener.expect("a listener");
            thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                runtime.block_on(serve(listener, Arc::new(hosts), known))
            });
        })
    });
    let lines: Vec<&str> = ran.output.lines().collect();
    let refused = |line: &str, place: &str, why: &str| {
        line.starts_with("HTTP/1.1 403 ")
            && line.contains(&format!("refuses to connect to {place}: "))
            && line.contains(why)
    };
    assert_eq!(lines.len(), 7, "{ran:?}");
    assert_eq!(lines[0], "HTTP/1.1 200 Connection established||told:hello");
    assert!(
        lines[1].starts_with(&format!("told:GET /x HTTP/1.1|Host: 127.0.0.1:{port}|")),
        "{ran:?}"
    );
    assert!(
        refused(lines[2], &format!("localhost:{port}"), "by number"),
        "{ran:?}"
    );
    assert!(
        refused(lines[3], "example.com:443", "not granted"),
        "{ran:?}"
    );
    assert!(refused(lines[4], "127.0.0.1:1", "not granted"), "{ran:?}");
    assert!(lines[5].starts_with("HTTP/1.1 400 "), "{ran:?}");
    assert_eq!(lines[6], "done");
    let denied: Vec<_> = denials
        .list()
        .into_iter()
        .map(|denial| denial.host)
        .collect();
    assert_eq!(denied, ["localhost", "example.com", "127.0.0.1"]);
}
