//! Starts a browser: its program, profile and user.
//!
//! It runs under a keeper, so it ends when gyrus does, however that happens. Its debugging pipe is
//! a pair of named pipes in one of gyrus's own folders, which a shell opens as descriptors 3 and 4
//! and which are unlinked as soon as both sides have them.

use std::{
    collections::BTreeMap,
    env, fs, io,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gyrus_contract::{BoxedFuture, CommandOutcome, CommandSpec, KeeperError};
use gyrus_process::{ProgramError, Programs};
use rustix::{
    fs::{CWD, FileType, Mode, mknodat},
    process::geteuid,
};
use tokio::net::unix::pipe;

use crate::{
    profile::{Profile, ProfileError},
    temporary::NOBODY,
};

/// Runs a command whose whole process tree ends with this process, or when the future is dropped.
pub type RunCommand = Arc<
    dyn Fn(CommandSpec) -> BoxedFuture<'static, Result<CommandOutcome, KeeperError>> + Send + Sync,
>;

/// Names of programs that a run may use as its browser, in order of preference: all are kinds of
/// Chromium.
pub(crate) const PROGRAMS: [&str; 6] = [
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "microsoft-edge-stable",
    "brave-browser",
];

/// Environment variable that names another program.
pub const PROGRAM_VARIABLE: &str = "GYRUS_BROWSER";

/// Maximum bytes kept of the browser's error output.
const OUTPUT_BYTES: usize = 4 * 1024;

/// Maximum running time of a browser.
const LIFE: Duration = Duration::from_hours(24 * 30);

/// Script that opens the pipes as descriptors 3 and 4 (see `--remote-debugging-pipe`).
const OPEN_PIPES: &str = r#"exec 3<"$1" 4>"$2" && rm -f "$1" "$2" && shift 2 && exec "$@""#;

/// The same script for a browser that saves its profile before it ends. It holds the other end too,
/// so that the death of gyrus does not end the debugging session, which would release held
/// requests.
const OPEN_PIPES_FOR_GOOD: &str =
    r#"exec 3<>"$1" 4>"$2" && rm -f "$1" "$2" && shift 2 && exec "$@""#;

/// Options of a browser.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program; `None` for the first installed one.
    pub program: Option<PathBuf>,
    /// Whether the browser runs in a window on the person's display.
    pub visible: bool,
    /// Width of the page, in CSS pixels.
    pub width: u32,
    /// Height of the page, in CSS pixels.
    pub height: u32,
    /// Device pixels per CSS pixel.
    pub density: f64,
    /// Whether the browser's own sandbox is disabled: a page that compromises the renderer then has
    /// all rights of the browser.
    pub without_sandbox: bool,
}

impl Default for Launch {
    fn default() -> Self {
        Self {
            program: None,
            visible: false,
            width: 1280,
            height: 800,
            density: 1.0,
            without_sandbox: false,
        }
    }
}

/// Reason why no browser can be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    #[error(
        "no browser is installed (looked for {}{}); install one: apt-get install chromium, or name one: {PROGRAM_VARIABLE}=/path",
        PROGRAMS.join(", "),
        passed_over.iter().map(|error| format!("; {error}")).collect::<String>()
    )]
    NoProgram {
        /// Programs of the known names that may not be started.
        passed_over: Vec<ProgramError>,
    },
    #[error("the browser cannot be started: {reason}; correct {PROGRAM_VARIABLE}")]
    NotThere { reason: String },
    #[error("the browser cannot be started: {0}")]
    NoHelper(ProgramError),
    /// A visible browser was requested, but there is no display.
    #[error(
        "a visible browser needs a display, and neither DISPLAY nor WAYLAND_DISPLAY is set; leave --visible out (gyrus take shows a run's pages in any browser), or start gyrus on a desktop"
    )]
    NoDisplay,
    /// The profile cannot be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The pipes could not be created.
    #[error("the browser's pipes cannot be laid in `{}`: {source}", folder.display())]
    Pipes {
        /// Folder of the pipes.
        folder: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Returns the program to start: the named one, or the first in a place where neither a run nor
/// another user could have put it.
///
/// # Errors
/// When there is none.
pub fn find_program(named: Option<&Path>) -> Result<PathBuf, LaunchError> {
    let programs = Programs::of_this_process();
    let from_environment = env::var_os(PROGRAM_VARIABLE).filter(|value| !value.is_empty());
    if let Some(program) = named
        .map(Path::to_owned)
        .or(from_environment.map(PathBuf::from))
    {
        // A file named by a person is used wherever it is.
        if is_program(&program) {
            return Ok(program);
        }
        let name = program.to_string_lossy();
        return match programs.find(&name) {
            Ok(found) => Ok(found.path),
            Err(error) => Err(LaunchError::NotThere {
                reason: error.to_string(),
            }),
        };
    }
    let mut passed_over = Vec::new();
    for name in PROGRAMS {
        match programs.find(name) {
            Ok(found) => return Ok(found.path),
            Err(ProgramError::NotFound { skipped, .. }) if skipped.is_empty() => {}
            Err(error) => passed_over.push(error),
        }
    }
    Err(LaunchError::NoProgram { passed_over })
}

fn is_program(path: &Path) -> bool {
    path.is_absolute()
        && fs::metadata(path)
            .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

pub(crate) type BrowserFuture = BoxedFuture<'static, Result<CommandOutcome, KeeperError>>;

/// A browser that is starting, with its pipes and the future that runs it.
pub(crate) struct BrowserStart {
    pub(crate) to: pipe::Sender,
    pub(crate) from: pipe::Receiver,
    /// Ends with the browser; dropping it ends the browser.
    pub(crate) running: BrowserFuture,
}

/// Whether a desktop is available to show a window on.
pub fn has_display() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"].into_iter().any(is_set)
}

/// Finds the program, and reports problems that would prevent the start.
pub(crate) fn check(launch: &Launch) -> Result<PathBuf, LaunchError> {
    let program = find_program(launch.program.as_deref())?;
    if launch.visible && !has_display() {
        return Err(LaunchError::NoDisplay);
    }
    Ok(program)
}

pub(crate) fn start(
    launch: &Launch,
    profile: &Profile,
    run: &RunCommand,
) -> Result<BrowserStart, LaunchError> {
    let program = check(launch)?;
    let helper = |name| {
        let found = Programs::of_this_process().find(name);
        found
            .map(|found| text(&found.path))
            .map_err(LaunchError::NoHelper)
    };
    let shell = helper("sh")?;
    let folder = profile.folder();
    let pipes = |source| LaunchError::Pipes {
        folder: folder.to_owned(),
        source,
    };
    let [to, from] = ["pipe-in", "pipe-out"].map(|name| folder.join(name));
    for path in [&to, &from] {
        let _ = fs::remove_file(path);
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .map_err(|error| pipes(error.into()))?;
    }
    // Opened for reading and writing, so that opening never blocks; the keeper reports the
    // browser's end.
    let mut options = pipe::OpenOptions::new();
    options.read_write(true);
    let ends = (
        options.open_sender(&to).map_err(pipes)?,
        options.open_receiver(&from).map_err(pipes)?,
    );
    let open_pipes = if profile.is_ephemeral() {
        OPEN_PIPES
    } else {
        OPEN_PIPES_FOR_GOOD
    };
    let mut arguments: Vec<String> = ["-c", open_pipes, "sh"].map(str::to_owned).to_vec();
    arguments.extend([text(&to), text(&from)]);
    if geteuid().is_root() {
        give_away(folder).map_err(pipes)?;
        arguments.extend(
            [
                helper("setpriv")?.as_str(),
                &format!("--reuid={NOBODY}"),
                &format!("--regid={NOBODY}"),
                "--clear-groups",
            ]
            .map(str::to_owned),
        );
    }
    arguments.push(text(&program));
    arguments.extend(flags(launch, folder));
    let spec = CommandSpec {
        program: shell,
        arguments,
        folder: PathBuf::from("/"),
        environment: environment(launch, folder),
        stdin: String::new(),
        time_limit_ms: u64::try_from(LIFE.as_millis()).unwrap_or(u64::MAX),
        head_bytes: OUTPUT_BYTES,
        tail_bytes: OUTPUT_BYTES,
    };
    Ok(BrowserStart {
        to: ends.0,
        from: ends.1,
        running: run(spec),
    })
}

/// Changes the owner of one of root's folders, with its contents, to the browser's user.
fn give_away(folder: &Path) -> io::Result<()> {
    chown(folder, Some(NOBODY), Some(NOBODY))
}

/// Gives a file that gyrus has created to the browser's user.
pub(crate) fn hand_over(file: &Path) -> io::Result<()> {
    if geteuid().is_root() {
        give_away(file)
    } else {
        Ok(())
    }
}

fn is_set(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn environment(launch: &Launch, folder: &Path) -> BTreeMap<String, String> {
    let mut names = vec!["LANG", "LC_ALL", "TZ"];
    if launch.visible {
        names.extend([
            "DISPLAY",
            "XAUTHORITY",
            "WAYLAND_DISPLAY",
            "XDG_RUNTIME_DIR",
        ]);
    }
    let mut environment: BTreeMap<String, String> = names
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), env::var(name).ok()?)))
        .collect();
    // A browser is often a script that starts the real one.
    let path = Programs::of_this_process().path();
    environment.insert("PATH".to_owned(), path);
    environment.insert("HOME".to_owned(), text(folder));
    environment.insert("TMPDIR".to_owned(), text(folder));
    environment
}

fn flags(launch: &Launch, folder: &Path) -> Vec<String> {
    let mut flags = vec![
        "--remote-debugging-pipe".to_owned(),
        format!("--user-data-dir={}", text(folder)),
        format!("--window-size={},{}", launch.width, launch.height),
    ];
    flags.extend(
        [
            "--no-first-run",
            "--no-default-browser-check",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-default-apps",
            "--disable-sync",
            "--disable-breakpad",
            "--disable-features=Translate,MediaRouter,OptimizationHints",
            "--password-store=basic",
            "--force-color-profile=srgb",
            // Pages of a run must not be throttled when no one looks at them.
            "--disable-background-timer-throttling",
            "--disable-backgrounding-occluded-windows",
            "--disable-renderer-backgrounding",
        ]
        .map(str::to_owned),
    );
    if !launch.visible {
        flags.push("--headless=new".to_owned());
    }
    if launch.without_sandbox {
        flags.push("--no-sandbox".to_owned());
    }
    flags.push("about:blank".to_owned());
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = find_program(Some(Path::new("/nowhere/chromium"))).unwrap_err();
        assert!(error.to_string().contains("/nowhere/chromium"), "{error}");
    }

    #[test]
    fn the_pipe_is_never_a_port() {
        let flags = flags(&Launch::default(), Path::new("/p"));
        assert!(flags.iter().any(|flag| flag == "--remote-debugging-pipe"));
        let forbidden = ["--remote-debugging-port", "--no-sandbox"];
        assert!(
            flags
                .iter()
                .all(|flag| !forbidden.iter().any(|no| flag.starts_with(no)))
        );
    }
}
