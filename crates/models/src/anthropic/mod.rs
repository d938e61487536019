//! A client of the Messages protocol: one request, one streamed reply.
//!
//! `request` makes the body, `stream` reads the reply, `errors` reads refusals; all three are
//! pure. What is left here is the wire: headers, bounds in time and size, and giving up when the
//! future is dropped. Nothing is retried and no redirect is followed, so the key goes to the
//! configured address and nowhere else.

mod arguments;
mod errors;
mod events;
mod request;
mod stream;

use std::{error::Error, sync::Arc, time::Duration};

use gyrus_contract::{Boxed, Delta, Model, ModelError, Price, Prompt, Reply};
use jiff::Timestamp;
use reqwest::{
    Client, Response, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderValue},
    redirect,
};
use tokio::time::timeout;

use crate::Blobs;
use errors::shorten;
use stream::ReplyReader;

/// The version of the protocol that is spoken.
const PROTOCOL_VERSION: &str = "2023-06-01";

/// How long a connection may take to be made.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// How long the provider may be silent: before it answers, and between two pieces of its answer.
const SILENCE_LIMIT: Duration = Duration::from_secs(10 * 60);

/// The most bytes that are received for one reply. Every few characters of content travel in an
/// event of a hundred bytes or more, so this is well above the limit on content.
const MAX_WIRE_BYTES: usize = 512 * 1024 * 1024;

/// The most that is read of the body of a refusal, in bytes.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// A model behind an address that speaks the Messages protocol.
pub struct AnthropicModel {
    client: Client,
    address: Url,
    key: HeaderValue,
    /// As a person names it: `anthropic/…`.
    name: String,
    /// As the provider names it.
    model: String,
    price: Option<Price>,
    blobs: Arc<dyn Blobs>,
}

impl AnthropicModel {
    /// A client of `model` at `base_url` (without `/v1/messages`). Nothing is sent yet.
    ///
    /// # Errors
    /// [`ModelError::Network`] if the address is none, [`ModelError::Auth`] if the key holds
    /// characters that no key has.
    pub fn new(
        base_url: &str,
        key: &str,
        model: &str,
        price: Option<Price>,
        blobs: Arc<dyn Blobs>,
    ) -> Result<Self, ModelError> {
        let address = format!("{}/v1/messages", base_url.trim_end_matches('/'));
        let address = Url::parse(&address).map_err(|error| ModelError::Network {
            message: format!("`{base_url}` is not an address like https://host: {error}"),
        })?;
        let mut key = HeaderValue::from_str(key.trim()).map_err(|_| ModelError::Auth {
            message: "the key holds characters that cannot be sent; was it copied whole?".into(),
        })?;
        key.set_sensitive(true);
        let builder = Client::builder()
            .connect_timeout(CONNECT_LIMIT)
            .redirect(redirect::Policy::none())
            .user_agent(concat!("gyrus/", env!("CARGO_PKG_VERSION")));
        // A proxy of the environment must not see what is meant for this machine.
        let builder = match address.host_str() {
            Some("127.0.0.1" | "localhost" | "[::1]") => builder.no_proxy(),
            _ => builder,
        };
        let client = builder.build().map_err(|error| ModelError::Network {
            message: format!("no HTTP client can be made: {}", causes(&error)),
        })?;
        let name = format!("anthropic/{model}");
        Ok(Self {
            client,
            address,
            key,
            name,
            model: model.to_owned(),
            price,
            blobs,
        })
    }

    /// Asks once, with `extra` headers.
    pub(crate) async fn ask(
        &self,
        prompt: &Prompt,
        extra: HeaderMap,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let body = request::body(prompt, &self.model, &*self.blobs)?;
        let request = self
            .client
            .post(self.address.clone())
            .header("x-api-key", self.key.clone())
            .header("anthropic-version", PROTOCOL_VERSION)
            .header(CONTENT_TYPE, "application/json")
            .headers(extra)
            .body(body.to_string());
        let response = match timeout(SILENCE_LIMIT, request.send()).await {
            Err(_) => return Err(silence()),
            Ok(Err(error)) => {
                return Err(ModelError::Network {
                    message: causes(&error),
                });
            }
            Ok(Ok(response)) => response,
        };
        if response.status() != StatusCode::OK {
            return Err(refusal(response).await);
        }
        let is_stream = |value: &HeaderValue| value.as_bytes().starts_with(b"text/event-stream");
        if !response.headers().get(CONTENT_TYPE).is_some_and(is_stream) {
            let start = start_of_body(response).await;
            let message = format!("the answer is no event stream but: {}", shorten(&start));
            return Err(ModelError::BadOutput { message });
        }
        receive(response, deltas).await
    }
}

impl Model for AnthropicModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn price(&self) -> Option<Price> {
        self.price
    }

    fn reply<'a>(
        &'a self,
        prompt: &'a Prompt,
        deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> Boxed<'a, Result<Reply, ModelError>> {
        Box::pin(self.ask(prompt, HeaderMap::new(), deltas))
    }
}

async fn receive(
    mut response: Response,
    deltas: &mut (dyn FnMut(Delta) + Send),
) -> Result<Reply, ModelError> {
    let mut reader = ReplyReader::default();
    let mut received = 0;
    loop {
        let bytes = match timeout(SILENCE_LIMIT, response.chunk()).await {
            Err(_) => return Err(silence()),
            Ok(Err(error)) => return Err(reader.broken_off(&causes(&error))),
            Ok(Ok(None)) => return Err(reader.broken_off("the provider sent no more")),
            Ok(Ok(Some(bytes))) => bytes,
        };
        received += bytes.len();
        if received > MAX_WIRE_BYTES {
            let message = format!("the stream is longer than {MAX_WIRE_BYTES} bytes");
            return Err(ModelError::BadOutput { message });
        }
        if let Some(reply) = reader.push(&bytes, deltas)? {
            return Ok(reply);
        }
    }
}

async fn refusal(response: Response) -> ModelError {
    let (status, headers) = (response.status(), response.headers().clone());
    let body = start_of_body(response).await;
    errors::from_status(status, &headers, &body, Timestamp::now())
}

/// As much of the body as explains a refusal. If it breaks off, what came explains it.
async fn start_of_body(mut response: Response) -> String {
    let mut start = Vec::new();
    while start.len() < MAX_ERROR_BYTES {
        match timeout(SILENCE_LIMIT, response.chunk()).await {
            Ok(Ok(Some(bytes))) => start.extend_from_slice(&bytes),
            _ => break,
        }
    }
    String::from_utf8_lossy(&start).into_owned()
}

fn silence() -> ModelError {
    let minutes = SILENCE_LIMIT.as_secs() / 60;
    ModelError::Network {
        message: format!("the provider was silent for {minutes} minutes"),
    }
}

/// An error with its causes, as one sentence: the client's own words alone say little.
fn causes(error: &dyn Error) -> String {
    let mut sentence = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        sentence += &format!(": {error}");
        cause = error.source();
    }
    shorten(&sentence)
}

#[cfg(test)]
mod tests;
