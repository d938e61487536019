//! The server and its machine, as they are now: the state folder, the processes, the queue.

use std::fs;

use gyrus_contract::RunId;
use gyrus_kernel::log_name;
use gyrus_runtime::queue::CommandStage;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{app::App, error::ApiError, heads::RunWord, state_folder::StateFolder};

/// Maximum number of failed commands that are reported.
const FAILURES: usize = 10;

/// The state of a server.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ServerStatus {
    /// Its version.
    pub(crate) version: String,
    /// Its process.
    pub(crate) pid: u32,
    /// The time at which it was started, in UTC milliseconds.
    pub(crate) started_ms: i64,
    /// Its memory in bytes.
    pub(crate) memory_bytes: u64,
    /// The state of its folder.
    pub(crate) state: StateFolder,
    /// Processes that drive runs.
    pub(crate) processes: Vec<RunProcess>,
    /// Number of browsers of runs that are open.
    pub(crate) browsers: usize,
    /// The queue of commands.
    pub(crate) queue: QueueFigures,
    /// The want for which accepted work cannot begin or end, if there is one. It is tried again.
    pub(crate) want: Option<String>,
    /// The last commands that failed, newest first.
    pub(crate) failures: Vec<FailedCommand>,
}

/// A process that drives a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct RunProcess {
    /// The run.
    #[schemars(with = "String")]
    pub(crate) run: RunId,
    /// The process.
    pub(crate) pid: u32,
    /// The state of the run.
    pub(crate) state: RunWord,
    /// Its memory in bytes.
    pub(crate) memory_bytes: u64,
}

/// Figures of the queue.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
pub(crate) struct QueueFigures {
    /// Number of commands that wait for their turn.
    pub(crate) queued: usize,
    /// Number of commands whose runs are at work.
    pub(crate) running: usize,
    /// Number of commands whose runs wait outside memory.
    pub(crate) parked: usize,
    /// Maximum number of runs at work.
    pub(crate) at_once: usize,
    /// Maximum number of runs of one agent at work.
    pub(crate) per_agent: usize,
}

/// A command that ended without success.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct FailedCommand {
    /// Its run.
    #[schemars(with = "String")]
    pub(crate) run: RunId,
    /// The agent that it worked for.
    pub(crate) agent: String,
    /// The time of its end, in UTC milliseconds.
    pub(crate) at_ms: i64,
    /// The exit code of its process; `null` if a signal ended it.
    pub(crate) code: Option<i32>,
    /// Its end in one sentence.
    pub(crate) summary: String,
}

impl ServerStatus {
    /// Measures the present status of the server. May block for the disk.
    ///
    /// # Errors
    /// The state folder cannot be read.
    pub(crate) fn now(app: &App) -> Result<Self, ApiError> {
        let pid = std::process::id();
        let (queue, failures) = queue(app);
        Ok(Self {
            version: app.options.build.to_owned(),
            pid,
            started_ms: app.started_ms,
            memory_bytes: memory(pid),
            state: state(app)?,
            processes: processes(app),
            browsers: browsers(),
            queue,
            want: app.gateway.want(),
            failures,
        })
    }
}

fn state(app: &App) -> Result<StateFolder, ApiError> {
    let looked = app.state_folder.now(&app.store, &app.options.state);
    looked.map_err(|error| ApiError::internal(format!("the state folder cannot be read: {error}")))
}

fn processes(app: &App) -> Vec<RunProcess> {
    let process = |run: RunId| {
        let holder = app.store.holder(&log_name(run)).ok()??;
        // A lock outlives a process that was killed.
        if !holder.process.is_alive().unwrap_or(false) {
            return None;
        }
        let pid = holder.process.pid;
        Some(RunProcess {
            run,
            pid,
            state: app
                .heads
                .of(run)
                .map_or(RunWord::Running, |head| head.state),
            memory_bytes: memory(pid),
        })
    };
    app.heads.live().into_iter().filter_map(process).collect()
}

/// Returns the memory of a process in bytes; 0 if it is gone.
fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0).saturating_mul(1024)
}

/// Returns the number of browsers that runs have: processes below a keeper that take orders over a
/// pipe, without the helpers that each browser has.
fn browsers() -> usize {
    let is_browser = |pid: u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        let is_driven = words.any(|word| word == b"--remote-debugging-pipe");
        let is_helper = line.windows(8).any(|word| word == b"\0--type=");
        is_driven && !is_helper && gyrus_process::keeper::is_below_a_keeper(pid)
    };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|process| process.file_name().to_str()?.parse().ok());
    pids.filter(|pid| is_browser(*pid)).count()
}

fn queue(app: &App) -> (QueueFigures, Vec<FailedCommand>) {
    let mut figures = QueueFigures {
        at_once: app.options.at_once.in_all,
        per_agent: app.options.at_once.per_agent,
        ..QueueFigures::default()
    };
    let mut failures = app.gateway.with(|queue| {
        let mut failures = Vec::new();
        for one in queue.all() {
            match &one.stage {
                CommandStage::Queued => figures.queued += 1,
                CommandStage::Running { .. } => figures.running += 1,
                CommandStage::Parked { .. } => figures.parked += 1,
                CommandStage::Cancelled { .. } | CommandStage::Ended { code: Some(0), .. } => {}
                CommandStage::Ended {
                    at_ms,
                    code,
                    summary,
                } => failures.push(FailedCommand {
                    run: one.command.run,
                    agent: one.command.agent.clone(),
                    at_ms: *at_ms,
                    code: *code,
                    summary: summary.clone(),
                }),
            }
        }
        failures
    });
    failures.sort_by_key(|one| std::cmp::Reverse(one.at_ms));
    failures.truncate(FAILURES);
    (figures, failures)
}
