//! gyrus in a terminal, opened from the dot: its command line, or first what waits for the person.

use std::{
    io,
    process::{Child, Command, Stdio},
};

use gyrus_process::Programs;
use gyrus_screen::DotState;
use gyrus_surfaces::console::put;

use crate::failure::Failure;

/// Name (class) of the window, which no run may use.
const CLASS: &str = "gyrus";

/// Terminals whose windows can be named, each with the options for the name and for the command.
const TERMINALS: [(&str, &[&str]); 3] = [
    ("alacritty", &["--class", CLASS, "-e"]),
    ("kitty", &["--class", CLASS]),
    ("xterm", &["-u8", "-class", CLASS, "-e"]),
];

/// The terminal window, at most one at a time.
pub(super) struct Popover {
    display: String,
    open: Option<Child>,
}

impl Popover {
    pub(super) fn on(display: &str) -> Self {
        Self {
            display: display.to_owned(),
            open: None,
        }
    }

    /// Opens the terminal, unless it is open.
    ///
    /// # Errors
    /// Nothing can be printed.
    pub(super) fn open(&mut self, state: DotState) -> Result<(), Failure> {
        if let Some(open) = &mut self.open
            && matches!(open.try_wait(), Ok(None))
        {
            return Ok(());
        }
        match self.start(state) {
            Ok(child) => self.open = Some(child),
            Err(error) => put(&format!("gyrus cannot be opened in a terminal: {error}\n"))?,
        }
        Ok(())
    }

    fn start(&self, state: DotState) -> io::Result<Child> {
        let programs = Programs::of_this_process();
        let mut found = TERMINALS
            .iter()
            .filter_map(|(name, words)| Some((programs.find(name).ok()?.path, words)));
        let (terminal, words) = found.next().ok_or_else(|| {
            let names: Vec<_> = TERMINALS.iter().map(|(name, _)| *name).collect();
            io::Error::other(format!("none of these is installed: {}", names.join(", ")))
        })?;
        let own = std::env::current_exe()?;
        let mut command = Command::new(terminal);
        command.args(*words).arg(own);
        if state == DotState::Waiting {
            command.args(["approvals", "answer"]);
        }
        command
            .env("DISPLAY", &self.display)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    }
}
