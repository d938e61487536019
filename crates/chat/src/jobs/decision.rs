//! The result of a job that has looked at the world.

use std::sync::Arc;

use gyrus_text::readable;

use crate::{
    conversation::ReplyTarget,
    messenger::IncomingMessage,
    record::{ChatChange, ChatRecord, Numbers},
    shared::AccountInner,
};

/// The changes that a job decided on, computed from the present record.
pub(super) type JobDecision = Box<dyn FnOnce(&ChatRecord, &mut Numbers) -> Vec<ChatChange> + Send>;

pub(super) fn nothing() -> JobDecision {
    Box::new(|_, _| Vec::new())
}

pub(super) fn say(
    shared: &Arc<AccountInner>,
    message: &IncomingMessage,
    text: String,
) -> JobDecision {
    let (shared, speaking) = (Arc::clone(shared), ReplyTarget::to(message));
    Box::new(move |_, numbers| {
        let mut changes = Vec::new();
        speaking.say(&shared, numbers, &readable(&text), Vec::new(), &mut changes);
        changes
    })
}
