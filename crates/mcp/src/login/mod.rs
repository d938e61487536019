//! Logging in at a server that asks for it, by OAuth: a person opens an address and allows it, and
//! the server's answer comes back to a port of this machine.
//!
//! The library of the protocol finds the authorization server, registers, and exchanges; it binds
//! every token to the server's address and every answer to the authorization server that was
//! asked. Here is what it connects to ([`web`]), where the tokens are kept ([`store`]), and how the
//! answer arrives ([`callback`]). No run ever begins a login.

mod callback;
mod store;
mod web;

use std::{path::PathBuf, sync::Arc, time::Duration};

use reqwest::Url;
use rmcp::transport::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession,
};
use serde_json::Value;
use tokio::time::timeout;

use self::{
    callback::Callbacks,
    store::LoginFile,
    web::{Web, is_private_on_the_way},
};
use crate::definition::clean;

/// Time limit for the person to allow the login.
const LOGIN_LIMIT: Duration = Duration::from_secs(10 * 60);

/// Text that replaces a token which a server repeats in an answer.
const TOKEN: &str = "(a token of this server)";

/// The means to log in at a server.
#[derive(Debug, Clone)]
pub struct ServerLogin {
    /// The file with the tokens, readable by the person alone.
    pub file: PathBuf,
    /// The client that the person registered at the authorization server; without it, gyrus
    /// registers itself.
    pub client: Option<LoginClient>,
}

/// A registered client.
#[derive(Clone)]
pub struct LoginClient {
    pub id: String,
    /// The secret of the client, if it has one.
    pub secret: Option<String>,
}

impl std::fmt::Debug for LoginClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LoginClient({})", self.id)
    }
}

impl ServerLogin {
    fn stored(&self, url: &str) -> LoginFile {
        LoginFile::new(self.file.clone(), url.to_owned())
    }

    /// Returns the stored tokens for the server at this address.
    pub fn tokens(&self, url: &str) -> Vec<String> {
        self.stored(url).tokens()
    }

    /// Deletes the stored tokens. Returns whether there were any.
    pub fn forget(&self) -> std::io::Result<bool> {
        match std::fs::remove_file(&self.file) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the keeper of the tokens for the server at this address, which refreshes them; `None`
    /// if there are none.
    ///
    /// # Errors
    /// A message if the authorization server cannot be found any more.
    pub(crate) async fn manager(&self, url: &str) -> Result<Option<AuthorizationManager>, String> {
        if self.tokens(url).is_empty() {
            return Ok(None);
        }
        let mut manager = self.new_manager(url).await?;
        let is_there = manager.initialize_from_store().await.map_err(in_words)?;
        if let Some(client) = self.client.as_ref().filter(|_| is_there) {
            let config = rmcp::transport::auth::OAuthClientConfig::new(&*client.id, url);
            let config = match &client.secret {
                Some(secret) => config.with_client_secret(secret),
                None => config,
            };
            manager.configure_client(config).map_err(in_words)?;
        }
        Ok(is_there.then_some(manager))
    }

    async fn new_manager(&self, url: &str) -> Result<AuthorizationManager, String> {
        let address =
            Url::parse(url).map_err(|error| format!("invalid address `{url}`: {error}"))?;
        if !is_private_on_the_way(&address) {
            return Err(format!(
                "`{url}` is neither https nor on this machine: others could read a token on its way"
            ));
        }
        let web = Arc::new(Web::new(address.clone()));
        let manager = AuthorizationManager::new_with_oauth_http_client(address, web).await;
        let mut manager = manager.map_err(in_words)?;
        manager.set_credential_store(self.stored(url));
        Ok(manager)
    }

    /// Begins a login at the server at this address. `challenge` is the server's own word about it.
    ///
    /// # Errors
    /// A message if the server offers no safe login.
    pub async fn begin(&self, url: &str, challenge: &str) -> Result<LoginAttempt, String> {
        let mut manager = self.new_manager(url).await?;
        let resolved = manager
            .resolve_metadata_from_challenge(Some(challenge))
            .await;
        let metadata = resolved.map_err(in_words)?.metadata;
        manager.set_metadata(metadata);
        let callbacks = Callbacks::listen().await?;
        let mut request = AuthorizationRequest::new(callbacks.address())
            .with_client_name("gyrus")
            .with_initial_scope_selection();
        if let Some(client) = &self.client {
            request = request.with_preregistered_client(&*client.id);
            if let Some(secret) = &client.secret {
                request = request.with_client_secret(secret);
            }
        }
        let session = AuthorizationSession::new(manager, request).await;
        let session = session.map_err(|(_, error)| in_words(error))?;
        let address = Url::parse(session.get_authorization_url());
        let address = address.map_err(|error| format!("its login page has no address: {error}"))?;
        if !is_private_on_the_way(&address) {
            return Err(format!(
                "its login page {} is neither https nor on this machine",
                clean(address.as_str())
            ));
        }
        let state = address.query_pairs().find(|(name, _)| name == "state");
        let state = state.map(|(_, value)| value.into_owned());
        Ok(LoginAttempt {
            state: state.ok_or("its login page was asked for without a state")?,
            session,
            callbacks,
            address,
        })
    }
}

/// A login that waits for the person.
pub struct LoginAttempt {
    session: AuthorizationSession,
    callbacks: Callbacks,
    address: Url,
    state: String,
}

impl LoginAttempt {
    /// Returns the address for the person to open.
    pub fn address(&self) -> &Url {
        &self.address
    }

    /// Waits until the person has allowed the login, and stores the tokens.
    ///
    /// # Errors
    /// A message if the person did not allow the login, or the server gives no token.
    pub async fn finish(self) -> Result<(), String> {
        let answered = timeout(LOGIN_LIMIT, self.callbacks.answer(&self.state)).await;
        let answered = answered.map_err(|_| {
            format!(
                "nobody allowed it within {} minutes",
                LOGIN_LIMIT.as_secs() / 60
            )
        })??;
        let exchanged = self.session.handle_callback_with_issuer(
            &answered.code,
            &self.state,
            answered.issuer.as_deref(),
        );
        exchanged.await.map(drop).map_err(in_words)
    }
}

/// Removes these tokens from a text, so that no journal or prompt contains them.
pub(crate) fn scrub_text(text: &mut String, tokens: &[String]) {
    for token in tokens {
        if text.contains(token) {
            *text = text.replace(token, TOKEN);
        }
    }
}

pub(crate) fn scrub(value: &mut Value, tokens: &[String]) {
    match value {
        Value::String(text) => scrub_text(text, tokens),
        Value::Array(values) => values.iter_mut().for_each(|value| scrub(value, tokens)),
        Value::Object(object) => object.values_mut().for_each(|value| scrub(value, tokens)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns an error with its causes. It may quote what a server said.
fn in_words(error: AuthError) -> String {
    const MAX_WORDS: usize = 600;
    let words = clean(&gyrus_net::causes(&error));
    gyrus_text::shorten(&words, MAX_WORDS).into_owned()
}
