//! The known state of a browser: its pages, their frames and documents, requests in progress,
//! dialogs, downloads. Kept up to date by events alone, in their order.

mod events;
mod held;
mod holding;
mod sockets;
mod logging_in;
mod logins;
mod permissions;
mod questions;

pub(crate) use events::{EventReaction, MAX_DOWNLOAD};
use held::Holdings;
pub(crate) use held::{InterceptedRequest, MaySend, RequestHold, Wake};
pub(crate) use holding::KINDS;
pub(crate) use logins::{KIND as LOGIN, LoginAnswer, Logins};
pub(crate) use permissions::{BINDING, KIND as PERMISSION, PagePermission, PermissionQuestion};
use sockets::PageSockets;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Instant,
};

use gyrus_contract::{Dialog, Download, DownloadState};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::takeover::CastFrame;

/// Maximum number of downloads that are remembered.
const MAX_REMEMBERED: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct BrowserState {
    pub(crate) whose: Whose,
    /// In a person's browser, the targets of tabs that the run or its pages opened.
    pub(crate) own: BTreeSet<String>,
    /// Pages, and frames in processes of their own, by session.
    pub(crate) targets: BTreeMap<String, SessionTarget>,
    /// Frames by the protocol's id.
    pub(crate) frames: BTreeMap<String, PageFrame>,
    /// Tabs in the order of their opening.
    pub(crate) tabs: Vec<TabState>,
    /// Number of the current tab.
    pub(crate) active: Option<u32>,
    /// Requests in progress, by session and number.
    pub(crate) requests: BTreeMap<(String, String), PendingRequest>,
    pub(crate) sockets: PageSockets,
    /// The most recent downloads.
    pub(crate) downloads: VecDeque<DownloadOf>,
    pub(crate) downloads_begun: u32,
    pub(crate) downloaded: u64,
    /// Number of downloads that were refused because of the limit.
    pub(crate) refused_downloads: u32,
    /// The element that requested files last, in its session.
    pub(crate) chooser: Option<Chooser>,
    /// Number of documents so far.
    pub(crate) documents: u32,
    /// Number of tabs so far.
    pub(crate) numbered: u32,
    /// Time of the last input: requests from before are not waited for.
    pub(crate) acted: Option<Instant>,
    /// Data of the drag in progress.
    pub(crate) dragged: Option<Value>,
    /// Questions of pages that wait for an answer.
    pub(crate) questions: Vec<PermissionQuestion>,
    /// Number of times that a page asked for a file or folder without a field.
    pub(crate) barred_choosers: u32,
    /// Number of dialogs so far.
    pub(crate) dialogs: u64,
    /// Number of requests so far.
    pub(crate) requested: u64,
    /// Number of tabs that were closed at once because of the limit.
    pub(crate) refused_tabs: u32,
    /// Requests that are held until someone answers.
    pub(crate) holdings: Holdings,
    /// HTTP logins that sites ask the browser for.
    pub(crate) logins: Logins,
    /// Port of the page by which a person controls the screen; pages of the screen cannot reach it.
    pub(crate) own_page: Option<u16>,
    /// Debugging port of an attached browser, which would list, and close, the person's tabs; pages
    /// cannot reach it.
    pub(crate) debugging: Option<u16>,
    /// Channel that receives pictures while a person controls the screen.
    pub(crate) cast: Option<mpsc::UnboundedSender<CastFrame>>,
    /// Counter that rises with every event, to detect changes.
    pub(crate) changes: u64,
}

/// Owner of a browser.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Whose {
    /// A browser that gyrus started: all of it belongs to the run.
    #[default]
    Ours,
    /// A person's browser: only tabs that the run opened belong to it.
    Theirs,
}

/// The page, frame or worker of a session.
#[derive(Debug, Clone)]
pub(crate) struct SessionTarget {
    pub(crate) crashed: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct TabState {
    pub(crate) number: u32,
    /// Id of the target, and of its main frame.
    pub(crate) target: String,
    pub(crate) session: String,
    pub(crate) title: String,
    pub(crate) address: String,
    pub(crate) dialog: Option<Dialog>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct PageFrame {
    /// Session of the frame's process.
    pub(crate) session: String,
    pub(crate) parent: Option<String>,
    pub(crate) address: String,
    pub(crate) origin: String,
    /// Isolated world of gyrus in the frame's present document.
    pub(crate) world: Option<i64>,
    /// Number of the frame's document, unique in the session.
    pub(crate) document: u32,
    /// Time since when another document is being loaded.
    pub(crate) navigating: Option<Instant>,
    /// Time at which the frame's document arrived.
    pub(crate) arrived: Option<Instant>,
}

#[derive(Debug, Clone)]
pub(crate) struct PendingRequest {
    pub(crate) kind: String,
    pub(crate) address: String,
    pub(crate) since: Instant,
    /// Whether the response has begun.
    pub(crate) answered: bool,
    pub(crate) frame: String,
}

/// A download with its internal data.
#[derive(Debug, Clone)]
pub(crate) struct DownloadOf {
    pub(crate) guid: String,
    pub(crate) shown: Download,
    /// Bytes received so far.
    pub(crate) received: u64,
}

/// A file chooser of a page.
#[derive(Debug, Clone)]
pub(crate) struct Chooser {
    pub(crate) session: String,
    pub(crate) node: i64,
}

impl BrowserState {
    pub(crate) fn active_tab(&self) -> Option<&TabState> {
        let number = self.active?;
        self.tabs.iter().find(|tab| tab.number == number)
    }

    fn tab_of_session(&mut self, session: &str) -> Option<&mut TabState> {
        self.tabs.iter_mut().find(|tab| tab.session == session)
    }

    pub(crate) fn tab_of_frame(&self, frame: &str) -> Option<&TabState> {
        let mut at = frame;
        // Bounds a cycle; pages do not nest deeper.
        for _ in 0..64 {
            match self
                .frames
                .get(at)
                .and_then(|frame| frame.parent.as_deref())
            {
                Some(parent) => at = parent,
                None => return self.tabs.iter().find(|tab| tab.target == at),
            }
        }
        None
    }

    /// Returns the frames of a tab: the main one first, parents before children.
    pub(crate) fn frames_of(&self, tab: &TabState) -> Vec<(String, PageFrame)> {
        let mut found = Vec::new();
        let mut open = vec![tab.target.clone()];
        while let Some(id) = open.pop() {
            let Some(frame) = self.frames.get(&id) else {
                continue;
            };
            found.push((id.clone(), frame.clone()));
            let children = self.frames.iter();
            let children = children.filter(|(_, frame)| frame.parent.as_ref() == Some(&id));
            open.extend(children.map(|(id, _)| id.clone()));
            if found.len() > 512 {
                break;
            }
        }
        found
    }

    /// Returns the frame that contains a document, with its id.
    pub(crate) fn frame_of_document(&self, document: u32) -> Option<(&String, &PageFrame)> {
        let mut frames = self.frames.iter();
        frames.find(|(_, frame)| frame.document == document && frame.world.is_some())
    }

    /// Numbers documents from after `counted` on, and renumbers those that are already open.
    pub(crate) fn count_from(&mut self, counted: u32) {
        if self.documents < counted {
            self.documents = counted;
            self.renumber();
        }
    }

    /// Gives every open document a new number, which invalidates element ids of earlier looks.
    pub(crate) fn renumber(&mut self) {
        for frame in self.frames.values_mut() {
            self.documents += 1;
            frame.document = self.documents;
        }
    }

    /// Whether an event of that time may be an effect of the last input.
    pub(crate) fn is_since_input(&self, began: Option<Instant>) -> bool {
        self.acted
            .zip(began)
            .is_none_or(|(acted, began)| began >= acted)
    }

    /// Returns the downloads as a view shows them.
    pub(crate) fn shown_downloads(&self) -> Vec<Download> {
        self.downloads.iter().map(|one| one.shown.clone()).collect()
    }

    fn opened(&mut self, session: &str, target: &str, title: &str, address: &str) {
        self.numbered += 1;
        self.tabs.push(TabState {
            number: self.numbered,
            target: target.to_owned(),
            session: session.to_owned(),
            title: title.to_owned(),
            address: address.to_owned(),
            dialog: None,
        });
        // A page that another one opens is what a person would look at next.
        self.active = Some(self.numbered);
    }

    fn closed(&mut self, session: &str) {
        let Some(at) = self.tabs.iter().position(|tab| tab.session == session) else {
            return;
        };
        let closed = self.tabs.remove(at);
        if self.active == Some(closed.number) {
            let next = self.tabs.get(at.saturating_sub(1)).or(self.tabs.last());
            self.active = next.map(|tab| tab.number);
        }
        self.forget_frame(&closed.target);
    }

    /// Removes a frame and all frames below it.
    fn forget_frame(&mut self, id: &str) {
        let mut open = vec![id.to_owned()];
        while let Some(id) = open.pop() {
            self.frames.remove(&id);
            self.requests.retain(|_, request| request.frame != id);
            self.doom(&id);
            let children = self.frames.iter();
            let children = children.filter(|(_, frame)| frame.parent.as_ref() == Some(&id));
            let children: Vec<String> = children.map(|(id, _)| id.clone()).collect();
            open.extend(children);
        }
    }

    fn began_download(&mut self, guid: String, name: &str) {
        self.downloads_begun += 1;
        if self.downloads.len() >= MAX_REMEMBERED {
            self.downloads.pop_front();
        }
        self.downloads.push_back(DownloadOf {
            guid,
            shown: Download {
                name: gyrus_text::first_chars(name, 200).to_owned(),
                path: None,
                state: DownloadState::Running,
            },
            received: 0,
        });
    }
}
