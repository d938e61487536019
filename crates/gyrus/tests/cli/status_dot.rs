//! `gyrus dot`: a person sees on their desktop what runs do, and stops all of them by a key.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::support::{TIMEOUT, UNTIL_GO, World, works};

/// A display that ends with the test.
struct Display {
    server: Child,
    name: String,
}

impl Display {
    fn start() -> Self {
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "400x300x24", "-noreset"])
            .args(["-nolisten", "tcp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut number = String::new();
        let told = server.stdout.as_mut().unwrap();
        BufReader::new(told).read_line(&mut number).unwrap();
        Self {
            server,
            name: format!(":{}", number.trim()),
        }
    }

    /// Lets `xdotool` do this, and returns what it says.
    #[track_caller]
    fn tool(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("xdotool");
        let done = command.args(arguments).env("DISPLAY", &self.name).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{arguments:?}: {done:?}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Waits until the dot shows this state.
    fn shows(&self, state: &str) {
        self.tool(&["search", "--sync", "--name", &format!("^gyrus: {state}")]);
    }
}

/// A program that ends with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a session bus; returns it with its address. It starts what shows notifications, which ends
/// with it, when it is needed. There the person makes this choice.
fn bus(world: &World, display: &Display, choice: &str) -> (Program, String) {
    let folder = world.path("dunst");
    fs::create_dir(&folder).unwrap();
    let rule = format!("[gyrus]\nappname = gyrus\naction_name = {choice}\n");
    fs::write(folder.join("dunstrc"), rule).unwrap();
    let mut bus = Command::new("dbus-daemon")
        .args(["--session", "--nofork", "--nopidfile", "--print-address=1"])
        .env("DISPLAY", &display.name)
        .env("XDG_CONFIG_HOME", world.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut address = String::new();
    let told = bus.stdout.as_mut().unwrap();
    BufReader::new(told).read_line(&mut address).unwrap();
    (Program(bus), address.trim().to_owned())
}

/// Asks what shows notifications, until it says this.
fn until_dunst_says(bus: &str, arguments: &[&str], expected: &str) {
    let end = Instant::now() + TIMEOUT;
    loop {
        let mut command = Command::new("dunstctl");
        command.args(arguments).env("DBUS_SESSION_BUS_ADDRESS", bus);
        let said = command.output().unwrap();
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        if said.trim() == expected {
            return;
        }
        assert!(Instant::now() < end, "{arguments:?}: {said}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn a_dot_shows_what_runs_do_and_a_key_stops_them() {
    if !(works("Xvfb", &["-help"]) && works("sh", &["-c", "command -v xdotool"])) {
        eprintln!("left out: Xvfb or xdotool is not installed");
        return;
    }
    let world = World::new(UNTIL_GO);
    let display = Display::start();
    let mut dot = world
        .command(&["dot", "--display", &display.name])
        .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(dot.stderr.take().unwrap()).lines();
    let mut next = move || said.next().expect("the dot says something").unwrap();
    assert!(next().starts_with("a dot is shown on :"));
    assert!(next().starts_with("questions come without notifications: there is no session bus"));
    display.shows("idle");
    let running = world.start(&world.run_arguments(&[]));
    world.wait_for_file("ledger.txt", "begun");
    display.shows("acting");
    // Where no run uses the display, Escape belongs to the person's programs.
    display.tool(&["key", "Escape"]);
    display.tool(&["key", "ctrl+alt+Escape"]);
    running
        .end()
        .exits(4)
        .says("stopped by tester (status dot): the stop key was pressed");
    assert_eq!(next(), "stopped for all");
    assert!(next().starts_with("  ended "));
    while !next().ends_with(" ms after the key") {}
    display.shows("stopped");
    world.gyrus(&["rearm", "--yes"]).exits(0);
    display.shows("idle");
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&dot),
        rustix::process::Signal::INT,
    )
    .unwrap();
    assert_eq!(dot.wait().unwrap().code(), Some(0));

    let said = world.gyrus(&["dot"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("gyrus dot --display :0"), "{said:?}");
    let said = world.gyrus(&["dot", "--display", ":7777"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("the display `:7777` cannot be opened"));
}

/// Asks whether it may write a file.
const ASKS: &str = r#"
[[reply]]
calls = [{ tool = "write", arguments = { path = ".envrc", content = "x" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "ok" } }]
"#;

#[test]
fn a_question_comes_as_a_notification_and_is_answered_there() {
    let is_there = |program: &&str| works("sh", &["-c", &format!("command -v {program}")]);
    let needed = ["Xvfb", "dbus-daemon", "dunst", "xdotool", "xterm"];
    if let Some(missing) = needed.iter().find(|program| !is_there(program)) {
        eprintln!("left out: {missing} is not installed");
        return;
    }
    for (choice, said, written) in [
        ("allow", "approved by tester (notification)", "x"),
        ("deny", "denied by tester (notification)", ""),
    ] {
        let world = World::new(ASKS);
        let display = Display::start();
        let (_bus, address) = bus(&world, &display, choice);
        let mut command = world.command(&["dot", "--display", &display.name]);
        let command = command.env("DBUS_SESSION_BUS_ADDRESS", &address);
        let _dot = Program(command.stderr(Stdio::null()).spawn().unwrap());
        display.shows("idle");
        let running = world.start(&["run", "try it", "--workdir", ".", "--on-ask", "wait"]);
        until_dunst_says(&address, &["count", "displayed"], "1");
        display.shows("waiting");
        // The key opens gyrus where the question can be read whole.
        display.tool(&["key", "ctrl+alt+g"]);
        display.tool(&["search", "--sync", "--class", "^gyrus$"]);
        until_dunst_says(&address, &["action"], "");
        let ended = running.end();
        assert!(ended.err.contains(said), "{choice}: {ended:?}");
        assert_eq!(world.file(".envrc"), written);
        until_dunst_says(&address, &["count", "displayed"], "0");
    }
}
