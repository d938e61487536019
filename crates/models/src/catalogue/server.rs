//! Asks a server that a person runs what it is: which models it has, and the window that it gives
//! them.
//!
//! Servers of the Chat protocol name a window in their list or in a place of their own; the first
//! that is found counts. One that names none costs a few small requests and nothing else.

use std::{sync::Arc, time::Duration};

use gyrus_contract::ModelError;
use reqwest::Url;
use serde_json::Value;
use tokio::time::timeout;

use super::{
    connect::{ConnectError, check},
    file::ListEntry,
    list::{self, tokens},
};
use crate::{
    Connection, Facts, NoBlobs,
    http::{Endpoint, Wire},
};

/// Time limit for a server to name its window: without it, a run goes on as well.
const WINDOW_LIMIT: Duration = Duration::from_secs(1);

/// Ends of addresses that are copied from a request rather than from a manual.
const COPIED: [&str; 3] = ["/chat/completions", "/completions", "/models"];

/// A server of models at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelServer {
    /// Its address, which ends before the protocol's own path.
    pub base_url: String,
    /// Its models, in its order; at least one.
    pub models: Vec<String>,
    /// The model that stood behind the address, if one did.
    pub named: Option<String>,
}

impl ModelServer {
    /// Returns the name under which a person gets a model of the server.
    pub fn name_of(&self, model: &str) -> String {
        format!("{}#{model}", self.base_url)
    }
}

/// Reason why an address leads to no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// The address is invalid.
    #[error(transparent)]
    Address(#[from] ConnectError),
    /// No answer came.
    #[error("no server answers at {address}: {reason}")]
    Silent {
        /// The address.
        address: String,
        /// The error of the connection.
        reason: String,
    },
    /// The server wants a key.
    #[error("the server at {address} wants a key")]
    Locked {
        /// The address.
        address: String,
    },
    /// Something else than a server of models answers.
    #[error("something answers at {address}, but it lists no models: {reason}")]
    Other {
        /// The address.
        address: String,
        /// What came in place of a list.
        reason: String,
    },
    /// The list is empty.
    #[error("the server at {address} has no model")]
    Empty {
        /// The address.
        address: String,
    },
}

/// Finds the server at an address, `http://HOST:PORT`, with or without `/v1` and `#MODEL`.
///
/// # Errors
/// [`ServerError`], with the reason.
pub async fn find_server(given: &str) -> Result<ModelServer, ServerError> {
    let (address, model) = given.trim().split_once('#').unwrap_or((given.trim(), ""));
    // A host and port are enough; a name without either is rather a provider's.
    let mut url = match address.contains("://") || !address.contains([':', '.']) {
        true => check(address)?,
        false => check(&format!("http://{address}"))?,
    };
    url.set_query(None);
    let mut base = url.as_str().trim_end_matches('/');
    for end in COPIED {
        base = base.strip_suffix(end).unwrap_or(base);
    }
    let versioned = format!("{base}/v1");
    let bases = match url.path() {
        "/" | "" => vec![versioned.as_str(), base],
        _ if base.ends_with("/v1") => vec![base],
        _ => vec![base, &versioned],
    };
    let mut first = None;
    for base_url in bases {
        let error = match list::list(&connection(base_url), &ListEntry::compatible()).await {
            Ok(models) if models.is_empty() => {
                let address = base_url.to_owned();
                return Err(ServerError::Empty { address });
            }
            Ok(models) => {
                return Ok(ModelServer {
                    base_url: base_url.to_owned(),
                    models: models.into_iter().map(|model| model.id).collect(),
                    named: Some(model.to_owned()).filter(|model| !model.is_empty()),
                });
            }
            Err(error) => error,
        };
        let address = base_url.to_owned();
        let error = match error {
            ModelError::Network { message } => ServerError::Silent {
                address,
                reason: message,
            },
            ModelError::Auth { .. } => ServerError::Locked { address },
            error => ServerError::Other {
                address,
                reason: error.to_string(),
            },
        };
        match error {
            ServerError::Other { .. } => first.get_or_insert(error),
            error => return Err(error),
        };
    }
    Err(first.unwrap_or(ServerError::Empty {
        address: base.to_owned(),
    }))
}

fn connection(base_url: &str) -> Connection {
    Connection {
        base_url: base_url.to_owned(),
        key: None,
        pins: Vec::new(),
        provider: String::new(),
        model: String::new(),
        facts: Facts::default(),
        blobs: Arc::new(NoBlobs),
    }
}

/// Returns the window that the server gives the model at `connection`, if it names one in time.
/// `longest` is that for which the model was trained, if that is known.
pub(super) async fn window(
    connection: &Connection,
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
    timeout(WINDOW_LIMIT, asked).await.unwrap_or(longest)
}

/// Returns the window from the place that each kind of server has for it beside the list.
async fn own_window(connection: &Connection) -> Option<u64> {
    let model = &connection.model;
    let base = connection.base_url.trim_end_matches('/');
    let root = Connection {
        base_url: base.strip_suffix("/v1").unwrap_or(base).to_owned(),
        ..connection.clone()
    };
    let wire = Wire::new("", |refusal| refusal.error(None, refusal.body));
    let endpoint = Endpoint::new(&root, wire).ok()?;
    // A llama.cpp server of several models wants a name here, and would load the model.
    let mut props = Url::parse("http://host/props").ok()?;
    props
        .query_pairs_mut()
        .append_pair("model", model)
        .append_pair("autoload", "false");
    let props = format!("/props?{}", props.query().unwrap_or_default());
    let (llama, studio, ollama) = tokio::join!(
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
    let ollama = entry(ollama.ok(), "models", "name").and_then(|it| tokens(&it, "/context_length"));
    llama.or(studio).or(ollama)
}
