//! What is known of a browser at this moment: its pages, their frames and documents, requests
//! that are under way, dialogs, downloads. Kept up to date by events alone, in their order.

mod events;
mod holding;

pub(crate) use events::{MAX_DOWNLOAD, Order};
use holding::Holdings;
pub(crate) use holding::{Holding, KINDS, Wake};

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Instant,
};

use gyrus_contract::{Dialog, Download, DownloadState};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::takeover::Frame as CastFrame;

/// Downloads that are remembered.
const MAX_REMEMBERED: usize = 20;

/// Everything that is open.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) whose: Whose,
    /// In a browser of a person's: the targets of tabs that the run opened, or its pages did.
    pub(crate) own: BTreeSet<String>,
    /// By session. Pages, and frames that have a process of their own.
    pub(crate) targets: BTreeMap<String, Target>,
    /// By the protocol's id.
    pub(crate) frames: BTreeMap<String, Frame>,
    /// In the order of their opening.
    pub(crate) tabs: Vec<TabState>,
    /// The number of the tab that is looked at.
    pub(crate) active: Option<u32>,
    /// By session and number.
    pub(crate) requests: BTreeMap<(String, String), Request>,
    /// The last ones.
    pub(crate) downloads: VecDeque<DownloadOf>,
    /// How many have begun.
    pub(crate) downloads_begun: u32,
    /// Bytes of all of them.
    pub(crate) downloaded: u64,
    /// Those that were too many.
    pub(crate) refused_downloads: u32,
    /// The element that asked for files last, in its session.
    pub(crate) chooser: Option<Chooser>,
    /// Documents counted so far.
    pub(crate) documents: u32,
    /// Tabs counted so far.
    pub(crate) numbered: u32,
    /// When something was put into a page last: what was asked for before is not waited for.
    pub(crate) acted: Option<Instant>,
    /// What the browser would carry while something is dragged.
    pub(crate) dragged: Option<Value>,
    /// Dialogs that have opened so far.
    pub(crate) dialogs: u64,
    /// Requests that have been made so far.
    pub(crate) requested: u64,
    /// Tabs that were closed at once, because there were too many.
    pub(crate) refused_tabs: u32,
    /// Requests that wait for an answer.
    pub(crate) holdings: Holdings,
    /// The port of the page at which a person has the screen: no page of the screen gets there.
    pub(crate) own_page: Option<u16>,
    /// The port at which the browser is attached to: it would list, and close, the person's tabs.
    pub(crate) debugging: Option<u16>,
    /// Where pictures go while a person has the screen.
    pub(crate) cast: Option<mpsc::UnboundedSender<CastFrame>>,
    /// Rises with every event: who waits compares.
    pub(crate) changes: u64,
}

/// Whose a browser is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Started by us: all of it is the run's.
    #[default]
    Ours,
    /// A person's, which was attached to: only tabs that the run opened are.
    Theirs,
}

/// A request that the browser stopped for us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stopped {
    /// The session that told of it, and hears what becomes of it.
    pub(crate) session: String,
    /// In the Fetch domain.
    pub(crate) id: String,
}

/// What a session speaks to.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// It broke down.
    pub(crate) crashed: bool,
}

/// A page.
#[derive(Debug, Clone)]
pub(crate) struct TabState {
    pub(crate) number: u32,
    /// Of the target, and of its main frame.
    pub(crate) target: String,
    pub(crate) session: String,
    pub(crate) title: String,
    pub(crate) address: String,
    pub(crate) dialog: Option<Dialog>,
}

/// A frame of a page.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frame {
    /// The session that speaks to it.
    pub(crate) session: String,
    pub(crate) parent: Option<String>,
    pub(crate) address: String,
    pub(crate) origin: String,
    /// The isolated world of our own in its present document.
    pub(crate) world: Option<i64>,
    /// Counted over the session.
    pub(crate) document: u32,
    /// Another document is on its way.
    pub(crate) loading: bool,
}

/// A request that is under way.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) kind: String,
    pub(crate) address: String,
    pub(crate) since: Instant,
    /// An answer has begun.
    pub(crate) answered: bool,
    pub(crate) frame: String,
}

/// A download with what only we need.
#[derive(Debug, Clone)]
pub(crate) struct DownloadOf {
    pub(crate) guid: String,
    pub(crate) shown: Download,
    /// Bytes so far.
    pub(crate) received: u64,
}

/// A page that wants files.
#[derive(Debug, Clone)]
pub(crate) struct Chooser {
    pub(crate) session: String,
    pub(crate) node: i64,
}

impl State {
    /// The tab that is looked at.
    pub(crate) fn active_tab(&self) -> Option<&TabState> {
        let number = self.active?;
        self.tabs.iter().find(|tab| tab.number == number)
    }

    fn tab_of_session(&mut self, session: &str) -> Option<&mut TabState> {
        self.tabs.iter_mut().find(|tab| tab.session == session)
    }

    /// The tab that a frame stands in, by its main frame.
    pub(crate) fn tab_of_frame(&self, frame: &str) -> Option<&TabState> {
        let mut at = frame;
        // No page nests deeper, and a loop ends.
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

    /// The frames of a tab: the main one first, parents before children.
    pub(crate) fn frames_of(&self, tab: &TabState) -> Vec<(String, Frame)> {
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

    /// The frame in which a document stands, with its id.
    pub(crate) fn frame_of_document(&self, document: u32) -> Option<(&String, &Frame)> {
        let mut frames = self.frames.iter();
        frames.find(|(_, frame)| frame.document == document && frame.world.is_some())
    }

    /// Numbers documents after `counted`, open ones too if they were numbered before it.
    pub(crate) fn count_from(&mut self, counted: u32) {
        if self.documents < counted {
            self.documents = counted;
            self.renumber();
        }
    }

    /// Gives every open document a new number: what was seen of it names nothing any more.
    pub(crate) fn renumber(&mut self) {
        for frame in self.frames.values_mut() {
            self.documents += 1;
            frame.document = self.documents;
        }
    }

    /// Downloads as they are shown.
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

    /// Forgets a frame and all below it.
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
