//! A desktop of its own: an X server without a monitor, a window manager and a session bus, each
//! below a keeper, so that nothing of it outlives gyrus.

use std::{
    collections::BTreeMap, fs, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path,
    time::Duration,
};

use gyrus_contract::{CommandOutcome, CommandSpec, Exit};
use gyrus_process::{ProgramError, Programs};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::unix::pipe,
    sync::{oneshot, watch},
    task::JoinHandle,
};

use super::display::Display;
use crate::RunCommand;

/// The command that installs the programs of a nested desktop.
pub const MISSING_PROGRAMS_HINT: &str = "apt-get install xvfb openbox at-spi2-core dbus";

/// Window managers, in order of preference.
const WINDOW_MANAGERS: [&str; 4] = ["openbox", "xfwm4", "fluxbox", "icewm"];

/// Maximum time for a part of the desktop to be ready.
const READY: Duration = Duration::from_secs(10);

/// Maximum running time of a desktop.
const LIFE: Duration = Duration::from_hours(24 * 30);

/// Bytes kept of a program's output.
const OUTPUT_BYTES: usize = 4 * 1024;

/// Checks that the programs of a nested desktop are installed.
///
/// # Errors
/// One is missing.
pub fn nested_parts() -> Result<(), NestedError> {
    for name in ["Xvfb", "dbus-daemon"] {
        program(name)?;
    }
    window_manager().map(drop)
}

/// Returns the path of a window manager.
fn window_manager() -> Result<String, NestedError> {
    let found = WINDOW_MANAGERS.iter().find_map(|name| program(name).ok());
    found.map_or_else(|| program(WINDOW_MANAGERS[0]), Ok)
}

/// Script that opens a named pipe as descriptor 3, by which a program says that it is ready.
const WITH_PIPE: &str = r#"exec 3>"$1" && rm -f "$1" && shift 1 && exec "$@""#;

/// Reason why there is no nested desktop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NestedError {
    /// A program is missing.
    #[error(
        "a desktop of its own cannot be started: {0}; install what it needs: {MISSING_PROGRAMS_HINT}"
    )]
    NoProgram(#[from] ProgramError),
    /// Its folder cannot be made.
    #[error("the folder of a nested desktop cannot be made: {0}")]
    Folder(#[from] std::io::Error),
    /// The program that was named is not there.
    #[error("{0}")]
    NoSuchProgram(ProgramError),
    /// A part of it did not start.
    #[error("the nested desktop did not start: {what} {why}")]
    NotReady {
        /// The part.
        what: &'static str,
        /// The reason.
        why: String,
    },
}

/// The end of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProgramEnd {
    /// The reason of the end, in words.
    pub(super) words: String,
    /// Whether it said that all went well, as a program does that only called another.
    pub(super) is_success: bool,
}

/// A running nested desktop.
pub(super) struct Nested {
    folder: tempfile::TempDir,
    number: String,
    cookie: Vec<u8>,
    bus: String,
    run: RunCommand,
    /// The programs, the server first; ending one ends its whole tree.
    tasks: Vec<JoinHandle<()>>,
    /// The first end of a program, in words.
    ended: watch::Sender<Option<String>>,
}

impl Nested {
    /// Starts a desktop of this size.
    pub(super) async fn start_desktop(
        width: u16,
        height: u16,
        run: &RunCommand,
    ) -> Result<Self, NestedError> {
        let folder = tempfile::Builder::new()
            .prefix("gyrus-desktop-")
            .tempdir()?;
        fs::create_dir(folder.path().join("home"))?;
        let mut cookie = vec![0; 16];
        getrandom::fill(&mut cookie).map_err(|error| NestedError::NotReady {
            what: "its cookie",
            why: error.to_string(),
        })?;
        write_authority(&folder.path().join("authority"), &cookie)?;
        let mut nested = Self {
            folder,
            number: String::new(),
            cookie,
            bus: String::new(),
            run: run.clone(),
            tasks: Vec::new(),
            ended: watch::Sender::new(None),
        };
        let authority = nested.path("authority");
        let size = format!("{width}x{height}x24");
        let server = [
            "Xvfb",
            "-displayfd",
            "3",
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
        let bus = [
            "dbus-daemon",
            "--session",
            "--nofork",
            "--nopidfile",
            "--print-address=3",
        ];
        nested.bus = nested.start_until_ready("the session bus", &bus).await?;
        nested.spawn("the window manager", vec![window_manager()?])?;
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

    /// Connects to the display.
    pub(super) fn connect(&self) -> Result<Display, String> {
        let socket = format!("/tmp/.X11-unix/X{}", self.number);
        let name = format!(":{}", self.number);
        Display::connect_with_cookie(Path::new(&socket), &name, &self.cookie)
    }

    /// Returns the address of the session bus.
    pub(super) fn bus_address(&self) -> String {
        self.bus.clone()
    }

    /// Starts a program of the person on the desktop, and returns a future that ends with it.
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
        let ended = self.spawn("the program", words)?;
        Ok(async move {
            // Without an answer the desktop is gone.
            ended.await.unwrap_or_else(|_| ProgramEnd {
                words: "it was ended".to_owned(),
                is_success: false,
            })
        })
    }

    /// Waits until the first program ends, and says how.
    pub(super) fn first_end(&self) -> impl Future<Output = String> + Send + 'static {
        let mut ended = self.ended.subscribe();
        async move {
            match ended.wait_for(Option::is_some).await {
                Ok(why) => why.clone().unwrap_or_default(),
                // The desktop is gone.
                Err(_) => "it was ended".to_owned(),
            }
        }
    }

    /// Ends everything on the desktop, the server last.
    pub(super) async fn end(mut self) {
        while let Some(task) = self.tasks.pop() {
            task.abort();
            let _ = task.await;
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }

    /// Starts a program and returns the line that it writes to descriptor 3 once it is ready.
    async fn start_until_ready(
        &mut self,
        what: &'static str,
        words: &[&str],
    ) -> Result<String, NestedError> {
        let fifo = self.path("ready");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .map_err(std::io::Error::from)?;
        // Opened for both, so that opening never blocks.
        let ready = pipe::OpenOptions::new()
            .read_write(true)
            .open_receiver(&fifo)?;
        let mut line = vec![
            program("sh")?,
            "-c".to_owned(),
            WITH_PIPE.to_owned(),
            "sh".to_owned(),
            fifo,
        ];
        line.push(program(words[0])?);
        line.extend(words[1..].iter().map(|word| (*word).to_owned()));
        self.spawn(what, line)?;
        let mut text = String::new();
        let mut reader = BufReader::new(ready);
        let read = async {
            tokio::select! {
                read = reader.read_line(&mut text) => read.map(drop).map_err(|error| error.to_string()),
                why = self.first_end() => Err(why),
            }
        };
        let read = tokio::time::timeout(READY, read).await;
        match read.unwrap_or_else(|_| Err("did not answer in time".to_owned())) {
            Ok(()) => Ok(text.trim().to_owned()),
            Err(why) => Err(NestedError::NotReady { what, why }),
        }
    }

    fn spawn(
        &mut self,
        what: &'static str,
        words: Vec<String>,
    ) -> Result<oneshot::Receiver<ProgramEnd>, NestedError> {
        let spec = CommandSpec {
            program: words[0].clone(),
            arguments: words[1..].to_vec(),
            folder: self.folder.path().join("home"),
            environment: self.environment(),
            stdin: String::new(),
            time_limit_ms: u64::try_from(LIFE.as_millis()).unwrap_or(u64::MAX),
            head_bytes: OUTPUT_BYTES,
            tail_bytes: OUTPUT_BYTES,
        };
        let (running, ended) = ((self.run)(spec), self.ended.clone());
        let (end, told) = oneshot::channel();
        self.tasks.push(tokio::spawn(async move {
            let outcome = running.await;
            let is_success = outcome
                .as_ref()
                .is_ok_and(|outcome| outcome.exit == Exit::Code(0));
            let words = match outcome {
                Ok(outcome) => format!("{what} ended: {}", how_it_ended(&outcome)),
                Err(error) => format!("{what} cannot run: {error}"),
            };
            let _ = end.send(ProgramEnd {
                words: words.clone(),
                is_success,
            });
            ended.send_if_modified(|first| {
                let is_first = first.is_none();
                first.get_or_insert(words);
                is_first
            });
        }));
        Ok(told)
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let home = self.path("home");
        let mut environment: BTreeMap<String, String> = [
            ("PATH", Programs::of_this_process().path()),
            ("HOME", home.clone()),
            ("XDG_RUNTIME_DIR", self.path("")),
            ("XAUTHORITY", self.path("authority")),
            ("LANG", "C.UTF-8".to_owned()),
            ("GDK_BACKEND", "x11".to_owned()),
            ("NO_AT_BRIDGE", "0".to_owned()),
            ("GTK_MODULES", "gail:atk-bridge".to_owned()),
            ("QT_LINUX_ACCESSIBILITY_ALWAYS_ON", "1".to_owned()),
            ("ACCESSIBILITY_ENABLED", "1".to_owned()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        if !self.number.is_empty() {
            environment.insert("DISPLAY".to_owned(), format!(":{}", self.number));
        }
        if !self.bus.is_empty() {
            environment.insert("DBUS_SESSION_BUS_ADDRESS".to_owned(), self.bus.clone());
        }
        environment
    }
}

/// Describes the end of a program, with the last line of what it said.
fn how_it_ended(outcome: &CommandOutcome) -> String {
    let exit = match outcome.exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        Exit::TimedOut => "it was ended".to_owned(),
    };
    let said = [&outcome.output.tail, &outcome.output.head];
    let last = said
        .into_iter()
        .flat_map(|said| said.lines().rev())
        .find(|line| !line.trim().is_empty());
    match last {
        Some(line) => format!("{exit}; it said: {}", line.trim()),
        None => exit,
    }
}

/// A desktop that is given up ends too: dropping a task's handle alone would let it run on.
impl Drop for Nested {
    fn drop(&mut self) {
        for task in self.tasks.iter().rev() {
            task.abort();
        }
    }
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
