//! The models that an embedder's loops ask.

use std::{path::PathBuf, sync::Arc};

use gyrus_contract::{BlobId, Model, Router};
use gyrus_journal::Store;
use gyrus_kernel::{RUNS, SingleModel};
use gyrus_models::{
    Catalogue, ModelRouter, PictureSource, RoutingPolicy, ScriptedModel, connect_all,
};

use super::RuntimeError;

/// A client of models: models by name, or one of the embedder's own. Nothing is connected before a
/// run asks.
pub struct LlmClient {
    source: ModelSource,
}

enum ModelSource {
    Named(Vec<String>),
    Script(PathBuf),
    Own(Arc<dyn Model>),
}

impl LlmClient {
    /// Creates a client of the models in `GYRUS_MODEL`, separated by commas, else of those of the
    /// first provider whose key is set.
    ///
    /// # Errors
    /// [`RuntimeError::NoModel`] if there is none.
    pub fn from_env() -> Result<Self, RuntimeError> {
        if let Some(names) = variable("GYRUS_MODEL") {
            return Ok(Self::named(names.split(',').map(str::trim)));
        }
        let catalogue = Catalogue::builtin();
        let mut providers = catalogue.providers();
        let has_key = |provider: &&str| {
            let variables = catalogue.key_variables(provider);
            variables.iter().any(|name| variable(name).is_some())
        };
        let provider = providers.find(has_key).ok_or(RuntimeError::NoModel)?;
        Ok(Self::named([provider]))
    }

    /// Creates a client of models by their names for `--model`: `PROVIDER`, `PROVIDER:small`,
    /// `PROVIDER/MODEL`, the address of a compatible server, or `script:FILE` alone. Several are
    /// alternatives.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<_> = names.into_iter().map(str::to_owned).collect();
        let source = match names.as_slice() {
            [name] if name.starts_with("script:") => {
                ModelSource::Script(PathBuf::from(name.trim_start_matches("script:")))
            }
            _ => ModelSource::Named(names),
        };
        Self { source }
    }

    /// Creates a client with one model of the embedder's own.
    pub fn own(model: Arc<dyn Model>) -> Self {
        Self {
            source: ModelSource::Own(model),
        }
    }

    /// Connects to the models; pictures come from the runs in `store`.
    pub(super) async fn connect(&self, store: &Store) -> Result<Arc<dyn Router>, RuntimeError> {
        let blobs: Arc<dyn PictureSource> = Arc::new(StoredPictures(store.clone()));
        Ok(match &self.source {
            ModelSource::Own(model) => Arc::new(SingleModel(model.clone())),
            ModelSource::Script(file) => {
                let model = ScriptedModel::start(file, blobs).await?;
                Arc::new(SingleModel(Arc::new(model)))
            }
            ModelSource::Named(names) => {
                let catalogue = Catalogue::builtin();
                let mut candidates = Vec::new();
                for name in names {
                    candidates.extend(connect_all(name, variable, &catalogue, &blobs).await?);
                }
                Arc::new(ModelRouter::new(candidates, RoutingPolicy::default()))
            }
        })
    }
}

/// A variable of the environment. The redactor knows those that are secrets.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The pictures of all runs, by their hash.
pub struct StoredPictures(pub Store);

impl PictureSource for StoredPictures {
    fn load(&self, id: &BlobId) -> Result<Vec<u8>, String> {
        match self.0.blob(RUNS, id) {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err("no run has it any more".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}
