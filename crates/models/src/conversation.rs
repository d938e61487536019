//! Parts of requests that all protocols share: turns, ids and names of calls, pictures.
//!
//! A conversation may have used several providers, and a model may have called a tool by any name.
//! So requests are adapted: adjacent messages of one role are one turn, empty parts are left out,
//! and an id or a name that a provider would refuse is replaced by one that is the same in every
//! request, so that the provider's cache works.

use std::{borrow::Cow, collections::BTreeSet};

use base64::{Engine, engine::general_purpose::STANDARD};
use gyrus_contract::{Digest, Image, ModelError, Part, Prompt, Role};
use serde_json::Value;

use crate::PictureSource;

/// Maximum bytes of an id of a call that all providers accept back.
const MAX_ID_BYTES: usize = 40;

/// Maximum bytes of a name of a called tool that all providers accept back.
const MAX_NAME_BYTES: usize = 64;

/// Adjacent messages of one role.
#[derive(Debug)]
pub(crate) struct RoleTurn<'a> {
    pub(crate) role: Role,
    /// Parts in order; never empty.
    pub(crate) parts: Vec<&'a Part>,
}

/// Returns the conversation in turns of alternating roles. Omits parts that providers refuse: empty
/// texts, messages without content, thinking that is not `own`, and thinking without a result
/// because the output limit was reached.
pub(crate) fn turns(
    prompt: &Prompt,
    own: fn(&Value) -> bool,
) -> Result<Vec<RoleTurn<'_>>, ModelError> {
    let mut turns: Vec<RoleTurn<'_>> = Vec::new();
    for message in &prompt.messages {
        let mut parts = Vec::with_capacity(message.parts.len());
        for part in &message.parts {
            match (message.role, part) {
                (_, Part::Text(text)) if text.text.trim().is_empty() => {}
                (Role::Assistant, Part::Thinking(block)) if !own(block) => {}
                (_, Part::Text(_))
                | (Role::User, Part::Image(_) | Part::ToolResult(_))
                | (Role::Assistant, Part::Thinking(_) | Part::ToolCall(_)) => parts.push(part),
                (Role::User, Part::Thinking(_) | Part::ToolCall(_)) => {
                    return Err(misplaced("thinking or a tool call", "a user message"));
                }
                (Role::Assistant, Part::Image(_) | Part::ToolResult(_)) => {
                    return Err(misplaced(
                        "a picture or a tool result",
                        "a message of the model",
                    ));
                }
            }
        }
        if message.role == Role::User && !parts.is_empty() {
            drop_last_thinking(&mut turns);
        }
        match turns.last_mut() {
            _ if parts.is_empty() => {}
            Some(turn) if turn.role == message.role => turn.parts.extend(parts),
            _ => turns.push(RoleTurn {
                role: message.role,
                parts,
            }),
        }
    }
    drop_last_thinking(&mut turns);
    Ok(turns)
}

fn drop_last_thinking(turns: &mut Vec<RoleTurn<'_>>) {
    let Some(turn) = turns.last_mut() else { return };
    while matches!(turn.parts.last(), Some(Part::Thinking(_))) {
        turn.parts.pop();
    }
    if turn.parts.is_empty() {
        turns.pop();
    }
}

/// The ids of a conversation's calls as sent, and the calls that have no result yet.
pub(crate) struct CallIds {
    fits: fn(&str) -> bool,
    used: BTreeSet<String>,
    /// Pairs of the conversation's own id and the sent one.
    open: Vec<(String, String)>,
}

impl CallIds {
    /// Creates the state for a provider that accepts the ids for which `fits` returns true. Long
    /// ids are always replaced.
    pub(crate) fn new(fits: fn(&str) -> bool) -> Self {
        Self {
            fits,
            used: BTreeSet::new(),
            open: Vec::new(),
        }
    }

    /// Returns the id for the next call.
    pub(crate) fn call(&mut self, id: &str) -> String {
        let mut fitting = id.to_owned();
        let fits = |id: &String| {
            !id.is_empty() && id.len() <= MAX_ID_BYTES && (self.fits)(id) && !self.used.contains(id)
        };
        while !fits(&fitting) {
            let seed = format!("{} {id} {fitting}", self.used.len());
            let digest = Digest::of(seed.as_bytes()).to_string();
            let digits = digest.chars().filter(char::is_ascii_alphanumeric);
            fitting = format!("call_{}", digits.take(24).collect::<String>());
        }
        self.used.insert(fitting.clone());
        self.open.push((id.to_owned(), fitting.clone()));
        fitting
    }

    /// Returns the id under which the call that a result names was sent; `None` if there is no such
    /// call without a result.
    pub(crate) fn result(&mut self, id: &str) -> Option<String> {
        let at = self.open.iter().position(|(own, _)| own == id)?;
        Some(self.open.remove(at).1)
    }

    /// Removes the calls that have no result, and returns their ids.
    pub(crate) fn give_up(&mut self) -> Vec<String> {
        let open = std::mem::take(&mut self.open);
        open.into_iter().map(|(_, id)| id).collect()
    }
}

/// Returns the name of a called tool in a form that every provider accepts back. A model may have
/// called any name; the registry has reported the error, and the conversation must continue.
pub(crate) fn called_name(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.chars().all(is_plain) {
        return name.into();
    }
    let plain = name.chars().map(|c| if is_plain(c) { c } else { '_' });
    let plain: String = plain.take(MAX_NAME_BYTES).collect();
    if plain.is_empty() {
        "unnamed".into()
    } else {
        plain.into()
    }
}

/// Returns the bytes of a picture in base64.
pub(crate) fn base64(image: &Image, blobs: &dyn PictureSource) -> Result<String, ModelError> {
    match blobs.load(&image.blob) {
        Ok(bytes) => Ok(STANDARD.encode(bytes)),
        Err(reason) => Err(ModelError::Refused {
            message: format!("the picture {} cannot be sent: {reason}", image.blob),
        }),
    }
}

fn misplaced(what: &str, place: &str) -> ModelError {
    ModelError::Refused {
        message: format!("{what} cannot stand in {place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_fit_and_stay() {
        let fits = |id: &str| !id.contains('.');
        let mut ids = CallIds::new(fits);
        let long = "x".repeat(41);
        let first: Vec<_> = ["a", "a", "b.c", &long, ""].map(|id| ids.call(id)).into();
        assert_eq!(first[0], "a");
        assert!(
            first.iter().all(|id| fits(id) && id.len() <= MAX_ID_BYTES),
            "{first:?}"
        );
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 5, "{first:?}");
        let mut again = CallIds::new(fits);
        let second: Vec<_> = ["a", "a", "b.c", &long, ""].map(|id| again.call(id)).into();
        assert_eq!(first, second);
        assert_eq!(ids.result("a").as_ref(), Some(&first[0]));
        assert_eq!(ids.result("a").as_ref(), Some(&first[1]));
        assert_eq!(ids.result("a"), None);
        assert_eq!(ids.give_up(), first[2..]);
        assert_eq!(ids.give_up(), Vec::<String>::new());

        assert_eq!(called_name("read_2-b"), "read_2-b");
        assert_eq!(called_name("r\u{435}ad it"), "r_ad_it");
        assert_eq!(called_name(""), "unnamed");
        assert_eq!(called_name(&"n".repeat(100)).len(), MAX_NAME_BYTES);
    }
}
