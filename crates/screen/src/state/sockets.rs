//! Remembers messages that pages send over web sockets because of an input, and their answers: an
//! application whose server draws it answers that way.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// Time after an input within which sent data counts as an effect of the input.
const AT_ONCE: Duration = Duration::from_millis(250);

/// Maximum time to wait for an answer, which may never come.
const ANSWER: Duration = Duration::from_secs(1);

/// Maximum pause between the parts of one answer.
const PAUSE: Duration = Duration::from_millis(150);

#[derive(Debug, Default)]
pub(crate) struct PageSockets {
    /// The end of the last input; `None` while it is being sent, and before the first.
    input_ended: Option<Instant>,
    /// The last message sent because of an input, with the last one received after it, by session.
    asked: BTreeMap<String, (Instant, Option<Instant>)>,
    /// The open sockets, by session and number.
    open: BTreeSet<(String, String)>,
}

/// Maximum number of remembered open sockets.
const MAX_OPEN: usize = 1_000;

impl PageSockets {
    pub(crate) fn input_begins(&mut self) {
        self.input_ended = None;
        self.asked.clear();
    }

    pub(crate) fn input_ends(&mut self) {
        self.input_ended = Some(Instant::now());
    }

    pub(super) fn opened(&mut self, session: &str, number: String) {
        if self.open.len() < MAX_OPEN {
            self.open.insert((session.to_owned(), number));
        }
    }

    pub(super) fn closed(&mut self, session: &str, number: String) {
        self.open.remove(&(session.to_owned(), number));
    }

    /// Removes the sockets of a document that was replaced.
    pub(super) fn left(&mut self, session: &str) {
        self.open.retain(|(of, _)| of != session);
    }

    /// Whether a page has an open socket, whose messages cannot be held.
    pub(crate) fn is_open(&self, session: &str) -> bool {
        self.open.iter().any(|(of, _)| of == session)
    }

    pub(super) fn sent(&mut self, session: &str) {
        let now = Instant::now();
        if self.input_ended.is_none_or(|ended| now - ended < AT_ONCE) {
            self.asked.insert(session.to_owned(), (now, None));
        }
    }

    pub(super) fn received(&mut self, session: &str) {
        if let Some((_, answered)) = self.asked.get_mut(session) {
            *answered = Some(Instant::now());
        }
    }

    /// Returns the time until which an answer to a page is waited for.
    pub(crate) fn answer_until(&self, session: &str, now: Instant) -> Option<Instant> {
        let (asked, answered) = self.asked.get(session)?;
        let end = *asked + ANSWER;
        let until = answered.map_or(end, |answered| end.min(answered + PAUSE));
        (until > now).then_some(until)
    }
}
