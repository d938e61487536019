//! Handles a server's notifications: progress of a call, and changes of its tools. Its requests
//! (model sampling, folders, questions) are declined.

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

/// Maximum characters of a server's progress message.
const MAX_WORDS: usize = 120;

/// Receives the notifications of one server.
#[derive(Clone, Default)]
pub(crate) struct Subscriber {
    notifications: Arc<Notifications>,
}

#[derive(Default)]
struct Notifications {
    changed: AtomicBool,
    /// The last progress message of each call in progress.
    calls: Mutex<HashMap<ProgressToken, watch::Sender<String>>>,
}

impl Subscriber {
    /// Whether the server announced a change of its tools since the last call of this function.
    pub(crate) fn tools_changed(&self) -> bool {
        self.notifications.changed.swap(false, Ordering::AcqRel)
    }

    /// Marks the tools as changed again, because listing them failed.
    pub(crate) fn tools_may_have_changed(&self) {
        self.notifications.changed.store(true, Ordering::Release);
    }

    /// Returns the progress messages of a call, until [`Self::forget`].
    pub(crate) fn listen(&self, call: ProgressToken) -> watch::Receiver<String> {
        let (sender, receiver) = watch::channel(String::new());
        self.calls().insert(call, sender);
        receiver
    }

    pub(crate) fn forget(&self, call: &ProgressToken) {
        self.calls().remove(call);
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, watch::Sender<String>>> {
        self.notifications
            .calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientHandler for Subscriber {
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
