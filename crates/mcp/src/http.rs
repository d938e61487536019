//! Servers that are reached by streamable HTTP: trusted certificates and redirects.

use std::{collections::BTreeMap, time::Duration};

use gyrus_net::client_builder;
use reqwest::{
    Client, Url,
    header::{HeaderName, HeaderValue},
};
use rmcp::{
    RoleClient,
    service::{RunningService, serve_client},
    transport::{
        AuthClient, StreamableHttpClientTransport,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};

use crate::{
    RequestPolicy, ServerLogin, bounded::MAX_MESSAGE, definition::clean, subscriber::Subscriber,
};

/// Maximum time to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// A connection with its handler of notifications and requests of the server.
type HttpService = RunningService<RoleClient, Subscriber>;

pub(crate) enum NotReached {
    /// The server requires a login; the text is its challenge.
    Login(String),
    Other(String),
}

/// Connects to the server at `url`: `headers` are sent with every request, and the token of `login`
/// if there is one.
pub(crate) async fn connect(
    url: &str,
    headers: &BTreeMap<String, String>,
    login: Option<&ServerLogin>,
    requests: RequestPolicy,
) -> Result<HttpService, NotReached> {
    let (client, config) = client(url, headers).map_err(NotReached::Other)?;
    let manager = match login {
        Some(login) => login.manager(url).await.map_err(NotReached::Other)?,
        None => None,
    };
    let handler = Subscriber::new(requests);
    let service = match manager {
        Some(manager) => {
            let client = AuthClient::new(client, manager);
            let transport = StreamableHttpClientTransport::with_client(client, config);
            serve_client(handler, transport).await
        }
        None => {
            let transport = StreamableHttpClientTransport::with_client(client, config);
            serve_client(handler, transport).await
        }
    };
    service.map_err(|error| {
        if let Some(challenge) = error.auth_challenge() {
            return NotReached::Login(challenge.to_owned());
        }
        match clean(&gyrus_net::causes(&error)) {
            // Some servers do not say how.
            why if why.contains("HTTP 401 ") => NotReached::Login(String::new()),
            why => NotReached::Other(why),
        }
    })
}

/// Returns a client for the server, and the configuration of its transport.
fn client(
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<(Client, StreamableHttpClientTransportConfig), String> {
    let address = Url::parse(url).map_err(|error| format!("invalid address `{url}`: {error}"))?;
    if !matches!(address.scheme(), "http" | "https") {
        return Err(format!(
            "`{url}` begins neither with https:// nor with http://"
        ));
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .max_sse_event_size(MAX_MESSAGE)
        .max_json_response_size(MAX_MESSAGE);
    for (name, value) in headers {
        let header = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("invalid header name `{name}`"))?;
        // The value must not be shown: it may be a key.
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| format!("the value of the header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        config.custom_headers.insert(header, value);
    }
    // Headers are for this address alone: this client follows no redirects.
    let client = client_builder(&address, CONNECT_LIMIT)
        .map_err(|error| error.to_string())?
        .build()
        .map_err(|error| format!("no HTTP client can be made: {error}"))?;
    Ok((client, config))
}
