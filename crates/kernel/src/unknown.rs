//! Inputs that were interrupted by a crash of gyrus or of the page: it is unknown whether they
//! happened. A similar input of high risk is asked about once, whatever was granted before.

use gyrus_contract::{ActionVerdict, Aim, Risk};

use crate::{CallEnd, Entry, GateVerdict, ToolResulted, UnknownInput};

/// Maximum number of inputs that are remembered one by one; the oldest is dropped.
const MOST: usize = 32;

/// The reason why a person is asked.
pub(crate) const CUT_OFF_BEFORE: &str = "an input like this was cut off by a crash in this run, and \
                                         nobody knows whether it happened";

impl UnknownInput {
    fn of(aim: &Aim) -> Self {
        let element = aim.element.as_ref();
        Self {
            origin: aim.origin.clone(),
            element: element.map(|aimed| (aimed.role.clone(), aimed.name.clone())),
            form: aim.form.as_ref().map(|form| form.action.clone()),
        }
    }

    /// Whether an input has the same target: the same control, or another way to send the same
    /// form.
    pub(crate) fn is_like(&self, aim: &Aim) -> bool {
        let other = Self::of(aim);
        let same = |one: &Option<_>, other: &Option<_>| one.is_some() && one == other;
        self.origin == other.origin
            && (same(&self.element, &other.element) || {
                self.form.is_some() && self.form == other.form
            })
    }
}

/// Adds the interrupted inputs of high risk among these entries.
pub(crate) fn remember(known: &mut Vec<UnknownInput>, entries: &[Entry]) {
    for entry in entries {
        let Entry::ToolResulted(result) = entry else {
            continue;
        };
        let judged = entries.iter().rev().find_map(|entry| match entry {
            Entry::GateVerdict(judged) if judged.effect == result.effect => Some(judged),
            _ => None,
        });
        if let Some(judged) = judged {
            add(known, judged, result);
        }
    }
}

/// Adds an interrupted input that is of high risk or one of the mandate's.
pub(crate) fn add(known: &mut Vec<UnknownInput>, judged: &GateVerdict, result: &ToolResulted) {
    let cut_off = match result.settled {
        CallEnd::Interrupted | CallEnd::Cancelled => true,
        // The element that it was done to disappeared in the middle.
        CallEnd::Done => result.is_error && result.verdict == ActionVerdict::CannotTell,
        CallEnd::Refused => false,
    };
    // What a mandate lets pass has a low risk, and an effect all the same.
    let matters = judged.mandated.is_some() || judged.verdict.bare_risk() >= Risk::High;
    if !cut_off || !matters {
        return;
    }
    let unknown = judged.aim.as_ref().map(UnknownInput::of);
    known.extend(unknown.filter(|unknown| !known.contains(unknown)));
    let over = known.len().saturating_sub(MOST);
    known.drain(..over);
}
