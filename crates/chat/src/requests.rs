//! Requests to the server of a messenger: what is known of one whose answer did not come.

use std::time::Duration;

use gyrus_net::causes;
use reqwest::{RequestBuilder, Response};

use crate::messenger::MessengerError;

/// Time for a call that carries a file.
pub(crate) const FILE_WITHIN: Duration = Duration::from_secs(180);

/// Default waiting time after the server complained of too many requests.
const TOO_FAST: Duration = Duration::from_secs(5);

/// Maximum delay that a server may request.
const MOST_WAIT: Duration = Duration::from_secs(3_600);
const LEAST_WAIT: Duration = Duration::from_secs(1);

/// Whether a call that may have been carried out can be repeated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RepeatRule {
    Harmless,
    /// A repetition would be visible, since the call would take effect twice.
    Visible,
}

pub(crate) fn too_fast(wait: Option<Duration>) -> MessengerError {
    let after = wait.unwrap_or(TOO_FAST).clamp(LEAST_WAIT, MOST_WAIT);
    MessengerError::TooFast { after }
}

/// Sends a request; no address is part of the error.
pub(crate) async fn sent(
    request: RequestBuilder,
    repeating: RepeatRule,
) -> Result<Response, MessengerError> {
    let sent = request.send().await;
    sent.map_err(|error| {
        let never_left = error.is_connect() || error.is_builder();
        let why = causes(&error.without_url());
        failed(never_left, repeating, why)
    })
}

pub(crate) fn failed(never_left: bool, repeating: RepeatRule, why: String) -> MessengerError {
    if never_left || repeating == RepeatRule::Harmless {
        MessengerError::Later { why }
    } else {
        MessengerError::Unknown { why }
    }
}

/// Reads the body of an answer, at most `most` bytes.
pub(crate) async fn body(
    mut answer: Response,
    most: usize,
    repeating: RepeatRule,
) -> Result<Vec<u8>, MessengerError> {
    let mut bytes = Vec::new();
    loop {
        let chunk = answer.chunk().await;
        let chunk =
            chunk.map_err(|error| failed(false, repeating, causes(&error.without_url())))?;
        let Some(chunk) = chunk else { return Ok(bytes) };
        bytes.extend_from_slice(&chunk);
        if bytes.len() > most {
            let why = format!("it is larger than {most} bytes");
            return Err(MessengerError::Refused { why });
        }
    }
}
