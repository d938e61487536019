//! The times at which servers and workers were harmed: what a takeover's time is compared with.

use std::{
    collections::BTreeMap,
    time::{SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;

/// Returns the time in microseconds since 1970. Everything here is one machine, with one clock.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    })
}

/// A server or a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// A server.
    Server(usize),
    /// A worker.
    Worker(usize),
}

/// A harm that has begun.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Harm {
    subject: Subject,
    number: usize,
}

/// The spans of time in which each was harmed, in microseconds; one that lasts has no end yet.
#[derive(Default)]
pub(crate) struct Harms {
    spans: Mutex<BTreeMap<Subject, Vec<Span>>>,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    from: i64,
    to: Option<i64>,
}

impl Harms {
    /// Notes that something is harmed from a time on.
    pub(crate) fn begin(&self, subject: Subject, from: i64) -> Harm {
        let mut spans = self.spans.lock();
        let spans = spans.entry(subject).or_default();
        spans.push(Span { from, to: None });
        Harm {
            subject,
            number: spans.len() - 1,
        }
    }

    /// Notes that a harm is over.
    pub(crate) fn end(&self, harm: Harm) {
        let mut spans = self.spans.lock();
        if let Some(span) = spans.entry(harm.subject).or_default().get_mut(harm.number) {
            span.to = Some(now_us());
        }
    }

    /// Whether something was harmed at some time between two.
    pub(crate) fn was_harmed(&self, subject: Subject, from: i64, to: i64) -> bool {
        let spans = self.spans.lock();
        spans.get(&subject).is_some_and(|spans| {
            spans
                .iter()
                .any(|span| span.from <= to && span.to.is_none_or(|end| end >= from))
        })
    }
}
