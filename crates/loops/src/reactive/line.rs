//! The format of one element as one line of a prompt.

use gyrus_contract::{Element, ElementState, View};

use super::{
    place::{beside, middle},
    render::RenderBudget,
    words::quoted,
};

/// Maximum number of characters of a usable element's name.
pub(super) const OPERABLE: usize = 80;

/// Maximum length of a line beside a picture.
pub(super) const BESIDE_PICTURE: usize = 24;

/// States that a picture shows, or that only an attempt reveals.
const SEEN: [ElementState; 3] = [
    ElementState::Required,
    ElementState::Opens,
    ElementState::Collapsed,
];

/// Returns the line of a usable element. It begins with its id.
pub(super) fn operable(view: &View, index: usize, budget: RenderBudget<'_>) -> String {
    let element = &view.elements[index];
    let most = if budget.with_picture {
        BESIDE_PICTURE
    } else {
        OPERABLE
    };
    let mut line = format!("{} {}", element.id, role(element));
    if element.name.trim().is_empty() {
        line.push_str(&middle(view, index));
        // A picture shows what it is beside.
        if !budget.with_picture {
            line.extend(beside(view, index));
        }
    } else {
        line.push_str(&format!(" {}", quoted(&element.name, most)));
    }
    let masked = element.states.contains(&ElementState::Masked);
    if let Some(value) = element.value.as_ref().filter(|_| !masked) {
        line.push_str(&format!(" = {}", quoted(value, most)));
    }
    let mut states: Vec<_> = element
        .states
        .iter()
        .filter(|state| !budget.with_picture || !SEEN.contains(state))
        .filter_map(|state| word(*state))
        .collect();
    if masked && let Some(value) = &element.value {
        states.push(if value.is_empty() { "empty" } else { "filled" });
    }
    if !states.is_empty() {
        line.push_str(&format!(" ({})", states.join(", ")));
    }
    if !budget.with_picture {
        line.push_str(&choices(view, index));
    }
    line
}

/// Returns an element's role, or a generic word for a role that a page invented, which could carry
/// a message.
pub(super) fn role(element: &Element) -> String {
    let known = element
        .role
        .bytes()
        .all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    if known && element.role.len() <= 24 {
        element.role.clone()
    } else {
        "element".to_owned()
    }
}

/// Returns the options of a closed list.
fn choices(view: &View, index: usize) -> String {
    let list = &view.elements[index];
    let inner = view.elements[index + 1..]
        .iter()
        .take_while(|it| it.depth > list.depth);
    let closed = inner.filter(|it| it.role == "option" && it.bounds.is_none());
    let names: Vec<_> = closed.map(|option| option.name.as_str()).collect();
    if names.is_empty() {
        return String::new();
    }
    let shown: Vec<_> = names.iter().take(6).map(|name| quoted(name, 24)).collect();
    let more = match names.len().saturating_sub(6) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(" of {}{more}", shown.join(", "))
}

pub(super) fn boxed(element: &Element) -> String {
    let id = match element.role.as_str() {
        "listbox" => format!("{} ", element.id),
        _ => String::new(),
    };
    if element.name.trim().is_empty() {
        format!("{id}{}:", role(element))
    } else {
        format!("{id}{} {}:", role(element), quoted(&element.name, 60))
    }
}

pub(super) fn said(element: &Element, most: usize) -> String {
    let mut line = match element.role.as_str() {
        "text" | "paragraph" | "StaticText" | "cell" | "generic" => String::new(),
        _ => format!("{} ", role(element)),
    };
    line.push_str(&quoted(&element.name, most));
    if let Some(value) = &element.value {
        line.push_str(&format!(" = {}", quoted(value, 60)));
    }
    line
}

/// Returns the word for a state that matters to a model.
fn word(state: ElementState) -> Option<&'static str> {
    Some(match state {
        ElementState::Focused => "focused",
        ElementState::Checked => "on",
        ElementState::Mixed => "partly on",
        ElementState::Selected => "selected",
        ElementState::Pressed => "pressed",
        ElementState::Expanded => "open",
        ElementState::Collapsed => "closed",
        ElementState::Disabled => "disabled",
        ElementState::ReadOnly => "read only",
        ElementState::Required => "required",
        ElementState::Invalid => "invalid",
        ElementState::Opens => "opens more",
        ElementState::Masked => "masked",
        ElementState::Scrolls => "scrolls by itself",
        ElementState::Covered => "covered",
        ElementState::Draggable => "draggable",
        ElementState::Droppable => "takes what is dragged",
        ElementState::Multiple => "takes several",
        ElementState::Busy => "busy",
        ElementState::OutOfView | ElementState::Clickable => return None,
    })
}
