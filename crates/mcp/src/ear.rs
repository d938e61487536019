//! What a server says without being asked: how far a call is, and that its tools are others now.
//! Everything else it may want of us (answers of a model, folders, questions) is declined.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
    },
    service::NotificationContext,
};
use tokio::sync::watch;

use crate::definition::clean;

/// Characters of a server's words about a call.
const MAX_WORDS: usize = 120;

/// Listens to one server.
#[derive(Clone, Default)]
pub(crate) struct Ear {
    heard: Arc<Heard>,
}

#[derive(Default)]
struct Heard {
    changed: AtomicBool,
    /// The last word about each call that is under way.
    calls: Mutex<HashMap<ProgressToken, watch::Sender<String>>>,
}

impl Ear {
    /// Whether the server said that its tools changed, since this was asked last.
    pub(crate) fn tools_changed(&self) -> bool {
        self.heard.changed.swap(false, Ordering::AcqRel)
    }

    /// The tools could not be listed: they are still to be looked at.
    pub(crate) fn tools_may_have_changed(&self) {
        self.heard.changed.store(true, Ordering::Release);
    }

    /// What is said about a call, until [`Self::forget`].
    pub(crate) fn listen(&self, call: ProgressToken) -> watch::Receiver<String> {
        let (sender, receiver) = watch::channel(String::new());
        self.calls().insert(call, sender);
        receiver
    }

    pub(crate) fn forget(&self, call: &ProgressToken) {
        self.calls().remove(call);
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, watch::Sender<String>>> {
        self.heard
            .calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientHandler for Ear {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("gyrus", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
    }

    async fn on_progress(
        &self,
        said: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        if let Some(call) = self.calls().get(&said.progress_token) {
            call.send_replace(in_words(&said));
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tools_may_have_changed();
    }
}

fn in_words(said: &ProgressNotificationParam) -> String {
    let number = match said.total {
        Some(total) => format!("{} of {total}", said.progress),
        None => said.progress.to_string(),
    };
    let Some(message) = &said.message else {
        return number;
    };
    let message = clean(message).replace('\n', " ");
    let message = gyrus_text::shorten(&message, MAX_WORDS);
    format!("{number}: {message}")
}
