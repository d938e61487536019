//! A run from its goal to its result: its files are fetched, it is submitted to the queue, followed,
//! and its result is said.

use std::{
    io::{
        self,
        ErrorKind::{QuotaExceeded, StorageFull},
    },
    sync::Arc,
    time::Duration,
};

use gyrus_contract::{BoxedFuture, Origin, RunId, Text};
use gyrus_kernel::{Ending, RunState, StandingRun, log_name};
use gyrus_runtime::{
    blocking,
    ledger::{LedgerError, TRY_AGAIN, is_of_disk},
    queue::{QueueCommand, QueueError, QueueWork},
    request::RunRequest,
};
use gyrus_text::readable;

use crate::{
    cards,
    conversation::ReplyTarget,
    files::GivenFile,
    following::{self, FollowedToEnd},
    messenger::{IncomingFile, KindOfFile, MessengerError},
    progress,
    record::{ChatChange, ChatTask, MessageForm, TaskStage},
    shared::AccountInner,
    split::split,
};

/// Number of messages that an answer may fill; a longer one is sent as a file.
const ANSWER_PARTS: usize = 3;

/// Room in a message for words about the rest of an answer.
const ROOM: usize = 60;

/// Columns of the last state of a run.
const STATE_COLUMNS: usize = 200;

/// Number of attempts to fetch a file, and the time between two.
const FETCHES: u32 = 5;
const FETCH_AGAIN: Duration = Duration::from_secs(2);

/// Time before a run is submitted again to a full queue.
const QUEUE_AGAIN: Duration = Duration::from_secs(2);

pub(crate) fn drive(shared: Arc<AccountInner>, run: RunId) -> BoxedFuture<'static, ()> {
    Box::pin(async move {
        if let Err(error) = to_end(&shared, run).await {
            shared.failed(&error);
        }
    })
}

async fn to_end(shared: &Arc<AccountInner>, run: RunId) -> Result<(), LedgerError> {
    let Some(mut task) = shared.with(|record| record.tasks.get(&run).cloned()) else {
        return Ok(());
    };
    if let TaskStage::Preparing {
        goal,
        files,
        continues,
    } = &task.stage
    {
        match prepare(shared, &task, goal, files, *continues).await? {
            Ok(ready) => task = ready,
            Err(why) => return end(shared, task, Err(why)).await,
        }
    }
    let submitted = match &task.stage {
        TaskStage::Ready(request) => start(shared, &task, request).await,
        TaskStage::Resumed { key } => resume(shared, &task, key).await,
        TaskStage::Preparing { .. } | TaskStage::Over => return Ok(()),
    };
    match submitted {
        Ok(()) => {
            let followed = following::follow(shared, &task).await?;
            shared.spool.forget(run);
            end(shared, task, Ok(followed)).await
        }
        Err(why) => end(shared, task, Err(why)).await,
    }
}

/// Downloads the files of a task, and prepares its request.
async fn prepare(
    shared: &Arc<AccountInner>,
    task: &ChatTask,
    goal: &str,
    files: &[IncomingFile],
    continues: Option<RunId>,
) -> Result<Result<ChatTask, String>, LedgerError> {
    let (mut texts, mut pictures, mut in_workdir) = (Vec::new(), Vec::new(), Vec::new());
    let mut goal = Text::new(goal, Origin::Person);
    let mut heard = None;
    for (index, file) in files.iter().enumerate() {
        let bytes = match fetch(shared, file).await {
            Ok(bytes) => bytes,
            Err(why) => return Ok(Err(format!("a file cannot be fetched: {why}"))),
        };
        if file.kind == KindOfFile::Voice {
            match transcribe(shared, file, &bytes).await {
                Ok(words) => {
                    // Words that were misheard vouch for nothing.
                    let name = "transcription".to_owned();
                    goal = Text::new(words.clone(), Origin::Tool { name });
                    heard = Some(words);
                }
                Err(why) => return Ok(Err(why)),
            }
            continue;
        }
        match keep(shared, task.run, (index, &file.name), bytes).await {
            Ok(GivenFile::Text(path)) => texts.push(path),
            Ok(GivenFile::Picture(path)) => pictures.push(path),
            Ok(GivenFile::InWorkdir(path)) => in_workdir.push(path),
            Err(error) => return Ok(Err(format!("a file cannot be kept: {error}"))),
        }
    }
    if !in_workdir.is_empty() {
        let paths = in_workdir.join(", ");
        goal.text
            .push_str(&format!("\n\nFiles that came with this: {paths}"));
    }
    let mut options = shared.settings.options.clone();
    options.context.file.extend(texts);
    options.context.image.extend(pictures);
    let mut ready = task.clone();
    if let Some(heard) = &heard {
        ready.gist = progress::gist(heard);
    }
    ready.stage = TaskStage::Ready(Box::new(RunRequest {
        options,
        continues,
        ..RunRequest::new(goal, shared.settings.workdir.clone())
    }));
    shared
        .commit(|_, numbers| {
            let mut changes = vec![ChatChange::Task(Box::new(ready.clone()))];
            if let Some(heard) = &heard {
                let text = format!("Heard: {}", readable(heard));
                ReplyTarget::of(task).say(shared, numbers, &text, Vec::new(), &mut changes);
            }
            (changes, ())
        })
        .await?;
    Ok(Ok(ready))
}

/// Keeps a file that somebody sent, however long the disk is full.
async fn keep(
    shared: &AccountInner,
    run: RunId,
    (index, name): (usize, &str),
    bytes: Vec<u8>,
) -> io::Result<GivenFile> {
    let bytes: Arc<[u8]> = bytes.into();
    loop {
        let (spool, workdir) = (shared.spool.clone(), shared.settings.workdir.clone());
        let (name, bytes) = (name.to_owned(), Arc::clone(&bytes));
        let kept = blocking(move || spool.keep(run, index, &name, &bytes, &workdir)).await;
        match kept {
            Err(error) if matches!(error.kind(), StorageFull | QuotaExceeded) => {
                tokio::time::sleep(TRY_AGAIN).await;
            }
            kept => return kept,
        }
    }
}

async fn fetch(shared: &AccountInner, file: &IncomingFile) -> Result<Vec<u8>, String> {
    let most = shared.messenger.limits().file_bytes;
    let mut attempts = 1;
    loop {
        let wait = match shared.messenger.fetch(&file.id, most).await {
            Ok(bytes) => return Ok(bytes),
            Err(MessengerError::TooFast { after }) => after,
            Err(MessengerError::Later { .. }) if attempts < FETCHES => FETCH_AGAIN * attempts,
            Err(error) => return Err(error.to_string()),
        };
        attempts += 1;
        tokio::time::sleep(wait).await;
    }
}

async fn transcribe(
    shared: &AccountInner,
    file: &IncomingFile,
    bytes: &[u8],
) -> Result<String, String> {
    let Some(transcription) = &shared.settings.transcription else {
        return Err("no server is configured that transcribes voice messages".to_owned());
    };
    let words = transcription.words(&file.name, bytes).await;
    match words {
        Ok(words) if words.is_empty() => Err("no words were heard".to_owned()),
        Ok(words) => Ok(words),
        Err(why) => Err(format!("the voice message cannot be transcribed: {why}")),
    }
}

/// Submits a new run to the queue exactly once, even after a crash in between: its id is the key.
pub(crate) async fn start(
    shared: &Arc<AccountInner>,
    task: &ChatTask,
    request: &RunRequest,
) -> Result<(), String> {
    let run = task.run;
    let is_known = shared.gateway.with(|queue| queue.of_run(run).is_some())
        // The queue forgets what ended long ago.
        || shared.gateway.store().exists(&log_name(run));
    if is_known {
        return Ok(());
    }
    let (host, request) = (Arc::clone(&shared.host), request.clone());
    let request = blocking(move || host.check(request)).await;
    let request = request.map_err(|refused| refused.to_string())?;
    let agent = request.agent().to_owned();
    let work = QueueWork::Start(Box::new(request));
    submit(shared, task, work, agent, run.to_string()).await
}

/// Submits a run to the queue again, under a key that no other command has.
async fn resume(shared: &Arc<AccountInner>, task: &ChatTask, key: &str) -> Result<(), String> {
    let (store, run) = (shared.gateway.store().clone(), task.run);
    let standing = blocking(move || StandingRun::read(&store, run)).await;
    let started = standing.map_err(|error| gyrus_net::causes(&error))?.started;
    submit(
        shared,
        task,
        QueueWork::Resume,
        started.agent,
        key.to_owned(),
    )
    .await
}

async fn submit(
    shared: &Arc<AccountInner>,
    task: &ChatTask,
    work: QueueWork,
    agent: String,
    key: String,
) -> Result<(), String> {
    let from = shared.principal(&task.person);
    let new = QueueCommand {
        key: Some(key),
        ..QueueCommand::new(work, Some(task.run), from, agent)
    };
    loop {
        match shared.gateway.submit(new.clone()).await {
            Ok(_) => return Ok(()),
            Err(QueueError::Full) => tokio::time::sleep(QUEUE_AGAIN).await,
            Err(error) if is_of_disk(&error) => tokio::time::sleep(QUEUE_AGAIN).await,
            Err(error) => return Err(gyrus_net::causes(&error)),
        }
    }
}

/// Sends the result of a task, and records in the same fact that it is over.
async fn end(
    shared: &Arc<AccountInner>,
    mut task: ChatTask,
    result: Result<FollowedToEnd, String>,
) -> Result<(), LedgerError> {
    let run = task.run;
    let (store, name) = (shared.gateway.store().clone(), run.short());
    let (state, answer) = match result {
        Ok(followed) => {
            task.files = followed.files;
            let ending = blocking(move || match RunState::of(&store, run) {
                Ok(RunState::Over(ending) | RunState::Parked(ending)) => Some(ending),
                Ok(
                    RunState::Running(_)
                    | RunState::CutOff
                    | RunState::NeverBegan
                    | RunState::Record(_),
                )
                | Err(_) => None,
            });
            match (ending.await, followed.summary) {
                (Some(Ending::Reached { claim, strength }), _) => {
                    (strength.word().to_owned(), claim.answer)
                }
                (Some(ending), _) => {
                    let summary = gyrus_kernel::summary(&ending);
                    let more = if ending.is_final() {
                        String::new()
                    } else {
                        "\nA reply to this goes on with it.".to_owned()
                    };
                    (summary.clone(), format!("Run {name}: {summary}{more}"))
                }
                (None, summary) => {
                    let summary = summary.unwrap_or_else(|| "it is gone".to_owned());
                    (summary.clone(), format!("Run {name}: {summary}"))
                }
            }
        }
        Err(why) => (why.clone(), format!("Run {name} could not begin: {why}")),
    };
    task.stage = TaskStage::Over;
    shared.board.lock().forget(run);
    let answer = WrittenAnswer::write(shared, &task, &answer).await;
    shared
        .commit(|_, numbers| {
            let mut changes = Vec::new();
            let state = gyrus_text::clip(&readable(&state), STATE_COLUMNS);
            let text = progress::heading(run, &task.gist, &state);
            let of = task.status;
            let speaking = ReplyTarget::of(&task);
            speaking.add(numbers, MessageForm::Edit { of, text }, &mut changes);
            if let Some(file) = answer.file {
                speaking.add(numbers, file, &mut changes);
            }
            let buttons = cards::files(&task.files);
            speaking.say(shared, numbers, &answer.text, buttons, &mut changes);
            changes.push(ChatChange::Task(Box::new(task)));
            (changes, ())
        })
        .await
}

/// An answer in the form for messages: in a few messages, or its beginning and the whole of it as a
/// file.
struct WrittenAnswer {
    text: String,
    file: Option<MessageForm>,
}

impl WrittenAnswer {
    async fn write(shared: &AccountInner, task: &ChatTask, answer: &str) -> Self {
        let messenger = &shared.messenger;
        let length = |text: &str| messenger.length(text);
        let (limits, whole) = (messenger.limits(), readable(answer).into_owned());
        if split(&whole, limits.text, length).len() <= ANSWER_PARTS {
            return Self {
                text: whole,
                file: None,
            };
        }
        let name = task.run.short();
        let parts = split(&whole, limits.text.saturating_sub(ROOM), length);
        let beginning = parts.into_iter().next().unwrap_or_default();
        let spool = shared.spool.clone();
        let kept = blocking(move || {
            let bytes = gyrus_text::first_bytes(&whole, limits.file_bytes).as_bytes();
            spool.put(bytes)
        });
        match kept.await {
            Ok(kept) => Self {
                text: format!("{beginning}\n… (the rest is in the file)"),
                file: Some(MessageForm::File {
                    kept,
                    name: format!("answer-{name}.md"),
                    caption: "The whole answer.".to_owned(),
                    is_picture: false,
                }),
            },
            Err(_) => Self {
                text: format!("{beginning}\n… (the rest: gyrus show {name})"),
                file: None,
            },
        }
    }
}
