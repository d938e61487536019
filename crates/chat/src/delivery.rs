//! Sending what is to be said, one message after the other. Before a message leaves, that is on disk; so after a
//! crash it is known which one may have arrived, and that one is shown as unknown instead of sent
//! again.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use gyrus_contract::RunId;
use gyrus_runtime::{blocking, ledger::LedgerError};
use gyrus_text::quote;

use crate::{
    cards,
    conversation::ReplyTarget,
    messenger::{ChatPlace, MessengerError, NewMessage, OutgoingFile},
    record::{
        ChatChange, ChatMessage, ChatRecord, MessageForm, MessageSubject, Numbers, OutgoingState,
    },
    shared::AccountInner,
};

/// Shortest and longest time before a messenger that failed is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
const AGAIN_AT_MOST: Duration = Duration::from_secs(60);

/// Maximum length of a quoted message, in characters.
const QUOTED: usize = 80;

/// Decides about messages that an earlier process was sending when it ended.
pub(crate) async fn take_up(shared: &Arc<AccountInner>) -> Result<(), LedgerError> {
    shared
        .commit(|record, numbers| {
            let leaving = record.outgoing.values();
            let leaving = leaving.filter(|one| one.state == OutgoingState::Leaving);
            let mut changes = Vec::new();
            for outgoing in leaving {
                match outgoing.what {
                    MessageForm::Text { .. } | MessageForm::File { .. } => {
                        is_unknown(shared, numbers, outgoing, &mut changes);
                    }
                    // Twice is as good as once.
                    MessageForm::Edit { .. } => changes.push(waits(outgoing.number)),
                }
            }
            (changes, ())
        })
        .await
}

/// Records that the delivery of a message is unknown, and reports it.
fn is_unknown(
    shared: &AccountInner,
    numbers: &mut Numbers,
    outgoing: &ChatMessage,
    changes: &mut Vec<ChatChange>,
) {
    let number = outgoing.number;
    if matches!(outgoing.about, MessageSubject::Unknown(_)) {
        // What says this of another message is not worth a third.
        changes.push(ChatChange::Dropped { number });
        return;
    }
    let state = OutgoingState::Unknown;
    changes.push(ChatChange::Turned { number, state });
    let what = match &outgoing.what {
        MessageForm::Text { text, .. } | MessageForm::Edit { text, .. } => quote(text, QUOTED),
        MessageForm::File { name, .. } => format!("the file {}", quote(name, QUOTED)),
    };
    let text = format!("Nobody knows whether this message arrived: {what}");
    let speaking = ReplyTarget {
        chat: outgoing.chat.clone(),
        reply_to: outgoing.reply_to.clone(),
        about: MessageSubject::Unknown(number),
    };
    speaking.say(shared, numbers, &text, cards::again(number), changes);
}

/// Sends the waiting messages for as long as the server lives.
pub(crate) async fn deliver(shared: Arc<AccountInner>) {
    let mut pauses = Pauses {
        all: Instant::now(),
        chats: BTreeMap::new(),
        wait: AGAIN_AFTER,
    };
    let mut changes = shared.changes.subscribe();
    loop {
        changes.borrow_and_update();
        pauses.wait_for_all().await;
        if shared.is_stopping.load(Ordering::Relaxed) {
            return;
        }
        if let Some(outgoing) = next(&shared, &pauses) {
            if let Err(error) = send(&shared, outgoing, &mut pauses).await {
                shared.failed(&error);
                tokio::time::sleep(AGAIN_AT_MOST).await;
            }
            continue;
        }
        let every = shared.messenger.limits().edit_every;
        let state = shared.board.lock().next(every);
        let until = match state {
            Ok((run, text)) => {
                show(&shared, run, &text, &mut pauses).await;
                continue;
            }
            Err(until) => pauses.first_chat().into_iter().chain(until).min(),
        };
        let time = async {
            match until {
                Some(until) => tokio::time::sleep_until(until.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = time => {}
        }
    }
}

/// Returns the first waiting message whose conversation is not paused.
fn next(shared: &AccountInner, pauses: &Pauses) -> Option<ChatMessage> {
    shared.with(|record| {
        let mut waiting = record.outgoing.values().filter(|one| {
            one.state == OutgoingState::Waiting && !pauses.is_paused(record.present(&one.chat))
        });
        waiting.next().cloned()
    })
}

async fn send(
    shared: &Arc<AccountInner>,
    outgoing: ChatMessage,
    pauses: &mut Pauses,
) -> Result<(), LedgerError> {
    let number = outgoing.number;
    let (chat, may_write) = shared.with(|record| {
        let chat = record.present(&outgoing.chat).to_owned();
        let may_write = shared.may_write_to(record, &chat);
        (chat, may_write)
    });
    if !may_write {
        return drop_message(shared, &outgoing).await;
    }
    let turned = |state| ChatChange::Turned { number, state };
    shared
        .commit(|_, _| (vec![turned(OutgoingState::Leaving)], ()))
        .await?;
    let sent = say(shared, &outgoing, &chat).await;
    match sent {
        Ok(place) => {
            pauses.succeeded();
            let about = outgoing.about;
            let change = match place {
                Some(place) => ChatChange::Sent {
                    number,
                    place,
                    about,
                },
                None => ChatChange::Dropped { number },
            };
            shared.commit(|_, _| (vec![change], ())).await?;
            if let Some(kept) = outgoing.what.kept() {
                shared.spool.remove(kept);
            }
            Ok(())
        }
        Err(error) => not_sent(shared, &outgoing, &chat, error, pauses).await,
    }
}

/// Decides about a message whose sending failed, or perhaps failed.
async fn not_sent(
    shared: &Arc<AccountInner>,
    outgoing: &ChatMessage,
    chat: &str,
    error: MessengerError,
    pauses: &mut Pauses,
) -> Result<(), LedgerError> {
    let number = outgoing.number;
    let surface = shared.messenger.surface();
    match error {
        MessengerError::Unknown { why } => {
            shared.host.say(&format!(
                "chat {surface}: nobody knows whether a message arrived: {why}\n"
            ));
            shared
                .commit(|_, numbers| {
                    let mut changes = Vec::new();
                    is_unknown(shared, numbers, outgoing, &mut changes);
                    (changes, ())
                })
                .await
        }
        MessengerError::Refused { why } => {
            shared
                .host
                .say(&format!("chat {surface}: a message was refused: {why}\n"));
            drop_message(shared, outgoing).await
        }
        MessengerError::Moved { to } if shared.with(|record| is_group(shared, record, chat)) => {
            let from = chat.to_owned();
            shared
                .commit(|_, _| (vec![ChatChange::Moved { from, to }, waits(number)], ()))
                .await
        }
        // Where it went is not known to be ours.
        MessengerError::Moved { .. } => drop_message(shared, outgoing).await,
        error => {
            pauses.after(chat, &error);
            shared.commit(|_, _| (vec![waits(number)], ())).await
        }
    }
}

fn waits(number: u64) -> ChatChange {
    ChatChange::Turned {
        number,
        state: OutgoingState::Waiting,
    }
}

fn is_group(shared: &AccountInner, record: &ChatRecord, chat: &str) -> bool {
    record.is_one_of(chat, &shared.settings.groups)
}

async fn drop_message(
    shared: &Arc<AccountInner>,
    outgoing: &ChatMessage,
) -> Result<(), LedgerError> {
    let number = outgoing.number;
    shared
        .commit(|_, _| (vec![ChatChange::Dropped { number }], ()))
        .await?;
    if let Some(kept) = outgoing.what.kept() {
        shared.spool.remove(kept);
    }
    Ok(())
}

/// Sends a message; returns its place, if it is a new one.
async fn say(
    shared: &AccountInner,
    outgoing: &ChatMessage,
    chat: &str,
) -> Result<Option<ChatPlace>, MessengerError> {
    let messenger = &shared.messenger;
    let message = match &outgoing.what {
        MessageForm::Text { text, buttons } => {
            let message = NewMessage {
                chat: chat.to_owned(),
                reply_to: outgoing.reply_to.clone(),
                text: text.clone(),
                buttons: buttons.clone(),
            };
            messenger.send(&message).await?
        }
        MessageForm::File {
            kept,
            name,
            caption,
            is_picture,
        } => {
            let (spool, kept) = (shared.spool.clone(), kept.clone());
            let bytes = blocking(move || spool.get(&kept)).await;
            let bytes = bytes.map_err(|error| MessengerError::Refused {
                why: format!("the file is gone: {error}"),
            })?;
            let file = OutgoingFile {
                chat: chat.to_owned(),
                reply_to: outgoing.reply_to.clone(),
                name: name.clone(),
                caption: caption.clone(),
                bytes,
                is_picture: *is_picture,
            };
            messenger.send_file(&file).await?
        }
        MessageForm::Edit { of, text } => {
            // One that never arrived needs no change, and one in a conversation that moved has none.
            let place = shared.with(|record| {
                let place = record.sent(*of)?;
                (record.present(&place.chat) == place.chat).then(|| place.clone())
            });
            if let Some(place) = place {
                messenger.edit(&place, text).await?;
            }
            return Ok(None);
        }
    };
    Ok(Some(ChatPlace {
        chat: chat.to_owned(),
        message,
    }))
}

async fn show(shared: &AccountInner, run: RunId, text: &str, pauses: &mut Pauses) {
    let place = shared.with(|record| {
        let task = record.tasks.get(&run)?;
        let place = record.sent(task.status)?.clone();
        let is_here = record.present(&place.chat) == place.chat;
        (is_here && shared.may_write_to(record, &place.chat)).then_some(place)
    });
    let Some(place) = place.filter(|place| !pauses.is_paused(&place.chat)) else {
        return;
    };
    match shared.messenger.edit(&place, text).await {
        Ok(()) => pauses.succeeded(),
        // The next state is another text.
        Err(MessengerError::Refused { .. } | MessengerError::Moved { .. }) => {}
        Err(error) => {
            pauses.after(&place.chat, &error);
            shared.board.lock().again(run, AGAIN_AFTER);
        }
    }
}

/// Times before which nothing may be sent.
struct Pauses {
    all: Instant,
    chats: BTreeMap<String, Instant>,
    /// The next wait after a failure.
    wait: Duration,
}

impl Pauses {
    fn succeeded(&mut self) {
        self.wait = AGAIN_AFTER;
    }

    fn is_paused(&self, chat: &str) -> bool {
        self.chats
            .get(chat)
            .is_some_and(|until| *until > Instant::now())
    }

    /// Returns the earliest end of a pause of any conversation.
    fn first_chat(&self) -> Option<Instant> {
        let now = Instant::now();
        self.chats
            .values()
            .filter(|until| **until > now)
            .min()
            .copied()
    }

    async fn wait_for_all(&mut self) {
        let now = Instant::now();
        self.chats.retain(|_, until| *until > now);
        if self.all > now {
            tokio::time::sleep_until(self.all.into()).await;
        }
    }

    /// Starts a pause after an error.
    fn after(&mut self, chat: &str, error: &MessengerError) {
        if let MessengerError::TooFast { after } = error {
            self.chats.insert(chat.to_owned(), Instant::now() + *after);
        } else {
            self.all = Instant::now() + self.wait;
            self.wait = (self.wait * 2).min(AGAIN_AT_MOST);
        }
    }
}
