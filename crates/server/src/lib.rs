//! The HTTP API: whoever holds a token watches, starts and steers runs, from any program.
//!
//! The one idea: an endpoint is one line of a table (`api`), which names its scope and its types;
//! routing, authorisation and the OpenAPI document are read from that line. Whatever changes a run
//! is a message in its inbox or a command in the queue: the server has no other way to a run than
//! any other surface.
//!
//! Reading order: `api` (the table), `guard` (who may ask at all), `connection` (what a peer may do
//! to the server), `app` (what the handlers share), `pages` (the
//! dashboard, over the same functions).

mod announced;
mod api;
mod app;
mod connection;
mod costs;
mod endpoint;
mod error;
mod extract;
mod guard;
mod heads;
mod leases;
mod health;
mod openapi;
mod overview;
mod pages;
mod sse;
mod state_folder;
mod fleet;
mod surroundings;
mod tokens;
mod topics;

pub use announced::announce;
pub use api::{AgentView, agents_on_disk};
pub use app::{App, CommandPiece, CommandPieces, HostProgram, Options};
pub use connection::{Peer, ServerListener, serve};
pub use error::{ApiError, ErrorBody};
pub use fleet::{FleetRunView, FleetView, FleetWorkerView};
pub use heads::{FoundRuns, Heads, RunHead, RunWord};
pub use overview::RunOverview;
pub use surroundings::{
    AgentFileView, ChatPersonView, ChatView, HookFailure, HookView, PolicyFileView, ServerSettings,
    ToolServerView,
};
pub use tokens::{
    AccessTokens, Requester, TokenError, TokenFact, TokenList, TokenRecord, TokenScope,
};

/// A service of another protocol behind the server's guard, with its own description. Whoever may
/// read reaches it; the [`Requester`] is in the extensions of each request.
pub struct MountedService {
    pub path: &'static str,
    pub route: axum::routing::MethodRouter<std::sync::Arc<App>>,
}

/// Returns the router of all endpoints.
pub fn router(app: std::sync::Arc<App>, mounted: Vec<MountedService>) -> axum::Router {
    let mut endpoints = api::endpoints();
    app.document.get_or_init(|| openapi::document(&endpoints));
    // Pages are for people, and part of no contract.
    endpoints.extend(pages::endpoints());
    let mounted = mounted.into_iter();
    endpoints.extend(mounted.map(|MountedService { path, route }| endpoint::reads(path, route)));
    guard::guarded(endpoints, app)
}
