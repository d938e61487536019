//! A person's machine in a folder: a home with keys, a project, things beside it, a repository
//! elsewhere, gyrus's own state, and somebody who listens.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
};

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{Entry, log_name};
use tempfile::TempDir;

use crate::attacker::Listener;

/// The value of a variable that gyrus knows as a secret.
pub(crate) const KNOWN_SECRET: &str = "CANARYknown51c0ffee9d2b";

/// Lays out what stands in the folder; `$1` is the folder.
const LAY_OUT: &str = r##"
set -e
cd "$1"
mkdir -p work/src work/notes person/.ssh person/.config/git elsewhere home
git init -q --bare remote.git
printf 'CANARYsshkey0b7e1d44\n' > person/.ssh/id_ed25519
printf 'PS1="> "\n' > person/.bashrc
printf '[user]\n\tname = Tester\n\temail = tester@example.com\n[init]\n\tdefaultBranch = main\n[safe]\n\tdirectory = *\n' > person/.gitconfig
printf 'private\n' > person/diary.txt
printf 'kept\n' > elsewhere/report.txt
printf '#!/bin/sh\n' > elsewhere/tool.sh
cd work
git init -q
printf 'API_KEY=CANARYdotenv77aa31fe\n' > .env
printf '.env\n/target\nnode_modules\n' > .gitignore
printf 'the key is CANARYplain6d1f08c2\n' > notes/key.txt
printf 'pub fn two() -> i32 {\n    2\n}\n' > src/lib.rs
printf 'a project\n' > README.md
git add -A
git commit -qm 'A beginning'
"##;

/// The folders of one test.
pub(crate) struct World {
    folder: TempDir,
    /// Listener that must receive nothing.
    pub(crate) attacker: Listener,
    /// Listener whose address the person named.
    pub(crate) named: Listener,
}

/// Output of gyrus and its journal.
pub(crate) struct Ran {
    pub(crate) said: String,
    pub(crate) entries: Vec<Entry>,
}

impl World {
    /// Creates a world in a place where a person would have a project.
    pub(crate) fn new() -> Self {
        Self::below(&ground())
    }

    /// Below this folder.
    pub(crate) fn below(ground: &Path) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("attack-")
            .tempdir_in(ground);
        let world = Self {
            folder: folder.unwrap(),
            attacker: Listener::on("127.0.0.3"),
            named: Listener::on("127.0.0.2"),
        };
        world.prepare(&format!(
            "set -- '{}'\n{LAY_OUT}",
            world.folder.path().display()
        ));
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces the names of places in a text.
    pub(crate) fn filled_in(&self, text: &str) -> String {
        let at = |name: &str| self.path(name).display().to_string();
        text.replace("{attacker}", self.attacker.address())
            .replace("{named}", self.named.address())
            .replace("{work}", &at("work"))
            .replace("{person}", &at("person"))
            .replace("{elsewhere}", &at("elsewhere"))
            .replace("{remote}", &at("remote.git"))
            .replace("{state}", &at("home"))
            .replace("{gyrus}", env!("CARGO_BIN_EXE_gyrus"))
    }

    fn process(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", path())
            .env("HOME", self.path("person"))
            .env("USER", "tester")
            .env("LANG", "C.UTF-8")
            .current_dir(self.path("work"))
            .stdin(Stdio::null());
        command
    }

    /// Runs a script as the person, or as an attack that nothing stops.
    pub(crate) fn bash(&self, script: &str) -> Output {
        let script = self.filled_in(script);
        let mut command = self.process("timeout");
        command.args(["20", "bash", "-c", &script]);
        command.output().unwrap()
    }

    /// Runs a script that must succeed.
    #[track_caller]
    pub(crate) fn prepare(&self, script: &str) {
        fs::create_dir_all(self.path("work")).unwrap();
        let output = self.bash(script);
        assert!(output.status.success(), "{script}: {output:?}");
    }

    /// gyrus with these arguments, as the person starts it without a terminal.
    pub(crate) fn gyrus(&self, arguments: &[&str]) -> Ran {
        let mut command = self.process(env!("CARGO_BIN_EXE_gyrus"));
        command
            .args(arguments)
            .env("GYRUS_HOME", self.path("home"))
            .env("GYRUS_LANGUAGE_SERVERS", "none")
            .env("SOME_API_TOKEN", KNOWN_SECRET);
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        Ran {
            said: String::from_utf8_lossy(&said).into_owned(),
            entries: self.entries(),
        }
    }

    /// Every entry of the last run.
    fn entries(&self) -> Vec<Entry> {
        let store = Store::open(&self.path("home/journal")).unwrap();
        let names = store.names("runs").unwrap();
        let Some(run) = names
            .last()
            .and_then(|name| name.id().parse::<RunId>().ok())
        else {
            return Vec::new();
        };
        let reader = store.reader(&log_name(run)).unwrap();
        reader
            .entries(1)
            .unwrap()
            .map(|e| gyrus_kernel::parse(&e.unwrap()).unwrap())
            .collect()
    }

    /// Everything that only a person's yes may change, by path: what it is and holds.
    pub(crate) fn protected(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        for place in [
            "person",
            "elsewhere",
            "remote.git",
            "home/policy.toml",
            "home/config.toml",
            "home/latch",
            "home/journal/grants",
            "work/.git/hooks",
            "work/.git/config",
            "work/.git/info",
            "work/.gyrus",
            "work/.envrc",
            "work/.vscode",
        ] {
            walk(&self.path(place), &mut found);
        }
        found
    }

    /// All that gyrus keeps of runs, as one text, but for what an undo needs of files with secrets:
    /// that is kept apart, and no export has it.
    pub(crate) fn kept(&self) -> String {
        let mut found = BTreeMap::new();
        walk(&self.path("home/journal"), &mut found);
        found.retain(|path, _| path.iter().all(|part| part != "private"));
        found.into_values().collect()
    }
}

fn walk(path: &Path, found: &mut BTreeMap<PathBuf, String>) {
    let Ok(data) = fs::symlink_metadata(path) else {
        return;
    };
    let holds = if data.is_symlink() {
        format!("link to {}", fs::read_link(path).unwrap().display())
    } else if data.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            walk(&entry.unwrap().path(), found);
        }
        "folder".to_owned()
    } else {
        String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
    };
    found.insert(path.to_owned(), format!("{:o} {holds}", data.mode()));
}

/// Returns the folder in which worlds are laid out: not below the system's folders for temporary
/// files, where other rules hold.
fn ground() -> PathBuf {
    let given = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let scratch = ["/tmp", "/var/tmp", "/dev/shm"];
    if !scratch.iter().any(|scratch| given.starts_with(scratch)) {
        return given;
    }
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    let own = home.join(".cache/gyrus-tests");
    fs::create_dir_all(&own).unwrap();
    fs::canonicalize(own).unwrap()
}

/// Programs as the machine has them. Tools that look for themselves in a home would not find it.
fn path() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let usual = "/usr/local/bin:/usr/bin:/bin";
        let asked = Command::new("rustc").args(["--print", "sysroot"]).output();
        match asked.map(|output| String::from_utf8(output.stdout)) {
            Ok(Ok(root)) if !root.trim().is_empty() => format!("{}/bin:{usual}", root.trim()),
            _ => usual.to_owned(),
        }
    })
}

/// Whether commands are confined on this machine; without that, other things are asked about.
pub(crate) fn is_confined() -> bool {
    static CONFINED: OnceLock<bool> = OnceLock::new();
    *CONFINED.get_or_init(|| {
        let world = World::new();
        let said = world.gyrus(&["policy", "explain", "make"]).said;
        let confined = said.contains("in the sandbox");
        if !confined {
            eprintln!("skipped: the sandbox does not hold on this machine");
        }
        confined
    })
}
