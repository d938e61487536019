//! The model of what asks none.

use gyrus_contract::{BoxedFuture, Delta, Model, ModelError, Prompt, Reply};

/// A model that never answers: for replaying, and for agents that are programs.
pub struct NoModel;

impl Model for NoModel {
    fn name(&self) -> &str {
        "none"
    }

    fn reply<'a>(
        &'a self,
        _prompt: &'a Prompt,
        _deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxedFuture<'a, Result<Reply, ModelError>> {
        let message = "no model may be asked here".to_owned();
        Box::pin(async { Err(ModelError::Network { message }) })
    }
}
