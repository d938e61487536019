//! The process in a machine that tries lines: each from a renewed folder to a judgement.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gyrus_contract::{Decision, Risk};
use rustix::process::{Pid, Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};

use crate::{
    Error, Finding, Fixture, Kind,
    decoys::Decoys,
    doing,
    fixture::{self, FLAGS, HOME, REPOSITORIES, STATE, WORKSPACE},
    gyrus::Gyrus,
    judge,
    listeners::Listeners,
    machine,
    manifest::Manifest,
    person, victim,
};

/// The argument that asks a program to be a worker.
pub(crate) const ARGUMENT: &str = "--oracle-worker";

/// Timeout for processes to be gone when a run is over.
const GONE_WITHIN: Duration = Duration::from_secs(2);

/// Folders outside of the home that nothing may change in.
const OUTSIDE: [&str; 5] = [HOME, "/tmp", "/var/tmp", "/run", "/dev/shm"];

/// Protection between a line and the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Between {
    /// The gate and the sandbox, as always.
    Sandbox,
    /// The same, where namespaces are refused.
    Landlock,
    /// The gate alone.
    Gate,
    /// Nothing: the person runs it. It shows that the oracle sees what it is there to see.
    Nothing,
}

/// Lines that a worker is asked to try.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) fixture: Fixture,
    pub(crate) lines: Vec<String>,
    pub(crate) between: Between,
    /// Milliseconds after which the process of gyrus is killed.
    pub(crate) killed_after: Option<u64>,
}

/// Answer of a worker.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// Decision on each line.
    pub(crate) decisions: Vec<Decision>,
    /// Risk of each line, as the gate found it.
    pub(crate) risks: Vec<Risk>,
    /// Text for the model about each line.
    pub(crate) texts: Vec<String>,
    pub(crate) findings: Vec<Finding>,
    /// The machine is not what it was; another one has to be used.
    pub(crate) is_spoiled: bool,
    /// The oracle itself failed.
    pub(crate) error: Option<String>,
    /// Milliseconds of the run, and of all.
    pub(crate) took: (u64, u64),
}

/// Becomes a worker, if this process was started as one.
pub(crate) fn serve_if_asked() {
    victim::serve_if_asked();
    if std::env::args().nth(1).as_deref() != Some(ARGUMENT) {
        return;
    }
    std::process::exit(i32::from(serve().is_err()));
}

/// Tells whoever asks that there will be no answers, and why.
pub(crate) fn refuse(error: &Error) {
    if let Ok(socket) = machine::take(io::stdin()) {
        // If nobody hears it, the end of this process says it.
        let _ = tell(&mut UnixStream::from(socket), &failed(error));
    }
}

fn failed(error: &Error) -> Answer {
    Answer {
        error: Some(error.to_string()),
        ..Answer::default()
    }
}

fn tell(socket: &mut UnixStream, answer: &Answer) -> Result<(), Error> {
    let mut text = serde_json::to_string(answer).map_err(|error| Error::Lost(error.to_string()))?;
    text.push('\n');
    socket.write_all(text.as_bytes()).map_err(doing("answer"))
}

fn serve() -> Result<(), Error> {
    let mut answers = UnixStream::from(machine::take(io::stdin())?);
    let upper = machine::take(io::stdout())?;
    let null = fs::File::options().read(true).write(true).open("/dev/null");
    let null = null.map_err(doing("open /dev/null"))?;
    rustix::stdio::dup2_stdout(&null).map_err(doing("close standard output"))?;
    rustix::stdio::dup2_stdin(&null).map_err(doing("close standard input"))?;
    let worked = work(&mut answers, upper);
    if let Err(error) = &worked {
        tell(&mut answers, &failed(error))?;
    }
    worked
}

fn work(answers: &mut UnixStream, upper: OwnedFd) -> Result<(), Error> {
    let mut worker = Worker::start(upper)?;
    let questions = answers.try_clone().map_err(doing("share the socket"))?;
    tell(answers, &Answer::default())?;
    for question in BufReader::new(questions).lines() {
        let question = question.map_err(doing("read a question"))?;
        let question: Question =
            serde_json::from_str(&question).map_err(|error| Error::Lost(error.to_string()))?;
        let answer = worker.answer(&question)?;
        tell(answers, &answer)?;
    }
    Ok(())
}

/// Manifests from one look at everything.
struct Around {
    workspace: Manifest,
    outside: Vec<Manifest>,
    repositories: Vec<Manifest>,
    /// Changes that the overlay over the whole file system took.
    system: Manifest,
}

/// Effects without any line: in a folder full of traps, they run.
#[derive(Default)]
struct Usual {
    flags: BTreeSet<String>,
    changed: BTreeSet<PathBuf>,
}

struct Worker {
    gyrus: Gyrus,
    listeners: Listeners,
    decoys: Decoys,
    upper: OwnedFd,
    before: Around,
    usual: BTreeMap<Fixture, Usual>,
    fixture: Option<Fixture>,
    /// Processes that are always there.
    known: BTreeSet<i32>,
}

impl Worker {
    fn start(upper: OwnedFd) -> Result<Self, Error> {
        fixture::lay_out()?;
        let mut worker = Self {
            gyrus: Gyrus::new()?,
            listeners: Listeners::start()?,
            decoys: Decoys::new(),
            before: Around::look(&upper)?,
            upper,
            usual: BTreeMap::new(),
            fixture: None,
            known: BTreeSet::new(),
        };
        worker.renew(Fixture::Ordinary)?;
        // The process that keepers are forked from comes with the first of them.
        let line = ["echo x > new".to_owned()];
        let called = worker.gyrus.run(&line, Between::Sandbox);
        let called = called.map_err(Error::Lost)?;
        if called[0].decision != Decision::Allow {
            let said = called[0].text.clone();
            return Err(Error::Lost(format!(
                "no sandbox contains commands here: {said}"
            )));
        }
        worker.known = processes();
        worker.fixture = None;
        worker.listeners.arrived();
        Ok(worker)
    }

    /// Renews the folder, if it is not already as it should be.
    fn renew(&mut self, fixture: Fixture) -> Result<(), Error> {
        if self.fixture == Some(fixture) {
            return Ok(());
        }
        fixture::renew(fixture)?;
        self.listeners.enter_workspace()?;
        self.before = Around::look(&self.upper)?;
        self.fixture = Some(fixture);
        Ok(())
    }

    /// Finds out what the person meets in a fixture of its own.
    fn learn(&mut self, fixture: Fixture) -> Result<(), Error> {
        if self.usual.contains_key(&fixture) {
            return Ok(());
        }
        self.renew(fixture)?;
        person::looks(fixture, &BTreeSet::new())?;
        let after = Around::look(&self.upper)?;
        let changed = self.before.workspace.differences(&after.workspace);
        // One repository names a file of diffs that is not there, so that nearly all of git fails in
        // it. Any hook of its own that a line runs makes that file.
        fs::write(Path::new(WORKSPACE).join("FLAG"), "").map_err(doing("write a file"))?;
        person::looks(fixture, &BTreeSet::new())?;
        let usual = Usual {
            flags: flags()?,
            changed: changed.into_iter().collect(),
        };
        self.usual.insert(fixture, usual);
        fixture::clear_flags()?;
        self.fixture = None;
        Ok(())
    }

    fn answer(&mut self, question: &Question) -> Result<Answer, Error> {
        let started = Instant::now();
        let fixture = question.fixture;
        self.learn(fixture)?;
        self.renew(fixture)?;
        let mut answer = Answer::default();
        let ran = Instant::now();
        let called = match question.between {
            Between::Nothing => person::runs(&question.lines).map(|()| Vec::new()),
            Between::Sandbox | Between::Landlock | Between::Gate => match question.killed_after {
                Some(after) => victim::run(&self.gyrus, question, Duration::from_millis(after)),
                None => self.gyrus.run(&question.lines, question.between),
            },
        };
        // A full disk ends a run without a word in its journal; the next one has room again.
        let called = match called {
            Err(error) if error.contains("No space left") => {
                self.gyrus.run(&["true".to_owned()], question.between)
            }
            called => called,
        };
        answer.took.0 = ran.elapsed().as_millis() as u64;
        let findings = &mut answer.findings;
        match called {
            Ok(called) => {
                for called in called {
                    if self.decoys.are_in(called.text.as_bytes()) {
                        findings.push(Finding::new(Kind::KeyRead, "in what the line printed"));
                    }
                    answer.decisions.push(called.decision);
                    answer.risks.push(called.risk);
                    answer.texts.push(called.text);
                }
            }
            Err(error) => findings.push(Finding::new(Kind::Broke, error)),
        }
        for (pid, name) in self.end_others() {
            answer.is_spoiled = true;
            let what = format!("process {pid} ({name})");
            findings.push(Finding::new(Kind::ProcessStayed, what));
        }
        findings.extend(self.listeners.arrived());
        let after = Around::look(&self.upper)?;
        let changed = self.before.workspace.differences(&after.workspace);
        self.keys(&changed, findings);
        for flag in flags()? {
            let what = format!("{flag} ran with the person's rights, in the run");
            findings.push(Finding::new(Kind::OutsideChanged, what));
        }
        let spoiled = self.around(&after, question.between, &answer.risks, findings);
        answer.is_spoiled |= spoiled;
        match question.between {
            Between::Gate => {
                findings.extend(judge::anything(WORKSPACE, &changed, &answer.risks));
            }
            Between::Sandbox | Between::Landlock | Between::Nothing => {
                findings.extend(judge::workspace(fixture, &changed))
            }
        }
        let in_repositories = self.before.repositories != after.repositories;
        if !changed.is_empty() || in_repositories {
            if question.between != Between::Gate {
                self.person(fixture, &changed, &after, findings)?;
            }
            self.fixture = None;
        }
        if in_repositories {
            fixture::renew_repositories()?;
        }
        fixture::clear_flags()?;
        self.gyrus.forget()?;
        findings.sort();
        findings.dedup();
        answer.took.1 = started.elapsed().as_millis() as u64;
        Ok(answer)
    }

    /// Looks for keys where a line could have left them.
    fn keys(&self, changed: &[PathBuf], findings: &mut Vec<Finding>) {
        let mut look = |path: &Path, told: &str| {
            let is_file = fs::symlink_metadata(path).is_ok_and(|data| data.is_file());
            let mut bytes = path.as_os_str().as_encoded_bytes().to_vec();
            if is_file && let Ok(file) = fs::File::open(path) {
                let _ = file.take(judge::MAX_FILE).read_to_end(&mut bytes);
            }
            if self.decoys.are_in(&bytes) {
                findings.push(Finding::new(Kind::KeyRead, told));
            }
        };
        for path in changed {
            look(
                &Path::new(WORKSPACE).join(path),
                &path.display().to_string(),
            );
        }
        let journal = Path::new(STATE).join("journal");
        if let Ok(files) = Manifest::of(&journal, &|_| false) {
            // What an undo needs of files with secrets is kept apart on purpose.
            let kept = Manifest::default().differences(&files).into_iter();
            for path in kept.filter(|path| path.iter().all(|part| part != "private")) {
                look(&journal.join(path), "in a journal");
            }
        }
    }

    /// Returns the findings outside the workspace, and whether the machine can go on being used.
    fn around(
        &self,
        after: &Around,
        between: Between,
        risks: &[Risk],
        findings: &mut Vec<Finding>,
    ) -> bool {
        let known = findings.len();
        let pairs = self.before.outside.iter().zip(&after.outside);
        for (folder, (before, after)) in OUTSIDE.iter().zip(pairs) {
            let changed = before.differences(after);
            findings.extend(judge::outside(folder, before, &changed));
        }
        let changed = self.before.system.differences(&after.system);
        findings.extend(judge::outside("/", &self.before.system, &changed));
        let spoiled = findings.len() > known;
        let pairs = self.before.repositories.iter().zip(&after.repositories);
        for (folder, (before, after)) in REPOSITORIES.iter().zip(pairs) {
            let changed = before.differences(after);
            findings.extend(match between {
                Between::Gate => judge::anything(folder, &changed, risks),
                Between::Sandbox | Between::Landlock | Between::Nothing => {
                    let pristine = fixture::pristine_of(folder);
                    judge::repository(Path::new(folder), &pristine, &changed)
                }
            });
        }
        spoiled
    }

    /// Lets the person come.
    fn person(
        &mut self,
        fixture: Fixture,
        changed: &[PathBuf],
        after: &Around,
        findings: &mut Vec<Finding>,
    ) -> Result<(), Error> {
        fixture::clear_flags()?;
        if !person::looks(fixture, &judge::folders(changed))? {
            findings.push(Finding::new(
                Kind::PersonHangs,
                "they had to be interrupted",
            ));
        }
        let usual = &self.usual[&fixture];
        for flag in flags()?.difference(&usual.flags) {
            findings.push(Finding::new(Kind::RanAsPerson, flag));
        }
        let later = Around::look(&self.upper)?;
        for path in after.workspace.differences(&later.workspace) {
            let is_known = usual.changed.contains(&path) || changed.contains(&path);
            // Git refreshes what it knows of files' times.
            let by_git = path.iter().any(|part| part == ".git" || part == "modules");
            let path = Path::new(WORKSPACE).join(path);
            if !is_known && !by_git && !path.is_dir() {
                let what = format!("something that made {}", path.display());
                findings.push(Finding::new(Kind::RanAsPerson, what));
            }
        }
        for finding in self.listeners.arrived() {
            findings.push(Finding {
                what: format!("{}, from what the person did", finding.what),
                ..finding
            });
        }
        self.end_others();
        Ok(())
    }

    /// Ends the processes that are not always there, and names those that would not go.
    fn end_others(&self) -> Vec<(i32, String)> {
        let deadline = Instant::now() + GONE_WITHIN;
        loop {
            let others: Vec<i32> = processes().difference(&self.known).copied().collect();
            if others.is_empty() {
                return Vec::new();
            }
            if Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            let named = others.into_iter().map(|pid| {
                let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                if let Some(pid) = Pid::from_raw(pid) {
                    let _ = kill_process(pid, Signal::KILL);
                }
                (pid, name.trim().to_owned())
            });
            return named.collect();
        }
    }
}

impl Around {
    fn look(upper: &OwnedFd) -> Result<Self, Error> {
        let told = || doing("look around");
        let own = Path::new(STATE).strip_prefix(HOME).unwrap_or(Path::new(""));
        let repositories = REPOSITORIES.map(|path| Path::new(path).strip_prefix(HOME));
        let in_home = |path: &Path| {
            path == Path::new("project")
                || path == Path::new("flags")
                || path == own
                || repositories.iter().flatten().any(|other| path == *other)
        };
        let mut outside = Vec::new();
        for folder in OUTSIDE {
            let skip = |path: &Path| match folder {
                HOME => in_home(path),
                "/run" => path == Path::new("oracle"),
                _ => false,
            };
            outside.push(Manifest::of(Path::new(folder), &skip).map_err(told())?);
        }
        let repositories = REPOSITORIES
            .map(|path| Manifest::of(Path::new(path), &|_| false))
            .into_iter()
            .collect::<io::Result<_>>()
            .map_err(told())?;
        let upper = PathBuf::from(format!("/proc/self/fd/{}", upper.as_raw_fd()));
        Ok(Self {
            workspace: Manifest::of(Path::new(WORKSPACE), &|_| false).map_err(told())?,
            outside,
            repositories,
            system: Manifest::of(&upper, &|_| false).map_err(told())?,
        })
    }
}

fn flags() -> Result<BTreeSet<String>, Error> {
    let entries = fs::read_dir(FLAGS).map_err(doing("look at the flags"))?;
    let names = entries.filter_map(Result::ok);
    Ok(names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect())
}

/// The processes of the machine.
fn processes() -> BTreeSet<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let own = getpid().as_raw_pid();
    numbers.filter(|pid| *pid != own && *pid != 1).collect()
}
