//! A model that plays replies from a file, over a real wire.
//!
//! `script:FILE` starts a server on this machine with the protocol of a real provider, and uses the
//! same client. So everything above the script is the same as with a key: requests, streams,
//! pictures, errors, retries.
//!
//! The server keeps no position in the script. Each request contains its purpose and the number of
//! replies of that purpose that the run has recorded, so a run that was killed continues where it
//! was. `file` is the format, `server` answers, `check` refuses invalid requests like a provider,
//! and `wire` writes the stream.

mod check;
mod file;
mod server;
mod wire;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus_contract::{BoxedFuture, Delta, Model, ModelError, Price, Prompt, Reply};
use gyrus_text::FileMistake;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::{MessagesClient, ModelConnection, ModelFacts, PictureSource};
use file::CheckedScript;
use server::ScriptServer;

/// Header with the purpose of the reply.
const PURPOSE_HEADER: HeaderName = HeaderName::from_static("x-gyrus-purpose");

/// Header with the number of replies for that purpose recorded before.
const ORDINAL_HEADER: HeaderName = HeaderName::from_static("x-gyrus-ordinal");

/// Reason why a script cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("the script {} cannot be read", path.display())]
    Read {
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The file is not a script.
    #[error("{file}, {mistake}")]
    Format {
        /// The file's name.
        file: String,
        mistake: FileMistake,
    },
    /// The server could not be started.
    #[error("the server of the script cannot be started on 127.0.0.1")]
    Server {
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The client for the server could not be created.
    #[error("the server of the script cannot be asked")]
    Client { source: ModelError },
}

/// A model whose replies come from a script. Its server lives on the runtime that started it and
/// stops when this is dropped.
pub struct ScriptedModel {
    client: MessagesClient,
    _server: ScriptServer,
}

impl ScriptedModel {
    /// Reads the script in `file` and starts its server on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When the file cannot be read or is not a script, or the server cannot be started.
    pub async fn start(file: &Path, blobs: Arc<dyn PictureSource>) -> Result<Self, ScriptError> {
        let text = std::fs::read_to_string(file).map_err(|source| ScriptError::Read {
            path: file.to_owned(),
            source,
        })?;
        Self::from_text(&file.display().to_string(), &text, blobs).await
    }

    /// Does the same as [`ScriptedModel::start`] with the text of a script; `name` is its name in
    /// messages.
    ///
    /// # Errors
    /// When `script` is invalid, or the server cannot be started.
    pub async fn from_text(
        name: &str,
        script: &str,
        blobs: Arc<dyn PictureSource>,
    ) -> Result<Self, ScriptError> {
        let script = CheckedScript::parse(name, script)?;
        let model = script.model.name.clone();
        let facts = ModelFacts {
            price: script.price(),
            ..ModelFacts::default()
        };
        let server = ScriptServer::start(script)
            .await
            .map_err(|source| ScriptError::Server { source })?;
        let client = MessagesClient::new(ModelConnection {
            base_url: server.base_url(),
            key: Some(server.token().to_owned()),
            pins: Vec::new(),
            provider: "script".to_owned(),
            model,
            facts,
            blobs,
        })
        .map_err(|source| ScriptError::Client { source })?;
        Ok(Self {
            client,
            _server: server,
        })
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        self.client.name()
    }

    fn price(&self) -> Option<Price> {
        self.client.price()
    }

    fn reply<'a>(
        &'a self,
        prompt: &'a Prompt,
        deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxedFuture<'a, Result<Reply, ModelError>> {
        let place = HeaderMap::from_iter([
            (
                PURPOSE_HEADER,
                HeaderValue::from_static(prompt.purpose.word()),
            ),
            (ORDINAL_HEADER, HeaderValue::from(prompt.ordinal)),
        ]);
        Box::pin(self.client.ask(prompt, place, deltas))
    }
}

#[cfg(test)]
mod tests;
