//! A home, a folder, and gyrus as a process in them.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use gyrus_contract::RunId;
use gyrus_journal::{Store, os::watch};
use gyrus_kernel::{Entry, log_name};
use rustix::process::{Pid, Signal};
use tempfile::TempDir;

/// Everything that is waited for happens within this time, or the test fails.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// Writes a file, adds a line to a ledger, and finishes.
pub(crate) const THREE_STEPS: &str = r#"
[[reply]]
text = "First a file."
calls = [{ tool = "write", arguments = { path = "out.txt", content = "hello\n" } }]
[[reply]]
text = "Then the ledger."
calls = [{ tool = "shell", arguments = { command = "cat out.txt >> ledger.txt" } }]
[[reply]]
text = "Done."
calls = [{ tool = "finish", arguments = { reached = true, answer = "It says hello." } }]
"#;

/// Starts a command that lasts until there is a file `go`, and finishes.
pub(crate) const UNTIL_GO: &str = r#"
[[reply]]
text = "This takes a while."
calls = [{ tool = "shell", arguments = { command = "echo begun >> ledger.txt; until [ -e go ]; do sleep 0.01; done; echo done >> ledger.txt" } }]
[[reply]]
text = "That is all."
calls = [{ tool = "finish", arguments = { reached = true, answer = "finished" } }]
"#;

/// The folders of one test.
pub(crate) struct World {
    folder: TempDir,
}

/// Output of a process.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// Panics with everything that was said if the code is another.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Panics if the words are not among those on standard error.
    #[track_caller]
    pub(crate) fn says(self, words: &str) -> Self {
        assert!(self.err.contains(words), "`{words}` is not in {self:#?}");
        self
    }
}

impl World {
    /// With this script.
    pub(crate) fn new(script: &str) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("gyrus-test-")
            .tempdir()
            .unwrap();
        let world = Self { folder };
        fs::create_dir(world.work()).unwrap();
        fs::create_dir(world.path("person")).unwrap();
        fs::write(world.path("script.toml"), script).unwrap();
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder that runs work in.
    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    /// Reads a file of that folder; empty if there is none.
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap_or_default()
    }

    /// gyrus with these arguments, in the working folder, without a terminal.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gyrus"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("person"))
            .env("GYRUS_HOME", self.path("home"))
            .env(
                "GYRUS_MODEL",
                format!("script:{}", self.path("script.toml").display()),
            )
            .env("USER", "tester")
            // What runs can do is not to depend on what is installed.
            .env("GYRUS_BROWSER", "/nowhere/browser")
            .env("GYRUS_LANGUAGE_SERVERS", "none")
            .current_dir(self.work())
            .stdin(Stdio::null());
        command
    }

    /// Runs gyrus to its end.
    pub(crate) fn gyrus(&self, arguments: &[&str]) -> Said {
        said(self.command(arguments).output().unwrap())
    }

    /// `gyrus run`, with everything allowed in the working folder.
    pub(crate) fn run(&self, more: &[&str]) -> Said {
        self.gyrus(&self.run_arguments(more))
    }

    /// The arguments of [`World::run`].
    pub(crate) fn run_arguments<'a>(&self, more: &[&'a str]) -> Vec<&'a str> {
        [
            &["run", "say hello", "--workdir", ".", "--approve", "auto"],
            more,
        ]
        .concat()
    }

    /// Starts gyrus and lets it run.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        Running::of(&mut self.command(arguments))
    }

    /// Runs gyrus where rustc and cargo are on the path.
    pub(crate) fn with_compiler(&self, arguments: &[&str]) -> Said {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let tools = Path::new(&cargo).parent().unwrap_or(Path::new("/usr/bin"));
        let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
        said(self.command(arguments).env("PATH", path).output().unwrap())
    }

    /// The last run is the same from its journal alone.
    #[track_caller]
    pub(crate) fn replays(&self) {
        let replayed = self.gyrus(&["replay", "last"]).exits(0).out;
        assert!(replayed.contains("0 differences"), "{replayed}");
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.path("home/journal")).unwrap()
    }

    /// The runs that there are.
    pub(crate) fn runs(&self) -> Vec<RunId> {
        let names = self.store().names("runs").unwrap();
        names
            .iter()
            .map(|name| name.id().parse().unwrap())
            .collect()
    }

    /// Every entry of the only run.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let reader = self.store().reader(&log_name(self.runs()[0])).unwrap();
        reader
            .entries(1)
            .unwrap()
            .map(|e| gyrus_kernel::parse(&e.unwrap()).unwrap())
            .collect()
    }

    /// Waits until an entry of the only run is on disk.
    pub(crate) fn wait_for(&self, wanted: impl Fn(&Entry) -> bool) {
        let store = self.path("home/journal");
        block_on(async {
            // The folders appear one after the other.
            let mut changes = watch::watch(self.folder.path()).unwrap();
            while !self.path("home").exists() {
                changes.changed().await;
            }
            let store = Store::open(&store).unwrap();
            fs::create_dir_all(store.root().join("runs")).unwrap();
            let mut changes = watch::watch(&store.root().join("runs")).unwrap();
            while store.names("runs").unwrap().is_empty() {
                changes.changed().await;
            }
            let name = store.names("runs").unwrap().remove(0);
            let mut follower = store.reader(&name).unwrap().follow(1).unwrap();
            while !wanted(&gyrus_kernel::parse(&follower.next().await.unwrap()).unwrap()) {}
        });
    }

    /// Waits until a file of the working folder has these words, there or in a command's layer.
    pub(crate) fn wait_for_file(&self, name: &str, words: &str) {
        let has_words = |path: &Path| {
            fs::read_to_string(path.join(name)).is_ok_and(|text| text.contains(words))
        };
        self.wait(name, || {
            has_words(&self.work()) || self.layers().iter().any(|layer| has_words(layer))
        });
    }

    /// Waits until a command has made a file of this name in its layer.
    pub(crate) fn wait_for_layer(&self, name: &str) {
        self.wait_for_layers(name, 1);
    }

    /// Waits until so many commands have made a file of this name, each in its layer.
    pub(crate) fn wait_for_layers(&self, name: &str, wanted: usize) {
        self.wait(name, || {
            let layers = self.layers();
            let made = layers
                .iter()
                .filter(|layer| layer.join(name).symlink_metadata().is_ok());
            made.count() >= wanted
        });
    }

    /// Waits for a condition of a layer, which cannot be watched before it is there.
    fn wait(&self, name: &str, is_so: impl Fn() -> bool) {
        let until = Instant::now() + TIMEOUT;
        while !is_so() {
            assert!(Instant::now() < until, "`{name}` is nowhere as wanted");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Folders with the changes of commands, in every home of this world, ephemeral ones included.
    fn layers(&self) -> Vec<PathBuf> {
        let listed = |folder: &Path| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        let mut homes = vec![self.path("home")];
        homes.extend(listed(self.folder.path()));
        homes.dedup();
        let ephemeral = homes
            .iter()
            .flat_map(|home| listed(&home.join("ephemeral")));
        let ephemeral: Vec<_> = ephemeral
            .filter_map(|link| fs::read_link(link).ok())
            .collect();
        let stores = homes.iter().chain(&ephemeral).flat_map(|home| {
            [
                home.join("journal/runs"),
                home.join("runs"),
                home.join("state/journal/runs"),
            ]
        });
        let runs = stores.flat_map(|runs| listed(&runs));
        let layers = runs.flat_map(|run| listed(&run.join("layers")));
        let mut layers: Vec<_> = layers.map(|layer| layer.join("upper")).collect();
        layers.sort();
        layers.dedup();
        layers
    }

    /// Replaces what differs from test to test: ids, folders, times, tokens.
    pub(crate) fn mask(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for run in self.runs() {
            let id = run.to_string();
            text = text
                .replace(&id, "[RUN]")
                .replace(&id[id.len() - 8..], "[run]");
        }
        let real = self.folder.path().canonicalize().unwrap();
        text = text.replace(&real.display().to_string(), "[folder]");
        let words: Vec<&str> = text.split(' ').collect();
        let masked = words.iter().enumerate().map(|(index, word)| {
            let unit = words.get(index + 1).and_then(|unit| unit.lines().next());
            let counted = matches!(unit, Some("ms" | "s" | "min" | "tokens"));
            if counted && word.replace(',', "").parse::<f64>().is_ok() {
                "[n]"
            } else {
                word
            }
        });
        let masked: Vec<&str> = masked.collect();
        masked
            .join(" ")
            .replace("[n] ms", "[time]")
            .replace("[n] s", "[time]")
    }
}

fn block_on(done: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime
        .block_on(async { tokio::time::timeout(TIMEOUT, done).await })
        .expect("it happens");
}

pub(crate) fn said(output: Output) -> Said {
    Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// gyrus at work. Dropping it kills it.
pub(crate) struct Running {
    child: Option<Child>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let output = child.wait_with_output();
            // A test that waits in vain should say what for.
            if let (true, Ok(output)) = (std::thread::panicking(), output) {
                eprintln!("it said: {}", String::from_utf8_lossy(&output.stderr));
            }
        }
    }
}

impl Running {
    /// Starts a command, whose words are kept.
    pub(crate) fn of(command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self {
            child: Some(command.spawn().unwrap()),
        }
    }

    /// The number of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(self.child.as_ref().unwrap());
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Reads standard error until a line has these words, and returns that line.
    pub(crate) fn hears(&mut self, words: &str) -> String {
        let stderr = self.child.as_mut().unwrap().stderr.as_mut().unwrap();
        // Byte for byte, so that nothing of what follows is lost in a buffer.
        let mut lines = BufReader::with_capacity(1, stderr);
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            assert_ne!(
                lines.read_line(&mut line).unwrap(),
                0,
                "`{words}` was never said"
            );
        }
        line
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Said {
        said(self.child.take().unwrap().wait_with_output().unwrap())
    }
}

/// Whether a program is there and does something for us.
pub(crate) fn works(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// All of a file.
pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
