//! A browser as a screen: opened at the first look, and again after it was lost.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use gyrus_contract::{
    BoxedFuture, CommandOutcome, Exit, KeeperError, LookOptions, Screen, ScreenError,
    ViewWithPicture,
};
use parking_lot::{Mutex, MutexGuard};
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::{
    sync::watch,
    task::AbortHandle,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    DebuggingPort, Launch, LaunchError, Profile, RunCommand, WORLD,
    cdp::{Cdp, CdpError, CdpEvent, FromPipe, Hears, Sends, ToPipe},
    launch::{self, BrowserFuture},
    page::{ASKS, SOURCE},
    state::{BINDING, BrowserState, EventReaction, InterceptedRequest, KINDS, Logins, Whose},
    view::LookMemory,
};

/// Maximum time until a started browser shows its first page. On a busy machine it takes seconds.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Time limit for a browser to save its profile and end.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);

/// Time limit for a page to answer while one of its requests is held.
const PROBE_LIMIT: Duration = Duration::from_secs(1);

/// The profile of a browser.
#[derive(Debug, Clone)]
pub enum ProfileChoice {
    /// A temporary profile, deleted afterwards.
    Ephemeral,
    /// The profile of this name, below this folder.
    Named {
        /// Folder of the profiles.
        below: PathBuf,
        name: String,
    },
}

enum BrowserWay {
    /// The browser is started.
    Start {
        launch: Launch,
        profile: ProfileChoice,
        run: RunCommand,
    },
    /// The browser was started by a person and is attached to.
    Attach(DebuggingPort),
}

/// A browser, which is started or attached to at the first look.
pub struct Browser {
    way: BrowserWay,
    open: tokio::sync::Mutex<Option<Arc<BrowserSession>>>,
    /// Number of documents in lost sessions: their numbers are not reused.
    counted: AtomicU32,
    /// Tabs that a lost connection did not close in a person's browser.
    left: Mutex<BTreeSet<String>>,
    recognises: OnceLock<Recognises>,
}

/// Function that returns whether an element with this name and value shows a secret.
pub type Recognises = Arc<dyn Fn(&str, Option<&str>) -> bool + Send + Sync>;

impl Browser {
    /// Creates our own browser, which `run` starts with these options when it is needed.
    pub fn new(launch: Launch, profile: ProfileChoice, run: RunCommand) -> Self {
        Self::by(BrowserWay::Start {
            launch,
            profile,
            run,
        })
    }

    /// Creates a browser that a person has started. Only tabs opened through this value are touched
    /// or read. The caller ends its use with [`Self::leave`].
    pub fn attached(at: DebuggingPort) -> Self {
        Self::by(BrowserWay::Attach(at))
    }

    fn by(way: BrowserWay) -> Self {
        Self {
            way,
            open: tokio::sync::Mutex::default(),
            counted: AtomicU32::new(0),
            left: Mutex::default(),
            recognises: OnceLock::new(),
        }
    }

    /// Covers elements that this function recognises in pictures, like password fields. Only the
    /// first function counts.
    pub fn cover(&self, recognises: Recognises) {
        // Another run of the session that shares the browser knows the same secrets.
        let _ = self.recognises.set(recognises);
    }

    /// Ends the use of the browser. An attached one is left as it was: held requests are blocked,
    /// and our own tabs are closed. One with a named profile saves its cookies and ends; one with
    /// an ephemeral profile ends when this value is dropped.
    ///
    /// Must be called explicitly, because dropping the value does not wait for the browser.
    pub async fn leave(&self) {
        let Some(session) = self.open.lock().await.take() else {
            return;
        };
        match &self.way {
            BrowserWay::Attach(_) => session.close_own_tabs().await,
            BrowserWay::Start { .. } if session.profile.is_ephemeral() => {}
            BrowserWay::Start { .. } => {
                session.turn_all_away();
                session.cdp.send("", "Browser.close", json!({}));
                let _: Option<()> = session.wait(CLOSE_LIMIT, |_| None).await;
            }
        }
    }

    /// Waits until a person has closed the browser's last window, or the browser has ended.
    pub async fn closed(&self) {
        let session = self.open.lock().await.clone();
        if let Some(session) = session {
            session.end().await;
        }
    }

    /// Returns the open session, or a new one.
    pub(crate) async fn session(&self, documents: u32) -> Result<Arc<BrowserSession>, ScreenError> {
        let mut open = self.open.lock().await;
        if let Some(session) = open.as_ref() {
            match session.lost().or_else(|| session.emptied()) {
                None => {
                    session.state().count_from(documents);
                    return Ok(session.clone());
                }
                Some(reason) => {
                    self.counted
                        .fetch_max(session.state().documents, Ordering::Relaxed);
                    *self.left.lock() = session.state().own.clone();
                    // The loss is reported once; the next call gets a new session.
                    *open = None;
                    return Err(ScreenError::Lost { reason });
                }
            }
        }
        let documents = documents.max(self.counted.load(Ordering::Relaxed));
        let opened = match &self.way {
            BrowserWay::Start {
                launch,
                profile,
                run,
            } => {
                // Checked first, so that no profile is made in vain.
                launch::check(launch).map_err(unavailable)?;
                let profile = match profile {
                    ProfileChoice::Ephemeral => Profile::ephemeral(),
                    ProfileChoice::Named { below, name } => Profile::named(below, name),
                };
                let profile = profile.map_err(LaunchError::from).map_err(unavailable)?;
                BrowserSession::open(launch, profile, run, documents).await?
            }
            BrowserWay::Attach(at) => {
                let left = std::mem::take(&mut *self.left.lock());
                BrowserSession::attach(at, left, documents).await?
            }
        };
        let mut opened = opened;
        opened.recognises = self.recognises.get().cloned();
        let session = Arc::new(opened);
        *open = Some(session.clone());
        Ok(session)
    }

    /// Returns the session, unless there is none or one is being opened.
    pub(crate) fn open_session(&self) -> Option<Arc<BrowserSession>> {
        self.open.try_lock().ok()?.clone()
    }
}

pub(crate) fn unavailable(error: impl std::fmt::Display) -> ScreenError {
    ScreenError::Unavailable {
        reason: error.to_string(),
    }
}

impl Screen for Browser {
    fn look(&self, look: LookOptions) -> BoxedFuture<'_, Result<ViewWithPicture, ScreenError>> {
        Box::pin(async move {
            let session = self.session(look.documents).await?;
            session.see(look).await
        })
    }
}

/// A change of the state that becomes known after its event.
type LateChange = Box<dyn FnOnce(&mut BrowserState) + Send>;

pub(crate) struct BrowserSession {
    pub(crate) id: String,
    pub(crate) launch: Launch,
    pub(crate) cdp: Cdp,
    pub(crate) profile: Profile,
    state: Arc<Mutex<BrowserState>>,
    changed: watch::Receiver<u64>,
    /// Reason why the browser ended; `None` while it runs.
    ended: Arc<Mutex<Option<String>>>,
    pub(crate) memory: Mutex<LookMemory>,
    recognises: Option<Recognises>,
    tasks: [AbortHandle; 2],
}

impl Drop for BrowserSession {
    fn drop(&mut self) {
        self.turn_all_away();
        // The keeper's future goes with its task, and the browser with the keeper.
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl BrowserSession {
    async fn open(
        launch: &Launch,
        profile: Profile,
        run: &RunCommand,
        documents: u32,
    ) -> Result<Self, ScreenError> {
        let started = launch::start(launch, &profile, run).map_err(unavailable)?;
        let state = BrowserState {
            documents,
            logins: Logins::new(profile.logins(), launch.visible),
            ..BrowserState::default()
        };
        let wire = (ToPipe(started.to), FromPipe::new(started.from));
        let session = Self::over(wire, Some(started.running), launch, profile, state);
        session
            .begin()
            .await
            .map_err(|error| ScreenError::Unavailable {
                reason: format!(
                    "the browser did not start: {}",
                    session.lost().unwrap_or(error)
                ),
            })?;
        Ok(session)
    }

    /// Creates a session over `wire`; `state` says whether the browser is ours. It ends with
    /// `running`, or with the connection.
    pub(crate) fn over(
        wire: (impl Sends, impl Hears),
        running: Option<BrowserFuture>,
        launch: &Launch,
        profile: Profile,
        state: BrowserState,
    ) -> Self {
        let whose = state.whose;
        let state = Arc::new(Mutex::new(state));
        let (changes, changed) = watch::channel(0);
        let changes = Arc::new(changes);
        let last_change = changes.clone();
        let listening = (state.clone(), launch.clone());
        let (cdp, reading) = Cdp::start(wire.0, wire.1, move |cdp| {
            let (cdp, (state, launch)) = (cdp.clone_weak(), listening);
            Box::new(move |event: CdpEvent<'_>| {
                let (order, count) = {
                    let mut state = state.lock();
                    let order = state.take(event);
                    (order, state.changes)
                };
                if let (Some(order), Some(cdp)) = (order, cdp.upgrade()) {
                    let later = (state.clone(), changes.clone());
                    obey(&cdp, (&launch, whose), order, |change| {
                        let (state, changes) = later;
                        let mut state = state.lock();
                        change(&mut state);
                        let _ = changes.send(state.changes);
                    });
                }
                let _ = changes.send(count);
            })
        });
        let ended = Arc::new(Mutex::new(None));
        let told = (ended.clone(), cdp.clone());
        let reads = reading.abort_handle();
        let running = tokio::spawn(async move {
            let (ended, cdp) = told;
            let reason = match running {
                Some(running) => how_it_ended(running.await),
                None => {
                    let _ = reading.await;
                    cdp.ended().unwrap_or_default()
                }
            };
            *ended.lock() = Some(reason.clone());
            cdp.give_up(&reason);
            // Wakes tasks that wait for the state.
            last_change.send_modify(|count| *count += 1);
        });
        Self {
            id: uuid::Uuid::new_v4().to_string(),
            launch: launch.clone(),
            cdp,
            profile,
            state,
            changed,
            ended,
            memory: Mutex::default(),
            recognises: None,
            tasks: [reads, running.abort_handle()],
        }
    }

    /// Whether an element with this name and value shows a secret.
    pub(crate) fn recognises(&self, name: &str, value: Option<&str>) -> bool {
        self.recognises
            .as_ref()
            .is_some_and(|recognises| recognises(name, value))
    }

    /// Sends the commands for the whole browser and waits for the first page.
    async fn begin(&self) -> Result<(), String> {
        let downloads = self.profile.folder().join("gyrus-downloads");
        let asked: Result<IgnoredAny, CdpError> =
            self.cdp.call("", "Browser.getVersion", json!({})).await;
        asked.map_err(|error| error.to_string())?;
        self.cdp
            .send("", "Target.setDiscoverTargets", json!({"discover": true}));
        self.cdp.send(
            "",
            "Browser.setDownloadBehavior",
            json!({
                "behavior": "allowAndName",
                "downloadPath": downloads.to_string_lossy(),
                "eventsEnabled": true,
            }),
        );
        // Sent for the whole browser: a session of a page would release held requests when it ends.
        let watched: Result<IgnoredAny, CdpError> =
            self.cdp.call("", "Fetch.enable", fetch_patterns()).await;
        watched.map_err(|error| error.to_string())?;
        let attached: Result<IgnoredAny, CdpError> = self
            .cdp
            .call("", "Target.setAutoAttach", auto_attach())
            .await;
        attached.map_err(|error| error.to_string())?;
        self.first_page().await
    }

    /// Waits until a page can be looked at.
    pub(crate) async fn first_page(&self) -> Result<(), String> {
        let page = self
            .wait(START_LIMIT, |state| {
                let tab = state.active_tab()?;
                state.frames.get(&tab.target)?.world
            })
            .await;
        page.map(|_| ())
            .ok_or_else(|| "no page appeared in time".to_owned())
    }

    /// Waits until the browser process has ended or no tab is open.
    async fn end(&self) {
        let mut changed = self.changed.clone();
        while self.lost().is_none() && !self.state().tabs.is_empty() {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns a receiver that is notified of every change of the state.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.clone()
    }

    /// Returns the reason why the browser is gone, if it is.
    pub(crate) fn lost(&self) -> Option<String> {
        let ended = self.ended.lock();
        ended.clone().or_else(|| self.cdp.ended())
    }

    /// Counts a look or a call, and blocks requests that have been held for too many of them.
    pub(crate) fn turn(&self) {
        let over = self.state().turn();
        if let Some(EventReaction::Block { requests }) = over {
            block_requests(&self.cdp, requests);
        }
    }

    /// Marks the screen as used by a person from here on.
    pub(crate) fn let_a_person(&self) {
        let over = self.state().lets_a_person();
        if let Some(EventReaction::Block { requests }) = over {
            block_requests(&self.cdp, requests);
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, BrowserState> {
        self.state.lock()
    }

    /// Waits until `found` returns a value; `None` when the time is up, or the browser is gone.
    pub(crate) async fn wait<T>(
        &self,
        limit: Duration,
        mut found: impl FnMut(&BrowserState) -> Option<T>,
    ) -> Option<T> {
        let deadline = Instant::now() + limit;
        let mut changed = self.changed.clone();
        loop {
            changed.borrow_and_update();
            if let Some(found) = found(&self.state()) {
                return Some(found);
            }
            if self.lost().is_some() {
                return None;
            }
            match timeout_at(deadline, changed.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return None,
            }
        }
    }
}

/// Describes how a browser ended.
fn how_it_ended(outcome: Result<CommandOutcome, KeeperError>) -> String {
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return error.to_string(),
    };
    let how = match outcome.exit {
        Exit::Code(code) => format!("it ended with code {code}"),
        Exit::Signal(signal) => format!("it was ended by signal {signal}"),
        Exit::TimedOut => "it ran for too long".to_owned(),
    };
    let said = outcome.output.head + &outcome.output.tail;
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    last.map_or(how.clone(), |last| format!("{how}: {last}"))
}

/// Tests whether a page still answers while one of its requests is held: a script can wait for one
/// synchronously.
async fn probe(
    cdp: Cdp,
    session: String,
    request: InterceptedRequest,
    later: impl FnOnce(LateChange),
) {
    let expression = json!({"expression": "0"});
    let asking = cdp.call::<IgnoredAny>(&session, "Runtime.evaluate", expression);
    if timeout(PROBE_LIMIT, asking).await.is_err() {
        later(Box::new(move |state| state.blocks(&request)));
    }
}

/// Returns the parameters that create sessions for pages and for frames with a process of their
/// own. Workers wait until someone has attached to them, and are released at once.
fn auto_attach() -> serde_json::Value {
    json!({
        "autoAttach": true,
        "waitForDebuggerOnStart": true,
        "flatten": true,
        "filter": [
            {"type": "page"},
            {"type": "iframe"},
            {"type": "worker"},
            {"exclude": true},
        ],
    })
}

/// Blocks requests. They are aborted, so that a page stays when one of them would have left it.
pub(crate) fn block_requests(cdp: &Cdp, requests: Vec<InterceptedRequest>) {
    for request in requests {
        let order = json!({"requestId": request.id, "errorReason": "Aborted"});
        cdp.send(&request.session, "Fetch.failRequest", order);
    }
}

/// Returns the patterns of requests that are paused: those that can carry data.
fn fetch_patterns() -> serde_json::Value {
    let kinds = KINDS.map(|kind| json!({"resourceType": kind}));
    json!({"patterns": kinds, "handleAuthRequests": true})
}

/// Carries out the order of an event. Orders of one session are carried out in sequence.
fn obey(
    cdp: &Cdp,
    (launch, whose): (&Launch, Whose),
    order: EventReaction,
    later: impl FnOnce(LateChange) + Send + 'static,
) {
    match order {
        EventReaction::SetUp { session, is_page } => {
            set_up(cdp, (launch, whose), &session, is_page);
            if whose == Whose::Theirs {
                tokio::spawn(ask_frames(cdp.clone(), session, later));
            }
        }
        EventReaction::LetGo { session } => {
            cdp.send(&session, "Runtime.runIfWaitingForDebugger", json!({}));
            cdp.send("", "Target.detachFromTarget", json!({"sessionId": session}));
        }
        EventReaction::Close { session, target } => {
            cdp.send(&session, "Runtime.runIfWaitingForDebugger", json!({}));
            cdp.send("", "Target.closeTarget", json!({"targetId": target}));
        }
        EventReaction::Attach { target } => attach_to(cdp, &target),
        EventReaction::LetPass { request } => {
            let order = json!({"requestId": request.id});
            cdp.send(&request.session, "Fetch.continueRequest", order);
        }
        EventReaction::LogIn { request, answer } => {
            let order = answer.order(&request.id);
            cdp.send(&request.session, "Fetch.continueWithAuth", order);
        }
        EventReaction::Block { requests } => block_requests(cdp, requests),
        EventReaction::Probe { session, request } => {
            tokio::spawn(probe(cdp.clone(), session, request, later));
        }
        EventReaction::CutOff { guid } => {
            cdp.send("", "Browser.cancelDownload", json!({"guid": guid}))
        }
    }
}

/// Enables the needed events of a session with a page, or with a frame with its own process.
fn set_up(cdp: &Cdp, (launch, whose): (&Launch, Whose), session: &str, is_page: bool) {
    let to = |method, params| cdp.send(session, method, params);
    to("Page.enable", json!({}));
    to("Runtime.enable", json!({}));
    to("Network.enable", json!({}));
    to("DOM.enable", json!({}));
    to("Inspector.enable", json!({}));
    to("Target.setAutoAttach", auto_attach());
    // A browser with a window asks the person in it.
    if whose == Whose::Ours && !launch.visible {
        to("Runtime.addBinding", json!({"name": BINDING}));
    }
    to(
        "Page.addScriptToEvaluateOnNewDocument",
        json!({"source": ASKS, "runImmediately": true}),
    );
    to(
        "Page.addScriptToEvaluateOnNewDocument",
        json!({"source": SOURCE, "worldName": WORLD, "runImmediately": true}),
    );
    to(
        "Page.setInterceptFileChooserDialog",
        json!({"enabled": true}),
    );
    if is_page && !launch.visible {
        to(
            "Emulation.setDeviceMetricsOverride",
            json!({
                "width": launch.width,
                "height": launch.height,
                "deviceScaleFactor": launch.density,
                "mobile": false,
            }),
        );
        // A page that is not in front still paints and has the keyboard.
        to(
            "Emulation.setFocusEmulationEnabled",
            json!({"enabled": true}),
        );
    }
    if whose == Whose::Theirs {
        // The person's own tabs are not watched, so each of ours is watched by itself. A request of
        // a service worker would belong to no tab.
        to("Network.setBypassServiceWorker", json!({"bypass": true}));
        to("Fetch.enable", fetch_patterns());
    }
    to("Runtime.runIfWaitingForDebugger", json!({}));
}

/// Requests the existing frames: a tab that was attached to did not wait for us.
async fn ask_frames(cdp: Cdp, session: String, later: impl FnOnce(LateChange)) {
    let asked = cdp.call(&session, "Page.getFrameTree", json!({})).await;
    if let Ok(found) = asked {
        later(Box::new(move |state| state.has_frames(&session, found)));
    }
}

/// Begins a session with a tab.
fn attach_to(cdp: &Cdp, target: &str) {
    let order = json!({"targetId": target, "flatten": true});
    cdp.send("", "Target.attachToTarget", order);
}
