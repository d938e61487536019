//! `gyrus stop`, and what it shares with `gyrus pause`

use std::{fmt::Write, io, time::Duration};

use clap::Args;
use gyrus_contract::MessageBody;
use gyrus_kernel::{
    Entry,
    approvals::{self, ApprovalError},
    latch::{LatchContent, LatchResult, StopResult, stop_all},
    log_name,
};
use gyrus_text::plural;

use super::run_argument::RunArgument;
use crate::{Gyrus, drive, exit::Code, failure::Failure, inside_run, state_folder, stopped};
use gyrus_surfaces::{console::put, terminal};

/// Time limit for a run without an effect in progress to park.
const PARKS_WITHIN: Duration = Duration::from_millis(500);

/// Time limit for the run's process to obey.
const OBEY_WITHIN: Duration = Duration::from_secs(30);

/// Timeout for killed processes to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// Cut off what a run does and park it, or stop everything at once
///
/// With --all: nothing of any run goes on, whatever it is doing, and no run is started or resumed
/// until a person lifts that with `gyrus rearm`.
#[derive(Args)]
pub(crate) struct StopCommand {
    #[command(flatten)]
    run: RunArgument,
    /// Emergency stop: end every run at once, and let none begin
    #[arg(long, conflicts_with_all = ["given", "anywhere"])]
    all: bool,
    /// Reason, for people who find everything stopped
    #[arg(long, value_name = "WORDS", requires = "all")]
    reason: Option<String>,
}

impl StopCommand {
    #[cfg(feature = "fleet")]
    pub(crate) fn is_for_one(&self) -> bool {
        !self.all
    }

    #[cfg(feature = "fleet")]
    pub(crate) fn run(&self) -> &str {
        self.run.words()
    }

    #[cfg(feature = "fleet")]
    pub(crate) fn reason(self) -> Option<String> {
        self.reason
    }

    pub(crate) fn execute(self, gyrus: &Gyrus) -> Result<Code, Failure> {
        if self.all {
            return everything(gyrus, "emergency stop", self.reason);
        }
        order(gyrus, &self.run, MessageBody::Stop)
    }
}

/// Stops all runs, the latch first: whatever happens to this process then, nothing new is done.
pub(crate) fn everything(
    gyrus: &Gyrus,
    surface: &str,
    reason: Option<String>,
) -> Result<Code, Failure> {
    inside_run::refuse("stop all runs")?;
    let home = gyrus.home()?;
    let by = terminal::person(gyrus.environment.user.as_deref(), surface);
    // A folder that cannot be made is one that the latch cannot be written to.
    let _ = home.create_state();
    let told = LatchContent::now(by, reason);
    let tripped = home.latch().trip(&told);
    // What is at work is ended even if nobody can be kept from beginning anew.
    let store = home.store();
    let stores: Vec<_> = store
        .iter()
        .cloned()
        .chain(state_folder::ephemeral_stores(&home))
        .collect();
    let ended = stop_all(&stores, told.since_ms, GONE_WITHIN);
    put(&said(&tripped, &ended))?;
    if let Err(error) = tripped {
        return Err(Failure::failed(
            "what was at work was ended, but runs can be started again: the stop cannot be written \
             down",
        )
        .because(&error)
        .hint(format!(
            "make it possible to write {}, then stop again",
            home.latch().path().display()
        )));
    }
    store?;
    if !ended.left.is_empty() {
        return Err(Failure::failed("something may still be at work")
            .hint("end these processes by hand; they can begin nothing new until: gyrus rearm"));
    }
    Ok(Code::Reached)
}

fn said(tripped: &io::Result<LatchResult>, ended: &StopResult) -> String {
    let mut text = match tripped {
        Ok(LatchResult::Before(latched)) => format!("already {}\n", stopped::words(latched)),
        Ok(LatchResult::WithoutWords(error)) => {
            format!("stopped for all (who and why could not be written: {error})\n")
        }
        Ok(LatchResult::Now) => "stopped for all\n".to_owned(),
        Err(_) => String::new(),
    };
    // Writing to a string does not fail.
    for (process, runs) in &ended.processes {
        let runs: Vec<_> = runs.iter().map(|run| run.short()).collect();
        let _ = writeln!(
            text,
            "  ended process {} with {} {}",
            process.pid,
            plural(runs.len(), "run"),
            runs.join(", ")
        );
    }
    for run in &ended.obeyed {
        let _ = writeln!(text, "  ended run {}", run.short());
    }
    if ended.processes.is_empty() && ended.obeyed.is_empty() {
        text.push_str("  no run was at work\n");
    }
    for left in &ended.left {
        let _ = writeln!(text, "  not ended: {left}");
    }
    if tripped.is_ok() {
        text.push_str("  nothing begins or goes on until: gyrus rearm\n");
    }
    text
}

/// Orders a run to stop or pause, and waits until it has, unless it may finish the effect in
/// progress.
pub(super) fn order(gyrus: &Gyrus, run: &RunArgument, body: MessageBody) -> Result<Code, Failure> {
    let store = gyrus.store()?;
    let run = run.find_own(gyrus, &store)?;
    let name = run.short();
    if gyrus.is_of_a_fleet() {
        // A copy of a run that is driven elsewhere.
        let person = terminal::person(gyrus.environment.user.as_deref(), "command line");
        approvals::send(&store, run, person, body)?;
        return Ok(Code::Reached);
    }
    let Some(holder) = store.holder(&log_name(run))? else {
        put(&format!("run {name} is not running\n"))?;
        return Ok(Code::Reached);
    };
    let reader = store.reader(&log_name(run))?;
    let next = reader.end()? + 1;
    let person = terminal::person(gyrus.environment.user.as_deref(), "command line");
    let may_finish = matches!(body, MessageBody::Pause);
    match approvals::send(&store, run, person, body) {
        Ok(()) | Err(ApprovalError::Over { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let stopped = async {
        let mut follower = reader.follow(next)?;
        loop {
            let entry = follower.next().await?;
            if let Ok(Entry::RunParked(_) | Entry::RunEnded(_)) = gyrus_kernel::parse(&entry) {
                return Ok::<(), Failure>(());
            }
        }
    };
    let within = if may_finish {
        PARKS_WITHIN
    } else {
        OBEY_WITHIN
    };
    let waited = drive::wait_for(async { tokio::time::timeout(within, stopped).await })?;
    match waited {
        Ok(stopped) => stopped?,
        Err(_) if may_finish => {
            put(&format!(
                "run {name} pauses when the action in progress is done; the same command once more interrupts that action\n"
            ))?;
            return Ok(Code::Reached);
        }
        Err(_) => {
            return Err(Failure::failed(format!(
                "run {name} was told to stop, but its process {} does not react",
                holder.process.pid
            ))
            .hint(format!(
                "the process may be suspended; to end it and continue the run here: gyrus resume {name} --take"
            )));
        }
    }
    put(&if run.is_root() {
        format!("run {name} is parked; to go on: gyrus resume {name}\n")
    } else {
        format!("sub-run {name} was stopped; the run that started it learns this and continues\n")
    })?;
    Ok(Code::Reached)
}
