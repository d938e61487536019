//! Handles a server's notifications: progress of a call, and changes of its tools. Its requests
//! (questions, prompts for a model) are passed on to the call during which they come, if that has a
//! caller who can be asked; without one they are declined, and so is a request for folders.

#![expect(
    deprecated,
    reason = "the protocol's next version drops sampling; servers of today have it"
)]

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use parking_lot::Mutex;
use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
        ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, ErrorData,
        FormElicitationCapability, Implementation, ProgressNotificationParam, ProgressToken,
        RequestId, SamplingCapability, UrlElicitationCapability,
    },
    service::{InboundStreamOrigin, NotificationContext, RequestContext},
};
use tokio::sync::{mpsc, oneshot, watch};

use crate::{RequestPolicy, asking::ServerRequest, definition::clean};

/// Maximum characters of a server's progress message.
const MAX_WORDS: usize = 120;

/// Maximum number of requests of a server that wait during one call; further ones are declined.
const MAX_WAITING: usize = 8;

/// Receives the notifications and requests of one server.
#[derive(Clone)]
pub(crate) struct Subscriber {
    notifications: Arc<ServerNotifications>,
    requests: RequestPolicy,
}

#[derive(Default)]
struct ServerNotifications {
    changed: AtomicBool,
    /// The calls in progress, oldest first.
    calls: Mutex<Vec<OpenCall>>,
    next: AtomicU64,
}

struct OpenCall {
    number: u64,
    /// The request and the token of its progress; `None` until it is sent.
    sent: Option<(RequestId, ProgressToken)>,
    words: watch::Sender<String>,
    /// The receiver of requests during the call, if somebody can be asked.
    requests: Option<mpsc::Sender<ServerRequest>>,
}

/// The progress messages and requests of a server during a call.
pub(crate) struct ServerMessages {
    pub(crate) number: u64,
    pub(crate) words: watch::Receiver<String>,
    pub(crate) requests: mpsc::Receiver<ServerRequest>,
}

impl Subscriber {
    pub(crate) fn new(requests: RequestPolicy) -> Self {
        Self {
            notifications: Arc::default(),
            requests,
        }
    }

    /// Whether the server announced a change of its tools since the last call of this function.
    pub(crate) fn tools_changed(&self) -> bool {
        self.notifications.changed.swap(false, Ordering::AcqRel)
    }

    /// Marks the tools as changed again, because listing them failed.
    pub(crate) fn tools_may_have_changed(&self) {
        self.notifications.changed.store(true, Ordering::Release);
    }

    /// Returns the receivers of messages and requests during a call that is about to be sent, until
    /// [`Self::forget`].
    pub(crate) fn listen(&self, has_caller: bool) -> ServerMessages {
        let (words, heard) = watch::channel(String::new());
        let (requests, asked) = mpsc::channel(MAX_WAITING);
        let may_ask = has_caller && self.requests == RequestPolicy::Offered;
        let number = self.notifications.next.fetch_add(1, Ordering::Relaxed);
        self.notifications.calls.lock().push(OpenCall {
            number,
            sent: None,
            words,
            requests: may_ask.then_some(requests),
        });
        ServerMessages {
            number,
            words: heard,
            requests: asked,
        }
    }

    pub(crate) fn sent(&self, number: u64, sent: (RequestId, ProgressToken)) {
        let mut calls = self.notifications.calls.lock();
        if let Some(call) = calls.iter_mut().find(|open| open.number == number) {
            call.sent = Some(sent);
        }
    }

    pub(crate) fn forget(&self, number: u64) {
        self.notifications
            .calls
            .lock()
            .retain(|open| open.number != number);
    }

    /// Passes a request to the call during which it came: over HTTP the call on whose stream it
    /// was, over pipes the oldest one. Returns whether the call took it.
    fn put(&self, context: &RequestContext<RoleClient>, request: ServerRequest) -> bool {
        let call = match context.extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(call)) => Some(call),
            Some(InboundStreamOrigin::Unassociated) | None => None,
        };
        let calls = self.notifications.calls.lock();
        let mut open = calls.iter().filter(|open| open.requests.is_some());
        let open = open.find(|open| match (call, &open.sent) {
            (Some(call), Some((id, _))) => id == call,
            (None, _) | (_, None) => true,
        });
        let requests = open.and_then(|open| open.requests.as_ref());
        requests.is_some_and(|requests| requests.try_send(request).is_ok())
    }
}

impl ClientHandler for Subscriber {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("gyrus", env!("CARGO_PKG_VERSION"));
        let mut offered = ClientCapabilities::default();
        if self.requests == RequestPolicy::Offered {
            let elicitation = ElicitationCapability::new()
                .with_form(FormElicitationCapability::new())
                .with_url(UrlElicitationCapability::new());
            offered.elicitation = Some(elicitation);
            offered.sampling = Some(SamplingCapability::default());
        }
        ClientConfig::new(offered, us)
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let (answer, answered) = oneshot::channel();
        if !self.put(
            &context,
            ServerRequest::Elicitation(Box::new(params), answer),
        ) {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        }
        tokio::select! {
            answered = answered => {
                // The call has ended meanwhile.
                answered.unwrap_or_else(|_| Ok(ElicitResult::new(ElicitationAction::Cancel)))
            }
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let refused = |why| Err(ErrorData::invalid_request(why, None));
        let (answer, answered) = oneshot::channel();
        if !self.put(&context, ServerRequest::Sampling(Box::new(params), answer)) {
            return refused("no model is asked for a server now");
        }
        tokio::select! {
            answered = answered => {
                answered.unwrap_or_else(|_| refused("the call during which you asked has ended"))
            }
            () = context.ct.cancelled() => refused("cancelled"),
        }
    }

    async fn on_progress(
        &self,
        said: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let calls = self.notifications.calls.lock();
        let is_about = |open: &&OpenCall| {
            let sent = open.sent.as_ref();
            sent.is_some_and(|(_, token)| *token == said.progress_token)
        };
        if let Some(call) = calls.iter().find(is_about) {
            call.words.send_replace(in_words(&said));
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tools_may_have_changed();
    }
}

fn in_words(said: &ProgressNotificationParam) -> String {
    let number = match said.total {
        Some(total) => format!("{} of {total}", said.progress),
        None => said.progress.to_string(),
    };
    let Some(message) = &said.message else {
        return number;
    };
    let message = clean(message).replace('\n', " ");
    let message = gyrus_text::shorten(&message, MAX_WORDS);
    format!("{number}: {message}")
}
