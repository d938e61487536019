//! Inputs of a person on a desktop.
//!
//! Unlike on a page, keys mean something by themselves there, and many elements tell nothing of
//! themselves. So every input is either understood or the whole is not learned: what was pressed must
//! be an element, what was typed must stand in a field afterwards, and only fields that the person
//! used count, because programs change others by themselves.

use gyrus_contract::{
    Arguments as _, ClickCall, Decision, Element, ElementId, ElementState, PressKeyCall, Risk,
    ToolCall, TypeTextCall, Verdict, View,
};
use gyrus_screen::PersonInput;
use gyrus_text::shorten;
use serde_json::json;

use super::{
    seen::{StepBinding, TOGGLES, USED},
    showing::TeachingSession,
};
use crate::procedures::recording::commits;

/// The reason for which a program with a secret is not learned.
const SECRET: &str =
    "a field for a password had the keyboard, and what is typed there is never kept";

/// Roles of fields that tell the text in them.
const TEXTS: [&str; 3] = ["textbox", "searchbox", "spinbutton"];

/// Roles beside those of pages that a press uses.
const USED_IN_PROGRAMS: [&str; 4] = ["menu", "cell", "listitem", "columnheader"];

/// The end of a value that was cut, because it is too long.
const CUT: char = '…';

/// Minimum length of a value that may have been cut, in characters; such a value ends with [`CUT`].
const LONG: usize = 300;

/// Maximum number of characters of a name in a sentence.
const MAX_NAME: usize = 60;

pub(super) async fn before(teaching: &TeachingSession, input: PersonInput) {
    match input {
        PersonInput::Presses { x, y } => pressed(teaching, x, y).await,
        PersonInput::PressesAgain { count } => teaching.pressed_again(count).await,
        PersonInput::Releases { x, y } => teaching.seen().released(x, y),
        PersonInput::PressesAnother => {
            teaching.refuse("you used another button of the mouse than the left one");
        }
        PersonInput::Types => typed(teaching).await,
        PersonInput::Strikes { key } => struck(teaching, &key).await,
        PersonInput::ChangesTab => {
            teaching.refuse("you used the list of windows; click into the window instead");
        }
        PersonInput::GivesBack => {
            catch_up(teaching).await;
        }
        // These belong to pages.
        PersonInput::GoesTo { .. } | PersonInput::GoesBack | PersonInput::Answers { .. } => {}
    }
}

/// Takes a look, and records the fields that the person changed since the last one.
async fn catch_up(teaching: &TeachingSession) -> Option<View> {
    let now = teaching.look_for_secrets(SECRET).await?;
    let mut seen = teaching.seen();
    let touched = std::mem::take(&mut seen.touched);
    let value = |id: ElementId| {
        let element = now.elements.iter().find(|element| element.id == id);
        element.map(|element| element.value.clone())
    };
    if let Some((id, before)) = seen.typing.take()
        && value(id).is_none_or(|value| value == before)
    {
        seen.refuse(
            "what you typed does not stand in a field afterwards, so it cannot be repeated",
        );
    }
    let is_cut = |id: &ElementId| {
        let text = value(*id).flatten().unwrap_or_default();
        text.ends_with(CUT) && text.chars().count() > LONG
    };
    if touched.iter().any(is_cut) {
        seen.refuse("a text is too long to be read back");
    }
    seen.add_changes(&now, |element| touched.contains(&element.id));
    Some(now)
}

fn words(element: &Element) -> String {
    format!("{} “{}”", element.role, shorten(&element.name, MAX_NAME))
}

/// Returns the reason why the judged input is not learned: no run may do it, or its text is a
/// command or a secret.
fn refusal(verdict: &Verdict, most: Risk) -> Option<&str> {
    let is_refused = verdict.decision == Decision::Deny || verdict.bare_risk() > most;
    let reason = verdict.reasons.first().map_or("", String::as_str);
    is_refused.then_some(reason)
}

/// Adds a press of the mouse, or a key, as a step.
async fn add(teaching: &TeachingSession, view: View, call: ToolCall) {
    match teaching.judged(&call).await {
        Err(why) => teaching.refuse(&format!("gyrus cannot tell what you used: {why}")),
        Ok((verdict, aim)) => {
            if let Some(why) = refusal(&verdict, Risk::Critical) {
                teaching.refuse(&format!("no run may do that: {why}"));
            }
            let binding = if commits(&verdict, Some(&aim)) {
                StepBinding::Somebody(None)
            } else {
                StepBinding::Nobody
            };
            teaching.seen().add(Some(view), call, binding);
        }
    }
}

async fn pressed(teaching: &TeachingSession, x: f64, y: f64) {
    let place = (x, y);
    teaching.seen().pressed = None;
    let Some(view) = catch_up(teaching).await else {
        return;
    };
    let at = [x * f64::from(view.width), y * f64::from(view.height)];
    let at = ToolCall::new(ClickCall::TOOL, json!({ "at": at }));
    let hit = match teaching.judged(&at).await {
        Ok((_, aim)) => aim.element,
        Err(_) => None,
    };
    let Some(hit) = hit else {
        teaching.refuse("you pressed where no window of a program is, or on the frame of one");
        return;
    };
    let Some(element) = used(&view, hit.id) else {
        teaching.refuse(&format!(
            "you pressed {} “{}”, which does not tell what it does",
            hit.role,
            shorten(&hit.name, MAX_NAME)
        ));
        return;
    };
    let role = element.role.as_str();
    if element.states.contains(&ElementState::Masked) {
        teaching.refuse(SECRET);
    } else if TEXTS.contains(&role) || TOGGLES.contains(&role) {
        // The value is read when the desktop is looked at again. A press changes a number too.
        if role != "textbox" {
            teaching.seen().touched.insert(element.id);
        }
    } else {
        let call = ToolCall::new(ClickCall::TOOL, json!({ "on": element.id }));
        teaching.seen().pressed = Some((element.id, place));
        add(teaching, view.clone(), call).await;
    }
}

/// Returns the element that a press on another one uses: the element itself, or the one around it.
fn used(view: &View, id: ElementId) -> Option<&Element> {
    let at = view.elements.iter().position(|element| element.id == id)?;
    let mut depth = view.elements[at].depth + 1;
    let around = view.elements[..=at].iter().rev().filter(move |element| {
        let is_around = element.depth < depth;
        if is_around {
            depth = element.depth;
        }
        is_around
    });
    let is_used = |element: &&Element| {
        let role = element.role.as_str();
        let roles = [&USED[..], &TEXTS, &TOGGLES, &USED_IN_PROGRAMS];
        roles.iter().any(|roles| roles.contains(&role))
    };
    around.into_iter().find(is_used)
}

/// Returns the element that has the keyboard: the innermost of the active window.
fn with_keyboard(view: &View) -> Option<&Element> {
    let active = view.tabs.iter().find(|window| window.is_active)?.number;
    view.elements.iter().rfind(|element| {
        element.id.document == active && element.states.contains(&ElementState::Focused)
    })
}

fn is_text(element: &Element) -> bool {
    TEXTS.contains(&element.role.as_str())
}

/// Handles typed text, which counts once it is seen in a field.
async fn typed(teaching: &TeachingSession) {
    if teaching.seen().typing.is_some() {
        return;
    }
    let Some(view) = catch_up(teaching).await else {
        return;
    };
    let Some(element) = with_keyboard(&view) else {
        teaching.refuse("you typed where nothing says that it has the keyboard");
        return;
    };
    if TOGGLES.contains(&element.role.as_str()) {
        teaching.seen().touched.insert(element.id);
        return;
    }
    if !is_text(element) {
        let what = words(element);
        teaching.refuse(&format!(
            "you typed into {what}, which does not tell its text, so it cannot be repeated"
        ));
        return;
    }
    let call = ToolCall::new(
        TypeTextCall::TOOL,
        json!({ "on": element.id, "text": "text" }),
    );
    match teaching.judged(&call).await {
        Err(why) => teaching.refuse(&format!("gyrus cannot tell where you typed: {why}")),
        Ok((verdict, _)) => {
            if let Some(why) = refusal(&verdict, Risk::Moderate) {
                teaching.refuse(&format!("what is typed there is not learned: {why}"));
            }
        }
    }
    let mut seen = teaching.seen();
    seen.touched.insert(element.id);
    seen.typing = Some((element.id, element.value.clone()));
}

/// A key, by its effect as far as that is known.
#[derive(Debug, PartialEq, Eq)]
enum TaughtKey {
    Types,
    Moves,
    /// Changes text, or moves in it or in a list.
    Edits,
    Enter,
    Command,
}

fn kind(key: &str) -> TaughtKey {
    let has = |name: &str| key.contains(&format!("{name}+"));
    let commands = has("Control") || has("Alt") || has("Meta");
    let plain = ["Control+", "Alt+", "Meta+", "Shift+"]
        .iter()
        .fold(key.to_owned(), |key, held| key.replacen(held, "", 1));
    let edits = [
        "Backspace",
        "Delete",
        "Home",
        "End",
        "PageUp",
        "PageDown",
        "ArrowLeft",
        "ArrowRight",
        "ArrowUp",
        "ArrowDown",
        "Insert",
    ];
    let in_text = ["a", "c", "x", "z", "y", "Z", "Y"];
    match plain.as_str() {
        "v" | "V" if key.starts_with("Control+") => TaughtKey::Types,
        "Insert" if key == "Shift+Insert" => TaughtKey::Types,
        "Tab" if !commands => TaughtKey::Moves,
        "Enter" if key == "Enter" => TaughtKey::Enter,
        "Space" if !commands => TaughtKey::Types,
        name if edits.contains(&name) && !has("Alt") && !has("Meta") => TaughtKey::Edits,
        name if key.starts_with("Control+") && !has("Alt") && in_text.contains(&name) => {
            TaughtKey::Edits
        }
        name if name.chars().count() == 1 && !commands => TaughtKey::Types,
        _ => TaughtKey::Command,
    }
}

async fn struck(teaching: &TeachingSession, key: &str) {
    match kind(key) {
        TaughtKey::Types => typed(teaching).await,
        TaughtKey::Moves => {
            catch_up(teaching).await;
        }
        TaughtKey::Edits => edited(teaching).await,
        TaughtKey::Enter => entered(teaching).await,
        TaughtKey::Command => {
            if let Some(view) = catch_up(teaching).await {
                // A click elsewhere than into text could do something.
                let on = with_keyboard(&view).filter(|element| is_text(element));
                let call = match on {
                    Some(element) => json!({ "key": key, "on": element.id }),
                    None => json!({ "key": key }),
                };
                add(teaching, view, ToolCall::new(PressKeyCall::TOOL, call)).await;
            }
        }
    }
}

/// A key that edits text. In a menu it only finds an entry; elsewhere it may choose or delete.
async fn edited(teaching: &TeachingSession) {
    if teaching.seen().typing.is_some() {
        return;
    }
    let Some(view) = teaching.look_for_secrets(SECRET).await else {
        return;
    };
    match with_keyboard(&view) {
        Some(element) if is_text(element) => {
            teaching.seen().touched.insert(element.id);
        }
        Some(element) if element.role.starts_with("menu") => {}
        _ => teaching.refuse("you used keys where no text is; use the mouse instead"),
    }
}

async fn entered(teaching: &TeachingSession) {
    let Some(view) = catch_up(teaching).await else {
        return;
    };
    let Some(element) = with_keyboard(&view).cloned() else {
        teaching.refuse("you pressed Enter where nothing says that it has the keyboard");
        return;
    };
    if is_text(&element) && element.states.contains(&ElementState::Multiple) {
        typed(teaching).await;
    } else if is_text(&element) {
        let call = json!({ "key": "Enter", "on": element.id });
        add(teaching, view, ToolCall::new(PressKeyCall::TOOL, call)).await;
    } else if matches!(
        element.role.as_str(),
        "button" | "link" | "tab" | "menuitem"
    ) {
        let call = json!({ "on": element.id });
        add(teaching, view, ToolCall::new(ClickCall::TOOL, call)).await;
    } else {
        let what = words(&element);
        teaching.refuse(&format!(
            "you pressed Enter on {what}; press a button instead"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart() {
        for (key, expected) in [
            ("a", TaughtKey::Types),
            ("Control+v", TaughtKey::Types),
            ("Shift+Insert", TaughtKey::Types),
            ("Space", TaughtKey::Types),
            ("Tab", TaughtKey::Moves),
            ("Shift+Tab", TaughtKey::Moves),
            ("Backspace", TaughtKey::Edits),
            ("Control+Shift+ArrowLeft", TaughtKey::Edits),
            ("Control+a", TaughtKey::Edits),
            ("Control+Z", TaughtKey::Edits),
            ("Enter", TaughtKey::Enter),
            ("Escape", TaughtKey::Command),
            ("Control+s", TaughtKey::Command),
            ("Control+S", TaughtKey::Command),
            ("Control+Enter", TaughtKey::Command),
            ("Control+Tab", TaughtKey::Command),
            ("Alt+ArrowLeft", TaughtKey::Command),
            ("Alt+F4", TaughtKey::Command),
            ("F2", TaughtKey::Command),
            ("Control++", TaughtKey::Command),
        ] {
            assert_eq!(kind(key), expected, "{key}");
        }
    }
}
