//! Many questions to a program at a time. They are sent together: a write for each would cost more
//! than all the answers.

use std::{collections::BTreeMap, num::NonZeroU32};

use futures_util::StreamExt as _;
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::{Instant, timeout_at};
use zbus::{Connection, DynamicType, Message, MessageStream, Type, message};

/// Maximum number of questions that wait for an answer, and the number that are sent together.
const WAITING: usize = 128;
const TOGETHER: usize = 64;

/// Requests to one program, with their answers in the same order.
pub(super) struct ProgramQuestions<'a> {
    name: &'a str,
    asked: Vec<Option<Message>>,
}

/// The answer to a question; `None` if the program refused it.
pub(super) struct ProgramAnswer(Option<Message>);

impl ProgramAnswer {
    /// Returns the answer, if it has this type.
    pub(super) fn read<T: DeserializeOwned + Type>(&self) -> Option<T> {
        let body = self.0.as_ref()?.body();
        // A structure and its parts are sent alike.
        body.deserialize_ignore_signature().ok()
    }
}

impl<'a> ProgramQuestions<'a> {
    /// Creates an empty list of requests to the program of this name on the bus.
    pub(super) fn to(name: &'a str) -> Self {
        let asked = Vec::new();
        Self { name, asked }
    }

    /// Adds a call of a method of an element.
    pub(super) fn add(
        &mut self,
        path: &str,
        interface: &str,
        method: &str,
        body: &(impl Serialize + DynamicType),
    ) {
        let call = Message::method_call(path, method);
        let call = call.destination(self.name).interface(interface);
        self.asked.push(call.build(body).ok());
    }

    /// Sends all requests. Answers that do not arrive in time are missing at the end.
    pub(super) async fn ask(self, bus: &Connection, until: Instant) -> Vec<ProgramAnswer> {
        let mut answers: Vec<Option<ProgramAnswer>> = Vec::new();
        let mut waiting: BTreeMap<NonZeroU32, usize> = BTreeMap::new();
        let mut replies = MessageStream::from(bus);
        let mut unsent = Vec::new();
        for (at, question) in self.asked.into_iter().enumerate() {
            answers.push(question.is_none().then_some(ProgramAnswer(None)));
            unsent.extend(question.map(|question| (at, question)));
        }
        let mut unsent = unsent.into_iter().peekable();
        while unsent.peek().is_some() || !waiting.is_empty() {
            if unsent.peek().is_some() && waiting.len() + TOGETHER <= WAITING {
                let next: Vec<_> = unsent.by_ref().take(TOGETHER).collect();
                let serials = next
                    .iter()
                    .map(|(at, it)| (it.primary_header().serial_num(), *at));
                waiting.extend(serials);
                let next: Vec<_> = next.into_iter().map(|(_, question)| question).collect();
                if bus.send_all(&next).await.is_err() {
                    break;
                }
                continue;
            }
            let Ok(Some(Ok(reply))) = timeout_at(until, replies.next()).await else {
                break;
            };
            let serial = reply.header().reply_serial();
            if let Some(at) = serial.and_then(|serial| waiting.remove(&serial)) {
                let is_answer = reply.message_type() == message::Type::MethodReturn;
                answers[at] = Some(ProgramAnswer(is_answer.then_some(reply)));
            }
        }
        answers.into_iter().map_while(|answer| answer).collect()
    }
}
