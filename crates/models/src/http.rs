//! HTTP for all providers: one POST, one streamed reply.
//!
//! This module does all that does not depend on the protocol: the client, bounds in time and size,
//! refusals, and cancellation when the future is dropped. Nothing is retried and no redirect is
//! followed, so the key goes to the configured address and nowhere else, and it is taken out of
//! every error.
//!
//! A provider supplies a [`Wire`] (path, headers, meaning of refusals), the body, and a
//! [`ReplyReader`] for the stream.

mod body;
mod schema_order;

use std::time::Duration;

use gyrus_contract::{Delta, MAX_SILENCE, ModelError, Reply};
use gyrus_net::{client_builder, is_loopback_host, pinned_client_builder};
use reqwest::{
    Client, RequestBuilder, Response, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use body::{ReplyBody, in_words};

use crate::{
    ModelConnection,
    errors::{ErrorResponse, bad, bounded_line},
    stream::{ReplyReader, Stream},
};

/// Time limit for connecting.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// Maximum silence of the provider: before its reply begins, and between two pieces of it. As long as
/// the kernel spends on a question that nobody answers, so that silence is not tried again.
const SILENCE_LIMIT: Duration = MAX_SILENCE;

/// Time limit for the start of a reply by a provider on this machine: it may have to load a model,
/// or to read a long prompt on a slow processor.
const LOCAL_START_LIMIT: Duration = Duration::from_secs(10 * 60);

/// Maximum duration of one reply from its first byte on, even if data keeps arriving.
const REPLY_LIMIT: Duration = Duration::from_secs(2 * 60 * 60);

/// Time limit of a request that needs no model, such as the list of models.
const LOOK_UP_LIMIT: Duration = Duration::from_secs(30);

/// Maximum bytes received for one reply. Every few characters of content travel in an event of a
/// hundred bytes or more, so this is well above the limit on content.
const MAX_WIRE_BYTES: usize = 512 * 1024 * 1024;

/// Maximum number of bytes read of the answer to a request that needs no model.
const MAX_LOOK_UP_BYTES: usize = 16 * 1024 * 1024;

/// Maximum bytes read of the body of a refusal.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Minimum length of a key that is redacted in errors, in bytes; a shorter one is not a secret.
const MIN_KEY_BYTES: usize = 8;

/// Header of a key, and the prefix of its value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyHeader {
    /// Name of the header in lower case.
    pub(crate) name: &'static str,
    /// Prefix of the value: `"Bearer "`, or empty.
    pub(crate) prefix: &'static str,
}

impl KeyHeader {
    /// The header `authorization: Bearer KEY` (RFC 6750).
    pub(crate) const BEARER: KeyHeader = KeyHeader {
        name: "authorization",
        prefix: "Bearer ",
    };

    /// Creates a header `name` with the key alone.
    pub(crate) const fn plain(name: &'static str) -> Self {
        Self { name, prefix: "" }
    }
}

/// The parts of a protocol that HTTP needs.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    /// Path of prompts, after the base URL: `/v1/messages`.
    pub(crate) path: String,
    pub(crate) key: KeyHeader,
    /// Headers of every request besides the key.
    pub(crate) headers: HeaderMap,
    /// Returns the error for a response with a status other than success.
    pub(crate) classify: fn(&ErrorResponse<'_>) -> ModelError,
}

impl Wire {
    /// Creates the parts for most protocols: a bearer's key, and server-sent events.
    pub(crate) fn new(
        path: impl Into<String>,
        classify: fn(&ErrorResponse<'_>) -> ModelError,
    ) -> Self {
        Self {
            path: path.into(),
            key: KeyHeader::BEARER,
            headers: HeaderMap::new(),
            classify,
        }
    }
}

/// The address of a provider, with its key.
pub(crate) struct ProviderEndpoint {
    client: Client,
    base_url: String,
    address: Url,
    headers: HeaderMap,
    key: Option<String>,
    classify: fn(&ErrorResponse<'_>) -> ModelError,
    /// Maximum silence before a reply begins.
    pub(crate) start_limit: Duration,
}

impl ProviderEndpoint {
    /// Creates the endpoint of `connection` for `wire`. Nothing is sent yet.
    pub(crate) fn new(connection: &ModelConnection, wire: Wire) -> Result<Self, ModelError> {
        let base_url = connection.base_url.trim_end_matches('/').to_owned();
        let address = address(&base_url, &wire.path)?;
        let key = connection.key.as_deref().map(str::trim);
        let key = key.filter(|key| !key.is_empty()).map(str::to_owned);
        let mut headers = wire.headers;
        if let Some(key) = &key {
            let mut value =
                HeaderValue::from_str(&format!("{}{key}", wire.key.prefix)).map_err(|_| {
                    ModelError::Auth {
                        message:
                            "the key holds characters that cannot be sent; was it copied whole?"
                                .to_owned(),
                    }
                })?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(wire.key.name), value);
        }
        let network = |error: &dyn std::fmt::Display| ModelError::Network {
            message: error.to_string(),
        };
        let builder = match &connection.pins[..] {
            [] => client_builder(&address, CONNECT_LIMIT).map_err(|error| network(&error))?,
            pins => pinned_client_builder(&address, CONNECT_LIMIT, pins)
                .map_err(|error| network(&error))?,
        };
        let client = builder.build().map_err(|error| ModelError::Network {
            message: format!("no HTTP client can be made: {}", in_words(&error)),
        })?;
        Ok(Self {
            client,
            base_url,
            start_limit: start_limit(&address),
            address,
            headers,
            key,
            classify: wire.classify,
        })
    }

    /// Sends one request, with `extra` headers, and passes the answer to `reader`. Dropping the
    /// future cancels the request and closes the connection.
    ///
    /// # Errors
    /// The error of `classify` for a refusal, those of `reader` for the stream, and
    /// [`ModelError::Network`] if there is no answer or the provider falls silent.
    pub(crate) async fn ask(
        &self,
        body: &Value,
        extra: &HeaderMap,
        reader: impl ReplyReader,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let request = self
            .client
            .post(self.address.clone())
            .headers(self.headers.clone())
            .headers(extra.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(schema_order::written(body));
        self.converse(request, reader, deltas)
            .await
            .map_err(|error| self.without_key(error))
    }

    /// Gets the JSON at `path` after the base URL, such as the list of models.
    ///
    /// # Errors
    /// Those of [`Endpoint::ask`]; [`ModelError::BadOutput`] if the answer is not JSON or longer
    /// than 16 MiB.
    pub(crate) async fn get_json(&self, path: &str) -> Result<Value, ModelError> {
        let request = self.client.get(address(&self.base_url, path)?);
        let answer = async {
            let start = StartDeadline {
                until: Instant::now() + SILENCE_LIMIT,
                limit: SILENCE_LIMIT,
            };
            let request = request.headers(self.headers.clone());
            let response = self.send(request, &start).await?;
            let body = start_of_body(response, MAX_LOOK_UP_BYTES).await;
            serde_json::from_str(&body).map_err(|_| {
                bad(format!(
                    "the answer is not JSON but: {}",
                    bounded_line(&body)
                ))
            })
        };
        match timeout(LOOK_UP_LIMIT, answer).await {
            Ok(answer) => answer.map_err(|error| self.without_key(error)),
            Err(_) => Err(ModelError::Network {
                message: format!(
                    "the provider did not answer within {} seconds",
                    LOOK_UP_LIMIT.as_secs()
                ),
            }),
        }
    }

    async fn converse(
        &self,
        request: RequestBuilder,
        reader: impl ReplyReader,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let start = StartDeadline {
            until: Instant::now() + self.start_limit,
            limit: self.start_limit,
        };
        let response = self.send(request, &start).await?;
        let receiving = receive(response, reader, deltas, &start);
        match timeout(REPLY_LIMIT, receiving).await {
            Ok(reply) => reply,
            Err(_) => Err(bad(format!(
                "the reply did not end within {} minutes",
                REPLY_LIMIT.as_secs() / 60
            ))),
        }
    }

    async fn send(
        &self,
        request: RequestBuilder,
        start: &StartDeadline,
    ) -> Result<Response, ModelError> {
        let response = match timeout_at(start.until, request.send()).await {
            Err(_) => return Err(silence(start.limit)),
            Ok(Err(error)) => {
                return Err(ModelError::Network {
                    message: in_words(&error),
                });
            }
            Ok(Ok(response)) => response,
        };
        if response.status().is_success() {
            return Ok(response);
        }
        let (status, headers) = (response.status(), response.headers().clone());
        let body = start_of_body(response, MAX_ERROR_BYTES).await;
        Err((self.classify)(&ErrorResponse {
            status,
            headers: &headers,
            body: &body,
            now: gyrus_text::now(),
        }))
    }

    /// Removes the key from a message, because a server may repeat it.
    fn without_key(&self, mut error: ModelError) -> ModelError {
        let Some(key) = self.key.as_ref().filter(|key| key.len() >= MIN_KEY_BYTES) else {
            return error;
        };
        let (ModelError::RateLimited { message, .. }
        | ModelError::Overloaded { message, .. }
        | ModelError::ContextTooLong { message }
        | ModelError::Declined { message }
        | ModelError::Refused { message }
        | ModelError::BadOutput { message }
        | ModelError::Auth { message }
        | ModelError::Network { message }) = &mut error;
        *message = message.replace(key.as_str(), "[the key]");
        error
    }
}

fn address(base_url: &str, path: &str) -> Result<Url, ModelError> {
    let wrong = |why: &str| ModelError::Network {
        message: format!("`{base_url}` is not an address like https://host: {why}"),
    };
    let address = Url::parse(&format!("{base_url}{path}"));
    let address = address.map_err(|error| wrong(&error.to_string()))?;
    match address.scheme() {
        "http" | "https" => Ok(address),
        scheme => Err(wrong(&format!("`{scheme}` is not spoken here"))),
    }
}

async fn receive(
    response: Response,
    reader: impl ReplyReader,
    deltas: &mut (dyn FnMut(Delta) + Send),
    start: &StartDeadline,
) -> Result<Reply, ModelError> {
    let mut body = ReplyBody::new(response)?;
    let mut stream = Stream::new(reader);
    let mut received = 0;
    let mut has_begun = false;
    let (mut until, mut limit) = (start.until, start.limit);
    loop {
        let bytes = match timeout_at(until, body.chunk()).await {
            Err(_) => return stream.ended()?.ok_or_else(|| silence(limit)),
            Ok(Err(reason)) => return stream.break_off(&reason),
            Ok(Ok(None)) => return stream.end(deltas),
            Ok(Ok(Some(bytes))) => bytes,
        };
        received += bytes.len();
        if received > MAX_WIRE_BYTES {
            let message = format!("the stream is longer than {MAX_WIRE_BYTES} bytes");
            return Err(bad(message));
        }
        let mut hear = |delta| {
            has_begun = true;
            deltas(delta);
        };
        if let Some(reply) = stream.push(&bytes, &mut hear)? {
            return Ok(reply);
        }
        let next = Instant::now() + SILENCE_LIMIT;
        // A sign of life is not the beginning of a reply.
        if has_begun || next > start.until {
            (until, limit) = (next, SILENCE_LIMIT);
        }
    }
}

/// Reads the useful part of a body. If it breaks off, the received part explains it.
async fn start_of_body(response: Response, most: usize) -> String {
    let mut body = match ReplyBody::new(response) {
        Ok(body) => body,
        Err(error) => return error.to_string(),
    };
    let mut start = Vec::new();
    while start.len() < most {
        match timeout(SILENCE_LIMIT, body.chunk()).await {
            Ok(Ok(Some(bytes))) => start.extend_from_slice(&bytes),
            _ => break,
        }
    }
    String::from_utf8_lossy(&start).into_owned()
}

/// The time limit for a reply to begin.
struct StartDeadline {
    until: Instant,
    limit: Duration,
}

/// Returns the maximum silence of the provider at this address before a reply begins.
fn start_limit(address: &Url) -> Duration {
    match address.host_str() {
        Some(host) if is_loopback_host(host) => LOCAL_START_LIMIT,
        Some(_) | None => SILENCE_LIMIT,
    }
}

fn silence(limit: Duration) -> ModelError {
    let minutes = limit.as_secs() / 60;
    ModelError::Network {
        message: format!("the provider was silent for {minutes} minutes"),
    }
}

#[cfg(test)]
mod tests;
