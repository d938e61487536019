//! The one client of all protocols: makes the body of a request, sends it, and has the stream read.
//!
//! A [`ModelProtocol`] says what differs: the address and its headers, the form of the body, the meaning
//! of the stream and of refusals. It reaches nothing by itself.

use std::{borrow::Cow, sync::Arc, time::Duration};

use gyrus_contract::{
    BoxedFuture, Delta, Image, Model, ModelError, Price, Prompt, Reply, ScreenSize, Simplification,
};
use parking_lot::Mutex;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use crate::{
    ModelConnection,
    blobs::SmallerPictures,
    http::{ProviderEndpoint, Wire},
    screen,
    stream::ReplyReader,
};

/// The differences of one protocol from the others.
pub(crate) trait ModelProtocol: Default + Send + Sync {
    /// Reader of the protocol's streams.
    type Reader: ReplyReader;

    /// Fields of the body that not every server of the protocol takes.
    const OPTIONAL: &'static [&'static str] = &[];

    /// Checks the connection, and normalises values with several spellings.
    fn prepare(_connection: &mut ModelConnection) -> Result<(), ModelError> {
        Ok(())
    }

    /// Returns the parts that HTTP needs.
    fn wire(connection: &ModelConnection) -> Wire;

    /// Returns the definition of the provider's own tool for screens, if there is one.
    fn screen_tool() -> Option<Value> {
        None
    }

    /// Returns the body of a request, or the reason why the prompt cannot be sent. The reply may
    /// act on `shown` by the provider's own tool.
    fn body(
        &self,
        prompt: &Prompt,
        connection: &ModelConnection,
        shown: Option<ScreenSize>,
    ) -> Result<Value, ModelError>;

    /// Changes the body of a request that was refused with `error`, if the provider accepts another
    /// form of it. The provider refuses before any work is done, so that asking again costs nothing
    /// and is not a retry.
    fn adapt(&self, _body: &mut Value, _error: &ModelError) -> bool {
        false
    }

    /// Adds advice for a person to an error.
    fn advise(error: ModelError) -> ModelError {
        error
    }
}

/// A client for a model, with the protocol `P`.
pub struct ProtocolClient<P> {
    protocol: P,
    endpoint: ProviderEndpoint,
    connection: ModelConnection,
    name: String,
    /// The last body that was refused, and the error.
    refused: Mutex<Option<(Value, ModelError)>>,
}

#[expect(
    private_bounds,
    reason = "protocols are chosen by their names, not implemented elsewhere"
)]
impl<P: ModelProtocol> ProtocolClient<P> {
    /// Creates a client of the model at `connection`, whose base URL ends before the protocol's own
    /// path. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ModelError::Network`] if the address is invalid, [`ModelError::Auth`] if the key has
    /// invalid characters, [`ModelError::Refused`] if the model's name has characters that would
    /// lead to another address.
    pub fn new(mut connection: ModelConnection) -> Result<Self, ModelError> {
        P::prepare(&mut connection)?;
        Ok(Self {
            protocol: P::default(),
            endpoint: ProviderEndpoint::new(&connection, P::wire(&connection))?,
            name: connection.name(),
            connection,
            refused: Mutex::default(),
        })
    }

    /// Sends one request, with `extra` headers.
    pub(crate) async fn ask(
        &self,
        prompt: &Prompt,
        extra: HeaderMap,
        deltas: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let connection = &self.connection;
        let offered = screen::offered(prompt, &connection.facts).zip(P::screen_tool());
        let shown = offered.as_ref().map(|(shown, _)| *shown);
        let prompt = screen::told(prompt, shown);
        let mut connection = Cow::Borrowed(connection);
        if prompt.plainer.contains(&Simplification::SmallerPictures) {
            let blobs = Arc::new(SmallerPictures(connection.blobs.clone()));
            connection.to_mut().blobs = blobs;
        }
        let mut body = self.protocol.body(&prompt, &connection, shown)?;
        if let Some((_, tool)) = offered {
            body["tools"] = json!([tool]);
        }
        if prompt.plainer.contains(&Simplification::FewParameters)
            && let Some(fields) = body.as_object_mut()
        {
            fields.retain(|name, _| !P::OPTIONAL.contains(&name.as_str()));
        }
        // A protocol may have nothing to leave out: the same body would be refused again.
        if !prompt.plainer.is_empty()
            && let Some((_, error)) = self
                .refused
                .lock()
                .as_ref()
                .filter(|(last, _)| *last == body)
        {
            return Err(error.clone());
        }
        let reader = || P::Reader::new(&connection.model, shown);
        let answer = self.endpoint.ask(&body, &extra, reader(), deltas).await;
        let answer = match answer {
            Err(error) if self.protocol.adapt(&mut body, &error) => {
                self.endpoint.ask(&body, &extra, reader(), deltas).await
            }
            answer => answer,
        };
        let answer = answer.map_err(P::advise);
        *self.refused.lock() = match &answer {
            Err(error @ ModelError::Refused { .. }) => Some((body, error.clone())),
            _ => None,
        };
        answer
    }
}

impl<P: ModelProtocol> Model for ProtocolClient<P> {
    fn name(&self) -> &str {
        &self.name
    }

    fn price(&self) -> Option<Price> {
        self.connection.facts.price
    }

    fn window(&self) -> Option<u64> {
        self.connection.facts.window
    }

    fn image_tokens(&self, image: &Image) -> u64 {
        self.connection.facts.image_tokens(image)
    }

    fn max_silence(&self) -> Duration {
        self.endpoint.start_limit
    }

    fn reply<'a>(
        &'a self,
        prompt: &'a Prompt,
        deltas: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxedFuture<'a, Result<Reply, ModelError>> {
        Box::pin(self.ask(prompt, HeaderMap::new(), deltas))
    }
}
