//! Commands: runs that somebody asked for, and the stage that each has reached.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use gyrus_contract::{BlobId, DEFAULT_AGENT, Principal, RunId, Text};
use gyrus_kernel::now_ms;
use serde::{Deserialize, Serialize};

/// Maximum size of a command as JSON, in bytes.
pub const MAX_COMMAND: usize = 1 << 20;

/// The highest priority; the lowest is its negative.
pub const MAX_PRIORITY: i8 = 100;

/// The value of an option of `gyrus run`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OptionValue {
    /// Whether an option without a value is given.
    Switch(bool),
    /// A whole number.
    Number(u64),
    Fraction(f64),
    Text(String),
    /// Several texts, for an option that may be repeated.
    Texts(Vec<String>),
}

/// Text that a run starts with beside its goal. It is data, and never instructs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextText {
    pub name: String,
    /// The text, with its source.
    pub text: Text,
}

/// The content with which a folder begins that goes with its run from machine to machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FolderBase {
    /// A snapshot of a folder, whose contents are where all machines of the queue find them.
    Uploaded { snapshot: BlobId },
    /// A commit of a git repository.
    Commit {
        /// The repository's address.
        url: String,
        /// The commit, in hexadecimal digits.
        commit: String,
        /// The branch, if one was checked out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
    },
}

/// The label of a machine that makes folders for runs.
pub const TRAVELLING_FOLDERS: &str = "folders";

/// A run that is to be started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRequest {
    pub goal: Text,
    /// The folder to work in.
    pub workdir: PathBuf,
    /// Options of `gyrus run`, by their long names without dashes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, OptionValue>,
    /// Labels that the machine must have which carries it out, where several share the queue, beside
    /// those that follow from the rest.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub needs: BTreeSet<String>,
    /// Text that it starts with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextText>,
    /// The run whose memory it goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<RunId>,
    /// The content of the folder, if the run works in one that goes with it from machine to machine;
    /// `workdir` only says then where it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<FolderBase>,
}

impl RunRequest {
    /// Returns a request with a goal and a folder, and nothing else.
    pub fn new(goal: Text, workdir: PathBuf) -> Self {
        Self {
            goal,
            workdir,
            options: BTreeMap::new(),
            needs: BTreeSet::new(),
            context: Vec::new(),
            continues: None,
            base: None,
        }
    }

    /// Returns the options as words of a command line, each with its value: `--max-steps=10`.
    pub fn arguments(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (name, value) in &self.options {
            match value {
                OptionValue::Switch(true) => words.push(format!("--{name}")),
                OptionValue::Switch(false) => {}
                OptionValue::Number(number) => words.push(format!("--{name}={number}")),
                OptionValue::Fraction(number) => words.push(format!("--{name}={number}")),
                OptionValue::Text(text) => words.push(format!("--{name}={text}")),
                OptionValue::Texts(texts) => {
                    words.extend(texts.iter().map(|text| format!("--{name}={text}")));
                }
            }
        }
        words
    }

    /// Returns the labels that a machine must have which carries it out: those that are given, and those
    /// that the folder and the options amount to.
    pub(super) fn all_needs(&self) -> BTreeSet<String> {
        let mut needs = self.needs.clone();
        needs.insert(match &self.base {
            None => format!("{FOLDER}{}", self.workdir.display()),
            Some(_) => TRAVELLING_FOLDERS.to_owned(),
        });
        needs.extend(self.profile().map(|profile| format!("profile:{profile}")));
        let screen = match self.options.get("screen") {
            Some(OptionValue::Text(screen)) if screen != "none" => Some(screen.clone()),
            _ if self.options.contains_key("url") => Some("browser".to_owned()),
            _ => None,
        };
        needs.extend(screen);
        needs
    }

    /// Returns the name of the agent under whose trust it works.
    pub fn agent(&self) -> String {
        match self.options.get("agent") {
            Some(OptionValue::Text(agent)) => agent.clone(),
            _ => DEFAULT_AGENT.to_owned(),
        }
    }

    /// Returns the name of the browser profile that it uses, which no other run may use meanwhile.
    pub fn profile(&self) -> Option<&str> {
        match self.options.get("profile") {
            Some(OptionValue::Text(profile)) => Some(profile),
            _ => None,
        }
    }
}

/// The beginning of the label of a folder, before its path.
const FOLDER: &str = "folder:";

/// Whether a run that needs this works in a folder that only one machine has.
pub(super) fn binds(needs: &BTreeSet<String>) -> bool {
    needs.iter().any(|need| need.starts_with(FOLDER))
}

/// The work of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueWork {
    Start(Box<RunRequest>),
    /// Goes on with a run that exists.
    Resume,
}

/// One command: a run to start or to go on with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueCommand {
    /// A UUID of version 7.
    pub id: String,
    /// The run. Its id is chosen when the command is accepted, so that a crash starts no second one.
    pub run: RunId,
    pub work: QueueWork,
    /// The person or program who asked.
    pub from: Principal,
    /// The agent for which it works; commands of one agent share a limit.
    pub agent: String,
    /// From -100 to 100; higher ones go first.
    #[serde(default)]
    pub priority: i8,
    /// The earliest start, in UTC milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before_ms: Option<i64>,
    /// Commands with the same key are one command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Relates it to what caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation: Option<String>,
    /// The time at which it was accepted, in UTC milliseconds.
    pub submitted_ms: i64,
}

/// Maximum number of characters of a goal that is remembered of a command that is over.
const REMEMBERED_GOAL: usize = 400;

impl QueueCommand {
    /// Creates a command that is accepted now: to go on with `run`, or to start a new one.
    pub fn new(work: QueueWork, run: Option<RunId>, from: Principal, agent: String) -> Self {
        Self {
            id: gyrus_contract::time_ordered_uuid().to_string(),
            run: run.unwrap_or_default(),
            work,
            from,
            agent,
            priority: 0,
            not_before_ms: None,
            key: None,
            correlation: None,
            submitted_ms: now_ms(),
        }
    }

    /// Returns the size of its texts in bytes.
    pub(super) fn bytes(&self) -> usize {
        match &self.work {
            QueueWork::Start(request) => {
                let context = request
                    .context
                    .iter()
                    .map(|context| context.text.text.len());
                request.goal.text.len() + context.sum::<usize>()
            }
            QueueWork::Resume => 0,
        }
    }

    /// Forgets what only its run needs.
    pub(super) fn forget_work(&mut self) {
        if let QueueWork::Start(request) = &mut self.work {
            request.context.clear();
            let goal = &mut request.goal.text;
            if let Some((end, _)) = goal.char_indices().nth(REMEMBERED_GOAL) {
                goal.truncate(end);
            }
        }
    }
}

/// Rests of a command whose process died again and again while its run got no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deaths {
    /// Number of rests in a row.
    pub rests: u32,
    /// Number of entries of the run at the last one.
    pub entries: u64,
}

/// The stage that a command has reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum CommandStage {
    /// It waits for its turn.
    Queued,
    /// A process drives its run.
    Running {
        /// The time at which it was started last, in UTC milliseconds.
        since_ms: i64,
        /// The worker whose process it is, if several share the queue.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
        /// That worker's machine.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        machine: Option<String>,
        /// The version of that worker's program.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        build: Option<String>,
    },
    /// Its run waits outside memory.
    Parked {
        why: String,
        /// Whether it waits for a person.
        for_person: bool,
        /// The time at which it goes on by itself, in UTC milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until_ms: Option<i64>,
        /// The deaths of its process after which it rests; `None` if the run parked itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deaths: Option<Deaths>,
    },
    /// Nothing more is done for it.
    Ended {
        /// The time, in UTC milliseconds.
        at_ms: i64,
        /// The exit code of the process, if it had one.
        code: Option<i32>,
        /// The ending of the run, in one sentence.
        summary: String,
    },
    /// It was taken back before it started.
    Cancelled {
        /// The time, in UTC milliseconds.
        at_ms: i64,
        /// The person who took it back.
        by: Principal,
    },
}

impl CommandStage {
    /// Whether nothing more is done.
    pub fn is_over(&self) -> bool {
        matches!(
            self,
            CommandStage::Ended { .. } | CommandStage::Cancelled { .. }
        )
    }
}
