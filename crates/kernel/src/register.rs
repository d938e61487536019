//! The register of a store's runs: a line for each that began and for each that is over, in the order
//! in which that happened, so that lists cost the same however many runs lie behind.
//!
//! It is a file beside the journals that only grows, and it can be deleted: what it says stands in
//! the journals too. A line follows the run's folder, so it is complete if it was written after the
//! folder of the runs changed last. Where it was not (a crash in between, an older program, a run
//! that was imported or removed) it is compared with the folder, and what is missing is added.

use std::{
    collections::HashSet,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use gyrus_contract::{Origin, RunId};
use gyrus_journal::{Error, LogReader, Store, Writer};

use crate::{
    Entry, RUNS, RunStarted, Stop, contents,
    log::{RunLog, parse},
    runs::{is_record, log_name},
};

const FILE: &str = "runs.register";

/// The word of a line about a run that began.
const BEGAN: &str = "began";

/// The word of a line about a run that came to its end.
const OVER: &str = "over";

/// The word of a line about a run that was removed.
const REMOVED: &str = "removed";

/// The starter of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BegunBy {
    /// A person, by themselves or through a program.
    Person,
    /// An agent described by a file, because of an event: the goal is the file's.
    Agent,
    /// Another run.
    Run,
    /// The starter is unknown: the run is a record, or its first entry cannot be read.
    Unknown,
}

impl BegunBy {
    const WORDS: [(Self, &str); 4] = [
        (Self::Person, "person"),
        (Self::Agent, "agent"),
        (Self::Run, "run"),
        (Self::Unknown, "unknown"),
    ];

    fn of(started: &RunStarted, reader: &LogReader) -> Self {
        let load = |blob: &_| contents::load(reader, blob).map_err(Stop::from);
        match started.goal.read(load) {
            _ if started.parent.is_some() => Self::Run,
            Ok(goal) if goal.origin == Origin::Configuration => Self::Agent,
            Ok(_) => Self::Person,
            Err(_) => Self::Unknown,
        }
    }

    fn parse(word: &str) -> Option<Self> {
        let known = Self::WORDS.iter().find(|(_, known)| *known == word);
        known.map(|(by, _)| *by)
    }

    fn word(self) -> &'static str {
        let word = Self::WORDS.iter().find(|(by, _)| *by == self);
        word.expect("each has a word").1
    }
}

/// A run's line in the register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterLine {
    pub run: RunId,
    /// The starter of the run.
    pub begun_by: BegunBy,
    pub forked_from: Option<RunId>,
    /// The folder in which the run works; empty if its first entry cannot be read.
    pub workspace: PathBuf,
}

impl RegisterLine {
    fn of(started: &RunStarted, reader: &LogReader) -> Self {
        Self {
            run: started.run,
            begun_by: BegunBy::of(started, reader),
            forked_from: started.forked_from.as_ref().map(|from| from.run),
            workspace: started.workspace.clone(),
        }
    }

    fn read(store: &Store, run: RunId) -> Self {
        let read = || {
            let reader = store.reader(&log_name(run)).ok()?;
            match parse(&reader.entry(1).ok()??) {
                Ok(Entry::RunStarted(started)) => Some(Self::of(&started, &reader)),
                Ok(_) | Err(_) => None,
            }
        };
        let unknown = || Self {
            run,
            begun_by: BegunBy::Unknown,
            forked_from: None,
            workspace: PathBuf::new(),
        };
        let mut line = read().unwrap_or_else(unknown);
        // A record may name another run as itself.
        line.run = run;
        if is_record(store, run) {
            line.begun_by = BegunBy::Unknown;
        }
        line
    }

    fn text(&self) -> String {
        let from = self.forked_from.map_or("-".into(), |from| from.to_string());
        let folder = serde_json::to_string(&self.workspace).unwrap_or_default();
        let by = self.begun_by.word();
        format!("{BEGAN} {} {from} {folder} {by}\n", self.run)
    }

    /// Parses the rest of a line, after the word and the run.
    fn parse(run: RunId, rest: &str) -> Option<Self> {
        let (rest, by) = rest.rsplit_once(' ')?;
        let (from, folder) = rest.split_once(' ')?;
        Some(Self {
            run,
            begun_by: BegunBy::parse(by)?,
            forked_from: from.parse().ok(),
            workspace: serde_json::from_str(folder).ok()?,
        })
    }

    /// Whether a person began the run in this home: neither an agent nor another run did, and it is
    /// not a record.
    pub fn is_own(&self, store: &Store) -> bool {
        self.begun_by == BegunBy::Person && !is_record(store, self.run)
    }
}

/// The register of a store, as read from disk.
#[derive(Debug, Default)]
pub struct Register {
    text: String,
}

impl Register {
    /// Reads the register, and adds missing lines to it.
    pub fn read(store: &Store) -> Result<Self, Error> {
        let (folder, path) = (store.root().join(RUNS), path(store));
        let now = SystemTime::now();
        // A clock that was ahead left times that nothing is later than.
        let was_ahead = [&folder, &path]
            .map(|path| set_back(path, now))
            .contains(&true);
        // Before the file: what is made in between is missing in neither.
        let changed = modified(&folder);
        let written = modified(&path).filter(|_| !was_ahead);
        let bytes = fs::read(&path).unwrap_or_default();
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let mut register = Self { text };
        if changed.is_none() || changed > written {
            register.complete(store, changed)?;
        }
        Ok(register)
    }

    /// Adds lines for runs without one, and marks those that no longer exist.
    fn complete(&mut self, store: &Store, changed: Option<SystemTime>) -> Result<(), Error> {
        // Of the runs that have a line, those are gone that the folder does not have.
        let mut gone: HashSet<RunId> = self.newest_first().collect();
        let new = store.names_where(RUNS, |id| {
            id.parse().is_ok_and(|run: RunId| !gone.remove(&run))
        })?;
        let mut text = String::new();
        for name in new {
            let Ok(run) = name.id().parse() else { continue };
            text.push_str(&RegisterLine::read(store, run).text());
            if store.is_sealed(&name) {
                text.push_str(&format!("{OVER} {run}\n"));
            }
        }
        for run in gone {
            text.push_str(&format!("{REMOVED} {run}\n"));
        }
        if let Some(changed) = changed {
            // Where nothing can be written it is compared again by the next reader.
            let _ = append(store, &text).and_then(|file| {
                file.sync_data()?;
                if file.metadata()?.modified()? < changed {
                    file.set_modified(changed)?;
                }
                Ok(())
            });
        }
        self.text.push('\n');
        self.text.push_str(&text);
        Ok(())
    }

    /// Returns the lines about runs that began, the newest first, each with what follows the run in it.
    /// Runs are left out about which one of the words `but` was said since.
    fn lines_back<'a>(&'a self, but: &'a [&str]) -> impl Iterator<Item = (&'a str, &'a str)> {
        // Room for all from the start: growing it would hash each run several times.
        let mut seen = HashSet::with_capacity(self.text.len() / LINE_LENGTH);
        self.text.lines().rev().filter_map(move |line| {
            let (word, rest) = line.split_once(' ')?;
            let (run, rest) = rest.split_at_checked(RUN_CHARACTERS)?;
            // A crash may have cut a line off.
            let is_whole = word == BEGAN && BegunBy::parse(rest.rsplit(' ').next()?).is_some();
            let counts = is_whole || but.contains(&word);
            (counts && seen.insert(run) && is_whole).then_some((run, rest.trim_start()))
        })
    }

    /// Returns all existing runs, the newest first, children in between.
    pub fn newest_first(&self) -> impl Iterator<Item = RunId> {
        self.lines_back(&[REMOVED])
            .filter_map(|(run, _)| run.parse().ok())
    }

    /// Returns the runs that no other run began, the newest first.
    pub fn roots(&self) -> impl Iterator<Item = RegisterLine> {
        let lines = self.lines_back(&[REMOVED]);
        let lines = lines.filter_map(|(run, rest)| RegisterLine::parse(run.parse().ok()?, rest));
        lines.filter(|line| line.run.is_root())
    }

    /// Returns the folders of the newest runs of this home, at most `of_runs`, including removed
    /// runs.
    pub fn workspaces(&self, of_runs: usize) -> Vec<PathBuf> {
        let lines = self.text.lines().rev().filter_map(|line| {
            let (run, rest) = line.strip_prefix(BEGAN)?.trim_start().split_once(' ')?;
            RegisterLine::parse(run.parse().ok()?, rest)
        });
        let own = lines.filter(|line| line.run.is_root() && line.begun_by != BegunBy::Unknown);
        let mut folders: Vec<PathBuf> = Vec::new();
        for line in own.take(of_runs) {
            if !folders.contains(&line.workspace) {
                folders.push(line.workspace);
            }
        }
        folders
    }

    /// Forgets the register of a store: it is made anew by the next reader.
    pub fn forget(store: &Store) -> io::Result<()> {
        match fs::remove_file(path(store)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Returns the unfinished runs, in the order in which they began, children in between.
    pub fn unfinished(&self, store: &Store) -> Vec<RunId> {
        let open = self.lines_back(&[OVER, REMOVED]);
        let unfinished = open.filter_map(|(run, _)| run.parse().ok());
        let unfinished = unfinished.filter(|run: &RunId| !store.is_sealed(&log_name(*run)));
        let mut unfinished: Vec<RunId> = unfinished.collect();
        unfinished.reverse();
        unfinished
    }
}

/// Difference between two looks at one clock.
const CLOCK_TICK: Duration = Duration::from_secs(2);

/// Length of a line, about, in bytes.
const LINE_LENGTH: usize = 64;

/// Number of characters of a run's id.
const RUN_CHARACTERS: usize = 36;

/// Creates the journal of a run with its first entries, of which `started` is the first, and adds
/// its line. The run also exists without the line.
pub(crate) fn publish(
    store: &Store,
    log: RunLog,
    started: &RunStarted,
    first: &[Entry],
) -> Result<Writer, Stop> {
    // The line of this run would hide that one before it has none.
    if lacks_line(store) {
        let _ = Register::read(store);
    }
    let writer = log.publish(first)?;
    let line = RegisterLine::of(started, &writer.reader()?).text();
    // After a power cut the folder may have what the file lost.
    let _ = append(store, &line).and_then(|file| file.sync_data());
    Ok(writer)
}

/// Notes that a run is over. Without this note, its journal is read to find out.
pub(crate) fn over(store: &Store, run: RunId) {
    let _ = append(store, &format!("{OVER} {run}\n"));
}

/// Whether a crash left a run without its line. Others that begin now write theirs themselves.
fn lacks_line(store: &Store) -> bool {
    let changed = modified(&store.root().join(RUNS));
    let is_past = changed.is_some_and(|at| at + CLOCK_TICK < SystemTime::now());
    is_past && changed > modified(&path(store))
}

fn path(store: &Store) -> PathBuf {
    store.root().join(FILE)
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|file| file.modified()).ok()
}

/// Gives a path that is of the future the present time; returns whether it was.
fn set_back(path: &Path, now: SystemTime) -> bool {
    let is_ahead = modified(path).is_some_and(|time| time > now + CLOCK_TICK);
    if is_ahead {
        // Where nothing may be written, the folder is read each time.
        let _ = File::open(path).and_then(|file| file.set_modified(now));
    }
    is_ahead
}

/// Appends whole lines to the register.
fn append(store: &Store, lines: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    let mut file = options.open(path(store))?;
    // A line before it may have been cut off by a crash.
    file.write_all(format!("\n{lines}").as_bytes())?;
    Ok(file)
}
