//! Folds the browser's events into the state, and says what has to be ordered in return.

use std::time::Instant;

use gyrus_contract::{Dialog, DownloadState};
use serde::Deserialize;

use super::{Chooser, Frame, Request, State, Stopped, Target, Whose};
use crate::{WORLD, cdp::Event};

/// How long words of a page may be, in characters.
const MAX_WORDS: usize = 2_000;

/// More requests than a page has under way at once are not followed.
const MAX_REQUESTS: usize = 10_000;

/// Tabs that are open at once; more are closed.
const MAX_TABS: usize = 20;

/// A download that is larger, in bytes, is cut off.
pub(crate) const MAX_DOWNLOAD: u64 = 1 << 30;

/// Downloads of a session; more are refused.
const MAX_DOWNLOADS: u32 = 50;

/// Bytes of all downloads of a session; what goes beyond is cut off.
const MAX_DOWNLOADED: u64 = 4 << 30;

/// What is to be done because of an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// A session has begun and waits to be set up.
    SetUp { session: String, is_page: bool },
    /// A session of no interest waits.
    LetGo { session: String },
    /// A page opens one tab too many.
    Close { session: String, target: String },
    /// A tab that a page of the run has opened in a person's browser is the run's too.
    Attach { target: String },
    /// A request may be sent.
    LetPass { request: Stopped },
    /// Requests are not to be sent.
    TurnAway { requests: Vec<Stopped> },
    /// Does the page still answer, while this request of it is held?
    Probe { session: String, request: Stopped },
    /// A download is too large.
    CutOff { guid: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attached {
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
    #[serde(default)]
    parent_frame_id: Option<String>,
    #[serde(default)]
    opener_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Info {
    target_info: TargetInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Destroyed {
    target_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Detached {
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
struct Navigated {
    frame: FrameInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameInfo {
    id: String,
    #[serde(default)]
    parent_id: Option<String>,
    url: String,
    #[serde(default)]
    url_fragment: String,
    #[serde(default)]
    security_origin: String,
}

/// The frames of a page, as the browser answers.
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
    context: World,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct World {
    id: i64,
    #[serde(default)]
    name: String,
    #[serde(default)]
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
    #[serde(default)]
    backend_node_id: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WillRequest {
    request_id: String,
    request: Asked,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    frame_id: String,
}

#[derive(Deserialize)]
struct Asked {
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

impl State {
    /// Takes an event in.
    pub(crate) fn take(&mut self, event: Event<'_>) -> Option<Order> {
        self.changes += 1;
        let order = self.take_in(event);
        order.or_else(|| self.doomed())
    }

    fn take_in(&mut self, event: Event<'_>) -> Option<Order> {
        match event.method.split_once('.') {
            Some(("Target", _)) => self.take_target(event),
            Some(("Page" | "Inspector", _)) => {
                self.take_page(event);
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

    fn take_target(&mut self, event: Event<'_>) -> Option<Order> {
        match event.method {
            "Target.attachedToTarget" => self.attached(&event),
            "Target.detachedFromTarget" => {
                let Detached { session_id } = event.params()?;
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
                // Only this much is asked of tabs that are the person's.
                self.own.get(info.opener_id.as_deref()?)?;
                self.own.insert(info.target_id.clone());
                Some(Order::Attach {
                    target: info.target_id,
                })
            }
            "Target.targetDestroyed" => {
                let Destroyed { target_id } = event.params()?;
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

    /// Something can be spoken to: a page, a frame in a process of its own, a worker.
    fn attached(&mut self, event: &Event<'_>) -> Option<Order> {
        let Attached {
            session_id,
            target_info: info,
        } = event.params()?;
        let is_page = info.kind == "page";
        if !is_page && info.kind != "iframe" {
            // Only its own session, which is left, would tell that its script has come.
            self.requests
                .retain(|_, one| one.kind != "Script" || one.address != info.url);
            return Some(Order::LetGo {
                session: session_id,
            });
        }
        if is_page && self.tabs.len() >= MAX_TABS {
            self.refused_tabs += 1;
            return Some(Order::Close {
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
        let target = Target { crashed: false };
        self.targets.insert(session_id.clone(), target);
        Some(Order::SetUp {
            session: session_id,
            is_page,
        })
    }

    /// Takes in frames that were there before anybody listened. What events told counts.
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

    fn take_page(&mut self, event: Event<'_>) -> Option<()> {
        match event.method {
            "Page.frameAttached" => {
                let attached: FrameAttached = event.params()?;
                let frame = self.frames.entry(attached.frame_id).or_default();
                frame.session = event.session.to_owned();
                frame.parent = Some(attached.parent_frame_id);
            }
            "Page.frameDetached" => {
                let detached: FrameDetached = event.params()?;
                // Swapped: it goes on in a process and a session of its own.
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
                let Navigated { frame: info } = event.params()?;
                self.doom(&info.id);
                let frame = self.frames.entry(info.id).or_default();
                frame.session = event.session.to_owned();
                if info.parent_id.is_some() {
                    frame.parent = info.parent_id;
                }
                frame.address = info.url + &info.url_fragment;
                frame.origin = info.security_origin;
            }
            "Page.navigatedWithinDocument" => {
                let within: WithinDocument = event.params()?;
                self.frames.get_mut(&within.frame_id)?.address = within.url;
            }
            "Page.frameStartedNavigating" => {
                let starts: StartsNavigating = event.params()?;
                // Within its document nothing is loaded, and nothing tells its end.
                let within = starts.navigation_type == "sameDocument"
                    || starts.navigation_type == "historySameDocument";
                self.frames.get_mut(&starts.frame_id)?.loading |= !within;
            }
            "Page.frameStartedLoading" => {
                let frame: OfFrame = event.params()?;
                self.frames.get_mut(&frame.frame_id)?.loading = true;
            }
            "Page.frameStoppedLoading" => {
                let frame: OfFrame = event.params()?;
                self.frames.get_mut(&frame.frame_id)?.loading = false;
            }
            _ => return self.take_interruption(event),
        }
        Some(())
    }

    /// What holds a page up or ends it.
    fn take_interruption(&mut self, event: Event<'_>) -> Option<()> {
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
                // Whoever looked may have gone.
                let _ = cast.send(crate::takeover::Frame::of(&event)?);
            }
            "Page.fileChooserOpened" => {
                let opened: ChooserOpened = event.params()?;
                self.chooser = Some(Chooser {
                    session: event.session.to_owned(),
                    node: opened.backend_node_id?,
                });
            }
            "Inspector.targetCrashed" => {
                self.targets.get_mut(event.session)?.crashed = true;
                let session = event.session;
                self.requests.retain(|(of, _), _| of != session);
                for frame in self.frames.values_mut() {
                    if frame.session == session {
                        frame.world = None;
                        frame.loading = false;
                    }
                }
            }
            _ => {}
        }
        Some(())
    }

    fn take_world(&mut self, event: Event<'_>) -> Option<()> {
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
                let frame: &mut Frame = self.frames.entry(frame_id).or_default();
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

    fn take_request(&mut self, event: Event<'_>) -> Option<()> {
        let key = |id: String| (event.session.to_owned(), id);
        match event.method {
            "Network.requestWillBeSent" => {
                let will: WillRequest = event.params()?;
                self.requested += 1;
                if self.requests.len() < MAX_REQUESTS {
                    let request = Request {
                        kind: will.kind,
                        address: will.request.url,
                        since: Instant::now(),
                        answered: false,
                        frame: will.frame_id,
                    };
                    self.requests.insert(key(will.request_id), request);
                }
            }
            "Network.responseReceived" => {
                let of: OfRequest = event.params()?;
                self.requests.get_mut(&key(of.request_id))?.answered = true;
            }
            "Network.loadingFinished" | "Network.loadingFailed" => {
                let OfRequest { request_id: id } = event.params()?;
                self.request_ended(&id);
                if self.requests.remove(&key(id.clone())).is_none() {
                    // A frame that gets a process of its own tells the end in a session of its own.
                    self.requests.retain(|(_, number), _| *number != id);
                }
            }
            _ => {}
        }
        Some(())
    }

    fn take_download(&mut self, event: Event<'_>) -> Option<Order> {
        match event.method {
            "Browser.downloadWillBegin" => {
                let begins: DownloadBegins = event.params()?;
                if self.downloads_begun >= MAX_DOWNLOADS {
                    self.refused_downloads += 1;
                    return Some(Order::CutOff { guid: begins.guid });
                }
                self.began_download(begins.guid, &begins.suggested_filename);
                None
            }
            "Browser.downloadProgress" => {
                let on: DownloadGoesOn = event.params()?;
                let download = self.downloads.iter_mut().find(|one| one.guid == on.guid)?;
                // Whole numbers, which the protocol writes as floating-point ones.
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "saturates, which is what a bound needs"
                )]
                let received = on.received_bytes as u64;
                self.downloaded += received.saturating_sub(download.received);
                download.received = received;
                download.shown.state = match on.state.as_str() {
                    "completed" => DownloadState::Done,
                    "canceled" => DownloadState::Failed,
                    _ => DownloadState::Running,
                };
                let is_too_much = received > MAX_DOWNLOAD || self.downloaded > MAX_DOWNLOADED;
                (is_too_much && on.state == "inProgress").then_some(Order::CutOff { guid: on.guid })
            }
            _ => None,
        }
    }
}

fn bounded(text: &str) -> String {
    gyrus_text::shorten(text, MAX_WORDS).into_owned()
}
