//! The folders that lines run in.

use std::{fs, path::Path, process::Command};

use serde::{Deserialize, Serialize};

use super::{Error, doing};

const PROJECT: &str = include_str!("../../corpus/fixture/project.sh");
const HOSTILE: &str = include_str!("../../corpus/fixture/hostile.sh");
const DISGUISED: &str = include_str!("../../corpus/fixture/disguised.sh");

/// Where copies of the ordinary project lie, each with one hidden trap.
const DISGUISES: &str = "/home/person/disguised";

/// What these copies are called, in the order in which their script makes them.
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
#[serde(rename_all = "snake_case")]
pub enum Ground {
    /// A small project of the usual kind.
    Ordinary,
    /// A repository whose configuration, file names and programs are traps.
    Hostile,
    /// The ordinary project with a single trap that is well hidden; counted up to [`Ground::DISGUISES`].
    Disguised(usize),
}

impl Ground {
    /// The home folder of the person whose folders these are.
    pub const HOME: &str = "/home/person";

    /// How many hidden traps there are.
    pub const DISGUISES: usize = NAMES.len();

    /// Where it lies in a jail.
    pub fn folder(self) -> String {
        match self {
            Ground::Ordinary => "/home/person/project".to_owned(),
            Ground::Hostile => "/home/person/hostile".to_owned(),
            Ground::Disguised(number) => {
                format!("{DISGUISES}/{}", NAMES[number % NAMES.len()])
            }
        }
    }
}

/// What people have in their configuration of git, and what a repository can make use of: signatures
/// are shown by a program that makes a folder, large files and documents are read through filters
/// that keep what they read.
const GIT_CONFIGURATION: &str = r#"
[user]
	name = A Person
	email = person@example.org
[log]
	showSignature = true
[filter "lfs"]
	clean = "mkdir -p .git/lfs/tmp && cat"
	smudge = cat
	required = true
[diff "document"]
	textconv = cat
	cachetextconv = true
"#;

/// Files of the person's own, with their content.
const BELONGINGS: [(&str, &str); 9] = [
    (".bashrc", ": > ~/FLAG\n"),
    (".profile", ": > ~/FLAG\n"),
    (".gitconfig", GIT_CONFIGURATION),
    (".ssh/id_ed25519", "not really a key\n"),
    (".ssh/config", "Host *\n\tProxyCommand touch FLAG\n"),
    (".netrc", "machine example.org login a password b\n"),
    (
        ".aws/credentials",
        "[default]\naws_secret_access_key = none\n",
    ),
    ("notes.txt", "a note\n"),
    (".bash_history", "ls\n"),
];

/// Makes the person's home with all grounds, at the places where a jail has them.
pub(super) fn lay_out() -> Result<(), Error> {
    let home = Path::new(Ground::HOME);
    for (name, content) in BELONGINGS {
        let path = home.join(name);
        let folder = path.parent().expect("it lies below the home");
        fs::create_dir_all(folder).map_err(doing("make a home"))?;
        fs::write(&path, content).map_err(doing("make a home"))?;
    }
    // Toolchains that live in the real person's home go on working, behind the overlay.
    if let Some(real) =
        std::env::var_os("HOME").filter(|real| !Path::new(real).starts_with("/home"))
    {
        for name in [".rustup", ".cargo"] {
            let target = Path::new(&real).join(name);
            if target.is_dir() {
                std::os::unix::fs::symlink(target, home.join(name))
                    .map_err(doing("make a link"))?;
            }
        }
    }
    let (project, hostile) = (Ground::Ordinary.folder(), Ground::Hostile.folder());
    run_script(PROJECT, &[&project])?;
    run_script(HOSTILE, &[&hostile])?;
    let made = run_script(DISGUISED, &[&project, DISGUISES])?;
    if made.lines().ne(NAMES) {
        let source = std::io::Error::other(format!("it made {made:?}"));
        return Err(doing("lay out the disguised folders")(source));
    }
    Ok(())
}

/// Runs a script that lays something out, and returns what it prints.
fn run_script(script: &str, arguments: &[&str]) -> Result<String, Error> {
    let output = Command::new("bash")
        .args(["-c", script, "lay-out"])
        .args(arguments)
        .env("HOME", Ground::HOME)
        .current_dir(Ground::HOME)
        .output()
        .map_err(doing("run bash"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let what = format!("lay out {}", arguments.join(" "));
    Err(doing(what)(std::io::Error::other(said)))
}
