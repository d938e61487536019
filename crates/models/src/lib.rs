//! Whom a run asks: clients of model providers, and a scripted model for work without a key.
//!
//! The one idea: a model is reached only over a wire, and that wire is hostile. Everything that
//! arrives is bounded, and whatever is not what the protocol promises becomes a [`ModelError`],
//! never a panic and never half a reply. The scripted model is a server on this machine that
//! speaks the same protocol to the same client, so that what works with it works with a provider.
//!
//! Not here: retries, budgets and the choice of a model. Only the run retries; a client asks
//! once and says how long the provider wants to be left alone.
//!
//! [`ModelError`]: gyrus_contract::ModelError

mod anthropic;
mod connection;
mod facts;
mod script;
mod sse;

use gyrus_contract::BlobId;

pub use anthropic::AnthropicModel;
/// The client by its protocol: scripts are played through it and know no vendor.
use anthropic::AnthropicModel as MessagesClient;
pub use connection::Connection;
pub use facts::{Facts, ImageTokens};
pub use script::{ScriptError, ScriptedModel};

/// Where the bytes of pictures come from.
pub trait Blobs: Send + Sync {
    /// The content with this id, or in words why there is none.
    fn load(&self, id: &BlobId) -> Result<Vec<u8>, String>;
}

/// A store without any content, for runs that show no pictures.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBlobs;

impl Blobs for NoBlobs {
    fn load(&self, _id: &BlobId) -> Result<Vec<u8>, String> {
        Err("this run has no blob store".to_owned())
    }
}
