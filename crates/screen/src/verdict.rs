//! Determines the effects of an input. Only changes of its target count, or of elements that were
//! quiet before: a ticking clock is not an effect, and then the verdict is that it cannot be told.

use std::collections::{BTreeMap, BTreeSet};

use gyrus_contract::{ActionVerdict, Rest};
use gyrus_text::{counted, shorten};
use serde::Deserialize;

use crate::{
    browser::BrowserSession,
    input::{NoPageAnswer, Spot},
    state::{BrowserState, LOGIN, PageFrame, TabState},
};

/// State before an input, as the browser reports it.
#[derive(Debug, Clone)]
pub(crate) struct StateBefore {
    address: String,
    document: u32,
    dialogs: u64,
    tabs: BTreeSet<u32>,
    active: Option<u32>,
    downloads: BTreeSet<String>,
    has_chooser: bool,
    barred_choosers: u32,
    refused_tabs: u32,
    requests: u64,
    /// The frames that were read, with their documents.
    frames: BTreeMap<String, PageFrame>,
}

impl StateBefore {
    /// Returns the number of the page's document.
    pub(crate) fn document(&self) -> Option<u32> {
        (self.document > 0).then_some(self.document)
    }

    pub(crate) fn of(state: &BrowserState, tab: &TabState) -> Self {
        let main = state.frames.get(&tab.target);
        Self {
            address: main.map(|frame| frame.address.clone()).unwrap_or_default(),
            document: main.map_or(0, |frame| frame.document),
            dialogs: state.dialogs,
            tabs: state.tabs.iter().map(|tab| tab.number).collect(),
            active: state.active,
            downloads: state.downloads.iter().map(|one| one.guid.clone()).collect(),
            has_chooser: state.chooser.is_some(),
            barred_choosers: state.barred_choosers,
            refused_tabs: state.refused_tabs,
            requests: state.requested,
            frames: state.frames_of(tab).into_iter().collect(),
        }
    }
}

/// Differences reported by a document.
#[derive(Debug, Default, Deserialize)]
struct DocumentChanges {
    target: bool,
    group: bool,
    focus: bool,
    scroll: bool,
    selection: bool,
    drawn: bool,
    quiet: u32,
    noise: u32,
    first: String,
    focused: String,
    guard: Option<Guard>,
}

#[derive(Debug, Default, Deserialize)]
struct Guard {
    reached: u32,
    blocked: Option<String>,
}

#[derive(Debug)]
pub(crate) struct InputEffects {
    pub(crate) verdict: ActionVerdict,
    /// Descriptions of the differences.
    pub(crate) words: Vec<String>,
    /// Description of the element that received the keyboard focus. That alone is not a change:
    /// every click moves the keyboard, even that on a button without effect.
    pub(crate) focused: Option<String>,
    /// The element at which the guard kept the input from the page.
    pub(crate) blocked: Option<String>,
    /// Like `blocked`, but also set if an earlier part of the input landed and changed something.
    pub(crate) kept_from: Option<String>,
    /// Number of presses that landed on the target.
    pub(crate) landed: u32,
    pub(crate) rest: Rest,
}

impl InputEffects {
    /// Describes the effects in one or two sentences.
    pub(crate) fn say(&self) -> String {
        let mut said = match self.verdict {
            ActionVerdict::Changed => {
                let all: Vec<_> = self.words.iter().chain(&self.focused).cloned().collect();
                format!("Changed: {}.", all.join("; "))
            }
            ActionVerdict::NoEffect => match &self.focused {
                None => "Nothing changed.".to_owned(),
                Some(focused) => format!("Nothing changed, but {focused}."),
            },
            ActionVerdict::CannotTell if self.words.is_empty() => {
                "Cannot tell whether it did anything: look.".to_owned()
            }
            ActionVerdict::CannotTell => {
                format!(
                    "Cannot tell whether it did anything ({}): look.",
                    self.words.join("; ")
                )
            }
            ActionVerdict::Refused => self.words.join("; "),
        };
        if let Rest::GaveUp { waiting_for } = &self.rest {
            said.push_str(&format!(" Still waiting for {waiting_for}."));
        }
        said
    }
}

impl BrowserSession {
    /// Records the state, and arms the guard against inputs that land elsewhere.
    pub(crate) async fn watch(
        &self,
        tab: &TabState,
        spot: Option<&Spot>,
        guard: &str,
    ) -> StateBefore {
        let standing = StateBefore::of(&self.state(), tab);
        let asking = standing.frames.iter().map(|(id, frame)| async move {
            let number = spot
                .filter(|spot| spot.frame_id == *id)
                .map_or(0, Spot::number);
            let is_shown = self.memory.lock().shown.contains(id);
            let guard = crate::input::quoted(guard);
            let ask = format!("gyrus.begin({number}, {guard}, {is_shown})");
            let _: Result<bool, _> = self.ask(frame, &ask).await;
        });
        // A frame that does not answer is not waited for by the input.
        let _ = self
            .unless_held(tab, futures_util::future::join_all(asking))
            .await;
        standing
    }

    /// Returns the differences since then, once the screen has come to rest.
    pub(crate) async fn effects(
        &self,
        tab: &TabState,
        spot: Option<&Spot>,
        standing: &StateBefore,
        rest: Rest,
    ) -> InputEffects {
        let now = self.state().frames.clone();
        let same = standing.frames.iter().filter(|(id, frame)| {
            now.get(*id)
                .is_some_and(|now| now.document == frame.document && now.world.is_some())
        });
        let asking = same.map(|(id, frame)| async move {
            let ended: DocumentChanges = self.ask(frame, "gyrus.end()").await.ok()?;
            Some((id.clone(), ended))
        });
        let asked = self
            .unless_held(tab, futures_util::future::join_all(asking))
            .await;
        let ended: Vec<(String, DocumentChanges)> =
            asked.unwrap_or_default().into_iter().flatten().collect();
        let mut words = self.told_by_the_browser(tab, standing);
        let own = spot.and_then(|spot| ended.iter().find(|(id, _)| *id == spot.frame_id));
        words.extend(own.into_iter().flat_map(|(_, ended)| told_by_target(ended)));
        let quiet = ended.iter().find(|(_, ended)| ended.quiet > 0);
        if let Some((_, quiet)) = quiet {
            let others = match quiet.quiet {
                1 => String::new(),
                more => format!(" and {} more", more - 1),
            };
            words.push(format!("{}{others} on the page", quiet.first));
        }
        if ended.iter().any(|(_, ended)| ended.scroll) {
            words.push("it scrolled".to_owned());
        }
        if ended.iter().any(|(_, ended)| ended.selection) {
            words.push("what is selected, or the caret, is elsewhere".to_owned());
        }
        if ended.iter().any(|(_, ended)| ended.drawn) {
            words.push("what is drawn on a canvas is different".to_owned());
        }
        let focus = ended.iter().find(|(_, ended)| ended.focus);
        let focused = focus.map(|(_, ended)| format!("the keyboard is now at {}", ended.focused));
        let blocked = ended
            .iter()
            .find_map(|(_, ended)| ended.guard.as_ref()?.blocked.clone());
        let guards = ended.iter().filter_map(|(_, ended)| ended.guard.as_ref());
        let landed = guards.map(|guard| guard.reached).sum();
        let noise = ended.iter().any(|(_, ended)| ended.noise > 0)
            || self.state().requested > standing.requests
            || !matches!(rest, Rest::Quiet);
        let verdict = match (words.is_empty(), noise) {
            (false, _) => ActionVerdict::Changed,
            (true, true) => ActionVerdict::CannotTell,
            (true, false) => ActionVerdict::NoEffect,
        };
        InputEffects {
            verdict,
            words,
            focused,
            blocked: blocked
                .clone()
                .filter(|_| landed == 0 || verdict != ActionVerdict::Changed),
            kept_from: blocked,
            landed,
            rest,
        }
    }

    fn told_by_the_browser(&self, tab: &TabState, before: &StateBefore) -> Vec<String> {
        let state = self.state();
        let now = StateBefore::of(&state, tab);
        let mut words = Vec::new();
        match NoPageAnswer::of(&state, tab.number) {
            Some(NoPageAnswer::Crashed) => {
                words.push("the page crashed; reload it, or open another address".to_owned())
            }
            Some(NoPageAnswer::Closed) => words.push(format!("tab {} was closed", tab.number)),
            Some(ref held @ NoPageAnswer::Dialog { ref kind, .. })
                if now.dialogs > before.dialogs && kind == LOGIN =>
            {
                words.push(held.to_string());
            }
            Some(NoPageAnswer::Dialog { kind, message }) if now.dialogs > before.dialogs => {
                words.push(format!(
                    "a dialog opened ({kind}): “{message}”; answer it with answer_dialog"
                ));
            }
            _ if now.dialogs > before.dialogs => {
                let asked = state.dialog_of(tab).into_iter();
                words.extend(asked.map(|asked| format!("the page asks: “{}”", asked.message)));
            }
            _ => {}
        }
        if now.tabs.contains(&tab.number)
            && (now.address != before.address || now.document != before.document)
        {
            if now.address == before.address {
                words.push("the page was loaded again".to_owned())
            } else {
                words.push(format!("the address is now {}", shorten(&now.address, 300)))
            }
        }
        for number in now.tabs.difference(&before.tabs) {
            let tab = state.tabs.iter().find(|tab| tab.number == *number);
            let address = tab
                .map(|tab| shorten(&tab.address, 300))
                .unwrap_or_default();
            let active = if now.active == Some(*number) {
                ", and is looked at now"
            } else {
                ""
            };
            words.push(format!("tab {number} opened ({address}){active}"));
        }
        if now.refused_tabs > before.refused_tabs {
            let more = now.refused_tabs - before.refused_tabs;
            words.push(format!(
                "{} opened and closed again: there are too many",
                counted(more, "more tab")
            ));
        }
        for download in state
            .downloads
            .iter()
            .filter(|one| !before.downloads.contains(&one.guid))
        {
            words.push(format!("a download began: {}", download.shown.name));
        }
        words.extend(told_of_choosers(&now, before).map(str::to_owned));
        words
    }
}

fn told_of_choosers(now: &StateBefore, before: &StateBefore) -> Option<&'static str> {
    if now.has_chooser && !before.has_chooser {
        Some("the page asks for a file: give it one with upload_file, on the same element")
    } else if now.barred_choosers > before.barred_choosers {
        Some("the page asks for a folder, or for a file in a way in which none can be given")
    } else {
        None
    }
}

fn told_by_target(ended: &DocumentChanges) -> Option<String> {
    match (ended.target, ended.group) {
        (true, _) => Some("the element is different".to_owned()),
        (false, true) => Some("its form or list is different".to_owned()),
        (false, false) => None,
    }
}
