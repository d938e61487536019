//! Looks at what runs, what waits, and what a run shows or left.

use std::sync::Arc;

use gyrus_contract::RunId;
use gyrus_journal::Store;
use gyrus_kernel::{
    Register, RunState,
    approvals::{self, OpenQuestion},
};
use gyrus_runtime::{blocking, queue::CommandStage};
use gyrus_surfaces::{ShownProcesses, left_files::read_left_file};
use gyrus_text::{counted, quote};

use super::decision::{JobDecision, nothing, say};
use crate::{
    conversation::ReplyTarget,
    files::picture_ending,
    following::WrittenCard,
    messenger::{IncomingMessage, PressedButton},
    record::{ChatRecord, MessageForm, MessageSubject},
    shared::AccountInner,
};

/// Maximum number of open questions, and of runs, in one message.
const SHOWN_QUESTIONS: usize = 10;

const SHOWN_RUNS: usize = 20;

/// Maximum length of a quoted message, in characters.
const QUOTED: usize = 80;

pub(super) async fn printed(
    shared: &Arc<AccountInner>,
    message: &IncomingMessage,
    arguments: Vec<String>,
) -> JobDecision {
    let text = match shared.host.command(arguments).await {
        Ok(printed) if printed.trim().is_empty() => "Nothing was found.".to_owned(),
        Ok(printed) => printed,
        Err(why) => why,
    };
    say(shared, message, text)
}

/// Returns a description of the running and waiting runs.
pub(super) fn status(shared: &AccountInner) -> String {
    let store = shared.gateway.store();
    let mut lines = Vec::new();
    let (queued, running) = shared.gateway.with(|queue| {
        let all = queue.all();
        let queued = all
            .iter()
            .filter(|one| matches!(one.stage, CommandStage::Queued));
        (queued.count(), queue.running())
    });
    let unfinished = Register::read(store).unwrap_or_default().unfinished(store);
    for run in unfinished.into_iter().rev().filter(|run| run.is_root()) {
        let state = match RunState::of(store, run) {
            Ok(RunState::Running(_)) => "runs".to_owned(),
            Ok(RunState::Parked(ending)) => format!("parked, {}", gyrus_kernel::summary(&ending)),
            Ok(RunState::CutOff) => "cut off".to_owned(),
            Ok(RunState::Over(_) | RunState::NeverBegan | RunState::Record(_)) | Err(_) => {
                continue;
            }
        };
        if lines.len() == SHOWN_RUNS {
            lines.push("…".to_owned());
            break;
        }
        let gist = shared.with(|record| Some(record.tasks.get(&run)?.gist.clone()));
        let gist = gist.map(|gist| format!(": {gist}")).unwrap_or_default();
        lines.push(format!("{} {state}{gist}", run.short()));
        let processes = ShownProcesses::read(store, run).into_iter();
        lines.extend(processes.map(|process| format!("  in the background: {}", process.line)));
    }
    let mut text = format!("{} at work, {queued} waiting.", counted(running, "run"));
    if shared.is_stopped() {
        text.push_str("\nEverything is stopped: gyrus rearm");
    }
    let unknown = shared.with(ChatRecord::unknown);
    if unknown > 0 {
        let messages = counted(unknown, "message");
        text.push_str(&format!("\nThe delivery of {messages} is unknown."));
    }
    for line in lines {
        text.push('\n');
        text.push_str(&line);
    }
    text
}

/// Shows the open questions of all runs, each as a card with buttons.
pub(super) async fn questions(
    shared: &Arc<AccountInner>,
    message: &IncomingMessage,
) -> JobDecision {
    let store = shared.gateway.store().clone();
    let mut open = blocking(move || all_open(&store)).await;
    if open.is_empty() {
        return say(shared, message, "Nothing waits for an answer.".to_owned());
    }
    let more = open.len().saturating_sub(SHOWN_QUESTIONS);
    open.truncate(SHOWN_QUESTIONS);
    let mut cards = Vec::new();
    for (task, open) in open {
        cards.push(WrittenCard::write(shared, task, open).await);
    }
    let (shared, speaking) = (Arc::clone(shared), ReplyTarget::to(message));
    Box::new(move |_, numbers| {
        let mut changes = Vec::new();
        for card in cards {
            card.show(numbers, &speaking, &mut changes);
        }
        if more > 0 {
            let text = format!("{more} more wait; ask again when these are answered.");
            speaking.say(&shared, numbers, &text, Vec::new(), &mut changes);
        }
        changes
    })
}

/// Returns the open questions with the runs that people started, oldest first.
fn all_open(store: &Store) -> Vec<(RunId, OpenQuestion)> {
    let unfinished = Register::read(store).unwrap_or_default().unfinished(store);
    let mut found = Vec::new();
    for run in unfinished.into_iter().filter(|run| run.is_root()) {
        // One that was removed or is damaged asks nothing.
        let open = approvals::unanswered(store, run).unwrap_or_default();
        found.extend(open.into_iter().map(|open| (run, open)));
    }
    found.sort_by_key(|(_, open)| open.valid.from_ms);
    found
}

pub(super) async fn screenshot(
    shared: &Arc<AccountInner>,
    message: &IncomingMessage,
    replied: Option<RunId>,
) -> JobDecision {
    let newest = || {
        shared.with(|record| {
            let here = record
                .open_tasks()
                .filter(|task| task.asked.chat == message.chat);
            here.map(|task| task.run).max()
        })
    };
    let Some(run) = replied.or_else(newest) else {
        let text = "No run is at work here; reply to a message of the run.";
        return say(shared, message, text.to_owned());
    };
    match shared.host.picture(run).await {
        Ok(bytes) => {
            let speaking = ReplyTarget::to(message);
            send_file(shared, speaking, run, "screen.png", bytes).await
        }
        Err(why) => say(shared, message, format!("Run {}: {why}", run.short())),
    }
}

/// Sends a file, as a picture if the messenger can show it.
async fn send_file(
    shared: &Arc<AccountInner>,
    speaking: ReplyTarget,
    run: RunId,
    name: &str,
    bytes: Vec<u8>,
) -> JobDecision {
    let limits = shared.messenger.limits();
    let is_picture = picture_ending(&bytes).is_some() && bytes.len() <= limits.picture_bytes;
    let spool = shared.spool.clone();
    let kept = blocking(move || spool.put(&bytes)).await;
    let (shared, name) = (Arc::clone(shared), name.to_owned());
    let speaking = speaking.about(MessageSubject::Run(run));
    Box::new(move |_, numbers| {
        let mut changes = Vec::new();
        match kept {
            Ok(kept) => {
                let what = MessageForm::File {
                    kept,
                    name,
                    caption: format!("Run {}", run.short()),
                    is_picture,
                };
                speaking.add(numbers, what, &mut changes);
            }
            Err(error) => {
                let text = format!("The file cannot be kept for sending: {error}");
                speaking.say(&shared, numbers, &text, Vec::new(), &mut changes);
            }
        }
        changes
    })
}

/// Sends a file that a run produced.
pub(super) async fn file_of(
    shared: &Arc<AccountInner>,
    press: &PressedButton,
    run: RunId,
    index: u64,
) -> (String, JobDecision) {
    let path = shared.with(|record| {
        let files = &record.tasks.get(&run)?.files;
        files.get(usize::try_from(index).ok()?).cloned()
    });
    let Some(path) = path else {
        return ("This file is not known any more.".to_owned(), nothing());
    };
    let (store, wanted) = (shared.gateway.store().clone(), path.clone());
    let most = shared.messenger.limits().file_bytes;
    let read = blocking(move || {
        let workspace = gyrus_kernel::workspace(&store, run)
            .ok_or_else(|| std::io::Error::other("the run is gone"))?;
        read_left_file(&workspace, &wanted, most)
    });
    let name = path.rsplit('/').next().unwrap_or("file").to_owned();
    match read.await {
        Ok(bytes) => {
            let speaking = ReplyTarget {
                chat: press.chat.clone(),
                reply_to: Some(press.message.clone()),
                about: MessageSubject::Run(run),
            };
            let decision = send_file(shared, speaking, run, &name, bytes).await;
            ("It is on its way.".to_owned(), decision)
        }
        Err(error) => (
            format!("{} cannot be sent: {error}", quote(&name, QUOTED)),
            nothing(),
        ),
    }
}
