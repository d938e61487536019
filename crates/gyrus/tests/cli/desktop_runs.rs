//! Runs that use programs on a desktop of their own: `gyrus run --screen x11`.

use std::{
    fs,
    net::TcpListener,
    process::{Command, Stdio},
};

use gyrus_kernel::Entry;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{
    refusing::refuse,
    support::{Running, Said, World, said, works},
    taking_over::Person,
};

/// Opens a file, writes into it, saves it, and finishes once the title says so. It finds everything
/// in what it is shown.
const WRITES: &str = r#"
[[reply]]
text = '''{"note": "begin", "actions": [{"do": "open_application", "application": "text editor mousepad", "file": "letter.txt"}]}'''
[[reply]]
text = '''{"note": "by its name", "actions": [{"do": "open_application", "application": "mousepad", "file": "letter.txt"}]}'''
[[reply]]
find = { text = '(\w+) textbox' }
text = '''{"note": "write", "actions": [{"do": "type_text", "on": "{{text}}", "text": "Žluťoučký kůň\n世界 😀", "replace": true}, {"do": "press_key", "key": "Control+s"}]}'''
[[reply]]
when = 'Žluťoučký kůň'
find = { token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "done", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "The letter is written."}]}'''
"#;

/// Whether there are the programs to test with; says so if one is missing.
pub(crate) fn has(programs: &[&str]) -> bool {
    let versions = ["--version", "-help", "-version"];
    let is_there = |program: &str| versions.iter().any(|version| works(program, &[version]));
    let missing = programs.iter().find(|program| !is_there(program));
    if let Some(missing) = missing {
        eprintln!("left out: {missing} is not installed");
    }
    missing.is_none() && cfg!(feature = "desktop")
}

fn run_arguments(goal: &str) -> Vec<&str> {
    let mut arguments = vec!["run", goal, "--screen", "x11", "--workdir", "."];
    arguments.extend(["--on-ask", "deny", "--require", "claimed"]);
    arguments
}

/// Runs a goal on a desktop, with nobody to ask.
fn run(world: &World, goal: &str) -> Said {
    world.gyrus(&run_arguments(goal))
}

/// Everything that the calls of the last run said to the model.
fn results(world: &World) -> String {
    let texts = world.entries().into_iter().filter_map(|entry| match entry {
        Entry::ToolResulted(result) => Some(format!("{:?}", result.text)),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_letter_is_written_in_an_editor() {
    if !has(&["Xvfb", "openbox", "mousepad"]) {
        return;
    }
    let world = World::new(WRITES);
    fs::write(world.work().join("letter.txt"), "a draft\n").unwrap();
    let ended = run(&world, "write the letter in mousepad").exits(0);
    assert!(ended.out.contains("The letter is written."), "{ended:#?}");
    let written = world.file("letter.txt");
    assert_eq!(
        written.trim_end(),
        "Žluťoučký kůň\n世界 😀",
        "{}",
        results(&world)
    );
    // Nothing of the desktop is left.
    let letter = world.work().join("letter.txt");
    let letter = letter.to_str().unwrap();
    let left = Command::new("pgrep").args(["-f", letter]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
    world.replays();
    // What the editor saved is taken back as what a command wrote is.
    world.gyrus(&["undo", "last", "--yes"]).exits(0);
    assert_eq!(world.file("letter.txt"), "a draft\n");
}

/// Moves the caret to the end of a text, where it is, and once more.
const MOVES: &str = r#"
[[reply]]
text = '''{"note": "open", "actions": [{"do": "open_application", "application": "mousepad", "file": "letter.txt"}]}'''
[[reply]]
find = { text = '(\w+) textbox' }
text = '''{"note": "to the end", "actions": [{"do": "press_key", "on": "{{text}}", "key": "Control+End"}]}'''
[[reply]]
find = { text = '(\w+) textbox' }
text = '''{"note": "again", "actions": [{"do": "press_key", "on": "{{text}}", "key": "Control+End"}]}'''
[[reply]]
find = { token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "done", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "At the end."}]}'''
"#;

#[test]
fn a_caret_that_moves_is_a_change() {
    if !has(&["Xvfb", "openbox", "mousepad"]) {
        return;
    }
    let world = World::new(MOVES);
    fs::write(world.work().join("letter.txt"), "a draft of a letter\n").unwrap();
    run(&world, "go to the end of the letter").exits(0);
    let told = results(&world);
    assert_eq!(told.matches("the caret, is elsewhere").count(), 1, "{told}");
}

/// Opens a program and uses it, whatever the answers are.
fn uses(program: &str, text: &str) -> String {
    format!(
        r#"
[[reply]]
text = '''{{"note": "open", "actions": [{{"do": "open_application", "application": "{program}"}}]}}'''
[[reply]]
text = '''{{"note": "use", "actions": [{{"do": "type_text", "text": "{text}", "submit": true}}]}}'''
[[reply]]
find = {{ token = 'token of this run is: ([0-9a-f ]+)' }}
text = '''{{"note": "no", "actions": [{{"do": "finish", "token": "{{{{token}}}}", "reached": false, "answer": "It was not allowed."}}]}}'''
"#
    )
}

/// Answers one request with a page; whether there was one.
fn serve_page(server: TcpListener) -> std::thread::JoinHandle<bool> {
    use std::io::{Read as _, Write as _};
    std::thread::spawn(move || {
        let Ok((mut client, _)) = server.accept() else {
            return false;
        };
        let mut head = [0; 4096];
        let _ = client.read(&mut head);
        let page = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nwords";
        client.write_all(page.as_bytes()).is_ok()
    })
}

/// Fetches a page by the proxy that programs on the desktop have, in a terminal.
const FETCHES: &str = r#"
[[reply]]
text = '''{"note": "open", "actions": [{"do": "open_application", "application": "xterm"}]}'''
[[reply]]
text = '''{"note": "use", "actions": [{"do": "type_text", "text": "python3 fetch.py; echo done > end", "submit": true}, {"do": "wait", "seconds": 4}, {"do": "press_key", "key": "a"}]}'''
[[reply]]
find = { token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "done", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "Done."}]}'''
"#;

#[test]
fn programs_on_a_desktop_reach_what_the_goal_names_alone() {
    if !has(&["Xvfb", "openbox", "xterm", "python3"]) {
        return;
    }
    for is_named in [true, false] {
        let world = World::new(FETCHES);
        let server = TcpListener::bind("127.0.0.2:0").unwrap();
        let address = server.local_addr().unwrap();
        let served = serve_page(server);
        let fetch = format!(
            "import urllib.request\n\
             got = urllib.request.urlopen('http://{address}/', timeout=20).read()\n\
             open('page', 'wb').write(got)\n"
        );
        fs::write(world.work().join("fetch.py"), fetch).unwrap();
        let place = if is_named {
            address.to_string()
        } else {
            "a page".to_owned()
        };
        run(&world, &format!("fetch {place} in xterm")).exits(0);
        let results = results(&world);
        assert_eq!(world.file("end"), "done\n", "{results}");
        let page = world.work().join("page");
        assert_eq!(page.exists(), is_named, "{results}");
        let refused = format!("the sandbox refused connections to {address}");
        assert_eq!(results.contains(&refused), !is_named, "{results}");
        if !is_named {
            // Ends the server.
            drop(std::net::TcpStream::connect(address));
        }
        served.join().unwrap();
    }
}

#[test]
fn what_runs_commands_is_asked_about_unless_the_goal_names_it() {
    if !has(&["Xvfb", "openbox", "xterm"]) {
        return;
    }
    for (program, goal, why) in [
        ("xterm", "list the files in a terminal", "runs commands"),
        ("bash", "list the files in a shell", "runs commands"),
        ("polkit-agent", "list the files", "no application is called"),
    ] {
        let world = World::new(&uses(program, "touch flag"));
        let ended = run(&world, goal);
        assert_ne!(ended.code, Some(0), "{program}: {ended:?}");
        let results = results(&world);
        assert!(results.contains(why), "{program}: {results}");
        assert!(!world.work().join("flag").exists());
    }
}

/// Commands that try to leave the sandbox, in a terminal that the goal names.
#[test]
fn programs_on_a_desktop_of_the_run_change_its_folder_alone() {
    if !has(&["Xvfb", "openbox", "xterm"]) {
        return;
    }
    let world = World::new("");
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let outside = world.path("person");
    let secret = world.path("home/secret");
    fs::create_dir_all(world.path("home")).unwrap();
    fs::write(&secret, "of gyrus").unwrap();
    let commands = format!(
        "touch {outside}/flag; cat {secret} > read; bash -c ': < /dev/tcp/127.0.0.1/{port}'; \
         kill -9 {process}; env > variables; echo done > end",
        outside = outside.display(),
        secret = secret.display(),
        port = server.local_addr().unwrap().port(),
        process = std::process::id(),
    );
    let script = format!(
        r#"
[[reply]]
text = '''{{"note": "open", "actions": [{{"do": "open_application", "application": "xterm"}}]}}'''
[[reply]]
text = '''{{"note": "use", "actions": [{{"do": "type_text", "text": "{commands}", "submit": true}}, {{"do": "wait", "seconds": 1}}]}}'''
[[reply]]
find = {{ token = 'token of this run is: ([0-9a-f ]+)' }}
text = '''{{"note": "done", "actions": [{{"do": "finish", "token": "{{{{token}}}}", "reached": true, "answer": "Done."}}]}}'''
"#
    );
    fs::write(world.path("script.toml"), script).unwrap();
    run(&world, "try what commands can do in xterm").exits(0);
    let results = results(&world);
    assert_eq!(world.file("end"), "done\n", "{results}");
    assert_eq!(world.file("read"), "");
    assert!(!outside.join("flag").exists());
    assert!(server.accept().is_err(), "a program reached the network");
    let variables = world.file("variables");
    assert!(variables.contains("HOME=/tmp/home\n"), "{variables}");
}

#[test]
fn without_namespaces_programs_have_the_persons_rights_and_are_asked_about() {
    if !has(&["Xvfb", "openbox", "mousepad"]) {
        return;
    }
    let world = World::new(&uses("mousepad", "a"));
    let mut command = world.command(&run_arguments("write a letter"));
    refuse(&mut command, &world.path(""));
    let ended = said(command.output().unwrap());
    assert_ne!(ended.code, Some(0), "{ended:?}");
    let results = results(&world);
    assert!(results.contains("with your own rights"), "{results}");
}

/// Writes and closes the window without saving.
const DROPS: &str = r#"
[[reply]]
text = '''{"note": "open", "actions": [{"do": "open_application", "application": "mousepad"}]}'''
[[reply]]
text = '''{"note": "write", "actions": [{"do": "type_text", "text": "unsaved"}]}'''
[[reply]]
text = '''{"note": "close", "actions": [{"do": "close_tab"}]}'''
[[reply]]
find = { token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "no", "actions": [{"do": "finish", "token": "{{token}}", "reached": false, "answer": "It was not allowed."}]}'''
"#;

#[test]
fn closing_what_was_not_saved_is_asked_about() {
    if !has(&["Xvfb", "openbox", "mousepad"]) {
        return;
    }
    let world = World::new(DROPS);
    run(&world, "try mousepad");
    let results = results(&world);
    assert!(results.contains("not saved: that deletes it"), "{results}");
}

#[test]
fn what_cannot_be_is_said_before_a_run_begins() {
    let world = World::new(WRITES);
    if !cfg!(feature = "desktop") {
        let said = run(&world, "write the letter in mousepad");
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains("--features desktop"), "{said:?}");
    }
    for wrong in [
        &["--screen", "x11", "--url", "http://127.0.0.1:1/"][..],
        &["--screen", "x11", "--visible"],
        &["--display", ":0"],
        &["--screen", "none", "--display", ":0"],
    ] {
        let said = world.gyrus(&[&["run", "write", "--workdir", "."], wrong].concat());
        assert_eq!(said.code, Some(2), "{wrong:?}: {said:?}");
    }
    assert!(world.runs().is_empty());
}

/// Writes, and after a crash finds the desktop empty and gives up with what it was told.
const IS_CUT_OFF: &str = r#"
[[reply]]
text = '''{"note": "open", "actions": [{"do": "open_application", "application": "mousepad"}]}'''
[[reply]]
text = '''{"note": "write", "actions": [{"do": "type_text", "text": "unsaved"}]}'''
[[reply]]
text = '''{"note": "wait", "actions": [{"do": "wait", "seconds": 10}]}'''
"#;

const AFTERWARDS: &str = r#"
[[reply]]
find = { told = '(The desktop was started anew)', token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "gone", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "{{told}}."}]}'''
"#;

#[test]
fn a_resumed_run_begins_with_a_new_desktop_and_says_so() {
    if !has(&["Xvfb", "openbox", "mousepad"]) {
        return;
    }
    let world = World::new(IS_CUT_OFF);
    let mut child = world
        .command(&run_arguments("try mousepad"))
        .spawn()
        .unwrap();
    world.wait_for(|entry| {
        matches!(entry, Entry::ToolResulted(result) if format!("{:?}", result.text).contains("Typed"))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    // The third reply may have come before the end, or not.
    let (before, _) = IS_CUT_OFF.rsplit_once("[[reply]]").unwrap();
    let script = format!("{before}{AFTERWARDS}{AFTERWARDS}");
    fs::write(world.path("script.toml"), script).unwrap();
    let ended = world.gyrus(&["resume", "last"]).exits(0);
    assert!(
        ended.out.contains("The desktop was started anew."),
        "{ended:?}"
    );
}

/// Asks for a person, and finishes once they have written something.
const ASKS_FOR_A_PERSON: &str = r#"
[[reply]]
text = '''{"note": "open", "actions": [{"do": "open_application", "application": "mousepad", "file": "letter.txt"}]}'''
[[reply]]
text = '''{"note": "a person's part", "actions": [{"do": "hand_over", "text": "sign it, please"}]}'''
[[reply]]
when = "Dear Ada, yours"
find = { word = '(I signed it)', token = 'token of this run is: ([0-9a-f ]+)' }
text = '''{"note": "{{word}}", "actions": [{"do": "finish", "token": "{{token}}", "reached": true, "answer": "Heard: {{word}}."}]}'''
"#;

/// A run that has asked for a person, and the person who has its desktop.
fn taken_over(world: &World) -> (Running, Person) {
    let arguments = ["run", "sign the letter in mousepad", "--screen", "x11"];
    let more = ["--on-ask", "wait", "--require", "claimed"];
    let run = world.start(&[&arguments[..], &more].concat());
    world.wait_for(|entry| matches!(entry, Entry::ApprovalAsked(_)));
    let mut take = world.command(&["take"]);
    take.stdout(Stdio::piped());
    let mut person = Person::at(take);
    person.opens();
    (run, person)
}

#[test]
fn a_display_that_ends_is_taken_from_the_person_who_has_it() {
    if !has(&["Xvfb", "openbox", "mousepad"]) {
        return;
    }
    let world = World::new(ASKS_FOR_A_PERSON);
    fs::write(world.work().join("letter.txt"), "Dear Ada, ").unwrap();
    let (run, person) = taken_over(&world);
    person.sees("letter.txt");
    let servers = servers_of(run.process());
    kill_process(servers[0], Signal::KILL).unwrap();
    assert_eq!(person.ends(), Some(1));
    world.gyrus(&["stop", "last"]).exits(0);
    run.end();
}

#[test]
fn a_person_takes_a_desktop_over() {
    if !has(&["Xvfb", "openbox", "mousepad"]) {
        return;
    }
    let world = World::new(ASKS_FOR_A_PERSON);
    fs::write(world.work().join("letter.txt"), "Dear Ada, ").unwrap();
    let (run, person) = taken_over(&world);
    person.sees("letter.txt");
    person.clicks((640.0, 400.0));
    person.does(&json!([{"do": "key", "key": "Control+End"}]));
    person.types("yours, Žofie");
    person.does(&json!([{"do": "key", "key": "Control+s"}]));
    // The window says that it is saved.
    let letter = world.work().join("letter.txt");
    person.sees(&format!("\"title\":\"{} - Mousepad\"", letter.display()));
    let words = "I signed it";
    assert_eq!(person.leaves(words), Some(0));
    let ended = run.end().exits(0);
    assert!(ended.out.contains("Heard: I signed it."), "{ended:?}");
    assert_eq!(
        world.file("letter.txt").trim_end(),
        "Dear Ada, yours, Žofie"
    );
}

/// Returns the X servers that a process has started.
pub(crate) fn servers_of(process: u32) -> Vec<Pid> {
    let read = |process: i32, what: &str| {
        let bytes = fs::read(format!("/proc/{process}/{what}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let parent = |process: i32| {
        let stat = read(process, "stat");
        let (_, rest) = stat.rsplit_once(") ")?;
        let parent = rest.split(' ').nth(1)?.parse::<i32>().ok()?;
        (parent > 1).then_some(parent)
    };
    let is_below = |one: i32| {
        let mut line = std::iter::successors(Some(one), |one| parent(*one));
        line.any(|one| one == process.cast_signed())
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let servers =
        numbers.filter(|one| read(*one, "cmdline").contains("Xvfb\0-displayfd") && is_below(*one));
    servers.filter_map(Pid::from_raw).collect()
}

#[test]
fn a_run_whose_display_ends_goes_on_with_another_and_says_so() {
    if !has(&["Xvfb", "openbox", "mousepad"]) {
        return;
    }
    let script = format!("{IS_CUT_OFF}{AFTERWARDS}");
    let world = World::new(&script.replace(r#""seconds": 10"#, r#""seconds": 2"#));
    let mut running = world.command(&run_arguments("try mousepad"));
    running.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = running.spawn().unwrap();
    world.wait_for(|entry| {
        matches!(entry, Entry::ToolResulted(result) if format!("{:?}", result.text).contains("Typed"))
    });
    let servers = servers_of(child.id());
    assert_eq!(servers.len(), 1);
    kill_process(servers[0], Signal::KILL).unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}{errors}{}", results(&world));
    assert!(said.contains("The desktop was started anew."), "{said}");
}

/// Asks a helper in another loop as if it had a browser.
const DELEGATES: &str = r#"
[[reply]]
calls = [{ tool = "browse", arguments = { goal = "write hello", url = "http://127.0.0.1:1/" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = false, answer = "It has none." } }]
"#;

#[test]
fn other_loops_are_told_of_a_desktop_and_not_of_a_browser() {
    if !has(&["Xvfb", "openbox", "mousepad"]) {
        return;
    }
    let world = World::new(DELEGATES);
    let mut arguments = vec!["run", "write hello in mousepad", "--screen", "x11"];
    arguments.extend(["--workdir", ".", "--loop", "react"]);
    arguments.extend(["--on-ask", "deny", "--require", "claimed"]);
    let said = world.gyrus(&arguments);
    let wrong = "unknown argument `url`, expected `goal`";
    assert!(said.err.contains(wrong), "{said:#?}");
    assert!(said.err.contains("open notes.txt in the text editor"));
}
