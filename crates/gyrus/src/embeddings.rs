//! The server that turns texts into vectors, for finding notes by their meaning: any that has
//! `/embeddings` as OpenAI defines it.

use std::{collections::BTreeMap, sync::OnceLock, thread, time::Duration};

use gyrus_memory::Embedder;
use gyrus_net::{causes, client_builder};
use serde::Deserialize;
use serde_json::json;

use crate::{
    config::ModelServerSection,
    keys::{KeyLookup, KeySource},
};

/// Time for a request; one for a batch of notes may take seconds without a graphics processor.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Time until a connection is made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) struct EmbeddingServer {
    section: ModelServerSection,
    sources: BTreeMap<String, KeySource>,
    key: OnceLock<Option<String>>,
}

#[derive(Deserialize)]
struct Embeddings {
    data: Vec<EmbeddedText>,
}

#[derive(Deserialize)]
struct EmbeddedText {
    index: usize,
    embedding: Vec<f32>,
}

impl EmbeddingServer {
    /// Creates the client of a server; its key is read when it is first needed.
    pub(crate) fn new(section: ModelServerSection, sources: BTreeMap<String, KeySource>) -> Self {
        Self {
            section,
            sources,
            key: OnceLock::new(),
        }
    }

    async fn ask(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let address = format!("{}/embeddings", self.section.url.trim_end_matches('/'));
        let url = reqwest::Url::parse(&address)
            .map_err(|error| format!("invalid address `{address}`: {error}"))?;
        let failed = |error: reqwest::Error| causes(&error.without_url());
        let client = client_builder(&url, CONNECT_TIMEOUT).map_err(|error| error.to_string())?;
        let client = client.timeout(TIMEOUT).build().map_err(failed)?;
        let key = self.key.get_or_init(|| {
            let variable = self.section.key.as_ref()?;
            KeyLookup::new(&self.sources).get(variable)
        });
        let body = json!({"model": self.section.model, "input": texts});
        let mut request = client.post(url).json(&body);
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        let response = request.send().await.map_err(failed)?;
        let response = response.error_for_status().map_err(failed)?;
        let mut embeddings: Embeddings = response.json().await.map_err(failed)?;
        embeddings.data.sort_by_key(|text| text.index);
        Ok(embeddings
            .data
            .into_iter()
            .map(|text| text.embedding)
            .collect())
    }
}

impl Embedder for EmbeddingServer {
    fn model(&self) -> &str {
        &self.section.model
    }

    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let ask = || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime
                .enable_all()
                .build()
                .map_err(|error| error.to_string())?;
            runtime.block_on(self.ask(texts))
        };
        // The thread of the caller may drive a runtime of its own, which cannot be entered twice.
        let asked = thread::scope(|scope| scope.spawn(ask).join());
        let asked = asked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        asked.map_err(|why| format!("the embedding server {} failed: {why}", self.section.url))
    }
}
