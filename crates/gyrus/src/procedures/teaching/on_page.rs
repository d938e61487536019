//! Inputs of a person on a page.
//!
//! Fields are read when the page is looked at again, so a press or a key counts only where it uses
//! something.

use gyrus_contract::{
    Arguments as _, ClickCall, Element, ElementState, PressKeyCall, ToolCall, View,
};
use gyrus_screen::PersonInput;
use serde_json::json;

use super::{
    seen::{FIELDS, TOGGLES, USED},
    showing::TeachingSession,
};

/// The reason for which a page with a secret is not learned.
const SECRET: &str = "a secret was typed, which is never kept: log in first, with a --profile";

pub(super) async fn before(teaching: &TeachingSession, input: PersonInput) {
    match input {
        PersonInput::Presses { x, y } => pressed(teaching, x, y).await,
        PersonInput::PressesAgain { count } => teaching.pressed_again(count).await,
        PersonInput::Releases { x, y } => teaching.seen().released(x, y),
        PersonInput::Strikes { key } => struck(teaching, &key).await,
        PersonInput::GoesTo { .. } => {
            teaching.refuse("you went to another address by typing it");
        }
        PersonInput::GoesBack => teaching.refuse("you went back, or loaded a page again"),
        PersonInput::ChangesTab => teaching.refuse("you used several tabs"),
        PersonInput::Answers { .. } => teaching.refuse("you answered a question of the browser"),
        PersonInput::GivesBack => {
            catch_up(teaching).await;
        }
    }
}

/// Takes a look, and records the fields that changed since the last one.
async fn catch_up(teaching: &TeachingSession) -> Option<View> {
    let now = teaching.look_for_secrets(SECRET).await?;
    teaching.seen().add_changes(&now);
    Some(now)
}

async fn pressed(teaching: &TeachingSession, x: f64, y: f64) {
    let place = (x, y);
    teaching.seen().pressed = None;
    let Some(view) = catch_up(teaching).await else {
        return;
    };
    let (x, y) = (x * f64::from(view.width), y * f64::from(view.height));
    // A picture is small.
    let Some(element) = used_at(&view, x as i32, y as i32).cloned() else {
        return;
    };
    if element.states.contains(&ElementState::Masked) {
        teaching.refuse(SECRET);
    }
    // The value is read when the page is looked at again.
    let is_set = |roles: &[&str]| roles.contains(&element.role.as_str());
    if is_set(&FIELDS) || is_set(&TOGGLES) {
        return;
    }
    let call = ToolCall::new(ClickCall::TOOL, json!({ "on": element.id }));
    let binding = teaching.binding(&call).await;
    teaching.seen().pressed = Some((element.id, place));
    teaching.seen().add(Some(view), call, binding);
}

/// Handles a key. Enter and the space bar use what has the keyboard; the others only type, or move
/// on to another field.
async fn struck(teaching: &TeachingSession, key: &str) {
    let uses = matches!(key, "Enter" | "Space" | " ");
    if !uses && key != "Tab" && key != "Shift+Tab" {
        return;
    }
    let Some(view) = catch_up(teaching).await else {
        return;
    };
    let focused = |element: &&Element| element.states.contains(&ElementState::Focused);
    let Some(element) = view.elements.iter().rev().find(focused).cloned() else {
        return;
    };
    let role = element.role.as_str();
    let is_pressed = matches!(role, "button" | "link" | "tab" | "menuitem");
    let submits = matches!(role, "textbox" | "searchbox" | "spinbutton")
        && !element.states.contains(&ElementState::Multiple);
    let call = match key {
        "Tab" | "Shift+Tab" => return,
        _ if is_pressed => ToolCall::new(ClickCall::TOOL, json!({ "on": element.id })),
        "Enter" if submits => ToolCall::new(
            PressKeyCall::TOOL,
            json!({"key": "Enter", "on": element.id}),
        ),
        _ => return,
    };
    let binding = teaching.binding(&call).await;
    teaching.seen().add(Some(view), call, binding);
}

/// Returns the element that a press at a point uses: the smallest there that can be used.
fn used_at(view: &View, x: i32, y: i32) -> Option<&Element> {
    let there = view.elements.iter().filter(|element| {
        let role = element.role.as_str();
        let is_used = USED.contains(&role)
            || FIELDS.contains(&role)
            || element.states.contains(&ElementState::Clickable);
        let is_there = element.bounds.is_some_and(|bounds| bounds.contains(x, y));
        is_used && is_there && !element.states.contains(&ElementState::OutOfView)
    });
    there.min_by_key(|element| {
        let area = element.bounds.map_or(0, |bounds| {
            i64::from(bounds.width) * i64::from(bounds.height)
        });
        (area, std::cmp::Reverse(element.depth))
    })
}
