//! A server that is reached by streamable HTTP: whom to believe, and what is never followed.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use reqwest::{
    Client, Url,
    header::{HeaderName, HeaderValue},
    redirect,
};
use rmcp::transport::{
    StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
};
use rustls::{ClientConfig, RootCertStore, crypto::ring};

use crate::bounded::MAX_MESSAGE;

/// How long a connection may take to come about.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// What speaks to a server at `url`, sending `headers` along.
///
/// # Errors
/// When they are no address and headers, in words.
pub(crate) fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransport<Client>, String> {
    let address = Url::parse(url).map_err(|error| format!("`{url}` is no address: {error}"))?;
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
            .map_err(|_| format!("`{name}` is no name of a header"))?;
        // What it is must not be said: it may be a key.
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| format!("the value of the header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        config.custom_headers.insert(header, value);
    }
    let builder = Client::builder()
        .connect_timeout(CONNECT_LIMIT)
        // Headers are for this address alone.
        .redirect(redirect::Policy::none())
        .user_agent(concat!("gyrus/", env!("CARGO_PKG_VERSION")))
        .tls_backend_preconfigured(tls(&address));
    // A proxy of the environment must not see what is meant for this machine.
    let builder = match address.host_str() {
        Some("127.0.0.1" | "localhost" | "[::1]") => builder.no_proxy(),
        _ => builder,
    };
    let client = builder
        .build()
        .map_err(|error| format!("no HTTP client can be made: {error}"))?;
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Believes the system's roots (or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name), else the
/// list of webpki-roots.
fn tls(address: &Url) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    if address.scheme() == "https" {
        let found = rustls_native_certs::load_native_certs();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
    }
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has cipher suites for TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
