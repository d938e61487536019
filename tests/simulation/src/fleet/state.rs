//! The state of a schedule: virtual time, the events to come, and what must hold.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use fastrand::Rng;
use gyrus_fleet::{
    AppendAnswer, LogSubject, MachineTime, MessageId, RunMessage, RunMessageKind, RunStanding,
    StoredMessage,
};
use parking_lot::{Mutex, MutexGuard};

use super::{
    outcome::{Flaw, Outcome},
    stream::{Arrival, Proposal, Stream},
};

/// A millisecond of virtual time.
const MS: u64 = 1_000;

/// The most that a machine is late in killing.
const KILL_LATE: u64 = 20 * MS;

/// Number of lines of what happened that are kept.
const TRACE: usize = 400;

/// The answer to a ticket.
pub(super) enum Answer {
    Woken,
    Append(AppendAnswer),
    Shown(Vec<StoredMessage>),
}

pub(super) enum Event {
    /// A ticket of a process is answered.
    Answer(u64, Answer),
    /// An append arrives at the stream.
    Append(Proposal),
    /// A read arrives at the stream.
    Read(u64, LogSubject, u64),
    /// A proposal on a subject is stored.
    Commit(LogSubject),
    /// The machine ends a process.
    Kill(usize, u64),
    /// An effect happens.
    Effect {
        process: usize,
        run: LogSubject,
        epoch: u64,
        step: u32,
    },
    /// A worker starts a process.
    Start(usize),
    Fault,
}

/// An event at its time. Events of one time happen in the order in which they were made.
struct Coming {
    at: u64,
    number: u64,
    event: Event,
}

impl PartialEq for Coming {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for Coming {}

impl PartialOrd for Coming {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Coming {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// A worker: a machine with one process at a time.
#[derive(Debug, Clone, Copy, Default)]
struct Worker {
    /// Its clock: microseconds at the beginning, and speed in millionths of the true one.
    clock_start: u64,
    clock_speed: u64,
    stopped_until: u64,
    cut_off_until: u64,
}

/// A process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Process {
    pub(super) worker: usize,
    pub(super) is_alive: bool,
    /// The number of the kill that counts.
    pub(super) kill: u64,
}

pub(super) struct Inner {
    pub(super) now: u64,
    made: u64,
    coming: BinaryHeap<Reverse<Coming>>,
    random: Rng,
    flaw: Option<Flaw>,
    pub(super) lease_us: u64,
    /// Whether nothing goes wrong but that workers die.
    is_calm: bool,
    /// The time of the last death of a process that drove a run.
    died: Option<u64>,
    pub(super) faults_until: u64,
    workers: Vec<Worker>,
    pub(super) processes: Vec<Process>,
    /// The processes that wait for each ticket.
    waiting: HashMap<u64, usize>,
    answers: HashMap<u64, Answer>,
    stream: Stream,
    standings: BTreeMap<LogSubject, RunStanding>,
    acknowledged: Vec<(LogSubject, u64, String)>,
    effects: BTreeMap<(LogSubject, u32), u32>,
    /// The runs whose log says that they are over.
    ended: HashSet<LogSubject>,
    writers: u128,
    pub(super) violation: Option<String>,
    /// Whether what happens is written down.
    is_told: bool,
    pub(super) trace: VecDeque<String>,
    pub(super) outcome: Outcome,
}

pub(super) struct Shared {
    inner: Mutex<Inner>,
}

impl Shared {
    pub(super) fn new(inner: Inner) -> Self {
        Self {
            inner: Mutex::new(inner),
        }
    }

    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Inner {
    /// Returns the state at the beginning of a schedule, the runs in it, and the number of their
    /// steps.
    pub(super) fn new(
        seed: u64,
        flaw: Option<Flaw>,
        is_told: bool,
    ) -> (Self, Vec<LogSubject>, u32) {
        let mut random = Rng::with_seed(seed);
        let lease_us = [1_000, 2_000, 10_000][random.usize(..3)] * MS;
        let steps = random.u32(1..5);
        let is_calm = random.u8(..8) == 0;
        let runs = (0..if is_calm { 1 } else { random.usize(1..3) })
            .map(|number| LogSubject::new(&format!("runs.{number}")).expect("it is a name"))
            .collect();
        let worker = |random: &mut Rng| Worker {
            clock_start: random.u64(..1_000_000 * MS),
            // Two clocks differ by at most four hundredths.
            clock_speed: random.u64(980_000..1_020_000),
            ..Worker::default()
        };
        let workers: Vec<Worker> = (0..random.usize(2..4))
            .map(|_| worker(&mut random))
            .collect();
        let mut inner = Inner {
            now: 0,
            made: 0,
            coming: BinaryHeap::new(),
            flaw,
            lease_us,
            is_calm,
            died: None,
            faults_until: lease_us * random.u64(2..12),
            processes: Vec::new(),
            waiting: HashMap::new(),
            answers: HashMap::new(),
            stream: Stream::new(lease_us / 8 * random.u64(..16), flaw),
            standings: BTreeMap::new(),
            acknowledged: Vec::new(),
            effects: BTreeMap::new(),
            ended: HashSet::new(),
            writers: 0,
            violation: None,
            is_told,
            trace: VecDeque::new(),
            outcome: Outcome::default(),
            workers,
            random,
        };
        for worker in 0..inner.workers.len() {
            let at = inner.random.u64(..lease_us);
            inner.push(at, Event::Start(worker));
        }
        inner.push(1, Event::Fault);
        (inner, runs, steps)
    }

    fn push(&mut self, at: u64, event: Event) {
        self.made += 1;
        let number = self.made;
        self.coming.push(Reverse(Coming { at, number, event }));
    }

    pub(super) fn next(&mut self) -> Option<Event> {
        let Reverse(coming) = self.coming.pop()?;
        self.now = self.now.max(coming.at);
        Some(coming.event)
    }

    pub(super) fn say(&mut self, line: impl FnOnce() -> String) {
        if !self.is_told {
            return;
        }
        if self.trace.len() == TRACE {
            self.trace.pop_front();
        }
        let line = format!("{:>9.3} ms {}", self.now as f64 / 1e3, line());
        self.trace.push_back(line);
    }

    fn violated(&mut self, why: String) {
        self.say(|| format!("VIOLATION {why}"));
        self.violation.get_or_insert(why);
    }

    fn worker_of(&mut self, process: usize) -> &mut Worker {
        let worker = self.processes[process].worker;
        &mut self.workers[worker]
    }

    pub(super) fn local_time(&self, process: usize) -> MachineTime {
        let worker = self.workers[self.processes[process].worker];
        MachineTime(worker.clock_start + self.now * worker.clock_speed / 1_000_000)
    }

    fn true_time(&self, process: usize, local: MachineTime) -> u64 {
        let worker = self.workers[self.processes[process].worker];
        let since = local.0.saturating_sub(worker.clock_start);
        // Rounded up: nobody wakes before the time that it asked for.
        (since * 1_000_000)
            .div_ceil(worker.clock_speed)
            .max(self.now)
    }

    fn ticket(&mut self, process: usize) -> u64 {
        self.made += 1;
        self.waiting.insert(self.made, process);
        self.made
    }

    pub(super) fn take_answer(&mut self, ticket: u64) -> Option<Answer> {
        self.answers.remove(&ticket)
    }

    pub(super) fn wake_at(&mut self, process: usize, time: MachineTime) -> u64 {
        let ticket = self.ticket(process);
        let at = self.true_time(process, time);
        self.push(at, Event::Answer(ticket, Answer::Woken));
        ticket
    }

    /// Answers a ticket; returns the process that is to go on. One that is stopped gets the answer
    /// when it goes on.
    pub(super) fn answer(&mut self, ticket: u64, answer: Answer) -> Option<usize> {
        let process = *self.waiting.get(&ticket)?;
        let stopped_until = self.worker_of(process).stopped_until;
        if stopped_until > self.now {
            self.push(stopped_until, Event::Answer(ticket, answer));
            return None;
        }
        self.waiting.remove(&ticket);
        if !self.processes[process].is_alive {
            return None;
        }
        self.answers.insert(ticket, answer);
        Some(process)
    }

    pub(super) fn live_until(&mut self, process: usize, time: MachineTime) {
        if self.flaw == Some(Flaw::NoKill) {
            return;
        }
        self.processes[process].kill += 1;
        let number = self.processes[process].kill;
        let late = self.random.u64(..KILL_LATE);
        let at = self.true_time(process, time) + late;
        self.push(at, Event::Kill(process, number));
    }

    pub(super) fn let_go(&mut self, process: usize) {
        self.processes[process].kill += 1;
    }

    pub(super) fn has_shared_ids(&self) -> bool {
        self.flaw == Some(Flaw::SharedIds)
    }

    pub(super) fn does_not_wait(&self) -> bool {
        self.flaw == Some(Flaw::NoWaiting)
    }

    pub(super) fn new_writer(&mut self) -> u128 {
        self.writers += 1;
        self.writers
    }

    pub(super) fn random_index(&mut self, length: usize) -> usize {
        self.random.usize(..length)
    }

    /// Returns the time of a thought: mostly short, sometimes longer than a lease.
    pub(super) fn random_thought(&mut self) -> u64 {
        match self.random.u8(..8) {
            0 => self.random.u64(..self.lease_us * 2),
            _ => self.random.u64(..self.lease_us / 4),
        }
    }

    /// Returns the time that a message takes, and whether it arrives at all.
    fn passage(&mut self, process: usize) -> Option<u64> {
        let cut_off = self
            .worker_of(process)
            .cut_off_until
            .saturating_sub(self.now);
        let time = match self.random.u8(..64) {
            _ if self.is_calm => self.random.u64(200..5 * MS),
            0 => return None,
            1 => self.random.u64(..self.lease_us * 2),
            _ => self.random.u64(200..5 * MS),
        };
        // A client keeps what it could not send, or loses it.
        if cut_off > 0 && self.random.bool() {
            return None;
        }
        Some(cut_off + time)
    }

    pub(super) fn send_append(
        &mut self,
        process: usize,
        id: MessageId,
        expected: u64,
        body: Arc<[u8]>,
        until: MachineTime,
    ) -> u64 {
        let ticket = self.wake_at(process, until);
        let proposal = Proposal {
            id,
            expected,
            body,
            ticket,
        };
        let copies = 1 + usize::from(self.random.u8(..32) == 0);
        for _ in 0..copies {
            if let Some(time) = self.passage(process) {
                self.push(self.now + time, Event::Append(proposal.clone()));
            }
        }
        ticket
    }

    pub(super) fn send_read(
        &mut self,
        process: usize,
        subject: LogSubject,
        after: u64,
        until: MachineTime,
    ) -> u64 {
        let ticket = self.wake_at(process, until);
        if let Some(time) = self.passage(process) {
            self.push(self.now + time, Event::Read(ticket, subject, after));
        }
        ticket
    }

    /// Sends an answer back, if it gets there.
    fn reply(&mut self, ticket: u64, answer: Answer) {
        let Some(process) = self.waiting.get(&ticket).copied() else {
            self.outcome.unanswered += 1;
            return;
        };
        match self.passage(process) {
            Some(time) => self.push(self.now + time, Event::Answer(ticket, answer)),
            None => self.outcome.unanswered += 1,
        }
    }

    pub(super) fn append_arrives(&mut self, proposal: Proposal) {
        let (id, expected, ticket) = (proposal.id.clone(), proposal.expected, proposal.ticket);
        match self.stream.arrive(proposal, self.now) {
            Arrival::Answered(appended) => {
                self.say(|| format!("{id} after {expected}: {appended:?}"));
                if !matches!(appended, AppendAnswer::Stored { .. }) {
                    self.outcome.refused += 1;
                }
                self.reply(ticket, Answer::Append(appended));
            }
            Arrival::Proposed => {
                let time = self.random.u64(100..4 * MS);
                self.push(self.now + time, Event::Commit(id.subject));
            }
        }
    }

    pub(super) fn commit(&mut self, subject: &LogSubject) {
        let Some((proposal, position)) = self.stream.commit(subject, self.now) else {
            return;
        };
        let Ok(message) = RunMessage::decode(&proposal.body) else {
            return self.violated("a message cannot be read".to_owned());
        };
        let (id, kind) = (&proposal.id, &message.kind);
        let what = match kind {
            RunMessageKind::Entries(lines) => {
                String::from_utf8_lossy(&lines.lines).trim().to_owned()
            }
            RunMessageKind::Claimed(_) => format!("claimed {}", message.epoch),
            RunMessageKind::Renewed => "renewed".to_owned(),
            RunMessageKind::Blobs(_) => "blobs".to_owned(),
            RunMessageKind::Released => "released".to_owned(),
        };
        self.say(|| format!("{id} is stored at {position}: {what}"));
        if what == "ended" {
            self.ended.insert(subject.clone());
        }
        let standing = self.standings.entry(subject.clone()).or_default();
        let is_takeover = matches!(kind, RunMessageKind::Claimed(_)) && standing.holder.is_some();
        let applied = standing.apply(position, &message);
        self.outcome.takeovers += u64::from(is_takeover);
        if is_takeover
            && self.is_calm
            && let Some(died) = self.died.take()
        {
            let taken = (self.now - died) * 1_000 / self.lease_us;
            self.outcome.longest_takeover = self.outcome.longest_takeover.max(taken);
        }
        if let Err(inconsistent) = applied {
            self.violated(inconsistent.to_string());
        }
        self.reply(
            proposal.ticket,
            Answer::Append(AppendAnswer::Stored { position }),
        );
    }

    pub(super) fn read_arrives(&mut self, ticket: u64, subject: &LogSubject, after: u64) {
        let shown = self.stream.shown(subject, after, &mut self.random);
        self.reply(ticket, Answer::Shown(shown));
    }

    pub(super) fn claimed(&mut self, process: usize, run: &LogSubject, epoch: u64) {
        self.say(|| format!("process {process} drives {run} in epoch {epoch}"));
    }

    pub(super) fn acknowledged(
        &mut self,
        process: usize,
        run: &LogSubject,
        number: u64,
        line: &str,
    ) {
        self.outcome.entries += 1;
        self.say(|| format!("process {process} has entry {number} of {run}"));
        self.acknowledged
            .push((run.clone(), number, line.to_owned()));
    }

    /// Begins an effect, which happens at some time until it is over, whatever becomes of the
    /// program that began it; but not after the machine has killed it. Returns its duration.
    pub(super) fn begin_effect(
        &mut self,
        process: usize,
        run: &LogSubject,
        epoch: u64,
        step: u32,
    ) -> u64 {
        let duration = match self.random.u8(..4) {
            0 => self.random.u64(..self.lease_us * 3),
            _ => self.random.u64(..self.lease_us / 8),
        };
        let at = self.now + self.random.u64(..=duration);
        let run = run.clone();
        self.push(
            at,
            Event::Effect {
                process,
                run,
                epoch,
                step,
            },
        );
        // It waits by its own clock, which may be fast.
        duration + duration / 20 + 1
    }

    pub(super) fn effect_happens(
        &mut self,
        process: usize,
        run: LogSubject,
        epoch: u64,
        step: u32,
    ) {
        if !self.processes[process].is_alive {
            return;
        }
        self.outcome.effects += 1;
        self.say(|| format!("process {process} does effect {step} of {run} in epoch {epoch}"));
        let current = self
            .standings
            .get(&run)
            .map_or(0, |standing| standing.epoch);
        let count = self.effects.entry((run.clone(), step)).or_default();
        *count += 1;
        let count = *count;
        if count > 1 {
            self.violated(format!("effect {step} of {run} happened {count} times"));
        }
        if current != epoch {
            self.violated(format!(
                "effect {step} of {run} happened in epoch {epoch}, while a worker had epoch {current}"
            ));
        }
    }

    pub(super) fn is_done(&self, run: &LogSubject, step: u32) -> bool {
        self.effects.contains_key(&(run.clone(), step))
    }

    pub(super) fn dies(&mut self, process: usize, why: &str) {
        self.processes[process].is_alive = false;
        self.say(|| format!("process {process} dies: {why}"));
        let worker = self.processes[process].worker;
        let again = self.now + self.random.u64(MS..self.lease_us);
        self.push(again, Event::Start(worker));
    }

    /// Lets something go wrong; returns the process that is killed, if one is.
    pub(super) fn fault(&mut self) -> Option<usize> {
        if self.now > self.faults_until {
            return None;
        }
        let next = self.now + self.random.u64(..self.lease_us);
        self.push(next, Event::Fault);
        let worker = self.random.usize(..self.workers.len());
        let long = match self.random.u8(..3) {
            0 => self.random.u64(..self.lease_us / 8),
            1 => self.random.u64(..self.lease_us),
            _ => self.random.u64(..self.lease_us * 3),
        };
        let kind = if self.is_calm { 7 } else { self.random.u8(..9) };
        match kind {
            0 | 1 => {
                self.workers[worker].stopped_until = self.now + long;
                self.say(|| format!("worker {worker} is stopped for {} ms", long / MS));
            }
            2 | 3 => {
                self.workers[worker].cut_off_until = self.now + long;
                self.say(|| format!("worker {worker} is cut off for {} ms", long / MS));
            }
            4 | 5 => {
                let stream = &mut self.stream;
                stream.lose_leader(&mut self.random);
                self.say(|| "the stream has another leader".to_owned());
            }
            8 => {
                self.stream.disturb(&mut self.random);
                self.say(|| "somebody else wrote into a log".to_owned());
            }
            _ => {
                let alive = |process: &Process| process.is_alive && process.worker == worker;
                let process = self.processes.iter().position(alive)?;
                self.outcome.crashes += 1;
                let writers = self
                    .standings
                    .values()
                    .filter_map(|one| one.holder.as_ref());
                let mut drivers = writers.map(|holder| holder.claimed.worker.as_str());
                // A second death may be that of the successor.
                let drove = drivers.any(|driver| driver == process.to_string());
                let others = self.processes.iter().filter(|one| one.is_alive).count() - 1;
                let counts = drove && others > 0 && self.died.is_none();
                self.died = counts.then_some(self.now);
                self.dies(process, "a crash");
                return Some(process);
            }
        }
        None
    }

    pub(super) fn all_ended(&self, runs: &[LogSubject]) -> bool {
        runs.iter().all(|run| self.ended.contains(run))
    }

    /// Looks for an entry that was acknowledged and is not in the log, in its place.
    pub(super) fn lost_entry(&self) -> Option<String> {
        let mut stored = HashSet::new();
        for (run, number, line) in self.standings.keys().flat_map(|run| self.lines(run)) {
            if !stored.insert((run.clone(), number, line)) {
                return Some(format!("{run} has entry {number} twice"));
            }
        }
        let lost = self.acknowledged.iter().find(|one| !stored.contains(*one));
        lost.map(|(run, number, line)| {
            format!("entry {number} of {run} (`{}`) was lost", line.trim())
        })
    }

    fn lines(&self, run: &LogSubject) -> Vec<(LogSubject, u64, String)> {
        let messages = self.stream.messages(run).iter();
        let messages = messages.filter_map(|stored| RunMessage::decode(&stored.body).ok());
        let mut lines = Vec::new();
        for message in messages {
            if let RunMessageKind::Entries(entries) = message.kind {
                let line = String::from_utf8_lossy(&entries.lines).into_owned();
                lines.push((run.clone(), entries.first, line));
            }
        }
        lines
    }
}
