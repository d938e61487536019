//! The workers of a fleet, its queue, and who drives what: for people.

use std::{collections::BTreeSet, fmt::Write as _, time::Duration};

use gyrus_contract::RunId;
use gyrus_fleet::{
    nats::{NatsLog, WorkerReport, call_the_roll},
    run_subject,
};
use gyrus_kernel::{latch::Told, now_ms};
use gyrus_runtime::queue::{Queue, QueuedCommand, SharedQueue as _, Stage, Work};
use gyrus_surfaces::output;
use gyrus_text::{ago, clip, counted, visible};
use serde::Serialize;

use super::{Joined, PATIENCE};
use crate::{Gyrus, exit::Code, failure::Failure};

/// Time that workers get to say that they are there.
const ROLL: Duration = Duration::from_millis(500);

/// Maximum number of runs that are listed of each kind.
const LISTED: usize = 50;

/// Maximum number of characters of a goal.
const GIST: usize = 60;

/// The state of a fleet.
#[derive(Debug, Serialize)]
pub(crate) struct FleetStatus {
    workers: Vec<WorkerReport>,
    /// Numbers of commands that wait for their turn, are at work, are parked, and are over.
    waiting: usize,
    at_work: usize,
    parked: usize,
    over: usize,
    /// Time for which the oldest one that may begin has waited, in milliseconds.
    oldest_ms: Option<i64>,
    /// The stop of all runs that is in force.
    stopped: Option<Told>,
    /// The first runs that are at work, or wait for a machine that is not there.
    runs: Vec<FleetRun>,
}

#[derive(Debug, Serialize)]
struct FleetRun {
    run: RunId,
    goal: String,
    #[serde(flatten)]
    place: Place,
}

#[derive(Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum Place {
    AtWork {
        worker: String,
        since_ms: i64,
        /// The time of the run's last message, by the servers' clock.
        sign_ms: Option<i64>,
    },
    Unsuited {
        why: String,
    },
}

/// Prints the state of a fleet.
pub(crate) async fn status(gyrus: &Gyrus, fleet: &str, json: bool) -> Result<Code, Failure> {
    let joined = Joined::open(gyrus, fleet, Some(PATIENCE)).await?;
    let status = FleetStatus::ask(&joined).await?;
    let mut out = output::standard();
    if json {
        out.json(&status)?;
    } else {
        write!(out, "{}", status.text(now_ms()))?;
    }
    Ok(Code::Reached)
}

/// Returns why a command does not begin, if it has not begun.
pub(super) async fn why_it_waits(joined: &Joined, id: &str) -> Result<Option<String>, Failure> {
    let mut found = None;
    joined.queue.look(&mut |queue| {
        let waits = queue.get(id).filter(|one| one.stage == Stage::Queued);
        found = waits.map(|one| (one.needs(), queue.stopped().cloned()));
    });
    let Some((needs, stopped)) = found else {
        return Ok(None);
    };
    if let Some(told) = stopped {
        return Ok(Some(stopped_words(&told)));
    }
    let workers = call_the_roll(&joined.connection, needs, ROLL).await?;
    let free = "all workers that could take it are busy".to_owned();
    Ok(Some(unsuited(&workers).unwrap_or(free)))
}

/// Returns what the workers lack, if none has all that was asked for.
fn unsuited(workers: &[WorkerReport]) -> Option<String> {
    if workers.is_empty() {
        return Some("no worker is there; to start one: gyrus worker --fleet ADDRESS".to_owned());
    }
    if workers.iter().any(|worker| worker.lacks.is_empty()) {
        return None;
    }
    // The worker that lacks the least says most.
    let nearest = workers.iter().min_by_key(|worker| worker.lacks.len())?;
    let lacks: Vec<_> = nearest
        .lacks
        .iter()
        .map(|label| format!("`{label}`"))
        .collect();
    Some(match workers.len() {
        1 => format!("the only worker has no {}", lacks.join(" and no ")),
        count => format!(
            "none of {count} workers has all that it needs; {} has no {}",
            nearest.machine,
            lacks.join(" and no ")
        ),
    })
}

fn stopped_words(told: &Told) -> String {
    let reason = told
        .reason
        .as_deref()
        .map(|reason| format!(": {}", visible(reason)));
    format!(
        "all runs are stopped since {}, by {}{}; to go on: gyrus --fleet ADDRESS rearm",
        gyrus_text::utc(told.since_ms),
        visible(&told.by.id),
        reason.unwrap_or_default()
    )
}

impl FleetStatus {
    /// Asks who is there, and reads the queue as it is now.
    pub(super) async fn ask(joined: &Joined) -> Result<Self, Failure> {
        let workers = call_the_roll(&joined.connection, BTreeSet::new(), ROLL).await?;
        let mut status = None;
        let mut waiting = Vec::new();
        joined.queue.look(&mut |queue| {
            status = Some(Self::of(queue));
            let all = queue.all().into_iter();
            let queued = all.filter(|one| one.stage == Stage::Queued).take(LISTED);
            waiting = queued
                .map(|one| (one.command.run, goal(one), one.needs()))
                .collect();
        });
        let mut status = status.expect("the queue was looked at");
        status.workers = workers;
        let log = NatsLog::new(joined.connection.clone());
        for one in &mut status.runs {
            if let Place::AtWork { sign_ms, .. } = &mut one.place {
                *sign_ms = log.last_ms(&run_subject(one.run, one.run), ROLL).await?;
            }
        }
        let mut asked: Vec<(BTreeSet<String>, Option<String>)> = Vec::new();
        for (run, goal, needs) in waiting {
            let known = asked.iter().find(|(known, _)| *known == needs);
            let why = match known {
                Some((_, why)) => why.clone(),
                None if asked.len() < 5 => {
                    let roll = call_the_roll(&joined.connection, needs.clone(), ROLL).await?;
                    asked.push((needs, unsuited(&roll)));
                    asked.last().and_then(|(_, why)| why.clone())
                }
                None => None,
            };
            status.runs.extend(why.map(|why| FleetRun {
                run,
                goal,
                place: Place::Unsuited { why },
            }));
        }
        Ok(status)
    }

    /// Returns the state of a queue.
    fn of(queue: &Queue) -> Self {
        let now = now_ms();
        let mut status = Self {
            workers: Vec::new(),
            waiting: 0,
            at_work: 0,
            parked: 0,
            over: 0,
            oldest_ms: None,
            stopped: queue.stopped().cloned(),
            runs: Vec::new(),
        };
        for one in queue.all() {
            match &one.stage {
                Stage::Queued => {
                    status.waiting += 1;
                    let command = &one.command;
                    let since = command.not_before_ms.unwrap_or(i64::MIN);
                    let waits = now - since.max(command.submitted_ms);
                    if waits >= 0 {
                        status.oldest_ms = status.oldest_ms.max(Some(waits));
                    }
                }
                Stage::Running {
                    worker, since_ms, ..
                } => {
                    status.at_work += 1;
                    if status.runs.len() < LISTED {
                        status.runs.push(FleetRun {
                            run: one.command.run,
                            goal: goal(one),
                            place: Place::AtWork {
                                worker: worker.clone().unwrap_or_default(),
                                since_ms: *since_ms,
                                sign_ms: None,
                            },
                        });
                    }
                }
                Stage::Parked { .. } => status.parked += 1,
                Stage::Ended { .. } | Stage::Cancelled { .. } => status.over += 1,
            }
        }
        status
    }

    fn text(&self, now: i64) -> String {
        let mut text = String::new();
        if let Some(told) = &self.stopped {
            let _ = writeln!(text, "{}", stopped_words(told));
        }
        if self.workers.is_empty() {
            let _ = writeln!(
                text,
                "no worker is there; to start one: gyrus worker --fleet ADDRESS"
            );
        }
        for worker in &self.workers {
            let labels: Vec<_> = worker.labels.iter().map(|label| visible(label)).collect();
            let _ = writeln!(
                text,
                "worker {}  {} of {} at work, lease {} s, started {}, gyrus {}{}{}",
                visible(&worker.name),
                self.at_work_of(&worker.name),
                worker.at_once,
                worker.lease_ms / 1_000,
                ago(worker.since_ms, now),
                visible(&worker.build),
                if labels.is_empty() { "" } else { ", has " },
                labels.join(" "),
            );
        }
        let oldest = self.oldest_ms.filter(|_| self.waiting > 0);
        let oldest = oldest.map(|waits| format!(", the oldest for {}", lasted(waits)));
        let _ = writeln!(
            text,
            "{} waiting{}; {} at work, {} parked, {} over",
            counted(self.waiting, "command"),
            oldest.unwrap_or_default(),
            self.at_work,
            self.parked,
            self.over
        );
        for one in &self.runs {
            let run = one.run.short();
            let _ = match &one.place {
                Place::AtWork {
                    worker,
                    since_ms,
                    sign_ms,
                } => {
                    let sign = sign_ms.map(|at| format!(", last sign of life {}", ago(at, now)));
                    writeln!(
                        text,
                        "run {run}  {}  on {} for {}{}",
                        one.goal,
                        visible(worker),
                        lasted(now - since_ms),
                        sign.unwrap_or_default()
                    )
                }
                Place::Unsuited { why } => writeln!(text, "run {run}  {}  waits: {why}", one.goal),
            };
        }
        text
    }

    fn at_work_of(&self, name: &str) -> usize {
        let at_work = self
            .runs
            .iter()
            .filter(|one| matches!(&one.place, Place::AtWork { worker, .. } if worker == name));
        at_work.count()
    }
}

/// Returns a time in milliseconds in words.
fn lasted(ms: i64) -> String {
    gyrus_text::span(u64::try_from(ms).unwrap_or(0))
}

fn goal(one: &QueuedCommand) -> String {
    match &one.command.work {
        Work::Start(request) => visible(&clip(&request.goal.text, GIST)).into_owned(),
        Work::Resume => "goes on".to_owned(),
    }
}
