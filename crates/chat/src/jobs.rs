//! Things that people ask for that take more than the state of the chat: answers to cards, words for runs,
//! and looks at things.
//!
//! A job is carried out at least once, so what it does to a run must not happen twice: an answer is
//! bound to its card, a message in an inbox has the id of the job.

use std::{sync::Arc, time::Duration};

use gyrus_contract::{Boxed, MessageBody, Principal, RunId};
use gyrus_journal::Store;
use gyrus_kernel::{
    Entry, RunState,
    approvals::{self, ApprovalAnswer, ApprovalReach, Delivery, OpenQuestion},
    log_name,
};
use gyrus_runtime::{
    ledger::LedgerError,
    queue::{QueueError, Stage},
};
use gyrus_text::{counted, quote, readable};

use crate::{
    cards::{self, ButtonMeaning},
    conversation::{self, Speaking},
    files::left_by_run,
    following::{card_changes, settle},
    messenger::{ChatEvent, ChatPlace, IncomingMessage, PressedButton},
    record::{
        About, ChatChange, ChatRecord, ChatTask, Numbers, OutgoingState, PendingWork, Saying,
        ShownCard,
    },
    shared::{Shared, blocking},
    words::{self, TypedCommand},
};

/// Number of open questions, and of runs, that are shown at once.
const SHOWN_QUESTIONS: usize = 10;
const SHOWN_RUNS: usize = 20;

/// Time within which the id of a message that is being sent is known.
const KNOWN_WITHIN: Duration = Duration::from_secs(10);

/// Number of characters of a message that is quoted.
const QUOTED: usize = 80;

/// Whether a job may have been carried out before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    First,
    /// The process before this one may have begun it.
    Again,
}

/// The decision of a job that has looked at the world.
type Decision = Box<dyn FnOnce(&ChatRecord, &mut Numbers) -> Vec<ChatChange> + Send>;

/// Carries out a pending job, and notes that it is done together with what is said about it.
pub(crate) fn carry_out(shared: Arc<Shared>, number: u64, attempt: Attempt) -> Boxed<'static, ()> {
    Box::pin(async move {
        if let Err(error) = to_end(&shared, number, attempt).await {
            shared.failed(&error);
        }
    })
}

async fn to_end(shared: &Arc<Shared>, number: u64, attempt: Attempt) -> Result<(), LedgerError> {
    let Some(work) = shared.with(|record| record.pending.get(&number).cloned()) else {
        return Ok(());
    };
    let decision = match &work.event {
        ChatEvent::Press(press) => pressed(shared, press).await,
        ChatEvent::Message(message) => written(shared, message, &work, attempt).await,
        ChatEvent::Moved { .. } | ChatEvent::Other => nothing(),
    };
    shared
        .commit(|record, numbers| {
            let mut changes = decision(record, numbers);
            changes.push(ChatChange::Done { number });
            (changes, ())
        })
        .await
}

fn nothing() -> Decision {
    Box::new(|_, _| Vec::new())
}

/// Says a text as a reply to a message.
fn say(shared: &Arc<Shared>, message: &IncomingMessage, text: String) -> Decision {
    let (shared, speaking) = (Arc::clone(shared), Speaking::to(message));
    Box::new(move |_, numbers| {
        let mut changes = Vec::new();
        speaking.say(&shared, numbers, &readable(&text), Vec::new(), &mut changes);
        changes
    })
}

async fn written(
    shared: &Arc<Shared>,
    message: &IncomingMessage,
    work: &PendingWork,
    attempt: Attempt,
) -> Decision {
    let replied = replied(shared, message).await;
    match words::read(&message.text) {
        TypedCommand::Stop(what) => stop(shared, message, &what, replied).await,
        TypedCommand::Status => {
            let looking = Arc::clone(shared);
            let text = blocking(move || status(&looking)).await;
            say(shared, message, text)
        }
        TypedCommand::Approve => questions(shared, message).await,
        TypedCommand::Screenshot => screenshot(shared, message, replied).await,
        TypedCommand::Memory(words) => {
            let arguments = ["memory", "search", "--", &words].map(str::to_owned);
            printed(shared, message, arguments.to_vec()).await
        }
        TypedCommand::Agents => printed(shared, message, vec!["agents".to_owned()]).await,
        TypedCommand::Plain(words) => match replied {
            Some(About::Card(card)) => answer_in_words(shared, message, card, words).await,
            Some(About::Run(run)) => add_to_run(shared, message, run, words, work, attempt).await,
            Some(About::Nothing | About::Unknown(_)) => new_task(shared, message, words, None),
            None => {
                let text = "The message that you reply to is not known here. To begin a run, write \
                            without replying.";
                say(shared, message, text.to_owned())
            }
        },
        TypedCommand::Run(_)
        | TypedCommand::Help
        | TypedCommand::Start
        | TypedCommand::Pair(_)
        | TypedCommand::Unknown(_) => nothing(),
    }
}

/// Returns the subject of the message that a message replies to.
async fn replied(shared: &Shared, message: &IncomingMessage) -> Option<About> {
    let message_id = message.reply_to.clone()?;
    let place = ChatPlace {
        chat: message.chat.clone(),
        message: message_id,
    };
    subject(shared, &place).await
}

/// Returns the subject of a message. People may be quicker than the answer that has its id.
async fn subject(shared: &Shared, place: &ChatPlace) -> Option<About> {
    let mut changes = shared.changes.subscribe();
    let known = async {
        loop {
            changes.borrow_and_update();
            let (about, may_come) = shared.with(|record| {
                let may_come = record.is_sending_to(&place.chat);
                (record.about(place), may_come)
            });
            if about.is_some() || !may_come || changes.changed().await.is_err() {
                return about;
            }
        }
    };
    let known = tokio::time::timeout(KNOWN_WITHIN, known).await;
    known.unwrap_or_default()
}

/// Returns the run that a subject belongs to.
fn run_of(shared: &Shared, about: Option<About>) -> Option<RunId> {
    match about? {
        About::Run(run) => Some(run),
        About::Card(card) => shared.with(|record| Some(record.cards.get(&card)?.task)),
        About::Nothing | About::Unknown(_) => None,
    }
}

async fn printed(
    shared: &Arc<Shared>,
    message: &IncomingMessage,
    arguments: Vec<String>,
) -> Decision {
    let text = match shared.host.command(arguments).await {
        Ok(printed) if printed.trim().is_empty() => "Nothing was found.".to_owned(),
        Ok(printed) => printed,
        Err(why) => why,
    };
    say(shared, message, text)
}

async fn stop(
    shared: &Arc<Shared>,
    message: &IncomingMessage,
    what: &str,
    replied: Option<About>,
) -> Decision {
    let principal = shared.principal(&message.person);
    if let Some(run) = run_of(shared, replied) {
        let text = stop_run(shared, run, principal).await;
        return say(shared, message, text);
    }
    if message.reply_to.is_some() || !matches!(what, "" | "all") {
        let text = "That names no run. Reply /stop to a message of the run, or write /stop alone \
                    to stop everything.";
        return say(shared, message, text.to_owned());
    }
    let reason = format!("asked by {} ({})", principal.id, principal.surface);
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

async fn stop_run(shared: &Arc<Shared>, run: RunId, by: Principal) -> String {
    let name = run.short();
    let queued = shared.gateway.with(|queue| {
        let standing = queue.of_run(run)?;
        matches!(standing.stage, Stage::Queued).then(|| standing.command.id.clone())
    });
    if let Some(command) = queued {
        match shared.gateway.cancel(&command, by.clone()).await {
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

/// Returns what runs and what waits, in words.
fn status(shared: &Shared) -> String {
    let store = shared.gateway.store();
    let mut lines = Vec::new();
    let (queued, running) = shared.gateway.with(|queue| {
        let all = queue.all();
        let queued = all.iter().filter(|one| matches!(one.stage, Stage::Queued));
        (queued.count(), queue.running())
    });
    let runs = gyrus_kernel::runs(store).unwrap_or_default();
    let roots = runs.into_iter().rev().filter(|run| run.is_root());
    for run in roots.filter(|run| !store.is_sealed(&log_name(*run))) {
        let state = match RunState::of(store, run) {
            Ok(RunState::Running(_)) => "runs".to_owned(),
            Ok(RunState::Parked(ending)) => format!("parked, {}", gyrus_kernel::summary(&ending)),
            Ok(RunState::CutOff) => "cut off".to_owned(),
            Ok(RunState::Over(_) | RunState::NeverBegan) | Err(_) => continue,
        };
        if lines.len() == SHOWN_RUNS {
            lines.push("…".to_owned());
            break;
        }
        let gist = shared.with(|record| Some(record.tasks.get(&run)?.gist.clone()));
        let gist = gist.map(|gist| format!(": {gist}")).unwrap_or_default();
        lines.push(format!("{} {state}{gist}", run.short()));
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
async fn questions(shared: &Arc<Shared>, message: &IncomingMessage) -> Decision {
    let store = shared.gateway.store().clone();
    let mut open = blocking(move || all_open(&store)).await;
    if open.is_empty() {
        return say(shared, message, "Nothing waits for an answer.".to_owned());
    }
    let more = open.len().saturating_sub(SHOWN_QUESTIONS);
    open.truncate(SHOWN_QUESTIONS);
    let (shared, speaking) = (Arc::clone(shared), Speaking::to(message));
    Box::new(move |_, numbers| {
        let mut changes = Vec::new();
        for (task, open) in &open {
            card_changes(&shared, numbers, &speaking, *task, open, &mut changes);
        }
        if more > 0 {
            let text = format!("{} more wait; ask again when these are answered.", more);
            speaking.say(&shared, numbers, &text, Vec::new(), &mut changes);
        }
        changes
    })
}

/// Returns the open questions with the runs that people started, oldest first.
fn all_open(store: &Store) -> Vec<(RunId, OpenQuestion)> {
    let runs = gyrus_kernel::runs(store).unwrap_or_default();
    let live = runs
        .into_iter()
        .filter(|run| run.is_root() && !store.is_sealed(&log_name(*run)));
    let mut found = Vec::new();
    for run in live {
        // One that was removed or is damaged asks nothing.
        let open = approvals::open(store, run).unwrap_or_default().into_iter();
        let open = open.filter(|open| {
            !open.is_over() && matches!(approvals::waiting_answer(store, open), Ok(None))
        });
        found.extend(open.map(|open| (run, open)));
    }
    found.sort_by_key(|(_, open)| open.valid.from_ms);
    found
}

async fn screenshot(
    shared: &Arc<Shared>,
    message: &IncomingMessage,
    replied: Option<About>,
) -> Decision {
    let newest = || {
        shared.with(|record| {
            let here = record
                .open_tasks()
                .filter(|task| task.asked.chat == message.chat);
            here.map(|task| task.run).max()
        })
    };
    let Some(run) = run_of(shared, replied).or_else(newest) else {
        let text = "No run is at work here; reply to a message of the run.";
        return say(shared, message, text.to_owned());
    };
    match shared.host.picture(run).await {
        Ok(bytes) => send_file(shared, Speaking::to(message), run, "screen.png", bytes),
        Err(why) => say(shared, message, format!("Run {}: {why}", run.short())),
    }
}

/// Sends a file, as a picture if it is one that is shown.
fn send_file(
    shared: &Arc<Shared>,
    speaking: Speaking,
    run: RunId,
    name: &str,
    bytes: Vec<u8>,
) -> Decision {
    let (shared, name) = (Arc::clone(shared), name.to_owned());
    let speaking = speaking.about(About::Run(run));
    Box::new(move |_, numbers| {
        let mut changes = Vec::new();
        let limits = shared.messenger.limits();
        let is_picture =
            crate::files::picture_ending(&bytes).is_some() && bytes.len() <= limits.picture_bytes;
        let what = Saying::File {
            name,
            caption: format!("Run {}", run.short()),
            is_picture,
        };
        let number = speaking.add(numbers, what, &mut changes);
        if let Err(error) = shared.spool.put(number, &bytes) {
            changes.clear();
            let text = format!("The file cannot be kept for sending: {error}");
            speaking.say(&shared, numbers, &text, Vec::new(), &mut changes);
        }
        changes
    })
}

/// Words for a run: they are added to its goal, or begin a run that goes on from it.
async fn add_to_run(
    shared: &Arc<Shared>,
    message: &IncomingMessage,
    run: RunId,
    words: String,
    work: &PendingWork,
    attempt: Attempt,
) -> Decision {
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
        Ok(Told::Added) => say(shared, message, format!("Run {name} is told.")),
        Ok(Told::Over) => new_task(shared, message, words, Some(run)),
        Ok(Told::Parked) if !shared.gateway.with(|queue| queue.is_open(run)) => {
            let (shared, message, id) = (Arc::clone(shared), message.clone(), work.id.clone());
            Box::new(move |record, numbers| {
                conversation::resume(&shared, record, numbers, &message, run, &id)
            })
        }
        Ok(Told::Parked) => say(shared, message, format!("Run {name} is told.")),
        // It could not begin, and never will.
        Ok(Told::NotBegun) if is_done(shared, run) => new_task(shared, message, words, None),
        Ok(Told::NotBegun) => {
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

/// Whether a run came to its end.
fn is_over(store: &Store, run: RunId) -> bool {
    matches!(RunState::of(store, run), Ok(RunState::Over(_)))
}

/// Whether nothing more is done for the task of a run.
fn is_done(shared: &Shared, run: RunId) -> bool {
    shared.with(|record| record.tasks.get(&run).is_none_or(ChatTask::is_over))
}

fn new_task(
    shared: &Arc<Shared>,
    message: &IncomingMessage,
    words: String,
    continues: Option<RunId>,
) -> Decision {
    let (shared, message) = (Arc::clone(shared), message.clone());
    Box::new(move |record, numbers| {
        conversation::task(&shared, record, numbers, &message, &words, continues)
    })
}

/// The result of telling a run something.
enum Told {
    Added,
    /// It has it, and may have to be resumed.
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
    attempt: Attempt,
) -> Result<Told, String> {
    if !store.exists(&log_name(run)) {
        return Ok(Told::NotBegun);
    }
    let in_words = |error: &(dyn std::error::Error + 'static)| gyrus_net::causes(error);
    if attempt == Attempt::Again && was_told(store, run, id).map_err(|error| in_words(&error))? {
        return Ok(Told::Added);
    }
    let told = match RunState::of(store, run).map_err(|error| in_words(&error))? {
        RunState::Over(_) => return Ok(Told::Over),
        RunState::NeverBegan => return Ok(Told::NotBegun),
        RunState::Running(_) => Told::Added,
        RunState::Parked(_) | RunState::CutOff => Told::Parked,
    };
    let sent = approvals::send_as(store, run, id, by, MessageBody::Steer { text });
    sent.map_err(|error| in_words(&error))?;
    Ok(told)
}

/// Whether a run has taken a message.
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

async fn pressed(shared: &Arc<Shared>, press: &PressedButton) -> Decision {
    let place = ChatPlace {
        chat: press.chat.clone(),
        message: press.message.clone(),
    };
    let about = subject(shared, &place).await;
    let (words, decision) = match (cards::read(&press.data), about) {
        (Some((ButtonMeaning::Allow { card }, mark)), about) if may_be(about, card) => {
            let yes = ApprovalAnswer::Yes {
                words: None,
                reach: ApprovalReach::Once,
            };
            answer(shared, press, card, mark, yes).await
        }
        (Some((ButtonMeaning::Deny { card }, mark)), about) if may_be(about, card) => {
            let no = ApprovalAnswer::No { reason: None };
            answer(shared, press, card, mark, no).await
        }
        (Some((ButtonMeaning::Again { message }, None)), Some(About::Unknown(shown)))
            if message == shown =>
        {
            send_again(shared, message)
        }
        (Some((ButtonMeaning::File { index }, None)), Some(About::Run(run))) => {
            file_of(shared, press, run, index).await
        }
        _ => ("This button means nothing any more.".to_owned(), nothing()),
    };
    // Nobody waits for it, and a press that is old cannot be acknowledged.
    let (messenger, press) = (Arc::clone(&shared.messenger), press.press.clone());
    tokio::spawn(async move { messenger.acknowledge(&press, &words).await });
    decision
}

/// Whether a message with this subject may be the one with the buttons of a card: also one whose
/// delivery was unknown, until somebody pressed its button.
fn may_be(about: Option<About>, card: u64) -> bool {
    about.is_none_or(|about| about == About::Card(card))
}

/// Gives the answer of a button to exactly the card that it stands below.
async fn answer(
    shared: &Arc<Shared>,
    press: &PressedButton,
    number: u64,
    mark: Option<&str>,
    given: ApprovalAnswer,
) -> (String, Decision) {
    let card = shared.with(|record| record.cards.get(&number).cloned());
    let place = ChatPlace {
        chat: press.chat.clone(),
        message: press.message.clone(),
    };
    let card = card.filter(|card| {
        let is_here = shared.with(|record| {
            let sent = record.sent(card.message);
            record.present(&card.chat) == place.chat && sent.is_none_or(|sent| *sent == place)
        });
        is_here && mark == Some(cards::mark(&card.digest).as_str())
    });
    let Some(card) = card.filter(|card| !card.asks_words) else {
        return ("This card is not known any more.".to_owned(), nothing());
    };
    let principal = shared.principal(&press.person);
    let approves = matches!(given, ApprovalAnswer::Yes { .. });
    let said = give(shared, &card, principal.clone(), given).await;
    let own = format!("by {} ({})", principal.id, principal.surface);
    let words = match said {
        Ok(()) if approves => format!("approved {own}"),
        Ok(()) => format!("denied {own}"),
        Err(GivenInVain::Void(words)) => words,
        Err(GivenInVain::Failed(words)) => return (words, nothing()),
    };
    let shown = words.clone();
    let shared = Arc::clone(shared);
    let decision = move |record: &ChatRecord, numbers: &mut Numbers| {
        let mut changes = Vec::new();
        if record.sent(card.message).is_none() {
            // It arrived after all.
            changes.push(ChatChange::Sent {
                number: card.message,
                place,
                about: About::Card(number),
            });
        }
        changes.extend(settle(&shared, record, numbers, number, &words));
        changes
    };
    (shown, Box::new(decision))
}

/// The reason why an answer was not given.
enum GivenInVain {
    /// The card needs none any more; in words.
    Void(String),
    /// It could not be; in words.
    Failed(String),
}

async fn give(
    shared: &Arc<Shared>,
    card: &ShownCard,
    by: Principal,
    given: ApprovalAnswer,
) -> Result<(), GivenInVain> {
    let (shared, card) = (Arc::clone(shared), card.clone());
    blocking(move || {
        let failed = |error: &(dyn std::error::Error + 'static)| {
            GivenInVain::Failed(gyrus_net::causes(error))
        };
        let store = shared.gateway.store();
        let open = approvals::open(store, card.run).map_err(|error| failed(&error))?;
        let is_it = |open: &OpenQuestion| {
            open.run == card.run
                && open.id.to_string() == card.question
                && open.digest == card.digest
        };
        let Some(open) = open.into_iter().find(is_it) else {
            let gone = card.void(store).map_err(|error| failed(&error))?;
            let gone = gone.unwrap_or_else(|| "it is not asked any more".to_owned());
            return Err(GivenInVain::Void(gone));
        };
        shared
            .host
            .check_answer(&open, &given)
            .map_err(GivenInVain::Failed)?;
        match approvals::answer(store, &open, by, given) {
            Ok(Delivery::Given) => Ok(()),
            Ok(Delivery::Void(void)) => Err(GivenInVain::Void(void.to_string())),
            Err(error) => Err(failed(&error)),
        }
    })
    .await
}

/// Answers a question by a reply to its card.
async fn answer_in_words(
    shared: &Arc<Shared>,
    message: &IncomingMessage,
    number: u64,
    words: String,
) -> Decision {
    let Some(card) = shared.with(|record| record.cards.get(&number).cloned()) else {
        return say(
            shared,
            message,
            "This card is not known any more.".to_owned(),
        );
    };
    if !card.asks_words {
        let text = "This card asks for approval: press one of its buttons. To say what to do \
                    instead, deny it, then reply to a message of the run.";
        return say(shared, message, text.to_owned());
    }
    let principal = shared.principal(&message.person);
    let own = format!("answered by {} ({})", principal.id, principal.surface);
    let given = ApprovalAnswer::Yes {
        words: Some(words),
        reach: ApprovalReach::Once,
    };
    let said = match give(shared, &card, principal, given).await {
        Ok(()) => own,
        Err(GivenInVain::Void(words)) => {
            let (shared, speaking) = (Arc::clone(shared), Speaking::to(message));
            return Box::new(move |record, numbers| {
                let mut changes = settle(&shared, record, numbers, number, &words);
                speaking.say(&shared, numbers, &words, Vec::new(), &mut changes);
                changes
            });
        }
        Err(GivenInVain::Failed(words)) => return say(shared, message, words),
    };
    let shared = Arc::clone(shared);
    Box::new(move |record, numbers| settle(&shared, record, numbers, number, &said))
}

/// Sends a message again whose delivery is unknown.
fn send_again(shared: &Arc<Shared>, number: u64) -> (String, Decision) {
    let shared = Arc::clone(shared);
    let decision = move |record: &ChatRecord, numbers: &mut Numbers| {
        let unknown = record.outgoing.get(&number);
        let unknown = unknown.filter(|one| one.state == OutgoingState::Unknown);
        let Some(unknown) = unknown else {
            return Vec::new();
        };
        let speaking = Speaking {
            chat: unknown.chat.clone(),
            reply_to: unknown.reply_to.clone(),
            about: unknown.about,
        };
        let mut changes = vec![ChatChange::Dropped { number }];
        let again = speaking.add(numbers, unknown.what.clone(), &mut changes);
        if matches!(unknown.what, Saying::File { .. }) && shared.spool.copy(number, again).is_err()
        {
            return Vec::new();
        }
        // A card has its buttons below the message that arrives.
        if let About::Card(card) = unknown.about
            && let Some(card) = record.cards.get(&card)
        {
            let mut card = card.clone();
            card.message = again;
            changes.push(ChatChange::Card(Box::new(card)));
        }
        changes
    };
    ("It is sent again.".to_owned(), Box::new(decision))
}

/// Sends a file that a run left.
async fn file_of(
    shared: &Arc<Shared>,
    press: &PressedButton,
    run: RunId,
    index: u64,
) -> (String, Decision) {
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
        left_by_run(&workspace, &wanted, most)
    });
    let name = path.rsplit('/').next().unwrap_or("file").to_owned();
    match read.await {
        Ok(bytes) => {
            let speaking = Speaking {
                chat: press.chat.clone(),
                reply_to: Some(press.message.clone()),
                about: About::Run(run),
            };
            let decision = send_file(shared, speaking, run, &name, bytes);
            ("It is on its way.".to_owned(), decision)
        }
        Err(error) => (
            format!("{} cannot be sent: {error}", quote(&name, QUOTED)),
            nothing(),
        ),
    }
}
