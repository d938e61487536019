//! Questions of pages to the browser's user: for their position, for what is on the clipboard, for
//! leave to notify them. Nobody sees the browser ask; `page/asks.js` tells of them, and each is a
//! dialog of the kind [`KIND`] that holds nothing up.

use gyrus_contract::Dialog;
use serde::Deserialize;

use super::{State, TabState};
use crate::cdp::Event;

/// Kind of the dialog; pages cannot open one of it.
pub(crate) const KIND: &str = "permission";

/// Name in the page's world by which its questions are told.
pub(crate) const BINDING: &str = "gyrusAsks";

/// Maximum number of questions that wait.
const MAX_ASKED: usize = 10;

/// A question of a page.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct PermissionQuestion {
    #[serde(skip)]
    tab: u32,
    /// The permission, as browsers name it.
    pub(crate) asks: Permission,
    /// The origin of the document that asks.
    pub(crate) origin: String,
}

/// A permission that a page may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Permission {
    Geolocation,
    Notifications,
    ClipboardRead,
}

impl Permission {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Geolocation => "geolocation",
            Self::Notifications => "notifications",
            Self::ClipboardRead => "clipboard-read",
        }
    }
}

impl PermissionQuestion {
    fn dialog(&self) -> Dialog {
        let wants = match self.asks {
            Permission::Geolocation => "know your position",
            Permission::Notifications => "show notifications",
            Permission::ClipboardRead => "read what was copied",
        };
        Dialog {
            kind: KIND.to_owned(),
            message: format!("{} wants to {wants}", self.origin),
            offered: String::new(),
        }
    }
}

#[derive(Deserialize)]
struct Called {
    name: String,
    payload: String,
}

impl State {
    /// Handles a question of a page.
    pub(super) fn take_question(&mut self, event: &Event<'_>) -> Option<()> {
        let called: Called = event.params()?;
        let question: PermissionQuestion = serde_json::from_str(&called.payload).ok()?;
        let frames = self.frames.iter();
        let mut own = frames.filter(|(_, frame)| frame.session == event.session);
        let tab = own.find_map(|(id, _)| self.tab_of_frame(id))?.number;
        let question = PermissionQuestion { tab, ..question };
        let is_new = called.name == BINDING && !self.questions.contains(&question);
        if is_new && self.questions.len() < MAX_ASKED && question.origin.len() < 300 {
            self.questions.push(question);
            self.dialogs += 1;
        }
        Some(())
    }

    /// Returns the question that a tab asks first, unless something else holds the tab up.
    pub(crate) fn question_of(&self, tab: &TabState) -> Option<&PermissionQuestion> {
        let mut questions = self.questions.iter().filter(|_| tab.dialog.is_none());
        questions.find(|one| one.tab == tab.number)
    }

    /// Returns the dialog of a tab.
    pub(crate) fn dialog_of(&self, tab: &TabState) -> Option<Dialog> {
        let question = self.question_of(tab).map(PermissionQuestion::dialog);
        tab.dialog.clone().or(question)
    }

    /// Forgets the questions of a page that was left.
    pub(super) fn forget_questions(&mut self, session: &str) {
        let left = self.tab_of_session(session).map(|tab| tab.number);
        self.questions.retain(|one| Some(one.tab) != left);
    }
}
