//! The place where a line is tried: a copy of the project for each side, a home for each, and
//! gyrus.

use std::{
    collections::BTreeMap,
    env, fmt, fs,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
};

use gyrus_contract::Decision;
use gyrus_gate::sandbox::{Promise, SandboxProof};
use gyrus_journal::Store;
use gyrus_kernel::Entry;
use gyrus_lines::folders::PROJECT;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open},
};
use tempfile::TempDir;

/// Folders that all users share; a run has its own in their place.
const SHARED: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Folders of the person's home by which toolchains are found. Both sides see the same.
const TOOLCHAINS: [&str; 4] = [".rustup", ".pyenv", ".nvm", ".local/bin"];

/// For one line on one side, in seconds.
const TIME_LIMIT: i64 = 300;

/// End of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Code(i32),
    Signal(i32),
    TimedOut,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Code(code) => write!(f, "{code}"),
            End::Signal(signal) => write!(f, "signal {signal}"),
            End::TimedOut => f.write_str("timed out"),
        }
    }
}

/// Result of a line in gyrus.
#[derive(Debug, Clone)]
pub(crate) enum Inside {
    /// It passed unasked, ended so, and said this.
    Ended { end: End, said: String },
    /// A person would have been asked, for these reasons.
    Asked { reasons: Vec<String> },
    /// gyrus did neither.
    Broke { said: String },
}

/// The original of the project, which all desks copy.
pub(crate) struct Original {
    folder: TempDir,
}

impl Original {
    /// Lays the project out, in a folder that sandboxes do not replace.
    pub(crate) fn lay_out() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("gyrus-everyday-")
            .tempdir_in(base())
            .unwrap();
        let script = folder.path().join("project.sh");
        fs::write(&script, PROJECT).unwrap();
        let made = Command::new("bash")
            .arg(script)
            .arg(folder.path().join("original"))
            .status();
        assert!(made.unwrap().success());
        Self { folder }
    }

    /// The folder of all desks and sessions.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn base() -> PathBuf {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    if !SHARED.iter().any(|shared| target.starts_with(shared)) {
        return target;
    }
    let cache = person().join(".cache");
    fs::create_dir_all(&cache).unwrap();
    cache
}

fn person() -> PathBuf {
    PathBuf::from(env::var_os("HOME").unwrap())
}

/// A place to try lines at, one after the other.
pub(crate) struct Desk<'a> {
    original: &'a Original,
    folder: PathBuf,
}

impl<'a> Desk<'a> {
    pub(crate) fn new(original: &'a Original, name: &str) -> Self {
        let folder = original.folder().join(name);
        for side in ["outside", "inside"] {
            home(&folder.join(side).join("home"));
        }
        fs::create_dir(folder.join("outside/tmp")).unwrap();
        Self { original, folder }
    }

    fn side(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Puts a fresh copy of the project in place of what a line left.
    fn copy(&self, side: &str) -> PathBuf {
        let original = self.original.folder().join("original");
        for part in ["project", "project.remote.git"] {
            let place = self.side(side).join(part);
            if place.exists() {
                fs::remove_dir_all(&place).unwrap();
            }
            let source = original.with_file_name(part.replace("project", "original"));
            let copied = Command::new("cp")
                .arg("-a")
                .arg(source)
                .arg(&place)
                .status();
            assert!(copied.unwrap().success());
        }
        let project = self.side(side).join("project");
        let config = project.join(".git/config");
        let text = fs::read_to_string(&config).unwrap();
        let (from, to) = (
            original.display().to_string(),
            project.display().to_string(),
        );
        fs::write(config, text.replace(&from, &to)).unwrap();
        project
    }

    /// As a person would run it, with the environment that gyrus gives to commands.
    pub(crate) fn outside(&self, line: &str) -> End {
        let project = self.copy("outside");
        let temporary = self.side("outside/tmp");
        let log = fs::File::create(self.side("outside/said")).unwrap();
        let mut command = Command::new("bash");
        command
            .args(["-c", line])
            .env_clear()
            .env("PATH", path())
            .env("HOME", self.side("outside/home"))
            .env("USER", "tester")
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .env("TMPDIR", temporary)
            .current_dir(project)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .process_group(0);
        let mut child = command.spawn().unwrap();
        let group = Pid::from_child(&child);
        let handle = pidfd_open(group, PidfdFlags::empty()).unwrap();
        let limit = Timespec {
            tv_sec: TIME_LIMIT,
            tv_nsec: 0,
        };
        let ended = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&limit)).unwrap() > 0;
        // What it left running would disturb the next line. The leader is not reaped yet, so the
        // number is still its own.
        let _ = kill_process_group(group, Signal::KILL);
        let status = child.wait().unwrap();
        if ended { end(status) } else { End::TimedOut }
    }

    /// Returns the output of the line there.
    pub(crate) fn said_outside(&self) -> String {
        let said = fs::read(self.side("outside/said")).unwrap_or_default();
        String::from_utf8_lossy(&said).into_owned()
    }

    /// As a run does it in the default mode, with nobody to ask.
    pub(crate) fn inside(&self, line: &str) -> Inside {
        let project = self.copy("inside");
        let journal = self.side("inside/gyrus/journal");
        if journal.exists() {
            fs::remove_dir_all(&journal).unwrap();
        }
        let script = self.side("inside/script.toml");
        fs::write(&script, scripted(line)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_gyrus"));
        command
            .args(["run", "try it", "--workdir", ".", "--approve", "ask"])
            .args(["--on-ask", "deny"])
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.side("inside/home"))
            .env("USER", "tester")
            .env("GYRUS_HOME", self.side("inside/gyrus"))
            .env("GYRUS_LANGUAGE_SERVERS", "none")
            .env("GYRUS_MODEL", format!("script:{}", script.display()))
            .current_dir(project)
            .stdin(Stdio::null());
        let output = command.output().unwrap();
        let said = || Inside::Broke {
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        outcome(&journal).unwrap_or_else(said)
    }

    /// Whether commands are confined here; what was found out when the first line was judged.
    pub(crate) fn sandbox_holds(&self) -> bool {
        self.inside("true && bash -c true");
        let kept = fs::read(self.side("inside/gyrus/sandbox/proof.json")).unwrap_or_default();
        let kept: BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(&kept).unwrap_or_default();
        let proof = kept.get("proof").cloned().unwrap_or_default();
        serde_json::from_value::<SandboxProof>(proof).is_ok_and(|proof| {
            [
                Promise::Writes,
                Promise::Hidden,
                Promise::Network,
                Promise::Processes,
                Promise::Privileges,
            ]
            .into_iter()
            .all(|promise| proof.holds(promise))
        })
    }
}

/// A home as people have them: an identity for git, caches, toolchains.
pub(crate) fn home(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let identity = "[user]\n\tname = Ada Example\n\temail = ada@example.org\n";
    fs::write(folder.join(".gitconfig"), identity).unwrap();
    for cache in [".cargo", ".npm", ".cache"] {
        fs::create_dir(folder.join(cache)).unwrap();
    }
    fs::create_dir(folder.join(".local")).unwrap();
    for toolchain in TOOLCHAINS {
        let there = person().join(toolchain);
        if there.exists() {
            std::os::unix::fs::symlink(there, folder.join(toolchain)).unwrap();
        }
    }
}

/// As the tool `shell` composes it.
pub(crate) fn path() -> String {
    let path = env::var("PATH").unwrap_or_default();
    let mut folders: Vec<&str> = Vec::new();
    let standard = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    for folder in path.split(':').chain(standard.split(':')) {
        if folder.starts_with('/') && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders.join(":")
}

fn scripted(line: &str) -> String {
    let command = serde_json::to_string(line).unwrap();
    format!(
        r#"
[[reply]]
text = "Try it."
calls = [{{ tool = "shell", arguments = {{ command = {command}, timeout_seconds = {TIME_LIMIT} }} }}]
[[reply]]
text = "That was it."
calls = [{{ tool = "finish", arguments = {{ reached = true, answer = "tried" }} }}]
"#
    )
}

pub(crate) fn end(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Code(code),
        (None, signal) => End::Signal(signal.unwrap_or_default()),
    }
}

/// Reads the outcome of the only command from the journal of the only run.
fn outcome(journal: &Path) -> Option<Inside> {
    let store = Store::open(journal).ok()?;
    let name = store.names("runs").ok()?.pop()?;
    let mut verdict = None;
    for entry in store.reader(&name).ok()?.entries(1).ok()? {
        match gyrus_kernel::parse(&entry.ok()?).ok()? {
            Entry::GateVerdict(body) if verdict.is_none() => verdict = Some(body.verdict),
            // Of a connection that it made.
            Entry::ApprovalAsked(asked) if asked.destination.is_some() => {
                let reasons = vec![asked.card.sentence.clone()];
                return Some(Inside::Asked { reasons });
            }
            Entry::ToolResulted(body) => {
                let verdict = verdict?;
                if verdict.decision != Decision::Allow {
                    let reasons = verdict.reasons;
                    return Some(Inside::Asked { reasons });
                }
                let read: Result<String, Box<dyn std::error::Error>> =
                    body.text.read(|id| Ok(store.blob("runs", id)?.unwrap()));
                if body.withheld.is_some() {
                    let reasons = vec!["what it changed was taken back".to_owned()];
                    return Some(Inside::Asked { reasons });
                }
                let said = read.ok()?;
                let end = told_end(&said)?;
                return Some(Inside::Ended { end, said });
            }
            _ => {}
        }
    }
    None
}

/// Parses the end that the tool reports before its own notes.
fn told_end(said: &str) -> Option<End> {
    said.lines().rev().find_map(end_in)
}

pub(crate) fn end_in(last: &str) -> Option<End> {
    let number = |prefix: &str| {
        let number = last.strip_prefix(prefix)?.strip_suffix(']')?;
        number.parse::<i32>().ok()
    };
    if last.starts_with("[timed out") {
        return Some(End::TimedOut);
    }
    let code = number("[exit code ").map(End::Code);
    code.or_else(|| number("[killed by signal ").map(End::Signal))
}
