//! The service for a server of HTTP, behind its guard.

use std::{io, sync::Arc};

use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use tokio::sync::watch;

use crate::{McpCallers, McpHost, service::McpService};

/// Maximum size of a request in bytes.
const MAX_BODY: usize = 4 << 20;

/// Maximum number of sessions at once. One that says nothing for five minutes ends.
const MAX_SESSIONS: usize = 256;

/// Returns the HTTP service; its streams end once `stopping` is true. Hosts, origins and tokens are
/// the guard's business.
pub fn http_service(
    host: Arc<dyn McpHost>,
    mut stopping: watch::Receiver<bool>,
) -> StreamableHttpService<McpService, LocalSessionManager> {
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_max_request_body_bytes(MAX_BODY);
    let ended = config.cancellation_token.clone();
    tokio::spawn(async move {
        // A server that is gone without a word has stopped, too.
        let _ = stopping.wait_for(|stopping| *stopping).await;
        ended.cancel();
    });
    let service = McpService::new(host, McpCallers::OfRequest);
    let sessions = Arc::new(LocalSessionManager::default());
    let known = Arc::clone(&sessions);
    let for_one = move || match known.sessions.try_read() {
        Ok(sessions) if sessions.len() >= MAX_SESSIONS => {
            Err(io::Error::other("there are too many sessions; end some"))
        }
        // One is being made or ended at this moment.
        Ok(_) | Err(_) => Ok(service.clone()),
    };
    StreamableHttpService::new(for_one, sessions, config)
}
