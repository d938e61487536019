//! A connection to a server: from its start to its end, with the calls between.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gyrus_contract::{BoxedFuture, Digest, Service};
use parking_lot::Mutex;
use rmcp::{
    Peer, RoleClient,
    model::{
        CancelledNotification, CancelledNotificationParam, ClientRequest, PaginatedRequestParams,
        RequestId, ServerCapabilities, ServerResult,
    },
    service::{PeerRequestOptions, RunningService, ServiceError, serve_client},
    transport::async_rw::AsyncRwTransport,
};
use serde_json::Value;
use tokio::{
    task::{AbortHandle, JoinHandle},
    time::{Instant, sleep, timeout},
};

use crate::{
    asking::Caller,
    bounded::{EndReason, LineLimit},
    definition::{self, MAX_TOOLS},
    http::{self, NotReached},
    pages::{self, PagedList},
    process,
    resources::ResourceTool,
    setup::{EndOfStart, JudgeStart, ServerSetup, ServerWay, StartedServer},
    subscriber::Subscriber,
};

/// Time limit for a server to answer the initialisation and list its tools.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(60);

/// Maximum time to list the tools again.
const LIST_LIMIT: Duration = Duration::from_secs(10);

/// Maximum time to wait for the reason after a connection broke: mostly, the server then ends.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Time limit for a server to end by itself.
const GOODBYE: Duration = Duration::from_secs(1);

/// Maximum duration of a call, even if its server reports progress.
const CALL_LIMIT: Duration = Duration::from_secs(60 * 60);

/// Minimum time between two progress messages of a call that are passed on.
const BETWEEN_WORDS: Duration = Duration::from_millis(100);

/// Maximum number of pages of a list of tools.
const MAX_PAGES: usize = 20;

pub(crate) struct ServerConnection {
    service: Mutex<Option<RunningService<RoleClient, Subscriber>>>,
    peer: Peer<RoleClient>,
    subscriber: Subscriber,
    why: EndReason,
    /// Task that keeps the server's process; aborting it ends the process.
    keeping: Option<AbortHandle>,
    /// Digests of the definitions by name, as of the last list; `None` where several have one name.
    defined: Mutex<BTreeMap<String, Option<Digest>>>,
    /// Cancellations of abandoned calls, which should reach the server before its end.
    given_up: Arc<Mutex<Vec<JoinHandle<()>>>>,
    /// The server's name and protocol version, in its own words.
    pub(crate) about: String,
    /// Definitions of the tools as last listed by the server.
    list: Mutex<Arc<Vec<Value>>>,
    /// Time from the start until the server was ready.
    pub(crate) took: Duration,
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        if let Some(keeping) = &self.keeping {
            keeping.abort();
        }
    }
}

/// Reason why a call has no answer.
pub(crate) enum UnansweredCall {
    Refused(String),
    /// The server sent nothing for this time.
    Silent(Duration),
    /// The server ended or the connection broke.
    Gone(String),
}

/// The judgement of a start, which takes place even if the start fails.
struct StartJudgement(Option<EndOfStart>);

impl StartJudgement {
    async fn begin(judge: Option<JudgeStart>) -> Result<Self, String> {
        let Some(judge) = judge else {
            return Ok(Self(None));
        };
        let looked = tokio::task::spawn_blocking(move || judge()).await;
        Ok(Self(Some(looked.map_err(|error| error.to_string())??)))
    }

    async fn judge(&mut self, server: StartedServer) -> Result<(), String> {
        let Some(mut end) = self.0.take() else {
            return Ok(());
        };
        let judged = tokio::task::spawn_blocking(move || {
            let judged = end(server);
            (judged, end)
        });
        let (judged, end) = judged.await.map_err(|error| error.to_string())?;
        if judged.is_err() && server == StartedServer::Ready {
            self.0 = Some(end);
        }
        judged
    }
}

impl Drop for StartJudgement {
    fn drop(&mut self) {
        if let Some(end) = &mut self.0 {
            // Nobody waits for this server any more.
            let _ = end(StartedServer::Ended);
        }
    }
}

impl ServerConnection {
    /// Starts or contacts the server and lists its tools. Dropping the future ends the server.
    ///
    /// # Errors
    /// Returns the reason as text.
    pub(crate) async fn open(setup: &ServerSetup) -> Result<Self, String> {
        let begun = Instant::now();
        let opening = async {
            match &setup.way {
                ServerWay::Process { .. } => Self::started(setup).await,
                ServerWay::Http {
                    url,
                    headers,
                    login,
                } => match http::connect(url, headers, login.as_ref(), setup.requests).await {
                    Ok(service) => Ok(Self::over(service, EndReason::default(), None)),
                    Err(NotReached::Login(challenge)) => Err(setup.wants_login(&challenge)),
                    Err(NotReached::Other(why)) => Err(why),
                },
            }
        };
        let listed = async {
            let mut connection = opening.await?;
            let list = connection.tools().await.map_err(|error| {
                let why = connection.why.get().cloned();
                why.unwrap_or_else(|| format!("it does not say what it can: {error}"))
            })?;
            connection.define(list);
            connection.took = begun.elapsed();
            Ok(connection)
        };
        let mut starting = StartJudgement::begin(setup.judge_start.clone()).await?;
        let opened = timeout(START_LIMIT, listed).await;
        let opened = opened.unwrap_or_else(|_| Err(setup.too_slow(START_LIMIT)));
        let connection = match opened {
            Ok(connection) => connection,
            Err(why) => {
                starting.judge(StartedServer::Ended).await?;
                return Err(why);
            }
        };
        if let Err(why) = starting.judge(StartedServer::Ready).await {
            drop(connection);
            // Until it has ended it may have gone on.
            let _ = starting.judge(StartedServer::Ended).await;
            return Err(why);
        }
        Ok(connection)
    }

    async fn started(setup: &ServerSetup) -> Result<Self, String> {
        let ServerWay::Process {
            program,
            arguments,
            environment,
            folder,
            pipes,
            run,
        } = &setup.way
        else {
            return Err("it is not a program".to_owned());
        };
        let what = process::PipedProgram {
            program,
            arguments,
            environment,
            folder,
        };
        let started = process::start_piped(&what, pipes, run)
            .map_err(|error| format!("its pipes cannot be laid in {}: {error}", pipes.display()))?;
        let why = EndReason::default();
        let mut running = started.running;
        let from = LineLimit::new(started.from, why.clone());
        // The reader above keeps the bound, and says so where it is broken.
        let transport =
            AsyncRwTransport::new_client(from, started.to).with_max_line_length(usize::MAX);
        let service = tokio::select! {
            biased;
            ended = &mut running => return Err(process::how_it_ended(ended)),
            service = serve_client(Subscriber::new(setup.requests), transport) => service,
        };
        let service = match service {
            Ok(service) => service,
            Err(error) => {
                let ended = timeout(LAST_WORDS, running).await;
                let ended = ended.ok().map(process::how_it_ended);
                let known = why.get().cloned().or(ended);
                return Err(known.unwrap_or_else(|| in_words(&error)));
            }
        };
        let token = service.cancellation_token();
        let told = why.clone();
        let keeping = tokio::spawn(async move {
            let ended = process::how_it_ended(running.await);
            let _ = told.set(ended);
            token.cancel();
        });
        Ok(Self::over(service, why, Some(keeping.abort_handle())))
    }

    fn over(
        service: RunningService<RoleClient, Subscriber>,
        why: EndReason,
        keeping: Option<AbortHandle>,
    ) -> Self {
        let peer = service.peer().clone();
        let about = peer.peer_info().map_or_else(String::new, |info| {
            let server = info.server_info.as_ref();
            let name = server.map_or("", |server| &server.name);
            let version = server.map_or("", |server| &server.version);
            let about = format!(
                "{name} {version}, protocol {}",
                info.protocol_version.as_str()
            );
            definition::clean(&about).replace('\n', " ")
        });
        Self {
            subscriber: service.service().clone(),
            service: Mutex::new(Some(service)),
            peer,
            why,
            keeping,
            defined: Mutex::default(),
            given_up: Arc::default(),
            about,
            list: Mutex::default(),
            took: Duration::ZERO,
        }
    }

    pub(crate) fn ended(&self) -> Option<String> {
        let closed = self.peer.is_transport_closed();
        let why = || self.why.get().cloned();
        closed.then(|| why().unwrap_or_else(|| "the connection was closed".to_owned()))
    }

    async fn tools(&self) -> Result<Vec<Value>, ServiceError> {
        match self.pages(pages::TOOLS).await {
            // A server that has only resources or prompts need not know the question.
            Err(ServiceError::McpError(_)) if self.offers(|offers| offers.tools.is_none()) => {
                Ok(Vec::new())
            }
            listed => listed,
        }
    }

    /// Lists all items of a kind that the server has, as raw definitions: the first thousand or a
    /// few more.
    async fn pages(&self, pages: PagedList) -> Result<Vec<Value>, ServiceError> {
        let mut all = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            // Read as raw JSON: one invalid definition must not hide the others.
            let page = self.peer.send_request((pages.request)(params)).await?;
            let page = serde_json::to_value(page);
            let mut page = page.map_err(|_| ServiceError::UnexpectedResponse)?;
            let Some(Value::Array(more)) = page.get_mut(pages.field).map(Value::take) else {
                return Err(ServiceError::UnexpectedResponse);
            };
            all.extend(more);
            cursor = page["nextCursor"].as_str().map(str::to_owned);
            if cursor.is_none() || all.len() > MAX_TOOLS {
                break;
            }
        }
        Ok(all)
    }

    /// Lists all items of a kind that the server has; none if it does not answer within a moment.
    pub(crate) async fn list_of(&self, pages: PagedList) -> Vec<Value> {
        let listed = timeout(LIST_LIMIT, self.pages(pages)).await;
        listed.ok().and_then(Result::ok).unwrap_or_default()
    }

    pub(crate) fn offers(&self, says: impl Fn(&ServerCapabilities) -> bool) -> bool {
        let info = self.peer.peer_info();
        info.is_some_and(|info| says(&info.capabilities))
    }

    /// Returns the definitions of the tools as last listed by the server.
    pub(crate) fn list(&self) -> Arc<Vec<Value>> {
        let list = self.list.lock();
        list.clone()
    }

    /// Lists the tools again if the server announced a change. Returns whether what is known of
    /// them is up to date.
    pub(crate) async fn refresh(&self, limit: Duration) -> bool {
        if !self.subscriber.tools_changed() {
            return true;
        }
        match timeout(limit, self.tools()).await {
            Ok(Ok(list)) => {
                self.define(list);
                true
            }
            _ => {
                self.subscriber.tools_may_have_changed();
                false
            }
        }
    }

    fn define(&self, list: Vec<Value>) {
        let mut defined: BTreeMap<String, Option<Digest>> = BTreeMap::new();
        for said in &list {
            if let Some(name) = said["name"].as_str() {
                let digest = definition::digest(said);
                defined
                    .entry(name.to_owned())
                    .and_modify(|known| *known = None)
                    .or_insert(Some(digest));
            }
        }
        *self.defined.lock() = defined;
        *self.list.lock() = Arc::new(list);
    }

    /// Checks that the server still defines a tool as it did when the run began.
    ///
    /// # Errors
    /// The difference, for the model.
    pub(crate) async fn still_says(&self, service: &Service) -> Result<(), String> {
        if ResourceTool::of(service).is_some() {
            let has_some = self.offers(|offers| offers.resources.is_some());
            return if has_some {
                Ok(())
            } else {
                Err("the server has no resources any more".to_owned())
            };
        }
        if !self.refresh(LIST_LIMIT).await {
            return Err("the server said that its tools changed, and not to what".to_owned());
        }
        let defined = self.defined.lock();
        match defined.get(&service.tool) {
            Some(Some(digest)) if *digest == service.definition => Ok(()),
            Some(_) => Err(
                "the server describes this tool in other words than when the run began".to_owned(),
            ),
            None => Err("the server has no such tool any more".to_owned()),
        }
    }

    /// Sends a request and waits for its answer. Meanwhile the server may ask the caller, if there
    /// is one, and may be silent while it waits for the caller's answer. Dropping the future
    /// informs the server that the request is cancelled.
    pub(crate) async fn ask(
        &self,
        request: ClientRequest,
        silence: Duration,
        caller: Option<&Caller<'_>>,
    ) -> Result<Value, UnansweredCall> {
        // Before it is sent: a server may ask at once.
        let mut said = self.subscriber.listen(caller.is_some());
        let mut open = CallInFlight {
            connection: self,
            call: None,
            number: said.number,
        };
        let options = PeerRequestOptions::no_options();
        let sent = self.peer.send_cancellable_request(request, options).await;
        let handle = sent.map_err(|error| self.no_answer(&error))?;
        open.call = Some(handle.id.clone());
        let sent = (handle.id.clone(), handle.progress_token.clone());
        self.subscriber.sent(open.number, sent);
        let mut answer = handle.rx;
        let total = sleep(CALL_LIMIT);
        let pause = sleep(Duration::ZERO);
        tokio::pin!(total, pause);
        let mut asking: Option<PendingServerRequest<'_>> = None;
        loop {
            tokio::select! {
                biased;
                answered = &mut answer => {
                    open.call = None;
                    let answered = answered.unwrap_or(Err(ServiceError::TransportClosed));
                    let answer = answered.map_err(|error| self.no_answer(&error))?;
                    return plain(&answer);
                }
                () = &mut pause, if !pause.is_elapsed() => {}
                Ok(()) = said.words.changed(), if pause.is_elapsed() => {
                    let words = said.words.borrow_and_update().clone();
                    caller.inspect(|caller| caller.tell(&words));
                    pause.as_mut().reset(Instant::now() + BETWEEN_WORDS);
                }
                since = answered(&mut asking), if asking.is_some() => {
                    asking = None;
                    let later = total.deadline() + since.elapsed();
                    total.as_mut().reset(later);
                }
                Some(request) = said.requests.recv(), if asking.is_none() => {
                    asking = caller.map(|caller| {
                        let since = Instant::now();
                        let answering = async move {
                            request.answer(caller).await;
                            since
                        };
                        Box::pin(answering) as PendingServerRequest<'_>
                    });
                }
                () = sleep(silence), if asking.is_none() => {
                    return Err(UnansweredCall::Silent(silence));
                }
                () = &mut total, if asking.is_none() => {
                    return Err(UnansweredCall::Silent(CALL_LIMIT));
                }
            }
        }
    }

    fn no_answer(&self, error: &ServiceError) -> UnansweredCall {
        match error {
            ServiceError::McpError(refused) => {
                UnansweredCall::Refused(definition::clean(&refused.message))
            }
            other => {
                UnansweredCall::Gone(self.why.get().cloned().unwrap_or_else(|| in_words(other)))
            }
        }
    }

    /// Closes the connection: cancels abandoned calls, closes the server's input, and gives it a
    /// moment to end by itself.
    pub(crate) async fn leave(&self) {
        let given_up = std::mem::take(&mut *self.given_up.lock());
        let service = self.service.lock().take();
        let goodbye = async {
            for told in given_up {
                let _ = told.await;
            }
            if let Some(service) = service {
                let _ = service.cancel().await;
            }
            while let Some(keeping) = &self.keeping
                && !keeping.is_finished()
            {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = timeout(GOODBYE, goodbye).await;
    }
}

/// The answer to a request of the server in progress; it ends with the time when it began.
type PendingServerRequest<'a> = BoxedFuture<'a, Instant>;

/// Returns when the request is answered; never if there is none.
async fn answered(asking: &mut Option<PendingServerRequest<'_>>) -> Instant {
    match asking {
        Some(asking) => asking.await,
        None => std::future::pending().await,
    }
}

/// A call in progress; dropping it cancels the call.
struct CallInFlight<'a> {
    connection: &'a ServerConnection,
    /// The request; `None` before it is sent, and once it is answered.
    call: Option<RequestId>,
    number: u64,
}

impl Drop for CallInFlight<'_> {
    fn drop(&mut self) {
        self.connection.subscriber.forget(self.number);
        let Some(call) = self.call.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let peer = self.connection.peer.clone();
        let reason = Some("nobody waits for it any more".to_owned());
        let params = CancelledNotificationParam::new(Some(call), reason);
        let told = runtime.spawn(async move {
            // A server that is gone need not know.
            let _ = peer
                .send_notification(CancelledNotification::new(params).into())
                .await;
        });
        let mut given_up = self.connection.given_up.lock();
        given_up.retain(|told| !told.is_finished());
        given_up.push(told);
    }
}

fn plain(answer: &ServerResult) -> Result<Value, UnansweredCall> {
    match answer {
        ServerResult::InputRequiredResult(_) | ServerResult::CreateTaskResult(_) => {
            Err(UnansweredCall::Refused(
                "it wants something in return (input, or patience), which gyrus does not give"
                    .to_owned(),
            ))
        }
        other => serde_json::to_value(other)
            .map_err(|error| UnansweredCall::Refused(format!("its answer is not JSON: {error}"))),
    }
}

/// Returns an error with its causes, which its own text leaves out.
fn in_words(error: &(dyn std::error::Error + 'static)) -> String {
    definition::clean(&gyrus_net::causes(error))
}
