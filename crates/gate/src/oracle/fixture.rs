//! The folders that lines run in.

use std::{fs, path::Path, process::Command};

use serde::{Deserialize, Serialize};

use super::{Error, doing};

const PROJECT: &str = include_str!("../../corpus/fixture/project.sh");
const HOSTILE: &str = include_str!("../../corpus/fixture/hostile.sh");

/// A folder that a line runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ground {
    /// A small project of the usual kind.
    Ordinary,
    /// A repository whose configuration, file names and programs are traps.
    Hostile,
}

impl Ground {
    /// The home folder of the person whose folders these are.
    pub const HOME: &str = "/home/person";

    /// Both.
    pub const ALL: [Self; 2] = [Self::Ordinary, Self::Hostile];

    /// Where it lies in a jail.
    pub fn folder(self) -> &'static str {
        match self {
            Ground::Ordinary => "/home/person/project",
            Ground::Hostile => "/home/person/hostile",
        }
    }
}

/// Files of the person's own, with their content.
const BELONGINGS: [(&str, &str); 9] = [
    (".bashrc", ": > ~/FLAG\n"),
    (".profile", ": > ~/FLAG\n"),
    (".gitconfig", "[user]\n\tname = A Person\n\temail = person@example.org\n"),
    (".ssh/id_ed25519", "not really a key\n"),
    (".ssh/config", "Host *\n\tProxyCommand touch FLAG\n"),
    (".netrc", "machine example.org login a password b\n"),
    (".aws/credentials", "[default]\naws_secret_access_key = none\n"),
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
    if let Some(real) = std::env::var_os("HOME").filter(|real| !Path::new(real).starts_with("/home")) {
        for name in [".rustup", ".cargo"] {
            let target = Path::new(&real).join(name);
            if target.is_dir() {
                std::os::unix::fs::symlink(target, home.join(name)).map_err(doing("make a link"))?;
            }
        }
    }
    run_script(PROJECT, Ground::Ordinary)?;
    run_script(HOSTILE, Ground::Hostile)
}

fn run_script(script: &str, ground: Ground) -> Result<(), Error> {
    let output = Command::new("bash")
        .args(["-c", script, "lay-out", ground.folder()])
        .env("HOME", Ground::HOME)
        .current_dir(Ground::HOME)
        .output()
        .map_err(doing("run bash"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(doing(format!("lay out {}", ground.folder()))(std::io::Error::other(said)))
}
