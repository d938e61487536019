//! The service on standard input and output, for a client that started this process.

use std::sync::Arc;

use rmcp::{ServiceExt as _, service::ServerInitializeError, transport::io::stdio_pipes};

use crate::{Identify, McpCallers, McpHost, service::McpService};

/// The error of a client that does not speak the protocol.
#[derive(Debug, thiserror::Error)]
pub enum McpServeError {
    #[error("the client does not begin as the protocol says")]
    Beginning(#[source] Box<ServerInitializeError>),
    #[error("the connection to the client broke")]
    Broken(#[source] tokio::task::JoinError),
}

/// Serves one client until it closes standard input. `identify` returns its identity, by the name
/// that it gives itself.
///
/// # Errors
/// The client does not speak the protocol.
pub async fn serve_stdio(host: Arc<dyn McpHost>, identify: Identify) -> Result<(), McpServeError> {
    let service = McpService::new(host, McpCallers::OfProcess(identify));
    let running = match service.serve(stdio_pipes()).await {
        Ok(running) => running,
        // It went away before it said anything.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(McpServeError::Beginning(Box::new(error))),
    };
    running.waiting().await.map_err(McpServeError::Broken)?;
    Ok(())
}
