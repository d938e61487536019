//! Calls of the client-server API of Matrix (spec.matrix.org/latest/client-server-api). The token
//! goes into a header, and no address is ever shown.

use std::time::Duration;

use gyrus_net::{causes, client_builder, is_loopback_host};
use reqwest::{
    Client, Method, RequestBuilder, Response, StatusCode, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    messenger::MessengerError,
    requests::{FILE_WITHIN, Repeating, body, failed, sent, too_fast},
};

/// Time for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Time for the answer to a call.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// The longest answer in bytes.
const MAX_ANSWER: usize = 16 << 20;

/// A homeserver, as one account.
pub(super) struct Homeserver {
    client: Client,
    server: Url,
}

/// The form of every error.
#[derive(Default, Deserialize)]
#[serde(default)]
struct MatrixFault {
    errcode: String,
    error: String,
    retry_after_ms: Option<u64>,
}

impl Homeserver {
    /// Creates it for the address of a homeserver and the access token of an account.
    pub(super) fn new(server: &str, token: &str) -> Result<Self, String> {
        let url: Url = server
            .parse()
            .map_err(|error| format!("invalid `url`: {error}"))?;
        let is_here = is_loopback_host(url.host_str().unwrap_or_default());
        if !(url.scheme() == "https" || url.scheme() == "http" && is_here) {
            return Err(
                "invalid `url`: it begins with https:// (http:// is for this machine alone)"
                    .to_owned(),
            );
        }
        if url.path() != "/" || url.query().is_some() || !url.username().is_empty() {
            return Err("invalid `url`: it is the address of the homeserver alone".to_owned());
        }
        let mut authorization = HeaderValue::try_from(format!("Bearer {token}"))
            .map_err(|_| "the token cannot be sent".to_owned())?;
        authorization.set_sensitive(true);
        let builder = client_builder(&url, CONNECT_WITHIN).map_err(|error| causes(&error))?;
        let builder =
            builder.default_headers(HeaderMap::from_iter([(AUTHORIZATION, authorization)]));
        let client = builder.build().map_err(|error| causes(&error))?;
        Ok(Self {
            client,
            server: url,
        })
    }

    /// Returns a request to a path, whose parts may hold anything.
    fn request(&self, method: Method, path: &[&str], query: &[(&str, &str)]) -> RequestBuilder {
        let mut url = self.server.clone();
        url.path_segments_mut()
            .expect("addresses that begin with http have paths")
            .clear()
            .push("_matrix")
            .extend(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.client.request(method, url).timeout(ANSWER_WITHIN)
    }

    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<T, MessengerError> {
        answer(self.request(Method::GET, path, query)).await
    }

    /// As [`Self::get`], with so long for the answer.
    pub(super) async fn get_within<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        within: Duration,
    ) -> Result<T, MessengerError> {
        answer(self.request(Method::GET, path, query).timeout(within)).await
    }

    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        content: &Value,
    ) -> Result<T, MessengerError> {
        let request = self.request(Method::POST, path, &[]);
        answer(with_json(request, content)).await
    }

    pub(super) async fn put<T: DeserializeOwned>(
        &self,
        path: &[&str],
        content: &Value,
    ) -> Result<T, MessengerError> {
        let request = self.request(Method::PUT, path, &[]);
        answer(with_json(request, content)).await
    }

    /// Uploads a file.
    pub(super) async fn upload<T: DeserializeOwned>(
        &self,
        name: &str,
        kind: &str,
        bytes: &[u8],
    ) -> Result<T, MessengerError> {
        let path = ["media", "v3", "upload"];
        let request = self.request(Method::POST, &path, &[("filename", name)]);
        let request = request.header(CONTENT_TYPE, kind).body(bytes.to_vec());
        answer(request.timeout(FILE_WITHIN)).await
    }

    /// Downloads a file of a server, of at most `most` bytes.
    pub(super) async fn download(
        &self,
        server: &str,
        media: &str,
        most: usize,
    ) -> Result<Vec<u8>, MessengerError> {
        let path = ["client", "v1", "media", "download", server, media];
        let request = self.request(Method::GET, &path, &[]).timeout(FILE_WITHIN);
        let answer = sent(request, Repeating::Harmless).await?;
        if answer.status().is_success() {
            body(answer, most, Repeating::Harmless).await
        } else {
            Err(refused(answer).await)
        }
    }
}

fn with_json(request: RequestBuilder, content: &Value) -> RequestBuilder {
    request
        .header(CONTENT_TYPE, "application/json")
        .body(content.to_string())
}

/// Sends a request and reads its answer. Every request may be repeated: what would be seen twice has
/// a transaction id.
async fn answer<T: DeserializeOwned>(request: RequestBuilder) -> Result<T, MessengerError> {
    let answer = sent(request, Repeating::Harmless).await?;
    let status = answer.status();
    if !status.is_success() {
        return Err(refused(answer).await);
    }
    let bytes = body(answer, MAX_ANSWER, Repeating::Harmless).await?;
    serde_json::from_slice(&bytes).map_err(|_| {
        let why = format!("the server answered {status}, and not as a homeserver does");
        failed(false, Repeating::Harmless, why)
    })
}

async fn refused(answer: Response) -> MessengerError {
    let status = answer.status();
    let seconds = answer.headers().get(RETRY_AFTER);
    let seconds: Option<u64> = seconds.and_then(|wait| wait.to_str().ok()?.parse().ok());
    let bytes = body(answer, MAX_ANSWER, Repeating::Harmless).await;
    let bytes = bytes.unwrap_or_default();
    let fault: MatrixFault = serde_json::from_slice(&bytes).unwrap_or_default();
    let why = if fault.errcode.is_empty() {
        format!("the server answered {status}")
    } else {
        let words = format!("{}: {}", fault.errcode, fault.error);
        format!("{} ({})", gyrus_text::clip(&words, 200), status.as_u16())
    };
    match (status, fault.errcode.as_str()) {
        (StatusCode::TOO_MANY_REQUESTS, _) | (_, "M_LIMIT_EXCEEDED") => {
            let said = fault.retry_after_ms.map(Duration::from_millis);
            too_fast(said.or(seconds.map(Duration::from_secs)))
        }
        (StatusCode::UNAUTHORIZED, _) | (_, "M_UNKNOWN_TOKEN" | "M_MISSING_TOKEN") => {
            MessengerError::Unauthorized { why }
        }
        // A gateway before the server, which may find it again.
        (StatusCode::NOT_FOUND, "") => MessengerError::Later { why },
        (status, _) if status.is_server_error() => MessengerError::Later { why },
        _ => MessengerError::Refused { why },
    }
}
