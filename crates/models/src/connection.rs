//! Where a model is and what is known of it: what every client is made from.

use std::{fmt, sync::Arc};

use crate::{Blobs, Facts};

/// How one model is reached.
#[derive(Clone)]
pub struct Connection {
    /// Without the protocol's own path: `https://host`, or `http://127.0.0.1:11434`.
    pub base_url: String,
    /// The key; `None` where none is asked for.
    pub key: Option<String>,
    /// The provider in a model's name, before the slash.
    pub provider: String,
    /// The model as its provider calls it.
    pub model: String,
    /// What is known of it.
    pub facts: Facts,
    /// Where its prompts' pictures are.
    pub blobs: Arc<dyn Blobs>,
}

impl Connection {
    /// `provider/model`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }
}

/// Without the key.
impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("name", &self.name())
            .field("base_url", &self.base_url)
            .field("has_key", &self.key.is_some())
            .finish_non_exhaustive()
    }
}
