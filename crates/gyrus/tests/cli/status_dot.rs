//! `gyrus dot`: a person sees on their desktop what runs do, and stops all of them by a key.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use crate::support::{UNTIL_GO, World, works};

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
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(dot.stderr.take().unwrap()).lines();
    let mut next = move || said.next().expect("the dot says something").unwrap();
    assert!(next().starts_with("a dot is shown on :"));
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
