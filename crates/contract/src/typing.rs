//! The keyboard input of a call on a screen, as far as its arguments tell, so that a password is
//! known before the call is recorded.

use serde_json::{Map, Value};

use crate::ElementId;

/// The target of a typed text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TypedInto {
    Element(ElementId),
    /// Into the element at this point of the picture.
    Point(f64, f64),
    /// Into the element with the keyboard focus.
    Focused,
}

impl TypedInto {
    /// Returns the target of a call of a screen tool, from its arguments `on` and `at`.
    pub fn of(arguments: &Map<String, Value>) -> Self {
        let element = arguments.get("on").and_then(Value::as_str);
        if let Some(id) = element.and_then(|id| id.parse().ok()) {
            return Self::Element(id);
        }
        let at = arguments.get("at").and_then(Value::as_array);
        match at.map(Vec::as_slice) {
            Some([x, y]) => match (x.as_f64(), y.as_f64()) {
                (Some(x), Some(y)) => Self::Point(x, y),
                _ => Self::Focused,
            },
            _ => Self::Focused,
        }
    }
}

/// Returns the argument of a [`TypeTextCall`](crate::TypeTextCall) with the text to type.
pub fn typed_text(arguments: &mut Map<String, Value>) -> Option<&mut String> {
    match arguments.get_mut("text") {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// Returns the fields that a [`ClickCall`](crate::ClickCall) fills in, with their texts.
pub fn fields_filled(
    arguments: &mut Map<String, Value>,
) -> impl Iterator<Item = (ElementId, &mut String)> {
    let fields = arguments.get_mut("fill").and_then(Value::as_array_mut);
    let fields = fields.into_iter().flatten();
    fields.filter_map(|field| match field.as_array_mut()?.as_mut_slice() {
        [Value::String(on), Value::String(text)] => Some((on.parse().ok()?, text)),
        _ => None,
    })
}
