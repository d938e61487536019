//! Stopping runs, and telling them something.

use std::{sync::Arc, time::Duration};

use gyrus_contract::{MessageBody, Principal, RunId};
use gyrus_journal::Store;
use gyrus_kernel::{Entry, RunState, approvals, log_name};
use gyrus_runtime::{
    blocking,
    queue::{CommandStage, QueueError, in_time},
};

use tokio::time::timeout;

use super::{
    attempt::JobAttempt,
    decision::{JobDecision, say},
};
use crate::{
    conversation,
    messenger::IncomingMessage,
    record::{ChatTask, PendingWork, TaskStage},
    shared::AccountInner,
    tasks,
};

/// Time within which an accepted run stands in the queue.
const SUBMITTED_WITHIN: Duration = Duration::from_secs(10);

pub(super) async fn stop(
    shared: &Arc<AccountInner>,
    message: &IncomingMessage,
    what: &str,
    replied: Option<RunId>,
) -> JobDecision {
    let principal = shared.principal(&message.person);
    if let Some(run) = replied {
        let text = stop_run(shared, run, principal).await;
        return say(shared, message, text);
    }
    if message.reply_to.is_some() || !matches!(what, "" | "all") {
        let text = "That names no run. Reply /stop to a message of the run, or write /stop alone \
                    to stop everything.";
        return say(shared, message, text.to_owned());
    }
    let reason = format!("asked by {principal}");
    let arguments = ["stop", "--all", &format!("--reason={reason}")].map(str::to_owned);
    let text = match shared.host.command(arguments.to_vec()).await {
        Ok(printed) => format!(
            "Everything is stopped, and nothing begins until somebody at the machine types: gyrus \
             rearm\n{printed}"
        ),
        Err(why) => why,
    };
    say(shared, message, text)
}

async fn stop_run(shared: &Arc<AccountInner>, run: RunId, by: Principal) -> String {
    let name = run.short();
    let task = shared.with(|record| record.tasks.get(&run).cloned());
    if let Some(task) = task
        && let TaskStage::Ready(request) = &task.stage
    {
        // Accepted a moment ago, it may be on its way into the queue, where it can be taken back.
        // What keeps it from there is told by whoever submits it.
        let _ = timeout(SUBMITTED_WITHIN, tasks::start(shared, &task, request)).await;
    }
    let queued = shared.gateway.with(|queue| {
        let standing = queue.of_run(run)?;
        matches!(standing.stage, CommandStage::Queued).then(|| standing.command.id.clone())
    });
    if let Some(command) = queued {
        match in_time(shared.gateway.cancel(&command, by.clone())).await {
            Ok(()) => return format!("Run {name} is taken back; it had not begun."),
            // It began in this moment.
            Err(QueueError::Begun { .. }) => {}
            Err(error) => return gyrus_net::causes(&error),
        }
    }
    let store = shared.gateway.store().clone();
    let sent = blocking(move || match RunState::of(&store, run) {
        Ok(RunState::Over(ending)) => Err(format!(
            "is over already: {}",
            gyrus_kernel::summary(&ending)
        )),
        Ok(_) => approvals::send(&store, run, by, MessageBody::Stop)
            .map_err(|error| format!("cannot be told: {}", gyrus_net::causes(&error))),
        Err(_) => Err("has not begun yet".to_owned()),
    });
    match sent.await {
        Ok(()) => format!("Run {name} is told to stop."),
        Err(why) => format!("Run {name} {why}."),
    }
}

/// Words for a run: they are added to its goal, or begin a run that goes on from it.
pub(super) async fn add_to_run(
    shared: &Arc<AccountInner>,
    message: &IncomingMessage,
    run: RunId,
    words: String,
    work: &PendingWork,
    attempt: JobAttempt,
) -> JobDecision {
    let store = shared.gateway.store().clone();
    let by = shared.principal(&message.person);
    let (id, text) = (work.id.clone(), words.clone());
    if !message.files.is_empty() && !is_over(&store, run) {
        let text = "A run gets files only with its goal, so nothing was added. Send the words alone, \
                    or the files as a new goal.";
        return say(shared, message, text.to_owned());
    }
    let told = blocking(move || tell(&store, run, &id, by, text, attempt)).await;
    let name = run.short();
    match told {
        Ok(TellResult::Added) => say(shared, message, format!("Run {name} is told.")),
        Ok(TellResult::Over) => new_task(shared, message, words, Some(run)),
        Ok(TellResult::Parked) if !shared.gateway.with(|queue| queue.is_open(run)) => {
            let (shared, message, id) = (Arc::clone(shared), message.clone(), work.id.clone());
            Box::new(move |record, numbers| {
                conversation::resume(&shared, record, numbers, &message, run, &id)
            })
        }
        Ok(TellResult::Parked) => say(shared, message, format!("Run {name} is told.")),
        // It could not begin, and never will.
        Ok(TellResult::NotBegun) if is_done(shared, run) => new_task(shared, message, words, None),
        Ok(TellResult::NotBegun) => {
            let text = format!("Run {name} has not begun yet. Say it again when it has.");
            say(shared, message, text)
        }
        Err(error) => say(
            shared,
            message,
            format!("Run {name} cannot be told: {error}"),
        ),
    }
}

fn is_over(store: &Store, run: RunId) -> bool {
    matches!(RunState::of(store, run), Ok(RunState::Over(_)))
}

fn is_done(shared: &AccountInner, run: RunId) -> bool {
    shared.with(|record| record.tasks.get(&run).is_none_or(ChatTask::is_over))
}

pub(super) fn new_task(
    shared: &Arc<AccountInner>,
    message: &IncomingMessage,
    words: String,
    continues: Option<RunId>,
) -> JobDecision {
    let (shared, message) = (Arc::clone(shared), message.clone());
    Box::new(move |record, numbers| {
        conversation::task(&shared, record, numbers, &message, &words, continues)
    })
}

enum TellResult {
    Added,
    /// The run got the message, and may have to be resumed.
    Parked,
    Over,
    NotBegun,
}

fn tell(
    store: &Store,
    run: RunId,
    id: &str,
    by: Principal,
    text: String,
    attempt: JobAttempt,
) -> Result<TellResult, String> {
    if !store.exists(&log_name(run)) {
        return Ok(TellResult::NotBegun);
    }
    let in_words = |error: &(dyn std::error::Error + 'static)| gyrus_net::causes(error);
    if attempt == JobAttempt::Again && was_told(store, run, id).map_err(|error| in_words(&error))? {
        return Ok(TellResult::Added);
    }
    let told = match RunState::of(store, run).map_err(|error| in_words(&error))? {
        RunState::Over(_) | RunState::Record(_) => return Ok(TellResult::Over),
        RunState::NeverBegan => return Ok(TellResult::NotBegun),
        RunState::Running(_) => TellResult::Added,
        RunState::Parked(_) | RunState::CutOff => TellResult::Parked,
    };
    let sent = approvals::send_as(store, run, id, by, MessageBody::steer(text));
    sent.map_err(|error| in_words(&error))?;
    Ok(told)
}

fn was_told(store: &Store, run: RunId, id: &str) -> Result<bool, gyrus_journal::Error> {
    for entry in store.reader(&log_name(run))?.entries_back()? {
        if let Ok(Entry::Steered(steered)) = gyrus_kernel::parse(&entry?)
            && steered.messages.iter().any(|message| message.id == id)
        {
            return Ok(true);
        }
    }
    Ok(false)
}
