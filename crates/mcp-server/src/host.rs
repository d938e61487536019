//! The program around the service, and who asks.

use std::{path::Path, sync::Arc};

use gyrus_contract::{BoxedFuture, Principal, RunId};
use gyrus_journal::Store;
use gyrus_runtime::queue::{QueueWork, RunHost};
use gyrus_server::Requester;
use rmcp::{RoleServer, model::Extensions, service::RequestContext};

/// The program around the service.
pub trait McpHost: RunHost {
    /// Returns the store of the runs.
    fn store(&self) -> &Store;

    /// Returns the folder that runs work in, or below, if there is one.
    fn folder(&self) -> Option<&Path>;

    /// Begins or resumes a run. When this returns, the order is accepted for good.
    ///
    /// # Errors
    /// A message with the reason why the order is refused.
    fn submit(
        &self,
        run: RunId,
        work: QueueWork,
        from: Principal,
        agent: String,
    ) -> BoxedFuture<'_, Result<(), String>>;

    /// Waits until no process works for a run or is about to; returns how that ended, in words.
    fn settled(&self, run: RunId) -> BoxedFuture<'_, String>;
}

/// Returns the identity of a client, by the name that it gives itself.
pub type Identify = Arc<dyn Fn(&str) -> Requester + Send + Sync>;

/// The way in which clients are identified.
#[derive(Clone)]
pub enum McpCallers {
    /// All requests come from the person who started this process. It is asked anew each time,
    /// because a token may have been revoked; the name is what the client calls itself.
    OfProcess(Identify),
    /// The guard of the server has identified each request.
    OfRequest,
}

/// Maximum length of a client's name, in bytes.
const MAX_NAME: usize = 64;

impl McpCallers {
    /// Returns the identity behind a request; `None` if nobody has established it.
    pub(crate) fn of(&self, context: &RequestContext<RoleServer>) -> Option<Requester> {
        match self {
            McpCallers::OfProcess(identify) => Some(identify(&client_name(context))),
            McpCallers::OfRequest => identity(&context.extensions),
        }
    }
}

/// Returns the name that a client gives itself, in characters that suit a principal. It proves
/// nothing.
pub(crate) fn client_name(context: &RequestContext<RoleServer>) -> String {
    let given = context.client_info().map(|info| info.name);
    let given = given.unwrap_or_default();
    let suits = |c: &char| c.is_ascii_alphanumeric() || "-_. /".contains(*c);
    let name: String = given.chars().filter(suits).take(MAX_NAME).collect();
    let name = name.trim();
    if name.is_empty() {
        "client".to_owned()
    } else {
        name.to_owned()
    }
}

fn identity(extensions: &Extensions) -> Option<Requester> {
    let request = extensions.get::<http::request::Parts>()?;
    request.extensions.get::<Requester>().cloned()
}
