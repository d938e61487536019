//! Finds the server of models at an address that a person typed, and says what is there instead if
//! it is none.

use gyrus_contract::ModelError;

use super::{
    Catalogue,
    connect::{ConnectError, check},
    file::ListEntry,
    list,
};
use crate::ModelConnection;

/// Endings of addresses that were copied from a request rather than from a manual.
const COPIED: [&str; 3] = ["/chat/completions", "/completions", "/models"];

/// Name of a provider without an entry in the catalogue.
const ANY_PROVIDER: &str = "server";

/// A server of models at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelServer {
    /// The server's address, up to the protocol's own path.
    pub base_url: String,
    /// The server's models, in its order; at least one.
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
pub enum AddressError {
    /// The address is invalid.
    #[error(transparent)]
    Address(#[from] ConnectError),
    #[error("no server answers at {address}: {reason}")]
    Silent {
        address: String,
        /// The error of the connection.
        reason: String,
    },
    #[error("the server at {address} wants a key")]
    Locked { address: String },
    /// The address answers, but not as a server of models.
    #[error("something answers at {address}, but it lists no models: {reason}")]
    Other {
        address: String,
        /// Description of the answer.
        reason: String,
    },
    /// The list is empty.
    #[error("the server at {address} has no model")]
    Empty { address: String },
}

/// Finds the server at an address, `http://HOST:PORT`, with or without `/v1` and `#MODEL`. Models
/// that do not converse, by the catalogue, are left out.
///
/// # Errors
/// [`AddressError`], with the reason.
pub async fn find_server(given: &str, catalogue: &Catalogue) -> Result<ModelServer, AddressError> {
    let (address, model) = given.trim().split_once('#').unwrap_or((given.trim(), ""));
    // A host and port are enough; a name without either is rather a provider's.
    let mut url = if address.contains("://") || !address.contains([':', '.']) {
        check(address)?
    } else {
        check(&format!("http://{address}"))?
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
        let mut listed = list::list(
            &ModelConnection::to_server(base_url),
            &ListEntry::compatible(),
        )
        .await;
        if let Ok(models) = &mut listed {
            models.retain(|model| !catalogue.known(ANY_PROVIDER, &model.id).is_other);
        }
        let error = match listed {
            Ok(models) if models.is_empty() => {
                let address = base_url.to_owned();
                return Err(AddressError::Empty { address });
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
            ModelError::Network { message } => AddressError::Silent {
                address,
                reason: message,
            },
            ModelError::Auth { .. } => AddressError::Locked { address },
            error => AddressError::Other {
                address,
                reason: error.to_string(),
            },
        };
        match error {
            AddressError::Other { .. } => first.get_or_insert(error),
            error => return Err(error),
        };
    }
    Err(first.unwrap_or(AddressError::Empty {
        address: base.to_owned(),
    }))
}
