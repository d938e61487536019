//! From an update to what follows from it, as far as the state alone decides. Everything else is
//! noted as pending, and carried out by `jobs`.

use std::sync::Arc;

use gyrus_contract::{Origin, RunId, Text};
use gyrus_kernel::now_ms;
use gyrus_runtime::request::RunRequest;
use gyrus_text::{counted, one_line};

use crate::{
    messenger::{ChatEvent, ChatPlace, IncomingFile, IncomingMessage, KindOfFile},
    pairing::CodeTried,
    progress,
    record::{
        ChatChange, ChatMessage, ChatRecord, ChatTask, MessageForm, MessageSubject, Numbers,
        OutgoingState, PairedPerson, PendingWork, TaskStage,
    },
    shared::AccountInner,
    split::split,
    words::{self, ChatWords},
};

/// Maximum number of runs of a chat that are not over.
const OPEN_TASKS: usize = 2_000;

/// Maximum number of files that come with a goal.
const FILES: usize = 10;

/// Maximum number of messages for one text.
const PARTS: usize = 20;

/// Conversation, replied-to message and subject of a message to send.
#[derive(Debug, Clone)]
pub(crate) struct ReplyTarget {
    pub(crate) chat: String,
    pub(crate) reply_to: Option<String>,
    pub(crate) about: MessageSubject,
}

impl ReplyTarget {
    pub(crate) fn to(message: &IncomingMessage) -> Self {
        Self {
            chat: message.chat.clone(),
            reply_to: Some(message.message.clone()),
            about: MessageSubject::Nothing,
        }
    }

    /// Creates the target of a reply to the message that asked for a run.
    pub(crate) fn of(task: &ChatTask) -> Self {
        Self {
            chat: task.asked.chat.clone(),
            reply_to: Some(task.asked.message.clone()),
            about: MessageSubject::Run(task.run),
        }
    }

    pub(crate) fn about(mut self, about: MessageSubject) -> Self {
        self.about = about;
        self
    }

    /// Sends a text in as many messages as it needs, the last with the buttons. Returns the number
    /// of that one.
    pub(crate) fn say(
        &self,
        shared: &AccountInner,
        numbers: &mut Numbers,
        text: &str,
        buttons: Vec<(String, String)>,
        changes: &mut Vec<ChatChange>,
    ) -> u64 {
        let messenger = &shared.messenger;
        let mut parts = split(text, messenger.limits().text, |text| messenger.length(text));
        parts.truncate(PARTS);
        if parts.is_empty() {
            parts.push("(nothing)".to_owned());
        }
        let last = parts.len() - 1;
        let mut buttons = Some(buttons);
        let mut number = 0;
        for (index, text) in parts.into_iter().enumerate() {
            let buttons = if index == last { buttons.take() } else { None };
            let buttons = buttons.unwrap_or_default();
            number = self.add(numbers, MessageForm::Text { text, buttons }, changes);
        }
        number
    }

    pub(crate) fn add(
        &self,
        numbers: &mut Numbers,
        what: MessageForm,
        changes: &mut Vec<ChatChange>,
    ) -> u64 {
        let number = numbers.next();
        changes.push(ChatChange::Say(Box::new(ChatMessage {
            number,
            chat: self.chat.clone(),
            reply_to: self.reply_to.clone(),
            what,
            about: self.about,
            state: OutgoingState::Waiting,
        })));
        number
    }
}

/// Decides about the reaction to an update.
pub(crate) fn follow_from(
    shared: &Arc<AccountInner>,
    record: &ChatRecord,
    numbers: &mut Numbers,
    event: ChatEvent,
) -> Vec<ChatChange> {
    match event {
        ChatEvent::Other => Vec::new(),
        ChatEvent::Moved { from, to } => {
            let is_known = record.is_one_of(&from, &shared.settings.groups);
            if is_known {
                let surface = shared.messenger.surface();
                shared.host.say(&format!(
                    "chat {surface}: the group {from} is now {to}; write that into config.toml\n"
                ));
            }
            Vec::from_iter(is_known.then_some(ChatChange::Moved { from, to }))
        }
        ChatEvent::Press(press)
            if record.is_paired(&press.person) && shared.may_write_to(record, &press.chat) =>
        {
            vec![pending(numbers, ChatEvent::Press(press))]
        }
        ChatEvent::Press(press) => {
            let shared = Arc::clone(shared);
            tokio::spawn(async move {
                let words = "This is not yours to answer.";
                let _ = shared.messenger.acknowledge(&press.press, words).await;
            });
            Vec::new()
        }
        ChatEvent::Message(message) if record.is_paired(&message.person) => {
            let is_allowed = message.is_private || shared.may_write_to(record, &message.chat);
            if !is_allowed || !message.is_for_us {
                return Vec::new();
            }
            paired(shared, record, numbers, *message)
        }
        ChatEvent::Message(message) => stranger(shared, numbers, &message),
    }
}

fn pending(numbers: &mut Numbers, event: ChatEvent) -> ChatChange {
    ChatChange::Pending {
        number: numbers.next(),
        work: PendingWork {
            id: gyrus_contract::time_ordered_uuid().to_string(),
            event,
        },
    }
}

/// Handles a message of a person who is not paired. Almost always it is ignored.
fn stranger(
    shared: &Arc<AccountInner>,
    numbers: &mut Numbers,
    message: &IncomingMessage,
) -> Vec<ChatChange> {
    if !message.is_private || message.is_forwarded {
        return Vec::new();
    }
    match words::read(&message.text) {
        ChatWords::Pair(code) => {
            let tried = shared.pairing.lock().try_code(&code);
            match tried {
                CodeTried::Right => pair(shared, numbers, message),
                CodeTried::Wrong => {
                    greet(shared, message.chat.clone(), "That is not the code.");
                    Vec::new()
                }
                CodeTried::NoneOpen => Vec::new(),
            }
        }
        ChatWords::Start => {
            greet(
                shared,
                message.chat.clone(),
                "This bot works for the people who are paired with it.",
            );
            Vec::new()
        }
        ChatWords::Run(_)
        | ChatWords::Stop(_)
        | ChatWords::Status
        | ChatWords::Screenshot
        | ChatWords::Approve
        | ChatWords::Memory(_)
        | ChatWords::Agents(_)
        | ChatWords::Help
        | ChatWords::Plain(_)
        | ChatWords::Unknown(_) => Vec::new(),
    }
}

/// Sends one sentence to a person who is not paired, at most once in a while to all of them.
fn greet(shared: &Arc<AccountInner>, chat: String, text: impl Into<String>) {
    if !shared.board.lock().may_greet() {
        return;
    }
    let (shared, text) = (Arc::clone(shared), text.into());
    tokio::spawn(async move {
        let message = crate::messenger::NewMessage {
            chat,
            reply_to: None,
            text,
            buttons: Vec::new(),
        };
        let _ = shared.messenger.send(&message).await;
    });
}

fn pair(
    shared: &Arc<AccountInner>,
    numbers: &mut Numbers,
    message: &IncomingMessage,
) -> Vec<ChatChange> {
    let surface = shared.messenger.surface();
    let name = one_line(&message.name).into_owned();
    let person = &message.person;
    shared.host.say(&format!(
        "chat {surface}: {person} ({name}) is paired; to take that back: gyrus chat remove {surface} {person}\n"
    ));
    let mut changes = vec![ChatChange::Paired(PairedPerson {
        id: person.clone(),
        chat: message.chat.clone(),
        name,
        since_ms: now_ms(),
    })];
    let text = format!("You are paired.\n\n{}", words::help());
    ReplyTarget::to(message).say(shared, numbers, &text, Vec::new(), &mut changes);
    changes
}

fn paired(
    shared: &Arc<AccountInner>,
    record: &ChatRecord,
    numbers: &mut Numbers,
    mut message: IncomingMessage,
) -> Vec<ChatChange> {
    let is_voice = |file: &IncomingFile| file.kind == KindOfFile::Voice;
    let is_spoken = message.files.iter().any(is_voice);
    let answer = if message.is_forwarded && message.files.is_empty() {
        "A forwarded message is not followed. Write it yourself.".to_owned()
    } else if message.is_forwarded {
        // What somebody else sent may be worked on; their words are not followed.
        message.text.clear();
        return hold(shared, record, numbers, &message);
    } else if !is_spoken {
        match typed(shared, record, numbers, &message) {
            WordsOutcome::Changes(changes) => return changes,
            WordsOutcome::Answer(answer) => answer,
        }
    } else if message.reply_to.is_some() {
        "A voice message begins a run. To answer, or to add to a run, write.".to_owned()
    } else if shared.settings.transcription.is_some() {
        return task(shared, record, numbers, &message, "", None);
    } else {
        "Voice messages need a server that transcribes them: `transcribe` in the section of this \
         chat in config.toml."
            .to_owned()
    };
    let mut changes = Vec::new();
    ReplyTarget::to(&message).say(shared, numbers, &answer, Vec::new(), &mut changes);
    changes
}

enum WordsOutcome {
    Changes(Vec<ChatChange>),
    Answer(String),
}

/// Handles text that a person of the chat typed.
fn typed(
    shared: &AccountInner,
    record: &ChatRecord,
    numbers: &mut Numbers,
    message: &IncomingMessage,
) -> WordsOutcome {
    let later = |numbers: &mut Numbers| {
        let event = ChatEvent::Message(Box::new(message.clone()));
        WordsOutcome::Changes(vec![pending(numbers, event)])
    };
    let answer = match words::read(&message.text) {
        ChatWords::Plain(words) if words.is_empty() && message.files.is_empty() => {
            return WordsOutcome::Changes(Vec::new());
        }
        ChatWords::Plain(words) if words.is_empty() => {
            return WordsOutcome::Changes(hold(shared, record, numbers, message));
        }
        ChatWords::Run(goal) if goal.is_empty() => {
            "Write the goal behind it: /run count the lines of notes.txt".to_owned()
        }
        ChatWords::Plain(goal) if message.reply_to.is_none() => {
            return WordsOutcome::Changes(task(shared, record, numbers, message, &goal, None));
        }
        ChatWords::Run(goal) => {
            return WordsOutcome::Changes(task(shared, record, numbers, message, &goal, None));
        }
        ChatWords::Help | ChatWords::Start => words::help(),
        ChatWords::Pair(_) => "You are paired already.".to_owned(),
        ChatWords::Unknown(name) => {
            let name = gyrus_text::quote(&format!("/{name}"), 40);
            format!("There is no command {name}.\n\n{}", words::help())
        }
        ChatWords::Memory(words) if words.is_empty() => {
            "Write words to search for behind it: /memory backup".to_owned()
        }
        ChatWords::Plain(_)
        | ChatWords::Stop(_)
        | ChatWords::Status
        | ChatWords::Screenshot
        | ChatWords::Approve
        | ChatWords::Memory(_)
        | ChatWords::Agents(_) => return later(numbers),
    };
    WordsOutcome::Answer(answer)
}

/// Stores files until their sender says what to do with them.
fn hold(
    shared: &AccountInner,
    record: &ChatRecord,
    numbers: &mut Numbers,
    message: &IncomingMessage,
) -> Vec<ChatChange> {
    let place = (message.chat.clone(), message.person.clone());
    let mut files = record.held(&place).to_vec();
    files.extend(message.files.iter().cloned());
    if files.len() > FILES {
        files.drain(..files.len() - FILES);
    }
    let count = counted(files.len(), "file");
    let mut changes = vec![ChatChange::Held { place, files }];
    let text = format!("{count} kept. Say what to do with them.");
    ReplyTarget::to(message).say(shared, numbers, &text, Vec::new(), &mut changes);
    changes
}

/// Creates a run for a goal, with the files that came with it and before it. An empty goal is
/// spoken.
pub(crate) fn task(
    shared: &AccountInner,
    record: &ChatRecord,
    numbers: &mut Numbers,
    message: &IncomingMessage,
    goal: &str,
    continues: Option<RunId>,
) -> Vec<ChatChange> {
    let mut changes = Vec::new();
    let speaking = ReplyTarget::to(message);
    let place = (message.chat.clone(), message.person.clone());
    let held = record.held(&place);
    let mut files: Vec<IncomingFile> = message.files.clone();
    // The words of a goal that is spoken come first.
    files.sort_by_key(|file| file.kind != KindOfFile::Voice);
    files.extend(held.iter().cloned());
    if let Some(refusal) = refusal(shared, record, &files) {
        speaking.say(shared, numbers, &refusal, Vec::new(), &mut changes);
        return changes;
    }
    if !held.is_empty() {
        let files = Vec::new();
        changes.push(ChatChange::Held { place, files });
    }
    let run = RunId::new();
    let (gist, state) = if goal.is_empty() {
        ("(a voice message)".to_owned(), "is transcribed")
    } else {
        (progress::gist(goal), "accepted")
    };
    let state = if shared.is_stopped() {
        "waits: everything is stopped until somebody types gyrus rearm at the machine"
    } else {
        state
    };
    let stage = if files.is_empty() {
        let goal = Text::new(goal, Origin::Person);
        TaskStage::Ready(Box::new(RunRequest {
            options: shared.settings.options.clone(),
            continues,
            ..RunRequest::new(goal, shared.settings.workdir.clone())
        }))
    } else {
        TaskStage::Preparing {
            goal: goal.to_owned(),
            files,
            continues,
        }
    };
    let text = progress::heading(run, &gist, state);
    let speaking = speaking.about(MessageSubject::Run(run));
    let status = speaking.say(shared, numbers, &text, Vec::new(), &mut changes);
    changes.push(ChatChange::Task(Box::new(ChatTask {
        run,
        asked: ChatPlace {
            chat: message.chat.clone(),
            message: message.message.clone(),
        },
        person: message.person.clone(),
        gist,
        status,
        files: Vec::new(),
        stage,
    })));
    changes
}

pub(crate) fn resume(
    shared: &AccountInner,
    record: &ChatRecord,
    numbers: &mut Numbers,
    message: &IncomingMessage,
    run: RunId,
    key: &str,
) -> Vec<ChatChange> {
    let known = record.tasks.get(&run);
    if known.is_some_and(|task| !task.is_over()) {
        return Vec::new();
    }
    let mut changes = Vec::new();
    let gist = known.map_or_else(|| progress::gist(&message.text), |task| task.gist.clone());
    let text = progress::heading(run, &gist, "goes on");
    let speaking = ReplyTarget::to(message).about(MessageSubject::Run(run));
    let status = speaking.say(shared, numbers, &text, Vec::new(), &mut changes);
    changes.push(ChatChange::Task(Box::new(ChatTask {
        run,
        asked: ChatPlace {
            chat: message.chat.clone(),
            message: message.message.clone(),
        },
        person: message.person.clone(),
        gist,
        status,
        files: Vec::new(),
        stage: TaskStage::Resumed {
            key: key.to_owned(),
        },
    })));
    changes
}

/// Returns the reason why a goal with these files is not taken, if there is one.
fn refusal(shared: &AccountInner, record: &ChatRecord, files: &[IncomingFile]) -> Option<String> {
    let most = shared.messenger.limits().file_bytes;
    let limit = u64::try_from(most).unwrap_or(u64::MAX);
    let is_large = |file: &IncomingFile| file.bytes.is_some_and(|bytes| bytes > limit);
    if record.open_tasks().count() >= OPEN_TASKS {
        return Some(
            "Too many runs wait already. Wait until some are done, or stop them.".to_owned(),
        );
    }
    if files.len() > FILES {
        return Some(format!("At most {FILES} files come with a goal."));
    }
    let is_refused = files.iter().any(is_large);
    is_refused.then(|| format!("A file is larger than {} MB.", most / 1_000_000))
}
