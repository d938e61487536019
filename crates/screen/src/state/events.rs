//! Folds the browser's events into the state, and returns the orders that they require.

use std::time::Instant;

use gyrus_contract::{Dialog, DownloadState};
use serde::Deserialize;

use super::{
    BrowserState, Chooser, InterceptedRequest, PageFrame, PendingRequest, SessionTarget, Whose,
    logins::LoginAnswer,
};
use crate::{WORLD, cdp::CdpEvent};

/// Maximum characters of a text from a page.
const MAX_WORDS: usize = 2_000;

/// Maximum number of requests of a page that are tracked.
const MAX_REQUESTS: usize = 10_000;

/// Maximum number of open tabs; more are closed.
const MAX_TABS: usize = 20;

/// Maximum bytes of a download; a larger one is aborted.
pub(crate) const MAX_DOWNLOAD: u64 = 1 << 30;

/// Maximum number of downloads of a session; more are refused.
const MAX_DOWNLOADS: u32 = 50;

/// Maximum size of all downloads of a session, in bytes; further ones are aborted.
const MAX_DOWNLOADED: u64 = 4 << 30;

/// An action that an event requires.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EventReaction {
    /// Set up a new session, which waits for it.
    SetUp { session: String, is_page: bool },
    /// Release a waiting session that is not needed.
    LetGo { session: String },
    /// Close a tab beyond the maximum.
    Close { session: String, target: String },
    /// Attach to a tab that a page of the run has opened in a person's browser.
    Attach { target: String },
    /// Allow a request.
    LetPass { request: InterceptedRequest },
    /// Block requests.
    Block { requests: Vec<InterceptedRequest> },
    /// Answer a site that asks for a login.
    LogIn {
        request: InterceptedRequest,
        answer: LoginAnswer,
    },
    /// Test whether the page still answers while this request is held.
    Probe {
        session: String,
        request: InterceptedRequest,
    },
    /// Abort a download that is too large.
    CutOff { guid: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetAttached {
    session_id: String,
    target_info: TargetInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetInfo {
    target_id: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    url: String,
    parent_frame_id: Option<String>,
    opener_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Info {
    target_info: TargetInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetDestroyed {
    target_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetDetached {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameAttached {
    frame_id: String,
    parent_frame_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameDetached {
    frame_id: String,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
struct FrameNavigation {
    frame: FrameInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameInfo {
    id: String,
    parent_id: Option<String>,
    url: String,
    #[serde(default)]
    url_fragment: String,
    #[serde(default)]
    security_origin: String,
}

/// The frames of a page, as the browser returns them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Frames {
    frame_tree: FrameTree,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameTree {
    frame: FrameInfo,
    #[serde(default)]
    child_frames: Vec<FrameTree>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WithinDocument {
    frame_id: String,
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfFrame {
    frame_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StartsNavigating {
    frame_id: String,
    #[serde(default)]
    navigation_type: String,
}

#[derive(Deserialize)]
struct WorldMade {
    context: ContextCreated,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContextCreated {
    id: i64,
    #[serde(default)]
    name: String,
    aux_data: Option<OfFrame>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorldGone {
    execution_context_id: i64,
}

#[derive(Deserialize)]
struct DialogOpening {
    #[serde(rename = "type")]
    kind: String,
    message: String,
    #[serde(rename = "defaultPrompt", default)]
    offered: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChooserOpened {
    backend_node_id: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WillRequest {
    request_id: String,
    request: RequestWillBeSent,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    frame_id: String,
}

#[derive(Deserialize)]
struct RequestWillBeSent {
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfRequest {
    request_id: String,
}

#[derive(Deserialize)]
struct DragIntercepted {
    data: serde_json::Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DownloadBegins {
    guid: String,
    suggested_filename: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DownloadGoesOn {
    guid: String,
    state: String,
    #[serde(default)]
    received_bytes: f64,
}

impl BrowserState {
    /// Folds an event into the state.
    pub(crate) fn take(&mut self, event: CdpEvent<'_>) -> Option<EventReaction> {
        self.changes += 1;
        let order = self.take_in(event);
        order.or_else(|| self.blocking_order())
    }

    fn take_in(&mut self, event: CdpEvent<'_>) -> Option<EventReaction> {
        match event.method.split_once('.') {
            Some(("Target", _)) => self.take_target(event),
            Some(("Page" | "Inspector", _)) => {
                self.take_page(event);
                None
            }
            Some(("Runtime", "bindingCalled")) => {
                self.take_question(&event);
                None
            }
            Some(("Runtime", _)) => {
                self.take_world(event);
                None
            }
            Some(("Network", _)) => {
                self.take_request(event);
                None
            }
            Some(("Fetch", "authRequired")) => self.take_login(&event),
            Some(("Fetch", _)) => self.take_paused(event),
            Some(("Browser", _)) => self.take_download(event),
            Some(("Input", _)) => {
                let intercepted: Option<DragIntercepted> = event.params();
                self.dragged = intercepted.map(|drag| drag.data);
                None
            }
            _ => None,
        }
    }

    fn take_target(&mut self, event: CdpEvent<'_>) -> Option<EventReaction> {
        match event.method {
            "Target.attachedToTarget" => self.attached(&event),
            "Target.detachedFromTarget" => {
                let TargetDetached { session_id } = event.params()?;
                self.targets.remove(&session_id);
                self.requests
                    .retain(|(session, _), _| *session != session_id);
                self.closed(&session_id);
                self.frames
                    .retain(|_, frame| frame.session != session_id || frame.parent.is_some());
                for frame in self.frames.values_mut() {
                    if frame.session == session_id {
                        frame.world = None;
                    }
                }
                None
            }
            "Target.targetCreated" if self.whose == Whose::Theirs => {
                let Info { target_info: info } = event.params()?;
                // Tabs that are the person's are examined only this far.
                self.own.get(info.opener_id.as_deref()?)?;
                self.own.insert(info.target_id.clone());
                Some(EventReaction::Attach {
                    target: info.target_id,
                })
            }
            "Target.targetDestroyed" => {
                let TargetDestroyed { target_id } = event.params()?;
                self.own.remove(&target_id);
                None
            }
            "Target.targetInfoChanged" => {
                let Info { target_info: info } = event.params()?;
                let tab = self
                    .tabs
                    .iter_mut()
                    .find(|tab| tab.target == info.target_id)?;
                tab.title = bounded(&info.title);
                tab.address = info.url;
                None
            }
            _ => None,
        }
    }

    /// Handles a new session: a page, a frame in a process of its own, or a worker.
    fn attached(&mut self, event: &CdpEvent<'_>) -> Option<EventReaction> {
        let TargetAttached {
            session_id,
            target_info: info,
        } = event.params()?;
        let is_page = info.kind == "page";
        if !is_page && info.kind != "iframe" {
            // Only the worker's own session, which is left, would report that its script has
            // loaded.
            self.requests
                .retain(|_, one| one.kind != "Script" || one.address != info.url);
            return Some(EventReaction::LetGo {
                session: session_id,
            });
        }
        if is_page && self.tabs.len() >= MAX_TABS {
            self.refused_tabs += 1;
            return Some(EventReaction::Close {
                session: session_id,
                target: info.target_id,
            });
        }
        if is_page {
            self.opened(&session_id, &info.target_id, &info.title, &info.url);
        }
        let frame = self.frames.entry(info.target_id.clone()).or_default();
        frame.session.clone_from(&session_id);
        frame.address = info.url;
        frame.world = None;
        if info.parent_frame_id.is_some() {
            frame.parent = info.parent_frame_id;
        }
        let target = SessionTarget { crashed: false };
        self.targets.insert(session_id.clone(), target);
        Some(EventReaction::SetUp {
            session: session_id,
            is_page,
        })
    }

    /// Adds frames that existed before the session. Facts from events take precedence.
    pub(crate) fn has_frames(&mut self, session: &str, found: Frames) {
        let mut open = vec![found.frame_tree];
        while let Some(FrameTree {
            frame: info,
            child_frames,
        }) = open.pop()
        {
            open.extend(child_frames);
            let frame = self.frames.entry(info.id).or_default();
            if frame.session.is_empty() {
                frame.session = session.to_owned();
            }
            if frame.parent.is_none() {
                frame.parent = info.parent_id;
            }
            if frame.origin.is_empty() {
                frame.address = info.url + &info.url_fragment;
                frame.origin = info.security_origin;
            }
        }
        self.changes += 1;
    }

    fn take_page(&mut self, event: CdpEvent<'_>) -> Option<()> {
        match event.method {
            "Page.frameAttached" => {
                let attached: FrameAttached = event.params()?;
                let frame = self.frames.entry(attached.frame_id).or_default();
                frame.session = event.session.to_owned();
                frame.parent = Some(attached.parent_frame_id);
            }
            "Page.frameDetached" => {
                let detached: FrameDetached = event.params()?;
                // Swapped: it continues in a process and a session of its own.
                if detached.reason == "swap" {
                    let frame = self.frames.get_mut(&detached.frame_id)?;
                    if frame.session == event.session {
                        frame.world = None;
                    }
                } else {
                    self.forget_frame(&detached.frame_id);
                }
            }
            "Page.frameNavigated" => {
                let FrameNavigation { frame: info } = event.params()?;
                self.doom(&info.id);
                if info.parent_id.is_none() {
                    self.sockets.left(event.session);
                    self.forget_questions(event.session);
                }
                let frame = self.frames.entry(info.id).or_default();
                frame.session = event.session.to_owned();
                if info.parent_id.is_some() {
                    frame.parent = info.parent_id;
                }
                frame.address = info.url + &info.url_fragment;
                frame.origin = info.security_origin;
                // What the document still loads is not waited for as a whole.
                frame.navigating = None;
                frame.arrived = Some(Instant::now());
            }
            "Page.navigatedWithinDocument" => {
                let within: WithinDocument = event.params()?;
                self.frames.get_mut(&within.frame_id)?.address = within.url;
            }
            "Page.frameStartedNavigating" => {
                let starts: StartsNavigating = event.params()?;
                // A navigation within the document loads nothing, and no event reports its end.
                let within = starts.navigation_type == "sameDocument"
                    || starts.navigation_type == "historySameDocument";
                if !within {
                    self.frames.get_mut(&starts.frame_id)?.navigating = Some(Instant::now());
                }
            }
            "Page.frameStartedLoading" => {
                let frame: OfFrame = event.params()?;
                let frame = self.frames.get_mut(&frame.frame_id)?;
                frame.navigating.get_or_insert_with(Instant::now);
            }
            "Page.frameStoppedLoading" => {
                let frame: OfFrame = event.params()?;
                self.frames.get_mut(&frame.frame_id)?.navigating = None;
            }
            _ => return self.take_interruption(event),
        }
        Some(())
    }

    /// Handles events that block a page or end it.
    fn take_interruption(&mut self, event: CdpEvent<'_>) -> Option<()> {
        match event.method {
            "Page.javascriptDialogOpening" => {
                let opening: DialogOpening = event.params()?;
                self.dialogs += 1;
                self.tab_of_session(event.session)?.dialog = Some(Dialog {
                    kind: opening.kind,
                    message: bounded(&opening.message),
                    offered: bounded(&opening.offered),
                });
            }
            "Page.javascriptDialogClosed" => self.tab_of_session(event.session)?.dialog = None,
            "Page.screencastFrame" => {
                let cast = self.cast.as_ref()?;
                // The receiver may be gone.
                let _ = cast.send(crate::takeover::CastFrame::of(&event)?);
            }
            "Page.fileChooserOpened" => {
                let opened: ChooserOpened = event.params()?;
                let Some(node) = opened.backend_node_id else {
                    self.barred_choosers += 1;
                    return None;
                };
                self.chooser = Some(Chooser {
                    session: event.session.to_owned(),
                    node,
                });
            }
            "Inspector.targetCrashed" => {
                self.targets.get_mut(event.session)?.crashed = true;
                let session = event.session;
                self.requests.retain(|(of, _), _| of != session);
                for frame in self.frames.values_mut() {
                    if frame.session == session {
                        frame.world = None;
                        frame.navigating = None;
                    }
                }
            }
            _ => {}
        }
        Some(())
    }

    fn take_world(&mut self, event: CdpEvent<'_>) -> Option<()> {
        match event.method {
            "Runtime.executionContextCreated" => {
                let WorldMade { context } = event.params()?;
                let frame_id = context.aux_data?.frame_id;
                if context.name != WORLD {
                    return None;
                }
                self.documents += 1;
                let documents = self.documents;
                if let Some(target) = self.targets.get_mut(event.session) {
                    target.crashed = false;
                }
                let frame: &mut PageFrame = self.frames.entry(frame_id).or_default();
                frame.session = event.session.to_owned();
                frame.world = Some(context.id);
                frame.document = documents;
            }
            "Runtime.executionContextDestroyed" => {
                let gone: WorldGone = event.params()?;
                for frame in self.frames.values_mut() {
                    if frame.session == event.session
                        && frame.world == Some(gone.execution_context_id)
                    {
                        frame.world = None;
                    }
                }
            }
            "Runtime.executionContextsCleared" => {
                for frame in self.frames.values_mut() {
                    if frame.session == event.session {
                        frame.world = None;
                    }
                }
            }
            _ => {}
        }
        Some(())
    }

    fn take_request(&mut self, event: CdpEvent<'_>) -> Option<()> {
        let key = |id: String| (event.session.to_owned(), id);
        match event.method {
            "Network.requestWillBeSent" => {
                let will: WillRequest = event.params()?;
                self.requested += 1;
                if self.requests.len() < MAX_REQUESTS {
                    let request = PendingRequest {
                        kind: will.kind,
                        address: will.request.url,
                        since: Instant::now(),
                        answered: false,
                        frame: will.frame_id,
                    };
                    self.requests.insert(key(will.request_id), request);
                }
            }
            "Network.webSocketCreated" => {
                let of: OfRequest = event.params()?;
                self.sockets.opened(event.session, of.request_id);
            }
            "Network.webSocketClosed" => {
                let of: OfRequest = event.params()?;
                self.sockets.closed(event.session, of.request_id);
            }
            "Network.webSocketFrameSent" => self.sockets.sent(event.session),
            "Network.webSocketFrameReceived" => self.sockets.received(event.session),
            "Network.responseReceived" => {
                let of: OfRequest = event.params()?;
                self.requests.get_mut(&key(of.request_id))?.answered = true;
            }
            "Network.loadingFinished" | "Network.loadingFailed" => {
                let OfRequest { request_id: id } = event.params()?;
                self.request_ended(&id);
                if self.requests.remove(&key(id.clone())).is_none() {
                    // The request of a frame that gets a process of its own ends in another
                    // session.
                    self.requests.retain(|(_, number), _| *number != id);
                }
            }
            _ => {}
        }
        Some(())
    }

    fn take_download(&mut self, event: CdpEvent<'_>) -> Option<EventReaction> {
        match event.method {
            "Browser.downloadWillBegin" => {
                let begins: DownloadBegins = event.params()?;
                if self.downloads_begun >= MAX_DOWNLOADS {
                    self.refused_downloads += 1;
                    return Some(EventReaction::CutOff { guid: begins.guid });
                }
                self.began_download(begins.guid, &begins.suggested_filename);
                None
            }
            "Browser.downloadProgress" => {
                let on: DownloadGoesOn = event.params()?;
                let download = self.downloads.iter_mut().find(|one| one.guid == on.guid)?;
                // Whole numbers, which the protocol writes as floating-point ones.
                // Saturates, which is what a bound needs.
                let received = on.received_bytes as u64;
                self.downloaded += received.saturating_sub(download.received);
                download.received = received;
                download.shown.state = match on.state.as_str() {
                    "completed" => DownloadState::Done,
                    "canceled" => DownloadState::Failed,
                    _ => DownloadState::Running,
                };
                let is_too_much = received > MAX_DOWNLOAD || self.downloaded > MAX_DOWNLOADED;
                (is_too_much && on.state == "inProgress")
                    .then_some(EventReaction::CutOff { guid: on.guid })
            }
            _ => None,
        }
    }
}

fn bounded(text: &str) -> String {
    gyrus_text::shorten(text, MAX_WORDS).into_owned()
}
