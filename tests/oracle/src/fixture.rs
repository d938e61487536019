//! The person's home and the folder that lines run in.
//!
//! There are several such folders ([`Fixture`]), laid out once at the same place; each has a pristine
//! copy where no command can see it, from which it is renewed.

use std::{
    fmt, fs, io,
    os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    str::FromStr,
};

use gyrus_lines::folders::{DISGUISED, HOSTILE, PROJECT};
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, mknodat, utimensat};
use serde::{Deserialize, Serialize};

use crate::{Error, decoys, doing};

/// The person's home.
pub(crate) const HOME: &str = "/home/person";
/// The folder that lines run in.
pub(crate) const WORKSPACE: &str = "/home/person/project";
/// gyrus's own state.
pub(crate) const STATE: &str = "/home/person/.local/state/gyrus";
/// The folder in which planted programs leave proof that they ran with the person's rights.
pub(crate) const FLAGS: &str = "/home/person/flags";
/// Repositories outside whose work trees are, or are in, the workspace.
pub(crate) const REPOSITORIES: [&str; 2] = ["/home/person/elsewhere", "/home/person/repository"];
/// Pristine copies. Services live in `/run`, so no confined command sees it.
const PRISTINE: &str = "/run/oracle";

/// Programs of the machine are looked for here, after those of the project.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

const HOME_SCRIPT: &str = include_str!("../fixture/home.sh");
const OTHERS: &str = include_str!("../fixture/others.sh");
const PLANT: &str = include_str!("../fixture/plant.sh");
const POISON: &str = include_str!("../fixture/poison.sh");

/// The ordinary project before anything was planted in it.
const PLAIN: &str = "/run/oracle/plain";
/// Folder of the copies of that, which have one hidden trap each.
const DISGUISED_FOLDER: &str = "/run/oracle/disguised";

/// Names of these copies, in the order in which their script makes them.
const NAMES: [&str; 41] = [
    "one-line",
    "spaced",
    "letters",
    "comment",
    "semicolon",
    "quotes",
    "continued",
    "returns",
    "bare-key",
    "subsection",
    "long-value",
    "included",
    "included-if",
    "dotted",
    "textconv",
    "clean",
    "process",
    "external",
    "hooks",
    "order",
    "promise",
    "worktree-config",
    "elsewhere",
    "cache",
    "marked",
    "linked-config",
    "linked-folder",
    "file",
    "file-returns",
    "shared",
    "worktree",
    "split",
    "bare-below",
    "below",
    "module",
    "signed",
    "large-files",
    "drivers",
    "names",
    "python",
    "pinned",
];

/// A folder that a line runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fixture {
    /// A small project of the usual kind, with planted programs that nothing names.
    Ordinary,
    /// A linked tree of a repository that lies outside.
    Linked,
    /// A repository whose configuration, file names and programs are traps from the start.
    Hostile,
    /// The ordinary project with a single trap that is well hidden; counted up to
    /// [`Fixture::DISGUISES`].
    Disguised(usize),
}

impl Fixture {
    /// The fixtures that every attack is tried in.
    pub const ALL: [Fixture; 3] = [Fixture::Ordinary, Fixture::Linked, Fixture::Hostile];

    /// Number of hidden traps.
    pub const DISGUISES: usize = NAMES.len();

    fn pristine(self) -> PathBuf {
        match self {
            Fixture::Ordinary | Fixture::Linked | Fixture::Hostile => {
                Path::new(PRISTINE).join(self.to_string())
            }
            Fixture::Disguised(number) => Path::new(DISGUISED_FOLDER).join(NAMES[number]),
        }
    }
}

impl fmt::Display for Fixture {
    /// As it is named on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fixture::Ordinary => "ordinary",
            Fixture::Linked => "linked",
            Fixture::Hostile => "hostile",
            Fixture::Disguised(number) => NAMES[*number],
        })
    }
}

impl FromStr for Fixture {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let disguised = (0..Fixture::DISGUISES).map(Fixture::Disguised);
        let mut all = Fixture::ALL.into_iter().chain(disguised);
        all.find(|fixture| fixture.to_string() == name)
            .ok_or_else(|| format!("there is no folder `{name}`"))
    }
}

/// The environment of the person, and of their gyrus.
pub(crate) fn environment() -> Vec<(&'static str, String)> {
    vec![
        ("HOME", HOME.to_owned()),
        ("USER", "person".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("TERM", "dumb".to_owned()),
        ("TMPDIR", "/tmp".to_owned()),
        (
            "PATH",
            format!("{WORKSPACE}/.venv/bin:{WORKSPACE}/node_modules/.bin:{SYSTEM_PATH}"),
        ),
        ("OWN_SETTING", decoys::token("environment")),
    ]
}

/// The folders of the workspace in the person's PATH.
pub(crate) fn program_folders() -> Vec<PathBuf> {
    [".venv/bin", "node_modules/.bin"]
        .map(|name| Path::new(WORKSPACE).join(name))
        .to_vec()
}

/// Makes the home and all fixtures with their pristine copies.
pub(crate) fn lay_out() -> Result<(), Error> {
    script(HOME_SCRIPT, &[HOME, decoys::CORE])?;
    script(OTHERS, &[HOME])?;
    // Whatever these plant leaves its mark where it is looked for.
    let hostile = HOSTILE.replace("/tmp/planted-FLAG", &format!("{FLAGS}/planted"));
    script(PROJECT, &[WORKSPACE])?;
    copy(Path::new(WORKSPACE), Path::new(PLAIN)).map_err(doing("keep a pristine copy"))?;
    plant()?;
    let linked = format!("{HOME}/repository");
    rename(WORKSPACE, Fixture::Ordinary.pristine())?;

    script(PROJECT, &[&linked])?;
    git(
        &["worktree", "add", "--quiet", "-b", "work", WORKSPACE],
        &linked,
    )?;
    plant()?;
    rename(WORKSPACE, Fixture::Linked.pristine())?;

    script(&hostile, &[WORKSPACE])?;
    plant()?;
    rename(WORKSPACE, Fixture::Hostile.pristine())?;
    for repository in REPOSITORIES {
        copy(Path::new(repository), &pristine_of(repository)).map_err(doing("copy"))?;
    }
    // What was planted may have run while it was laid out.
    remove(Path::new(FLAGS)).map_err(doing("empty the folder of flags"))?;
    fs::create_dir(FLAGS).map_err(doing("empty the folder of flags"))
}

pub(crate) fn pristine_of(repository: &str) -> PathBuf {
    let name = Path::new(repository).file_name().unwrap_or_default();
    Path::new(PRISTINE).join("repositories").join(name)
}

fn plant() -> Result<(), Error> {
    let poison = Path::new(WORKSPACE).join("poison");
    fs::write(&poison, POISON)
        .and_then(|()| fs::set_permissions(&poison, fs::Permissions::from_mode(0o755)))
        .map_err(doing("plant a program"))?;
    script(PLANT, &[WORKSPACE, HOME])
}

fn rename(from: &str, to: PathBuf) -> Result<(), Error> {
    let moved = copy(Path::new(from), &to).and_then(|()| remove(Path::new(from)));
    moved.map_err(doing("keep a pristine copy"))
}

/// Puts the fixture in the place of the workspace.
pub(crate) fn renew(fixture: Fixture) -> Result<(), Error> {
    if matches!(fixture, Fixture::Disguised(_)) && !Path::new(DISGUISED_FOLDER).exists() {
        disguise()?;
    }
    let workspace = Path::new(WORKSPACE);
    remove(workspace)
        .and_then(|()| copy(&fixture.pristine(), workspace))
        .map_err(doing("renew the workspace"))
}

/// Makes the fixtures with hidden traps, which takes a while.
fn disguise() -> Result<(), Error> {
    let script_text = DISGUISED.replace("/tmp/planted-FLAG", &format!("{FLAGS}/planted"));
    script(&script_text, &[PLAIN, DISGUISED_FOLDER])?;
    clear_flags()
}

/// Puts the repositories outside back as they were.
pub(crate) fn renew_repositories() -> Result<(), Error> {
    for repository in REPOSITORIES {
        let place = Path::new(repository);
        remove(place)
            .and_then(|()| copy(&pristine_of(repository), place))
            .map_err(doing("renew a repository"))?;
    }
    Ok(())
}

/// Empties the folder of flags.
pub(crate) fn clear_flags() -> Result<(), Error> {
    let entries = fs::read_dir(FLAGS).map_err(doing("look at the flags"))?;
    for entry in entries.filter_map(Result::ok) {
        remove(&entry.path()).map_err(doing("remove a flag"))?;
    }
    Ok(())
}

/// The pristine content of a file of a fixture.
pub(crate) fn pristine(fixture: Fixture, below: &Path) -> PathBuf {
    fixture.pristine().join(below)
}

fn script(text: &str, arguments: &[&str]) -> Result<(), Error> {
    let mut command = Command::new("bash");
    command.args(["-c", text, "lay-out"]).args(arguments);
    done(command, &format!("lay out {}", arguments.join(" ")))
}

fn git(arguments: &[&str], folder: &str) -> Result<(), Error> {
    let mut command = Command::new("git");
    command.args(["-C", folder]).args(arguments);
    done(command, &format!("git {}", arguments.join(" ")))
}

fn done(mut command: Command, what: &str) -> Result<(), Error> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(doing("run a program"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(doing(what)(io::Error::other(said)))
}

/// Removes a file or a folder with all in it, whatever modes were set in it.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let Ok(data) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !data.is_dir() {
        return fs::remove_file(path);
    }
    fs::remove_dir_all(path).or_else(|_| {
        open_up(path)?;
        fs::remove_dir_all(path)
    })
}

/// Lets every folder be listed and changed, as far down as a path reaches.
fn open_up(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if fs::symlink_metadata(&path).is_ok_and(|data| data.is_dir()) {
            open_up(&path)?;
        }
    }
    Ok(())
}

/// Copies a tree with modes and times. Sockets are left out: they would be dead.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let data = fs::symlink_metadata(from)?;
    let kind = data.file_type();
    if kind.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    if kind.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        fs::set_permissions(to, data.permissions())?;
    } else if kind.is_file() {
        fs::copy(from, to)?;
    } else if kind.is_fifo() {
        mknodat(
            CWD,
            to,
            FileType::Fifo,
            Mode::from_raw_mode(data.mode() & 0o777),
            0,
        )?;
    } else {
        return Ok(());
    }
    let time = |seconds, nanoseconds| Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    };
    let times = Timestamps {
        last_access: time(data.atime(), data.atime_nsec()),
        last_modification: time(data.mtime(), data.mtime_nsec()),
    };
    Ok(utimensat(CWD, to, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}
