//! Models that gyrus can ask without configuration: providers whose key is set, and servers on this
//! machine.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use gyrus_models::{Catalogue, NoBlobs, PictureSource, connect};

use crate::{Gyrus, config::Config, env, failure::Failure, keys::KeyLookup, model_choice};

/// Timeout for a server on this machine to answer. One that is there answers at once.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A model, or a provider of models, that can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelCandidate {
    /// The name, as `--model` takes it.
    pub(crate) name: String,
    pub(crate) how: String,
}

/// Returns the first model that can be asked, as `--model` names it.
pub(crate) async fn first(gyrus: &Gyrus, config: &Config) -> Result<Option<String>, Failure> {
    let catalogue = model_choice::catalogue(gyrus)?;
    let with_key = with_keys(&catalogue, &KeyLookup::new(&config.keys))
        .into_iter()
        .next();
    if let Some(found) = with_key {
        return Ok(Some(found.name));
    }
    let local = local(&catalogue).await;
    Ok(local.into_iter().next().map(|found| found.name))
}

pub(crate) fn with_keys(catalogue: &Catalogue, keys: &KeyLookup<'_>) -> Vec<ModelCandidate> {
    let found = |provider: &str| {
        let variables = catalogue.key_variables(provider);
        let set = variables.iter().find(|name| keys.get(name).is_some())?;
        Some(ModelCandidate {
            name: provider.to_owned(),
            how: format!("{set} is set"),
        })
    };
    catalogue.providers().filter_map(found).collect()
}

/// The servers that answer without a key and have a model.
pub(crate) async fn local(catalogue: &Catalogue) -> Vec<ModelCandidate> {
    let blobs: Arc<dyn PictureSource> = Arc::new(NoBlobs);
    let asked = catalogue.without_key().map(|provider| {
        let connected = connect(provider, env::variable, catalogue, blobs.clone());
        async move {
            let candidate = tokio::time::timeout(TIMEOUT, connected).await.ok()?.ok()?;
            Some(ModelCandidate {
                name: candidate.model.name().to_owned(),
                how: "a server on this machine has it".to_owned(),
            })
        }
    });
    join_all(asked).await.into_iter().flatten().collect()
}
