//! Open questions of runs, and answers to them.
//!
//! Questions are read from journals; an answer is a message in the inbox of the run that asks. Every
//! surface sends it by [`answer`], and the run reads it by the same rule: [`check`].

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    fs::{File, TryLockError},
    path::PathBuf,
    str::FromStr,
    thread,
    time::{Duration, Instant},
};

use gyrus_contract::{
    Answer, ApprovalScope, Digest, EffectId, MessageBody, Principal, RunId, SurfaceMessage,
};
use gyrus_journal::Store;
use serde::{Deserialize, Serialize};

use crate::{
    ApprovalAsked, ApprovalCard, Entry, ToolResulted, Validity,
    clock::now_ms,
    grants::{self, GrantError},
    log::parse,
    log_name,
    runs::{check_not_record, is_record, summary},
    standing::RunState,
};

/// Time limit for an answer to wait while another one is being given.
const TURN_WITHIN: Duration = Duration::from_secs(5);

/// Interval at which a waiting process checks whether it may answer.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Maximum length of an answer in bytes, unless it edits a text that is longer.
const MAX_WORDS: usize = 256 << 10;

/// The error of a question that cannot be read or answered.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// A journal cannot be read, or a message cannot be sent.
    #[error(transparent)]
    Journal(#[from] gyrus_journal::Error),
    /// A standing grant cannot be written.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// Another process has been answering for too long.
    #[error(
        "another process has been answering run {} for {TURN_WITHIN:?}; nothing was sent",
        run.short()
    )]
    Busy {
        /// The run that asks.
        run: RunId,
    },
    /// The folder of a run's journal cannot be locked.
    #[error("{} cannot be locked", folder.display())]
    Unlockable {
        folder: PathBuf,
        source: std::io::Error,
    },
    /// The first entry of a run cannot be read.
    #[error("run {0} does not say where it works")]
    NoWorkspace(RunId),
    /// A message cannot be written as JSON.
    #[error("the message is not JSON")]
    Message(#[source] serde_json::Error),
    /// Nobody reads messages to the run any more.
    #[error("run {} is over: {ending}", run.short())]
    Over { run: RunId, ending: String },
    /// The answer does not count, and was not sent.
    #[error(transparent)]
    Void(#[from] VoidAnswer),
}

/// The reason why a card does not take an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AnswerMismatch {
    /// A plain yes answers a question for words.
    #[error("the card asks for an answer in words, so a yes is not enough")]
    WordsMissing,
    /// An approval has words, but the card asks for none.
    #[error("the card asks for approval, not for words")]
    UnaskedWords,
    /// The yes covers more than the card offers.
    #[error("the card can only be allowed once")]
    OnlyOnce,
    /// The card shows no text to edit.
    #[error("there is nothing to edit")]
    NothingToEdit,
    #[error("the edited text is empty")]
    EmptyText,
    /// The words or the edited text are too long.
    #[error("the answer is longer than {limit} bytes")]
    TooLong { limit: usize },
}

impl AnswerMismatch {
    /// Returns advice for the person who answers.
    pub fn hint(self) -> &'static str {
        match self {
            Self::WordsMissing => "answer it in words",
            Self::UnaskedWords => {
                "a yes has no conditions; to say what to do instead, deny it with a reason"
            }
            Self::OnlyOnce => "allow it once, or deny it",
            Self::NothingToEdit => {
                "only a plan, a list of files or a changeset can be changed before a yes"
            }
            Self::EmptyText => "to approve nothing of it, deny it",
            Self::TooLong { .. } => "shorten it, or name a file that says it",
        }
    }
}

/// Checks that a card takes an answer: with words exactly if the card asks for them or shows a text
/// to edit, and no wider than the card offers. Any card can be denied.
///
/// # Errors
/// Returns the reason why the card does not take it.
pub fn check(card: &ApprovalCard, answer: &Answer) -> Result<(), AnswerMismatch> {
    let limit = MAX_WORDS.max(card.edit.as_ref().map_or(0, String::len));
    if answer.text().is_some_and(|text| text.len() > limit) {
        return Err(AnswerMismatch::TooLong { limit });
    }
    let Answer::Approve { words, .. } = answer else {
        return Ok(());
    };
    match words {
        None if card.question => Err(AnswerMismatch::WordsMissing),
        Some(_) if !card.question && card.edit.is_none() => Err(AnswerMismatch::UnaskedWords),
        Some(text) if !card.question && text.trim().is_empty() => Err(AnswerMismatch::EmptyText),
        _ if answer.is_wider() && card.wider.is_empty() => Err(AnswerMismatch::OnlyOnce),
        _ => Ok(()),
    }
}

/// Returns the answer with these words to a card that asks for words.
///
/// # Errors
/// The card asks for approval: words are not taken for an edit of what it shows.
pub fn reply(card: &ApprovalCard, words: String) -> Result<Answer, VoidAnswer> {
    if card.question {
        Ok(Answer::words(words))
    } else {
        Err(AnswerMismatch::UnaskedWords.into())
    }
}

/// Returns the approval of a card's text with the person's edits: a plain yes if it is unchanged.
///
/// # Errors
/// The card has no text to edit, or the text is blank.
pub fn edited(card: &ApprovalCard, text: String) -> Result<Answer, VoidAnswer> {
    match &card.edit {
        None => Err(AnswerMismatch::NothingToEdit.into()),
        Some(_) if text.trim().is_empty() => Err(AnswerMismatch::EmptyText.into()),
        Some(before) if text.trim() == before.trim() => Ok(Answer::yes(ApprovalScope::Once)),
        Some(_) => Ok(Answer::words(text)),
    }
}

/// The reason why an answer to a card does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VoidAnswer {
    /// Another answer was first.
    #[error("{id} of run {} has its answer already: {said}", run.short())]
    Answered {
        /// The run that asked.
        run: RunId,
        id: QuestionId,
        /// The earlier answer, and the person who gave it.
        said: String,
    },
    #[error("run {} asks nothing at {id} any more", run.short())]
    NotAsked {
        /// The run that asked.
        run: RunId,
        id: QuestionId,
    },
    /// The run has asked again, with another card.
    #[error("the card {given} of run {} is void: it was asked anew, as {now}", run.short())]
    AskedAnew {
        /// The run that asks.
        run: RunId,
        /// The card that was answered.
        given: QuestionId,
        /// The present card.
        now: QuestionId,
    },
    /// The card takes another kind of answer.
    #[error(transparent)]
    Mismatch(#[from] AnswerMismatch),
    /// The time for an answer is over.
    #[error("the question {id} of run {} has expired", run.short())]
    Expired {
        /// The run that asked.
        run: RunId,
        id: QuestionId,
    },
}

/// The identity of a shown card, so that an answer counts for no other card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardId {
    /// The run with the question: the one that was started, or a child of it.
    pub run: RunId,
    /// The name of the question.
    pub question: QuestionId,
    /// The digest that an answer must name.
    pub digest: Digest,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OpenQuestion {
    /// The run with the question: the one that was looked at, or a child of it.
    pub run: RunId,
    /// The name of the question.
    pub id: QuestionId,
    /// The card that is shown.
    pub card: ApprovalCard,
    /// The digest that an answer must name.
    pub digest: Digest,
    /// The time in which an answer counts.
    pub valid: Validity,
}

impl OpenQuestion {
    /// Creates the question of an entry in the journal of `run`.
    pub fn new(run: RunId, asked: ApprovalAsked) -> Self {
        Self {
            run,
            id: QuestionId {
                effect: asked.effect,
                asking: asked.asking,
            },
            card: asked.card,
            digest: asked.digest,
            valid: asked.valid,
        }
    }

    /// Returns the identity of the card.
    pub fn card_id(&self) -> CardId {
        CardId {
            run: self.run,
            question: self.id.clone(),
            digest: self.digest,
        }
    }

    /// Whether answers no longer count.
    pub fn is_over(&self) -> bool {
        self.valid.is_over(now_ms())
    }
}

/// Returns the open questions of a run and its children, oldest first. A record asks nobody.
pub fn open(store: &Store, run: RunId) -> Result<Vec<OpenQuestion>, ApprovalError> {
    if is_record(store, run) {
        return Ok(Vec::new());
    }
    let reader = store.reader(&log_name(run))?;
    let mut settled: BTreeSet<EffectId> = BTreeSet::new();
    let mut ended: Vec<ToolResulted> = Vec::new();
    let mut found = Vec::new();
    // A question belongs to the cycle in progress, so earlier ones are over.
    for entry in reader.entries_back()? {
        let entry = entry?;
        match parse(&entry) {
            Ok(
                Entry::CycleEnded(_)
                | Entry::CycleDropped(_)
                | Entry::RunEnded(_)
                | Entry::RunStarted(_),
            ) => break,
            Ok(Entry::ApprovalAnswered(answered)) => {
                settled.insert(answered.effect);
            }
            Ok(Entry::ToolResulted(result)) => {
                settled.insert(result.effect.clone());
                ended.push(result);
            }
            Ok(Entry::ChildEnded(child)) => {
                settled.insert(child.effect);
            }
            Ok(Entry::ApprovalAsked(asked))
                if ended.iter().any(|call| voids(call, &asked.effect)) => {}
            Ok(Entry::ApprovalAsked(asked)) if settled.insert(asked.effect.clone()) => {
                found.push(vec![OpenQuestion::new(run, asked)]);
            }
            Ok(Entry::ChildStarted(child))
                if settled.insert(child.effect.clone()) && store.exists(&log_name(child.child)) =>
            {
                found.push(open(store, child.child)?);
            }
            // Facts and erased payloads ask nothing.
            _ => {}
        }
    }
    Ok(found.into_iter().rev().flatten().collect())
}

/// Returns the open questions of a run and its children that an answer still counts for, oldest first:
/// those without one in the journal or the inbox, and in time.
///
/// # Errors
/// A journal or an inbox cannot be read.
pub fn unanswered(store: &Store, run: RunId) -> Result<Vec<OpenQuestion>, ApprovalError> {
    let mut unanswered = Vec::new();
    for question in open(store, run)? {
        if void(store, &question.card_id())?.is_none() {
            unanswered.push(question);
        }
    }
    Ok(unanswered)
}

/// Whether the end of a call voids a question of its command: all questions but those continued.
pub fn voids(ended: &ToolResulted, asked: &EffectId) -> bool {
    asked.is_within(&ended.effect) && !ended.pending.contains(asked)
}

/// Returns a run and those of its children that are in progress, outermost first.
pub fn under_way(store: &Store, run: RunId) -> Result<Vec<RunId>, ApprovalError> {
    let mut found = vec![run];
    let mut ended = BTreeSet::new();
    for entry in store.reader(&log_name(run))?.entries_back()? {
        match parse(&entry?) {
            Ok(Entry::CycleEnded(_) | Entry::CycleDropped(_) | Entry::RunStarted(_)) => break,
            Ok(Entry::ChildEnded(child)) => {
                ended.insert(child.child);
            }
            Ok(Entry::ChildStarted(child))
                if !ended.contains(&child.child) && store.exists(&log_name(child.child)) =>
            {
                found.extend(under_way(store, child.child)?);
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Returns the open question of a shown card.
///
/// # Errors
/// An answer to it does not count (any more), or a journal or an inbox cannot be read.
pub fn find(store: &Store, card: &CardId) -> Result<OpenQuestion, ApprovalError> {
    if let Some(void) = void(store, card)? {
        return Err(void.into());
    }
    let found = open(store, card.run)?
        .into_iter()
        .find(|open| open.card_id() == *card);
    found.ok_or_else(|| {
        let not_asked = VoidAnswer::NotAsked {
            run: card.run,
            id: card.question.clone(),
        };
        not_asked.into()
    })
}

/// Returns the answer that waits in the inbox, if there is one; the run reads it when it continues.
pub fn waiting_answer(store: &Store, open: &OpenQuestion) -> Result<Option<String>, ApprovalError> {
    let waiting = waiting_answers(store, &open.card_id())?;
    Ok(first_that_counts(&open.card, &waiting))
}

/// Returns the answers to a card in the inbox, oldest first.
fn waiting_answers(
    store: &Store,
    card: &CardId,
) -> Result<Vec<(Principal, Answer)>, ApprovalError> {
    let messages = store.inbox(&log_name(card.run))?.messages()?;
    let answers = messages.into_iter().filter_map(|(_, body)| {
        let message: SurfaceMessage = serde_json::from_str(&body).ok()?;
        match message.body {
            MessageBody::Answer {
                effect,
                digest,
                answer,
            } if effect == card.question.effect && digest == card.digest => {
                Some((message.from, answer))
            }
            _ => None,
        }
    });
    Ok(answers.collect())
}

/// Returns the first answer that the card takes, and the person who gave it.
fn first_that_counts(card: &ApprovalCard, waiting: &[(Principal, Answer)]) -> Option<String> {
    let counts = |(_, answer): &&(Principal, Answer)| check(card, answer).is_ok();
    let (by, answer) = waiting.iter().find(counts)?;
    Some(in_words(answer.is_yes(), Some(by)))
}

/// Answers a question. When this returns, the answer is on disk. Of several concurrent answers, from
/// any processes, the first is sent and the others are void.
///
/// # Errors
/// The answer does not count ([`ApprovalError::Void`]), or cannot be sent.
pub fn answer(
    store: &Store,
    open: &OpenQuestion,
    from: Principal,
    mut answer: Answer,
) -> Result<(), ApprovalError> {
    check_not_record(store, open.run)?;
    check(&open.card, &answer).map_err(VoidAnswer::from)?;
    let turn = my_turn(store, open.run)?;
    if let Some(void) = void(store, &open.card_id())? {
        return Err(void.into());
    }
    if let Answer::Approve { scope, .. } = &mut answer
        && *scope == ApprovalScope::Always
    {
        let workspace = workspace(store, open.run)?;
        grants::give(store, &workspace, &open.card.wider, &from)?;
        *scope = ApprovalScope::Session;
    }
    let body = MessageBody::Answer {
        effect: open.id.effect.clone(),
        digest: open.digest,
        answer,
    };
    send(store, open.run, from, body)?;
    drop(turn);
    Ok(())
}

/// Waits until no other process answers a question of this run, and locks the run for this one;
/// dropping the file releases the lock.
fn my_turn(store: &Store, run: RunId) -> Result<File, ApprovalError> {
    let folder = store.folder(&log_name(run));
    let since = Instant::now();
    let failed = |source| ApprovalError::Unlockable {
        folder: folder.clone(),
        source,
    };
    let file = File::open(&folder).map_err(failed)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if since.elapsed() < TURN_WITHIN => {
                thread::sleep(LOOK_EVERY);
            }
            Err(TryLockError::WouldBlock) => return Err(ApprovalError::Busy { run }),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
}

/// Returns the reason why an answer to this card does not count (any more), if there is one.
///
/// # Errors
/// A journal or an inbox cannot be read.
pub fn void(store: &Store, card: &CardId) -> Result<Option<VoidAnswer>, ApprovalError> {
    let (run, id) = (card.run, card.question.clone());
    // The order matters: an answer leaves the inbox only when it is in the journal.
    let waiting = waiting_answers(store, card)?;
    let same_effect = |open: &OpenQuestion| open.run == run && open.id.effect == id.effect;
    let Some(now) = open(store, run)?.into_iter().find(same_effect) else {
        return Ok(Some(match recorded_answer(store, card)? {
            Some(said) => VoidAnswer::Answered { run, id, said },
            None => VoidAnswer::NotAsked { run, id },
        }));
    };
    if now.card_id() != *card {
        return Ok(Some(VoidAnswer::AskedAnew {
            run,
            given: id,
            now: now.id,
        }));
    }
    if let Some(said) = first_that_counts(&now.card, &waiting) {
        return Ok(Some(VoidAnswer::Answered { run, id, said }));
    }
    Ok(now.is_over().then_some(VoidAnswer::Expired { run, id }))
}

/// Returns the answer to this card in the journal.
fn recorded_answer(store: &Store, card: &CardId) -> Result<Option<String>, ApprovalError> {
    for entry in store.reader(&log_name(card.run))?.entries_back()? {
        if let Ok(Entry::ApprovalAnswered(answered)) = parse(&entry?)
            && answered.effect == card.question.effect
            && answered.digest == card.digest
        {
            return Ok(Some(in_words(answered.approved, answered.by.as_ref())));
        }
    }
    Ok(None)
}

/// Returns the calls that people denied in a run, each with its question and who answered.
pub fn denied_by_people(store: &Store, run: RunId) -> Result<Vec<String>, gyrus_journal::Error> {
    let (mut questions, mut denied) = (BTreeMap::new(), Vec::new());
    for entry in store.reader(&log_name(run))?.entries(1)? {
        match parse(&entry?) {
            Ok(Entry::ApprovalAsked(asked)) => {
                questions.insert(asked.effect, asked.card.sentence);
            }
            Ok(Entry::ApprovalAnswered(answered)) if !answered.approved => {
                if let (Some(by), Some(question)) = (&answered.by, questions.get(&answered.effect))
                {
                    denied.push(format!("{question} (denied by {})", by.id));
                }
            }
            _ => {}
        }
    }
    Ok(denied)
}

fn in_words(approved: bool, by: Option<&Principal>) -> String {
    let said = if approved { "approved" } else { "denied" };
    match by {
        Some(by) => format!("{said} by {by}"),
        None => format!("{said}, as nobody could be asked"),
    }
}

/// Returns the folder that a run works in.
fn workspace(store: &Store, run: RunId) -> Result<PathBuf, ApprovalError> {
    let reader = store.reader(&log_name(run))?;
    match reader.entry(1)?.map(|entry| parse(&entry)) {
        Some(Ok(Entry::RunStarted(started))) => Ok(started.workspace),
        _ => Err(ApprovalError::NoWorkspace(run)),
    }
}

/// Puts a message into a run's inbox, and returns once it is on disk.
///
/// # Errors
/// The run is over or a record, or its inbox takes no more.
pub fn send(
    store: &Store,
    run: RunId,
    from: Principal,
    body: MessageBody,
) -> Result<(), ApprovalError> {
    if let Ok(RunState::Over(ending)) = RunState::of(store, run) {
        let ending = summary(&ending);
        return Err(ApprovalError::Over { run, ending });
    }
    let id = gyrus_contract::time_ordered_uuid().to_string();
    send_as(store, run, &id, from, body)
}

/// Puts a message with an id of the caller's, a UUID of version 7, into a run's inbox. While it
/// waits there, sending it again is harmless.
///
/// # Errors
/// Those of [`send`].
pub fn send_as(
    store: &Store,
    run: RunId,
    id: &str,
    from: Principal,
    body: MessageBody,
) -> Result<(), ApprovalError> {
    check_not_record(store, run)?;
    let message = SurfaceMessage {
        id: id.to_owned(),
        from,
        body,
    };
    let text = serde_json::to_string(&message).map_err(ApprovalError::Message)?;
    store.inbox(&log_name(run))?.send(id, &text)?;
    Ok(())
}

/// The name of a question for people: `2.3`, and `2.3-2` when it was asked for the second time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionId {
    /// The effect that asks.
    pub effect: EffectId,
    /// Number of times that the question was asked; 1 for the first time.
    pub asking: u32,
}

impl fmt::Display for QuestionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.asking {
            1 => self.effect.fmt(f),
            asking => write!(f, "{}-{asking}", self.effect),
        }
    }
}

gyrus_contract::stored_as_text!(QuestionId);

impl FromStr for QuestionId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` names no question; the card does, like 2.3 or 2.3-2");
        let (effect, asking) = text.split_once('-').unwrap_or((text, "1"));
        Ok(Self {
            effect: effect.parse().map_err(|_| wrong())?,
            asking: asking.parse().map_err(|_| wrong())?,
        })
    }
}
