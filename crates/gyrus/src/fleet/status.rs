//! The workers of a fleet, its queue, and who drives what: for people.

use std::{collections::BTreeSet, fmt::Write as _, time::Duration};

use gyrus_fleet::{
    nats::{NatsLog, WorkerReport, call_the_roll},
    run_subject,
};
use gyrus_kernel::{latch::LatchContent, now_ms};
use gyrus_runtime::queue::{
    CommandQueue, CommandStage, QueueWork, QueuedCommand, SharedQueue as _,
};
use gyrus_server::{FleetRunView, FleetView, FleetWorkerView};
use gyrus_surfaces::output;
use gyrus_text::{ago, clip, counted, visible};

use super::{FleetMembership, PATIENCE};
use crate::{Gyrus, exit::Code, failure::Failure};

/// Time in which workers must answer to be listed.
const ROLL: Duration = Duration::from_millis(500);

/// Maximum number of runs listed of each kind.
const LISTED: usize = 50;

/// Maximum number of different sets of labels about which workers are asked.
const ASKED: usize = 5;

/// Maximum number of columns of a goal.
const GIST: usize = 60;

pub(crate) async fn status(gyrus: &Gyrus, fleet: &str, json: bool) -> Result<Code, Failure> {
    let joined = FleetMembership::open(gyrus, fleet, Some(PATIENCE)).await?;
    let view = view(&joined).await?;
    let mut out = output::standard();
    if json {
        out.json(&view)?;
    } else {
        write!(out, "{}", text(&view, now_ms()))?;
    }
    Ok(Code::Reached)
}

/// Returns the reason why a command has not begun, if it has not.
pub(super) async fn why_it_waits(
    joined: &FleetMembership,
    id: &str,
) -> Result<Option<String>, Failure> {
    let mut found = None;
    joined.queue.look(&mut |queue| {
        let waits = queue
            .get(id)
            .filter(|one| one.stage == CommandStage::Queued);
        found = waits.map(|one| (one.needs(), queue.stopped().map(stopped_words)));
    });
    let Some((needs, stopped)) = found else {
        return Ok(None);
    };
    if stopped.is_some() {
        return Ok(stopped);
    }
    let workers = call_the_roll(&joined.connection, needs, ROLL).await?;
    let free = "all workers that could take it are busy".to_owned();
    Ok(Some(unsuited(&workers).unwrap_or(free)))
}

/// Returns the labels that the workers lack, if no worker has all that are needed.
fn unsuited(workers: &[WorkerReport]) -> Option<String> {
    if workers.is_empty() {
        return Some("no worker is there; to start one: gyrus worker --fleet ADDRESS".to_owned());
    }
    if workers.iter().any(|worker| worker.lacks.is_empty()) {
        return None;
    }
    // The worker that lacks the least says most.
    let nearest = workers.iter().min_by_key(|worker| worker.lacks.len())?;
    let lacks = nearest.lacks.iter().map(|label| format!("`{label}`"));
    let lacks = lacks.collect::<Vec<_>>().join(" and no ");
    Some(match workers.len() {
        1 => format!("the only worker has no {lacks}"),
        count => format!(
            "none of {count} workers has all that it needs; {} has no {lacks}",
            nearest.machine
        ),
    })
}

fn stopped_words(told: &LatchContent) -> String {
    let reason = told.reason.as_deref();
    let reason = reason.map(|reason| format!(": {}", visible(reason)));
    format!(
        "all runs are stopped since {}, by {}{}; to go on: gyrus --fleet ADDRESS rearm",
        gyrus_text::utc(told.since_ms),
        visible(&told.by.id),
        reason.unwrap_or_default()
    )
}

/// Asks the workers to report, and reads the queue as it is now.
pub(super) async fn view(joined: &FleetMembership) -> Result<FleetView, Failure> {
    let mut view = FleetView::default();
    let mut waiting = Vec::new();
    joined.queue.look(&mut |queue| {
        view = of_queue(queue);
        let all = queue.all().into_iter();
        let queued = all
            .filter(|one| one.stage == CommandStage::Queued)
            .take(LISTED);
        waiting.extend(queued.map(|one| (run_view(one), one.needs())));
    });
    view.address = joined.address.to_string();
    let workers = call_the_roll(&joined.connection, BTreeSet::new(), ROLL).await?;
    view.workers = workers
        .into_iter()
        .map(|one| worker_view(one, &view.runs))
        .collect();
    let log = NatsLog::new(joined.connection.clone());
    for one in &mut view.runs {
        if let Ok(run) = one.run.parse() {
            one.sign_ms = log.last_ms(&run_subject(run, run), ROLL).await?;
        }
    }
    let mut asked: Vec<(BTreeSet<String>, Option<String>)> = Vec::new();
    for (mut run, needs) in waiting {
        if !asked.iter().any(|(known, _)| *known == needs) {
            if asked.len() == ASKED {
                continue;
            }
            let roll = call_the_roll(&joined.connection, needs.clone(), ROLL).await?;
            asked.push((needs.clone(), unsuited(&roll)));
        }
        let answer = asked.iter().find(|(known, _)| *known == needs);
        run.waits_for = answer.and_then(|(_, why)| why.clone());
        view.runs.extend(run.waits_for.is_some().then_some(run));
    }
    Ok(view)
}

fn worker_view(report: WorkerReport, runs: &[FleetRunView]) -> FleetWorkerView {
    let own = runs
        .iter()
        .filter(|run| run.worker.as_ref() == Some(&report.name));
    FleetWorkerView {
        at_work: own.count(),
        name: report.name,
        machine: report.machine,
        labels: report.labels,
        at_once: report.at_once,
        lease_ms: report.lease_ms,
        build: report.build,
        since_ms: report.since_ms,
    }
}

fn run_view(one: &QueuedCommand) -> FleetRunView {
    let (worker, since_ms) = match &one.stage {
        CommandStage::Running {
            worker, since_ms, ..
        } => (worker.clone(), Some(*since_ms)),
        _ => (None, None),
    };
    FleetRunView {
        run: one.command.run.to_string(),
        goal: match &one.command.work {
            QueueWork::Start(request) => clip(&request.goal.text, GIST),
            QueueWork::Resume => "goes on".to_owned(),
        },
        worker,
        since_ms,
        sign_ms: None,
        waits_for: None,
    }
}

fn of_queue(queue: &CommandQueue) -> FleetView {
    let now = now_ms();
    let mut view = FleetView {
        stopped: queue.stopped().map(stopped_words),
        ..FleetView::default()
    };
    for one in queue.all() {
        match &one.stage {
            CommandStage::Queued => {
                view.waiting += 1;
                let command = &one.command;
                let due = command.not_before_ms.unwrap_or(i64::MIN);
                let waits = Some(now - due.max(command.submitted_ms));
                view.oldest_ms = view.oldest_ms.max(waits.filter(|waits| *waits >= 0));
            }
            CommandStage::Running { .. } => {
                view.at_work += 1;
                if view.runs.len() < LISTED {
                    view.runs.push(run_view(one));
                }
            }
            CommandStage::Parked { .. } => view.parked += 1,
            CommandStage::Ended { .. } | CommandStage::Cancelled { .. } => view.over += 1,
        }
    }
    view
}

fn text(view: &FleetView, now: i64) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    if let Some(stopped) = &view.stopped {
        let _ = writeln!(text, "{stopped}");
    }
    if view.workers.is_empty() {
        text.push_str("no worker is there; to start one: gyrus worker --fleet ADDRESS\n");
    }
    for worker in &view.workers {
        let labels: Vec<_> = worker.labels.iter().map(|label| visible(label)).collect();
        let _ = writeln!(
            text,
            "worker {}  {} of {} at work, lease {}, started {}, gyrus {}{}{}",
            visible(&worker.name),
            worker.at_work,
            worker.at_once,
            gyrus_text::span(worker.lease_ms),
            ago(worker.since_ms, now),
            visible(&worker.build),
            if labels.is_empty() { "" } else { ", has " },
            labels.join(" "),
        );
    }
    let oldest = view
        .oldest_ms
        .map(|waits| format!(", the oldest for {}", lasted(waits)));
    let _ = writeln!(
        text,
        "{} waiting{}; {} at work, {} parked, {} over",
        counted(view.waiting, "command"),
        oldest.unwrap_or_default(),
        view.at_work,
        view.parked,
        view.over
    );
    for one in &view.runs {
        let run = &one.run[one.run.len().saturating_sub(8)..];
        let _ = write!(text, "run {run}  {}", one.goal);
        if let (Some(worker), Some(since)) = (&one.worker, one.since_ms) {
            let _ = write!(text, "  on {} for {}", visible(worker), lasted(now - since));
        }
        if let Some(sign) = one.sign_ms {
            let _ = write!(text, ", last sign of life {}", ago(sign, now));
        }
        if let Some(why) = &one.waits_for {
            let _ = write!(text, "  waits: {why}");
        }
        text.push('\n');
    }
    text
}

fn lasted(ms: i64) -> String {
    gyrus_text::span(u64::try_from(ms).unwrap_or(0))
}
