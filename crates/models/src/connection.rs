//! Address and facts of a model, from which every client is made.

use std::{fmt, sync::Arc};

use gyrus_net::KeyPin;

use crate::{ModelFacts, NoBlobs, PictureSource};

/// Connection data of one model.
#[derive(Clone)]
pub struct ModelConnection {
    /// Address without the protocol's own path: `https://host`, or `http://127.0.0.1:11434`.
    pub base_url: String,
    /// The key of the provider; `None` if none is required.
    pub key: Option<String>,
    /// Public keys, one of which must vouch for the server; empty for no requirement.
    pub pins: Vec<KeyPin>,
    /// Name of the provider, before the slash in a model's name.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// Known facts of the model.
    pub facts: ModelFacts,
    /// Source of the pictures in the model's prompts.
    pub blobs: Arc<dyn PictureSource>,
}

impl ModelConnection {
    /// Creates the connection to a server with an address and defaults for all else.
    pub(crate) fn to_server(base_url: &str) -> Self {
        Self {
            base_url: base_url.to_owned(),
            key: None,
            pins: Vec::new(),
            provider: String::new(),
            model: String::new(),
            facts: ModelFacts::default(),
            blobs: Arc::new(NoBlobs),
        }
    }

    /// Returns the full name, `provider/model`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }
}

/// Formats the connection without its key.
impl fmt::Debug for ModelConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("name", &self.name())
            .field("base_url", &self.base_url)
            .field("has_key", &self.key.is_some())
            .finish_non_exhaustive()
    }
}
