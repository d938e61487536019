//! A browser as a screen: opened when it is first looked at, and again after it was lost.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use gyrus_contract::{Boxed, CommandOutcome, Exit, KeeperError, Look, Screen, ScreenError, Seen};
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::{
    sync::watch,
    task::AbortHandle,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    Endpoint, Launch, LaunchError, Profile, RunCommand, WORLD,
    cdp::{Cdp, CdpError, Event, FromPipe, Hears, Sends, ToPipe},
    launch,
    page::SOURCE,
    state::{KINDS, Order, State, Stopped, Whose},
    view::Memory,
};

/// Until a browser that was started shows its first page. On a busy machine it takes seconds.
const START_LIMIT: Duration = Duration::from_secs(30);

/// For a page to answer while a request of it is held.
const PROBE_LIMIT: Duration = Duration::from_secs(1);

/// Which profile a browser has.
#[derive(Debug, Clone)]
pub enum ProfileChoice {
    /// One that is gone afterwards.
    Ephemeral,
    /// The one of this name, below this folder.
    Named {
        /// Where profiles are.
        below: PathBuf,
        /// Its name.
        name: String,
    },
}

/// How a browser is come by.
enum Way {
    /// It is started.
    Start {
        launch: Launch,
        profile: ProfileChoice,
        run: RunCommand,
    },
    /// It runs, and a person started it.
    Attach(Endpoint),
}

/// A browser. Nothing is started, and none is attached to, until it is looked at.
pub struct Browser {
    way: Way,
    open: tokio::sync::Mutex<Option<Arc<Session>>>,
    /// Documents of sessions that were lost: their numbers are not given again.
    counted: AtomicU32,
    /// Tabs that a connection which was lost has left in a person's browser.
    left: Mutex<BTreeSet<String>>,
    recognises: OnceLock<Recognises>,
}

/// Tells by the name and the value of an element whether it shows a secret.
pub type Recognises = Arc<dyn Fn(&str, Option<&str>) -> bool + Send + Sync>;

impl Browser {
    /// A browser of gyrus's own, which is started so, when it is needed, by `run`.
    pub fn new(launch: Launch, profile: ProfileChoice, run: RunCommand) -> Self {
        Self::by(Way::Start {
            launch,
            profile,
            run,
        })
    }

    /// A browser that a person has started. Of its tabs only those that are opened through this
    /// are touched, read or told; whoever is done with it calls [`Self::leave`].
    pub fn attached(at: Endpoint) -> Self {
        Self::by(Way::Attach(at))
    }

    fn by(way: Way) -> Self {
        Self {
            way,
            open: tokio::sync::Mutex::default(),
            counted: AtomicU32::new(0),
            left: Mutex::default(),
            recognises: OnceLock::new(),
        }
    }

    /// Has what this recognises painted over in pictures, as fields for passwords are. What was set
    /// first stays.
    pub fn cover(&self, recognises: Recognises) {
        // Another run of the session that shares the browser knows the same secrets.
        let _ = self.recognises.set(recognises);
    }

    /// Leaves a browser that was attached to as it would be without us: what is held is not sent,
    /// the tabs of our own are closed. One that was started by us stays.
    ///
    /// To be called explicitly: when this is dropped, nobody waits for a browser any more.
    pub async fn leave(&self) {
        if let Way::Attach(_) = self.way
            && let Some(session) = self.open.lock().await.take()
        {
            session.close_own_tabs().await;
        }
    }

    /// Waits until the browser has ended: a person closed its last window.
    pub async fn closed(&self) {
        let session = self.open.lock().await.clone();
        if let Some(session) = session {
            session.end().await;
        }
    }

    /// Ends the browser in good order: what its profile remembers is on disk then.
    pub async fn close(&self) {
        if let Way::Attach(_) = self.way {
            return self.leave().await;
        }
        let session = self.open.lock().await.take();
        if let Some(session) = session {
            session.cdp.send("", "Browser.close", json!({}));
            let _: Option<()> = session.wait(START_LIMIT, |_| None).await;
        }
    }

    /// The session that is open, or a new one.
    pub(crate) async fn session(&self, documents: u32) -> Result<Arc<Session>, ScreenError> {
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
                    *self.left() = session.state().own.clone();
                    // Told once; the next one who asks gets another.
                    *open = None;
                    return Err(ScreenError::Lost { reason });
                }
            }
        }
        let documents = documents.max(self.counted.load(Ordering::Relaxed));
        let opened = match &self.way {
            Way::Start {
                launch,
                profile,
                run,
            } => {
                // Before a profile is made for nothing.
                launch::check(launch).map_err(unavailable)?;
                let profile = match profile {
                    ProfileChoice::Ephemeral => Profile::ephemeral(),
                    ProfileChoice::Named { below, name } => Profile::named(below, name),
                };
                let profile = profile.map_err(LaunchError::from).map_err(unavailable)?;
                Session::open(launch, profile, run, documents).await?
            }
            Way::Attach(at) => {
                let left = std::mem::take(&mut *self.left());
                Session::attach(at, left, documents).await?
            }
        };
        let mut opened = opened;
        opened.recognises = self.recognises.get().cloned();
        let session = Arc::new(opened);
        *open = Some(session.clone());
        Ok(session)
    }

    fn left(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn unavailable(error: impl std::fmt::Display) -> ScreenError {
    ScreenError::Unavailable {
        reason: error.to_string(),
    }
}

impl Screen for Browser {
    fn look(&self, look: Look) -> Boxed<'_, Result<Seen, ScreenError>> {
        Box::pin(async move {
            let session = self.session(look.documents).await?;
            session.see(look).await
        })
    }
}

/// What runs a browser.
pub(crate) type Running = Boxed<'static, Result<CommandOutcome, KeeperError>>;

/// A change of the state that is known later than its event.
type Change = Box<dyn FnOnce(&mut State) + Send>;

/// A browser that runs.
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) launch: Launch,
    pub(crate) cdp: Cdp,
    pub(crate) profile: Profile,
    state: Arc<Mutex<State>>,
    changed: watch::Receiver<u64>,
    /// Why the browser ended, once it has.
    ended: Arc<Mutex<Option<String>>>,
    memory: Mutex<Memory>,
    recognises: Option<Recognises>,
    tasks: [AbortHandle; 2],
}

impl Drop for Session {
    fn drop(&mut self) {
        self.turn_all_away();
        // The keeper's future goes with its task, and the browser with the keeper.
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Session {
    async fn open(
        launch: &Launch,
        profile: Profile,
        run: &RunCommand,
        documents: u32,
    ) -> Result<Self, ScreenError> {
        let started = launch::start(launch, &profile, run).map_err(unavailable)?;
        let state = State {
            documents,
            ..State::default()
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

    /// A session over `wire`, to a browser that `state` says whose it is. It ends with what is `running`, or with the connection.
    pub(crate) fn over(
        wire: (impl Sends, impl Hears),
        running: Option<Running>,
        launch: &Launch,
        profile: Profile,
        state: State,
    ) -> Self {
        let whose = state.whose;
        let state = Arc::new(Mutex::new(state));
        let (changes, changed) = watch::channel(0);
        let changes = Arc::new(changes);
        let last_change = changes.clone();
        let listening = (state.clone(), launch.clone());
        let (cdp, reading) = Cdp::start(wire.0, wire.1, move |cdp| {
            let (cdp, (state, launch)) = (cdp.clone_weak(), listening);
            Box::new(move |event: Event<'_>| {
                let (order, count) = {
                    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                    let order = state.take(event);
                    (order, state.changes)
                };
                if let (Some(order), Some(cdp)) = (order, cdp.upgrade()) {
                    let later = (state.clone(), changes.clone());
                    obey(&cdp, (&launch, whose), order, |change| {
                        let (state, changes) = later;
                        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
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
            *ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.clone());
            cdp.give_up(&reason);
            // Whoever waits for the state finds out.
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

    /// Orders what concerns the whole browser and waits for the first page.
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
        // For the whole browser: a session of a page would let what is held go when it ends.
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

    /// Waits until it is no longer there.
    async fn end(&self) {
        let mut changed = self.changed.clone();
        while self.lost().is_none() && !self.state().tabs.is_empty() {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Told with every change of the state.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.clone()
    }

    /// Why it is no longer there.
    pub(crate) fn lost(&self) -> Option<String> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.clone().or_else(|| self.cdp.ended())
    }

    /// A turn has passed: what has been held for too long is not sent any more.
    pub(crate) fn turn(&self) {
        let over = self.state().turn();
        if let Some(Order::TurnAway { requests }) = over {
            turn_away(&self.cdp, requests);
        }
    }

    /// From here on a person uses the screen.
    pub(crate) fn let_a_person(&self) {
        let over = self.state().lets_a_person();
        if let Some(Order::TurnAway { requests }) = over {
            turn_away(&self.cdp, requests);
        }
    }

    /// What looks remember for the next one.
    pub(crate) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `found` finds something in the state; `None` when it does not in time, or the
    /// browser is gone.
    pub(crate) async fn wait<T>(
        &self,
        limit: Duration,
        mut found: impl FnMut(&State) -> Option<T>,
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

/// What became of a browser, in words.
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

/// Finds out whether a page still answers while a request of it is held; a script can wait for one
/// and let nothing else happen meanwhile.
async fn probe(cdp: Cdp, session: String, request: Stopped, later: impl FnOnce(Change)) {
    let asking = cdp.call(&session, "Runtime.evaluate", json!({"expression": "0"}));
    let answered: Result<Result<IgnoredAny, _>, _> = timeout(PROBE_LIMIT, asking).await;
    if answered.is_err() {
        later(Box::new(move |state| state.blocks(&request)));
    }
}

/// Sessions for pages and for frames with a process of their own. Workers begin only for who has
/// attached to them, and are let go at once.
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

/// Keeps requests from being sent. Aborted: a page stays when it was to be left by one.
pub(crate) fn turn_away(cdp: &Cdp, requests: Vec<Stopped>) {
    for request in requests {
        let order = json!({"requestId": request.id, "errorReason": "Aborted"});
        cdp.send(&request.session, "Fetch.failRequest", order);
    }
}

/// The requests that are stopped on their way: those that can carry something.
fn fetch_patterns() -> serde_json::Value {
    let kinds = KINDS.map(|kind| json!({"resourceType": kind}));
    json!({"patterns": kinds})
}

/// Does what an event demands. Orders of one session are carried out one after the other.
fn obey(
    cdp: &Cdp,
    (launch, whose): (&Launch, Whose),
    order: Order,
    later: impl FnOnce(Change) + Send + 'static,
) {
    match order {
        Order::SetUp { session, is_page } => {
            set_up(cdp, (launch, whose), &session, is_page);
            if whose == Whose::Theirs {
                tokio::spawn(ask_frames(cdp.clone(), session, later));
            }
        }
        Order::LetGo { session } => {
            cdp.send(&session, "Runtime.runIfWaitingForDebugger", json!({}));
            cdp.send("", "Target.detachFromTarget", json!({"sessionId": session}));
        }
        Order::Close { session, target } => {
            cdp.send(&session, "Runtime.runIfWaitingForDebugger", json!({}));
            cdp.send("", "Target.closeTarget", json!({"targetId": target}));
        }
        Order::Attach { target } => attach_to(cdp, &target),
        Order::LetPass { request } => {
            let order = json!({"requestId": request.id});
            cdp.send(&request.session, "Fetch.continueRequest", order);
        }
        Order::TurnAway { requests } => turn_away(cdp, requests),
        Order::Probe { session, request } => {
            tokio::spawn(probe(cdp.clone(), session, request, later));
        }
        Order::CutOff { guid } => cdp.send("", "Browser.cancelDownload", json!({"guid": guid})),
    }
}

/// Makes a session of a page, or of a frame with a process of its own, tell what we want to know.
fn set_up(cdp: &Cdp, (launch, whose): (&Launch, Whose), session: &str, is_page: bool) {
    let to = |method, params| cdp.send(session, method, params);
    to("Page.enable", json!({}));
    to("Runtime.enable", json!({}));
    to("Network.enable", json!({}));
    to("DOM.enable", json!({}));
    to("Inspector.enable", json!({}));
    to("Target.setAutoAttach", auto_attach());
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
        // What the person's own tabs send is theirs, so each of ours is watched by itself. What a
        // service worker sent for one would come from no tab.
        to("Network.setBypassServiceWorker", json!({"bypass": true}));
        to("Fetch.enable", fetch_patterns());
    }
    to("Runtime.runIfWaitingForDebugger", json!({}));
}

/// Finds out which frames there are: a tab that was attached to did not wait for us.
async fn ask_frames(cdp: Cdp, session: String, later: impl FnOnce(Change)) {
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
