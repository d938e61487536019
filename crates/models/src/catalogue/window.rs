//! Asks a server that a person runs for the window that it gives a model.
//!
//! Servers of the Chat protocol name it in their list or in a place of their own; the first that is
//! found counts. One that names none costs a few small requests and nothing else.

use std::time::Duration;

use gyrus_contract::ModelError;
use reqwest::Url;
use serde_json::Value;
use tokio::time::timeout;

use super::{
    file::ListEntry,
    list::{self, tokens},
};
use crate::{
    ModelConnection,
    http::{ProviderEndpoint, Wire},
};

/// Time limit for a server to name its window: without it, a run goes on as well.
const LIMIT: Duration = Duration::from_secs(1);

/// Returns the window that the server allows the model at `connection`, if it reports one in time.
/// `longest` is the window for which the model was trained, if known.
pub(super) async fn window(
    connection: &ModelConnection,
    entry: &ListEntry,
    longest: Option<u64>,
) -> Option<u64> {
    let asked = async {
        let model = &connection.model;
        let listed = match list::list(connection, entry).await {
            Ok(models) => models.into_iter().find(|listed| listed.id == *model),
            Err(ModelError::Network { .. }) => return None,
            Err(_) => None,
        };
        let (named, trained) = listed.map_or((None, longest), |listed| {
            (listed.window, listed.longest_window)
        });
        match named {
            Some(window) => Some(window),
            None => own_window(connection).await.or(trained),
        }
    };
    timeout(LIMIT, asked).await.unwrap_or(longest)
}

/// Returns the window from the endpoint that each kind of server has for it beside the list.
async fn own_window(connection: &ModelConnection) -> Option<u64> {
    let model = &connection.model;
    let base = connection.base_url.trim_end_matches('/');
    let root = ModelConnection {
        base_url: base.strip_suffix("/v1").unwrap_or(base).to_owned(),
        ..connection.clone()
    };
    let wire = Wire::new("", |refusal| refusal.error(None, refusal.body));
    let endpoint = ProviderEndpoint::new(&root, wire).ok()?;
    // A llama.cpp server of several models wants a name here, and would load the model.
    let mut props = Url::parse("http://host/props").ok()?;
    props
        .query_pairs_mut()
        .append_pair("model", model)
        .append_pair("autoload", "false");
    let props = format!("/props?{}", props.query().unwrap_or_default());
    let (llama, studio, running) = tokio::join!(
        endpoint.get_json(&props),
        endpoint.get_json("/api/v0/models"),
        endpoint.get_json("/api/ps"),
    );
    let entry = |answer: Option<Value>, list: &str, id: &str| {
        let models = answer?.get(list)?.as_array()?.clone();
        models.into_iter().find(|entry| entry[id] == **model)
    };
    let llama = llama
        .ok()
        .and_then(|it| tokens(&it, "/default_generation_settings/n_ctx"));
    let studio = entry(studio.ok(), "data", "id").and_then(|it| {
        tokens(&it, "/loaded_context_length").or_else(|| tokens(&it, "/max_context_length"))
    });
    let running =
        entry(running.ok(), "models", "name").and_then(|it| tokens(&it, "/context_length"));
    llama.or(studio).or(running)
}
