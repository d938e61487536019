//! The server that plays a script.
//!
//! It listens on this machine only and requires its token. It keeps no state of a run except the
//! faults that it has played, because a fault happens once.

use std::{
    collections::BTreeSet,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::SystemTime,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, HeaderName, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::stream;
use gyrus_contract::Purpose;
use parking_lot::Mutex;
use serde::{
    Deserialize,
    de::{IntoDeserializer, value},
};
use serde_json::Value;
use tokio::{net::TcpListener, sync::oneshot};

use super::{
    ORDINAL_HEADER, PURPOSE_HEADER, check,
    file::{CheckedScript, Fault},
    wire::{self, ServingValues},
};

const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;

/// Delay that the fault `rate-limited` asks for, in milliseconds.
const RATE_LIMIT_DELAY_MS: &str = "20";

/// Maximum length of a quoted message that a `when` did not match, in characters.
const MAX_QUOTE: usize = 300;

/// A running server. Dropping it stops it.
pub(super) struct ScriptServer {
    address: SocketAddr,
    token: String,
    _stop: oneshot::Sender<()>,
}

impl ScriptServer {
    /// Starts a server of `script` on a free port of 127.0.0.1.
    pub(super) async fn start(script: CheckedScript) -> io::Result<Self> {
        gyrus_text::check_http_date(SystemTime::now())?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let token = uuid::Uuid::new_v4().simple().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let stage = ScriptStage {
            script,
            token: token.clone(),
            played: Mutex::default(),
        };
        let router = Router::new()
            .route("/v1/messages", post(answer))
            .layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES))
            .with_state(Arc::new(stage));
        let serving = axum::serve(listener, router).with_graceful_shutdown(async {
            // It resolves when the sender is dropped, which is the signal.
            _ = stopped.await;
        });
        tokio::spawn(async { serving.await });
        Ok(Self {
            address,
            token,
            _stop: stop,
        })
    }

    /// Returns the address of the server.
    pub(super) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the key that the server accepts.
    pub(super) fn token(&self) -> &str {
        &self.token
    }
}

struct ScriptStage {
    script: CheckedScript,
    token: String,
    /// The requests whose fault was simulated.
    played: Mutex<BTreeSet<(Purpose, u64)>>,
}

/// An HTTP error: the status, the provider's word for its kind, and the message.
struct ScriptRefusal(StatusCode, &'static str, String);

impl IntoResponse for ScriptRefusal {
    fn into_response(self) -> Response {
        let ScriptRefusal(status, kind, message) = self;
        let body = wire::error(kind, &message).to_string();
        (status, [(CONTENT_TYPE, "application/json")], body).into_response()
    }
}

fn invalid(message: String) -> ScriptRefusal {
    ScriptRefusal(StatusCode::BAD_REQUEST, "invalid_request_error", message)
}

async fn answer(
    State(stage): State<Arc<ScriptStage>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ScriptRefusal> {
    if headers
        .get("x-api-key")
        .is_none_or(|key| key != stage.token.as_str())
    {
        let message = "this is not the token of the script's server".to_owned();
        return Err(ScriptRefusal(
            StatusCode::UNAUTHORIZED,
            "authentication_error",
            message,
        ));
    }
    let request: Value = serde_json::from_slice(&body)
        .map_err(|error| invalid(format!("the request is not JSON: {error}")))?;
    check::check(&request).map_err(invalid)?;
    let (purpose, ordinal) = place(&headers).ok_or_else(|| {
        invalid(format!(
            "the request needs the headers {PURPOSE_HEADER} and {ORDINAL_HEADER}"
        ))
    })?;
    let (pictures, encoded) = pictures_in(&request);
    let tokens = wire::estimate(body.len().saturating_sub(encoded))
        .saturating_add(pictures.saturating_mul(PICTURE_TOKENS));
    stage.play(purpose, ordinal, &request, tokens)
}

/// Tokens of a picture in an estimate: about those of one that fills a screen.
const PICTURE_TOKENS: u64 = 1_500;

/// Returns the number of pictures in a request, and the length of their encoded data.
fn pictures_in(value: &Value) -> (u64, usize) {
    let several = |values: &mut dyn Iterator<Item = &Value>| {
        values
            .map(pictures_in)
            .fold((0, 0), |sum, more| (sum.0 + more.0, sum.1 + more.1))
    };
    match value {
        Value::Object(object) if object.get("type").is_some_and(|kind| kind == "image") => {
            (1, value["source"]["data"].as_str().map_or(0, str::len))
        }
        Value::Object(object) => several(&mut object.values()),
        Value::Array(values) => several(&mut values.iter()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (0, 0),
    }
}

fn place(headers: &HeaderMap) -> Option<(Purpose, u64)> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok();
    let word: value::StrDeserializer<value::Error> = text(PURPOSE_HEADER)?.into_deserializer();
    Some((
        Purpose::deserialize(word).ok()?,
        text(ORDINAL_HEADER)?.parse().ok()?,
    ))
}

impl ScriptStage {
    fn play(
        &self,
        purpose: Purpose,
        ordinal: u64,
        request: &Value,
        request_tokens: u64,
    ) -> Result<Response, ScriptRefusal> {
        let (file, word) = (&self.script.file, purpose.word());
        let number = ordinal.saturating_add(1);
        let reply = self
            .script
            .reply(purpose, ordinal, &check::first_text(request));
        let reply = reply.map_err(|count| {
            let message = format!(
                "{file}: the script has no reply {number} for purpose {word}; it has {count}"
            );
            ScriptRefusal(StatusCode::NOT_FOUND, "not_found_error", message)
        })?;
        let last = check::last_text(request);
        if let Some(when) = reply.when.as_ref().filter(|when| !when.is_match(&last)) {
            let saw = gyrus_text::shorten(&last, MAX_QUOTE);
            let line = reply.line;
            return Err(invalid(format!(
                "{file}, line {line}: reply {number} for purpose {word} expects a last message \
                 that matches `{when}`, but it is: {saw}"
            )));
        }
        let filled = reply.filled(&check::all_text(request)).map_err(|missing| {
            let line = reply.line;
            invalid(format!(
                "{file}, line {line}: reply {number} for purpose {word} finds no {missing}"
            ))
        })?;
        let serving = ServingValues {
            model: request["model"].as_str().unwrap_or_default(),
            key: format!("{word}_{ordinal}"),
            request_tokens,
        };
        let is_first = self.played.lock().insert((purpose, ordinal));
        match (&reply.raw, reply.fault) {
            (Some(raw), _) if is_first || !reply.has_content() => Ok(streamed(raw.clone())),
            (_, Some(Fault::Overloaded)) if is_first => Err(ScriptRefusal(
                StatusCode::from_u16(529).unwrap_or(StatusCode::SERVICE_UNAVAILABLE),
                "overloaded_error",
                "the script says so".to_owned(),
            )),
            (_, Some(Fault::RateLimited)) if is_first => {
                let refusal = ScriptRefusal(
                    StatusCode::TOO_MANY_REQUESTS,
                    "rate_limit_error",
                    "the script says so".to_owned(),
                );
                Ok(([("retry-after-ms", RATE_LIMIT_DELAY_MS)], refusal).into_response())
            }
            (_, Some(Fault::SlowBytes)) if is_first => {
                let bytes = wire::stream(&filled, &serving).into_bytes();
                let single = bytes.into_iter().map(|byte| Ok::<_, io::Error>(vec![byte]));
                Ok(streamed(Body::from_stream(stream::iter(single))))
            }
            (_, Some(fault)) if is_first => {
                Ok(streamed(wire::faulty_stream(fault, &filled, &serving)))
            }
            _ => Ok(streamed(wire::stream(&filled, &serving))),
        }
    }
}

fn streamed(body: impl Into<Body>) -> Response {
    (
        [(CONTENT_TYPE, "text/event-stream; charset=utf-8")],
        body.into(),
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pictures_are_counted_wherever_they_stand() {
        let picture =
            json!({"type": "image", "source": {"type": "base64", "data": "A".repeat(4_000)}});
        let result =
            json!({"type": "tool_result", "content": [{"type": "text", "text": "x"}, picture]});
        let request = json!({"messages": [{"role": "user", "content": [picture, result]}]});
        assert_eq!(pictures_in(&request), (2, 8_000));
        assert_eq!(pictures_in(&json!({"messages": ["image"]})), (0, 0));
    }
}
