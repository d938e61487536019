//! The folders of a session, and both ways to do it.

use std::{
    fs,
    io::Read,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{
    Session, Step,
    database::{Database, listener},
    scripted::{read, script},
    trace::Trace,
};
use crate::desk::{Original, end, home, path};

/// A library that sets the clock of the processes that load it ahead, by the seconds in a file.
const LIBRARY: &str = include_str!("../../fixtures/clock.c");

/// A goal with more to do than one step.
const GOAL: &str = "Rework the project in three parts, then test it and commit";

/// Questions after which a session counts as failed.
const MOST_QUESTIONS: usize = 9;

/// The exit code of a run that waits for a person.
const WAITS: i32 = 5;

/// Makes of a setup a project with two commits, and prepares a second folder beside.
const BEGIN: &str = r#"set -e
[ -e .gitignore ] || echo '*.tmp' > .gitignore
git init -q -b main
git add .gitignore && git commit -q -m Begin
git add -A && git commit -q -m 'A project'
mkdir -p "$FOLDER/lib" && cd "$FOLDER"
echo 'Vorlage: alle' > 'vorlage für alle.txt'
echo old > alt.txt
echo 'a library' > lib/a.txt
"#;

/// Prints what git knows, but for times and names of commits.
const LOOK: &str = "git log --all --format='%s|%b|%an|%ae|%T' | sort -u; \
    git for-each-ref --format='%(refname) %(objecttype) %(tree) %(*tree)'; git status --porcelain -b; \
    git stash list --format=%gs; git worktree list | wc -l; git fsck --no-dangling 2>&1; \
    git config --local --list";

/// Compiles the library that sets clocks; `None` where no compiler does.
pub(super) fn clock(original: &Original) -> Option<PathBuf> {
    let folder = original.folder();
    let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
    fs::write(&source, LIBRARY).unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(source);
    compiler
        .status()
        .is_ok_and(|made| made.success())
        .then_some(library)
}

pub(super) struct World {
    /// Made anew for each way.
    folder: PathBuf,
    /// gyrus's own, and the model's script.
    beside: PathBuf,
    database: Database,
}

impl World {
    pub(super) fn new(original: &Original, session: &mut Session) -> Self {
        let name = format!("session-{}", session.number);
        let folder = original.folder().join(&name);
        let beside = original.folder().join(name + ".gyrus");
        fs::create_dir(&beside).unwrap();
        let database = Database::start(&beside.join("ahead"));
        let served = listener().local_addr().unwrap().port();
        session.fill("@SERVED@", &served.to_string());
        session.fill("@PORT@", &database.port.to_string());
        session.fill(
            "@FOLDER@",
            &folder.join("a second folder").display().to_string(),
        );
        Self {
            folder,
            beside,
            database,
        }
    }

    /// A command with the environment of a person in the session's project.
    fn command(&self, session: &Session, program: &str, at: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", path())
            .env("HOME", self.folder.join("home"))
            .env("USER", "tester")
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .env("FOLDER", self.folder.join("a second folder"))
            .envs(&session.kind.env)
            .current_dir(at)
            .stdin(Stdio::null());
        command
    }

    fn project(&self, session: &Session) -> PathBuf {
        self.folder.join(&session.place)
    }

    /// Removes what was there, and begins anew.
    fn begin(&self, session: &Session) {
        let _ = fs::remove_dir_all(&self.folder);
        self.database.clear();
        fs::write(self.beside.join("ahead"), "0").unwrap();
        home(&self.folder.join("home"));
        for kept in &session.kind.keeps {
            fs::create_dir_all(self.folder.join("home").join(kept)).unwrap();
        }
        let project = self.project(session);
        fs::create_dir_all(project.join(".gyrus")).unwrap();
        if session.kind.agree.is_empty() {
            fs::remove_dir(project.join(".gyrus")).unwrap();
        } else {
            fs::write(project.join(".gyrus/sandbox.toml"), &session.kind.agree).unwrap();
        }
        self.shell(session, &format!("{}\n{BEGIN}", session.project.setup));
    }

    /// Does what a person does before or after; it works.
    fn shell(&self, session: &Session, script: &str) -> String {
        let mut shell = self.command(session, "bash", &self.project(session));
        let output = shell.args(["-c", script]).output().unwrap();
        assert!(output.status.success(), "{}: {output:?}", session.name());
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Looks at all that there is, when a person has done the last things.
    fn ended(&self, session: &Session, mut trace: Trace) -> Trace {
        self.shell(session, &format!("set -e\n{}", session.kind.after));
        let person = self.folder.join("home");
        trace.look_at(&self.folder, &person);
        for kept in &session.kind.keeps {
            trace.look_at(&person.join(kept), &person);
        }
        trace.git = self.shell(session, LOOK);
        trace
    }

    pub(super) fn outside(&self, session: &Session) -> Trace {
        self.begin(session);
        let (project, tree) = (self.project(session), self.folder.join("tree"));
        let add = format!("git worktree add -q -b gyrus/B '{}'", tree.display());
        let take = format!(
            "cd '{0}' && git add -A && git commit -qm Branch; cd - > /dev/null; git worktree remove --force '{0}'",
            tree.display()
        );
        let at = if session.kind.work_tree {
            self.shell(session, &add);
            &tree
        } else {
            &project
        };
        let (mut trace, mut parts_said) = (Trace::default(), Trace::default());
        let mut serving = Vec::new();
        for step in &session.kind.steps {
            match step {
                Step::Shell(line) => self.line(session, line, at, &mut trace),
                Step::Edit { edit, from, to } => {
                    let file = at.join(edit);
                    let text = fs::read_to_string(&file).unwrap();
                    assert_eq!(text.matches(from).count(), 1, "{}: {text}", session.name());
                    fs::write(file, text.replace(from, to)).unwrap();
                }
                Step::Write { write, text } => {
                    let file = at.join(write);
                    fs::create_dir_all(file.parent().unwrap()).unwrap();
                    fs::write(file, text).unwrap();
                }
                Step::Serve { serve, until } => serving.push(self.serve(session, serve, until)),
                Step::Parts { parts } => {
                    for (number, line) in parts.iter().enumerate() {
                        if session.kind.work_trees {
                            let number = number.to_string();
                            self.shell(session, &add.replace("/B", &format!("/{number}")));
                            self.line(session, line, &tree, &mut parts_said);
                            self.shell(session, &take);
                        } else {
                            self.line(session, line, at, &mut parts_said);
                        }
                    }
                }
            }
        }
        for mut child in serving {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            child.wait().unwrap();
        }
        if session.kind.work_tree {
            self.shell(session, &take);
        }
        trace.said.append(&mut parts_said.said);
        self.ended(session, trace)
    }

    fn line(&self, session: &Session, line: &str, at: &Path, trace: &mut Trace) {
        let log = self.beside.join("said");
        let file = fs::File::create(&log).unwrap();
        let mut shell = self.command(session, "bash", at);
        shell
            .args(["-c", line])
            .stdout(file.try_clone().unwrap())
            .stderr(file);
        let status = shell.status().unwrap();
        trace.add(
            &String::from_utf8_lossy(&fs::read(log).unwrap()),
            &end(status),
        );
    }

    /// Starts a process that goes on, and waits until it says that it is ready.
    fn serve(&self, session: &Session, line: &str, until: &str) -> Child {
        let mut shell = self.command(session, "bash", &self.project(session));
        shell
            .args(["-c", line])
            .process_group(0)
            .stdout(Stdio::piped());
        let mut child = shell.stderr(Stdio::null()).spawn().unwrap();
        let (mut said, mut byte) = (Vec::new(), [0]);
        let output = child.stdout.as_mut().unwrap();
        while !String::from_utf8_lossy(&said).contains(until) {
            assert_eq!(output.read(&mut byte).unwrap(), 1, "{}", session.name());
            said.push(byte[0]);
        }
        child
    }

    /// Returns also how many questions a person was asked, after having agreed to the project's file.
    pub(super) fn inside(&self, session: &Session, clock: Option<&Path>) -> (Trace, usize) {
        self.begin(session);
        fs::create_dir_all(self.beside.join("home")).unwrap();
        let config = format!("[sandbox]\n{}\n", session.kind.config);
        fs::write(self.beside.join("home/config.toml"), config).unwrap();
        fs::write(self.beside.join("script.toml"), script(session)).unwrap();
        if !session.kind.agree.is_empty() {
            let agreed = self.gyrus(session, None, &["sandbox", "agree"]);
            assert!(agreed.status.success(), "{}: {agreed:?}", session.name());
        }
        let clock = clock.filter(|_| session.kind.clock);
        let asks = ["--approve", "ask", "--on-ask", "park"];
        let mut run = vec!["run", GOAL, "--workdir", ".", "--max-steps", "60"];
        run.extend(session.kind.work_tree.then_some("--worktree"));
        let mut output = self.gyrus(session, clock, &[&run[..], &asks].concat());
        let mut answers = 0;
        while output.status.code() == Some(WAITS) && answers < MOST_QUESTIONS {
            answers += 1;
            self.gyrus(session, clock, &["approve", "last", "--anywhere"]);
            let resume = [&["resume", "last", "--anywhere"][..], &asks].concat();
            output = self.gyrus(session, clock, &resume);
        }
        let mut trace = Trace::default();
        let questions = read(&self.beside.join("home/journal"), &mut trace);
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            trace.add(&said, &format!("gyrus ended with {}", output.status));
        }
        (self.ended(session, trace), questions)
    }

    fn gyrus(&self, session: &Session, clock: Option<&Path>, arguments: &[&str]) -> Output {
        let program = env!("CARGO_BIN_EXE_gyrus");
        let mut gyrus = self.command(session, program, &self.project(session));
        let script = self.beside.join("script.toml");
        gyrus
            .args(arguments)
            .env("GYRUS_HOME", self.beside.join("home"))
            .env("GYRUS_BROWSER", "/nowhere/browser")
            .env("GYRUS_LANGUAGE_SERVERS", "none")
            .env("GYRUS_MODEL", format!("script:{}", script.display()));
        if let Some(library) = clock {
            gyrus
                .env("LD_PRELOAD", library)
                .env("CLOCK_ALL", "1")
                .env("CLOCK_AHEAD", self.beside.join("ahead"));
        }
        gyrus.output().unwrap()
    }
}
