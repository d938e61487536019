//! Requests of a server during a call: questions to the person (elicitation) and prompts for a
//! model (sampling).
//!
//! The one idea: a server asks within a call, and the call's [`Site`](gyrus_contract::Site) decides
//! what becomes of it. Here a request is read, bounded and put into words; what would ask for a
//! secret never reaches a person. What a server asks outside of every call is declined.

#![expect(
    deprecated,
    reason = "the protocol's next version drops sampling; servers of today have it"
)]

mod caller;
mod elicitation;
mod form;
mod sampling;
mod secrets;

use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ErrorData,
};
use tokio::sync::oneshot;

pub(crate) use caller::Caller;

/// Whether the requests of a server are put to a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RequestPolicy {
    /// The requests are put to a person, and the server is informed of it from the start.
    Offered,
    /// All requests are declined.
    #[default]
    Refused,
}

pub(crate) enum ServerRequest {
    Elicitation(
        Box<ElicitRequestParams>,
        oneshot::Sender<Result<ElicitResult, ErrorData>>,
    ),
    Sampling(
        Box<CreateMessageRequestParams>,
        oneshot::Sender<Result<CreateMessageResult, ErrorData>>,
    ),
}

impl ServerRequest {
    /// Handles the request and sends the answer, unless the server cancels the request before.
    pub(crate) async fn answer(self, caller: &Caller<'_>) {
        match self {
            Self::Elicitation(params, mut answer) => {
                let elicited = tokio::select! {
                    biased;
                    () = answer.closed() => return,
                    elicited = elicitation::elicited(caller, &params) => elicited,
                };
                // A server that is gone hears nothing.
                let _ = answer.send(Ok(elicited));
            }
            Self::Sampling(params, mut answer) => {
                let sampled = tokio::select! {
                    biased;
                    () = answer.closed() => return,
                    sampled = sampling::sampled(caller, &params) => sampled,
                };
                let sampled = sampled.map_err(|why| {
                    caller.note(&format!(
                        "a model for its own prompt; it was refused: {why}"
                    ));
                    ErrorData::invalid_request(format!("refused: {why}"), None)
                });
                let _ = answer.send(sampled);
            }
        }
    }
}
