//! Following a run: its state in one message, its questions as cards, and what became of them.

use std::{sync::Arc, time::Duration};

use gyrus_contract::RunId;
use gyrus_journal::LogReader;
use gyrus_kernel::{
    StandingChange,
    approvals::{self, OpenQuestion, VoidAnswer},
    log_name,
};
use gyrus_runtime::{blocking, ledger::LedgerError};
use gyrus_surfaces::tree_follower::TreeFollower;
use gyrus_text::clip;

use crate::{
    cards,
    conversation::ReplyTarget,
    progress::RunProgress,
    record::{ChatChange, ChatRecord, ChatTask, MessageForm, MessageSubject, Numbers, ShownCard},
    shared::AccountInner,
    split::split,
};

/// Interval between checks for answers that were given elsewhere.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Maximum number of messages for a card; a longer one is also sent as a file.
const CARD_PARTS: usize = 4;

/// Characters reserved in a card's last message for the outcome.
const ROOM: usize = 200;

/// The end of a run, for its chat.
pub(crate) struct FollowedToEnd {
    /// The files that the run left.
    pub(crate) files: Vec<String>,
    /// The ending of the run's command, if the run did not report one itself.
    pub(crate) summary: Option<String>,
}

pub(crate) async fn follow(
    shared: &Arc<AccountInner>,
    task: &ChatTask,
) -> Result<FollowedToEnd, LedgerError> {
    let mut progress = RunProgress::new();
    let (store, name) = (shared.gateway.store(), log_name(task.run));
    let over = async {
        match shared.gateway.ended(task.run).await {
            None => std::future::pending().await,
            ended => ended,
        }
    };
    let ended = tokio::select! {
        biased;
        created = store.created(&name) => created.err().map(|error| gyrus_net::causes(&error)),
        ended = over => ended.filter(|_| !store.exists(&name)),
    };
    if ended.is_some() {
        return Ok(FollowedToEnd {
            files: Vec::new(),
            summary: ended,
        });
    }
    let summary = match store.reader(&name) {
        Ok(reader) => to_end(shared, task, &reader, &mut progress).await?,
        Err(error) => Some(gyrus_net::causes(&error)),
    };
    // Whatever is still asked is not any more.
    settle_void(shared, task.run).await?;
    Ok(FollowedToEnd {
        files: progress.files(),
        summary,
    })
}

async fn to_end(
    shared: &Arc<AccountInner>,
    task: &ChatTask,
    reader: &LogReader,
    progress: &mut RunProgress,
) -> Result<Option<String>, LedgerError> {
    let run = task.run;
    let mut commands = shared.gateway.changes();
    let mut entries = TreeFollower::new(shared.gateway.store());
    entries.follow(run, 1);
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            followed = entries.next() => {
                let followed = match followed {
                    Ok(followed) => followed,
                    Err(error) => return Ok(Some(gyrus_net::causes(&error))),
                };
                if followed.run != run {
                    after(shared, task, followed.change).await?;
                    continue;
                }
                progress.take(&followed.entry, reader);
                if matches!(followed.change, Some(StandingChange::Ended(_))) {
                    return Ok(None);
                }
                let state = after(shared, task, followed.change).await?;
                shared.board.lock().show(run, progress.text(run, &task.gist, state));
                shared.changes.send_modify(|changes| *changes += 1);
            }
            changed = commands.changed() => {
                if changed.is_err() {
                    std::future::pending::<()>().await;
                }
                if let Some(summary) = shared.gateway.end_of(run) {
                    // The end of the journal may not have been read yet.
                    let last = reader.entries_back().and_then(|mut back| back.next().transpose());
                    if last.ok().flatten().is_none_or(|entry| entry.kind != "run.ended") {
                        return Ok(Some(summary));
                    }
                }
            }
            _ = looks.tick() => {
                // Answers from elsewhere are in an inbox.
                let is_asked = shared.with(|record| {
                    let mut open = record.open_cards();
                    open.any(|card| card.task == run)
                });
                if is_asked {
                    settle_void(shared, run).await?;
                }
            }
        }
    }
}

/// Does what a change of the standing asks for; returns what the run does after it, in words.
async fn after(
    shared: &Arc<AccountInner>,
    task: &ChatTask,
    change: Option<StandingChange>,
) -> Result<&'static str, LedgerError> {
    match change {
        Some(StandingChange::Parked(_)) => {
            look(shared, task).await?;
            Ok("waits")
        }
        Some(StandingChange::Asked(_)) => {
            look(shared, task).await?;
            Ok("asks")
        }
        Some(StandingChange::Answered(_) | StandingChange::CallEnded(_)) => {
            settle_void(shared, task.run).await?;
            Ok("is at work")
        }
        // Most entries neither ask nor answer.
        Some(_) | None => Ok("is at work"),
    }
}

/// Shows the open questions of a run that were not shown yet.
async fn look(shared: &Arc<AccountInner>, task: &ChatTask) -> Result<(), LedgerError> {
    let (store, run) = (shared.gateway.store().clone(), task.run);
    let open = blocking(move || approvals::unanswered(&store, run).unwrap_or_default()).await;
    if open.is_empty() {
        return Ok(());
    }
    let chat = &task.asked.chat;
    let is_shown = |record: &ChatRecord, open: &OpenQuestion| {
        let mut cards = record.cards.values();
        cards.any(|card| card.chat == record.present(chat) && card.card == open.card_id())
    };
    for open in open {
        if shared.with(|record| is_shown(record, &open)) {
            continue;
        }
        let card = WrittenCard::write(shared, run, open).await;
        shared
            .commit(|_, numbers| {
                let mut changes = Vec::new();
                card.show(numbers, &ReplyTarget::of(task), &mut changes);
                (changes, ())
            })
            .await?;
    }
    Ok(())
}

pub(crate) struct WrittenCard {
    task: RunId,
    open: OpenQuestion,
    parts: Vec<String>,
    /// Name under which the whole card is stored, if it is too long for messages.
    kept: Option<String>,
}

impl WrittenCard {
    pub(crate) async fn write(shared: &AccountInner, task: RunId, open: OpenQuestion) -> Self {
        let messenger = &shared.messenger;
        let most = messenger.limits().text.saturating_sub(ROOM);
        let whole = cards::text(&open);
        let mut parts = split(&whole, most, |text| messenger.length(text));
        let mut kept = None;
        if parts.len() > CARD_PARTS {
            let spool = shared.spool.clone();
            let where_it_is = match blocking(move || spool.put(whole.as_bytes())).await {
                Ok(name) => {
                    kept = Some(name);
                    "The whole card is in the file above.".to_owned()
                }
                Err(error) => format!("The rest cannot be sent ({error}): gyrus approvals"),
            };
            parts.truncate(1);
            parts.push(format!("… {where_it_is} Allow it once, or deny it?"));
        }
        Self {
            task,
            open,
            parts,
            kept,
        }
    }

    pub(crate) fn show(
        self,
        numbers: &mut Numbers,
        speaking: &ReplyTarget,
        changes: &mut Vec<ChatChange>,
    ) {
        let number = numbers.next();
        let speaking = speaking.clone().about(MessageSubject::Card(number));
        let open = &self.open;
        if let Some(kept) = self.kept {
            let what = MessageForm::File {
                kept,
                name: format!("question-{}.txt", open.id),
                caption: "The whole card.".to_owned(),
                is_picture: false,
            };
            speaking.add(numbers, what, changes);
        }
        let last = self.parts.len().saturating_sub(1);
        let (mut message, mut shown) = (number, String::new());
        for (index, text) in self.parts.into_iter().enumerate() {
            let buttons = if index == last {
                cards::buttons(number, open)
            } else {
                Vec::new()
            };
            shown.clone_from(&text);
            message = speaking.add(numbers, MessageForm::Text { text, buttons }, changes);
        }
        changes.push(ChatChange::Card(Box::new(ShownCard {
            number,
            task: self.task,
            card: open.card_id(),
            chat: speaking.chat.clone(),
            message,
            text: shown,
            is_settled: false,
        })));
    }
}

/// Removes the buttons of cards of a run that need no answer any more, and tells why.
async fn settle_void(shared: &Arc<AccountInner>, run: RunId) -> Result<(), LedgerError> {
    let open: Vec<ShownCard> = shared.with(|record| {
        let open = record.open_cards().filter(|card| card.task == run);
        open.cloned().collect()
    });
    if open.is_empty() {
        return Ok(());
    }
    let store = shared.gateway.store().clone();
    let void = blocking(move || {
        let void = open.into_iter().filter_map(|card| {
            let void = approvals::void(&store, &card.card).ok()??;
            Some((card.number, void_in_words(void)))
        });
        void.collect::<Vec<_>>()
    })
    .await;
    for (number, words) in void {
        shared
            .commit(|record, numbers| (settle(shared, record, numbers, number, &words), ()))
            .await?;
    }
    Ok(())
}

/// Settles a card: its buttons go, and its message says what became of it.
pub(crate) fn settle(
    shared: &AccountInner,
    record: &ChatRecord,
    numbers: &mut Numbers,
    number: u64,
    words: &str,
) -> Vec<ChatChange> {
    let Some(card) = record.cards.get(&number).filter(|card| !card.is_settled) else {
        return Vec::new();
    };
    let mut settled = card.clone();
    settled.is_settled = true;
    // Its text is not needed any more.
    let text = std::mem::take(&mut settled.text);
    let most = shared.messenger.limits().text;
    let ours = format!("\n— {}", clip(words, ROOM - 10));
    let mut text = format!("{text}{ours}");
    if shared.messenger.length(&text) > most {
        text = ours.trim_start().to_owned();
    }
    let mut changes = vec![ChatChange::Card(Box::new(settled))];
    let speaking = ReplyTarget {
        chat: record.present(&card.chat).to_owned(),
        reply_to: None,
        about: MessageSubject::Nothing,
    };
    let of = card.message;
    speaking.add(numbers, MessageForm::Edit { of, text }, &mut changes);
    changes
}

/// Returns the reason, shown below a card, why an answer does not count. The same press that comes
/// again, after a kill, finds its own answer.
pub(crate) fn void_in_words(void: VoidAnswer) -> String {
    match void {
        VoidAnswer::Answered { said, .. } => said,
        VoidAnswer::NotAsked { .. } => "not asked any more".to_owned(),
        VoidAnswer::AskedAnew { now, .. } => format!("asked anew, as {now}"),
        VoidAnswer::Mismatch(mismatch) => mismatch.to_string(),
        VoidAnswer::Expired { .. } => "expired".to_owned(),
    }
}
