//! Calls of the Bot API (core.telegram.org/bots/api). The token is part of every address, so no
//! address is ever shown.

use std::time::Duration;

use gyrus_net::{causes, client_builder};
use reqwest::{Client, RequestBuilder, Url, header::CONTENT_TYPE};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    messenger::MessengerError,
    multipart::Multipart,
    requests::{FILE_WITHIN, RepeatRule, body, failed, sent, too_fast},
};

/// Time for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Time for the answer to a call.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// The longest answer in bytes.
const MAX_ANSWER: usize = 16 << 20;

pub(super) struct BotApi {
    client: Client,
    /// The address up to and with the token.
    calls: String,
    /// The base address for downloading files.
    files: String,
}

#[derive(Deserialize)]
struct BotApiAnswer<T> {
    ok: bool,
    result: Option<T>,
    error_code: Option<u16>,
    #[serde(default)]
    description: String,
    parameters: Option<ErrorParameters>,
}

#[derive(Deserialize)]
struct ErrorParameters {
    retry_after: Option<u64>,
    migrate_to_chat_id: Option<i64>,
}

impl BotApi {
    pub(super) fn new(server: &str, token: &str) -> Result<Self, String> {
        let url: Url = server
            .parse()
            .map_err(|error| format!("invalid `url`: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("invalid `url`: it begins with http:// or https://".to_owned());
        }
        let builder = client_builder(&url, CONNECT_WITHIN).map_err(|error| causes(&error))?;
        let client = builder.build().map_err(|error| causes(&error))?;
        let server = server.trim_end_matches('/');
        Ok(Self {
            client,
            calls: format!("{server}/bot{token}"),
            files: format!("{server}/file/bot{token}"),
        })
    }

    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        arguments: &Value,
        repeating: RepeatRule,
    ) -> Result<T, MessengerError> {
        self.call_within(method, arguments, repeating, ANSWER_WITHIN)
            .await
    }

    /// Calls a method with JSON, and waits so long for its answer.
    pub(super) async fn call_within<T: DeserializeOwned>(
        &self,
        method: &str,
        arguments: &Value,
        repeating: RepeatRule,
        within: Duration,
    ) -> Result<T, MessengerError> {
        let request = self
            .client
            .post(format!("{}/{method}", self.calls))
            .header(CONTENT_TYPE, "application/json")
            .body(arguments.to_string());
        answer(request.timeout(within), repeating).await
    }

    pub(super) async fn upload<T: DeserializeOwned>(
        &self,
        method: &str,
        body: Multipart,
    ) -> Result<T, MessengerError> {
        let request = self
            .client
            .post(format!("{}/{method}", self.calls))
            .header(CONTENT_TYPE, body.content_type())
            .body(body.bytes());
        answer(request.timeout(FILE_WITHIN), RepeatRule::Visible).await
    }

    pub(super) async fn download(
        &self,
        path: &str,
        most: usize,
    ) -> Result<Vec<u8>, MessengerError> {
        let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
        if !path.split('/').all(is_plain) || path.contains(['?', '#', '%']) {
            let why = "the server gave no usable path for the file".to_owned();
            return Err(MessengerError::Refused { why });
        }
        let request = self.client.get(format!("{}/{path}", self.files));
        let answer = sent(request.timeout(FILE_WITHIN), RepeatRule::Harmless).await?;
        let status = answer.status();
        if !status.is_success() {
            let why = format!("the server answered {status}");
            return Err(if status.is_server_error() {
                MessengerError::Later { why }
            } else {
                MessengerError::Refused { why }
            });
        }
        body(answer, most, RepeatRule::Harmless).await
    }
}

async fn answer<T: DeserializeOwned>(
    request: RequestBuilder,
    repeating: RepeatRule,
) -> Result<T, MessengerError> {
    let answer = sent(request, repeating).await?;
    let status = answer.status();
    let bytes = body(answer, MAX_ANSWER, repeating).await?;
    let answer: BotApiAnswer<T> = match serde_json::from_slice(&bytes) {
        Ok(answer) => answer,
        // A gateway before the server answers in other words.
        Err(_) if status.is_server_error() => {
            let why = format!("the server answered {status}");
            return Err(MessengerError::Later { why });
        }
        Err(_) => {
            let why = format!("the server answered {status}, and not as the Bot API does");
            return Err(failed(!status.is_success(), repeating, why));
        }
    };
    if let (true, Some(result)) = (answer.ok, answer.result) {
        return Ok(result);
    }
    let code = answer.error_code.unwrap_or(status.as_u16());
    let why = format!("{} ({code})", gyrus_text::clip(&answer.description, 200));
    let parameters = answer.parameters;
    if let Some(to) = parameters
        .as_ref()
        .and_then(|found| found.migrate_to_chat_id)
    {
        return Err(MessengerError::Moved { to: to.to_string() });
    }
    Err(match code {
        429 => {
            let seconds = parameters.and_then(|found| found.retry_after);
            too_fast(seconds.map(Duration::from_secs))
        }
        401 | 404 => MessengerError::Unauthorized { why },
        409 => MessengerError::Conflict { why },
        500.. => MessengerError::Later { why },
        _ => MessengerError::Refused { why },
    })
}
