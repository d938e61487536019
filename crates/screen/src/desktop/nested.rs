//! A desktop of its own: an X server without a monitor, a window manager and a session bus, all in
//! one enclosure, so that nothing of it outlives gyrus.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    time::Duration,
};

use gyrus_process::{ProgramError, Programs};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    net::unix::pipe,
    sync::oneshot,
};

use super::{
    display::Display,
    enclosure::Enclosure,
    launcher::{Launcher, ProgramEnd, StartRequest},
    saved_files,
};
use crate::launch::PROGRAMS;

/// The command that installs the programs of a nested desktop.
pub const MISSING_PROGRAMS_HINT: &str = "apt-get install xvfb openbox at-spi2-core dbus";

/// Window managers, in order of preference.
const WINDOW_MANAGERS: [&str; 4] = ["openbox", "xfwm4", "fluxbox", "icewm"];

/// Maximum time for a part of the desktop to be ready.
const READY: Duration = Duration::from_secs(10);

/// Maximum length of a part's message that it is ready.
const MAX_READY_BYTES: u64 = 1_024;

/// Checks that the programs of a nested desktop are installed.
///
/// # Errors
/// A program is missing.
pub fn nested_parts() -> Result<(), NestedError> {
    for name in ["Xvfb", "dbus-daemon"] {
        program(name)?;
    }
    window_manager().map(drop)
}

fn window_manager() -> Result<String, NestedError> {
    let found = WINDOW_MANAGERS.iter().find_map(|name| program(name).ok());
    found.map_or_else(|| program(WINDOW_MANAGERS[0]), Ok)
}

/// Reason why a nested desktop cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NestedError {
    #[error(
        "a desktop of its own cannot be started: {0}; install what it needs: {MISSING_PROGRAMS_HINT}"
    )]
    NoProgram(#[from] ProgramError),
    #[error("the folder of a nested desktop cannot be used: {0}")]
    Folder(#[from] std::io::Error),
    /// The named program does not exist.
    #[error("{0}")]
    NoSuchProgram(ProgramError),
    #[error("the nested desktop did not start: {what} {why}")]
    NotReady {
        /// The part that failed.
        what: &'static str,
        /// The reason of the failure.
        why: String,
    },
}

pub(super) struct NestedDesktop {
    /// The launcher, dropped before the folder that its programs use.
    launcher: Launcher,
    enclosure: Enclosure,
    number: String,
    cookie: Vec<u8>,
    has_bus: bool,
}

impl NestedDesktop {
    pub(super) async fn start_desktop(
        width: u16,
        height: u16,
        enclosure: Enclosure,
    ) -> Result<Self, NestedError> {
        saved_files::make_home(&enclosure)?;
        fs::DirBuilder::new()
            .mode(0o700)
            .create(enclosure.path("runtime"))?;
        let mut cookie = vec![0; 16];
        getrandom::fill(&mut cookie).map_err(|error| NestedError::NotReady {
            what: "its cookie",
            why: error.to_string(),
        })?;
        write_authority(&enclosure.path("authority"), &cookie)?;
        let launcher = Launcher::start(&enclosure, program("sh")?, environment(&enclosure))?;
        let mut nested = Self {
            enclosure,
            launcher,
            number: String::new(),
            cookie,
            has_bus: false,
        };
        let authority = nested.enclosure.inner_path("authority");
        let size = format!("{width}x{height}x24");
        let server = [
            "Xvfb",
            "-displayfd",
            "5",
            "-screen",
            "0",
            &size,
            "-nolisten",
            "tcp",
            "-auth",
            &authority,
            "-noreset",
        ];
        nested.number = nested.start_until_ready("the display", &server).await?;
        if nested.number.parse::<u16>().is_err() {
            let why = format!("calls itself “{}”", nested.number);
            return Err(NestedError::NotReady {
                what: "the display",
                why,
            });
        }
        let address = format!("--address={}", nested.bus_address());
        let bus = [
            "dbus-daemon",
            "--session",
            "--nofork",
            "--nopidfile",
            "--print-address=5",
            &address,
        ];
        nested.start_until_ready("the session bus", &bus).await?;
        nested.has_bus = true;
        nested.launch("the window manager", &[window_manager()?], None)?;
        nested.wait_for_window_manager().await?;
        Ok(nested)
    }

    async fn wait_for_window_manager(&self) -> Result<(), NestedError> {
        let not_ready = |why: String| NestedError::NotReady {
            what: "the window manager",
            why,
        };
        let display = self.connect().map_err(&not_ready)?;
        let ready = async {
            loop {
                let root = display.screen.root;
                if !display
                    .numbers(root, "_NET_SUPPORTING_WM_CHECK")?
                    .is_empty()
                {
                    return Ok(());
                }
                display.next_change().await?;
            }
        };
        match tokio::time::timeout(READY, ready).await {
            Ok(ready) => ready.map_err(not_ready),
            Err(_) => Err(not_ready("did not answer in time".to_owned())),
        }
    }

    /// Connects to the display, and receives its changes.
    pub(super) fn connect(&self) -> Result<Display, String> {
        self.connect_only()?.following()
    }

    /// Connects to the display, only to receive the events that are asked for.
    pub(super) fn connect_only(&self) -> Result<Display, String> {
        let inner = format!("/tmp/.X11-unix/X{}", self.number);
        let name = format!(":{}", self.number);
        let socket = self.enclosure.socket(Path::new(&inner));
        let socket = socket
            .map_err(|error| format!("the nested display `{name}` cannot be found: {error}"))?;
        Display::connect_with_cookie(&socket.path, &name, &self.cookie)
    }

    pub(super) fn enclosure(&self) -> &Enclosure {
        &self.enclosure
    }

    /// Returns the address of the session bus, as programs on the desktop have it.
    pub(super) fn bus_address(&self) -> String {
        format!("unix:path={}", self.enclosure.inner_path("runtime/bus"))
    }

    /// Starts a person's program on the desktop, and returns a future that resolves when the
    /// program ends.
    pub(super) fn start(
        &mut self,
        words: &[String],
    ) -> Result<impl Future<Output = ProgramEnd> + Send + use<>, NestedError> {
        let mut words = words.to_vec();
        if let Some(first) = words.first_mut()
            && !first.starts_with('/')
        {
            let found = Programs::of_this_process().find(first);
            let found = found.map_err(NestedError::NoSuchProgram)?;
            *first = found.path.to_string_lossy().into_owned();
        }
        if let Some(first) = words.first() {
            let options = browser_options(Path::new(first), self.enclosure.is_confined());
            let options: Vec<_> = options.map(str::to_owned).collect();
            words.splice(1..1, options);
        }
        let ended = self.launch("the program", &words, None)?;
        Ok(async move {
            // Without an answer the desktop is gone.
            ended.await.unwrap_or_else(|_| ProgramEnd {
                words: "it was ended".to_owned(),
                is_success: false,
            })
        })
    }

    /// Ends everything on the desktop.
    pub(super) async fn end(self) {
        self.launcher.end().await;
    }

    /// Starts a program and returns the line that it writes to descriptor 5 when it is ready.
    async fn start_until_ready(
        &mut self,
        what: &'static str,
        words: &[&str],
    ) -> Result<String, NestedError> {
        let fifo = self.enclosure.path("ready");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .map_err(std::io::Error::from)?;
        // Opened for both, so that opening never blocks.
        let ready = pipe::OpenOptions::new()
            .read_write(true)
            .open_receiver(&fifo)?;
        let mut line = vec![program(words[0])?];
        line.extend(words[1..].iter().map(|word| (*word).to_owned()));
        let ended = self.launch(what, &line, Some("ready"))?;
        let mut text = String::new();
        let mut reader = BufReader::new(ready.take(MAX_READY_BYTES));
        let read = async {
            tokio::select! {
                read = reader.read_line(&mut text) => read.map(drop).map_err(|error| error.to_string()),
                end = ended => Err(end.map_or_else(|_| "was ended".to_owned(), |end| end.words)),
            }
        };
        let read = tokio::time::timeout(READY, read).await;
        let _ = fs::remove_file(&fifo);
        match read.unwrap_or_else(|_| Err("did not answer in time".to_owned())) {
            Ok(()) => Ok(text.trim().to_owned()),
            Err(why) => Err(NestedError::NotReady { what, why }),
        }
    }

    fn launch(
        &mut self,
        what: &'static str,
        words: &[String],
        ready: Option<&str>,
    ) -> Result<oneshot::Receiver<ProgramEnd>, NestedError> {
        let mut variables = Vec::new();
        if !self.number.is_empty() {
            variables.push(("DISPLAY", format!(":{}", self.number)));
        }
        if self.has_bus {
            variables.push(("DBUS_SESSION_BUS_ADDRESS", self.bus_address()));
        }
        let request = StartRequest {
            what,
            words,
            variables: &variables,
            descriptor: ready.map(|name| self.enclosure.inner_path(name)),
        };
        Ok(self.launcher.launch(&self.enclosure, &request)?)
    }
}

/// Returns the environment variables of all programs of a desktop.
fn environment(enclosure: &Enclosure) -> BTreeMap<String, String> {
    [
        ("PATH", Programs::of_this_process().path()),
        ("HOME", enclosure.inner_path(saved_files::HOME)),
        ("XDG_RUNTIME_DIR", enclosure.inner_path("runtime")),
        ("XAUTHORITY", enclosure.inner_path("authority")),
        ("LANG", "C.UTF-8".to_owned()),
        ("GDK_BACKEND", "x11".to_owned()),
        ("NO_AT_BRIDGE", "0".to_owned()),
        ("GTK_MODULES", "gail:atk-bridge".to_owned()),
        ("QT_LINUX_ACCESSIBILITY_ALWAYS_ON", "1".to_owned()),
        ("ACCESSIBILITY_ENABLED", "1".to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

fn program(name: &str) -> Result<String, NestedError> {
    let found = Programs::of_this_process().find(name)?;
    Ok(found.path.to_string_lossy().into_owned())
}

/// Writes the file by which clients show that they may use the display: one entry for every host
/// and display (the format of libXau).
fn write_authority(path: &Path, cookie: &[u8]) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let mut bytes = 0xffff_u16.to_be_bytes().to_vec();
    for part in [&b""[..], b"", b"MIT-MAGIC-COOKIE-1", cookie] {
        let length = u16::try_from(part.len()).expect("parts are short");
        bytes.extend(length.to_be_bytes());
        bytes.extend(part);
    }
    file.write_all(&bytes)
}

/// Options that make Chromium report the elements of its pages on the accessibility bus, ask
/// nothing at the start, and connect only where its pages do.
const ALWAYS: [&str; 8] = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-renderer-accessibility",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-crash-restore-bubble",
    "--password-store=basic",
];

/// Options for a Chromium in a sandbox, inside of which it cannot build its own. The second option
/// hides the warning about that.
const IN_SANDBOX: [&str; 2] = ["--no-sandbox", "--test-type"];

/// Returns the options for starting a program if it is a Chromium, and none for others.
fn browser_options(program: &Path, is_confined: bool) -> impl Iterator<Item = &'static str> {
    let name = program.file_name().unwrap_or_default();
    let is_chromium = PROGRAMS.iter().any(|known| name == *known);
    let sandbox = IN_SANDBOX.into_iter().filter(move |_| is_confined);
    let all = ALWAYS.into_iter().chain(sandbox);
    all.filter(move |_| is_chromium)
}
