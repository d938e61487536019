//! Servers that are reached by streamable HTTP: trusted certificates and redirects.

use std::{collections::BTreeMap, time::Duration};

use gyrus_net::client_builder;
use reqwest::{
    Client, Url,
    header::{HeaderName, HeaderValue},
};
use rmcp::transport::{
    StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
};

use crate::bounded::MAX_MESSAGE;

/// Maximum time to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Returns a transport to the server at `url` that sends `headers` with every request.
///
/// # Errors
/// Returns the reason as text if the address or a header is invalid.
pub(crate) fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransport<Client>, String> {
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
    Ok(StreamableHttpClientTransport::with_client(client, config))
}
