//! Blocking work with a time limit, on a thread of its own; it is abandoned when its caller is
//! dropped.

use std::{
    future::pending,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Deadline and cancellation of work, which has to check them often.
pub(crate) struct Deadline {
    until: Instant,
    abandoned: Arc<AtomicBool>,
}

impl Deadline {
    pub(crate) fn is_over(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) || Instant::now() >= self.until
    }
}

/// Cancels the work when the call is dropped.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs the work on a blocking thread. A panic in it propagates to the caller.
pub(crate) async fn work<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce(&Deadline) -> T + Send + 'static,
) -> T {
    let abandoned = Arc::new(AtomicBool::new(false));
    let _waiting = CancelOnDrop(Arc::clone(&abandoned));
    let until = Instant::now() + limit;
    let deadline = Deadline { until, abandoned };
    match tokio::task::spawn_blocking(move || work(&deadline)).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The executor is shutting down, and this call with it.
            Err(_) => pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn ends_when_nobody_waits_or_time_is_up() {
        let wait = |deadline: &Deadline| {
            while !deadline.is_over() {
                std::thread::yield_now();
            }
        };
        work(Duration::from_millis(1), wait).await;
        let (start, started) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let endless = work(Duration::from_secs(3600), move |deadline| {
            start.send(()).unwrap();
            wait(deadline);
            end.send(()).unwrap();
        });
        tokio::select! {
            () = endless => panic!("it ended by itself"),
            begun = started => begun.unwrap(),
        }
        ended.await.unwrap();
    }
}
