//! The threads that flush, shared by all logs of a process.
//!
//! A flush blocks for as long as the disk takes, so it must not run on an executor's threads. A few
//! dedicated threads take one flush after the other without sleeping between them; a log that waits
//! for a thread grows its batch meanwhile. Entries that no task waits for are flushed at intervals.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    thread,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

use crate::flush::{FlushTurn, Lead, WriterInner};

/// Maximum time until entries that no task waits for are put on disk, inside a tokio runtime.
const FLUSH_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum number of logs that are flushed at once: enough to share the disk's own commits, and few
/// enough that threads do not spend their time waking each other.
const MAX_THREADS: usize = 16;

/// Time without work after which a thread ends.
const IDLE: Duration = Duration::from_secs(10);

static FLUSHERS: Flushers = Flushers {
    queue: Mutex::new(FlushQueue {
        leads: VecDeque::new(),
        threads: 0,
        idle: 0,
    }),
    more: Condvar::new(),
};

struct Flushers {
    queue: Mutex<FlushQueue>,
    more: Condvar,
}

struct FlushQueue {
    leads: VecDeque<Lead>,
    threads: usize,
    /// Number of threads that wait for work.
    idle: usize,
}

/// Flushes on another thread. Waiting tasks are notified by the log itself.
pub(crate) fn flush(lead: Lead) {
    let mut queue = FLUSHERS.queue.lock();
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
        // No thread can be started, so the calling thread flushes.
        let mut queue = FLUSHERS.queue.lock();
        queue.threads -= 1;
        let lead = queue.leads.pop_front();
        drop(queue);
        if let Some(lead) = lead {
            lead.flush();
        }
    }
}

impl Flushers {
    fn work(&self) {
        while let Some(lead) = self.next() {
            lead.flush();
        }
    }

    /// Returns the next flush; `None` ends the thread.
    fn next(&self) -> Option<Lead> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(lead) = queue.leads.pop_front() {
                return Some(lead);
            }
            queue.idle += 1;
            let waited = self.more.wait_for(&mut queue, IDLE);
            queue.idle -= 1;
            if waited.timed_out() && queue.leads.is_empty() {
                queue.threads -= 1;
                return None;
            }
        }
    }
}

/// Flushes pending entries of a log at intervals, until there are none.
pub(crate) fn start_timer(shared: &Arc<WriterInner>) {
    let timer = Timer(Arc::downgrade(shared));
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(FLUSH_INTERVAL).await;
            let Some(shared) = timer.0.upgrade() else {
                return;
            };
            {
                let mut state = shared.state.lock();
                if !state.waits() {
                    state.timer = false;
                    return;
                }
            }
            let target = shared.state.lock().target();
            // A failure is reported to the tasks that need the entries on disk.
            if let Ok(FlushTurn::Lead(lead)) = shared.turn(target) {
                flush(lead);
            }
        }
    });
}

/// A task that flushes. When it ends, for whatever reason, the next append starts another.
struct Timer(Weak<WriterInner>);

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.state.lock().timer = false;
        }
    }
}
