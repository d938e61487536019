//! A small world around a sandbox: a workspace, and what a command must not reach.

use std::{
    collections::BTreeMap,
    fs, io,
    net::SocketAddr,
    os::unix::{
        fs::{PermissionsExt, chown},
        net::UnixListener,
    },
    path::{Path, PathBuf},
};

use gyrus_contract::{Containment, Layer, Network, ResourceLimits};
use rustix::{
    fs::{CWD, Mode, mknodat},
    process::geteuid,
};

use super::start::{Around, OTHER, Ran, Start, User};

/// Folders of one test, deleted at its end.
pub(crate) struct World {
    folder: tempfile::TempDir,
    user: User,
    around: Around,
    pub(crate) network: Network,
    pub(crate) forwarded: Vec<SocketAddr>,
    pub(crate) limits: ResourceLimits,
    /// Must stay as it is in the workspace.
    pub(crate) kept: Vec<PathBuf>,
    /// Held open so that a writer would find a reader.
    _fifo: fs::File,
    _service: UnixListener,
}

/// Enough for a build.
pub(crate) const ROOMY: ResourceLimits = ResourceLimits {
    processes: 512,
    memory_bytes: 4 << 30,
    cpu_seconds: 120,
    file_bytes: 1 << 30,
};

/// Returns the folder in which worlds are laid out: not below the system's folders for temporary
/// files, which a sandbox has of its own.
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

impl World {
    pub(crate) fn new(user: User, around: Around) -> Self {
        let folder = tempfile::tempdir_in(ground()).unwrap();
        let path = folder.path();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        for name in [
            "workspace",
            "temporary",
            "secret",
            "outside",
            "cache",
            "home",
        ] {
            fs::create_dir(path.join(name)).unwrap();
        }
        for file in ["secret/file", "outside/file", "cache/lower"] {
            fs::write(path.join(file), "as it was").unwrap();
        }
        let fifo = path.join("outside/fifo");
        let mode = Mode::from_raw_mode(0o666);
        mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let service = UnixListener::bind(path.join("outside/socket")).unwrap();
        // If anything went wrong, rights must not be what saves us.
        for entry in ["outside/socket", "outside/fifo", "outside/file", "outside"] {
            fs::set_permissions(path.join(entry), fs::Permissions::from_mode(0o777)).unwrap();
        }
        if user == User::Other {
            for entry in [
                "",
                "workspace",
                "temporary",
                "secret",
                "outside",
                "outside/file",
                "cache",
                "cache/lower",
                "home",
            ] {
                chown(path.join(entry), Some(OTHER), Some(OTHER)).unwrap();
            }
        }
        let opened = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(fifo)
            .unwrap();
        Self {
            user,
            around,
            network: Network::None,
            forwarded: Vec::new(),
            limits: ROOMY,
            kept: Vec::new(),
            _fifo: opened,
            _service: service,
            folder,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes what a test has put into a folder that of the user who runs the commands.
    pub(crate) fn give(&self, name: &str) {
        let owner = match self.user {
            User::Current => return,
            User::Other => OTHER,
        };
        let mut folders = vec![self.path(name)];
        while let Some(path) = folders.pop() {
            chown(&path, Some(owner), Some(owner)).unwrap();
            if path.is_dir() {
                let entries = fs::read_dir(path).unwrap();
                folders.extend(entries.map(|entry| entry.unwrap().path()));
            }
        }
    }

    pub(crate) fn containment(&self) -> Containment {
        Containment {
            writable: vec![self.path("workspace")],
            read_only: self.kept.clone(),
            temporary: self.path("temporary"),
            hidden: vec![self.path("secret"), "/etc/shadow".into(), "/missing".into()],
            layered: vec![Layer {
                lower: self.path("cache"),
                upper: self.path("changes/upper"),
                work: self.path("changes/work"),
                required: false,
            }],
            binds: Vec::new(),
            moved: [("npm_config_cache".to_owned(), "npm".to_owned())].into(),
            network: self.network,
            forwarded: self.forwarded.clone(),
            asked: Vec::new(),
            serves: false,
            sockets: Vec::new(),
            limits: self.limits,
        }
    }

    pub(crate) fn start<T>(&self, run: impl FnOnce(&Start<'_>) -> T) -> T {
        run(&Start {
            containment: &self.containment(),
            around: self.around,
            user: self.user,
            folder: &self.path("workspace"),
            environment: self.environment(),
        })
    }

    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        let mut environment: BTreeMap<String, String> = ["PATH", "CARGO_HOME", "RUSTUP_HOME"]
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)))
            .collect();
        let mut set = |name: &str, value: &Path| {
            environment.insert(name.to_owned(), value.display().to_string());
        };
        set("WORLD", self.folder.path());
        set("HOME", &self.path("home"));
        environment
    }

    /// Runs a script of the shell in the workspace.
    pub(crate) fn script(&self, script: &str) -> Ran {
        self.start(|start| start.script(script))
    }

    /// Checks that everything outside is as it was before.
    pub(crate) fn check_unchanged(&self) {
        for file in ["secret/file", "outside/file", "cache/lower"] {
            assert_eq!(
                fs::read_to_string(self.path(file)).unwrap(),
                "as it was",
                "{file}"
            );
        }
        let mut names: Vec<_> = fs::read_dir(self.path("outside"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["fifo", "file", "socket"]);
        assert_eq!(fs::read_dir(self.path("cache")).unwrap().count(), 1);
    }
}

/// Whether tests may become another user.
pub(crate) fn can_change_user() -> bool {
    geteuid().is_root() && reachable_by_others(&ground())
}

fn reachable_by_others(folder: &Path) -> bool {
    let open = |folder: &Path| -> io::Result<bool> {
        Ok(fs::metadata(folder)?.permissions().mode() & 0o001 != 0)
    };
    folder
        .ancestors()
        .all(|folder| open(folder).unwrap_or(false))
}
