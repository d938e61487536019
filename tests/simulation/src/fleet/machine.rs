//! A worker's machine and its connection to the stream, as the program's own traits.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use async_trait::async_trait;
use gyrus_fleet::{
    AppendAnswer, LogSubject, LogUnreachable, Machine, MachineTime, MessageId, SharedLog,
    StoredMessage, WriterId,
};

use super::state::{Answer, Shared};

/// The surroundings of one process.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub(super) shared: Arc<Shared>,
    pub(super) process: usize,
}

/// Waits for the answer to a ticket.
struct Ticket {
    shared: Arc<Shared>,
    number: u64,
}

impl Future for Ticket {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Answer> {
        match self.shared.inner().take_answer(self.number) {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        }
    }
}

impl Surroundings {
    fn wait(&self, number: u64) -> Ticket {
        Ticket {
            shared: Arc::clone(&self.shared),
            number,
        }
    }

    /// Returns after this time on the worker's own clock.
    pub(super) async fn sleep(&self, micros: u64) {
        let until = MachineTime(self.now().0 + micros);
        self.sleep_until(until).await;
    }
}

#[async_trait]
impl Machine for Surroundings {
    fn now(&self) -> MachineTime {
        self.shared.inner().local_time(self.process)
    }

    async fn sleep_until(&self, time: MachineTime) {
        let number = self.shared.inner().wake_at(self.process, time);
        self.wait(number).await;
    }

    fn live_until(&self, time: MachineTime) -> Result<(), String> {
        self.shared.inner().live_until(self.process, time);
        Ok(())
    }
}

#[async_trait]
impl SharedLog for Surroundings {
    async fn append_if(
        &self,
        id: &MessageId,
        expected: u64,
        body: &Arc<[u8]>,
        until: MachineTime,
    ) -> AppendAnswer {
        let mut id = id.clone();
        let number = {
            let mut inner = self.shared.inner();
            if inner.has_shared_ids() {
                id.writer = WriterId(0);
            }
            inner.send_append(self.process, id, expected, body.clone(), until)
        };
        match self.wait(number).await {
            Answer::Append(appended) => appended,
            _ => AppendAnswer::Unknown {
                why: "no answer".to_owned(),
            },
        }
    }

    async fn read_from(
        &self,
        subject: &LogSubject,
        after: u64,
        until: MachineTime,
    ) -> Result<Vec<StoredMessage>, LogUnreachable> {
        let number = self
            .shared
            .inner()
            .send_read(self.process, subject.clone(), after, until);
        match self.wait(number).await {
            Answer::Shown(messages) => Ok(messages),
            _ => Err(LogUnreachable {
                why: "no answer".to_owned(),
            }),
        }
    }

    fn news(&self, _: &LogSubject) -> tokio::sync::watch::Receiver<u64> {
        tokio::sync::watch::channel(0).1
    }
}
