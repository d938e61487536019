//! The routers for a single model, and for none.

use std::{collections::BTreeSet, sync::Arc};

use gyrus_contract::{Choice, Model, ModelError, RouteQuery, Router};

/// Chooses the same model for every question.
pub struct SingleModel(pub Arc<dyn Model>);

impl Router for SingleModel {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn choose(&self, _wanted: &RouteQuery<'_>) -> Result<Choice, ModelError> {
        Ok(Choice {
            model: self.0.clone(),
            why: String::new(),
            refuses: BTreeSet::new(),
        })
    }

    fn unpriced(&self) -> Option<String> {
        let unknown = self.0.price().is_none();
        unknown.then(|| self.0.name().to_owned())
    }
}

/// The router of a run without a model.
pub struct UnreachableModel {
    /// The reason, for a person.
    pub why: String,
}

impl Router for UnreachableModel {
    fn name(&self) -> &str {
        "no model"
    }

    fn choose(&self, _: &RouteQuery<'_>) -> Result<Choice, ModelError> {
        let message = self.why.clone();
        Err(ModelError::Network { message })
    }

    fn unpriced(&self) -> Option<String> {
        None
    }
}
