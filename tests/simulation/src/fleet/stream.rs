//! A model of a log as JetStream keeps it, with what its documentation and its threads warn of: a
//! repeated name is answered before the condition is looked at, an append that is under way stands
//! in the way of others, proposals die with their leader, reads come from replicas that lag, and others
//! may write too.

use std::collections::{BTreeMap, HashMap};

use fastrand::Rng;
use gyrus_fleet::{AppendAnswer, LogSubject, MessageId, StoredMessage};

use super::outcome::Flaw;

/// A stream of subjects.
#[derive(Debug, Default)]
pub(super) struct Stream {
    subjects: BTreeMap<LogSubject, Vec<StoredMessage>>,
    last: u64,
    /// The messages whose names are remembered, and when they were stored.
    known: HashMap<MessageId, (u64, u64)>,
    under_way: BTreeMap<LogSubject, Proposal>,
    /// Time for which a name is remembered.
    window: u64,
    flaw: Option<Flaw>,
}

/// A message that is not stored yet.
#[derive(Debug, Clone)]
pub(super) struct Proposal {
    pub(super) id: MessageId,
    pub(super) expected: u64,
    pub(super) body: std::sync::Arc<[u8]>,
    /// The ticket of whoever waits for the answer.
    pub(super) ticket: u64,
}

/// The result of a message's arrival.
pub(super) enum Arrival {
    /// It is answered at once.
    Answered(AppendAnswer),
    /// It is proposed to the other replicas.
    Proposed,
}

impl Stream {
    pub(super) fn new(window: u64, flaw: Option<Flaw>) -> Self {
        Self {
            window,
            flaw,
            ..Self::default()
        }
    }

    /// Returns the messages of a subject.
    pub(super) fn messages(&self, subject: &LogSubject) -> &[StoredMessage] {
        self.subjects.get(subject).map_or(&[], Vec::as_slice)
    }

    fn last_of(&self, subject: &LogSubject) -> u64 {
        self.messages(subject)
            .last()
            .map_or(0, |last| last.position)
    }

    /// Takes a message that arrives.
    pub(super) fn arrive(&mut self, proposal: Proposal, now: u64) -> Arrival {
        if let Some((position, at)) = self.known.get(&proposal.id)
            && now.saturating_sub(*at) <= self.window
        {
            return Arrival::Answered(AppendAnswer::Stored {
                position: *position,
            });
        }
        let subject = &proposal.id.subject;
        let is_fenced = self.flaw != Some(Flaw::NoFencing);
        if self.under_way.contains_key(subject) {
            return Arrival::Answered(AppendAnswer::Busy);
        }
        let last = self.last_of(subject);
        if is_fenced && last != proposal.expected {
            return Arrival::Answered(AppendAnswer::Refused { last });
        }
        self.under_way.insert(subject.clone(), proposal);
        Arrival::Proposed
    }

    /// Stores what is under way on a subject. Returns it, and its place.
    pub(super) fn commit(&mut self, subject: &LogSubject, now: u64) -> Option<(Proposal, u64)> {
        let proposal = self.under_way.remove(subject)?;
        self.last += 1;
        let position = self.last;
        self.known.insert(proposal.id.clone(), (position, now));
        let messages = self.subjects.entry(subject.clone()).or_default();
        messages.push(StoredMessage {
            position,
            body: proposal.body.clone(),
        });
        Some((proposal, position))
    }

    /// Stores what no worker wrote, without a condition, behind the messages of a subject.
    pub(super) fn disturb(&mut self, random: &mut Rng) {
        let quiet = |subject: &&LogSubject| !self.under_way.contains_key(*subject);
        let subjects: Vec<_> = self.subjects.keys().filter(quiet).cloned().collect();
        let Some(subject) = random.choice(subjects) else {
            return;
        };
        self.last += 1;
        let messages = self.subjects.entry(subject).or_default();
        messages.push(StoredMessage {
            position: self.last,
            body: b"hello".as_slice().into(),
        });
    }

    /// Another replica leads: what is under way is lost, or stored without an answer.
    pub(super) fn lose_leader(&mut self, random: &mut Rng) {
        self.under_way.retain(|_, _| random.bool());
        if self.flaw == Some(Flaw::LazySync) {
            for messages in self.subjects.values_mut() {
                if messages.len() > 3 && random.u8(..8) == 0 {
                    messages.pop();
                }
            }
        }
    }

    /// Returns what a replica shows of a subject after a place.
    pub(super) fn shown(
        &self,
        subject: &LogSubject,
        after: u64,
        random: &mut Rng,
    ) -> Vec<StoredMessage> {
        let messages = self.messages(subject);
        let lag = if random.u8(..5) == 0 {
            random.usize(..4)
        } else {
            0
        };
        let shown = &messages[..messages.len().saturating_sub(lag)];
        let from = shown.partition_point(|message| message.position <= after);
        shown[from..].to_vec()
    }
}
