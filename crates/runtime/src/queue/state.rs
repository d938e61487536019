//! The queue as the fold of its facts, and whose turn it is.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    ops::RangeBounds,
    sync::Arc,
};

use gyrus_contract::{Principal, RunId};
use gyrus_kernel::latch::LatchContent;
use serde::{Deserialize, Serialize};

use super::{
    command::{CommandStage, Deaths, QueueCommand, QueueWork, binds},
    worker::{QueueWorker, build_label, later, machine_label},
};
use crate::ledger::Fold;

/// Number of remembered ended commands, for queries and to recognise repeated keys.
const REMEMBERED: usize = 10_000;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", content = "payload")]
pub enum QueueFact {
    /// A command was accepted.
    #[serde(rename = "command.submitted")]
    Submitted(Arc<QueueCommand>),
    /// A command reached a stage.
    #[serde(rename = "command.reached")]
    Reached {
        id: String,
        #[serde(flatten)]
        stage: CommandStage,
    },
    /// A person stopped all runs, so that no new one begins.
    #[serde(rename = "queue.stopped")]
    Stopped(LatchContent),
    /// A person lifted the stop of all runs.
    #[serde(rename = "queue.rearmed")]
    Rearmed {
        by: Principal,
        /// The time, in UTC milliseconds.
        at_ms: i64,
    },
}

/// A command and its stage.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedCommand {
    pub command: Arc<QueueCommand>,
    pub stage: CommandStage,
    /// The labels that the machine must have to carry out the command, beside `bound_to`.
    needs: BTreeSet<String>,
    /// The last pause after deaths of the command's process.
    pub deaths: Option<Deaths>,
    /// The machine that its run is bound to: it began there, in a folder of that machine.
    pub bound_to: Option<String>,
    /// The latest version of a program that worked on the command's run.
    build: Option<String>,
}

impl QueuedCommand {
    /// Returns a command that was accepted now. One that resumes a run needs the same labels as
    /// `before`.
    pub(super) fn new(command: Arc<QueueCommand>, before: Option<&Self>) -> Self {
        let before = before.filter(|_| command.work == QueueWork::Resume);
        let needs = match &command.work {
            QueueWork::Start(request) => request.all_needs(),
            QueueWork::Resume => before.map(|one| one.needs.clone()).unwrap_or_default(),
        };
        Self {
            command,
            stage: CommandStage::Queued,
            needs,
            deaths: None,
            bound_to: before.and_then(|before| before.bound_to.clone()),
            build: before.and_then(|before| before.build.clone()),
        }
    }

    /// Returns the labels that the machine must have to carry out the command.
    pub fn needs(&self) -> BTreeSet<String> {
        let mut needs = self.needs.clone();
        needs.extend(self.bound_to.as_deref().map(machine_label));
        needs.extend(self.build.as_deref().map(build_label));
        needs
    }

    fn remembered(&self) -> impl Iterator<Item = CommandStage> {
        let has_begun = self.bound_to.is_some() || self.build.is_some();
        let began = has_begun.then(|| CommandStage::Running {
            since_ms: 0,
            worker: None,
            machine: self.bound_to.clone(),
            build: self.build.clone(),
        });
        let rested = self.deaths.map(|deaths| CommandStage::Parked {
            why: String::new(),
            for_person: false,
            until_ms: None,
            deaths: Some(deaths),
        });
        let is_followed = began.is_some() || rested.is_some();
        let queued =
            (is_followed && self.stage == CommandStage::Queued).then_some(CommandStage::Queued);
        [began, rested, queued].into_iter().flatten()
    }

    fn lane(&self) -> Lane {
        Lane {
            agent: self.command.agent.clone(),
            profile: profile(&self.command),
            needs: self.needs(),
        }
    }
}

/// The place of a queued command: by priority, then by the order of acceptance.
type QueuePlace = (i16, u64);

/// A group of commands whose turn depends on the same conditions: those of an agent on a browser
/// profile, which need the same of a machine.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Lane {
    agent: String,
    profile: Option<String>,
    needs: BTreeSet<String>,
}

/// The limits of concurrent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtOnce {
    /// Maximum number of runs of one worker.
    pub in_all: usize,
    /// Maximum number of runs of one agent, on all workers.
    pub per_agent: usize,
}

/// All open commands, and the last ended ones.
#[derive(Debug, Default)]
pub struct CommandQueue {
    commands: HashMap<String, (u64, QueuedCommand)>,
    accepted: u64,
    by_run: HashMap<RunId, String>,
    by_key: HashMap<String, String>,
    lanes: BTreeMap<Lane, BTreeSet<(QueuePlace, String)>>,
    /// Queued commands with an earliest start, in that order.
    delayed: BTreeSet<(i64, String)>,
    running: BTreeMap<String, usize>,
    by_worker: BTreeMap<Option<String>, usize>,
    busy_profiles: BTreeMap<String, usize>,
    over: VecDeque<String>,
    /// Size of the texts of open commands.
    bytes: usize,
    /// The stop of all runs that is in force.
    stopped: Option<LatchContent>,
}

impl Fold for CommandQueue {
    const LOG_KIND: &'static str = "queue";
    type Fact = QueueFact;

    fn apply(&mut self, fact: QueueFact) {
        match fact {
            QueueFact::Submitted(command) => self.submitted(command),
            QueueFact::Reached { id, stage } => self.reached(&id, stage),
            QueueFact::Stopped(told) => {
                self.stopped.get_or_insert(told);
            }
            QueueFact::Rearmed { .. } => self.stopped = None,
        }
    }

    fn facts(&self) -> Vec<QueueFact> {
        let mut standing: Vec<_> = self.commands.values().collect();
        standing.sort_by_key(|(accepted, _)| *accepted);
        let mut facts: Vec<_> = self
            .stopped
            .iter()
            .cloned()
            .map(QueueFact::Stopped)
            .collect();
        for (_, one) in standing {
            let QueuedCommand { command, stage, .. } = one;
            facts.push(QueueFact::Submitted(Arc::clone(command)));
            facts.extend(one.remembered().map(|stage| reached(command, &stage)));
            if !matches!(
                stage,
                CommandStage::Queued | CommandStage::Ended { .. } | CommandStage::Cancelled { .. }
            ) {
                facts.push(reached(command, stage));
            }
        }
        // In the order in which they ended, in which they are forgotten.
        for (_, QueuedCommand { command, stage, .. }) in
            self.over.iter().filter_map(|id| self.commands.get(id))
        {
            facts.push(reached(command, stage));
        }
        facts
    }
}

fn reached(command: &QueueCommand, stage: &CommandStage) -> QueueFact {
    QueueFact::Reached {
        id: command.id.clone(),
        stage: stage.clone(),
    }
}

impl CommandQueue {
    pub fn get(&self, id: &str) -> Option<&QueuedCommand> {
        self.commands.get(id).map(|(_, standing)| standing)
    }

    /// Returns the command of a run: the last, if there were several.
    pub fn of_run(&self, run: RunId) -> Option<&QueuedCommand> {
        self.get(self.by_run.get(&run)?)
    }

    /// Whether a run has an open command.
    pub fn is_open(&self, run: RunId) -> bool {
        self.of_run(run).is_some_and(|one| !one.stage.is_over())
    }

    pub fn with_key(&self, key: &str) -> Option<&QueuedCommand> {
        self.get(self.by_key.get(key)?)
    }

    /// Returns the runs of an agent's commands that were to start in a range of times, in UTC
    /// milliseconds.
    pub fn runs_within(&self, agent: &str, times_ms: impl RangeBounds<i64>) -> BTreeSet<RunId> {
        let commands = self.commands.values().map(|(_, one)| &one.command);
        let own = commands.filter(|command| {
            let start = command.not_before_ms.unwrap_or(i64::MIN);
            command.agent == agent && times_ms.contains(&command.submitted_ms.max(start))
        });
        own.map(|command| command.run).collect()
    }

    /// Returns all commands, in the order in which they were accepted.
    pub fn all(&self) -> Vec<&QueuedCommand> {
        let mut all: Vec<_> = self.commands.values().collect();
        all.sort_by_key(|(accepted, _)| *accepted);
        all.into_iter().map(|(_, standing)| standing).collect()
    }

    /// Returns the number of open commands.
    pub fn open(&self) -> usize {
        self.commands.len() - self.over.len()
    }

    /// Returns the size of the texts of commands that are not over, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of running commands.
    pub fn running(&self) -> usize {
        self.running.values().sum()
    }

    /// Returns the stop of all runs that is in force.
    pub fn stopped(&self) -> Option<&LatchContent> {
        self.stopped.as_ref()
    }

    /// Returns the next command at this time, if this worker may start one. A queue that is not
    /// shared has no worker's name, and needs of commands are ignored.
    pub fn next(
        &self,
        now_ms: i64,
        at_once: AtOnce,
        worker: Option<&QueueWorker>,
    ) -> Option<&Arc<QueueCommand>> {
        let own = self
            .by_worker
            .get(&worker.map(|worker| worker.name.clone()));
        let is_full = own.is_some_and(|own| *own >= at_once.in_all) || at_once.in_all == 0;
        if is_full || self.stopped.is_some() {
            return None;
        }
        let free = self.lanes.iter().filter(|(lane, _)| {
            let of_agent = self.running.get(&lane.agent).copied().unwrap_or(0);
            let is_busy = lane
                .profile
                .as_ref()
                .is_some_and(|profile| self.busy_profiles.contains_key(profile));
            let suits = worker.is_none_or(|worker| worker.lacks(&lane.needs).is_empty());
            of_agent < at_once.per_agent && !is_busy && suits
        });
        let firsts = free.filter_map(|(_, lane)| {
            lane.iter()
                .find(|(_, id)| self.get(id).is_none_or(|one| one.command.is_due(now_ms)))
        });
        firsts
            .min()
            .and_then(|(_, id)| Some(&self.get(id)?.command))
    }

    /// Returns the time at which the next command becomes due, in UTC milliseconds.
    pub fn next_due(&self, now_ms: i64) -> Option<i64> {
        let later = (now_ms.saturating_add(1), String::new());
        self.delayed.range(later..).next().map(|(due, _)| *due)
    }

    fn submitted(&mut self, command: Arc<QueueCommand>) {
        if self.commands.contains_key(&command.id) {
            return;
        }
        self.accepted += 1;
        let before = self.of_run(command.run);
        let standing = QueuedCommand::new(Arc::clone(&command), before);
        self.by_run.insert(command.run, command.id.clone());
        if let Some(key) = &command.key {
            self.by_key.insert(key.clone(), command.id.clone());
        }
        let id = command.id.clone();
        self.count(&standing, self.accepted, true);
        self.bytes += standing.command.bytes();
        self.commands.insert(id, (self.accepted, standing));
    }

    fn reached(&mut self, id: &str, stage: CommandStage) {
        let Some((accepted, mut standing)) = self.commands.remove(id) else {
            return;
        };
        if standing.stage.is_over() {
            self.commands.insert(id.to_owned(), (accepted, standing));
            return;
        }
        self.count(&standing, accepted, false);
        match &stage {
            CommandStage::Parked {
                deaths: Some(deaths),
                ..
            } => standing.deaths = Some(*deaths),
            CommandStage::Running { machine, build, .. } => {
                if binds(&standing.needs) && standing.bound_to.is_none() {
                    standing.bound_to.clone_from(machine);
                }
                if let Some(build) = build {
                    standing.build = Some(later(standing.build.as_deref(), build));
                }
            }
            _ => {}
        }
        standing.stage = stage;
        self.count(&standing, accepted, true);
        if standing.stage.is_over() {
            self.bytes -= standing.command.bytes().min(self.bytes);
            Arc::make_mut(&mut standing.command).forget_work();
            self.over.push_back(id.to_owned());
        }
        self.commands.insert(id.to_owned(), (accepted, standing));
        if self.over.len() > REMEMBERED {
            self.forget_oldest();
        }
    }

    fn count(&mut self, standing: &QueuedCommand, accepted: u64, is_there: bool) {
        let command = &standing.command;
        match standing.stage {
            CommandStage::Queued => {
                let lane = standing.lane();
                let place = (-i16::from(command.priority), accepted);
                let entry = (place, command.id.clone());
                if let Some(due) = command.not_before_ms {
                    let delayed = (due, command.id.clone());
                    if is_there {
                        self.delayed.insert(delayed);
                    } else {
                        self.delayed.remove(&delayed);
                    }
                }
                if is_there {
                    self.lanes.entry(lane).or_default().insert(entry);
                } else if let Some(waiting) = self.lanes.get_mut(&lane) {
                    waiting.remove(&entry);
                    if waiting.is_empty() {
                        self.lanes.remove(&lane);
                    }
                }
            }
            CommandStage::Running { ref worker, .. } => {
                change(&mut self.running, &command.agent, is_there);
                change(&mut self.by_worker, worker, is_there);
                if let Some(profile) = profile(command) {
                    change(&mut self.busy_profiles, &profile, is_there);
                }
            }
            CommandStage::Parked { .. }
            | CommandStage::Ended { .. }
            | CommandStage::Cancelled { .. } => {}
        }
    }

    fn forget_oldest(&mut self) {
        let Some(id) = self.over.pop_front() else {
            return;
        };
        let Some((_, QueuedCommand { command, .. })) = self.commands.remove(&id) else {
            return;
        };
        if self.by_run.get(&command.run) == Some(&id) {
            self.by_run.remove(&command.run);
        }
        if let Some(key) = &command.key
            && self.by_key.get(key) == Some(&id)
        {
            self.by_key.remove(key);
        }
    }
}

fn profile(command: &QueueCommand) -> Option<String> {
    match &command.work {
        QueueWork::Start(request) => request.profile().map(str::to_owned),
        QueueWork::Resume => None,
    }
}

fn change<K: Ord + Clone>(counts: &mut BTreeMap<K, usize>, of: &K, up: bool) {
    let count = counts.entry(of.clone()).or_default();
    if up {
        *count += 1;
    } else {
        *count = count.saturating_sub(1);
    }
    if *count == 0 {
        counts.remove(of);
    }
}

pub(super) fn stage(id: &str, stage: CommandStage) -> QueueFact {
    QueueFact::Reached {
        id: id.to_owned(),
        stage,
    }
}

pub(super) fn cancelled(id: &str, by: Principal, at_ms: i64) -> QueueFact {
    stage(id, CommandStage::Cancelled { at_ms, by })
}
