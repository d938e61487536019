//! A sandbox that fits a working day: variables, ports and folders that are let in by name, limits
//! that say what would lift them, and processes that go on.

use std::{
    fs,
    io::Write,
    net::TcpListener,
    os::unix::net::UnixListener,
    thread,
    time::{Duration, Instant},
};

use gyrus_kernel::{Entry, ToolResulted};

use crate::support::World;

/// Calls of `shell` with these arguments, one a step, and the end.
fn script(calls: &[&str]) -> String {
    let steps = calls.iter().map(|arguments| {
        format!("[[reply]]\ncalls = [{{ tool = \"shell\", arguments = {{ {arguments} }} }}]\n")
    });
    steps.collect::<String>()
        + "[[reply]]\ncalls = [{ tool = \"finish\", arguments = { reached = true, answer = \"ok\" } }]\n"
}

/// Returns the results of the calls of the only run.
fn results(world: &World) -> Vec<ToolResulted> {
    let entries = world.entries().into_iter();
    let results = entries.filter_map(|entry| match entry {
        Entry::ToolResulted(outcome) => Some(outcome),
        _ => None,
    });
    results.collect()
}

fn text(outcome: &ToolResulted) -> String {
    format!("{:?}", outcome.text)
}

/// Whether a file below a folder holds these bytes, but for what is kept apart from journals.
fn holds(folder: &std::path::Path, bytes: &str) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        if path.is_dir() {
            !path.ends_with("private") && holds(&path, bytes)
        } else {
            let content = fs::read(&path).unwrap_or_default();
            content
                .windows(bytes.len())
                .any(|part| part == bytes.as_bytes())
        }
    })
}

/// A server outside of every sandbox, at a port that nobody's system picks.
fn server() -> u16 {
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let listener = (first..32_000).find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok());
    let listener = listener.unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let _ = client.unwrap().write_all(b"hello");
        }
    });
    port
}

const VALUE: &str = "postgres-hunter22-value";

#[test]
fn a_variable_passes_by_name_and_its_value_stays_secret() {
    let world = World::new(&script(&[
        r#"command = "echo $DATABASE_URL $SHOWN_ONE ${OTHER_ONE:-none}; echo $DATABASE_URL > kept.txt""#,
    ]));
    fs::create_dir_all(world.path("home")).unwrap();
    let config = "[sandbox]\nenv-shown = [\"SHOWN_*\"]\n";
    fs::write(world.path("home/config.toml"), config).unwrap();
    let mut command = world.command(&world.run_arguments(&["--env", "DATABASE_URL"]));
    command
        .env("DATABASE_URL", VALUE)
        .env("SHOWN_ONE", "one shown value")
        .env("OTHER_ONE", "another one");
    crate::support::said(command.output().unwrap()).exits(0);
    let said = text(&results(&world)[0]);
    assert!(
        said.contains("⟦secret:DATABASE_URL⟧ one shown value none"),
        "{said}"
    );
    assert_eq!(world.file("kept.txt"), format!("{VALUE}\n"));
    assert!(!holds(&world.path("home/journal"), VALUE));
    world.replays();
}

#[test]
fn names_that_change_what_is_started_are_refused() {
    let world = World::new("");
    for name in [
        "LD_PRELOAD",
        "PATH",
        "HOME",
        "GIT_DIR",
        "BASH_ENV",
        "GYRUS_HOME",
        "x y",
        "a=b=c",
        "",
    ] {
        let name = format!("{name}=x");
        world.run(&["--env", &name]).exits(2);
    }
    assert!(world.runs().is_empty());
}

#[test]
fn a_project_asks_and_a_person_agrees_to_what_the_file_holds() {
    let world = World::new(&script(&[r#"command = "echo ${AWS_SECRET:-none}""#]));
    fs::create_dir_all(world.work().join(".gyrus")).unwrap();
    let file = world.work().join(".gyrus/sandbox.toml");
    let said = |world: &World| {
        let mut command = world.command(&world.run_arguments(&[]));
        let run = crate::support::said(command.env("AWS_SECRET", VALUE).output().unwrap());
        let run = run.exits(0);
        run.out + &run.err
    };
    fs::write(&file, "env = [\"AWS_SECRET\"]\n").unwrap();
    let unasked = said(&world);
    assert!(
        unasked.contains("gyrus sandbox agree") && unasked.contains("← none"),
        "{unasked}"
    );
    world
        .gyrus(&["sandbox", "agree"])
        .exits(0)
        .says("AWS_SECRET");
    assert!(said(&world).contains("← ⟦secret:AWS_SECRET⟧"));
    fs::write(&file, "env = [\"AWS_SECRET\", \"OTHER\"]\n").unwrap();
    assert!(said(&world).contains("← none"));
    for (text, why) in [
        ("env = [\"AWS_*\"]\n", "more than one variable"),
        ("caches = \"shared\"\n", "your own config.toml"),
        ("evn = []\n", "did you mean `env`"),
    ] {
        fs::write(&file, text).unwrap();
        let said = said(&world);
        assert!(said.contains(why) && said.contains("is not used"), "{said}");
    }
}

#[test]
fn a_port_of_this_machine_asks_first_and_passes_when_it_was_named() {
    let port = server();
    let line = format!(r#"command = "exec 3<>/dev/tcp/127.0.0.1/{port}; head -c5 <&3""#);
    let world = World::new(&script(&[&line]));
    world.run(&["--on-ask", "deny"]).exits(0);
    let refused = &results(&world)[0];
    let key = format!("ports = [{port}]");
    assert!(
        refused.sandbox.iter().any(|limit| limit.contains(&key)),
        "{refused:?}"
    );
    world
        .gyrus(&["sandbox", "why"])
        .exits(0)
        .says(&format!("--port {port}"));
    let named = World::new(&script(&[&line]));
    named.run(&["--port", &port.to_string()]).exits(0);
    let said = text(&results(&named)[0]);
    assert!(said.contains("hello"), "{said}");
    let tried = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && head -c5 <&3; exit 7");
    let tried = named.gyrus(&["sandbox", "run", "--port", &port.to_string(), &tried]);
    assert_eq!(tried.exits(7).out, "hello");
}

#[test]
fn the_port_of_gyrus_itself_is_never_reached() {
    let port = server();
    let line = format!(r#"command = "exec 3<>/dev/tcp/127.0.0.1/{port}; head -c5 <&3""#);
    let world = World::new(&script(&[&line]));
    fs::create_dir_all(world.path("home/serve")).unwrap();
    fs::write(
        world.path("home/serve/address"),
        format!("http://127.0.0.1:{port}"),
    )
    .unwrap();
    world.run(&["--port", &port.to_string()]).exits(0);
    let said = text(&results(&world)[0]);
    assert!(
        said.contains("gyrus's own server") && !said.contains("hello"),
        "{said}"
    );
}

#[test]
fn an_added_folder_is_changed_but_for_what_runs_by_itself() {
    let world = World::new(&script(&[
        r#"command = "cd ../extra; echo new > a.txt; rm old.txt; echo x > .envrc; mkdir -p sub/.git; echo x > sub/.git/config; ls""#,
        r#"command = "cat ../extra/a.txt""#,
    ]));
    let extra = world.path("extra");
    fs::create_dir_all(&extra).unwrap();
    fs::write(extra.join("old.txt"), "old\n").unwrap();
    world.run(&["--add-dir", "../extra"]).exits(0);
    let told = text(&results(&world)[0]);
    assert!(told.contains("created: a.txt; deleted: old.txt"), "{told}");
    assert!(told.contains("`.envrc` was dropped"), "{told}");
    let mut names: Vec<_> = fs::read_dir(&extra)
        .unwrap()
        .map(|one| one.unwrap().file_name())
        .collect();
    names.retain(|name| name != "sub");
    assert_eq!(names, ["a.txt"]);
    assert!(!extra.join("sub/.git/config").exists());
    let world = World::new(&script(&[r#"command = "echo x > ../extra/b.txt""#]));
    fs::create_dir_all(world.path("extra")).unwrap();
    world.run(&["--add-dir", "../extra:ro"]).exits(0);
    assert!(!world.path("extra/b.txt").exists());
}

#[test]
fn folders_that_hold_too_much_are_refused() {
    let world = World::new("");
    fs::create_dir_all(world.path("person/.ssh/keys")).unwrap();
    fs::create_dir_all(world.path("home/journal")).unwrap();
    fs::create_dir_all(world.work().join("sub")).unwrap();
    std::os::unix::fs::symlink(world.path("person/.ssh"), world.path("link")).unwrap();
    for folder in [
        "/",
        "~/",
        "~/.ssh",
        "~/.ssh/keys",
        "../link",
        "../home",
        "../home/journal",
        "..",
        ".",
        "sub",
        "/etc",
        "../missing",
    ] {
        for suffix in ["", ":ro"] {
            let folder = folder.replace("~/", &format!("{}/", world.path("person").display()));
            world
                .run(&["--add-dir", &format!("{folder}{suffix}")])
                .exits(2);
        }
    }
}

#[test]
fn a_limit_of_a_command_names_its_key() {
    let world = World::new(&script(&[r#"command = "sleep 30", timeout_seconds = 60"#]));
    fs::create_dir_all(world.path("home")).unwrap();
    let config = "[sandbox]\ncommand-time = \"1s\"\n";
    fs::write(world.path("home/config.toml"), config).unwrap();
    world.run(&[]).exits(0);
    let said = text(&results(&world)[0]);
    assert!(
        said.contains("timed out after 1 s") && said.contains("`command-time`"),
        "{said}"
    );
}

const SERVE: &str = r#"command = "echo made > made.txt; echo x > .envrc; python3 -u -c \"import http.server as s; print('ready'); s.test(s.SimpleHTTPRequestHandler, port=18123, bind='127.0.0.1')\"", background = true, until = "ready", timeout_seconds = 60"#;

#[test]
fn a_process_goes_on_and_later_commands_reach_it() {
    let world = World::new(&script(&[
        SERVE,
        r#"command = "python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:18123/made.txt').read())\"; ls""#,
        r#"command = "cat", background = true"#,
        r#"process = "3.2", command = "hello there", until = "there""#,
        r#"process = "9", command = """#,
        r#"process = "1.2", command = "", end = true"#,
        r#"command = "cat made.txt; ls -a""#,
    ]));
    world.run(&["--on-ask", "deny"]).exits(0);
    let said: Vec<String> = results(&world).iter().map(text).collect();
    assert!(
        said[0].contains("ready") && said[0].contains("process 1.2 goes on"),
        "{said:?}"
    );
    // What it wrote is not in the workspace before its end was seen.
    assert!(
        said[1].contains("b'made\\\\\\\\n'") || said[1].contains("made"),
        "{said:?}"
    );
    assert!(said[3].contains("hello there"), "{said:?}");
    assert!(
        said[4].contains("there are:") && said[4].contains("3.2 goes on: cat"),
        "{said:?}"
    );
    assert!(said[5].contains("created: made.txt"), "{said:?}");
    assert!(
        said[6].contains("made") && !said[6].contains(".envrc"),
        "{said:?}"
    );
    assert_eq!(world.file("made.txt"), "made\n");
    assert!(!world.work().join(".envrc").exists());
    world.replays();
}

#[test]
fn what_a_process_serves_is_fetched_unasked_and_nothing_else_on_this_machine() {
    let serve = SERVE.replace("18123", "18124");
    let fetch = |address: &str| {
        format!(
            "[[reply]]\ncalls = [{{ tool = \"fetch\", arguments = {{ url = \"{address}\" }} }}]\n"
        )
    };
    let calls = format!("[[reply]]\ncalls = [{{ tool = \"shell\", arguments = {{ {serve} }} }}]\n");
    let addresses = [
        "http://127.0.0.1:18124/made.txt",
        "http://localhost:18124/",
        "http://127.0.0.1:18124@example.com/",
        "http://127.0.0.1:18126/",
        "https://127.0.0.1:18124/",
    ];
    let fetches: String = addresses.iter().map(|address| fetch(address)).collect();
    let world = World::new(&(calls + &fetches + &script(&[])));
    world.gyrus(&[
        "run",
        "serve it",
        "--workdir",
        ".",
        "--on-ask",
        "deny",
        "--max-steps",
        "20",
    ]);
    let said: Vec<String> = results(&world).iter().map(text).collect();
    assert!(
        said[1].contains("status 200 OK") && said[1].contains("made"),
        "{said:?}"
    );
    assert!(
        said[2].contains("status 200 OK") && said[2].contains("made.txt"),
        "{said:?}"
    );
    for (said, address) in said[3..].iter().zip(&addresses[2..]) {
        assert!(!said.contains("status"), "{address}: {said}");
    }
    world.replays();
}

/// Serves a page, and looks at it in the browser.
const LOOKS: &str = r#"
[[reply]]
calls = [{ tool = "shell", arguments = { command = "echo '<title>Made</title><h1>It was made here</h1>' > made.html; python3 -u -c \"import http.server as s; print('ready'); s.test(s.SimpleHTTPRequestHandler, port=18127, bind='127.0.0.1')\"", background = true, until = "ready", timeout_seconds = 60 } }]
[[reply]]
calls = [{ tool = "open_url", arguments = { url = "http://127.0.0.1:18127/made.html" } }]
[[reply]]
calls = [{ tool = "extract", arguments = {} }]
[[reply]]
when = "It was made here"
calls = [{ tool = "finish", arguments = { reached = true, answer = "ok" } }]
"#;

#[test]
fn the_browser_reaches_what_a_process_serves() {
    let world = World::new(LOOKS);
    let goal = "look at http://127.0.0.1:18127/made.html";
    let arguments = [
        "run",
        goal,
        "--workdir",
        ".",
        "--loop",
        "react",
        "--screen",
        "browser",
    ];
    let mut command = crate::browsing::browsing(&world, &arguments);
    let said = crate::support::said(command.args(["--on-ask", "deny"]).output().unwrap());
    assert_eq!(said.exits(0).out, "ok\n");
    // The door was closed with the process.
    std::net::TcpListener::bind(("127.0.0.1", 18127)).unwrap();
}

/// Whether a process with these words in its command line lives.
fn lives(words: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| fs::read(process.path().join("cmdline")).ok())
        .any(|line| String::from_utf8_lossy(&line).contains(words))
}

#[test]
fn processes_end_with_their_run() {
    let name = format!("5{}", std::process::id());
    let start = format!(r#"command = "sleep {name} & sleep {name}", background = true"#);
    let world = World::new(&script(&[&start]));
    world.run(&[]).exits(0);
    assert!(!lives(&format!("sleep\0{name}")));
    // A stop ends them at once; a kill, too, and the next process says so.
    let wait = r#"command = "sleep 100", timeout_seconds = 200"#;
    let world = World::new(&script(&[&start, wait, r#"process = "1.2", command = """#]));
    let running = world.start(&world.run_arguments(&[]));
    world.wait_for(
        |entry| matches!(entry, Entry::ToolStarted(call) if call.effect.to_string() == "2.2"),
    );
    assert!(lives(&format!("sleep\0{name}")));
    let stopped = Instant::now();
    world.gyrus(&["stop"]).exits(0);
    while lives(&format!("sleep\0{name}")) {
        assert!(stopped.elapsed() < Duration::from_secs(5));
    }
    drop(running);
    world.gyrus(&["resume", "last"]).exits(0);
    let last = results(&world).pop().unwrap();
    let told = results(&world)
        .into_iter()
        .find(|one| text(one).contains("does not go on"));
    assert!(told.is_some(), "{last:?}");
}

#[test]
fn what_is_written_to_a_process_is_judged_as_a_line() {
    let world = World::new(&script(&[
        r#"command = "cat", background = true"#,
        r#"process = "1.2", command = "git push origin main", until = "x", timeout_seconds = 1"#,
        r#"process = "1.2", command = "git push\n", until = "x", timeout_seconds = 1"#,
        r#"process = "1.2", command = "\n", until = "x", timeout_seconds = 1"#,
    ]));
    fs::create_dir_all(world.path("home")).unwrap();
    let policy =
        "[[rule]]\ndecide = \"deny\"\nwhy = \"nothing leaves\"\ncommand = [\"git\", \"push\"]\n";
    fs::write(world.path("home/policy.toml"), policy).unwrap();
    world.run(&[]).exits(0);
    let said: Vec<String> = results(&world).iter().map(text).collect();
    assert!(said[0].contains("goes on"), "{said:?}");
    let err = world.gyrus(&["show", "last"]).exits(0).out;
    assert!(err.matches("nothing leaves").count() >= 2, "{err}");
    assert!(said[3].contains("process 1.2 goes on"), "{said:?}");
}

#[test]
fn a_socket_is_let_in_by_name() {
    const READ: &str = "import os, socket as s; c = s.socket(s.AF_UNIX); \
                        c.connect(os.environ.get('SSH_AUTH_SOCK', '/run/a.sock')); print(c.recv(9))";
    let line = format!(r#"command = "python3 -c \"{READ}\" || {{ echo no .sock; exit 1; }}""#);
    let world = World::new(&script(&[&line]));
    // Below /tmp, where commands see a folder of their own.
    let socket = world.path("agent");
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            let _ = client.unwrap().write_all(b"hello");
        }
    });
    fs::create_dir_all(world.path("home")).unwrap();
    let with = |sockets: &str, arguments: &[&str]| {
        let config = format!("[sandbox]\nsockets = [{sockets}]\n");
        fs::write(world.path("home/config.toml"), config).unwrap();
        let mut command = world.command(arguments);
        crate::support::said(command.env("SSH_AUTH_SOCK", &socket).output().unwrap())
    };
    with(r#""docker""#, &world.run_arguments(&[])).exits(0);
    let refused = text(&results(&world)[0]);
    assert!(refused.contains("`sockets` in [sandbox]"), "{refused}");
    let read = ["sandbox", "run", "python3", "-c", READ];
    let let_in = with(r#""ssh-agent""#, &read);
    assert!(let_in.out.contains("b'hello'"), "{let_in:?}");
    with(r#""agent""#, &read).exits(2).says("is not a socket");
    let own = format!("{:?}", world.path("home/serve/socket"));
    with(&own, &read).exits(2).says("belongs to gyrus itself");
    // A project cannot propose one.
    fs::create_dir(world.work().join(".gyrus")).unwrap();
    let project = world.work().join(".gyrus/sandbox.toml");
    fs::write(project, "sockets = [\"docker\"]\n").unwrap();
    with("", &read).says("can be set in your own config.toml only");
}
