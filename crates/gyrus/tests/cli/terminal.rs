//! A terminal for a process, and what is on its screen.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    process::{Child, Command, Stdio},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::Winsize,
};

use crate::support::{World, works};

/// gyrus at a terminal of its own. Dropping it kills it.
pub(crate) struct Terminal {
    child: Child,
    screen: File,
    seen: String,
    /// A terminal that shows it.
    emulator: vt100::Parser,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Terminal {
    pub(crate) fn start(world: &World, arguments: &[&str], typed_ahead: &str) -> Option<Self> {
        Self::start_with(world, arguments, typed_ahead, &[])
    }

    /// `None` where there is no `setsid` to give a process a terminal.
    pub(crate) fn start_with(
        world: &World,
        arguments: &[&str],
        typed_ahead: &str,
        environment: &[(&str, &str)],
    ) -> Option<Self> {
        Self::start_in(world, arguments, typed_ahead, environment, 60)
    }

    /// In a terminal of this many columns.
    pub(crate) fn start_in(
        world: &World,
        arguments: &[&str],
        typed_ahead: &str,
        environment: &[(&str, &str)],
        columns: u16,
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
            ws_col: columns,
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
            emulator: vt100::Parser::new(24.try_into().unwrap(), columns.try_into().unwrap(), 0),
        })
    }

    /// Reads until these words are on the screen, and forgets what came before them.
    pub(crate) fn shows(&mut self, words: &str) -> String {
        loop {
            if let Some(at) = self.seen.find(words) {
                let rest = self.seen.split_off(at + words.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            assert!(self.read(), "`{words}` is never shown, only: {}", self.seen);
        }
    }

    /// Reads until these words stand on the screen together, and returns its lines.
    pub(crate) fn stands(&mut self, words: &str) -> String {
        loop {
            let screen = self.emulator.screen().contents();
            if screen.contains(words) {
                return screen;
            }
            assert!(self.read(), "`{words}` never stands there, only: {screen}");
        }
    }

    /// Reads what is shown next; `false` if that is nothing, or nothing comes for a minute.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let patience = Timespec {
            tv_sec: 60,
            tv_nsec: 0,
        };
        let mut waited = [PollFd::new(&self.screen, PollFlags::IN)];
        if poll(&mut waited, Some(&patience)) == Ok(0) {
            return false;
        }
        let read = self.screen.read(&mut bytes).unwrap_or(0);
        self.emulator.process(&bytes[..read]);
        self.seen.push_str(&String::from_utf8_lossy(&bytes[..read]));
        read > 0
    }

    /// Reads all that is still shown.
    pub(crate) fn rest(&mut self) -> String {
        while self.read() {}
        std::mem::take(&mut self.seen)
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.screen.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn exit_code(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}
