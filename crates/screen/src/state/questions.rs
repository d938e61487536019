//! Keeps the questions of pages about permissions until they are answered, or their page is left.

use gyrus_contract::Dialog;
use serde::Deserialize;

use super::{BINDING, BrowserState, PermissionQuestion, TabState};
use crate::cdp::CdpEvent;

/// Maximum number of questions that wait, and characters of the origin of one.
const MAX_ASKED: usize = 10;
const MAX_ORIGIN: usize = 300;

#[derive(Deserialize)]
struct BindingCalled {
    name: String,
    payload: String,
}

impl BrowserState {
    /// Handles a question of a page.
    pub(super) fn take_question(&mut self, event: &CdpEvent<'_>) -> Option<()> {
        let called: BindingCalled = event.params()?;
        let question: PermissionQuestion = serde_json::from_str(&called.payload).ok()?;
        let frames = self.frames.iter();
        let mut own = frames.filter(|(_, frame)| frame.session == event.session);
        let tab = own.find_map(|(id, _)| self.tab_of_frame(id))?.number;
        let question = PermissionQuestion { tab, ..question };
        let is_new = called.name == BINDING && !self.questions.contains(&question);
        if is_new && self.questions.len() < MAX_ASKED && question.origin.len() < MAX_ORIGIN {
            self.questions.push(question);
            self.dialogs += 1;
        }
        Some(())
    }

    /// Returns the first question of a tab, unless something else blocks the tab.
    pub(crate) fn question_of(&self, tab: &TabState) -> Option<&PermissionQuestion> {
        let mut questions = self.questions.iter().filter(|_| tab.dialog.is_none());
        questions.find(|one| one.tab == tab.number)
    }

    pub(crate) fn dialog_of(&self, tab: &TabState) -> Option<Dialog> {
        let question = self.question_of(tab).map(PermissionQuestion::dialog);
        tab.dialog.clone().or(question)
    }

    /// Removes the questions of a page that was left.
    pub(super) fn forget_questions(&mut self, session: &str) {
        let left = self.tab_of_session(session).map(|tab| tab.number);
        self.questions.retain(|one| Some(one.tab) != left);
    }
}
