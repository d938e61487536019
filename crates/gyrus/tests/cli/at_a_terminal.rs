//! A person at a terminal: cards, answers, colours.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    process::{Child, Command, Stdio},
};

use gyrus_kernel::Entry;
use rustix::{
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::Winsize,
};

use crate::support::{World, works};

const PROMPT: &str = "y = yes, n = no";

/// Asks twice.
const TWO_QUESTIONS: &str = r#"
[[reply]]
text = "One file."
calls = [{ tool = "write", arguments = { path = "one", content = "1\n" } }]
[[reply]]
text = "Another."
calls = [{ tool = "write", arguments = { path = "two", content = "2\n" } }]
[[reply]]
calls = [{ tool = "finish", arguments = { reached = true, answer = "asked" } }]
"#;

/// gyrus at a terminal of its own. Dropping it kills it.
struct Terminal {
    child: Child,
    screen: File,
    seen: String,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Terminal {
    fn start(world: &World, arguments: &[&str], typed_ahead: &str) -> Option<Self> {
        Self::start_with(world, arguments, typed_ahead, &[])
    }

    /// `None` where there is no `setsid` to give a process a terminal.
    fn start_with(
        world: &World,
        arguments: &[&str],
        typed_ahead: &str,
        environment: &[(&str, &str)],
    ) -> Option<Self> {
        if !works("setsid", &["--ctty", "--version"]) {
            eprintln!("skipped: there is no `setsid --ctty`");
            return None;
        }
        let screen =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let name = ptsname(&screen, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let line: OwnedFd = rustix::fs::open(name, flags, Mode::empty()).unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: 60,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&line, size).unwrap();
        let mut screen = File::from(screen);
        screen.write_all(typed_ahead.as_bytes()).unwrap();
        let gyrus = world.command(arguments);
        let mut command = Command::new("setsid");
        command
            .args(["--ctty", "--wait"])
            .arg(gyrus.get_program())
            .args(gyrus.get_args());
        command.env_clear().current_dir(world.work());
        command.envs(
            gyrus
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command.envs(environment.iter().copied());
        let stdio = || Stdio::from(line.try_clone().unwrap());
        let child = command
            .stdin(stdio())
            .stdout(stdio())
            .stderr(stdio())
            .spawn()
            .unwrap();
        Some(Self {
            child,
            screen,
            seen: String::new(),
        })
    }

    /// Reads until these words are on the screen, and forgets what came before them.
    fn shows(&mut self, words: &str) -> String {
        let mut bytes = [0; 4096];
        loop {
            if let Some(at) = self.seen.find(words) {
                let rest = self.seen.split_off(at + words.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            let read = self.screen.read(&mut bytes).unwrap_or(0);
            assert_ne!(read, 0, "`{words}` is never shown, only: {}", self.seen);
            self.seen.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    }

    fn types(&mut self, text: &str) {
        self.screen.write_all(text.as_bytes()).unwrap();
    }

    fn exit_code(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

#[test]
fn cards_are_answered_one_by_one() {
    let world = World::new(TWO_QUESTIONS);
    // What is typed before a card is shown is no answer to it.
    let Some(mut terminal) = Terminal::start(&world, &["run", "go"], "y\ny\n") else {
        return;
    };
    let card = terminal.shows(PROMPT);
    assert!(
        card.contains("\x1b[34m• One file."),
        "thoughts are blue: {card:?}"
    );
    assert!(
        card.contains("\x1b[32m→ write"),
        "calls are green: {card:?}"
    );
    assert!(card.contains("\x07"), "the bell rings: {card:?}");
    assert_eq!(world.file("one"), "");
    terminal.types("perhaps\n");
    terminal.shows("please type y or n");
    terminal.types("y\n");
    terminal.shows("\x1b[33m← created `one`");
    terminal.shows(PROMPT);
    terminal.types("n not this one\n");
    terminal.shows("denied by tester (console): not this one");
    terminal.shows("asked\r\n");
    assert_eq!(terminal.exit_code(), Some(0));
    assert_eq!(
        (world.file("one").as_str(), world.file("two").as_str()),
        ("1\n", "")
    );
}

#[test]
fn a_card_that_is_answered_elsewhere_is_over() {
    let world = World::new(TWO_QUESTIONS);
    let Some(mut terminal) = Terminal::start(&world, &["run", "go"], "") else {
        return;
    };
    for _ in 0..2 {
        terminal.shows(PROMPT);
        world.gyrus(&["approve", "last"]).exits(0);
        terminal.shows("approved by tester (command line)");
    }
    assert_eq!(terminal.exit_code(), Some(0));
}

#[test]
fn a_parked_card_is_shown_again_when_the_run_goes_on_at_a_terminal() {
    let world = World::new(TWO_QUESTIONS);
    world.gyrus(&["run", "go", "--on-ask", "park"]).exits(5);
    let resume = ["resume", "last", "--on-ask", "wait"];
    let Some(mut terminal) = Terminal::start(&world, &resume, "") else {
        return;
    };
    terminal.shows("approval 1.3");
    terminal.shows(PROMPT);
    // Ctrl-C: the question stays open.
    terminal.types("\x03");
    terminal.shows("gyrus resume");
    assert_eq!(terminal.exit_code(), Some(130));
    assert!(
        world
            .gyrus(&["approvals"])
            .exits(0)
            .out
            .contains("gyrus approve")
    );
    let asked = world
        .entries()
        .into_iter()
        .filter(|e| matches!(e, Entry::ApprovalAsked(_)));
    assert_eq!(asked.count(), 1);
}

#[test]
fn no_color_means_none() {
    let world = World::new(TWO_QUESTIONS);
    let arguments = ["run", "go", "--approve", "read-only"];
    let Some(mut terminal) = Terminal::start_with(&world, &arguments, "", &[("NO_COLOR", "1")])
    else {
        return;
    };
    let shown = terminal.shows("asked\r\n");
    assert!(!shown.contains('\x1b'), "{shown:?}");
    assert_eq!(terminal.exit_code(), Some(0));
}
