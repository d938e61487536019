//! The threads that flush, shared by all logs of a process.
//!
//! A flush blocks for as long as the disk takes, so it is no work for an executor's threads. A few
//! threads of our own take one flush after the other without going to sleep between them; what
//! waits for a thread grows its batch meanwhile.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use crate::flush::Lead;

/// So many logs are flushed at once: enough to share the disk's own commits, and few enough that
/// threads do not spend their time waking each other.
const MAX_THREADS: usize = 16;

/// A thread that had nothing to do for so long ends.
const IDLE: Duration = Duration::from_secs(10);

static FLUSHERS: Flushers = Flushers {
    queue: Mutex::new(Queue {
        leads: VecDeque::new(),
        threads: 0,
        idle: 0,
    }),
    more: Condvar::new(),
};

struct Flushers {
    queue: Mutex<Queue>,
    more: Condvar,
}

struct Queue {
    leads: VecDeque<Lead>,
    threads: usize,
    /// Threads that wait for more.
    idle: usize,
}

/// Flushes on another thread. Whoever waits is told by the log itself.
pub(crate) fn flush(lead: Lead) {
    let mut queue = FLUSHERS.queue();
    queue.leads.push_back(lead);
    if queue.idle >= queue.leads.len() {
        FLUSHERS.more.notify_one();
        return;
    }
    if queue.threads >= MAX_THREADS {
        return;
    }
    queue.threads += 1;
    drop(queue);
    let started = thread::Builder::new()
        .name("gyrus-flush".to_owned())
        .spawn(|| FLUSHERS.work());
    if started.is_err() {
        // No thread is to be had: this one must do.
        let mut queue = FLUSHERS.queue();
        queue.threads -= 1;
        let lead = queue.leads.pop_front();
        drop(queue);
        if let Some(lead) = lead {
            lead.flush();
        }
    }
}

impl Flushers {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // A panic elsewhere leaves the queue whole.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some(lead) = self.next() {
            lead.flush();
        }
    }

    /// The next flush; `None` ends the thread.
    fn next(&self) -> Option<Lead> {
        let mut queue = self.queue();
        loop {
            if let Some(lead) = queue.leads.pop_front() {
                return Some(lead);
            }
            queue.idle += 1;
            let (woken, waited) = self
                .more
                .wait_timeout(queue, IDLE)
                .unwrap_or_else(PoisonError::into_inner);
            queue = woken;
            queue.idle -= 1;
            if waited.timed_out() && queue.leads.is_empty() {
                queue.threads -= 1;
                return None;
            }
        }
    }
}
