//! A model that plays replies from a file, over a real wire.
//!
//! `script:FILE` starts a server on this machine that speaks the protocol of a real provider,
//! and asks it with the client that asks the real provider. So everything above the script is
//! what it would be with a key: requests, streams, pictures, errors, retries.
//!
//! The server keeps no place in the script. Each request says which reply it is due (its purpose
//! and how many replies of that purpose the run has recorded), so a run that was killed goes on
//! where it was. `file` is the format, `server` answers, `check` refuses what a provider would
//! refuse, and `wire` writes the stream.

mod check;
mod file;
mod server;
mod wire;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use gyrus_contract::{Boxed, Delta, Model, ModelError, Price, Prompt, Purpose, Reply};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::{Blobs, Connection, Facts, MessagesClient};
use file::Script;
use server::Server;

/// What the reply is for.
const PURPOSE_HEADER: HeaderName = HeaderName::from_static("x-gyrus-purpose");

/// How many replies for that purpose were recorded before.
const ORDINAL_HEADER: HeaderName = HeaderName::from_static("x-gyrus-ordinal");

/// Why a script cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("the script {} cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// It is not a script.
    #[error("{file}, line {line}: {message}")]
    Format {
        /// The file's name.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong and what would be right.
        message: String,
    },
    /// No server could be started on this machine.
    #[error("the server of the script cannot be started on 127.0.0.1")]
    Server {
        /// The system's reason.
        source: std::io::Error,
    },
    /// No client could be made for the server.
    #[error("the server of the script cannot be asked")]
    Client {
        /// The reason.
        source: ModelError,
    },
}

/// A model whose replies stand in a script. Its server lives on the runtime that started it and
/// stops when this is dropped.
pub struct ScriptedModel {
    client: MessagesClient,
    _server: Server,
}

impl ScriptedModel {
    /// Reads the script in `file` and starts its server on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When the file cannot be read, is no script, or no server can be started.
    pub async fn start(file: &Path, blobs: Arc<dyn Blobs>) -> Result<Self, ScriptError> {
        let text = std::fs::read_to_string(file).map_err(|source| ScriptError::Read {
            path: file.to_owned(),
            source,
        })?;
        Self::from_text(&file.display().to_string(), &text, blobs).await
    }

    /// As [`ScriptedModel::start`], with the script itself; `name` stands for it in messages.
    ///
    /// # Errors
    /// When `script` is none, or no server can be started.
    pub async fn from_text(
        name: &str,
        script: &str,
        blobs: Arc<dyn Blobs>,
    ) -> Result<Self, ScriptError> {
        let script = Script::parse(name, script)?;
        let model = script.model.name.clone();
        let facts = Facts {
            price: script.price(),
            ..Facts::default()
        };
        let server = Server::start(script)
            .await
            .map_err(|source| ScriptError::Server { source })?;
        let client = MessagesClient::new(Connection {
            base_url: server.base_url(),
            key: Some(server.token().to_owned()),
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
    ) -> Boxed<'a, Result<Reply, ModelError>> {
        let place = HeaderMap::from_iter([
            (
                PURPOSE_HEADER,
                HeaderValue::from_static(word_for(prompt.purpose)),
            ),
            (ORDINAL_HEADER, HeaderValue::from(prompt.ordinal)),
        ]);
        Box::pin(self.client.ask(prompt, place, deltas))
    }
}

/// The word for a purpose in scripts, headers and messages: the one that the journal uses.
fn word_for(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Agent => "agent",
        Purpose::Plan => "plan",
        Purpose::Reflect => "reflect",
        Purpose::Verify => "verify",
        Purpose::Safety => "safety",
        Purpose::Summarise => "summarise",
    }
}

#[cfg(test)]
mod tests;
