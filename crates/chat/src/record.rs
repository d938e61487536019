//! The state of a chat as the fold of its facts: how far the messenger was read, who may use it, the
//! runs that were asked for, and what is to be said.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gyrus_contract::RunId;
use gyrus_kernel::approvals::CardId;
use gyrus_runtime::{ledger::Fold, request::RunRequest};
use serde::{Deserialize, Serialize};

use crate::messenger::{ChatEvent, ChatPlace, IncomingFile};

/// Number of remembered updates, to recognise repeated ones.
const REMEMBERED_UPDATES: usize = 10_000;

/// Number of remembered sent messages, so that replies to them are understood.
const REMEMBERED_MESSAGES: usize = 5_000;

/// Number of remembered ended tasks, so that a reply continues them.
const REMEMBERED_TASKS: usize = 1_000;

/// Number of remembered answered cards.
const REMEMBERED_CARDS: usize = 1_000;

/// Number of messages of unknown delivery that are kept for sending them again.
const REMEMBERED_UNKNOWN: usize = 200;

/// Number of changes in one fact at the beginning of a generation of the ledger.
const CHANGES_IN_A_FACT: usize = 64;

/// A person who may use a chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairedPerson {
    /// The person's id at the messenger.
    pub id: String,
    pub(crate) chat: String,
    /// The name that the person gave themselves when they were paired.
    pub name: String,
    /// The time, in UTC milliseconds.
    pub since_ms: i64,
}

/// A reaction to an update that is still to be carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PendingWork {
    /// The id of the message to a run, so that the run gets it only once.
    pub(crate) id: String,
    pub(crate) event: ChatEvent,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChatTask {
    pub(crate) run: RunId,
    pub(crate) asked: ChatPlace,
    pub(crate) person: String,
    /// The beginning of the goal, for headings.
    pub(crate) gist: String,
    /// The number of the message that shows the run's progress.
    pub(crate) status: u64,
    /// The files that the run left, by their paths in the run's folder.
    pub(crate) files: Vec<String>,
    pub(crate) stage: TaskStage,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskStage {
    /// The run's files are being fetched.
    Preparing {
        /// The words of the goal; empty if they are spoken in the first file.
        goal: String,
        files: Vec<IncomingFile>,
        continues: Option<RunId>,
    },
    Ready(Box<RunRequest>),
    /// The run exists, and is to be resumed by the queue under this key.
    Resumed {
        key: String,
    },
    /// The run is over, and its result is among the messages to send.
    Over,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChatMessage {
    pub(crate) number: u64,
    pub(crate) chat: String,
    pub(crate) reply_to: Option<String>,
    pub(crate) what: MessageForm,
    pub(crate) about: MessageSubject,
    pub(crate) state: OutgoingState,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MessageForm {
    Text {
        text: String,
        buttons: Vec<(String, String)>,
    },
    File {
        /// The file's name among the files to send.
        kept: String,
        /// The file's name for its recipients.
        name: String,
        caption: String,
        is_picture: bool,
    },
    /// Another text for the message with this number, without buttons.
    Edit { of: u64, text: String },
}

/// The subject of a message, for understanding replies to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MessageSubject {
    Nothing,
    Run(RunId),
    Card(u64),
    /// The news that the delivery of the message with this number is unknown.
    Unknown(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutgoingState {
    Waiting,
    /// The message is being sent; after a crash nobody knows whether it was.
    Leaving,
    /// It is unknown whether the message arrived.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ShownCard {
    pub(crate) number: u64,
    pub(crate) task: RunId,
    #[serde(flatten)]
    pub(crate) card: CardId,
    pub(crate) chat: String,
    /// The number of the message with the buttons, and its text.
    pub(crate) message: u64,
    pub(crate) text: String,
    /// Whether the card has its answer, or needs none any more.
    pub(crate) is_settled: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChatChange {
    /// The messenger was read up to here.
    Position {
        position: String,
    },
    /// An update was taken.
    Seen {
        key: String,
    },
    /// An update needs a reaction, under this number.
    Pending {
        number: u64,
        work: PendingWork,
    },
    Done {
        number: u64,
    },
    Paired(PairedPerson),
    Removed {
        person: String,
    },
    /// A conversation got another id.
    Moved {
        from: String,
        to: String,
    },
    /// Files came without text, and wait for it.
    Held {
        place: (String, String),
        files: Vec<IncomingFile>,
    },
    Task(Box<ChatTask>),
    Card(Box<ShownCard>),
    Say(Box<ChatMessage>),
    /// A message is being sent, is not after all, or may have been.
    Turned {
        number: u64,
        state: OutgoingState,
    },
    Sent {
        number: u64,
        place: ChatPlace,
        about: MessageSubject,
    },
    /// A message will not be sent (any more).
    Dropped {
        number: u64,
    },
    /// The numbers up to this one are used.
    Numbered {
        number: u64,
    },
}

/// A fact of a chat: changes that belong together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "payload")]
pub enum ChatFact {
    /// The changes, in order.
    #[serde(rename = "chat.changed")]
    #[expect(
        private_interfaces,
        reason = "facts are written and read by this crate alone"
    )]
    Changed(Vec<ChatChange>),
}

/// The state of a chat.
#[derive(Debug, Default, PartialEq)]
pub struct ChatRecord {
    pub(crate) position: Option<String>,
    seen: BTreeSet<String>,
    seen_order: VecDeque<String>,
    pub(crate) pending: BTreeMap<u64, PendingWork>,
    people: BTreeMap<String, PairedPerson>,
    moved: BTreeMap<String, String>,
    held: BTreeMap<(String, String), Vec<IncomingFile>>,
    pub(crate) tasks: BTreeMap<RunId, ChatTask>,
    over: VecDeque<RunId>,
    pub(crate) cards: BTreeMap<u64, ShownCard>,
    pub(crate) outgoing: BTreeMap<u64, ChatMessage>,
    sent: BTreeMap<u64, (ChatPlace, MessageSubject)>,
    by_place: BTreeMap<ChatPlace, u64>,
    last_number: u64,
}

impl Fold for ChatRecord {
    const LOG_KIND: &'static str = "chats";
    type Fact = ChatFact;

    fn apply(&mut self, fact: ChatFact) {
        let ChatFact::Changed(changes) = fact;
        for change in changes {
            self.change(change);
        }
    }

    fn facts(&self) -> Vec<ChatFact> {
        let mut changes = Vec::new();
        let position = self.position.clone();
        changes.extend(position.map(|position| ChatChange::Position { position }));
        let seen = self.seen_order.iter().cloned();
        changes.extend(seen.map(|key| ChatChange::Seen { key }));
        changes.extend(self.people.values().cloned().map(ChatChange::Paired));
        for (from, to) in self.moved.clone() {
            changes.push(ChatChange::Moved { from, to });
        }
        for (place, files) in self.held.clone() {
            changes.push(ChatChange::Held { place, files });
        }
        let open = self.tasks.values().filter(|task| !task.is_over());
        let over = self.over.iter().filter_map(|run| self.tasks.get(run));
        let tasks = open.chain(over).cloned().map(Box::new);
        changes.extend(tasks.map(ChatChange::Task));
        let cards = self.cards.values().cloned().map(Box::new);
        changes.extend(cards.map(ChatChange::Card));
        for (number, (place, about)) in self.sent.clone() {
            changes.push(ChatChange::Sent {
                number,
                place,
                about,
            });
        }
        let outgoing = self.outgoing.values().cloned().map(Box::new);
        changes.extend(outgoing.map(ChatChange::Say));
        for (number, work) in self.pending.clone() {
            changes.push(ChatChange::Pending { number, work });
        }
        let number = self.last_number;
        changes.push(ChatChange::Numbered { number });
        let chunks = changes.chunks(CHANGES_IN_A_FACT);
        chunks
            .map(|some| ChatFact::Changed(some.to_vec()))
            .collect()
    }
}

impl MessageForm {
    /// Returns the name under which the message's file is stored.
    pub(crate) fn kept(&self) -> Option<&str> {
        match self {
            MessageForm::File { kept, .. } => Some(kept),
            MessageForm::Text { .. } | MessageForm::Edit { .. } => None,
        }
    }
}

impl ChatTask {
    pub(crate) fn is_over(&self) -> bool {
        self.stage == TaskStage::Over
    }
}

impl ChatRecord {
    /// Returns the people who may use the chat.
    pub fn people(&self) -> Vec<&PairedPerson> {
        self.people.values().collect()
    }

    /// Returns the number of messages whose delivery is unknown.
    pub fn unknown(&self) -> usize {
        let outgoing = self.outgoing.values();
        outgoing
            .filter(|one| one.state == OutgoingState::Unknown)
            .count()
    }

    /// Returns the number of messages that wait to be sent.
    pub fn waiting(&self) -> usize {
        self.outgoing.len() - self.unknown()
    }

    pub(crate) fn is_paired(&self, person: &str) -> bool {
        self.people.contains_key(person)
    }

    pub(crate) fn is_private(&self, chat: &str) -> bool {
        self.people.values().any(|person| person.chat == chat)
    }

    pub(crate) fn has_seen(&self, key: &str) -> bool {
        self.seen.contains(key)
    }

    pub(crate) fn present<'a>(&'a self, chat: &'a str) -> &'a str {
        self.moved.get(chat).map_or(chat, String::as_str)
    }

    /// Whether a conversation is one of those that are allowed under these ids.
    pub(crate) fn is_one_of(&self, chat: &str, ids: &BTreeSet<String>) -> bool {
        ids.contains(chat) || ids.iter().any(|id| self.present(id) == chat)
    }

    /// Returns the files that wait for words of a person in a conversation.
    pub(crate) fn held(&self, place: &(String, String)) -> &[IncomingFile] {
        self.held.get(place).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn about(&self, place: &ChatPlace) -> Option<MessageSubject> {
        if let Some(number) = self.by_place.get(place) {
            return self.sent.get(number).map(|(_, about)| *about);
        }
        let mut tasks = self.tasks.values();
        let asked = tasks.find(|task| task.asked == *place)?;
        Some(MessageSubject::Run(asked.run))
    }

    pub(crate) fn sent(&self, number: u64) -> Option<&ChatPlace> {
        self.sent.get(&number).map(|(place, _)| place)
    }

    pub(crate) fn open_cards(&self) -> impl Iterator<Item = &ShownCard> {
        self.cards.values().filter(|card| !card.is_settled)
    }

    pub(crate) fn outgoing_files(&self) -> BTreeSet<&str> {
        let outgoing = self.outgoing.values();
        let files = outgoing.filter_map(|one| one.what.kept());
        files.collect()
    }

    /// Whether a message in a conversation is being sent, whose id is not known yet.
    pub(crate) fn is_sending_to(&self, chat: &str) -> bool {
        let mut outgoing = self.outgoing.values();
        outgoing.any(|one| one.state == OutgoingState::Leaving && self.present(&one.chat) == chat)
    }

    pub(crate) fn open_tasks(&self) -> impl Iterator<Item = &ChatTask> {
        self.tasks.values().filter(|task| !task.is_over())
    }

    pub(crate) fn numbers(&self) -> Numbers {
        Numbers(self.last_number)
    }

    fn change(&mut self, change: ChatChange) {
        match change {
            ChatChange::Position { position } => self.position = Some(position),
            ChatChange::Seen { key } => self.see(key),
            ChatChange::Pending { number, work } => {
                self.number(number);
                self.pending.insert(number, work);
            }
            ChatChange::Done { number } => {
                self.pending.remove(&number);
            }
            ChatChange::Paired(person) => {
                self.people.insert(person.id.clone(), person);
            }
            ChatChange::Removed { person } => {
                self.people.remove(&person);
            }
            ChatChange::Moved { from, to } => self.move_to(from, to),
            ChatChange::Held { place, files } if files.is_empty() => {
                self.held.remove(&place);
            }
            ChatChange::Held { place, files } => {
                self.held.insert(place, files);
            }
            ChatChange::Task(task) => self.task(*task),
            ChatChange::Card(card) => self.card(*card),
            ChatChange::Say(outgoing) => {
                self.number(outgoing.number);
                self.outgoing.insert(outgoing.number, *outgoing);
            }
            ChatChange::Turned { number, state } => {
                if let Some(outgoing) = self.outgoing.get_mut(&number) {
                    outgoing.state = state;
                }
                self.forget_unknown();
            }
            ChatChange::Sent {
                number,
                place,
                about,
            } => self.remember(number, place, about),
            ChatChange::Dropped { number } => {
                self.outgoing.remove(&number);
            }
            ChatChange::Numbered { number } => self.number(number),
        }
    }

    fn number(&mut self, number: u64) {
        self.last_number = self.last_number.max(number);
    }

    fn see(&mut self, key: String) {
        if self.seen.insert(key.clone()) {
            self.seen_order.push_back(key);
        }
        if self.seen_order.len() > REMEMBERED_UPDATES
            && let Some(oldest) = self.seen_order.pop_front()
        {
            self.seen.remove(&oldest);
        }
    }

    fn move_to(&mut self, from: String, to: String) {
        for present in self.moved.values_mut().filter(|present| **present == from) {
            present.clone_from(&to);
        }
        for outgoing in self.outgoing.values_mut().filter(|one| one.chat == from) {
            outgoing.chat.clone_from(&to);
            // The message that it replied to is elsewhere.
            outgoing.reply_to = None;
        }
        self.moved.insert(from, to);
    }

    fn task(&mut self, task: ChatTask) {
        let (run, is_over) = (task.run, task.is_over());
        let before = self.tasks.insert(run, task);
        let was_over = before.is_some_and(|before| before.is_over());
        if is_over && !was_over {
            self.over.push_back(run);
        } else if was_over && !is_over {
            self.over.retain(|over| *over != run);
        }
        if self.over.len() > REMEMBERED_TASKS
            && let Some(oldest) = self.over.pop_front()
        {
            self.tasks.remove(&oldest);
        }
    }

    fn card(&mut self, card: ShownCard) {
        self.number(card.number);
        self.cards.insert(card.number, card);
        if self.cards.len() > REMEMBERED_CARDS {
            let settled = self.cards.values().find(|card| card.is_settled);
            // One that is forgotten open is shown again by asking for it.
            let oldest = settled.or_else(|| self.cards.values().next());
            if let Some(oldest) = oldest.map(|card| card.number) {
                self.cards.remove(&oldest);
            }
        }
    }

    fn forget_unknown(&mut self) {
        if self.unknown() > REMEMBERED_UNKNOWN {
            let mut outgoing = self.outgoing.values();
            let oldest = outgoing.find(|one| one.state == OutgoingState::Unknown);
            if let Some(oldest) = oldest.map(|one| one.number) {
                self.outgoing.remove(&oldest);
            }
        }
    }

    fn remember(&mut self, number: u64, place: ChatPlace, about: MessageSubject) {
        self.outgoing.remove(&number);
        self.by_place.insert(place.clone(), number);
        self.sent.insert(number, (place, about));
        if self.sent.len() > REMEMBERED_MESSAGES
            && let Some((_, (oldest, _))) = self.sent.pop_first()
        {
            self.by_place.remove(&oldest);
        }
    }
}

/// A source of numbers for new parts of a state.
#[derive(Debug)]
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gyrus_contract::Digest;

    fn place(number: u64) -> ChatPlace {
        ChatPlace {
            chat: (number % 3).to_string(),
            message: number.to_string(),
        }
    }

    fn task(number: u64, stage: TaskStage) -> ChatChange {
        ChatChange::Task(Box::new(ChatTask {
            run: run(number),
            asked: place(number),
            person: "1".to_owned(),
            gist: "g".to_owned(),
            status: number,
            files: Vec::new(),
            stage,
        }))
    }

    fn run(number: u64) -> RunId {
        format!("00000000-0000-7000-8000-{number:012x}")
            .parse()
            .unwrap()
    }

    fn say(number: u64) -> ChatChange {
        ChatChange::Say(Box::new(ChatMessage {
            number,
            chat: place(number).chat,
            reply_to: None,
            what: MessageForm::Edit {
                of: number,
                text: "t".to_owned(),
            },
            about: MessageSubject::Run(run(number)),
            state: OutgoingState::Waiting,
        }))
    }

    fn card(number: u64) -> ChatChange {
        ChatChange::Card(Box::new(ShownCard {
            number,
            task: run(number),
            card: CardId {
                run: run(number),
                question: "1.1".parse().unwrap(),
                digest: Digest::of(&number.to_le_bytes()),
            },
            chat: place(number).chat,
            message: number,
            text: String::new(),
            is_settled: number.is_multiple_of(5),
        }))
    }

    /// Returns a change that `random` chooses.
    fn change(random: u64) -> ChatChange {
        let number = random / 32 % 40;
        let key = number.to_string();
        match random % 16 {
            0 => ChatChange::Position { position: key },
            1 => ChatChange::Seen { key },
            2 => ChatChange::Pending {
                number,
                work: PendingWork {
                    id: key,
                    event: ChatEvent::Other,
                },
            },
            3 => ChatChange::Done { number },
            4 => ChatChange::Paired(PairedPerson {
                id: key.clone(),
                chat: key,
                name: "n".to_owned(),
                since_ms: 1,
            }),
            5 => ChatChange::Removed { person: key },
            6 => ChatChange::Moved {
                from: (number % 3).to_string(),
                to: key,
            },
            7 => ChatChange::Held {
                place: (key, "1".to_owned()),
                files: Vec::new(),
            },
            8 => task(number, TaskStage::Over),
            9 => task(number, TaskStage::Resumed { key }),
            10 | 11 => say(number),
            12 => ChatChange::Turned {
                number,
                state: OutgoingState::Unknown,
            },
            13 => ChatChange::Sent {
                number,
                place: place(number),
                about: MessageSubject::Card(number),
            },
            14 => ChatChange::Dropped { number },
            _ => card(number),
        }
    }

    #[test]
    fn a_state_is_the_fold_of_its_facts() {
        // As `xorshift64` of Marsaglia.
        let mut random = 88_172_645_463_325_252_u64;
        let mut record = ChatRecord::default();
        for step in 0..20_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            record.apply(ChatFact::Changed(vec![change(random)]));
            if step % 97 != 0 {
                continue;
            }
            let mut again = ChatRecord::default();
            for fact in record.facts() {
                let fact = serde_json::to_string(&fact).unwrap();
                again.apply(serde_json::from_str(&fact).unwrap());
            }
            assert_eq!(record, again, "step {step}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut record = ChatRecord::default();
        for number in 0..20_000 {
            let changes = vec![
                ChatChange::Seen {
                    key: number.to_string(),
                },
                task(number, TaskStage::Over),
                card(number),
                say(number),
                ChatChange::Turned {
                    number,
                    state: OutgoingState::Unknown,
                },
            ];
            record.apply(ChatFact::Changed(changes));
            record.apply(ChatFact::Changed(vec![ChatChange::Sent {
                number: number + 50_000,
                place: place(number),
                about: MessageSubject::Nothing,
            }]));
        }
        assert_eq!(record.seen.len(), REMEMBERED_UPDATES);
        assert_eq!(record.tasks.len(), REMEMBERED_TASKS);
        assert_eq!(record.cards.len(), REMEMBERED_CARDS);
        assert_eq!(record.unknown(), REMEMBERED_UNKNOWN);
        assert_eq!(record.sent.len(), REMEMBERED_MESSAGES);
        assert_eq!(record.by_place.len(), REMEMBERED_MESSAGES);
        assert!(record.has_seen("19999") && !record.has_seen("1"));
    }
}
