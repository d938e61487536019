//! Runs a scenario, and checks the state after each crash against the oracle.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use fastrand::Rng;
use gyrus_journal::{Disk, Error, LockWait, LogName, NewEntry, Store, Writer};
use serde_json::value::RawValue;

use super::{
    SimDisk,
    aftermath::{check, open},
    disk::read_whole,
    oracle::{Oracle, Presence},
    scenario::{Action, After, Scenario, Step, fault},
};

/// Number of crashes tried after each step, beside the one that the scenario may go on from.
const BRANCHES: u64 = 4;

/// Number of calls of a recovery within which a fault is planned.
const RECOVERY_CALLS: u64 = 45;

/// A violation that the explorer found.
#[derive(Debug, Clone)]
pub struct JournalViolation {
    /// The seed with which [`explore`] reproduces it.
    pub seed: u64,
    /// The steps, and the violation.
    pub story: String,
    scenario: Scenario,
}

impl fmt::Display for JournalViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}", self.seed, self.story)?;
        for (number, step) in self.scenario.steps.iter().enumerate() {
            write!(f, "\n  {number}: {step:?}")?;
        }
        Ok(())
    }
}

/// Runs the scenario of a seed. Returns the number of crashes it recovered from.
pub fn explore(seed: u64) -> Result<u64, JournalViolation> {
    live(seed, &Scenario::new(seed))
}

/// Removes steps and faults from a failed scenario as long as it still fails.
pub fn shrink(failure: JournalViolation) -> JournalViolation {
    let mut least = failure;
    let mut number = 0;
    while number < least.scenario.steps.len() {
        let mut shorter = least.scenario.clone();
        shorter.steps.remove(number);
        let mut calmer = least.scenario.clone();
        calmer.steps[number].fault = None;
        let mut longer = least.scenario.clone();
        longer.steps[number].after = After::Nothing;
        let candidates = [shorter, calmer, longer];
        let simpler = candidates.into_iter().find_map(|scenario| {
            if scenario == least.scenario {
                None
            } else {
                live(least.seed, &scenario).err()
            }
        });
        match simpler {
            Some(failure) => least = failure,
            None => number += 1,
        }
    }
    least
}

fn live(seed: u64, scenario: &Scenario) -> Result<u64, JournalViolation> {
    let mut life = Life::new();
    let lived = catch_unwind(AssertUnwindSafe(|| {
        for (number, step) in scenario.steps.iter().enumerate() {
            life.step(step)
                .map_err(|story| format!("in step {number}, {story}"))?;
        }
        Ok(life.states)
    }));
    let story = match lived {
        Ok(Ok(states)) => return Ok(states),
        Ok(Err(story)) => story,
        Err(_) => "it panicked".to_owned(),
    };
    Err(JournalViolation {
        seed,
        story,
        scenario: scenario.clone(),
    })
}

/// The reason why a step failed.
enum Trouble {
    /// An error, which a fault may excuse.
    Error(Error),
    /// A violation, which no fault excuses.
    Wrong(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Error(error)
    }
}

impl From<String> for Trouble {
    fn from(story: String) -> Self {
        Trouble::Wrong(story)
    }
}

struct Life {
    disk: SimDisk,
    store: Option<Store>,
    writer: Option<Writer>,
    oracle: Oracle,
    states: u64,
    /// Counter that makes all payloads and messages different.
    count: u64,
}

/// Whether a fault may cause such an error.
fn excusable(error: &Error) -> bool {
    matches!(error, Error::Io { .. } | Error::Failed { .. })
}

impl Life {
    fn new() -> Self {
        let name = LogName::new("runs", "a").expect("it is a name");
        Self {
            disk: SimDisk::new(),
            store: None,
            writer: None,
            oracle: Oracle::new(name),
            states: 0,
            count: 0,
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        if let Some((call, fault)) = step.fault {
            self.disk.fail_at(self.disk.calls() + 1 + call, fault);
        }
        let fired = self.disk.fired();
        match self.act(&step.action) {
            Ok(()) => {}
            Err(Trouble::Wrong(story)) => return Err(story),
            Err(Trouble::Error(error)) => {
                if self.disk.fired() == fired || !excusable(&error) {
                    return Err(format!("for no reason: {error}"));
                }
                if let Error::Failed { intact, .. } = error {
                    self.oracle.acknowledge(intact)?;
                }
                self.writer = None;
            }
        }
        self.disk.no_more_faults();
        let mut random = Rng::with_seed(step.seed);
        for _ in 0..BRANCHES {
            self.branch(&mut random)?;
        }
        let next = match step.after {
            After::Crash => Some(self.disk.crash(random.u64(..))),
            _ if self.disk.is_off() => Some(self.disk.crash(random.u64(..))),
            After::Kill => Some(self.disk.kill()),
            After::Nothing => None,
        };
        if let Some(disk) = next {
            (self.writer, self.store) = (None, None);
            self.disk = disk;
        }
        Ok(())
    }

    fn act(&mut self, action: &Action) -> Result<(), Trouble> {
        match *action {
            Action::Append { entries, length } => {
                let writer = self.writer()?;
                self.append(&writer, entries, length)?;
            }
            Action::Barrier => self.barrier()?,
            Action::Blob { which } => {
                let writer = self.writer()?;
                // Each blob alone, and the last one after some that it shares a sync with.
                let first = if which == 3 { 1 } else { which };
                let mut named = Vec::new();
                for which in first..=which {
                    let bytes = vec![b'a'; 100 + usize::try_from(which * 600).unwrap_or(0)];
                    let id = writer.put_blob(&bytes)?;
                    if writer.blob(&id)? != bytes {
                        let story = format!("the blob {id} reads as another");
                        return Err(Trouble::Wrong(story));
                    }
                    named.push((id, bytes));
                }
                self.append(&writer, 1, 0)?;
                self.oracle.names(named);
            }
            Action::Send => self.send()?,
            Action::Consume => {
                self.writer()?;
                let inbox = self.store()?.inbox(&self.oracle.name)?;
                if let Some((id, _)) = inbox.messages()?.first() {
                    self.oracle.consumed(id);
                    inbox.remove(id)?;
                }
            }
            Action::Reopen => {
                self.writer = None;
                self.writer()?;
            }
            Action::Erase { choice } => self.erase(choice)?,
            Action::Export { choice } => self.export(choice)?,
            Action::Reimport => self.reimport()?,
            Action::Sweep => {
                self.store()?.sweep()?;
            }
        }
        Ok(())
    }

    fn store(&mut self) -> Result<Store, Error> {
        let store = match self.store.take() {
            Some(store) => store,
            None => open(&self.disk)?,
        };
        Ok(self.store.insert(store).clone())
    }

    fn writer(&mut self) -> Result<Writer, Trouble> {
        if let Some(writer) = &self.writer {
            return Ok(writer.clone());
        }
        let store = self.store()?;
        // The result of an interrupted creation or removal shows here.
        let writer = match store.take(&self.oracle.name, LockWait::IfFree) {
            Ok((writer, _)) => writer,
            Err(Error::NotFound { .. }) if self.oracle.exists != Presence::Yes => {
                self.oracle = Oracle::new(self.oracle.name.clone());
                self.oracle.exists = Presence::Either;
                store.create(&self.oracle.name)?
            }
            Err(error) => return Err(error.into()),
        };
        self.oracle.recovered(writer.next_seq() - 1)?;
        self.writer = Some(writer.clone());
        Ok(writer)
    }

    fn append(&mut self, writer: &Writer, entries: u64, length: usize) -> Result<(), Trouble> {
        let mut batch = Vec::new();
        let mut texts = Vec::new();
        for _ in 0..entries {
            self.count += 1;
            let text = format!("\"entry {} {}\"", self.count, "x".repeat(length));
            let payload = RawValue::from_string(text.clone()).expect("it is a JSON string");
            batch.push(NewEntry {
                kind: "test.entry",
                version: 1,
                payload,
            });
            texts.push(text);
        }
        let seq = writer.append(&batch)?;
        texts
            .into_iter()
            .for_each(|text| self.oracle.appended(text));
        if seq != self.oracle.last() {
            return Err(Trouble::Wrong(format!(
                "entry {} got the number {seq}",
                self.count
            )));
        }
        Ok(())
    }

    fn barrier(&mut self) -> Result<(), Trouble> {
        let seq = self.writer()?.barrier_blocking()?;
        Ok(self.oracle.passed(seq)?)
    }

    fn send(&mut self) -> Result<(), Trouble> {
        self.writer()?;
        self.count += 1;
        let id = format!("01980000-0000-7000-8000-{:012}", self.count);
        let body = format!("message {}", self.count);
        self.oracle.sent(&id, &body, Presence::Either);
        self.store()?.inbox(&self.oracle.name)?.send(&id, &body)?;
        self.oracle.sent(&id, &body, Presence::Yes);
        Ok(())
    }

    fn erase(&mut self, choice: u64) -> Result<(), Trouble> {
        self.barrier()?;
        self.writer = None;
        let seqs = self.oracle.choose(choice);
        self.oracle.erased(&seqs, Presence::Either);
        let store = self.store()?;
        store.erase(&self.oracle.name, &seqs)?;
        self.oracle.erased(&seqs, Presence::Yes);
        let folder = store.folder(&self.oracle.name);
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |source| Error::Io { what, path, source }
        };
        let names = self.disk.list(&folder).map_err(failed("list", &folder))?;
        for name in names {
            let path = folder.join(name);
            let Ok(file) = self.disk.open(&path) else {
                continue;
            };
            let bytes = read_whole(file.as_ref()).map_err(failed("read", &path))?;
            for secret in self.oracle.secrets() {
                if memchr::memmem::find(&bytes, secret.as_bytes()).is_some() {
                    let story = format!("{secret} was erased and is in {}", path.display());
                    return Err(Trouble::Wrong(story));
                }
            }
        }
        Ok(())
    }

    fn export(&mut self, choice: u64) -> Result<(), Trouble> {
        self.writer()?;
        let mut export = Vec::new();
        self.store()?
            .export(&self.oracle.name, &|_| true, &mut export)?;
        let elsewhere = SimDisk::new();
        let other = open(&elsewhere)?;
        let mut random = Rng::with_seed(choice);
        let mut damaged = export.clone();
        let at = random.usize(..damaged.len());
        if random.u8(..4) == 0 {
            damaged.truncate(at);
        } else {
            damaged[at] ^= 1 << random.u64(..8);
        }
        match other.import("runs", &mut damaged.as_slice()) {
            Err(Error::BadExport { .. } | Error::BadName { .. }) => {}
            result => {
                let story = format!("a damaged export (at {at}) gave {result:?}");
                return Err(Trouble::Wrong(story));
            }
        }
        let left = elsewhere
            .list(Path::new("/home/.incoming"))
            .unwrap_or_default();
        if !left.is_empty() || other.exists(&self.oracle.name) {
            return Err(Trouble::Wrong(
                "a damaged export left something behind".to_owned(),
            ));
        }
        other.import("runs", &mut export.as_slice())?;
        let here = self.store()?.verify(&self.oracle.name)?;
        let there = other.verify(&self.oracle.name)?;
        if here.head != there.head {
            return Err(Trouble::Wrong(format!("{here:?} became {there:?}")));
        }
        Ok(())
    }

    fn reimport(&mut self) -> Result<(), Trouble> {
        self.barrier()?;
        self.writer = None;
        let store = self.store()?;
        let mut export = Vec::new();
        store.export(&self.oracle.name, &|_| true, &mut export)?;
        self.oracle.exists = Presence::Either;
        store.remove(&self.oracle.name)?;
        self.oracle.removed();
        self.oracle.exists = Presence::Either;
        store.import("runs", &mut export.as_slice())?;
        self.oracle.exists = Presence::Yes;
        Ok(())
    }

    /// Tries one crash, with faults during the recovery from it.
    fn branch(&mut self, random: &mut Rng) -> Result<(), String> {
        self.states += 1;
        let lost = |disk: &SimDisk, random: &mut Rng| {
            if random.u8(..4) == 0 {
                disk.kill()
            } else {
                disk.crash(random.u64(..))
            }
        };
        let mut disk = if self.disk.is_off() {
            self.disk.crash(random.u64(..))
        } else {
            lost(&self.disk, random)
        };
        let mut oracle = self.oracle.clone();
        if random.bool() {
            disk.fail_at(1 + random.u64(..RECOVERY_CALLS), fault(random));
            let recovered =
                open(&disk).and_then(|store| store.take(&oracle.name, LockWait::IfFree));
            match &recovered {
                Ok((writer, _)) => oracle.recovered(writer.next_seq() - 1)?,
                Err(Error::NotFound { .. }) if oracle.exists != Presence::Yes => {}
                Err(error) if disk.fired() > 0 && excusable(error) => {}
                Err(error) => return Err(format!("recovering gave {error}")),
            }
            disk = if disk.is_off() {
                disk.crash(random.u64(..))
            } else {
                lost(&disk, random)
            };
        }
        check(&disk, &mut oracle, random)
    }
}
