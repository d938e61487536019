//! Runs as resources: what happened in one, entry by entry.

use std::sync::Arc;

use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};

use crate::{host::McpHost, work};

/// The beginning of the addresses of runs.
const ADDRESS: &str = "gyrus://runs/";

const MEDIA_TYPE: &str = "text/plain";

/// Lists the newest runs.
///
/// # Errors
/// A message if the runs cannot be read.
pub(crate) async fn list(host: &Arc<dyn McpHost>) -> Result<ListResourcesResult, String> {
    let runs = work::list(host, None).await?.runs;
    let resources = runs.into_iter().map(|run| {
        Resource::new(format!("{ADDRESS}{}", run.run), run.run.clone())
            .with_description(format!("{}: {}", run.state, run.goal))
            .with_mime_type(MEDIA_TYPE)
    });
    Ok(ListResourcesResult::with_all_items(resources.collect()))
}

/// Returns the form of the addresses.
pub(crate) fn templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new(format!("{ADDRESS}{{run}}"), "run")
        .with_description("What happened in a run, entry by entry.")
        .with_mime_type(MEDIA_TYPE);
    ListResourceTemplatesResult::with_all_items(vec![template])
}

/// Reads the resource of a run.
///
/// # Errors
/// `None` if no run has this address; otherwise a message with the reason why it cannot be read.
pub(crate) async fn read(
    host: &Arc<dyn McpHost>,
    address: &str,
) -> Result<ReadResourceResult, Option<String>> {
    let run = address.strip_prefix(ADDRESS).ok_or(None)?;
    let run = run.parse().map_err(|_| None)?;
    let name = gyrus_kernel::log_name(run);
    if !host.store().exists(&name) {
        return Err(None);
    }
    let arguments = vec!["show".to_owned(), run.to_string()];
    let text = host.command(arguments).await.map_err(Some)?;
    let contents = ResourceContents::text(text, address).with_mime_type(MEDIA_TYPE);
    Ok(ReadResourceResult::new(vec![contents]))
}
